//! What a signal asks for.

use serde_json::{Map, Value as Json};

use super::Signal;

/// An action, checked as far as that is possible without the source.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    ExecuteSnapshot(SnapshotRequest),
    StopSnapshot(Stopped),
    PauseSnapshot,
    ResumeSnapshot,
    /// Watermarks that an incremental snapshot writes itself; the id of the signal names the chunk.
    WindowOpen,
    WindowClose,
    /// A line for the log; see [`Action::line`].
    Log(String),
}

/// How a snapshot of collections is taken while changes are streamed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SnapshotKind {
    /// In chunks, between the changes.
    Incremental,
    /// At once, while the stream waits.
    Blocking,
}

#[derive(Debug, Clone, PartialEq)]
pub struct SnapshotRequest {
    pub kind: SnapshotKind,
    /// Regular expressions over full names of collections; not empty.
    pub collections: Vec<String>,
    pub conditions: Vec<Condition>,
    /// Column that orders the chunks in place of the key.
    pub surrogate_key: Option<String>,
}

/// Which rows of a collection are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// Full name or regular expression.
    pub collection: String,
    /// In the language of the source.
    pub filter: String,
}

/// Which collections of an incremental snapshot are given up; `None`: all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stopped {
    pub collections: Option<Vec<String>>,
}

impl Action {
    /// # Errors
    /// Why the signal cannot be followed: unknown type, or data without what the type needs.
    pub fn of(signal: &Signal) -> Result<Self, String> {
        match signal.kind.as_str() {
            "execute-snapshot" => SnapshotRequest::of(&signal.object()?).map(Self::ExecuteSnapshot),
            "stop-snapshot" => {
                let data = signal.object()?;
                only_incremental(&data)?;
                let collections = match data.get("data-collections") {
                    None | Some(Json::Null) => None,
                    Some(_) => Some(names(&data)?).filter(|names| !names.is_empty()),
                };
                Ok(Self::StopSnapshot(Stopped { collections }))
            }
            "pause-snapshot" => only_incremental(&signal.object()?).map(|()| Self::PauseSnapshot),
            "resume-snapshot" => only_incremental(&signal.object()?).map(|()| Self::ResumeSnapshot),
            "snapshot-window-open" => Ok(Self::WindowOpen),
            "snapshot-window-close" => Ok(Self::WindowClose),
            "log" => match signal.object()?.remove("message") {
                Some(Json::String(message)) => Ok(Self::Log(message)),
                _ => Err("its data has no text in the member 'message'".into()),
            },
            other => Err(format!("its type '{other}' is unknown")),
        }
    }

    /// The line that a message of [`Action::Log`] stands for: its first `{}` is the position. Others stay, as
    /// in Debezium, whose logger has one value to fill in; so a line is not much longer than its message.
    pub fn line(message: &str, position: &str) -> String {
        message.replacen("{}", position, 1)
    }
}

impl SnapshotRequest {
    fn of(data: &Map<String, Json>) -> Result<Self, String> {
        let collections = names(data)?;
        if collections.is_empty() {
            return Err("its data names no collection in 'data-collections'".into());
        }
        let surrogate_key = match data.get("surrogate-key") {
            Some(Json::String(column)) if !column.trim().is_empty() => Some(column.trim().to_owned()),
            _ => None,
        };
        Ok(Self { kind: kind(data)?, conditions: conditions(data, &collections)?, collections, surrogate_key })
    }
}

fn kind(data: &Map<String, Json>) -> Result<SnapshotKind, String> {
    match data.get("type") {
        None | Some(Json::Null) => Ok(SnapshotKind::Incremental),
        Some(Json::String(text)) if text.eq_ignore_ascii_case("incremental") => Ok(SnapshotKind::Incremental),
        Some(Json::String(text)) if text.eq_ignore_ascii_case("blocking") => Ok(SnapshotKind::Blocking),
        Some(other) => Err(format!("its snapshot type {other} is neither incremental nor blocking")),
    }
}

fn only_incremental(data: &Map<String, Json>) -> Result<(), String> {
    match kind(data)? {
        SnapshotKind::Incremental => Ok(()),
        SnapshotKind::Blocking => Err("only incremental snapshots can be stopped, paused and resumed".into()),
    }
}

fn names(data: &Map<String, Json>) -> Result<Vec<String>, String> {
    let Some(Json::Array(items)) = data.get("data-collections") else {
        return Err("its data has no list in the member 'data-collections'".into());
    };
    let name = |item: &Json| match item {
        Json::String(name) => Ok(name.trim().to_owned()),
        other => Err(format!("{other} in 'data-collections' is no text")),
    };
    let names: Result<Vec<_>, _> = items.iter().map(name).collect();
    Ok(names?.into_iter().filter(|n| !n.is_empty()).collect())
}

/// Also in the older form, one condition for all collections.
fn conditions(data: &Map<String, Json>, collections: &[String]) -> Result<Vec<Condition>, String> {
    if let Some(Json::String(filter)) = data.get("additional-condition")
        && !filter.trim().is_empty()
    {
        let of = |name: &String| Condition { collection: name.clone(), filter: filter.trim().to_owned() };
        return Ok(collections.iter().map(of).collect());
    }
    let items = match data.get("additional-conditions") {
        None | Some(Json::Null) => return Ok(Vec::new()),
        Some(Json::Array(items)) => items,
        Some(_) => return Err("its member 'additional-conditions' is no list".into()),
    };
    let condition = |item: &Json| {
        let text = |name: &str| item.get(name).and_then(Json::as_str).map(|t| t.trim().to_owned());
        match (text("data-collection"), text("filter")) {
            (Some(collection), Some(filter)) => Ok(Condition { collection, filter }),
            _ => Err("a member of 'additional-conditions' lacks 'data-collection' or 'filter'".to_owned()),
        }
    };
    items.iter().map(condition).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    fn of(kind: &str, data: Json) -> Result<Action, String> {
        Action::of(&Signal { id: "s".into(), kind: kind.into(), data })
    }

    fn request(kind: SnapshotKind, collections: &[&str], conditions: &[(&str, &str)]) -> Action {
        let condition = |(c, f): &(&str, &str)| Condition { collection: (*c).into(), filter: (*f).into() };
        Action::ExecuteSnapshot(SnapshotRequest {
            kind,
            collections: collections.iter().map(|c| (*c).into()).collect(),
            conditions: conditions.iter().map(condition).collect(),
            surrogate_key: None,
        })
    }

    #[test]
    fn t_80_snapshots_in_both_kinds_and_both_forms_of_conditions() {
        let data = json!({"data-collections": [" shop.a ", "shop\\.b.*"], "type": "BLOCKING",
            "additional-conditions": [{"data-collection": "shop.a", "filter": "{}"}]});
        let wanted = request(SnapshotKind::Blocking, &["shop.a", "shop\\.b.*"], &[("shop.a", "{}")]);
        assert_eq!(of("execute-snapshot", data.clone()).unwrap(), wanted);
        assert_eq!(of("execute-snapshot", json!(data.to_string())).unwrap(), wanted);
        let older = json!({"data-collections": ["t.a", "t.b"], "additional-condition": "x=1"});
        assert_eq!(
            of("execute-snapshot", older).unwrap(),
            request(SnapshotKind::Incremental, &["t.a", "t.b"], &[("t.a", "x=1"), ("t.b", "x=1")])
        );
    }

    #[test]
    fn what_cannot_be_followed_says_why() {
        for (kind, data, error) in [
            ("no-such-signal", json!({}), "its type 'no-such-signal' is unknown"),
            ("execute-snapshot", Json::Null, "its data has no list in the member 'data-collections'"),
            ("execute-snapshot", json!({"data-collections": "a.b"}), "its data has no list"),
            ("execute-snapshot", json!({"data-collections": []}), "its data names no collection"),
            ("execute-snapshot", json!({"data-collections": ["a.b", 1]}), "1 in 'data-collections' is no text"),
            ("execute-snapshot", json!({"data-collections": ["a.b"], "type": "full"}), "its snapshot type \"full\""),
            (
                "execute-snapshot",
                json!({"data-collections": ["a.b"], "additional-conditions": [{"filter": "{}"}]}),
                "a member of 'additional-conditions' lacks",
            ),
            ("stop-snapshot", json!({"type": "blocking"}), "only incremental snapshots"),
            ("log", json!({}), "its data has no text in the member 'message'"),
        ] {
            let told = of(kind, data.clone()).unwrap_err();
            assert!(told.starts_with(error), "{kind} {data}: {told}");
        }
    }

    #[test]
    fn the_other_actions() {
        assert_eq!(of("stop-snapshot", json!({})).unwrap(), Action::StopSnapshot(Stopped { collections: None }));
        let some = Stopped { collections: Some(vec!["a.b".into()]) };
        assert_eq!(of("stop-snapshot", json!({"data-collections": ["a.b"]})).unwrap(), Action::StopSnapshot(some));
        assert_eq!(of("pause-snapshot", Json::Null).unwrap(), Action::PauseSnapshot);
        assert_eq!(of("resume-snapshot", json!({"type": "incremental"})).unwrap(), Action::ResumeSnapshot);
        assert_eq!(of("snapshot-window-open", json!("")).unwrap(), Action::WindowOpen);
        assert_eq!(of("snapshot-window-close", json!("")).unwrap(), Action::WindowClose);
        assert_eq!(of("log", json!({"message": "at {}"})).unwrap(), Action::Log("at {}".into()));
    }

    #[test]
    fn the_position_is_put_into_a_line_once() {
        assert_eq!(Action::line("at {}, {}", r#"{"sec":1}"#), r#"at {"sec":1}, {}"#);
        assert_eq!(Action::line("nowhere", "x"), "nowhere");
        let (message, position) = ("{}".repeat(1000), "x".repeat(1000));
        assert_eq!(Action::line(&message, &position).len(), 2998);
    }
}

//! Signals for a running connector through REST: taken by the cluster, and kept until its tasks have
//! followed them.

use serde_json::{Map, Value, json};
use thalweg_config::rule::split_plain_list;
use thalweg_core::signal::{Action, REST, Signal};

use super::offsets::only_members;
use super::{Api, ApiError, ApiResult};
use crate::raft::command::{SIGNALS_LEVEL, SignalStanding, SignalText};
use crate::raft::{CommandV1, Reply};

const CHANNELS: &str = "signal.enabled.channels";

/// Answer to a signal that was taken.
#[derive(Debug)]
pub enum Taken {
    /// It waits for the tasks now.
    Added(Value),
    /// It was taken before: the same request, once more.
    Known(Value),
}

impl Api {
    /// `POST /connectors/{name}/signals`.
    pub async fn put_signal(&self, name: &str, body: &Value) -> ApiResult<Taken> {
        let signal = signal_of(body)?;
        self.confirmed().await?;
        let raw = self.with(name, |c| c.config.clone())?;
        let config = self.resolved(raw).await?;
        let channels = split_plain_list(config.get(CHANNELS).unwrap_or("source"));
        if !channels.iter().any(|channel| channel.eq_ignore_ascii_case(REST)) {
            return Err(ApiError::bad_request(format!(
                "Connector {name} takes no signals through REST: add '{REST}' to {CHANNELS} in its configuration"
            )));
        }
        if self.view.read().feature_level < SIGNALS_LEVEL {
            self.propose(CommandV1::SetFeatureLevel { level: SIGNALS_LEVEL }).await?;
        }
        let text = SignalText(json!({"id": signal.id, "type": signal.kind, "data": signal.data}).to_string());
        let now_ms = crate::wall_clock_ms();
        let command = CommandV1::PutSignal { name: name.into(), id: signal.id.clone(), text, now_ms };
        let Reply::SignalPut { standing, .. } = self.propose(command).await? else {
            return Err(ApiError::internal("The signal was answered with something else"));
        };
        let state = match standing {
            SignalStanding::Added | SignalStanding::Waiting => "WAITING",
            SignalStanding::Followed => "FOLLOWED",
        };
        let answer = json!({"id": signal.id, "type": signal.kind, "state": state});
        Ok(if standing == SignalStanding::Added { Taken::Added(answer) } else { Taken::Known(answer) })
    }

    /// `GET /connectors/{name}/signals`: those that wait, in their order.
    pub fn signals(&self, name: &str) -> ApiResult {
        let state = self.view.read();
        if !state.connectors.contains_key(name) {
            return Err(ApiError::no_connector(name));
        }
        let waiting = state.signals.get(name).into_iter().flat_map(|signals| signals.waiting.values());
        let shown = waiting.map(|signal| {
            let mut shown: Map<String, Value> = serde_json::from_str(&signal.text.0).unwrap_or_default();
            shown.insert("given_ms".to_owned(), signal.given_ms.into());
            shown.insert("confirmed_by_tasks".to_owned(), json!(signal.confirmed));
            Value::Object(shown)
        });
        Ok(json!({"signals": shown.collect::<Vec<_>>()}))
    }
}

/// What a request gives, if it can be followed as far as that shows without the source.
fn signal_of(body: &Value) -> ApiResult<Signal> {
    let Some(members) = body.as_object() else {
        return Err(ApiError::bad_request("A signal is a JSON object with the members id, type and data"));
    };
    only_members(body, &["id", "type", "data"])?;
    let text = |member: &str| match members.get(member) {
        Some(Value::String(text)) if !text.trim().is_empty() => Ok(text.clone()),
        _ => Err(ApiError::bad_request(format!("The signal has no text in the member '{member}'"))),
    };
    let data = members.get("data").cloned().unwrap_or_default();
    let signal = Signal { id: text("id")?, kind: text("type")?, data };
    match Action::of(&signal) {
        Ok(Action::WindowOpen | Action::WindowClose) => Err(ApiError::bad_request(format!(
            "The signal cannot be followed: '{}' is a watermark, which snapshots write themselves",
            signal.kind
        ))),
        Ok(_) => Ok(signal),
        Err(why) => Err(ApiError::bad_request(format!("The signal cannot be followed: {why}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_followed_is_refused_in_words() {
        for (body, why) in [
            (json!([]), "A signal is a JSON object with the members id, type and data"),
            (json!({"type": "log", "data": {"message": "m"}}), "The signal has no text in the member 'id'"),
            (json!({"id": " ", "type": "log"}), "The signal has no text in the member 'id'"),
            (json!({"id": "s"}), "The signal has no text in the member 'type'"),
            (json!({"id": "s", "typ": "log"}), "Unknown member 'typ'; known here: id, type, data"),
            (json!({"id": "s", "type": "no"}), "The signal cannot be followed: its type 'no' is unknown"),
            (
                json!({"id": "s", "type": "log", "data": {}}),
                "The signal cannot be followed: its data has no text in the member 'message'",
            ),
            (
                json!({"id": "s", "type": "snapshot-window-open"}),
                "The signal cannot be followed: 'snapshot-window-open' is a watermark, which snapshots write themselves",
            ),
        ] {
            let error = signal_of(&body).err().map(|e| (e.status, e.message));
            assert_eq!(error, Some((400, why.to_owned())));
        }
        let data = json!({"data-collections": ["a.b"]});
        let signal = signal_of(&json!({"id": "s", "type": "execute-snapshot", "data": data}));
        assert_eq!(signal, Ok(Signal { id: "s".into(), kind: "execute-snapshot".into(), data }));
    }
}

//! REST calls of a scenario, and the part of their answers that is kept.

use std::time::Duration;

use anyhow::{Result, bail};
use regex::Regex;
use serde_json::{Value, json};
use thalweg_services::{Rest, until};

use super::mask::groups;
use super::names::{Names, texts};
use super::recording::{Answered, Call, Keep, Until};

const SOON: Duration = Duration::from_secs(30);

/// Help texts and stack traces, of which recordings keep that they are there.
const PROSE: [&str; 2] = ["documentation", "trace"];

pub(super) async fn call(rest: &Rest, names: &Names, call: &Call) -> Result<Answered> {
    let body = match (&call.raw_body, &call.body) {
        (Some(raw), _) => Some(names.fill(raw)),
        (None, Some(body)) => Some(names.fill_all(body).to_string()),
        (None, None) => None,
    };
    let headers: Vec<(&str, &str)> = call.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let answer = rest.send(call.method.parse()?, &names.fill(&call.path), &headers, body).await?;
    let kept = match &call.keep {
        Some(keep) => kept(names, keep, answer.body),
        None => answer.body,
    };
    let mut body = names.blank_all(&kept);
    for (pattern, new) in &call.regex_masks {
        let pattern = Regex::new(&format!("(?s){pattern}"))?;
        let new = groups(new);
        body = texts(&body, &|text| pattern.replace_all(text, &new).into_owned());
    }
    Ok(Answered { status: answer.status, content_type: answer.content_type, body: without_prose(body) })
}

/// Repeats a GET until its answer is as wanted.
pub(super) async fn await_answer(rest: &Rest, names: &Names, wanted: &Until) -> Result<()> {
    let path = names.fill(&wanted.path);
    until(&format!("{} answers {:?}", wanted.path, wanted.equals), SOON, || async {
        let (status, body) = rest.get(&path).await?;
        let at = at(body, &wanted.at);
        let equal = wanted.equals.as_ref().is_none_or(|value| at.as_ref() == Some(value));
        if equal && status == wanted.status.unwrap_or(200) {
            return Ok(Some(()));
        }
        bail!("{status} {at:?}")
    })
    .await
}

/// The value at a path of names and indexes; `length` is that of a list.
fn at(body: Value, path: &[Value]) -> Option<Value> {
    path.iter().try_fold(body, |mut body, step| match (step.as_str(), step.as_u64(), &body) {
        (Some("length"), _, Value::Array(items)) => Some(json!(items.len())),
        (Some(name), ..) => body.get_mut(name).map(Value::take),
        (_, Some(index), _) => body.get_mut(usize::try_from(index).ok()?).map(Value::take),
        _ => None,
    })
}

fn kept(names: &Names, keep: &Keep, mut body: Value) -> Value {
    match (keep, &mut body) {
        (Keep::Where(members), Value::Array(items)) => {
            items.retain(|item| members.iter().all(|(name, value)| item.get(name) == Some(value)));
        }
        (Keep::Names(kept), Value::Object(members)) => {
            members.retain(|name, _| kept.iter().any(|kept| names.fill(kept) == *name));
        }
        (Keep::Items(kept), Value::Array(items)) => {
            let is_kept = |text: Option<&Value>| {
                text.and_then(Value::as_str).is_some_and(|text| kept.iter().any(|kept| names.fill(kept) == text))
            };
            items.retain(|item| is_kept(Some(item)) || is_kept(item.get("name")));
        }
        (Keep::Configs(kept), Value::Object(members)) => {
            if let Some(Value::Array(configs)) = members.get_mut("configs") {
                configs.retain(|c| kept.iter().any(|name| c["definition"]["name"] == name.as_str()));
            }
        }
        (Keep::ErrorsOnly(true), Value::Object(members)) => {
            if let Some(Value::Array(configs)) = members.get_mut("configs") {
                let wrong = |value: &Value| value["errors"].as_array().is_some_and(|errors| !errors.is_empty());
                *configs = configs.iter_mut().map(|c| c["value"].take()).filter(wrong).collect();
            }
        }
        _ => {}
    }
    body
}

fn without_prose(value: Value) -> Value {
    match value {
        Value::Object(members) => Value::Object(
            members
                .into_iter()
                .map(|(name, value)| match value {
                    Value::String(_) if PROSE.contains(&name.as_str()) => (name, "<text>".into()),
                    value => (name, without_prose(value)),
                })
                .collect(),
        ),
        Value::Array(items) => items.into_iter().map(without_prose).collect(),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_leads_to_a_value() {
        let body = json!({"tasks": [{"state": "RUNNING"}]});
        let at = |path: Value| at(body.clone(), path.as_array().expect("a path"));
        assert_eq!(at(json!(["tasks", 0, "state"])), Some(json!("RUNNING")));
        assert_eq!(at(json!(["tasks", "length"])), Some(json!(1)));
        assert_eq!(at(json!(["tasks", 1, "state"])), None);
        assert_eq!(at(json!([])), Some(body.clone()));
    }

    #[test]
    fn parts_of_a_body_are_kept() -> Result<()> {
        let names = Names::new("u", "b");
        let of = |keep: Value, body: Value| -> Result<Value> { Ok(kept(&names, &serde_json::from_value(keep)?, body)) };
        assert_eq!(of(json!({"where": {"a": 1}}), json!([{"a": 1, "b": 2}, {"a": 2}]))?, json!([{"a": 1, "b": 2}]));
        assert_eq!(of(json!({"names": ["x"]}), json!({"x": 1, "y": 2}))?, json!({"x": 1}));
        assert_eq!(of(json!({"items": ["x"]}), json!(["x", "y", {"name": "x"}]))?, json!(["x", {"name": "x"}]));
        let configs = json!({"error_count": 1, "configs": [
            {"definition": {"name": "a"}, "value": {"name": "a", "errors": ["e"]}},
            {"definition": {"name": "b"}, "value": {"name": "b", "errors": []}},
            {"definition": {"name": "c"}, "value": null},
        ]});
        let errors = json!({"error_count": 1, "configs": [{"name": "a", "errors": ["e"]}]});
        assert_eq!(of(json!({"errors_only": true}), configs.clone())?, errors);
        assert_eq!(of(json!({"configs": ["b"]}), configs)?["configs"][0]["definition"]["name"], "b");
        Ok(())
    }
}

//! Compares what came out with what was recorded.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use serde_json::Value;

use super::clocks::disagreements;
use super::difference::Difference;
use super::mask::{Masked, Masker};
use super::recording::{Answered, Message, Outcome, Recording, Scenario, Step};
use super::rest_mask::masked;

/// All differences; none if it is the same.
pub(super) fn compare(recording: &Recording, got: &Outcome) -> Result<Vec<Difference>> {
    let scenario = &recording.scenario;
    match (&recording.recorded, got) {
        (Outcome::Answers { answers }, Outcome::Answers { answers: got }) => Ok(of_answers(scenario, answers, got)),
        (
            Outcome::Messages { topics, status, offsets },
            Outcome::Messages { topics: got, status: got_status, offsets: got_offsets },
        ) => {
            let mut all = of_topics(scenario, topics, got)?;
            all.extend(of_bodies("status", status, got_status));
            let masks = BTreeMap::new();
            all.extend(of_bodies("offsets", &masked(offsets, &masks), &masked(got_offsets, &masks)));
            Ok(all)
        }
        _ => anyhow::bail!("messages are compared with answers"),
    }
}

type Topics = BTreeMap<String, Vec<Message>>;

fn of_topics(scenario: &Scenario, expected: &Topics, got: &Topics) -> Result<Vec<Difference>> {
    let mut all = Vec::new();
    for (topic, messages) in expected {
        match got.get(topic) {
            Some(there) => all.extend(of_topic(scenario, topic, messages, there).with_context(|| topic.clone())?),
            None => {
                let count = format!("{} messages", messages.len());
                all.push(Difference::new(format!("topic {topic}"), count, "no topic"));
            }
        }
    }
    for (topic, messages) in got.iter().filter(|(topic, _)| !expected.contains_key(*topic)) {
        all.push(Difference::new(format!("topic {topic}"), "no topic", format!("{} messages", messages.len())));
    }
    Ok(all)
}

fn of_topic(scenario: &Scenario, topic: &str, expected: &[Message], got: &[Message]) -> Result<Vec<Difference>> {
    let unordered = scenario.unordered_topics.iter().any(|name| name == topic);
    let all_masked = |messages: &[Message]| -> Result<Vec<(i32, Masked)>> {
        let mut masker = Masker::new(topic, &scenario.masks)?;
        let mut all = Vec::with_capacity(messages.len());
        for message in messages {
            all.push((message.partition, masker.mask(message)?));
        }
        if unordered {
            all.sort();
        }
        Ok(all)
    };
    let mut all = Vec::new();
    if expected.len() != got.len() {
        let (expected, got) = (format!("{} messages", expected.len()), format!("{} messages", got.len()));
        all.push(Difference::new(format!("topic {topic}"), expected, got));
    }
    for (number, ((partition, one), (there, other))) in
        all_masked(expected)?.into_iter().zip(all_masked(got)?).enumerate()
    {
        let place = format!("topic {topic} message {number}");
        if partition != there {
            all.push(Difference::new(format!("{place} partition"), partition, there));
        }
        for (part, one, other) in [("key", one.key, other.key), ("value", one.value, other.value)] {
            let place = format!("{place} {part}");
            match (one, other) {
                (one, other) if one == other => {}
                (Some(one), Some(other)) => all.extend(Difference::between(&place, &one, &other)),
                (one, other) => {
                    let shown = |text: Option<String>| text.unwrap_or_else(|| "null".to_owned());
                    all.push(Difference::new(place, shown(one), shown(other)));
                }
            }
        }
        if one.headers != other.headers {
            let (one, other) = (format!("{:?}", one.headers), format!("{:?}", other.headers));
            all.push(Difference::new(format!("{place} headers"), one, other));
        }
    }
    for (number, message) in got.iter().enumerate() {
        all.extend(disagreements(&format!("topic {topic} message {number}"), message));
    }
    Ok(all)
}

/// The place of an answer: number of the call and what it was.
pub(super) fn places(scenario: &Scenario) -> Vec<String> {
    let calls = scenario.setup.iter().chain(&scenario.steps).filter_map(|step| match step {
        Step::Call { call } => Some(call),
        _ => None,
    });
    calls.enumerate().map(|(number, call)| format!("call {number} {} {}", call.method, call.path)).collect()
}

/// The body of an answer to a call with this number, masked.
pub(super) fn body(scenario: &Scenario, number: usize, answer: &Answered) -> Value {
    let calls = scenario.setup.iter().chain(&scenario.steps).filter_map(|step| match step {
        Step::Call { call } => Some(&call.masks),
        _ => None,
    });
    masked(&answer.body, calls.into_iter().nth(number).unwrap_or(&BTreeMap::new()))
}

fn of_answers(scenario: &Scenario, expected: &[Answered], got: &[Answered]) -> Vec<Difference> {
    let mut all = Vec::new();
    for (number, ((place, one), other)) in places(scenario).iter().zip(expected).zip(got).enumerate() {
        // A fault of the recorded system on a client's mistake: any refusal will do, its words are not compared.
        if one.status == 500 && (400..=500).contains(&other.status) {
            continue;
        }
        if one.status != other.status {
            all.push(Difference::new(format!("{place} status"), one.status, other.status));
        }
        if one.content_type != other.content_type {
            let shown = |text: &Option<String>| text.clone().unwrap_or_else(|| "none".to_owned());
            let (one, other) = (shown(&one.content_type), shown(&other.content_type));
            all.push(Difference::new(format!("{place} content type"), one, other));
        }
        let (one, other) = (body(scenario, number, one), body(scenario, number, other));
        all.extend(of_bodies(&format!("{place} body"), &one, &other));
    }
    if expected.len() != got.len() {
        all.push(Difference::new("answers", expected.len(), got.len()));
    }
    all
}

/// Compared as JSON: the order of members does not count.
fn of_bodies(place: &str, expected: &Value, got: &Value) -> Vec<Difference> {
    if expected == got { Vec::new() } else { Difference::between(place, &expected.to_string(), &got.to_string()) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn recording(scenario: Value, recorded: Value) -> Recording {
        let mut whole = json!({"name": "n", "description": "", "connector": {}, "setup": [], "steps": []});
        for (name, value) in scenario.as_object().expect("members") {
            whole[name] = value.clone();
        }
        let whole = json!({"format": 1, "versions": "", "scenario": whole, "recorded": recorded});
        serde_json::from_value(whole).expect("a recording")
    }

    fn told(recording: &Recording, got: Value) -> Vec<String> {
        let got = serde_json::from_value(got).expect("an outcome");
        compare(recording, &got).expect("compared").iter().map(Difference::to_string).collect()
    }

    fn message(key: &str, value: Value) -> Value {
        json!({"partition": 0, "key": key, "value": value, "headers": [["h", null]]})
    }

    #[test]
    fn messages_topics_and_offsets_are_compared() {
        let outcome = |topics: Value, sec: i64| json!({"topics": topics, "status": null, "offsets": [{"sec": sec}]});
        let topics = json!({"a": [message("k", json!("v")), message("k", json!(null))], "b": []});
        let recording = recording(json!({}), outcome(topics.clone(), 5));
        assert!(told(&recording, outcome(topics, 7)).is_empty());
        let got = json!({"a": [message("k", json!("w")), message("k", json!("v")), message("x", json!("v"))], "c": []});
        assert_eq!(
            told(&recording, outcome(got, -1)),
            [
                "topic a: expected 2 messages, got 3 messages",
                "topic a message 0 value: expected v, got w",
                "topic a message 1 value: expected null, got v",
                "topic b: expected 0 messages, got no topic",
                "topic c: expected no topic, got 0 messages",
                "offsets[0].sec: expected 1, got -1",
            ]
        );
    }

    #[test]
    fn topics_without_order_are_compared_as_sets() {
        let outcome = |first: &str, second: &str| {
            let messages = [message(first, json!("v")), message(second, json!("v"))];
            json!({"topics": {"t": messages}, "status": null, "offsets": null})
        };
        let ordered = recording(json!({}), outcome("a", "b"));
        assert_eq!(told(&ordered, outcome("b", "a")).len(), 2);
        let unordered = recording(json!({"unordered_topics": ["t"]}), outcome("a", "b"));
        assert!(told(&unordered, outcome("b", "a")).is_empty());
        assert_eq!(told(&unordered, outcome("b", "c")).len(), 2);
    }

    #[test]
    fn any_refusal_stands_for_a_fault_of_the_recorded_system() {
        let outcome = |status: u16| json!({"answers": [{"status": status, "content_type": "application/json", "body": {"error_code": status}}]});
        let scenario = || json!({"kind": "rest", "steps": [{"call": {"method": "GET", "path": "/x"}}]});
        let fault = recording(scenario(), outcome(500));
        assert!(told(&fault, outcome(400)).is_empty());
        assert_eq!(told(&fault, outcome(200)).len(), 2);
        let refusal = recording(scenario(), outcome(404));
        assert_eq!(
            told(&refusal, outcome(400)),
            ["call 0 GET /x status: expected 404, got 400", "call 0 GET /x body.error_code: expected 404, got 400"]
        );
    }
}

//! Times are masked, their agreement is not: the clocks of one instant must tell the same.

use serde_json::Value;

use super::difference::Difference;
use super::recording::Message;

/// Where `ts_us` is not `ts_ms` with more digits, `ts_ns` not `ts_us`, or `source.wallTime` another time.
pub(super) fn disagreements(place: &str, message: &Message) -> Vec<Difference> {
    let parsed = message.value.as_deref().and_then(|text| serde_json::from_str::<Value>(text).ok());
    let Some(value) = parsed else { return Vec::new() };
    let value = match (value.get("schema"), value.get("payload")) {
        (Some(_), Some(payload)) => payload,
        _ => &value,
    };
    let mut out = Vec::new();
    for (path, level) in [(".source", value.get("source")), ("", Some(value))] {
        let Some(level) = level else { continue };
        let time = |name: &str| level.get(name).and_then(Value::as_i64);
        let mut agree = |name: &str, expected: Option<i64>, got: Option<i64>| {
            if let (Some(expected), Some(got)) = (expected, got)
                && expected != got
            {
                let (expected, got) = (expected.to_string(), got.to_string());
                let (place, path) = (format!("{place} value"), format!("{path}.{name}"));
                out.push(Difference { place, path, expected, got });
            }
        };
        agree("ts_us/1000", time("ts_ms"), time("ts_us").map(|t| t.div_euclid(1000)));
        agree("ts_ns/1000", time("ts_us"), time("ts_ns").map(|t| t.div_euclid(1000)));
        agree("ts_ms", time("wallTime"), time("ts_ms"));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(value: &str) -> Vec<String> {
        let message = Message { partition: 0, key: None, value: Some(value.into()), headers: Vec::new() };
        disagreements("m", &message).iter().map(Difference::to_string).collect()
    }

    #[test]
    fn clocks_of_one_instant_agree() {
        assert!(told(r#"{"ts_ms":1,"ts_us":1999,"ts_ns":1999999,"source":{"ts_ms":5,"wallTime":5}}"#).is_empty());
        assert!(told(r#"{"ts_ms":-1,"ts_us":-999,"source":{"wallTime":null,"ts_ms":5}}"#).is_empty());
        assert_eq!(
            told(r#"{"schema":{},"payload":{"ts_ms":1,"ts_us":2000,"source":{"ts_ms":5,"wallTime":6}}}"#),
            ["m value.source.ts_ms: expected 6, got 5", "m value.ts_us/1000: expected 1, got 2"]
        );
        assert!(told("no JSON").is_empty());
    }
}

//! Hides in the messages of one topic what differs between any two runs.
//!
//! A mask hides a value, never its presence or its type. Numbers that are zero or negative and nulls stay:
//! they mean "not known", which is behaviour. Texts of one class are numbered in the order of their
//! appearance, so that messages with the same one are still told from messages with another.

use std::collections::HashMap;
use std::sync::LazyLock;

use anyhow::{Context, Result};
use regex::Regex;

use super::recording::{Class, ExtraMask, Message, Part};
use super::text::{self, Node, Shape};

const UUID: &str = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}";

static IS_UUID: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(&format!("^{UUID}$")).ok());

/// Paths below the payload, and what is hidden there.
type ByPath = &'static [(&'static str, Class)];

/// Masks for values of messages that have both named fields: change events, the transaction topic, the
/// notification topic.
const BY_SHAPE: &[([&str; 2], ByPath)] = &[
    (
        ["op", "source"],
        &[
            ("ts_ms", Class::Int),
            ("ts_us", Class::Int),
            ("ts_ns", Class::Int),
            ("source.ts_ms", Class::Int),
            ("source.ts_us", Class::Int),
            ("source.ts_ns", Class::Int),
            ("source.ord", Class::Int),
            ("source.wallTime", Class::Int),
            ("source.txnNumber", Class::Int),
            ("source.lsid", Class::Id),
            ("transaction.id", Class::Id),
            // Names the product.
            ("source.version", Class::Text),
        ],
    ),
    (["status", "event_count"], &[("id", Class::Id), ("ts_ms", Class::Int), ("data_collections", Class::Set)]),
    (["aggregate_type", "additional_data"], &[("id", Class::Uuid), ("timestamp", Class::Int)]),
];

/// The header that is a random UUID.
const RUN_ID: &str = "__debezium.context.runId";

/// Masks the messages of one topic, in their order.
pub(super) struct Masker<'a> {
    paths: Vec<(Part, &'a str, Class)>,
    patterns: Vec<(Part, Regex, String)>,
    identities: HashMap<String, usize>,
}

/// A message with nothing in it that differs between runs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Masked {
    pub(super) key: Option<String>,
    pub(super) value: Option<String>,
    pub(super) headers: Vec<(String, Option<String>)>,
}

impl<'a> Masker<'a> {
    pub(super) fn new(topic: &str, extra: &'a [ExtraMask]) -> Result<Self> {
        // Either notation of a double is taken: newer drivers of the recorded system write the plus, too.
        let plus = Regex::new(r"(\d\.\d+E)\+(\d)")?;
        let mut patterns: Vec<_> = [Part::Key, Part::Value].map(|p| (p, plus.clone(), "${1}${2}".to_owned())).into();
        let mut paths = Vec::new();
        for mask in extra.iter().filter(|mask| fits(&mask.topic, topic)) {
            match (&mask.path, mask.class, &mask.regex, &mask.replace) {
                (Some(path), Some(class), None, None) => paths.push((mask.part, path.as_str(), class)),
                (None, None, Some(pattern), Some(new)) => patterns.push((mask.part, Regex::new(pattern)?, groups(new))),
                _ => anyhow::bail!("a mask has a path with a class, or a pattern with a text: {mask:?}"),
            }
        }
        Ok(Self { paths, patterns, identities: HashMap::new() })
    }

    pub(super) fn mask(&mut self, message: &Message) -> Result<Masked> {
        let headers = message.headers.iter().map(|(name, value)| match value {
            Some(text) if name == RUN_ID => (name.clone(), Some(without_uuid(text))),
            value => (name.clone(), value.clone()),
        });
        Ok(Masked {
            headers: headers.collect(),
            key: message.key.as_deref().map(|text| self.text(Part::Key, text)).transpose()?,
            value: message.value.as_deref().map(|text| self.text(Part::Value, text)).transpose()?,
        })
    }

    fn text(&mut self, part: Part, text: &str) -> Result<String> {
        let mut text = match text::read(text) {
            Some(root) => text::exchange(text, self.places(part, text, root.payload())?),
            None => text.to_owned(),
        };
        for (_, pattern, new) in self.patterns.iter().filter(|(p, ..)| *p == part) {
            text = pattern.replace_all(&text, new).into_owned();
        }
        Ok(text)
    }

    fn places(&mut self, part: Part, text: &str, root: &Node) -> Result<Vec<(std::ops::Range<usize>, String)>> {
        let by_shape = BY_SHAPE
            .iter()
            .filter(|(fields, _)| part == Part::Value && fields.iter().all(|name| root.member(name).is_some()))
            .flat_map(|(_, masks)| masks.iter().copied());
        let own = self.paths.iter().filter(|(p, ..)| *p == part).map(|(_, path, class)| (*path, *class));
        let masks: Vec<(&str, Class)> = by_shape.chain(own).collect();
        let mut places = Vec::new();
        for (path, class) in masks {
            let Some(node) = root.at(path) else { continue };
            if let (Class::Set, Shape::Array(items)) = (class, &node.shape) {
                let mut texts: Vec<String> = items.iter().map(|item| item.of(text).to_owned()).collect();
                texts.sort();
                places.extend(items.iter().map(|item| item.span.clone()).zip(texts));
            } else if node.shape == Shape::Scalar {
                let hidden = self.hide(node.of(text), class).with_context(|| path.to_owned())?;
                places.push((node.span.clone(), hidden));
            }
        }
        places.dedup_by(|a, b| a.0 == b.0);
        Ok(places)
    }

    /// What stands for a scalar.
    fn hide(&mut self, raw: &str, class: Class) -> Result<String> {
        let quoted = raw.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        let hidden = match (class, quoted) {
            (Class::Int, None) if is_positive(raw) => "1".to_owned(),
            (Class::Text, Some(_)) => r#""<text>""#.to_owned(),
            (Class::Uuid, Some(inner)) if is_uuid(inner) => r#""<uuid>""#.to_owned(),
            (Class::Id, Some(inner)) => {
                let next = self.identities.len() + 1;
                format!("\"<id-{}>\"", self.identities.entry(inner.to_owned()).or_insert(next))
            }
            _ => raw.to_owned(),
        };
        Ok(hidden)
    }
}

/// A UUID, in quotes or not, is hidden.
fn without_uuid(text: &str) -> String {
    let inner = text.trim_matches('"');
    if is_uuid(inner) { text.replace(inner, "<uuid>") } else { text.to_owned() }
}

fn is_uuid(text: &str) -> bool {
    IS_UUID.as_ref().is_some_and(|pattern| pattern.is_match(text))
}

fn is_positive(number: &str) -> bool {
    !number.starts_with('0') && number.bytes().all(|b| b.is_ascii_digit())
}

/// Whether a name fits a pattern in which `*` stands for any text.
pub(super) fn fits(pattern: &str, name: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut name) = name.strip_prefix(start) else { return false };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let end = parts.pop().unwrap_or_default();
    for part in parts {
        match name.find(part) {
            Some(at) => name = &name[at + part.len()..],
            None => return false,
        }
    }
    name.ends_with(end)
}

/// Groups of a substitution, which recordings write as `\1`.
pub(super) fn groups(new: &str) -> String {
    (1..10).fold(new.replace('$', "$$"), |text, n| text.replace(&format!("\\{n}"), &format!("${{{n}}}")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn message(key: &str, value: &str) -> Message {
        Message { partition: 0, key: Some(key.into()), value: Some(value.into()), headers: Vec::new() }
    }

    fn value(masker: &mut Masker<'_>, text: &str) -> String {
        masker.mask(&message("{}", text)).expect("masked").value.expect("a value")
    }

    #[test]
    fn times_of_events_are_hidden_and_unknown_ones_are_not() {
        let mut masker = Masker::new("t", &[]).expect("a masker");
        let text = r#"{"before":null,"source":{"ts_ms":17,"ord":-1,"wallTime":null,"version":"3"},"op":"r","ts_ms":0}"#;
        let hidden =
            r#"{"before":null,"source":{"ts_ms":1,"ord":-1,"wallTime":null,"version":"<text>"},"op":"r","ts_ms":0}"#;
        assert_eq!(value(&mut masker, text), hidden);
        let wrapped = format!(r#"{{"schema":{{"ts_ms":5}},"payload":{text}}}"#);
        assert_eq!(value(&mut masker, &wrapped), format!(r#"{{"schema":{{"ts_ms":5}},"payload":{hidden}}}"#));
        // No change event.
        assert_eq!(value(&mut masker, r#"{"ts_ms":17}"#), r#"{"ts_ms":17}"#);
    }

    #[test]
    fn identities_are_numbered_and_sets_put_in_order() {
        let mut masker = Masker::new("t", &[]).expect("a masker");
        let text = |id: &str| {
            format!(r#"{{"status":"END","id":"{id}","event_count":1,"data_collections":[{{"b":1}},{{"a":1}}]}}"#)
        };
        let hidden = |n: u8| {
            format!(r#"{{"status":"END","id":"<id-{n}>","event_count":1,"data_collections":[{{"a":1}},{{"b":1}}]}}"#)
        };
        assert_eq!(value(&mut masker, &text("x")), hidden(1));
        assert_eq!(value(&mut masker, &text("y")), hidden(2));
        assert_eq!(value(&mut masker, &text("x")), hidden(1));
    }

    #[test]
    fn a_scenario_adds_masks_for_some_topics() -> Result<()> {
        let masks: Vec<ExtraMask> = serde_json::from_value(json!([
            {"topic": "*.signals", "part": "key", "regex": format!("{UUID}-(open|close)"), "replace": "<uuid>-\\1"},
            {"topic": "*", "part": "value", "path": "n", "class": "int"},
        ]))?;
        let key = r#"{"id":"01a22885-c306-745a-80ce-80cb961a59b4-open"}"#;
        let of = |topic: &str| Masker::new(topic, &masks)?.mask(&message(key, r#"{"n":12}"#));
        let hidden = of("p.signals")?;
        assert_eq!(hidden.key.as_deref(), Some(r#"{"id":"<uuid>-open"}"#));
        assert_eq!(hidden.value.as_deref(), Some(r#"{"n":1}"#));
        assert_eq!(of("p.c")?.key.as_deref(), Some(key));
        Ok(())
    }

    #[test]
    fn the_id_of_a_run_is_hidden_in_either_form() {
        let of = |name: &str, text: &str| {
            let mut message = message("{}", "{}");
            message.headers.push((name.to_owned(), Some(text.to_owned())));
            Masker::new("t", &[]).and_then(|mut m| m.mask(&message)).expect("masked").headers[0].1.clone()
        };
        let id = "01a22885-c306-745a-80ce-80cb961a59b4";
        assert_eq!(of(RUN_ID, id).as_deref(), Some("<uuid>"));
        assert_eq!(of(RUN_ID, &format!("\"{id}\"")).as_deref(), Some("\"<uuid>\""));
        assert_eq!(of(RUN_ID, "x").as_deref(), Some("x"));
        assert_eq!(of("other", id).as_deref(), Some(id));
    }

    #[test]
    fn either_notation_of_a_double_is_taken() {
        let mut masker = Masker::new("t", &[]).expect("a masker");
        assert_eq!(value(&mut masker, r#"{"a":1.0E+10}"#), r#"{"a":1.0E10}"#);
        assert_eq!(value(&mut masker, "no JSON 1.5E+7"), "no JSON 1.5E7");
    }

    #[test]
    fn names_fit_patterns() {
        assert!(fits("*", "x") && fits("*.c", "a.c") && fits("a*", "ab") && fits("a*b*c", "a1b2c") && fits("a", "a"));
        assert!(!fits("*.c", "a.d") && !fits("a", "ab") && !fits("a*b*c", "ac") && !fits("ab*ba", "aba"));
    }
}

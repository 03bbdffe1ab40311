//! Notifications: what a connector tells about its snapshots, as records of a topic or lines of the log
//! (`notification.enabled.channels`).
//!
//! A notification is an ordinary record with the present position, so it takes its place behind what
//! was sent before. It does not decide when something is worth telling.

use std::sync::{Arc, LazyLock};

use thalweg_config::Settings;
use tracing::info;

use crate::envelope::SourceTime;
use crate::position::Position;
use crate::record::{Datum, Headers, Record, Schema, Value};

const INITIAL: &str = "Initial Snapshot";
const INCREMENTAL: &str = "Incremental Snapshot";

fn key_schema() -> Arc<Schema> {
    static SCHEMA: LazyLock<Arc<Schema>> = LazyLock::new(|| {
        let name = "io.debezium.connector.common.NotificationKey";
        Arc::new(Schema::record([("id", Schema::string())]).named(name).versioned(1))
    });
    SCHEMA.clone()
}

fn value_schema() -> Arc<Schema> {
    static SCHEMA: LazyLock<Arc<Schema>> = LazyLock::new(|| {
        let fields = [
            ("id", Schema::string()),
            ("type", Schema::string()),
            ("aggregate_type", Schema::string()),
            ("additional_data", Schema::map(Schema::string(), Schema::string()).optional()),
            ("timestamp", Schema::int64()),
        ];
        Arc::new(Schema::record(fields).named("io.debezium.connector.common.Notification").versioned(1))
    });
    SCHEMA.clone()
}

/// One notification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// Id of the signal that caused it; `None`: a random one.
    id: Option<String>,
    aggregate: &'static str,
    kind: &'static str,
    data: Vec<(&'static str, String)>,
}

impl Notice {
    /// About a snapshot of everything, at the start or by a blocking signal.
    pub fn initial(kind: &'static str) -> Self {
        Self::about(INITIAL, kind)
    }

    /// About an incremental snapshot; `id` is that of its signal.
    pub fn incremental(kind: &'static str, id: Option<String>) -> Self {
        Self { id, aggregate: INCREMENTAL, kind, data: Vec::new() }
    }

    /// About what only one kind of source has.
    pub fn about(aggregate: &'static str, kind: &'static str) -> Self {
        Self { id: None, aggregate, kind, data: Vec::new() }
    }

    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.data.push((name, value.into()));
        self
    }

    pub fn kind(&self) -> &'static str {
        self.kind
    }
}

/// Sends the notices of one connector where its configuration says.
/// The default tells nobody.
#[derive(Debug, Clone, Default)]
pub struct Notifier {
    topic: Option<Arc<str>>,
    log: bool,
    connector: Arc<str>,
}

impl Notifier {
    pub fn of(s: &Settings) -> Self {
        let on = |name: &str| s.list("notification.enabled.channels").iter().any(|c| c.eq_ignore_ascii_case(name));
        Self {
            topic: on("sink").then(|| s.text_or_empty("notification.sink.topic.name").trim().into()),
            log: on("log"),
            connector: s.text_or_empty("topic.prefix").into(),
        }
    }

    /// Appends the record of a notice, if there is a topic for it.
    pub fn tell(&self, notice: Notice, position: &Position, out: &mut Vec<Record>) {
        if self.topic.is_none() && !self.log {
            return;
        }
        let now = SourceTime::now().ms;
        let id = notice.id.unwrap_or_else(|| uuid::Uuid::new_v4().to_string());
        let data = as_hash_map(notice.data, ("connector_name", self.connector.to_string()));
        if self.log {
            let pairs: Vec<_> = data.iter().map(|(name, value)| format!("{name}={value}")).collect();
            let (aggregate, kind, pairs) = (notice.aggregate, notice.kind, pairs.join(", "));
            info!(
                "[Notification Service] {{id='{id}', aggregateType='{aggregate}', type='{kind}', \
                 additionalData={{{pairs}}}, timestamp={now}}}"
            );
        }
        let Some(topic) = &self.topic else { return };
        let data = data.into_iter().map(|(name, value)| (Value::text(name), Value::text(value))).collect();
        out.push(Record {
            topic: topic.clone(),
            partition: None,
            key: Datum::new(key_schema(), Value::Struct(vec![Value::text(id.clone())])),
            value: Datum::new(
                value_schema(),
                Value::Struct(vec![
                    Value::text(id),
                    Value::text(notice.kind),
                    Value::text(notice.aggregate),
                    Value::Map(data),
                    Value::Int64(now),
                ]),
            ),
            headers: Headers::default(),
            timestamp: None,
            position: position.clone(),
        });
    }
}

/// In the order of a Java `HashMap` that was made as a copy of `data` and then got one more entry:
/// consumers see that order in the JSON.
fn as_hash_map(data: Vec<(&'static str, String)>, more: (&'static str, String)) -> Vec<(&'static str, String)> {
    let mut size = (data.len() * 4 / 3 + 1).next_power_of_two();
    if data.is_empty() {
        size = 16;
    }
    let mut all = data;
    all.push(more);
    while all.len() * 4 > size * 3 {
        size *= 2;
    }
    let bucket = |name: &str| {
        let hash = name.bytes().fold(0_u32, |hash, b| hash.wrapping_mul(31).wrapping_add(u32::from(b)));
        (hash ^ (hash >> 16)) as usize & (size - 1)
    };
    all.sort_by_key(|(name, _)| bucket(name));
    all
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;
    use crate::convert::{Converter, JsonConverter};

    fn told(notice: Notice) -> (String, String) {
        let notifier = Notifier { topic: Some("n".into()), log: true, connector: "p".into() };
        let mut out = Vec::new();
        notifier.tell(notice, &Position::default(), &mut out);
        let json = |datum: &Datum| {
            let mut text = Vec::new();
            JsonConverter::with_schemas().convert_datum(&"t".into(), datum, &mut text).unwrap();
            String::from_utf8(text).unwrap()
        };
        (json(&out[0].key), json(&out[0].value))
    }

    /// The members of `additional_data`, in order.
    fn members(notice: Notice) -> Vec<String> {
        let (_, value) = told(notice);
        let (_, data) = value.rsplit_once("additional_data\":{").unwrap();
        let data = data.split_once('}').unwrap().0;
        data.split(',').map(|pair| pair.split_once(':').unwrap().0.trim_matches('"').to_owned()).collect()
    }

    #[test]
    fn members_come_in_the_order_that_was_recorded() {
        assert_eq!(members(Notice::initial("STARTED")), ["connector_name"]);
        let running = Notice::initial("IN_PROGRESS").with("current_collection_in_progress", "d.c");
        assert_eq!(members(running), ["current_collection_in_progress", "connector_name"]);
        let ended =
            Notice::initial("TABLE_SCAN_COMPLETED").with("scanned_collection", "d.c").with("status", "SUCCEEDED");
        assert_eq!(members(ended), ["connector_name", "scanned_collection", "status"]);
    }

    #[test]
    fn key_and_value() {
        let (key, value) = told(Notice::incremental("STARTED", Some("s1".into())).with("data_collections", "a.b"));
        assert!(key.ends_with(r#""payload":{"id":"s1"}}"#), "{key}");
        let expected = r#"{"id":"s1","type":"STARTED","aggregate_type":"Incremental Snapshot","additional_data":{"connector_name":"p","data_collections":"a.b"},"timestamp":"#;
        assert!(value.contains(expected), "{value}");
        let (key, _) = told(Notice::initial("STARTED"));
        let id = key.rsplit('"').nth(1).unwrap();
        assert_eq!(id.len(), "0d41a62a-bc3a-48ef-b207-3249898fd617".len());
    }

    #[test]
    fn nothing_without_channels() {
        let mut out = Vec::new();
        let silent = Notifier { topic: None, log: false, connector: "p".into() };
        silent.tell(Notice::initial("STARTED"), &Position::default(), &mut out);
        assert!(out.is_empty());
    }
}

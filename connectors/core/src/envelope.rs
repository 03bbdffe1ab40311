//! Pieces of Debezium's event structure that every connector shares: the common part of the source
//! block, the transaction block and topic, JSON text, context headers.
//!
//! Schemas without parameters of their own exist once per process, so converters find their cached
//! text. It does not build an envelope: its fields differ between connectors.

use std::sync::{Arc, LazyLock};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::record::{Header, Headers, Schema, Text, Value};

/// Text of a JSON document: optional string `io.debezium.data.Json`.
pub fn json_text() -> Arc<Schema> {
    static SCHEMA: LazyLock<Arc<Schema>> =
        LazyLock::new(|| Arc::new(Schema::string().optional().named("io.debezium.data.Json").versioned(1)));
    SCHEMA.clone()
}

/// Field `transaction` of an envelope: optional struct `event.block`.
pub fn transaction_block() -> Arc<Schema> {
    static SCHEMA: LazyLock<Arc<Schema>> = LazyLock::new(|| {
        let fields =
            [("id", Schema::string()), ("total_order", Schema::int64()), ("data_collection_order", Schema::int64())];
        Arc::new(Schema::record(fields).named("event.block").versioned(1).optional())
    });
    SCHEMA.clone()
}

/// Key of the transaction topic: `{id}`.
pub fn transaction_key() -> Arc<Schema> {
    static SCHEMA: LazyLock<Arc<Schema>> = LazyLock::new(|| {
        let name = "io.debezium.connector.common.TransactionMetadataKey";
        Arc::new(Schema::record([("id", Schema::string())]).named(name).versioned(1))
    });
    SCHEMA.clone()
}

/// Value of the transaction topic: `{status, id, event_count, data_collections, ts_ms}`.
pub fn transaction_value() -> Arc<Schema> {
    static SCHEMA: LazyLock<Arc<Schema>> = LazyLock::new(|| {
        let collection = Schema::record([("data_collection", Schema::string()), ("event_count", Schema::int64())])
            .named("event.collection")
            .versioned(1)
            .optional();
        let fields = [
            ("status", Schema::string()),
            ("id", Schema::string()),
            ("event_count", Schema::int64().optional()),
            ("data_collections", Schema::array(collection).optional()),
            ("ts_ms", Schema::int64()),
        ];
        let name = "io.debezium.connector.common.TransactionMetadataValue";
        Arc::new(Schema::record(fields).named(name).versioned(1))
    });
    SCHEMA.clone()
}

/// Where in a snapshot a record stands; the value of `source.snapshot`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SnapshotMarker {
    /// First record of the whole snapshot.
    First,
    FirstInDataCollection,
    /// Between first and last.
    True,
    LastInDataCollection,
    /// Last record of the whole snapshot; wins over all others.
    Last,
    Incremental,
    /// Streaming.
    False,
}

impl SnapshotMarker {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::FirstInDataCollection => "first_in_data_collection",
            Self::True => "true",
            Self::LastInDataCollection => "last_in_data_collection",
            Self::Last => "last",
            Self::Incremental => "incremental",
            Self::False => "false",
        }
    }
    /// Streaming leaves the field null: converters show the schema's default `false`, transforms that
    /// copy the field copy a null.
    pub fn value(self) -> Value {
        if self == Self::False { Value::Null } else { Value::text(self.as_str()) }
    }
    /// The marker of a record that is in several of these places at once.
    pub fn at(first: bool, first_of_collection: bool, last_of_collection: bool, last: bool) -> Self {
        if last {
            Self::Last
        } else if first {
            Self::First
        } else if last_of_collection {
            Self::LastInDataCollection
        } else if first_of_collection {
            Self::FirstInDataCollection
        } else {
            Self::True
        }
    }
}

/// Schema of `source.snapshot`.
pub fn snapshot_marker() -> Arc<Schema> {
    static SCHEMA: LazyLock<Arc<Schema>> = LazyLock::new(|| {
        let allowed = "true,first,first_in_data_collection,last_in_data_collection,last,false,incremental";
        let schema = Schema::string().optional().named("io.debezium.data.Enum").versioned(1);
        Arc::new(schema.parameter("allowed", allowed).defaulting(Value::text("false")))
    });
    SCHEMA.clone()
}

/// Schema of a source block: the common fields, then the connector's own. `name` is
/// `io.debezium.connector.<connector>.Source`.
pub fn source_schema<S: Into<Arc<Schema>>>(name: &str, own: impl IntoIterator<Item = (&'static str, S)>) -> Schema {
    let text = Arc::new(Schema::string());
    let instant = Arc::new(Schema::int64().optional());
    let common = [
        ("version", text.clone()),
        ("connector", text.clone()),
        ("name", text.clone()),
        ("ts_ms", Arc::new(Schema::int64())),
        ("snapshot", snapshot_marker()),
        ("db", text),
        ("sequence", Arc::new(Schema::string().optional())),
        ("ts_us", instant.clone()),
        ("ts_ns", instant),
    ];
    let own = own.into_iter().map(|(name, schema)| (name, schema.into()));
    Schema::record(common.into_iter().chain(own)).named(name).versioned(1)
}

/// One instant since the epoch in the three units of the source block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourceTime {
    pub ms: i64,
    pub us: i64,
    pub ns: i64,
}

impl SourceTime {
    /// Micro- and nanoseconds stop at the ends of their range (years 1677 to 2262 fit).
    pub const fn from_millis(ms: i64) -> Self {
        Self { ms, us: ms.saturating_mul(1_000), ns: ms.saturating_mul(1_000_000) }
    }
    pub const fn from_nanos(ns: i64) -> Self {
        Self { ms: ns.div_euclid(1_000_000), us: ns.div_euclid(1_000), ns }
    }
    pub fn now() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self::from_nanos(i64::try_from(since.as_nanos()).unwrap_or(i64::MAX))
    }
}

/// Values of the common source fields.
#[derive(Debug, Clone)]
pub struct SourceCommon {
    pub version: Text,
    /// Short name, e.g. `mongodb`.
    pub connector: &'static str,
    /// `topic.prefix`.
    pub name: Text,
    pub time: SourceTime,
    pub snapshot: SnapshotMarker,
    pub db: Text,
    /// JSON array text where the connector defines one.
    pub sequence: Option<Text>,
}

impl SourceCommon {
    /// In schema order, with room for `own` further values.
    pub fn values(self, own: usize) -> Vec<Value> {
        let mut values = Vec::with_capacity(9 + own);
        values.extend([
            Value::String(self.version),
            Value::text(self.connector),
            Value::String(self.name),
            Value::Int64(self.time.ms),
            self.snapshot.value(),
            Value::String(self.db),
            Value::or_null(self.sequence, Value::String),
            Value::Int64(self.time.us),
            Value::Int64(self.time.ns),
        ]);
        values
    }
}

/// Headers that say which run of which task made a record (`extended.headers.enabled`). One list per
/// task: share it between its records, tombstones included.
pub fn context_headers(topic_prefix: &str, task: u32, connector: &str, run_id: &str) -> Headers {
    let schema = Arc::new(Schema::string());
    let header = |name: &str, value: String| Header {
        name: format!("__debezium.context.{name}").into(),
        schema: Some(schema.clone()),
        value: Value::text(value),
    };
    Arc::new(vec![
        header("connectorLogicalName", topic_prefix.to_owned()),
        header("taskId", task.to_string()),
        header("connectorName", connector.to_owned()),
        header("runId", run_id.to_owned()),
    ])
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use crate::convert::{Converter, HeaderEncoder, JsonConverter, SimpleHeaderConverter};
    use crate::record::Datum;

    #[test]
    fn markers_and_their_precedence() {
        use SnapshotMarker as M;
        assert_eq!(M::at(true, true, true, true), M::Last, "a snapshot of one row");
        assert_eq!(M::at(true, true, true, false), M::First);
        assert_eq!(M::at(false, true, true, false), M::LastInDataCollection);
        assert_eq!(M::at(false, true, false, false), M::FirstInDataCollection);
        assert_eq!(M::at(false, false, false, false), M::True);
        assert_eq!(M::False.value(), Value::Null);
        let schema = snapshot_marker();
        let allowed: Vec<_> = schema.parameters[0].1.split(',').collect();
        for marker in
            [M::First, M::FirstInDataCollection, M::True, M::LastInDataCollection, M::Last, M::Incremental, M::False]
        {
            assert!(allowed.contains(&marker.as_str()));
        }
    }

    #[test]
    fn instants() {
        assert_eq!(SourceTime::from_millis(5), SourceTime { ms: 5, us: 5_000, ns: 5_000_000 });
        assert_eq!(SourceTime::from_nanos(1_795_976_055_741_171_778).us, 1_795_976_055_741_171);
        assert_eq!(SourceTime::from_nanos(-1), SourceTime { ms: -1, us: -1, ns: -1 });
        assert_eq!(SourceTime::from_millis(i64::MAX).ns, i64::MAX);
    }

    #[test]
    fn transaction_topic_schemas() {
        let mut converter = JsonConverter::with_schemas();
        let mut out = Vec::new();
        let key = Datum::new(transaction_key(), Value::Struct(vec![Value::text("7")]));
        converter.convert_datum(&"t".into(), &key, &mut out).unwrap();
        assert_eq!(
            std::str::from_utf8(&out).unwrap(),
            r#"{"schema":{"type":"struct","fields":[{"type":"string","optional":false,"field":"id"}],"optional":false,"name":"io.debezium.connector.common.TransactionMetadataKey","version":1},"payload":{"id":"7"}}"#
        );
        out.clear();
        let collection = Value::Struct(vec![Value::text("db.c"), Value::Int64(2)]);
        let end = Value::Struct(vec![
            Value::text("END"),
            Value::text("7"),
            Value::Int64(2),
            Value::Array(vec![collection]),
            Value::Int64(1_000),
        ]);
        converter.convert_datum(&"t".into(), &Datum::new(transaction_value(), end), &mut out).unwrap();
        assert_eq!(
            std::str::from_utf8(&out).unwrap(),
            r#"{"schema":{"type":"struct","fields":[{"type":"string","optional":false,"field":"status"},{"type":"string","optional":false,"field":"id"},{"type":"int64","optional":true,"field":"event_count"},{"type":"array","items":{"type":"struct","fields":[{"type":"string","optional":false,"field":"data_collection"},{"type":"int64","optional":false,"field":"event_count"}],"optional":true,"name":"event.collection","version":1},"optional":true,"field":"data_collections"},{"type":"int64","optional":false,"field":"ts_ms"}],"optional":false,"name":"io.debezium.connector.common.TransactionMetadataValue","version":1},"payload":{"status":"END","id":"7","event_count":2,"data_collections":[{"data_collection":"db.c","event_count":2}],"ts_ms":1000}}"#
        );
    }

    #[test]
    fn context_headers_as_recorded() {
        let headers = context_headers("shop", 0, "mongodb", "01a22885-c306-745a-80ce-80cb961a59b4");
        let mut encoder = HeaderEncoder::new(Box::new(SimpleHeaderConverter));
        let encoded = encoder.encode(&"t".into(), &headers).unwrap();
        let texts: Vec<_> =
            encoded.iter().map(|(n, v)| (&**n, String::from_utf8(v.clone().unwrap()).unwrap())).collect();
        assert_eq!(
            texts,
            [
                ("__debezium.context.connectorLogicalName", "shop".to_owned()),
                ("__debezium.context.taskId", "0".to_owned()),
                ("__debezium.context.connectorName", "mongodb".to_owned()),
                ("__debezium.context.runId", "01a22885-c306-745a-80ce-80cb961a59b4".to_owned()),
            ]
        );
    }
}

//! Shared by the tests of transforms.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Arc;

use bytes::Bytes;
use thalweg_config::Properties;

use super::{Chain, ChainError, Fate, TransformClasses};
use crate::convert::{Converter, JsonConverter};
use crate::error::{ErrorKind, Phase};
use crate::position::Position;
use crate::record::{Datum, Headers, Record, RenderText, Schema, Text, TextForm, Value};

/// A chain of one transform of this class, called `t`.
pub(super) fn chain(class: &str, options: &[(&str, &str)]) -> Chain {
    let mut config = Properties::from([("transforms", "t"), ("transforms.t.type", class)]);
    for (name, value) in options {
        config.set(format!("transforms.t.{name}"), *value);
    }
    Chain::from_config(&config, &TransformClasses::default()).unwrap()
}

/// What of the options of such a chain is wrong.
pub(super) fn faults(class: &str, options: &[(&str, &str)]) -> Vec<String> {
    let mut config = Properties::from([("transforms", "t"), ("transforms.t.type", class)]);
    for (name, value) in options {
        config.set(format!("transforms.t.{name}"), *value);
    }
    super::validate(&config, &TransformClasses::default()).messages()
}

pub(super) fn record(value: Datum) -> Record {
    Record {
        topic: "top".into(),
        partition: None,
        key: Datum::none(),
        value,
        headers: Headers::default(),
        timestamp: None,
        position: Position::new(Bytes::from_static(b"p")),
    }
}

/// A heartbeat: a key and a value of its own schemas, and no time.
pub(super) fn heartbeat() -> Record {
    let key = Arc::new(Schema::record([("serverName", Schema::string())]));
    let value = Arc::new(Schema::record([("ts_ms", Schema::int64())]));
    let mut beat = record(Datum::new(value, Value::Struct(vec![Value::Int64(5)])));
    beat.key = Datum::new(key, Value::Struct(vec![Value::text("s")]));
    beat
}

/// One record through the chain; `None` if it was dropped.
pub(super) fn run(chain: &mut Chain, mut record: Record) -> Result<Option<Record>, ChainError> {
    let before = record.position.clone();
    let fate = chain.apply(&mut record);
    assert_eq!(record.position, before);
    Ok((fate? == Fate::Keep).then_some(record))
}

/// The value of such a record afterwards.
pub(super) fn value(chain: &mut Chain, value: Datum) -> Datum {
    run(chain, record(value)).unwrap().unwrap().value
}

/// Why a record with this value is refused; the error is one of the value.
pub(super) fn refusal(chain: &mut Chain, value: Datum) -> String {
    refused(chain, record(value))
}

pub(super) fn refused(chain: &mut Chain, record: Record) -> String {
    let failed = run(chain, record).unwrap_err();
    assert_eq!((failed.error.kind, failed.error.phase), (ErrorKind::ValueInvalid, Phase::Convert));
    assert!(failed.error.message.contains(failed.class), "{}", failed.error.message);
    failed.error.message
}

/// A value as the JSON converter writes it, without its schema.
pub(super) fn json(datum: &Datum) -> String {
    let mut converter = JsonConverter { schemas: false, default_for_null: false, ..JsonConverter::with_schemas() };
    let mut out = Vec::new();
    converter.convert_datum(&"t".into(), datum, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// A map without a schema.
pub(super) fn free(pairs: Vec<(&str, Value)>) -> Datum {
    Datum { schema: None, value: map(pairs) }
}

pub(super) fn map(pairs: Vec<(&str, Value)>) -> Value {
    Value::Map(pairs.into_iter().map(|(name, value)| (Value::text(name.to_owned()), value)).collect())
}

/// A struct with its schema.
pub(super) fn held(fields: Vec<(&str, Schema, Value)>) -> Datum {
    let (schema, values): (Vec<_>, Vec<_>) =
        fields.into_iter().map(|(name, schema, value)| ((name, schema), value)).unzip();
    Datum::new(Arc::new(Schema::record(schema).named("row").versioned(2)), Value::Struct(values))
}

/// Fails the test when somebody wants to see its characters.
#[derive(Debug)]
pub(super) struct Untouched;

impl RenderText for Untouched {
    fn render(&self, _: TextForm, _: &mut Vec<u8>) {
        panic!("rendered without need");
    }
}

pub(super) fn untouched() -> Value {
    Value::String(Text::Lazy(Arc::new(Untouched)))
}

/// A change of the table `s.t` with the columns `id` and `name`, from `old` to `new`.
pub(super) fn change(op: char) -> Record {
    let row = Arc::new(
        Schema::record([("id", Schema::int32()), ("name", Schema::string().optional())]).named("s.t.Value").optional(),
    );
    let source = Schema::record([
        ("ts_ms", Schema::int64()),
        ("snapshot", Schema::string().optional().defaulting(Value::text("false"))),
        ("table", Schema::string()),
    ]);
    let transaction = Schema::record([("id", Schema::string())]).optional();
    let envelope = Schema::record([
        ("before", row.clone()),
        ("after", row),
        ("source", Arc::new(source.named("source"))),
        ("transaction", Arc::new(transaction)),
        ("op", Arc::new(Schema::string())),
        ("ts_ms", Arc::new(Schema::int64().optional())),
    ]);
    let values = |name: &'static str| Value::Struct(vec![Value::Int32(1), Value::text(name)]);
    let before = if matches!(op, 'u' | 'd') { values("old") } else { Value::Null };
    let after = if matches!(op, 'd' | 't') { Value::Null } else { values("new") };
    let source = Value::Struct(vec![Value::Int64(4), Value::Null, Value::text("t")]);
    let values = vec![before, after, source, Value::Null, Value::text(op.to_string()), Value::Int64(5)];
    let mut change = record(Datum::new(Arc::new(envelope.named("s.t.Envelope").versioned(2)), Value::Struct(values)));
    let key = Schema::record([("id", Schema::int32())]).named("s.t.Key");
    change.key = Datum::new(Arc::new(key), Value::Struct(vec![Value::Int32(1)]));
    change
}

/// Another value for one field of a struct.
pub(super) fn set(datum: &mut Datum, field: &str, value: Value) {
    let at = datum.schema.as_ref().unwrap().field_index(field).unwrap();
    let Value::Struct(values) = &mut datum.value else { panic!() };
    values[at] = value;
}

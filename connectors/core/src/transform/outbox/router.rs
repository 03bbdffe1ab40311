//! The message of an outbox row.
//!
//! The payload becomes the value, alone or with further fields beside it; the id becomes a header, the
//! topic follows from a field. Only inserts (and the rows of a snapshot) are messages.

use std::sync::Arc;

use thalweg_config::Settings;

use super::names::{FIELD_NAMES, OutboxNames, ROUTE_BY, ROUTE_REGEX, ROUTE_REPLACEMENT, TOMBSTONE};
use super::payload::Payload;
use super::placement::{Place, Placement};
use crate::error::Result;
use crate::naming::NameAdjustment;
use crate::record::{Datum, Field, Header, Record, Schema, Type, Value};
use crate::transform::cache::{SchemaCache, SchemaPool};
use crate::transform::change_event::{is_change_event, operation};
use crate::transform::fault::{invalid, missing};
use crate::transform::java_regex::{JavaRegex, Replacement};
use crate::transform::topics::TopicCache;
use crate::transform::{Fate, broken, object, schemas};

const PURPOSE: &str = "reading an outbox event";
/// Used for the key where no field is configured for it.
const FALLBACK_KEY: &str = "aggregateid";
/// Schemas of values with an envelope that are kept.
const KEPT: usize = 256;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InvalidOperation {
    Warn,
    Error,
    Fatal,
}

pub struct OutboxRouter {
    id: Box<str>,
    key: Option<Box<str>>,
    falls_back: bool,
    payload: Box<str>,
    timestamp: Option<Box<str>>,
    schema_version: Option<Box<str>>,
    placements: Vec<Placement>,
    ignores_missing: bool,
    /// Whether the value is a struct around the payload.
    envelope: bool,
    route_by: Box<str>,
    regex: JavaRegex,
    replacement: Replacement,
    tombstones: bool,
    invalid_operation: InvalidOperation,
    expand: Option<Payload>,
    topics: TopicCache<Arc<str>>,
    rows: SchemaCache<Arc<Row>>,
    /// Last used first.
    envelopes: Vec<Envelope>,
    id_header: Arc<str>,
    unexpected: Repeated,
    unexpanded: Repeated,
}

/// Places of the fields in rows of one schema.
struct Row {
    id: usize,
    key: Option<usize>,
    fallback: Option<usize>,
    payload: usize,
    timestamp: Option<usize>,
    schema_version: Option<usize>,
    route_by: usize,
    /// In the order of the placements.
    placed: Vec<Option<usize>>,
}

struct Envelope {
    payload: Arc<Schema>,
    row: Arc<Schema>,
    routed: Arc<str>,
    version: Option<i32>,
    schema: Arc<Schema>,
}

/// How often something happened: said at the first time and whenever the count has doubled.
#[derive(Default)]
struct Repeated(u64);

impl Repeated {
    fn worth_a_word(&mut self) -> Option<u64> {
        self.0 += 1;
        self.0.is_power_of_two().then_some(self.0)
    }
}

fn set(settings: &Settings, name: &str) -> Option<Box<str>> {
    settings.text(name).map(str::trim).filter(|text| !text.is_empty()).map(Into::into)
}

impl OutboxRouter {
    /// From settings of a table made by [`options`](super::options) with the same names.
    pub fn from_settings(settings: &Settings, names: &OutboxNames) -> Result<Self> {
        let placements = settings.list(names.placement).iter().map(|text| Placement::parse(text));
        let placements = placements.collect::<Result<Vec<_>, _>>().map_err(broken)?;
        let regex = JavaRegex::new(settings.text_or_empty(ROUTE_REGEX)).map_err(broken)?;
        let replacement = Replacement::new(settings.text_or_empty(ROUTE_REPLACEMENT), &regex).map_err(broken)?;
        Ok(Self {
            id: settings.text_or_empty(names.id).into(),
            key: set(settings, names.key),
            falls_back: names.key_default.is_none(),
            payload: settings.text_or_empty(names.payload).into(),
            timestamp: set(settings, names.timestamp),
            schema_version: set(settings, names.schema_version),
            ignores_missing: settings.text_or_empty(names.missing) == "ignore",
            envelope: placements.iter().any(|p| p.place == Place::Envelope),
            placements,
            route_by: settings.text_or_empty(ROUTE_BY).into(),
            regex,
            replacement,
            tombstones: settings.bool(TOMBSTONE),
            invalid_operation: match settings.text_or_empty(names.invalid_operation) {
                "error" => InvalidOperation::Error,
                "fatal" => InvalidOperation::Fatal,
                _ => InvalidOperation::Warn,
            },
            expand: settings.bool(names.expand).then(|| Payload {
                nulls_as_bytes: settings.text_or_empty(names.null_fields) == "optional_bytes",
                names: NameAdjustment::from_option(settings.text_or_empty(FIELD_NAMES)),
                pool: SchemaPool::default(),
            }),
            topics: TopicCache::default(),
            rows: SchemaCache::default(),
            envelopes: Vec::new(),
            id_header: "id".into(),
            unexpected: Repeated::default(),
            unexpanded: Repeated::default(),
        })
    }

    /// What becomes of a record that is no insert into the outbox; `None` if it is one.
    pub fn fate_of_others(&mut self, record: &Record) -> Result<Option<Fate>> {
        if record.value.value.is_null() {
            return Ok(Some(Fate::Drop));
        }
        let (Some(schema), Value::Struct(values), true) =
            (&record.value.schema, &record.value.value, is_change_event(&record.value))
        else {
            return Ok(Some(Fate::Keep));
        };
        match operation(schema, values)? {
            'd' | 't' => Ok(Some(Fate::Drop)),
            'u' => {
                let text = "an update in the outbox, which may only have inserts, is left out";
                match (self.invalid_operation, self.unexpected.worth_a_word()) {
                    (InvalidOperation::Fatal, _) => {
                        return Err(invalid("an update in the outbox, which may only have inserts"));
                    }
                    (InvalidOperation::Warn, Some(times)) => tracing::warn!(topic = %record.topic, times, "{text}"),
                    (InvalidOperation::Error, Some(times)) => tracing::error!(topic = %record.topic, times, "{text}"),
                    (_, None) => {}
                }
                Ok(Some(Fate::Drop))
            }
            _ => Ok(None),
        }
    }

    /// Makes the record the message of its row. `processed` is the time of the change event.
    pub fn route(&mut self, record: &mut Record, row: Datum, processed: Option<i64>) -> Result<()> {
        let Datum { schema: Some(schema), value: mut row } = row else {
            return Err(invalid("the change event has no row in its field after"));
        };
        let values = object::fields(&schema, &mut row, PURPOSE)?;
        let places = self.places(&schema)?;
        let field = |at: usize| schema.fields()[at].schema.clone();

        let routed = match values.get(places.route_by) {
            Some(Value::String(text)) => text.clone(),
            _ => {
                return Err(invalid(format!(
                    "the topic is to be made of the field {}, which is not a text",
                    self.route_by
                )));
            }
        };
        let (regex, replacement) = (&self.regex, &self.replacement);
        let routed = routed.as_str();
        let topic = self
            .topics
            .get(&routed, |routed| Ok(regex.replaced(routed, replacement)?.map_or_else(|| routed.into(), Arc::from)))?;
        if topic.is_empty() {
            return Err(invalid(format!("the field {} gives no name for a topic", self.route_by)));
        }
        let timestamp = match places.timestamp {
            Some(at) => millis(&field(at), &values[at])?.or(processed),
            None => processed,
        };
        let version = places.schema_version.map(|at| version(&values[at])).transpose()?.flatten();

        let mut headers = Vec::with_capacity(record.headers.len() + 1 + self.placements.len());
        headers.extend(record.headers.iter().cloned());
        let id = values[places.id].clone();
        headers.push(Header { name: self.id_header.clone(), schema: Some(field(places.id)), value: id });
        let mut partition = None;
        let mut beside = Vec::new();
        for (placement, at) in self.placements.iter().zip(&places.placed) {
            let Some(at) = *at else { continue };
            match (placement.place, &values[at]) {
                (Place::Header, value) => {
                    let (name, schema) = (placement.name.clone(), Some(field(at)));
                    headers.push(Header { name, schema, value: value.clone() });
                }
                (Place::Envelope, value) => {
                    beside.push((Field { name: placement.name.clone(), schema: field(at) }, value.clone()));
                }
                (Place::Partition, Value::Int32(n)) if *n >= 0 => partition = Some(*n),
                (Place::Partition, Value::Null) => {}
                (Place::Partition, _) => {
                    return Err(invalid(format!("the field {} is no number of a partition", placement.field)));
                }
            }
        }
        let (key_schema, key) = match (places.key, places.fallback) {
            (Some(at), Some(other)) if values[at].is_null() => (field(other), values[other].clone()),
            (Some(at), _) | (None, Some(at)) => (field(at), values[at].clone()),
            (None, None) => (schemas::string(false), Value::Null),
        };
        let payload = Datum::new(field(places.payload), std::mem::take(&mut values[places.payload]));
        let empty = match &payload.value {
            Value::Null => true,
            Value::String(text) => text.as_str().trim().is_empty(),
            _ => false,
        };
        record.value = if empty && self.tombstones {
            Datum::none()
        } else {
            let payload = self.expanded(payload, &record.topic);
            if self.envelope { self.enclosed(payload, beside, &schema, &routed, version)? } else { payload }
        };
        // A null of a required schema cannot be converted, and means that there is no key.
        record.key = if key.is_null() && !key_schema.optional { Datum::none() } else { Datum::new(key_schema, key) };
        record.headers = Arc::new(headers);
        (record.topic, record.partition, record.timestamp) = (topic, partition, timestamp);
        Ok(())
    }

    fn places(&mut self, schema: &Arc<Schema>) -> Result<Arc<Row>> {
        if let Some(known) = self.rows.known(schema) {
            return Ok(known);
        }
        let required = |what: &str, name: &str| {
            schema.field_index(name).ok_or_else(|| invalid(format!("Unable to find {what} field {name} in event")))
        };
        let optional =
            |what: &str, name: &Option<Box<str>>| name.as_deref().map(|name| required(what, name)).transpose();
        let placed = self.placements.iter().map(|p| match schema.field_index(&p.field) {
            None if !self.ignores_missing => Err(missing(&p.field)),
            at => Ok(at),
        });
        let row = Row {
            payload: required("payload", &self.payload)?,
            id: required("event-id", &self.id)?,
            key: optional("event-key", &self.key)?,
            fallback: if self.falls_back { schema.field_index(FALLBACK_KEY) } else { None },
            timestamp: optional("timestamp", &self.timestamp)?,
            schema_version: optional("schema-version", &self.schema_version)?,
            route_by: required("route-by", &self.route_by)?,
            placed: placed.collect::<Result<_>>()?,
        };
        self.rows.get(schema, |_| Ok(Arc::new(row)))
    }

    fn expanded(&mut self, payload: Datum, topic: &Arc<str>) -> Datum {
        let Some(expand) = &mut self.expand else { return payload };
        let expanded = match &payload.value {
            Value::Null => return payload,
            Value::String(text) => expand.expand(&text.as_str(), &self.payload),
            Value::Struct(_) | Value::Array(_) | Value::Map(_) => return payload,
            _ => Err("the payload is not a text".to_owned()),
        };
        match expanded {
            Ok(expanded) => expanded,
            Err(why) => {
                if let Some(times) = self.unexpanded.worth_a_word() {
                    tracing::warn!(%topic, times, why, "the payload of an outbox event stays as it is");
                }
                payload
            }
        }
    }

    /// A struct of the payload and the fields beside it.
    fn enclosed(
        &mut self,
        payload: Datum,
        beside: Vec<(Field, Value)>,
        row: &Arc<Schema>,
        routed: &str,
        version: Option<i32>,
    ) -> Result<Datum> {
        let payload_schema = payload.schema.unwrap_or_else(|| schemas::string(true));
        let is_it = |e: &Envelope| {
            Arc::ptr_eq(&e.payload, &payload_schema)
                && Arc::ptr_eq(&e.row, row)
                && *e.routed == *routed
                && e.version == version
        };
        let at = match self.envelopes.iter().position(is_it) {
            Some(at) => at,
            None => {
                let payload = Field { name: "payload".into(), schema: payload_schema.clone() };
                let fields: Vec<Field> =
                    std::iter::once(payload).chain(beside.iter().map(|(field, _)| field.clone())).collect();
                object::distinct(fields.iter().map(|f| &*f.name))?;
                let mut schema = Schema::new(Type::Struct(fields)).named(envelope_name(row.name.as_deref(), routed));
                schema.version = version;
                self.envelopes.truncate(KEPT - 1);
                let (row, routed) = (row.clone(), routed.into());
                self.envelopes.push(Envelope {
                    payload: payload_schema,
                    row,
                    routed,
                    version,
                    schema: Arc::new(schema),
                });
                self.envelopes.len() - 1
            }
        };
        self.envelopes[..=at].rotate_right(1);
        let values = std::iter::once(payload.value).chain(beside.into_iter().map(|(_, value)| value)).collect();
        Ok(Datum::new(self.envelopes[0].schema.clone(), Value::Struct(values)))
    }
}

/// The schema's name of the row with the routed value before its last part.
fn envelope_name(row: Option<&str>, routed: &str) -> String {
    match row.map(|name| name.rsplit_once('.').unwrap_or(("", name))) {
        None => routed.to_owned(),
        Some(("", last)) => format!("{routed}.{last}"),
        Some((first, last)) => format!("{first}.{routed}.{last}"),
    }
}

fn millis(schema: &Schema, value: &Value) -> Result<Option<i64>> {
    let number = match value {
        Value::Null => return Ok(None),
        Value::Int64(number) => *number,
        _ => return Err(invalid("Unsupported field type for event timestamp: it is not an INT64")),
    };
    match schema.name.as_deref() {
        Some("io.debezium.time.Timestamp" | "org.apache.kafka.connect.data.Timestamp") => Ok(Some(number)),
        Some("io.debezium.time.MicroTimestamp") => Ok(Some(number / 1_000)),
        Some("io.debezium.time.NanoTimestamp") => Ok(Some(number / 1_000_000)),
        Some(name) => Err(invalid(format!("Unsupported field type {name} for event timestamp"))),
        None => Err(invalid("Unsupported field type INT64 (without logical schema name) for event timestamp")),
    }
}

fn version(value: &Value) -> Result<Option<i32>> {
    match value {
        Value::Null => Ok(None),
        Value::Int8(n) => Ok(Some(i32::from(*n))),
        Value::Int16(n) => Ok(Some(i32::from(*n))),
        Value::Int32(n) => Ok(Some(*n)),
        _ => Err(invalid("the version of the schema is not an INT32")),
    }
}

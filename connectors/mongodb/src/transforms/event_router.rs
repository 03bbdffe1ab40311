//! `MongoEventRouter`: the outbox is a collection. The document of the event is made a row first.
//!
//! A document as payload is written as text, unless it is to be expanded to a struct.

use bson::{Bson, Document};
use thalweg_config::{OptionDef, OptionTable, Settings};
use thalweg_core::Error;
use thalweg_core::naming::NameAdjustment;
use thalweg_core::record::{Datum, Field, Record, Schema, Type, Value};
use thalweg_core::transform::change_event::{field, processed_ms};
use thalweg_core::transform::options::table;
use thalweg_core::transform::outbox::{OPTION_COUNT, OutboxNames, OutboxRouter, check, options};
use thalweg_core::transform::{Fate, Made, SchemaPool, Transform, invalid};

use super::conversion::{ArrayEncoding, Conversion};
use super::document::{encoded, parsed_document};
use super::indented;

const NAMES: OutboxNames = OutboxNames {
    id: "collection.field.event.id",
    id_default: "_id",
    key: "collection.field.event.key",
    key_default: None,
    key_aliases: &[],
    kind: "collection.field.event.type",
    payload: "collection.field.event.payload",
    payload_aliases: &["collection.field.payload"],
    timestamp: "collection.field.event.timestamp",
    schema_version: "collection.field.event.schema.version",
    placement: "collection.fields.additional.placement",
    missing: "collection.field.additional.missing",
    missing_aliases: &["collection.fields.additional.error.on.missing"],
    invalid_operation: "collection.op.invalid.behavior",
    invalid_operation_aliases: &["table.op.invalid.behavior", "debezium.op.invalid.behavior"],
    expand: "collection.expand.json.payload",
    null_fields: "collection.json.payload.null.behavior",
};

const ALL: [OptionDef; OPTION_COUNT] = options(&NAMES);

pub(super) static OPTIONS: OptionTable = table("MongoEventRouter", &ALL, &[check]);

/// Of the field with the time of an event.
const TIME: &str = "io.debezium.time.Timestamp";

pub(super) struct MongoEventRouter {
    router: OutboxRouter,
    payload: Box<str>,
    timestamp: Option<Box<str>>,
    expands: bool,
    rows: SchemaPool,
}

impl MongoEventRouter {
    pub(super) fn make(settings: &Settings) -> Made {
        let timestamp = settings.text_or_empty(NAMES.timestamp).trim();
        Ok(Box::new(Self {
            router: OutboxRouter::from_settings(settings, &NAMES)?,
            payload: settings.text_or_empty(NAMES.payload).into(),
            timestamp: (!timestamp.is_empty()).then(|| timestamp.into()),
            expands: settings.bool(NAMES.expand),
            rows: SchemaPool::default(),
        }))
    }

    /// The document with what is special in an outbox made plain.
    fn row(&mut self, mut document: Document, name: Option<&str>) -> Result<Datum, Error> {
        const PLAIN: Conversion = Conversion { arrays: ArrayEncoding::Array, names: NameAdjustment::None };
        if !self.expands
            && let Some(Bson::Document(payload)) = document.get(&*self.payload)
        {
            let text = indented::canonical(payload)?;
            document.insert(&*self.payload, text);
        }
        if let Some(name) = &self.timestamp {
            match document.get(&**name) {
                None | Some(Bson::Undefined | Bson::Null) => {}
                Some(Bson::DateTime(date)) => {
                    let millis = date.timestamp_millis();
                    document.insert(&**name, millis);
                }
                Some(Bson::Int64(_)) => {}
                Some(Bson::Int32(number)) => {
                    let millis = i64::from(*number);
                    document.insert(&**name, millis);
                }
                _ => {
                    return Err(invalid(format!(
                        "the time of the event is neither a date nor a number (field {name})"
                    )));
                }
            }
        }
        let document = encoded(&document)?;
        let mut fields: Vec<Field> = PLAIN.fields(&document, name)?;
        let time = fields.iter_mut().find(|field| self.timestamp.as_deref() == Some(&*field.name));
        if let Some(field) = time {
            field.schema = std::sync::Arc::new(Schema::int64().optional().named(TIME).versioned(1));
        }
        let mut schema = Schema::new(Type::Struct(fields));
        schema.name = name.map(Into::into);
        let schema = self.rows.shared(schema);
        let values = PLAIN.values(&document, schema.fields())?;
        Ok(Datum::new(schema, Value::Struct(values)))
    }
}

impl Transform for MongoEventRouter {
    fn apply(&mut self, record: &mut Record) -> Result<Fate, Error> {
        if let Some(fate) = self.router.fate_of_others(record)? {
            return Ok(fate);
        }
        let (Some(schema), Value::Struct(values)) = (&record.value.schema, &record.value.value) else {
            return Ok(Fate::Keep);
        };
        let processed = processed_ms(schema, values);
        let (row, document) = match field(schema, values, "after") {
            Some((row, Value::String(text))) => (row.clone(), parsed_document(&text.as_str(), "the field after")?),
            _ => return Err(invalid("the change event has no document in its field after")),
        };
        let row = self.row(document, row.name.as_deref())?;
        self.router.route(record, row, processed)?;
        Ok(Fate::Keep)
    }
}

#[cfg(test)]
#[path = "event_router_tests.rs"]
mod tests;

//! `InsertField`: adds the topic, the partition, the time of the record or a constant as fields.
//!
//! A source's record has no offset in Kafka yet, so `offset.field` is refused.

use std::sync::Arc;

use thalweg_config::{Importance, OptionDef, OptionKind, OptionTable, Settings};

use super::cache::SchemaCache;
use super::object;
use super::options::{REPLACE_NULL, option, table};
use super::schemas;
use super::side::Side;
use super::{Fate, Made, Transform, broken};
use crate::error::Result;
use crate::record::{Field, Record, Schema, Text, Type, Value};

const PURPOSE: &str = "field insertion";

const fn field(name: &'static str, doc: &'static str) -> OptionDef {
    option(name, OptionKind::String, Importance::Medium, doc)
}

pub(super) static OPTIONS: OptionTable = table(
    "InsertField",
    &[
        field("topic.field", "Name of a field for the topic. A ! behind it makes the field required, a ? optional."),
        field(
            "partition.field",
            "Name of a field for the partition, as with topic.field; without a value if the partition is not fixed yet.",
        ),
        field("offset.field", "For sinks only.").refused("a record of a source has no offset in Kafka yet"),
        field("timestamp.field", "Name of a field for the time of the record, as with topic.field."),
        field("static.field", "Name of a field for static.value, as with topic.field."),
        field("static.value", "The value of static.field."),
        REPLACE_NULL,
    ],
    &[complete],
);

fn complete(settings: &Settings) -> Vec<(&'static str, String)> {
    if settings.is_set("static.field") && !settings.is_set("static.value") {
        let name = settings.text_or_empty("static.field");
        return vec![("static.value", format!("No value specified for static field: {name}"))];
    }
    let any = ["topic.field", "partition.field", "timestamp.field", "static.field"];
    if any.iter().any(|name| settings.is_set(name)) {
        return Vec::new();
    }
    vec![("topic.field", "No field insertion configured".to_owned())]
}

/// What a field is filled with.
enum Source {
    Topic,
    Partition,
    Timestamp,
    Constant(Arc<str>),
}

struct Insertion {
    source: Source,
    name: Arc<str>,
    required: bool,
}

pub(super) struct InsertField {
    side: Side,
    /// In the order in which the fields are added.
    insertions: Vec<Insertion>,
    replace_null: bool,
    grown: SchemaCache<Arc<Schema>>,
}

impl InsertField {
    pub(super) fn make(side: Side, settings: &Settings) -> Made {
        let mut insertions = Vec::new();
        let mut add = |name: &str, source: Source| {
            if let Some(text) = settings.text(name) {
                let required = text.ends_with('!');
                let name = text.strip_suffix(['!', '?']).unwrap_or(text).into();
                insertions.push(Insertion { source, name, required });
            }
        };
        add("topic.field", Source::Topic);
        add("partition.field", Source::Partition);
        add("timestamp.field", Source::Timestamp);
        add("static.field", Source::Constant(settings.text_or_empty("static.value").into()));
        if insertions.is_empty() {
            return Err(broken("No field insertion configured".to_owned()));
        }
        let replace_null = settings.bool("replace.null.with.default");
        Ok(Box::new(Self { side, insertions, replace_null, grown: SchemaCache::default() }))
    }
}

impl Insertion {
    fn schema(&self) -> Arc<Schema> {
        match self.source {
            Source::Topic | Source::Constant(_) => schemas::string(!self.required),
            Source::Partition => schemas::int32(!self.required),
            Source::Timestamp => schemas::timestamp(!self.required),
        }
    }

    /// `None`: there is nothing to insert.
    fn value(&self, topic: &Arc<str>, partition: Option<i32>, timestamp: Option<i64>) -> Option<Value> {
        match &self.source {
            Source::Topic => Some(Value::String(Text::Shared(topic.clone()))),
            Source::Partition => partition.map(Value::Int32),
            Source::Timestamp => timestamp.map(Value::Int64),
            Source::Constant(text) => Some(Value::String(Text::Shared(text.clone()))),
        }
    }
}

fn grown(schema: &Schema, insertions: &[Insertion]) -> Result<Arc<Schema>> {
    let added = insertions.iter().map(|i| Field { name: i.name.clone(), schema: i.schema() });
    let fields: Vec<Field> = schema.fields().iter().cloned().chain(added).collect();
    object::distinct(fields.iter().map(|f| &*f.name))?;
    Ok(Arc::new(object::with_basics_of(schema, Type::Struct(fields))))
}

impl Transform for InsertField {
    fn apply(&mut self, record: &mut Record) -> Result<Fate> {
        let (topic, partition, timestamp) = (record.topic.clone(), record.partition, record.timestamp);
        let datum = self.side.of_mut(record);
        if datum.value.is_null() {
            return Ok(Fate::Keep);
        }
        let Some(schema) = &mut datum.schema else {
            let pairs = object::map(&mut datum.value, PURPOSE)?;
            for insertion in &self.insertions {
                if let Some(value) = insertion.value(&topic, partition, timestamp) {
                    object::put(pairs, &insertion.name, value);
                }
            }
            return Ok(Fate::Keep);
        };
        let values = object::fields(schema, &mut datum.value, PURPOSE)?;
        let insertions = &self.insertions;
        let new = self.grown.get(schema, |schema| grown(schema, insertions))?;
        object::fill_all(schema, values, self.replace_null);
        for insertion in insertions {
            values.push(insertion.value(&topic, partition, timestamp).unwrap_or(Value::Null));
        }
        *schema = new;
        Ok(Fate::Keep)
    }
}

#[cfg(test)]
#[path = "tests/insert_field.rs"]
mod tests;

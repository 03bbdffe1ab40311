//! `ToLogicalTopicRouter`, once `ByLogicalTableRouter`: several topics become one, with their schemas
//! renamed after it, and with the old topic as a further field of the key, so that rows of different
//! tables stay apart.
//!
//! What a change event holds as text (documents) stays as it is; records that are no change events keep
//! their values.

use std::collections::HashMap;
use std::sync::Arc;

use thalweg_config::{Importance, OptionDef, OptionKind, OptionTable, Settings};

use super::cache::SchemaCache;
use super::change_event::is_change_event;
use super::fault::not_a_struct;
use super::java_regex::{JavaRegex, Replacement};
use super::options::{option, regex, table};
use super::{Fate, Made, Transform, broken, object, schemas};
use crate::error::Result;
use crate::naming::{ADJUSTMENTS, NameAdjustment};
use crate::record::{Field, Record, Schema, Text, Type, Value};

const PURPOSE: &str = "updating schema";
const CACHE_SIZE: &str = "logical.destination.cache.size";

const TOPIC_REGEX: OptionDef = option(
    "topic.regex",
    OptionKind::String,
    Importance::Low,
    "Regular expression for the whole name of a topic; records of other topics stay as they are.",
)
.required()
.check(regex);

const TOPIC_REPLACEMENT: OptionDef = option(
    "topic.replacement",
    OptionKind::String,
    Importance::Low,
    "Name of the new topic; $1 is the first group of the expression.",
)
.required();

const UNIQUE: OptionDef = option(
    "key.enforce.uniqueness",
    OptionKind::Boolean,
    Importance::Low,
    "Whether the key gets a field that says where the record comes from.",
)
.default("true");

const KEY_FIELD: OptionDef =
    option("key.field.name", OptionKind::String, Importance::Low, "Name of the further field of the key.");

const KEY_REGEX: OptionDef = option(
    "key.field.regex",
    OptionKind::String,
    Importance::Low,
    "Regular expression for the whole name of the old topic, from which the further field of the key is made. Unset: it is the old topic.",
)
.check(regex);

const KEY_REPLACEMENT: OptionDef = option(
    "key.field.replacement",
    OptionKind::String,
    Importance::Low,
    "Value of the further field of the key; $1 is the first group of key.field.regex.",
);

const ADJUSTMENT: OptionDef = option(
    "schema.name.adjustment.mode",
    OptionKind::String,
    Importance::Low,
    "How the names of the new schemas are made fit for Avro.",
)
.default("none")
.one_of(ADJUSTMENTS);

const CACHE: OptionDef =
    option(CACHE_SIZE, OptionKind::Int, Importance::Low, "How many topics are remembered; never fewer than 1000.")
        .default("16")
        .at_least(1);

pub(super) static OPTIONS: OptionTable = table(
    "ToLogicalTopicRouter",
    &[
        TOPIC_REGEX,
        TOPIC_REPLACEMENT,
        UNIQUE,
        KEY_FIELD.default("__dbz__sourceIdentifier"),
        KEY_REGEX,
        KEY_REPLACEMENT,
        ADJUSTMENT,
        CACHE,
    ],
    &[fits],
);

/// Under its former name the default of one option differs.
pub(super) static FORMER_OPTIONS: OptionTable = table(
    "ByLogicalTableRouter",
    &[
        TOPIC_REGEX,
        TOPIC_REPLACEMENT,
        UNIQUE,
        KEY_FIELD.default("__dbz__physicalTableIdentifier"),
        KEY_REGEX,
        KEY_REPLACEMENT,
        ADJUSTMENT,
        CACHE,
    ],
    &[fits],
);

type Rule = (JavaRegex, Replacement);

fn rule(settings: &Settings, regex: &str, replacement: &str) -> Result<Rule, String> {
    let regex = JavaRegex::new(settings.text_or_empty(regex))?;
    let replacement = Replacement::new(settings.text_or_empty(replacement), &regex)?;
    Ok((regex, replacement))
}

fn has(settings: &Settings, name: &str) -> bool {
    !settings.text_or_empty(name).trim().is_empty()
}

/// Wrong expressions are reported at their own options.
fn fits(settings: &Settings) -> Vec<(&'static str, String)> {
    let mut wrong = Vec::new();
    for (regex, replacement) in [("topic.regex", "topic.replacement"), ("key.field.regex", "key.field.replacement")] {
        let Ok(expression) = JavaRegex::new(settings.text_or_empty(regex)) else { continue };
        if has(settings, regex)
            && let Err(text) = Replacement::new(settings.text_or_empty(replacement), &expression)
        {
            wrong.push((replacement, text));
        }
    }
    match (has(settings, "key.field.regex"), has(settings, "key.field.replacement")) {
        (true, false) => {
            wrong.push(("key.field.replacement", "must be non-empty if key.field.regex is set".to_owned()));
        }
        (false, true) => wrong.push(("key.field.regex", "must be set if key.field.replacement is".to_owned())),
        _ => {}
    }
    wrong
}

pub(super) struct LogicalTopicRouter {
    topic: Rule,
    /// Name of the further field.
    key_field: Option<Arc<str>>,
    identifier: Option<Rule>,
    names: NameAdjustment,
    /// By the old topic; `None`: it stays.
    routes: HashMap<Arc<str>, Option<Route>>,
    kept: usize,
}

struct Route {
    topic: Arc<str>,
    /// Value of the further field.
    identifier: Arc<str>,
    keys: SchemaCache<Arc<Schema>>,
    envelopes: SchemaCache<Arc<Schema>>,
}

impl LogicalTopicRouter {
    pub(super) fn make(settings: &Settings) -> Made {
        let identifier =
            has(settings, "key.field.regex").then(|| rule(settings, "key.field.regex", "key.field.replacement"));
        Ok(Box::new(Self {
            topic: rule(settings, "topic.regex", "topic.replacement").map_err(broken)?,
            key_field: settings.bool("key.enforce.uniqueness").then(|| settings.text_or_empty("key.field.name").into()),
            identifier: identifier.transpose().map_err(broken)?,
            names: NameAdjustment::from_option(settings.text_or_empty("schema.name.adjustment.mode")),
            routes: HashMap::new(),
            kept: usize::try_from(settings.int(CACHE_SIZE)).unwrap_or(0).max(1_000),
        }))
    }
}

fn route(topic: &Arc<str>, rule: &Rule, identifier: Option<&Rule>) -> Result<Option<Route>> {
    let new = match rule.0.replaced(topic, &rule.1)? {
        Some(new) if !new.is_empty() => new,
        Some(_) => {
            tracing::warn!(%topic, "a router has no name for the records of a topic, they stay in it");
            return Ok(None);
        }
        None => return Ok(None),
    };
    let identifier = match identifier {
        Some((regex, replacement)) => regex.replaced(topic, replacement)?.map_or_else(|| topic.clone(), Arc::from),
        None => topic.clone(),
    };
    Ok(Some(Route { topic: new.into(), identifier, keys: SchemaCache::default(), envelopes: SchemaCache::default() }))
}

/// The same schema with other fields under another name.
fn renamed(schema: &Schema, name: &str, names: NameAdjustment, fields: Vec<Field>) -> Schema {
    let mut new = object::with_basics_of(schema, Type::Struct(fields));
    new.name = Some(names.schema_name(name).into());
    new.optional = schema.optional;
    new
}

fn key_schema(schema: &Schema, topic: &str, names: NameAdjustment, further: Option<&Arc<str>>) -> Result<Arc<Schema>> {
    let mut fields = schema.fields().to_vec();
    fields.extend(further.map(|name| Field { name: name.clone(), schema: schemas::string(false) }));
    object::distinct(fields.iter().map(|f| &*f.name))?;
    Ok(Arc::new(renamed(schema, &format!("{topic}.Key"), names, fields)))
}

/// Before and after keep having one schema.
fn envelope_schema(schema: &Schema, topic: &str, names: NameAdjustment) -> Arc<Schema> {
    let mut row: Option<(Arc<Schema>, Arc<Schema>)> = None;
    let mut field = |field: &Field| {
        let is_row = matches!(&*field.name, "before" | "after") && matches!(field.schema.ty, Type::Struct(_));
        if !is_row {
            return field.clone();
        }
        let new = match &row {
            Some((old, new)) if **old == *field.schema => new.clone(),
            _ => {
                let fields = field.schema.fields().to_vec();
                Arc::new(renamed(&field.schema, &format!("{topic}.Value"), names, fields))
            }
        };
        row = Some((field.schema.clone(), new.clone()));
        Field { name: field.name.clone(), schema: new }
    };
    let fields = schema.fields().iter().map(&mut field).collect();
    Arc::new(renamed(schema, &format!("{topic}.Envelope"), names, fields))
}

impl Transform for LogicalTopicRouter {
    fn apply(&mut self, record: &mut Record) -> Result<Fate> {
        if !self.routes.contains_key(&record.topic) {
            let route = route(&record.topic, &self.topic, self.identifier.as_ref())?;
            if self.routes.len() >= self.kept {
                self.routes.clear();
            }
            self.routes.insert(record.topic.clone(), route);
        }
        let Some(Some(route)) = self.routes.get_mut(&record.topic) else { return Ok(Fate::Keep) };
        let (topic, names) = (&route.topic, self.names);
        if !record.key.value.is_null() {
            let Some(schema) = &mut record.key.schema else { return Err(not_a_struct(&record.key.value, PURPOSE)) };
            let values = object::fields(schema, &mut record.key.value, PURPOSE)?;
            let further = self.key_field.as_ref();
            *schema = route.keys.get(schema, |schema| key_schema(schema, topic, names, further))?;
            values.extend(further.map(|_| Value::String(Text::Shared(route.identifier.clone()))));
        }
        if is_change_event(&record.value)
            && let Some(schema) = &mut record.value.schema
        {
            *schema = route.envelopes.get(schema, |schema| Ok(envelope_schema(schema, topic, names)))?;
        }
        record.topic = topic.clone();
        Ok(Fate::Keep)
    }
}

#[cfg(test)]
#[path = "tests/logical_topic_router.rs"]
mod tests;

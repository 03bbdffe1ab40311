//! `SchemaChangeEventFilter`: leaves out events of the topic of schema changes, by what they change.

use thalweg_config::{Importance, OptionKind, OptionTable, Settings};

use super::change_event::field;
use super::options::{not_empty_list, option, table};
use super::{Fate, Made, Transform, object};
use crate::error::Result;
use crate::record::{Record, Value};

pub(super) static OPTIONS: OptionTable = table(
    "SchemaChangeEventFilter",
    &[option(
        "schema.change.event.exclude.list",
        OptionKind::List,
        Importance::Low,
        "What is left out: CREATE, ALTER, DROP, TRUNCATE, and DATABASE for what is about no table.",
    )
    .required()
    .check(not_empty_list)],
    &[kinds],
);

const LIST: &str = "schema.change.event.exclude.list";
const KINDS: [&str; 5] = ["CREATE", "ALTER", "DROP", "TRUNCATE", "DATABASE"];

fn kinds(settings: &Settings) -> Vec<(&'static str, String)> {
    let wrong = settings.list(LIST).iter().filter(|kind| !KINDS.contains(&kind.trim()));
    wrong.map(|kind| (LIST, format!("'{kind}' is not one of {}", KINDS.join(", ")))).collect()
}

pub(super) struct SchemaChangeFilter {
    excluded: Vec<Box<str>>,
}

impl SchemaChangeFilter {
    pub(super) fn make(settings: &Settings) -> Made {
        Ok(Box::new(Self { excluded: settings.list(LIST).iter().map(|kind| kind.trim().into()).collect() }))
    }
}

impl Transform for SchemaChangeFilter {
    fn apply(&mut self, record: &mut Record) -> Result<Fate> {
        let Some(schema) = record.value.schema.clone() else { return Ok(Fate::Keep) };
        let is_change = schema.name.as_deref().is_some_and(|name| name.ends_with(".SchemaChangeValue"));
        if !is_change || record.value.value.is_null() {
            return Ok(Fate::Keep);
        }
        let values = object::fields(&schema, &mut record.value.value, "filtering schema changes")?;
        let first = match field(&schema, values, "tableChanges") {
            Some((list, Value::Array(changes))) => changes.first().map(|change| (list, change)),
            _ => None,
        };
        let kind = match first {
            Some((list, Value::Struct(change))) => match &list.ty {
                crate::record::Type::Array(item) => field(item, change, "type").map(|(_, kind)| kind),
                _ => None,
            },
            _ => None,
        };
        let excluded = match kind {
            Some(Value::String(kind)) => self.excluded.iter().any(|excluded| **excluded == *kind.as_str()),
            _ => self.excluded.iter().any(|excluded| &**excluded == "DATABASE"),
        };
        Ok(if excluded { Fate::Drop } else { Fate::Keep })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use std::sync::Arc;

    use crate::record::{Datum, Record, Schema, Value};
    use crate::transform::support::*;

    const CLASS: &str = "io.debezium.transforms.SchemaChangeEventFilter";

    fn schema_change(kind: Option<&'static str>) -> Record {
        let item = Schema::record([("type", Schema::string())]);
        let schema = Schema::record([("ddl", Schema::string()), ("tableChanges", Schema::array(item))]);
        let changes = kind.map(|kind| Value::Struct(vec![Value::text(kind)])).into_iter().collect();
        let value = Value::Struct(vec![Value::text("ddl"), Value::Array(changes)]);
        record(Datum::new(Arc::new(schema.named("io.debezium.connector.sqlserver.SchemaChangeValue")), value))
    }

    #[test]
    fn what_is_listed_is_left_out() {
        let mut chain = chain(CLASS, &[("schema.change.event.exclude.list", "DROP, DATABASE")]);
        for (event, passes) in [
            (schema_change(Some("CREATE")), true),
            (schema_change(Some("DROP")), false),
            (schema_change(None), false),
            (change('d'), true),
            (heartbeat(), true),
            (record(Datum::none()), true),
        ] {
            assert_eq!(run(&mut chain, event).unwrap().is_some(), passes);
        }
        assert!(
            faults(CLASS, &[("schema.change.event.exclude.list", "DROP,RENAME")])[0].contains("'RENAME' is not one of")
        );
        assert!(!faults(CLASS, &[]).is_empty());
    }
}

//! `ExtractChangedRecordState`: the names of the fields that an update changed, and of those that it did
//! not change, as headers.

use std::sync::Arc;

use thalweg_config::{Importance, OptionKind, OptionTable, Settings};

use super::change_event::{field, is_change_event};
use super::fault::not_a_struct;
use super::options::{option, table};
use super::{Fate, Made, Transform, object, schemas};
use crate::error::Result;
use crate::record::{Header, Record, Schema, Text, Value};

const PURPOSE: &str = "comparing before and after";

pub(super) static OPTIONS: OptionTable = table(
    "ExtractChangedRecordState",
    &[
        option(
            "header.changed.name",
            OptionKind::String,
            Importance::Low,
            "Header for the names of the changed fields. Unset: none.",
        ),
        option(
            "header.unchanged.name",
            OptionKind::String,
            Importance::Low,
            "Header for the names of the other fields. Unset: none.",
        ),
    ],
    &[],
);

/// A header and the schema of its value.
struct Target {
    name: Arc<str>,
    schema: Arc<Schema>,
}

pub(super) struct ChangedFields {
    changed: Option<Target>,
    unchanged: Option<Target>,
}

impl ChangedFields {
    pub(super) fn make(settings: &Settings) -> Made {
        let target = |option: &str| {
            let name = settings.text_or_empty(option).trim();
            let schema = || Arc::new(Schema::array(schemas::string(true)).optional().named(name));
            (!name.is_empty()).then(|| Target { name: name.into(), schema: schema() })
        };
        Ok(Box::new(Self { changed: target("header.changed.name"), unchanged: target("header.unchanged.name") }))
    }
}

impl Transform for ChangedFields {
    fn apply(&mut self, record: &mut Record) -> Result<Fate> {
        let (Some(schema), true) = (record.value.schema.clone(), is_change_event(&record.value)) else {
            return Ok(Fate::Keep);
        };
        let values = object::fields(&schema, &mut record.value.value, PURPOSE)?;
        let (before, after) = (field(&schema, values, "before"), field(&schema, values, "after"));
        let (Some((_, before)), Some((row, after))) = (before, after) else { return Ok(Fate::Keep) };
        let (before, after) = match (before, after) {
            (Value::Null, _) | (_, Value::Null) => return Ok(Fate::Keep),
            (Value::Struct(before), Value::Struct(after)) => (before, after),
            (Value::Struct(_), other) | (other, _) => return Err(not_a_struct(other, PURPOSE)),
        };
        let (mut changed, mut unchanged) = (Vec::new(), Vec::new());
        for (at, field) in row.fields().iter().enumerate() {
            let list = if before.get(at) == after.get(at) { &mut unchanged } else { &mut changed };
            list.push(Value::String(Text::Shared(field.name.clone())));
        }
        let mut headers = Vec::clone(&record.headers);
        for (target, names) in [(&self.changed, changed), (&self.unchanged, unchanged)] {
            headers.extend(target.as_ref().map(|target| Header {
                name: target.name.clone(),
                schema: Some(target.schema.clone()),
                value: Value::Array(names),
            }));
        }
        record.headers = Arc::new(headers);
        Ok(Fate::Keep)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use crate::record::Datum;
    use crate::transform::support::*;

    const CLASS: &str = "io.debezium.transforms.ExtractChangedRecordState";

    fn headers(options: &[(&str, &str)], event: Record) -> Vec<String> {
        let record = run(&mut chain(CLASS, options), event).unwrap().unwrap();
        let text =
            |h: &Header| format!("{}={}", h.name, json(&Datum { schema: h.schema.clone(), value: h.value.clone() }));
        record.headers.iter().map(text).collect()
    }

    #[test]
    fn only_updates_have_them() {
        let both = [("header.changed.name", "C"), ("header.unchanged.name", "U")];
        assert_eq!(headers(&both, change('u')), [r#"C=["name"]"#, r#"U=["id"]"#]);
        assert_eq!(headers(&both[1..], change('u')), [r#"U=["id"]"#]);
        assert_eq!(headers(&[], change('u')), [""; 0]);
        for other in [change('c'), change('d'), heartbeat(), record(Datum::none())] {
            assert_eq!(headers(&both, other), [""; 0]);
        }
        let mut same = change('u');
        set(&mut same.value, "before", Value::Struct(vec![Value::Int32(1), Value::text("new".to_owned())]));
        assert_eq!(headers(&both, same), ["C=[]", r#"U=["id","name"]"#]);
        let mut text = change('u');
        set(&mut text.value, "after", Value::text("{}"));
        assert!(refused(&mut chain(CLASS, &both), text).contains("found: string"));
    }
}

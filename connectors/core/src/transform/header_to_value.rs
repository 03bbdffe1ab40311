//! `HeaderToValue`: copies or moves headers into fields of the value, also inside of structs.
//!
//! A header stays where it is if the value has no place for it: the struct that should hold the field is
//! not there, or is null.

use std::sync::Arc;

use thalweg_config::rule::split_plain_list;
use thalweg_config::{Importance, OptionKind, OptionTable, Settings};

use super::fault::{invalid, not_a_struct};
use super::object;
use super::options::{not_empty_list, option, table};
use super::{Fate, Made, Transform};
use crate::error::Result;
use crate::record::{Field, Header, Record, Schema, Type, Value};

const PURPOSE: &str = "header field insertion";

/// Changed schemas kept.
const KEPT: usize = 64;

fn names(text: &str) -> Result<(), String> {
    not_empty_list(text)?;
    let spaced = split_plain_list(text).into_iter().find(|name| name.contains(char::is_whitespace));
    spaced.map_or(Ok(()), |name| Err(format!("'{name}' has a blank in it")))
}

pub(super) static OPTIONS: OptionTable = table(
    "HeaderToValue",
    &[
        option("headers", OptionKind::List, Importance::High, "Headers whose values become fields.")
            .required()
            .check(names),
        option(
            "fields",
            OptionKind::List,
            Importance::High,
            "Names of the fields, in the order of headers; dots separate the levels of structs.",
        )
        .required()
        .check(names),
        option("operation", OptionKind::String, Importance::High, "copy: the headers stay. move: they are taken out.")
            .required()
            .one_of(&["move", "copy"]),
    ],
    &[|settings| {
        let (headers, fields) = (settings.list("headers"), settings.list("fields"));
        let wrong = !headers.is_empty() && !fields.is_empty() && headers.len() != fields.len();
        let text =
            || ("fields", "'headers' config must have the same number of elements as 'fields' config.".to_owned());
        let empty = fields.iter().find(|field| field.split('.').any(str::is_empty));
        let nameless = empty.map(|field| ("fields", format!("'{field}' has a level without a name")));
        wrong.then(text).into_iter().chain(nameless).collect()
    }],
);

struct Target {
    header: Box<str>,
    /// Structs to go through, then the name of the field.
    path: Vec<Arc<str>>,
}

pub(super) struct HeaderToValue {
    targets: Vec<Target>,
    moves: bool,
    /// Last used first.
    known: Vec<Known>,
}

/// What the schema becomes depends on the schemas of the headers as well.
struct Known {
    schema: Arc<Schema>,
    /// Which targets have a place in the value.
    placed: Vec<bool>,
    headers: Vec<Option<Arc<Schema>>>,
    grown: Arc<Schema>,
}

impl HeaderToValue {
    pub(super) fn make(settings: &Settings) -> Made {
        let pairs = settings.list("headers").iter().zip(settings.list("fields"));
        let target = |(header, field): (&String, &String)| Target {
            header: header.as_str().into(),
            path: field.split('.').map(Arc::from).collect(),
        };
        let moves = settings.text_or_empty("operation") == "move";
        Ok(Box::new(Self { targets: pairs.map(target).collect(), moves, known: Vec::new() }))
    }

    /// The schema with the new fields. As in Debezium the structs that get one, and those around them, are
    /// not optional any more and have no default; without a place for the field they stay what they are.
    fn grown(&mut self, schema: &Arc<Schema>, headers: &[Option<&Header>], placed: Vec<bool>) -> Result<Arc<Schema>> {
        let same = |known: &Known| {
            let pairs = known.headers.iter().zip(headers);
            Arc::ptr_eq(&known.schema, schema)
                && known.placed == placed
                && pairs.into_iter().all(|(known, header)| *known == header.and_then(|h| h.schema.clone()))
        };
        let at = match self.known.iter().position(same) {
            Some(at) => at,
            None => {
                let mut grown = Schema::clone(schema);
                for ((target, header), placed) in self.targets.iter().zip(headers).zip(&placed) {
                    if let Some(header) = header {
                        let field = header.schema.as_ref().ok_or_else(|| {
                            invalid(format!("the header {} has no schema, so no field can be made of it", header.name))
                        })?;
                        grown = with_field(grown, &target.path, field, *placed)?;
                    }
                }
                let headers = headers.iter().map(|header| header.and_then(|h| h.schema.clone())).collect();
                self.known.truncate(KEPT - 1);
                self.known.push(Known { schema: schema.clone(), placed, headers, grown: Arc::new(grown) });
                self.known.len() - 1
            }
        };
        self.known[..=at].rotate_right(1);
        Ok(self.known[0].grown.clone())
    }
}

/// The schema with one more field. Without the structs on the way it stays as it is.
fn with_field(mut schema: Schema, path: &[Arc<str>], field: &Arc<Schema>, placed: bool) -> Result<Schema> {
    let Type::Struct(fields) = &mut schema.ty else { return Ok(schema) };
    if placed {
        schema.optional = false;
        schema.default = None;
    }
    match path {
        [] => {}
        [name] => {
            fields.push(Field { name: name.clone(), schema: field.clone() });
            object::distinct(fields.iter().map(|f| &*f.name))?;
        }
        [name, rest @ ..] => {
            if let Some(inner) = fields.iter_mut().find(|f| f.name == *name) {
                inner.schema = Arc::new(with_field(Schema::clone(&inner.schema), rest, field, placed)?);
            }
        }
    }
    Ok(schema)
}

/// Gives a struct the fields that its schema has grown by: nulls, to be filled.
fn grow(values: &mut Vec<Value>, schema: &Schema) {
    values.resize(schema.fields().len(), Value::Null);
    for (value, field) in values.iter_mut().zip(schema.fields()) {
        if let Value::Struct(inner) = value {
            grow(inner, &field.schema);
        }
    }
}

/// Whether all structs on the way to a field are there.
fn holds(schema: &Schema, values: &[Value], path: &[Arc<str>]) -> bool {
    let [name, rest @ ..] = path else { return false };
    if rest.is_empty() {
        return true;
    }
    let Some(at) = schema.field_index(name) else { return false };
    matches!(values.get(at), Some(Value::Struct(inner)) if holds(&schema.fields()[at].schema, inner, rest))
}

/// The place of a field in a value; none if a struct on the way is null or not there.
fn place<'a>(values: &'a mut [Value], schema: &Schema, path: &[Arc<str>]) -> Option<&'a mut Value> {
    let (name, rest) = path.split_first()?;
    let at = schema.field_index(name)?;
    let value = values.get_mut(at)?;
    if rest.is_empty() {
        return Some(value);
    }
    match value {
        Value::Struct(inner) => place(inner, &schema.fields()[at].schema, rest),
        _ => None,
    }
}

impl Transform for HeaderToValue {
    fn apply(&mut self, record: &mut Record) -> Result<Fate> {
        if record.value.value.is_null() {
            return Ok(Fate::Keep);
        }
        let headers = record.headers.clone();
        let found: Vec<Option<&Header>> =
            self.targets.iter().map(|t| headers.iter().rfind(|h| *h.name == *t.header)).collect();
        if found.iter().all(Option::is_none) {
            return Ok(Fate::Keep);
        }
        let Some(schema) = record.value.schema.clone() else { return Err(not_a_struct(&record.value.value, PURPOSE)) };
        let values = object::fields(&schema, &mut record.value.value, PURPOSE)?;
        let has_place = |target: &Target| holds(&schema, values, &target.path);
        let places = self.targets.iter().map(has_place).collect();
        let grown = self.grown(&schema, &found, places)?;
        grow(values, &grown);
        let mut placed: Vec<&str> = Vec::new();
        for (target, header) in self.targets.iter().zip(found) {
            if let Some(header) = header
                && let Some(place) = place(values, &grown, &target.path)
            {
                *place = header.value.clone();
                placed.push(&target.header);
            }
        }
        record.value.schema = Some(grown);
        if self.moves && !placed.is_empty() {
            record.headers = Arc::new(headers.iter().filter(|h| !placed.contains(&&*h.name)).cloned().collect());
        }
        Ok(Fate::Keep)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use crate::record::Datum;
    use crate::transform::support::*;

    const CLASS: &str = "io.debezium.transforms.HeaderToValue";

    fn with_headers(record: Record) -> Record {
        let header = |name: &str, value: &'static str| Header {
            name: name.into(),
            schema: Some(Arc::new(Schema::string())),
            value: Value::text(value),
        };
        Record { headers: Arc::new(vec![header("a", "1"), header("b", "2"), header("c", "3")]), ..record }
    }

    fn done(options: &[(&str, &str)], record: Record) -> (String, Vec<String>) {
        let out = run(&mut chain(CLASS, options), with_headers(record)).unwrap().unwrap();
        (json(&out.value), out.headers.iter().map(|h| h.name.to_string()).collect())
    }

    const NAMES: [(&str, &str); 2] = [("headers", "a,b,gone"), ("fields", "x,after.y,z")];

    #[test]
    fn moved_or_copied_also_into_structs() {
        let (value, left) = done(&[NAMES[0], NAMES[1], ("operation", "move")], change('u'));
        assert!(value.contains(r#""after":{"id":1,"name":"new","y":"2"}"#), "{value}");
        assert!(value.ends_with(r#""x":"1"}"#) && !value.contains("\"z\""), "{value}");
        assert_eq!(left, ["c"]);
        let (copied, all) = done(&[NAMES[0], NAMES[1], ("operation", "copy")], change('u'));
        assert_eq!((copied, all.len()), (value, 3));
    }

    #[test]
    fn structs_that_get_a_field_are_not_optional_any_more() {
        let options = [NAMES[0], NAMES[1], ("operation", "copy")];
        let after = |record: Record| {
            let schema = run(&mut chain(CLASS, &options), with_headers(record)).unwrap().unwrap().value.schema.unwrap();
            let at = schema.field_index("after").unwrap();
            (schema.optional, schema.fields()[at].schema.optional)
        };
        assert_eq!(after(change('u')), (false, false));
        // A delete has no place for it: what is null stays optional.
        assert_eq!(after(change('d')), (false, true));
    }

    #[test]
    fn what_has_no_place_stays_a_header() {
        let options = [NAMES[0], NAMES[1], ("operation", "move")];
        let (value, left) = done(&options, change('d'));
        assert!(value.contains(r#""after":null"#));
        assert_eq!(left, ["b", "c"]);
        assert_eq!(done(&options, heartbeat()), (r#"{"ts_ms":5,"x":"1"}"#.to_owned(), vec!["b".into(), "c".into()]));
        let tombstone = run(&mut chain(CLASS, &options), with_headers(record(Datum::none()))).unwrap().unwrap();
        assert!(tombstone.value.is_none() && tombstone.headers.len() == 3);
        assert_eq!(run(&mut chain(CLASS, &options), change('u')).unwrap().unwrap().value, change('u').value);
    }

    #[test]
    fn one_schema_for_equal_records_and_another_for_other_headers() {
        let mut chain = chain(CLASS, &[("headers", "a,b"), ("fields", "x,y"), ("operation", "copy")]);
        let event = with_headers(change('c'));
        let mut schema = |record: Record| run(&mut chain, record).unwrap().unwrap().value.schema.unwrap();
        let first = schema(event.clone());
        assert!(Arc::ptr_eq(&first, &schema(event.clone())));
        let fewer = Record { headers: Arc::new(event.headers[..1].to_vec()), ..event.clone() };
        assert_eq!(schema(fewer).fields().len() + 1, first.fields().len());
        assert!(Arc::ptr_eq(&first, &schema(event)));
    }

    #[test]
    fn what_cannot_be() {
        let options = [("headers", "a"), ("fields", "op"), ("operation", "move")];
        assert!(refused(&mut chain(CLASS, &options), with_headers(change('c'))).contains("duplication op"));
        assert!(refused(&mut chain(CLASS, &options), with_headers(record(free(vec![])))).contains("Struct"));
        let mut schemaless = change('c');
        schemaless.headers = Arc::new(vec![Header { name: "a".into(), schema: None, value: Value::Null }]);
        assert!(refused(&mut chain(CLASS, &options), schemaless).contains("has no schema"));
        let wrong = |options: &[(&str, &str)]| faults(CLASS, options).join("\n");
        assert!(wrong(&[("headers", "a"), ("fields", "a,b"), ("operation", "move")]).contains("same number"));
        assert!(wrong(&[("headers", "a b"), ("fields", "a"), ("operation", "move")]).contains("has a blank"));
        assert!(wrong(&[("headers", "a"), ("fields", "a."), ("operation", "move")]).contains("without a name"));
        assert!(wrong(&[("headers", "a"), ("fields", "a"), ("operation", "x")]).contains("move, copy"));
    }
}

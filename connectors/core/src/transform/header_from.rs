//! `HeaderFrom`: copies or moves fields into headers.

use std::sync::Arc;

use thalweg_config::{Importance, OptionKind, OptionTable, Settings};

use super::cache::SchemaCache;
use super::fault::missing;
use super::object;
use super::options::{REPLACE_NULL, not_empty_list, option, table};
use super::side::Side;
use super::{Fate, Made, Transform};
use crate::error::Result;
use crate::record::{Header, Record, Schema, Type, Value};

const PURPOSE: &str = "header from field";

pub(super) static OPTIONS: OptionTable = table(
    "HeaderFrom",
    &[
        option("fields", OptionKind::List, Importance::High, "Fields whose values become headers.")
            .required()
            .check(not_empty_list),
        option("headers", OptionKind::List, Importance::High, "Names of the headers, in the order of fields.")
            .required()
            .check(not_empty_list),
        option("operation", OptionKind::String, Importance::High, "copy: the fields stay. move: they are taken out.")
            .required()
            .one_of(&["move", "copy"])
            .exact(),
        REPLACE_NULL,
    ],
    &[|settings| {
        let (fields, headers) = (settings.list("fields"), settings.list("headers"));
        let wrong = !fields.is_empty() && !headers.is_empty() && fields.len() != headers.len();
        let text =
            || ("headers", "'fields' config must have the same number of elements as 'headers' config.".to_owned());
        wrong.then(text).into_iter().collect()
    }],
);

pub(super) struct HeaderFrom {
    side: Side,
    /// Field and header.
    pairs: Vec<(Box<str>, Arc<str>)>,
    moves: bool,
    replace_null: bool,
    plans: SchemaCache<Arc<Plan>>,
}

struct Plan {
    schema: Arc<Schema>,
    /// Places of the fields, in the order of the headers.
    taken: Vec<usize>,
    /// Places of the fields that stay.
    left: Vec<usize>,
}

impl HeaderFrom {
    pub(super) fn make(side: Side, settings: &Settings) -> Made {
        let fields = settings.list("fields").iter().map(|field| field.as_str().into());
        let headers = settings.list("headers").iter().map(|header| header.as_str().into());
        Ok(Box::new(Self {
            side,
            pairs: fields.zip(headers).collect(),
            moves: settings.text_or_empty("operation") == "move",
            replace_null: settings.bool("replace.null.with.default"),
            plans: SchemaCache::default(),
        }))
    }
}

fn plan(schema: &Arc<Schema>, pairs: &[(Box<str>, Arc<str>)], moves: bool) -> Result<Arc<Plan>> {
    let place = |(name, _): &(Box<str>, _)| schema.field_index(name).ok_or_else(|| missing(name));
    let taken = pairs.iter().map(place).collect::<Result<Vec<usize>>>()?;
    let left: Vec<usize> = (0..schema.fields().len()).filter(|at| !moves || !taken.contains(at)).collect();
    let schema = if moves {
        let fields = left.iter().map(|at| schema.fields()[*at].clone()).collect();
        Arc::new(object::with_basics_of(schema, Type::Struct(fields)))
    } else {
        schema.clone()
    };
    Ok(Arc::new(Plan { schema, taken, left }))
}

impl Transform for HeaderFrom {
    fn apply(&mut self, record: &mut Record) -> Result<Fate> {
        let (pairs, moves) = (&self.pairs, self.moves);
        let mut headers = Vec::with_capacity(record.headers.len() + pairs.len());
        headers.extend(record.headers.iter().cloned());
        let datum = self.side.of_mut(record);
        match &mut datum.schema {
            None => {
                let entries = object::map(&mut datum.value, PURPOSE)?;
                for (field, name) in pairs {
                    let value = object::find(entries, field).cloned().unwrap_or(Value::Null);
                    headers.push(Header { name: name.clone(), schema: None, value });
                }
                if moves {
                    entries.retain(|(key, _)| !pairs.iter().any(|(field, _)| object::is_named(key, field)));
                }
            }
            Some(schema) => {
                let values = object::fields(schema, &mut datum.value, PURPOSE)?;
                let plan = self.plans.get(schema, |schema| plan(schema, pairs, moves))?;
                if moves {
                    object::fill_all(schema, values, self.replace_null);
                }
                for ((_, name), at) in pairs.iter().zip(&plan.taken) {
                    let field = schema.fields()[*at].schema.clone();
                    let mut value = values[*at].clone();
                    if self.replace_null {
                        object::fill(&field, &mut value);
                    }
                    headers.push(Header { name: name.clone(), schema: Some(field), value });
                }
                for (to, from) in plan.left.iter().enumerate() {
                    values.swap(to, *from);
                }
                values.truncate(plan.left.len());
                schema.clone_from(&plan.schema);
            }
        }
        record.headers = Arc::new(headers);
        Ok(Fate::Keep)
    }
}

#[cfg(test)]
#[path = "tests/header_from.rs"]
mod tests;

//! `ReplaceField`: leaves fields out and gives others another name.

use std::sync::Arc;

use thalweg_config::{Importance, OptionKind, OptionTable, Settings};

use super::cache::SchemaCache;
use super::fault::invalid;
use super::object::{self, Pairs};
use super::options::{REPLACE_NULL, distinct_items, mapping, option, table};
use super::side::Side;
use super::{Fate, Made, Transform, broken};
use crate::error::Result;
use crate::record::{Field, Record, Schema, Text, Type, Value};

const PURPOSE: &str = "field replacement";

pub(super) static OPTIONS: OptionTable = table(
    "ReplaceField",
    &[
        option("exclude", OptionKind::List, Importance::Medium, "Fields to leave out; wins over include.")
            .default("")
            .check(distinct_items)
            .whole_texts()
            .aliases(&["blacklist"]),
        option("include", OptionKind::List, Importance::Medium, "Fields to keep. Unset: all that are not left out.")
            .default("")
            .check(distinct_items)
            .whole_texts()
            .aliases(&["whitelist"]),
        option("renames", OptionKind::List, Importance::Medium, "New names of fields, as old:new.")
            .default("")
            .check(|text| renames(&thalweg_config::rule::split_plain_list(text)).map(|_| ())),
        REPLACE_NULL,
    ],
    &[],
);

type Renames = Vec<(Box<str>, Arc<str>)>;

fn renames(items: &[String]) -> Result<Renames, String> {
    items
        .iter()
        .map(|item| match mapping(item)[..] {
            [old, new] => Ok((old.into(), new.into())),
            _ => Err(format!("Invalid rename mapping: {item}")),
        })
        .collect()
}

pub(super) struct ReplaceField {
    side: Side,
    rules: Rules,
    replace_null: bool,
    plans: SchemaCache<Arc<Plan>>,
}

struct Rules {
    exclude: Vec<String>,
    include: Vec<String>,
    renames: Renames,
}

struct Plan {
    schema: Arc<Schema>,
    /// Places of the kept fields, in order.
    kept: Vec<usize>,
}

impl ReplaceField {
    pub(super) fn make(side: Side, settings: &Settings) -> Made {
        let rules = Rules {
            exclude: settings.list("exclude").to_vec(),
            include: settings.list("include").to_vec(),
            renames: renames(settings.list("renames")).map_err(broken)?,
        };
        let replace_null = settings.bool("replace.null.with.default");
        Ok(Box::new(Self { side, rules, replace_null, plans: SchemaCache::default() }))
    }
}

impl Rules {
    fn keep(&self, name: &str) -> bool {
        !self.exclude.iter().any(|n| n == name) && (self.include.is_empty() || self.include.iter().any(|n| n == name))
    }

    fn new_name(&self, name: &str) -> Option<&Arc<str>> {
        self.renames.iter().rev().find(|(old, _)| &**old == name).map(|(_, new)| new)
    }

    fn plan(&self, schema: &Schema) -> Result<Arc<Plan>> {
        let old = schema.fields();
        let kept: Vec<usize> = (0..old.len()).filter(|at| self.keep(&old[*at].name)).collect();
        let named = |field: &Field| self.new_name(&field.name).unwrap_or(&field.name).clone();
        let fields: Vec<Field> =
            kept.iter().map(|at| Field { name: named(&old[*at]), schema: old[*at].schema.clone() }).collect();
        object::distinct(fields.iter().map(|f| &*f.name))?;
        Ok(Arc::new(Plan { schema: Arc::new(object::with_basics_of(schema, Type::Struct(fields))), kept }))
    }

    fn apply_to_map(&self, pairs: &mut Pairs) -> Result<()> {
        pairs.retain(|(key, _)| matches!(key, Value::String(name) if self.keep(&name.as_str())));
        let mut renamed = false;
        for (key, _) in pairs.iter_mut() {
            if let Value::String(name) = key
                && let Some(new) = self.new_name(&name.as_str())
            {
                *name = Text::Shared(new.clone());
                renamed = true;
            }
        }
        if renamed {
            for (_, new) in &self.renames {
                if pairs.iter().filter(|(key, _)| object::is_named(key, new)).count() > 1 {
                    return Err(invalid(format!("two fields would have the name {new}")));
                }
            }
        }
        Ok(())
    }
}

impl Transform for ReplaceField {
    fn apply(&mut self, record: &mut Record) -> Result<Fate> {
        let datum = self.side.of_mut(record);
        if datum.value.is_null() {
            return Ok(Fate::Keep);
        }
        let Some(schema) = &mut datum.schema else {
            self.rules.apply_to_map(object::map(&mut datum.value, PURPOSE)?)?;
            return Ok(Fate::Keep);
        };
        let values = object::fields(schema, &mut datum.value, PURPOSE)?;
        let plan = self.plans.get(schema, |schema| self.rules.plan(schema))?;
        object::fill_all(schema, values, self.replace_null);
        // Kept ones move to the front; their order stays.
        for (to, from) in plan.kept.iter().enumerate() {
            values.swap(to, *from);
        }
        values.truncate(plan.kept.len());
        schema.clone_from(&plan.schema);
        Ok(Fate::Keep)
    }
}

#[cfg(test)]
#[path = "tests/replace_field.rs"]
mod tests;

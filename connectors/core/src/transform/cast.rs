//! `Cast`: fields, or the whole key or value, as another primitive type.

use std::sync::Arc;

use thalweg_config::rule::split_plain_list;
use thalweg_config::{Importance, OptionKind, OptionTable, Settings};

use super::cache::SchemaCache;
use super::cast_value::{Target, cast};
use super::fault::in_field;
use super::object;
use super::options::{REPLACE_NULL, mapping, option, table};
use super::side::Side;
use super::{Fate, Made, Transform, broken};
use crate::convert::logical::Logical;
use crate::error::Result;
use crate::record::{Field, Record, Schema, Type, Value};

const PURPOSE: &str = "cast types";

pub(super) static OPTIONS: OptionTable = table(
    "Cast",
    &[
        option(
            "spec",
            OptionKind::List,
            Importance::High,
            "Fields and their new types, as name:type, or one type for the whole key or value. Types are int8, int16, int32, int64, float32, float64, boolean and string.",
        )
        .required()
        .check(|text| Spec::parse(&split_plain_list(text)).map(|_| ()))
        .whole_texts(),
        REPLACE_NULL,
    ],
    &[],
);

enum Spec {
    Whole(Target),
    Fields(Vec<(Arc<str>, Target)>),
}

/// Types of Connect that nothing is cast to.
const UNSUPPORTED: [&str; 4] = ["BYTES", "ARRAY", "MAP", "STRUCT"];

/// The texts are those of Connect, whole messages; some name another option than this one.
fn target(name: &str) -> Result<Target, String> {
    let name = name.trim();
    if let Some(target) = Target::named(name) {
        return Ok(target);
    }
    let upper = name.to_uppercase();
    if UNSUPPORTED.contains(&&*upper) {
        return Err(format!(
            "Cast transformation does not support casting to {upper}; supported types are \
             [INT8, INT16, INT32, INT64, FLOAT32, FLOAT64, BOOLEAN, STRING]"
        ));
    }
    Err(format!(
        "Invalid value java.lang.IllegalArgumentException: No enum constant \
         org.apache.kafka.connect.data.Schema.Type.{upper} for configuration Invalid type found in casting spec: {name}"
    ))
}

impl Spec {
    fn parse(items: &[String]) -> Result<Self, String> {
        let (mut whole, mut fields) = (None, Vec::new());
        for item in items {
            match mapping(item)[..] {
                [] => whole = Some(target("")?),
                [wanted] => whole = Some(target(wanted)?),
                [name, wanted] => fields.push((name.trim().into(), target(wanted)?)),
                _ => {
                    let all = items.join(", ");
                    return Err(format!(
                        "Invalid value [{all}] for configuration renames: Invalid rename mapping: {item}"
                    ));
                }
            }
        }
        match whole {
            Some(target) if items.len() == 1 => Ok(Self::Whole(target)),
            Some(_) => Err("Cast transformations that specify a type to cast the entire value to may only specify a \
                            single cast in their spec"
                .to_owned()),
            None if fields.is_empty() => Err("Must specify at least one field to cast.".to_owned()),
            None => Ok(Self::Fields(fields)),
        }
    }

    fn target_of(&self, name: &str) -> Option<Target> {
        match self {
            Self::Whole(_) => None,
            Self::Fields(fields) => fields.iter().rev().find(|(field, _)| &**field == name).map(|(_, target)| *target),
        }
    }
}

pub(super) struct Cast {
    side: Side,
    spec: Spec,
    replace_null: bool,
    plans: SchemaCache<Arc<Plan>>,
}

struct Plan {
    schema: Arc<Schema>,
    /// Places of the fields that change.
    places: Vec<(usize, Target)>,
}

impl Cast {
    pub(super) fn make(side: Side, settings: &Settings) -> Made {
        let spec = Spec::parse(settings.list("spec")).map_err(broken)?;
        let replace_null = settings.bool("replace.null.with.default");
        Ok(Box::new(Self { side, spec, replace_null, plans: SchemaCache::default() }))
    }
}

/// The schema of a field, or of the whole, that is cast. Name and the like are not of the new type.
fn field_schema(schema: &Schema, target: Target) -> Result<Arc<Schema>> {
    let mut new = Schema::new(target.ty());
    new.optional = schema.optional;
    new.default = schema.default.clone().map(|default| cast(Some(schema), default, target)).transpose()?;
    Ok(Arc::new(new))
}

fn plan(schema: &Schema, spec: &Spec) -> Result<Arc<Plan>> {
    let mut places = Vec::new();
    if let Spec::Whole(target) = spec {
        let mut new = Schema::clone(&*field_schema(schema, *target)?);
        // A logical type's name would promise another value than there is now.
        if Logical::of(schema).is_none() {
            new = Schema { optional: new.optional, default: new.default, ..object::with_basics_of(schema, new.ty) };
        }
        return Ok(Arc::new(Plan { schema: Arc::new(new), places }));
    }
    let mut fields = Vec::with_capacity(schema.fields().len());
    let mut default = schema.default.clone();
    for (at, field) in schema.fields().iter().enumerate() {
        let Some(target) = spec.target_of(&field.name) else {
            fields.push(field.clone());
            continue;
        };
        places.push((at, target));
        let schema = field_schema(&field.schema, target).map_err(in_field(&field.name))?;
        fields.push(Field { name: field.name.clone(), schema });
        if let Some(Value::Struct(values)) = &mut default
            && let Some(value) = values.get_mut(at)
        {
            *value = cast(Some(&field.schema), std::mem::take(value), target).map_err(in_field(&field.name))?;
        }
    }
    let mut new = object::with_basics_of(schema, Type::Struct(fields));
    new.optional = schema.optional;
    new.default = default;
    Ok(Arc::new(Plan { schema: Arc::new(new), places }))
}

impl Transform for Cast {
    fn apply(&mut self, record: &mut Record) -> Result<Fate> {
        let datum = self.side.of_mut(record);
        if datum.value.is_null() {
            return Ok(Fate::Keep);
        }
        let spec = &self.spec;
        let plan = match &datum.schema {
            Some(schema) => Some(self.plans.get(schema, |schema| plan(schema, spec))?),
            None => None,
        };
        match (spec, &datum.schema, &plan) {
            (Spec::Whole(target), schema, _) => {
                datum.value = cast(schema.as_deref(), std::mem::take(&mut datum.value), *target)?;
            }
            (Spec::Fields(_), Some(schema), Some(plan)) => {
                let values = object::fields(schema, &mut datum.value, PURPOSE)?;
                object::fill_all(schema, values, self.replace_null);
                for (at, target) in &plan.places {
                    let field = &schema.fields()[*at];
                    let value = std::mem::take(&mut values[*at]);
                    values[*at] = cast(Some(&field.schema), value, *target).map_err(in_field(&field.name))?;
                }
            }
            (Spec::Fields(fields), ..) => {
                let pairs = object::map(&mut datum.value, PURPOSE)?;
                // What is not there comes as null.
                for (name, _) in fields {
                    if object::find(pairs, name).is_none() {
                        object::put(pairs, name, Value::Null);
                    }
                }
                for (key, value) in pairs {
                    let Value::String(name) = key else { continue };
                    let name = name.as_str();
                    if let Some(target) = spec.target_of(&name) {
                        *value = cast(None, std::mem::take(value), target).map_err(in_field(&name))?;
                    }
                }
            }
        }
        if let Some(plan) = plan {
            datum.schema = Some(plan.schema.clone());
        }
        Ok(Fate::Keep)
    }
}

#[cfg(test)]
#[path = "tests/cast.rs"]
mod tests;

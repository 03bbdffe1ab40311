//! Fields that a header names are left out of a row (`drop.fields.header.name`).

use std::sync::Arc;

use super::fault::invalid;
use super::object;
use crate::error::Result;
use crate::record::{Datum, Headers, Schema, Type, Value};

/// Results kept.
const KEPT: usize = 64;

pub(super) struct DroppedFields {
    header: Box<str>,
    from_key: bool,
    /// Only optional fields go, so that readers of the old schema get along with the new one.
    compatible: bool,
    /// Last used first.
    known: Vec<Known>,
}

struct Known {
    schema: Arc<Schema>,
    names: Vec<Box<str>>,
    plan: Arc<Plan>,
}

struct Plan {
    schema: Arc<Schema>,
    /// Places of the fields that stay.
    left: Vec<usize>,
}

impl DroppedFields {
    pub(super) fn new(header: &str, from_key: bool, compatible: bool) -> Self {
        Self { header: header.into(), from_key, compatible, known: Vec::new() }
    }

    /// Without such a header nothing is dropped.
    pub(super) fn drop_from(&mut self, headers: &Headers, key: &mut Datum, value: &mut Datum) -> Result<()> {
        let Some(header) = headers.iter().find(|header| *header.name == *self.header) else { return Ok(()) };
        let wrong = || invalid(format!("the header {} is not a list of field names", self.header));
        let names = match &header.value {
            Value::Null => return Ok(()),
            Value::Array(items) => items
                .iter()
                .map(|item| match item {
                    Value::String(name) => Ok(name.as_str().into()),
                    _ => Err(wrong()),
                })
                .collect::<Result<Vec<Box<str>>>>()?,
            _ => return Err(wrong()),
        };
        if self.from_key {
            self.reduce(key, &names)?;
        }
        self.reduce(value, &names)
    }

    fn reduce(&mut self, datum: &mut Datum, names: &[Box<str>]) -> Result<()> {
        let (Some(schema), false) = (&datum.schema, datum.value.is_null()) else { return Ok(()) };
        if !matches!(schema.ty, Type::Struct(_)) {
            return Ok(());
        }
        let plan = self.plan(&schema.clone(), names);
        if plan.left.len() == schema.fields().len() {
            return Ok(());
        }
        let values = object::fields(schema, &mut datum.value, "dropping fields")?;
        for (to, from) in plan.left.iter().enumerate() {
            values.swap(to, *from);
        }
        values.truncate(plan.left.len());
        datum.schema = Some(plan.schema.clone());
        Ok(())
    }

    fn plan(&mut self, schema: &Arc<Schema>, names: &[Box<str>]) -> Arc<Plan> {
        let is_it = |known: &Known| Arc::ptr_eq(&known.schema, schema) && known.names == names;
        let at = self.known.iter().position(is_it).unwrap_or_else(|| {
            let goes = |at: &usize| {
                let field = &schema.fields()[*at];
                names.iter().any(|name| **name == *field.name) && (!self.compatible || field.schema.optional)
            };
            let left: Vec<usize> = (0..schema.fields().len()).filter(|at| !goes(at)).collect();
            let fields = left.iter().map(|at| schema.fields()[*at].clone()).collect();
            let reduced = Arc::new(object::with_basics_of(schema, Type::Struct(fields)));
            let plan = Arc::new(Plan { schema: reduced, left });
            self.known.truncate(KEPT - 1);
            self.known.push(Known { schema: schema.clone(), names: names.to_vec(), plan });
            self.known.len() - 1
        });
        self.known[..=at].rotate_right(1);
        self.known[0].plan.clone()
    }
}

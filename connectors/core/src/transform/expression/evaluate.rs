//! What an expression is for a record.

use std::cmp::Ordering;

use super::Item;
use super::parse::{Expression, Function, Operator, Variable};
use crate::error::Result;
use crate::record::{Record, Type, Value};
use crate::transform::fault::{invalid, missing};

pub(in crate::transform) fn evaluate<'a>(expression: &'a Expression, record: &'a Record) -> Result<Item<'a>> {
    let of = |expression: &'a Expression| evaluate(expression, record);
    Ok(match expression {
        Expression::Null => Item::Null,
        Expression::Bool(flag) => Item::Bool(*flag),
        Expression::Int(n) => Item::Int(*n),
        Expression::Double(n) => Item::Double(*n),
        Expression::Text(text) => Item::Text((&**text).into()),
        Expression::List(items) => Item::List(items.iter().map(of).collect::<Result<_>>()?),
        Expression::Variable(variable) => self::variable(*variable, record),
        Expression::Field(object, name) => field(of(object)?, name)?.ok_or_else(|| missing(name))?,
        Expression::Index(object, index) => match (of(object)?, of(index)?) {
            (object, Item::Text(name)) => field(object, &name)?.ok_or_else(|| missing(&name))?,
            (object, Item::Int(at)) => element(object, at)?,
            (_, index) => return Err(invalid(format!("{} cannot be an index", index.kind()))),
        },
        Expression::Not(inner) => Item::Bool(!boolean(of(inner)?)?),
        Expression::Negative(inner) => match of(inner)? {
            Item::Int(n) => Item::Int(n.checked_neg().ok_or_else(too_large)?),
            Item::Double(n) => Item::Double(-n),
            other => return Err(invalid(format!("- is not for {}", other.kind()))),
        },
        Expression::Binary(Operator::And, left, right) => Item::Bool(boolean(of(left)?)? && boolean(of(right)?)?),
        Expression::Binary(Operator::Or, left, right) => Item::Bool(boolean(of(left)?)? || boolean(of(right)?)?),
        Expression::Binary(operator, left, right) => binary(*operator, of(left)?, of(right)?)?,
        Expression::Choice(condition, yes, no) => of(if boolean(of(condition)?)? { yes } else { no })?,
        Expression::Has(inner) => Item::Bool(match &**inner {
            Expression::Field(object, name) => is_there(field(of(object)?, name)?),
            Expression::Index(object, name) => match of(name)? {
                Item::Text(name) => is_there(field(of(object)?, &name)?),
                other => return Err(invalid(format!("has does not ask for {}", other.kind()))),
            },
            _ => false,
        }),
        Expression::Call(function, object, argument) => {
            let argument = argument.as_ref().map(|argument| of(argument)).transpose()?;
            call(*function, of(object)?, argument)?
        }
        Expression::Matches(object, regex) => match of(object)? {
            Item::Null => Item::Bool(false),
            Item::Text(text) => {
                let undecided =
                    |error| invalid(format!("the expression '{}' cannot be decided: {error}", regex.as_str()));
                Item::Bool(regex.is_match(&text).map_err(undecided)?)
            }
            other => return Err(invalid(format!("matches is not for {}", other.kind()))),
        },
    })
}

fn is_there(item: Option<Item<'_>>) -> bool {
    item.is_some_and(|item| !matches!(item, Item::Null))
}

fn too_large() -> crate::error::Error {
    invalid("a number is too large")
}

fn variable(variable: Variable, record: &Record) -> Item<'_> {
    match variable {
        Variable::Key => Item::of(record.key.schema.as_deref(), &record.key.value),
        Variable::Value => Item::of(record.value.schema.as_deref(), &record.value.value),
        Variable::Topic => Item::Text((&*record.topic).into()),
        Variable::Headers => Item::Headers(&record.headers),
        Variable::KeySchema => record.key.schema.as_deref().map_or(Item::Null, Item::Schema),
        Variable::ValueSchema => record.value.schema.as_deref().map_or(Item::Null, Item::Schema),
    }
}

/// `None`: there is no such field.
fn field<'a>(object: Item<'a>, name: &str) -> Result<Option<Item<'a>>> {
    Ok(match object {
        Item::Null => Some(Item::Null),
        Item::Part(Some(schema), Value::Struct(values)) => match schema.field_index(name) {
            Some(at) => values.get(at).map(|value| Item::of(Some(&schema.fields()[at].schema), value)),
            None => None,
        },
        Item::Part(schema, Value::Map(pairs)) => {
            let value_schema = match schema.map(|schema| &schema.ty) {
                Some(Type::Map(_, values)) => Some(&**values),
                _ => None,
            };
            let found = pairs.iter().find(|(key, _)| matches!(key, Value::String(key) if key.as_str() == name));
            Some(found.map_or(Item::Null, |(_, value)| Item::of(value_schema, value)))
        }
        Item::Headers(headers) => {
            let found = headers.iter().rfind(|header| *header.name == *name);
            Some(found.map_or(Item::Null, |header| Item::of(header.schema.as_deref(), &header.value)))
        }
        Item::Schema(schema) => match name {
            "name" => Some(schema.name.as_deref().map_or(Item::Null, |name| Item::Text(name.into()))),
            "version" => Some(schema.version.map_or(Item::Null, |version| Item::Int(i64::from(version)))),
            _ => None,
        },
        other => return Err(invalid(format!("{} has no field {name}", other.kind()))),
    })
}

fn element(object: Item<'_>, at: i64) -> Result<Item<'_>> {
    let outside = || invalid(format!("the list has no element {at}"));
    let index = usize::try_from(at).map_err(|_| outside())?;
    match object {
        Item::Null => Ok(Item::Null),
        Item::List(mut items) if index < items.len() => Ok(items.swap_remove(index)),
        Item::Part(schema, Value::Array(items)) => {
            let schema = match schema.map(|schema| &schema.ty) {
                Some(Type::Array(item)) => Some(&**item),
                _ => None,
            };
            items.get(index).map(|item| Item::of(schema, item)).ok_or_else(outside)
        }
        Item::List(_) => Err(outside()),
        other => Err(invalid(format!("{} has no elements", other.kind()))),
    }
}

fn boolean(item: Item<'_>) -> Result<bool> {
    match item {
        Item::Bool(flag) => Ok(flag),
        other => Err(invalid(format!("a boolean is expected, found: {}", other.kind()))),
    }
}

fn binary<'a>(operator: Operator, left: Item<'a>, right: Item<'a>) -> Result<Item<'a>> {
    let ordered = |accepts: fn(Ordering) -> bool| match left.compare(&right) {
        Some(order) => Ok(Item::Bool(accepts(order))),
        // Nothing is less or greater than null, nor than what is no number.
        None if matches!(left, Item::Null) || matches!(right, Item::Null) => Ok(Item::Bool(false)),
        None if matches!((&left, &right), (Item::Int(_) | Item::Double(_), Item::Int(_) | Item::Double(_))) => {
            Ok(Item::Bool(false))
        }
        None => Err(invalid(format!("{} and {} have no order", left.kind(), right.kind()))),
    };
    match operator {
        Operator::Equal => Ok(Item::Bool(left.equals(&right))),
        Operator::NotEqual => Ok(Item::Bool(!left.equals(&right))),
        Operator::Less => ordered(Ordering::is_lt),
        Operator::LessOrEqual => ordered(Ordering::is_le),
        Operator::Greater => ordered(Ordering::is_gt),
        Operator::GreaterOrEqual => ordered(Ordering::is_ge),
        Operator::In => match &right {
            Item::List(items) => Ok(Item::Bool(items.iter().any(|item| item.equals(&left)))),
            Item::Part(_, Value::Array(items)) => {
                Ok(Item::Bool(items.iter().any(|item| Item::of(None, item).equals(&left))))
            }
            Item::Null => Ok(Item::Bool(false)),
            other => Err(invalid(format!("in needs a list, found: {}", other.kind()))),
        },
        Operator::Add => match (left, right) {
            (Item::Int(a), Item::Int(b)) => Ok(Item::Int(a.checked_add(b).ok_or_else(too_large)?)),
            (Item::Double(a), Item::Double(b)) => Ok(Item::Double(a + b)),
            (Item::Int(a), Item::Double(b)) => Ok(Item::Double(a as f64 + b)),
            (Item::Double(a), Item::Int(b)) => Ok(Item::Double(a + b as f64)),
            (Item::Text(a), Item::Text(b)) => Ok(Item::Text((a.into_owned() + &b).into())),
            (a, b) => Err(invalid(format!("{} and {} cannot be added", a.kind(), b.kind()))),
        },
        Operator::And | Operator::Or => Ok(Item::Null),
    }
}

fn call<'a>(function: Function, object: Item<'a>, argument: Option<Item<'a>>) -> Result<Item<'a>> {
    match (function, object, argument) {
        (Function::Size, Item::Text(text), _) => Ok(Item::Int(count(text.chars().count()))),
        (Function::Size, Item::List(items), _) => Ok(Item::Int(count(items.len()))),
        (Function::Size, Item::Part(_, Value::Array(items)), _) => Ok(Item::Int(count(items.len()))),
        (Function::Size, Item::Part(_, Value::Map(pairs)), _) => Ok(Item::Int(count(pairs.len()))),
        (Function::Size, Item::Part(_, Value::Bytes(bytes)), _) => Ok(Item::Int(count(bytes.len()))),
        (Function::Size, other, _) => Err(invalid(format!("size is not for {}", other.kind()))),
        (_, Item::Null, _) => Ok(Item::Bool(false)),
        (function, Item::Text(text), Some(Item::Text(part))) => Ok(Item::Bool(match function {
            Function::StartsWith => text.starts_with(&*part),
            Function::EndsWith => text.ends_with(&*part),
            _ => text.contains(&*part),
        })),
        (_, object, _) => Err(invalid(format!("a function of texts is not for {}", object.kind()))),
    }
}

fn count(n: usize) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

#[cfg(test)]
#[path = "../tests/expression.rs"]
mod tests;

//! Calls of functions.

use sqlparser::ast::{
    DuplicateTreatment, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Value as Literal,
};

use super::Binder;
use super::typed::Typed;
use crate::engine::fault::SqlError;
use crate::engine::functions::{Builtin, Want, builtin};
use crate::engine::kinds::kind::{Family, nvarchar};
use crate::engine::kinds::text;
use crate::types::SqlType;

/// The arguments of a call, as far as T-SQL knows them.
pub(super) struct Arguments<'a> {
    pub(super) exprs: Vec<&'a Expr>,
    pub(super) distinct: bool,
    /// `COUNT(*)`.
    pub(super) star: bool,
}

pub(super) fn arguments(function: &Function) -> Result<Arguments<'_>, SqlError> {
    let mut all = Arguments { exprs: Vec::new(), distinct: false, star: false };
    if let FunctionArguments::List(list) = &function.args {
        all.distinct = list.duplicate_treatment == Some(DuplicateTreatment::Distinct);
        for argument in &list.args {
            match argument {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => all.exprs.push(expr),
                FunctionArg::Unnamed(FunctionArgExpr::Wildcard) => all.star = true,
                other => return Err(SqlError::near(&other.to_string())),
            }
        }
    }
    Ok(all)
}

impl Binder<'_> {
    pub(super) fn function(&mut self, function: &Function) -> Result<Typed, SqlError> {
        let parts: Vec<&str> = function.name.0.iter().filter_map(|p| p.as_ident()).map(|i| i.value.as_str()).collect();
        let Some((name, qualifiers)) = parts.split_last() else { return Err(SqlError::near("(")) };
        let upper = name.to_uppercase();
        if let Some(aggregate) = self.aggregate(&upper, function)? {
            return Ok(aggregate);
        }
        let given = arguments(function)?;
        if let Some(typed) = self.choice(&upper, &given.exprs)? {
            return Ok(typed);
        }
        let is_cdc = upper.starts_with("FN_CDC_");
        let database = match qualifiers {
            [database, _] => Some((*database).to_owned()).filter(|d| !d.is_empty()),
            _ => None,
        };
        if is_cdc && let Some(typed) = self.cdc_function(&upper, database.as_deref(), &given.exprs)? {
            return Ok(typed);
        }
        if is_cdc && builtin(&upper).is_some() {
            return self.apply_noted(&upper, given.exprs, vec![database.unwrap_or_default()]);
        }
        if !qualifiers.is_empty() && qualifiers.last().is_none_or(|s| !s.eq_ignore_ascii_case("sys")) {
            return Err(SqlError::new(
                4121,
                format!(
                    "Cannot find either column \"{}\" or the user-defined function or aggregate \"{}\", or the name is ambiguous.",
                    parts[0],
                    parts.join(".")
                ),
            ));
        }
        self.apply(name, given.exprs)
    }

    /// A function of the table of functions. Errors: 195, 174.
    pub(super) fn apply(&mut self, name: &str, exprs: Vec<&Expr>) -> Result<Typed, SqlError> {
        self.apply_noted(name, exprs, Vec::new())
    }

    fn apply_noted(&mut self, name: &str, exprs: Vec<&Expr>, mut notes: Vec<String>) -> Result<Typed, SqlError> {
        let Some(function) = builtin(name) else {
            if name.starts_with("@@") {
                return Err(SqlError::unknown_variable(name));
            }
            return Err(SqlError::new(195, format!("'{name}' is not a recognized built-in function name."))
                .class(15)
                .state(10));
        };
        if !(function.least..=function.most).contains(&exprs.len()) {
            let needs = if function.least == function.most {
                function.least.to_string()
            } else {
                format!("{} to {}", function.least, function.most)
            };
            return Err(SqlError::new(
                174,
                format!("The {} function requires {needs} argument(s).", name.to_lowercase()),
            )
            .class(15));
        }
        let mut arguments = Vec::new();
        for (n, expr) in exprs.into_iter().enumerate() {
            arguments.push(self.argument(function, n, expr)?);
        }
        if function.strict && arguments.iter().any(|a| a.is_null) {
            let kinds: Vec<SqlType> = arguments.iter().map(|a| a.kind.clone()).collect();
            return Ok(Typed { kind: (function.result)(&kinds), is_null: false, ..Typed::null() });
        }
        if function.collated {
            let order =
                arguments.iter().filter(|a| a.kind.is_text()).max_by_key(|a| a.rank).map_or(text::CI, |a| a.order);
            notes.push(order.to_owned());
        }
        let kinds: Vec<SqlType> = arguments.iter().map(|a| a.kind.clone()).collect();
        let result = (function.result)(&kinds);
        let typed =
            self.call(function.name, function.eval, &arguments, result, (function.strict, function.pure), notes);
        // Of what reads the session nothing is known but that it may be missing.
        Ok(Typed { nullable: typed.nullable || !function.pure || !function.strict, ..typed })
    }

    fn argument(&mut self, function: &Builtin, n: usize, expr: &Expr) -> Result<Typed, SqlError> {
        let want = function.wants.get(n).or(function.wants.last()).copied().unwrap_or(Want::Any);
        if want == Want::Part {
            return match expr {
                Expr::Identifier(word) => Ok(Typed::text_literal(&word.value)),
                _ => Err(SqlError::new(
                    1023,
                    format!("Invalid parameter 1 specified for {}.", function.name.to_lowercase()),
                )
                .class(15)),
            };
        }
        let typed = self.value(expr)?;
        let family = typed.kind.family();
        let to = match want {
            Want::Text if family != Family::Text => nvarchar(4000),
            Want::TextOrBytes if !matches!(family, Family::Text | Family::Bytes) => nvarchar(4000),
            Want::Int
                if !matches!(typed.kind, SqlType::Int | SqlType::BigInt | SqlType::SmallInt | SqlType::TinyInt) =>
            {
                SqlType::BigInt
            }
            Want::Float => SqlType::Float,
            Want::Number if matches!(family, Family::Text) || typed.kind == SqlType::Real => SqlType::Float,
            Want::Temporal if family != Family::Temporal => {
                if matches!(family, Family::Integer | Family::Decimal | Family::Float) {
                    SqlType::DateTime
                } else if has_offset(expr) {
                    SqlType::DateTimeOffset { scale: 7 }
                } else {
                    SqlType::DateTime2 { scale: 7 }
                }
            }
            Want::Bytes if family != Family::Bytes => SqlType::VarBinary(crate::types::Length::Limited(8000)),
            _ => return Ok(typed),
        };
        Ok(self.convert(typed, &to))
    }

    /// `COALESCE`, `ISNULL`, `NULLIF`, `IIF`, `CHOOSE`: what they do not need is not evaluated.
    fn choice(&mut self, name: &str, exprs: &[&Expr]) -> Result<Option<Typed>, SqlError> {
        let wrong =
            || SqlError::new(174, format!("The {} function requires 2 argument(s).", name.to_lowercase())).class(15);
        Ok(Some(match name {
            "COALESCE" => {
                let values = exprs.iter().map(|e| self.value(e)).collect::<Result<Vec<_>, _>>()?;
                if values.len() < 2 {
                    return Err(wrong());
                }
                let nullable = values.iter().all(|v| v.nullable);
                let whens: Vec<String> =
                    values[..values.len() - 1].iter().map(|v| format!("{} IS NOT NULL", v.sql)).collect();
                Typed { nullable, ..self.choose(&whens, values) }
            }
            "ISNULL" => {
                let [first, second] = exprs else { return Err(wrong()) };
                let (first, second) = (self.value(first)?, self.value(second)?);
                let kind = if first.is_null { second.kind.clone() } else { first.kind.clone() };
                let nullable = first.nullable && second.nullable;
                let second = self.convert(second, &kind);
                Typed { sql: format!("ifnull({}, {})", first.sql, second.sql), nullable, kind, is_null: false, ..first }
            }
            "NULLIF" => {
                let [first, second] = exprs else { return Err(wrong()) };
                let (left, right) = (self.value(first)?, self.value(second)?);
                let result = left.clone();
                let (a, b) = self.comparable(left, right)?;
                Typed {
                    sql: format!("(CASE WHEN {a} = {b} THEN NULL ELSE {} END)", result.sql),
                    nullable: true,
                    ..result
                }
            }
            "IIF" => {
                let [condition, yes, no] = exprs else { return Err(wrong()) };
                let when = self.condition(condition)?;
                let results = vec![self.value(yes)?, self.value(no)?];
                self.choose(&[when], results)
            }
            "CHOOSE" => {
                let Some((index, rest)) = exprs.split_first() else { return Err(wrong()) };
                let index = self.value(index)?;
                let index = self.convert(index, &SqlType::Int).sql;
                let whens: Vec<String> = (1..=rest.len()).map(|n| format!("{index} = {n}")).collect();
                let mut results = rest.iter().map(|e| self.value(e)).collect::<Result<Vec<_>, _>>()?;
                results.push(Typed::null());
                self.choose(&whens, results)
            }
            _ => return Ok(None),
        }))
    }
}

/// A literal of a date that has an offset is a `datetimeoffset`.
fn has_offset(expr: &Expr) -> bool {
    match expr {
        Expr::Value(value) => match &value.value {
            Literal::SingleQuotedString(text) | Literal::NationalStringLiteral(text) => {
                crate::engine::kinds::temporal::parse(text).is_some_and(|m| m.offset.is_some())
            }
            _ => false,
        },
        _ => false,
    }
}

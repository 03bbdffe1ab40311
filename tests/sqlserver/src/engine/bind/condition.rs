//! Conditions: what is true, false or unknown.
//!
//! Follows "Search condition (Transact-SQL)" and "Comparison operators".

use sqlparser::ast::{BinaryOperator, Expr, InTarget, UnaryOperator};

use super::Binder;
use super::typed::{Typed, common};
use crate::engine::fault::SqlError;
use crate::engine::functions::operators;
use crate::engine::kinds::kind::nvarchar;
use crate::types::SqlType;

impl Binder<'_> {
    pub(super) fn compare(&mut self, left: &Expr, operator: &str, right: &Expr) -> Result<String, SqlError> {
        let (left, right) = (self.value(left)?, self.value(right)?);
        let (left, right) = self.comparable(left, right)?;
        Ok(format!("({left} {operator} {right})"))
    }

    /// An expression that is true, false or unknown.
    pub(crate) fn condition(&mut self, expr: &Expr) -> Result<String, SqlError> {
        match expr {
            Expr::Nested(inner) => self.condition(inner),
            Expr::BinaryOp { left, op, right } => {
                let operator = match op {
                    BinaryOperator::And => {
                        return Ok(format!("({} AND {})", self.condition(left)?, self.condition(right)?));
                    }
                    BinaryOperator::Or => {
                        return Ok(format!("({} OR {})", self.condition(left)?, self.condition(right)?));
                    }
                    BinaryOperator::Eq => "=",
                    BinaryOperator::NotEq => "<>",
                    BinaryOperator::Lt => "<",
                    BinaryOperator::LtEq => "<=",
                    BinaryOperator::Gt => ">",
                    BinaryOperator::GtEq => ">=",
                    _ => return Err(not_a_condition(expr)),
                };
                self.compare(left, operator, right)
            }
            Expr::UnaryOp { op: UnaryOperator::Not, expr } => Ok(format!("(NOT {})", self.condition(expr)?)),
            Expr::IsNull(inner) => Ok(format!("({} IS NULL)", self.value(inner)?.sql)),
            Expr::IsNotNull(inner) => Ok(format!("({} IS NOT NULL)", self.value(inner)?.sql)),
            Expr::IsDistinctFrom(left, right) => self.compare(left, "IS NOT", right),
            Expr::IsNotDistinctFrom(left, right) => self.compare(left, "IS", right),
            Expr::Between { expr, negated, low, high } => {
                let both = format!("({} AND {})", self.compare(expr, ">=", low)?, self.compare(expr, "<=", high)?);
                Ok(if *negated { format!("(NOT {both})") } else { both })
            }
            Expr::Like { negated, expr, pattern, escape_char, .. } => {
                let mut arguments = vec![self.value(expr)?, self.value(pattern)?];
                if let Some(escape) = escape_char {
                    arguments.push(self.value(escape)?);
                }
                let order = if arguments[1].rank > arguments[0].rank { arguments[1].order } else { arguments[0].order };
                let arguments: Vec<Typed> = arguments
                    .into_iter()
                    .map(|a| if a.kind.is_text() && !a.is_null { a } else { self.convert(a, &nvarchar(4000)) })
                    .collect();
                let sql =
                    self.call("LIKE", operators::like, &arguments, SqlType::Bit, (true, true), vec![order.into()]).sql;
                Ok(if *negated { format!("(NOT {sql})") } else { format!("({sql})") })
            }
            Expr::In { expr, target, negated, .. } => {
                let word = if *negated { "NOT IN" } else { "IN" };
                match target {
                    InTarget::List(list) => {
                        // One comparison for each, since every one may have a type of its own.
                        let mut any = Vec::new();
                        for item in list {
                            any.push(self.compare(expr, "=", item)?);
                        }
                        let any = format!("({})", any.join(" OR "));
                        Ok(if *negated { format!("(NOT {any})") } else { any })
                    }
                    InTarget::Subquery(query) => {
                        let left = self.value(expr)?;
                        let bound = self.subquery(query)?;
                        let [column] = &bound.columns[..] else {
                            return Err(SqlError::new(
                                116,
                                "Only one expression can be specified in the select list when the subquery is not introduced with EXISTS.",
                            ));
                        };
                        let order = if column.typed.rank > left.rank { column.typed.order } else { left.order };
                        let inner = Typed { sql: "k1".into(), ..column.typed.clone() };
                        let is_text = common(&left, &inner).is_text();
                        let (left, inner) = self.comparable(left, inner)?;
                        let inner = inner.split(" COLLATE ").next().unwrap_or("k1").to_owned();
                        let left = if is_text { format!("{left} COLLATE {order}") } else { left };
                        Ok(format!("({left} {word} (SELECT {inner} FROM ({})))", bound.sql))
                    }
                    _ => Err(SqlError::near("IN")),
                }
            }
            Expr::Exists { subquery, negated } => {
                let bound = self.subquery(subquery)?;
                let word = if *negated { "NOT EXISTS" } else { "EXISTS" };
                Ok(format!("({word} ({}))", bound.sql))
            }
            _ => Err(not_a_condition(expr)),
        }
    }
}

fn not_a_condition(expr: &Expr) -> SqlError {
    SqlError::new(
        4145,
        format!(
            "An expression of non-boolean type specified in a context where a condition is expected, near '{expr}'."
        ),
    )
    .class(15)
}

//! `ORDER BY`.
//!
//! Follows "SELECT - ORDER BY clause (Transact-SQL)".

use sqlparser::ast::{Expr, Ident, OrderBy, OrderByExpr, OrderByKind, OrderBySort, Value as Literal};

use super::Binder;
use super::query::Output;
use super::typed::Typed;
use crate::engine::fault::SqlError;
use crate::engine::kinds::text::same_name;

impl Binder<'_> {
    /// Places, aliases, columns and expressions.
    pub(super) fn order_terms(
        &mut self,
        order: &OrderBy,
        columns: &[Output],
        distinct: bool,
    ) -> Result<Vec<String>, SqlError> {
        let OrderByKind::Expressions(exprs) = &order.kind else { return Err(SqlError::near("ALL")) };
        let mut terms = Vec::new();
        for expr in exprs {
            let term = match self.place(&expr.expr, columns)? {
                Some(at) if distinct => format!("k{}", at + 1),
                Some(at) => {
                    let typed = columns[at].typed.clone();
                    self.ordering(typed)
                }
                None if distinct => {
                    return Err(SqlError::new(
                        145,
                        "ORDER BY items must appear in the select list if SELECT DISTINCT is specified.",
                    )
                    .class(15));
                }
                None => {
                    let typed = self.value(&expr.expr)?;
                    self.ordering(typed)
                }
            };
            terms.push(format!("{term}{}", direction(expr)));
        }
        Ok(terms)
    }

    /// After a set operation only the columns of the result can be named.
    pub(super) fn order_by_columns(&mut self, order: &OrderBy, columns: &[Output]) -> Result<String, SqlError> {
        let OrderByKind::Expressions(exprs) = &order.kind else { return Err(SqlError::near("ALL")) };
        let mut terms = Vec::new();
        for expr in exprs {
            let Some(at) = self.place(&expr.expr, columns)? else {
                return Err(SqlError::new(
                    104,
                    "ORDER BY items must appear in the select list if the statement contains a UNION, INTERSECT or EXCEPT operator.",
                )
                .class(15));
            };
            let typed = Typed { sql: format!("k{}", at + 1), ..columns[at].typed.clone() };
            terms.push(format!("{}{}", self.ordering(typed), direction(expr)));
        }
        Ok(format!(" ORDER BY {}", terms.join(", ")))
    }

    fn place(&mut self, expr: &Expr, columns: &[Output]) -> Result<Option<usize>, SqlError> {
        if let Expr::Value(value) = expr
            && let Literal::Number(text, _) = &value.value
        {
            let at = text.parse::<usize>().ok().filter(|n| (1..=columns.len()).contains(n));
            return match at {
                Some(at) => Ok(Some(at - 1)),
                None => {
                    let text = format!(
                        "The ORDER BY position number {text} is out of range of the number of items in the select list."
                    );
                    Err(SqlError::new(108, text).class(15))
                }
            };
        }
        if let Expr::Identifier(Ident { value, .. }) = expr {
            return Ok(columns.iter().position(|c| same_name(&c.name, value)));
        }
        // An expression of the select list by its text.
        let scopes = self.scopes.len();
        let same = self.value(expr).ok().and_then(|t| columns.iter().position(|c| c.typed.sql == t.sql));
        self.scopes.truncate(scopes);
        Ok(same)
    }

    fn ordering(&self, typed: Typed) -> String {
        let (order, is_text) = (typed.order, typed.kind.is_text());
        // A literal would be a place to SQLite.
        let sql = self.comparing(typed);
        let sql = if sql.bytes().all(|b| b.is_ascii_digit()) { format!("({sql}+0)") } else { sql };
        if is_text { format!("{sql} COLLATE {order}") } else { sql }
    }

    /// A term of `OVER (… ORDER BY …)`.
    pub(super) fn order_term(&mut self, expr: &OrderByExpr) -> Result<String, SqlError> {
        // `ORDER BY (SELECT NULL)` means no order.
        let typed = self.value(&expr.expr)?;
        Ok(format!("{}{}", self.ordering(typed), direction(expr)))
    }
}

fn direction(expr: &OrderByExpr) -> &'static str {
    match expr.options.sort {
        Some(OrderBySort::Desc) => " DESC",
        _ => "",
    }
}

//! `SELECT`, set operations, `ORDER BY`, `TOP`, `OFFSET`, common table expressions.
//!
//! Follows "SELECT (Transact-SQL)" and the pages of its clauses. Every bound query has the columns `k1`,
//! `k2`, …

use sqlparser::ast::{Expr, LimitClause, Query, SetExpr, SetOperator, SetQuantifier, Top, TopQuantity, Values};

use super::Binder;
use super::typed::Typed;
use crate::engine::fault::SqlError;
use crate::types::SqlType;

/// A column of a result.
#[derive(Debug, Clone)]
pub(crate) struct Output {
    pub(crate) name: String,
    pub(crate) typed: Typed,
    /// `SELECT @x = …`.
    pub(crate) assigned: Option<String>,
}

#[derive(Debug, Clone)]
pub(crate) struct Bound {
    pub(crate) sql: String,
    pub(crate) columns: Vec<Output>,
}

/// What limits the rows of a query.
#[derive(Clone, Default)]
pub(super) struct Limit {
    pub(super) count: Option<String>,
    pub(super) ties: bool,
    /// The count is percents of all rows.
    pub(super) percent: bool,
    pub(super) offset: Option<String>,
}

impl Binder<'_> {
    /// A query inside of a scope: its own names come first, then those around it.
    pub(super) fn subquery(&mut self, query: &Query) -> Result<Bound, SqlError> {
        let grouped = self.grouped.take();
        let bound = self.query(query);
        self.grouped = grouped;
        bound
    }

    pub(crate) fn query(&mut self, query: &Query) -> Result<Bound, SqlError> {
        let known = self.ctes.len();
        let bound = self.query_with(query);
        self.ctes.truncate(known);
        bound
    }

    fn query_with(&mut self, query: &Query) -> Result<Bound, SqlError> {
        if query.for_clause.is_some() {
            return Err(SqlError::unsupported("FOR XML and FOR JSON"));
        }
        let mut with = String::new();
        if let Some(clause) = &query.with {
            for cte in &clause.cte_tables {
                let kept = self.alias("w");
                let name = cte.alias.name.value.clone();
                let recursive = mentions(&cte.query, &name);
                let bound = if recursive { self.recursive(&name, &kept, cte)? } else { self.query(&cte.query)? };
                let mut columns = bound.columns;
                for (column, renamed) in columns.iter_mut().zip(&cte.alias.columns) {
                    column.name.clone_from(&renamed.name.value);
                }
                if let Some(at) = columns.iter().position(|c| c.name.is_empty()) {
                    return Err(SqlError::new(
                        8155,
                        format!("No column name was specified for column {} of '{name}'.", at + 1),
                    ));
                }
                let names = (1..=columns.len()).map(|n| format!("k{n}")).collect::<Vec<_>>().join(", ");
                with.push_str(if with.is_empty() { "WITH RECURSIVE " } else { ", " });
                with.push_str(&format!("{kept}({names}) AS ({})", bound.sql));
                self.ctes.push((name, columns, kept));
            }
            with.push(' ');
        }
        let limit = self.limit(query)?;
        let mut bound = match query.body.as_ref() {
            SetExpr::Select(select) => self.select(select, query.order_by.as_ref(), limit)?,
            body => {
                let mut bound = self.set(body)?;
                bound.sql = format!("SELECT * FROM ({})", bound.sql);
                if let Some(order) = &query.order_by {
                    bound.sql.push_str(&self.order_by_columns(order, &bound.columns)?);
                }
                limited(&mut bound.sql, &limit);
                bound
            }
        };
        if !with.is_empty() {
            bound.sql = format!("{with}{}", bound.sql);
        }
        Ok(bound)
    }

    /// The anchor gives the types; the rest may then name the table.
    fn recursive(&mut self, name: &str, kept: &str, cte: &sqlparser::ast::Cte) -> Result<Bound, SqlError> {
        let SetExpr::SetOperation { left, right, op: SetOperator::Union, .. } = cte.query.body.as_ref() else {
            return Err(SqlError::new(
                252,
                format!("Recursive common table expression '{name}' does not contain a top-level UNION ALL operator."),
            ));
        };
        let anchor = self.set(left)?;
        let mut columns = anchor.columns.clone();
        for (column, renamed) in columns.iter_mut().zip(&cte.alias.columns) {
            column.name.clone_from(&renamed.name.value);
        }
        self.ctes.push((name.to_owned(), columns, kept.to_owned()));
        // SQLite wants the table's name in the part's own FROM, so the part is neither closed nor converted; where
        // the real server would say 240 (types differ), the values come as they are.
        let rest = match right.as_ref() {
            SetExpr::Select(select) => self.select(select, None, Limit::default()),
            _ => Err(SqlError::unsupported("A recursive part that is no plain SELECT")),
        };
        self.ctes.pop();
        let rest = rest?.sql;
        // SQLite has no end to a recursion of its own; the server stops at 100 levels by error 530, which is not
        // modelled.
        Ok(Bound { sql: format!("{} UNION ALL {rest}", anchor.sql), columns: anchor.columns })
    }

    /// A query's rows with the types of other columns.
    fn columns_as(&self, bound: &Bound, columns: &[Output]) -> String {
        let same = bound.columns.iter().zip(columns).all(|(a, b)| a.typed.kind == b.typed.kind);
        if same {
            return format!("SELECT * FROM ({})", bound.sql);
        }
        let list: Vec<String> = bound
            .columns
            .iter()
            .zip(columns)
            .enumerate()
            .map(|(n, (from, to))| {
                let column = Typed { sql: format!("k{}", n + 1), ..from.typed.clone() };
                format!("{} AS k{}", self.convert(column, &to.typed.kind).sql, n + 1)
            })
            .collect();
        format!("SELECT {} FROM ({})", list.join(", "), bound.sql)
    }

    pub(super) fn set(&mut self, body: &SetExpr) -> Result<Bound, SqlError> {
        match body {
            // Closed, so that a limit or an order of its own stays inside.
            SetExpr::Select(select) => {
                let bound = self.select(select, None, Limit::default())?;
                Ok(Bound { sql: format!("SELECT * FROM ({})", bound.sql), ..bound })
            }
            SetExpr::Query(query) => {
                let bound = self.query(query)?;
                Ok(Bound { sql: format!("SELECT * FROM ({})", bound.sql), ..bound })
            }
            SetExpr::Values(values) => self.values(values),
            SetExpr::SetOperation { left, op, set_quantifier, right } => {
                let (left, right) = (self.set(left)?, self.set(right)?);
                if left.columns.len() != right.columns.len() {
                    return Err(SqlError::new(
                        205,
                        "All queries combined using a UNION, INTERSECT or EXCEPT operator must have an equal number of expressions in their target lists.",
                    ));
                }
                let columns: Vec<Output> = left
                    .columns
                    .iter()
                    .zip(&right.columns)
                    .map(|(a, b)| Output {
                        name: a.name.clone(),
                        assigned: None,
                        typed: Typed {
                            kind: super::typed::common(&a.typed, &b.typed),
                            nullable: a.typed.nullable || b.typed.nullable,
                            is_null: a.typed.is_null && b.typed.is_null,
                            identity: false,
                            computed: false,
                            ..a.typed.clone()
                        },
                    })
                    .collect();
                let word = match (op, set_quantifier) {
                    (SetOperator::Union, SetQuantifier::All) => "UNION ALL",
                    (SetOperator::Union, _) => "UNION",
                    (SetOperator::Intersect, _) => "INTERSECT",
                    (SetOperator::Except | SetOperator::Minus, _) => "EXCEPT",
                };
                let (left, right) = (self.columns_as(&left, &columns), self.columns_as(&right, &columns));
                Ok(Bound { sql: format!("{left} {word} {right}"), columns })
            }
            other => Err(SqlError::unsupported(format!("'{other}' as a query"))),
        }
    }

    fn values(&mut self, values: &Values) -> Result<Bound, SqlError> {
        let mut rows = Vec::new();
        for row in &values.rows {
            let row = row.content.iter().map(|e| self.value(e)).collect::<Result<Vec<_>, _>>()?;
            rows.push(row);
        }
        let Some(width) = rows.first().map(Vec::len) else { return Err(SqlError::near("VALUES")) };
        if rows.iter().any(|r| r.len() != width) {
            return Err(SqlError::new(
                10709,
                "The number of columns for each row in a table value constructor must be the same.",
            ));
        }
        let columns: Vec<Output> = (0..width)
            .map(|at| {
                let cells = rows.iter().map(|r| r[at].clone());
                let typed = cells.reduce(|a, b| Typed {
                    kind: super::typed::common(&a, &b),
                    nullable: a.nullable || b.nullable,
                    is_null: a.is_null && b.is_null,
                    ..a
                });
                Output { name: String::new(), assigned: None, typed: typed.unwrap_or_else(Typed::null) }
            })
            .collect();
        let rows: Vec<String> = rows
            .into_iter()
            .map(|row| {
                let cells: Vec<String> =
                    row.into_iter().zip(&columns).map(|(cell, c)| self.convert(cell, &c.typed.kind).sql).collect();
                format!("({})", cells.join(", "))
            })
            .collect();
        Ok(Bound { sql: values_of(&rows, columns.len()), columns })
    }

    pub(super) fn limit(&mut self, query: &Query) -> Result<Limit, SqlError> {
        let mut limit = Limit::default();
        if let Some(LimitClause::LimitOffset { offset: Some(offset), limit: None, .. }) = &query.limit_clause {
            limit.offset = Some(self.count(&offset.value)?);
        } else if query.limit_clause.is_some() {
            return Err(SqlError::near("LIMIT"));
        }
        if let Some(fetch) = &query.fetch {
            let Some(quantity) = &fetch.quantity else { return Err(SqlError::near("ROWS")) };
            limit.count = Some(self.count(quantity)?);
            if query.order_by.is_none() {
                return Err(SqlError::new(153, "Invalid usage of the option NEXT in the FETCH statement.")
                    .class(15)
                    .state(2));
            }
        }
        Ok(limit)
    }

    pub(crate) fn count(&mut self, expr: &Expr) -> Result<String, SqlError> {
        let scopes = std::mem::take(&mut self.scopes);
        let typed = self.value(expr);
        self.scopes = scopes;
        Ok(self.convert(typed?, &SqlType::BigInt).sql)
    }

    pub(super) fn top(&mut self, top: &Top, limit: &mut Limit) -> Result<(), SqlError> {
        limit.count = match &top.quantity {
            Some(TopQuantity::Expr(expr)) => Some(self.count(expr)?),
            Some(TopQuantity::Constant(n)) => Some(n.to_string()),
            None => return Err(SqlError::near("TOP")),
        };
        limit.percent = top.percent;
        if top.percent {
            // A float from 0 to 100, not a number of rows.
            if let Some(TopQuantity::Expr(expr)) = &top.quantity {
                let scopes = std::mem::take(&mut self.scopes);
                let typed = self.value(expr);
                self.scopes = scopes;
                limit.count = Some(self.convert(typed?, &SqlType::Float).sql);
            }
        }
        limit.ties = top.with_ties;
        Ok(())
    }
}

pub(super) fn limited(sql: &mut String, limit: &Limit) {
    match (&limit.count, &limit.offset) {
        (Some(count), None) => sql.push_str(&format!(" LIMIT {count}")),
        (Some(count), Some(offset)) => sql.push_str(&format!(" LIMIT {count} OFFSET {offset}")),
        (None, Some(offset)) => sql.push_str(&format!(" LIMIT -1 OFFSET {offset}")),
        (None, None) => {}
    }
}

/// Whether a query names a table; a text in it of that name does no harm.
fn mentions(query: &Query, name: &str) -> bool {
    let SetExpr::SetOperation { right, .. } = query.body.as_ref() else { return false };
    let text = right.to_string().to_lowercase();
    let name = name.to_lowercase();
    text.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == name)
}

/// Rows in parentheses as a query with the columns `k1`, `k2`, …
pub(crate) fn values_of(rows: &[String], width: usize) -> String {
    let list: Vec<String> = (1..=width).map(|n| format!("column{n} AS k{n}")).collect();
    format!("SELECT {} FROM (VALUES {})", list.join(", "), rows.join(", "))
}

//! `SELECT`, set operations, `ORDER BY`, `TOP`, `OFFSET`, common table expressions.
//!
//! Follows "SELECT (Transact-SQL)" and the pages of its clauses. Every bound query has the columns `k1`,
//! `k2`, …

use std::collections::HashSet;

use sqlparser::ast::{
    Distinct, Expr, GroupByExpr, Ident, LimitClause, OrderBy, OrderByExpr, OrderByKind, OrderBySort, Query, Select,
    SelectItem, SelectItemQualifiedWildcardKind, SetExpr, SetOperator, SetQuantifier, Top, TopQuantity,
    Value as Literal, Values,
};

use super::aggregate::has_aggregate;
use super::typed::Typed;
use super::{Binder, Scope};
use crate::engine::fault::SqlError;
use crate::engine::kinds::text::same_name;
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
#[derive(Default)]
struct Limit {
    count: Option<String>,
    ties: bool,
    /// The count is percents of all rows.
    percent: bool,
    offset: Option<String>,
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

    fn set(&mut self, body: &SetExpr) -> Result<Bound, SqlError> {
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

    fn limit(&mut self, query: &Query) -> Result<Limit, SqlError> {
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

    fn top(&mut self, top: &Top, limit: &mut Limit) -> Result<(), SqlError> {
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

    fn select(&mut self, select: &Select, order: Option<&OrderBy>, mut limit: Limit) -> Result<Bound, SqlError> {
        if let Some(top) = &select.top {
            if limit.offset.is_some() {
                return Err(
                    SqlError::new(10741, "A TOP can not be used in the same query or sub-query as a OFFSET.").class(15)
                );
            }
            self.top(top, &mut limit)?;
        }
        self.scopes.push(Scope::default());
        let outer = self.grouped.take();
        let bound = self.select_in_scope(select, order, &limit);
        self.grouped = outer;
        self.scopes.pop();
        bound
    }

    fn select_in_scope(&mut self, select: &Select, order: Option<&OrderBy>, limit: &Limit) -> Result<Bound, SqlError> {
        let from = self.from(&select.from)?;
        let mut tail = String::new();
        if let Some(condition) = &select.selection {
            tail.push_str(&format!(" WHERE {}", self.condition(condition)?));
        }
        let GroupByExpr::Expressions(group, modifiers) = &select.group_by else { return Err(SqlError::near("ALL")) };
        if !modifiers.is_empty() {
            return Err(SqlError::unsupported("GROUP BY with a modifier"));
        }
        let is_grouped = !group.is_empty()
            || select.having.is_some()
            || select.projection.iter().any(|item| match item {
                SelectItem::UnnamedExpr(e) | SelectItem::ExprWithAlias { expr: e, .. } => has_aggregate(e),
                _ => false,
            });
        if is_grouped {
            let mut keys = Vec::new();
            let mut texts = HashSet::new();
            for expr in group {
                let typed = self.value(expr)?;
                keys.push(typed.collated());
                texts.insert(typed.sql);
            }
            if !keys.is_empty() {
                tail.push_str(&format!(" GROUP BY {}", keys.join(", ")));
            }
            self.grouped = Some(texts);
        }
        if let Some(having) = &select.having {
            // SQLite wants a GROUP BY; a constant makes one group of everything, but none of nothing.
            tail.push_str(&format!(" HAVING {}", self.condition(having)?));
        }
        let columns = self.projection(&select.projection)?;
        let distinct = match &select.distinct {
            None | Some(Distinct::All) => "",
            Some(Distinct::Distinct) => "DISTINCT ",
            Some(other) => return Err(SqlError::near(&other.to_string())),
        };
        let list: Vec<String> = columns
            .iter()
            .enumerate()
            .map(|(n, c)| {
                format!("{} AS k{}", if distinct.is_empty() { c.typed.sql.clone() } else { c.typed.collated() }, n + 1)
            })
            .collect();
        let list = list.join(", ");
        let from = if from.is_empty() { String::new() } else { format!(" FROM {from}") };
        let order_terms = match order {
            Some(order) => self.order_terms(order, &columns, !distinct.is_empty())?,
            None if distinct.is_empty() && !is_grouped => self.natural_order(),
            None => Vec::new(),
        };
        let mut sql = format!("SELECT {distinct}{list}{from}{tail}");
        let limit = &match &limit.count {
            // "TOP (Transact-SQL)": the number of rows is rounded up.
            Some(percent) if limit.percent => Limit {
                count: Some(format!(
                    "(SELECT CAST(n AS INTEGER) + (n > CAST(n AS INTEGER)) FROM (SELECT COUNT(*) * {percent} / 100.0 AS n FROM ({sql})))"
                )),
                ties: limit.ties,
                ..Limit::default()
            },
            count => Limit { count: count.clone(), ties: limit.ties, percent: false, offset: limit.offset.clone() },
        };
        if limit.ties {
            let Some(count) = &limit.count else { return Err(SqlError::near("TIES")) };
            if order.is_none() {
                return Err(SqlError::new(
                    1062,
                    "The TOP N WITH TIES clause is not allowed without a corresponding ORDER BY clause.",
                ));
            }
            let terms = order_terms.join(", ");
            let names = (1..=columns.len()).map(|n| format!("k{n}")).collect::<Vec<_>>().join(", ");
            sql = format!(
                "SELECT {names} FROM (SELECT {list}, rank() OVER (ORDER BY {terms}) AS tie{from}{tail}) WHERE tie <= {count} ORDER BY tie"
            );
        } else {
            if !order_terms.is_empty() {
                sql.push_str(&format!(" ORDER BY {}", order_terms.join(", ")));
            }
            limited(&mut sql, limit);
        }
        Ok(Bound { sql, columns })
    }

    /// A single table is read in the order of its clustered index, as the real server's scan does, although
    /// nothing promises it.
    fn natural_order(&self) -> Vec<String> {
        if self.scopes.len() != 1 || self.depth > 0 {
            return Vec::new();
        }
        let [source] = self.scopes.last().map_or(&[][..], |s| &s.sources) else { return Vec::new() };
        let Some((_, table)) = &source.table else { return Vec::new() };
        match table.clustered() {
            Some(index) => index
                .key
                .iter()
                .map(|(id, desc)| format!("{}.c{id}{}", source.alias, if *desc { " DESC" } else { "" }))
                .collect(),
            None => vec![format!("{}._row", source.alias)],
        }
    }

    pub(crate) fn projection(&mut self, items: &[SelectItem]) -> Result<Vec<Output>, SqlError> {
        let mut columns = Vec::new();
        for item in items {
            match item {
                SelectItem::UnnamedExpr(expr) => {
                    let name = match expr {
                        Expr::Identifier(ident) if !ident.value.starts_with('@') => ident.value.clone(),
                        Expr::CompoundIdentifier(parts) => parts.last().map_or(String::new(), |p| p.value.clone()),
                        _ => String::new(),
                    };
                    let typed = self.value(expr)?;
                    columns.push(Output { name: self.spelled(expr).unwrap_or(name), typed, assigned: None });
                }
                SelectItem::ExprWithAlias { expr, alias } => {
                    let typed = self.value(expr)?;
                    let assigned =
                        (alias.quote_style.is_none() && alias.value.starts_with('@')).then(|| alias.value.clone());
                    columns.push(Output { name: alias.value.clone(), typed, assigned });
                }
                SelectItem::Wildcard(_) => {
                    let any = self.scopes.last().is_some_and(|s| !s.sources.is_empty());
                    if !any {
                        return Err(SqlError::new(263, "Must specify table to select from."));
                    }
                    self.star(&[], &mut columns);
                }
                SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) => {
                    let parts: Vec<String> =
                        name.0.iter().filter_map(|p| p.as_ident()).map(|i| i.value.clone()).collect();
                    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
                    let before = columns.len();
                    self.star(&parts, &mut columns);
                    if columns.len() == before {
                        let text = format!(
                            "The column prefix '{}' does not match with a table name or alias name used in the query.",
                            parts.join(".")
                        );
                        return Err(SqlError::new(107, text).class(15));
                    }
                }
                other => return Err(SqlError::near(&other.to_string())),
            }
        }
        Ok(columns)
    }

    /// The column's name as its table spells it.
    fn spelled(&self, expr: &Expr) -> Option<String> {
        let name = match expr {
            Expr::Identifier(ident) => ident,
            Expr::CompoundIdentifier(parts) => parts.last()?,
            _ => return None,
        };
        let columns = self.scopes.last()?.sources.iter().flat_map(|s| &s.columns);
        columns.into_iter().find(|c| same_name(&c.name, &name.value)).map(|c| c.name.clone())
    }

    fn star(&self, qualifiers: &[&str], columns: &mut Vec<Output>) {
        let Some(scope) = self.scopes.last() else { return };
        for source in scope.sources.iter().filter(|s| s.is_named(qualifiers)) {
            for column in source.columns.iter().filter(|c| !c.hidden) {
                columns.push(Output { name: column.name.clone(), typed: column.typed.clone(), assigned: None });
            }
        }
    }

    /// Places, aliases, columns and expressions.
    fn order_terms(&mut self, order: &OrderBy, columns: &[Output], distinct: bool) -> Result<Vec<String>, SqlError> {
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
    fn order_by_columns(&mut self, order: &OrderBy, columns: &[Output]) -> Result<String, SqlError> {
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

fn limited(sql: &mut String, limit: &Limit) {
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

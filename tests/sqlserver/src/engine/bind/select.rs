//! A `SELECT` of its own: its list, `WHERE`, `GROUP BY`, `TOP`.
//!
//! Follows "SELECT (Transact-SQL)", "SELECT clause", "GROUP BY", "TOP (Transact-SQL)".

use std::collections::HashSet;

use sqlparser::ast::{Distinct, Expr, GroupByExpr, OrderBy, Select, SelectItem, SelectItemQualifiedWildcardKind};

use super::aggregate::has_aggregate;
use super::query::{Bound, Limit, Output, limited};
use super::{Binder, Scope};
use crate::engine::fault::SqlError;
use crate::engine::kinds::text::same_name;

impl Binder<'_> {
    pub(super) fn select(
        &mut self,
        select: &Select,
        order: Option<&OrderBy>,
        mut limit: Limit,
    ) -> Result<Bound, SqlError> {
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

    pub(super) fn select_in_scope(
        &mut self,
        select: &Select,
        order: Option<&OrderBy>,
        limit: &Limit,
    ) -> Result<Bound, SqlError> {
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
            _ => limit.clone(),
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
    pub(super) fn natural_order(&self) -> Vec<String> {
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
    pub(super) fn spelled(&self, expr: &Expr) -> Option<String> {
        let name = match expr {
            Expr::Identifier(ident) => ident,
            Expr::CompoundIdentifier(parts) => parts.last()?,
            _ => return None,
        };
        let columns = self.scopes.last()?.sources.iter().flat_map(|s| &s.columns);
        columns.into_iter().find(|c| same_name(&c.name, &name.value)).map(|c| c.name.clone())
    }

    pub(super) fn star(&self, qualifiers: &[&str], columns: &mut Vec<Output>) {
        let Some(scope) = self.scopes.last() else { return };
        for source in scope.sources.iter().filter(|s| s.is_named(qualifiers)) {
            for column in source.columns.iter().filter(|c| !c.hidden) {
                columns.push(Output { name: column.name.clone(), typed: column.typed.clone(), assigned: None });
            }
        }
    }
}

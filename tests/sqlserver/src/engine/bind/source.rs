//! The `FROM` clause: tables, views, functions, derived tables, joins.

use std::sync::Arc;

use sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, Join, JoinConstraint, JoinOperator, TableAlias, TableFactor, TableWithJoins,
};

use super::query::Bound;
use super::typed::Typed;
use super::{Binder, Scope};
use crate::engine::catalogue::{Database, Table};
use crate::engine::fault::SqlError;
use crate::engine::kinds::text::{order_of, same_name};
use crate::engine::sql;
use crate::engine::sql::statement::Name;
use crate::engine::views;

/// Something with columns that a query can name.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    /// The alias, or the table's name.
    pub(crate) name: String,
    pub(crate) schema: Option<String>,
    pub(crate) database: Option<String>,
    pub(crate) columns: Vec<SourceColumn>,
    /// The name that SQLite knows it by.
    pub(crate) alias: String,
    /// The base table, for statements that change it.
    pub(crate) table: Option<(Arc<Database>, Arc<Table>)>,
}

#[derive(Debug, Clone)]
pub(crate) struct SourceColumn {
    pub(crate) name: String,
    pub(crate) typed: Typed,
    /// Not part of `*`.
    pub(crate) hidden: bool,
}

impl Source {
    /// Whether the qualifiers of a column's name (database, schema, table) mean this source.
    pub(crate) fn is_named(&self, qualifiers: &[&str]) -> bool {
        let matches =
            |own: &Option<String>, given: &str| given.is_empty() || own.as_deref().is_some_and(|o| same_name(o, given));
        match qualifiers {
            [] => true,
            [name] => same_name(&self.name, name),
            [schema, name] => same_name(&self.name, name) && matches(&self.schema, schema),
            [database, schema, name] => {
                same_name(&self.name, name) && matches(&self.schema, schema) && matches(&self.database, database)
            }
            _ => false,
        }
    }

    /// As error 8120 names it.
    pub(crate) fn title(&self) -> String {
        match &self.schema {
            Some(schema) => format!("{schema}.{}", self.name),
            None => self.name.clone(),
        }
    }
}

impl Binder<'_> {
    /// Adds the sources to the innermost scope and gives the text after FROM.
    pub(crate) fn from(&mut self, tables: &[TableWithJoins]) -> Result<String, SqlError> {
        let mut sql = String::new();
        for table in tables {
            if !sql.is_empty() {
                sql.push_str(" CROSS JOIN ");
            }
            sql.push_str(&self.joined(table)?);
        }
        Ok(sql)
    }

    fn joined(&mut self, table: &TableWithJoins) -> Result<String, SqlError> {
        let mut sql = self.factor(&table.relation)?;
        for join in &table.joins {
            sql.push_str(&self.join(join)?);
        }
        Ok(sql)
    }

    fn join(&mut self, join: &Join) -> Result<String, SqlError> {
        let (word, constraint) = match &join.join_operator {
            JoinOperator::Join(c) | JoinOperator::Inner(c) => (" JOIN ", Some(c)),
            JoinOperator::Left(c) | JoinOperator::LeftOuter(c) => (" LEFT JOIN ", Some(c)),
            JoinOperator::Right(c) | JoinOperator::RightOuter(c) => (" RIGHT JOIN ", Some(c)),
            JoinOperator::FullOuter(c) => (" FULL JOIN ", Some(c)),
            JoinOperator::CrossJoin(_) => (" CROSS JOIN ", None),
            JoinOperator::CrossApply => return self.apply_side(&join.relation, false),
            JoinOperator::OuterApply => return self.apply_side(&join.relation, true),
            _ => return Err(SqlError::unsupported("This kind of join")),
        };
        let before = self.scopes.last().map_or(0, |s| s.sources.len());
        let right = self.factor(&join.relation)?;
        // What an outer join fills up is nullable.
        if let Some(scope) = self.scopes.last_mut() {
            let (from, to) = match word {
                " LEFT JOIN " => (before, scope.sources.len()),
                " RIGHT JOIN " => (0, before),
                " FULL JOIN " => (0, scope.sources.len()),
                _ => (0, 0),
            };
            for column in scope.sources[from..to].iter_mut().flat_map(|s| &mut s.columns) {
                column.typed.nullable = true;
            }
        }
        let on = match constraint {
            Some(JoinConstraint::On(condition)) => format!(" ON {}", self.condition(condition)?),
            Some(_) => return Err(SqlError::near("JOIN")),
            None => String::new(),
        };
        Ok(format!("{word}{right}{on}"))
    }

    pub(crate) fn factor(&mut self, factor: &TableFactor) -> Result<String, SqlError> {
        match factor {
            TableFactor::Table { name, alias, args, with_hints, version, .. } => {
                if version.is_some() {
                    return Err(SqlError::unsupported("FOR SYSTEM_TIME"));
                }
                let Some(name) = sql::name_of(name) else { return Err(SqlError::unsupported("A name of four parts")) };
                let exprs = match args {
                    Some(args) => Some(plain(&args.args)?),
                    None => None,
                };
                let hints: Vec<String> = with_hints.iter().map(|h| h.to_string().to_uppercase()).collect();
                self.named(&name, alias.as_ref(), exprs, &hints)
            }
            TableFactor::Function { name, args, alias, .. } => {
                let Some(name) = sql::name_of(name) else { return Err(SqlError::unsupported("A name of four parts")) };
                let exprs = plain(args)?;
                self.named(&name, alias.as_ref(), Some(exprs), &[])
            }
            TableFactor::Derived { subquery, alias, .. } => {
                let bound = self.subquery(subquery)?;
                let name = alias.as_ref().map_or(String::new(), |a| a.name.value.clone());
                self.derived(&name, alias.as_ref(), bound)
            }
            TableFactor::NestedJoin { table_with_joins, .. } => Ok(format!("({})", self.joined(table_with_joins)?)),
            other => Err(SqlError::unsupported(format!("'{other}' in FROM"))),
        }
    }

    fn named(
        &mut self,
        name: &Name,
        alias: Option<&TableAlias>,
        exprs: Option<Vec<&Expr>>,
        hints: &[String],
    ) -> Result<String, SqlError> {
        let title = alias.map_or(name.object.as_str(), |a| &a.name.value).to_owned();
        if let Some(exprs) = exprs {
            return match self.change_function(name, &exprs)? {
                Some(bound) => self.derived(&title, alias, bound),
                None => Err(SqlError::unknown_object(&name.text())),
            };
        }
        if name.schema.is_none()
            && let Some((_, columns, kept)) = self.ctes.iter().rev().find(|(n, ..)| same_name(n, &name.object)).cloned()
        {
            let alias_name = self.alias("t");
            let source = source_of(
                &title,
                &alias_name,
                &columns.iter().map(|c| (c.name.clone(), c.typed.clone())).collect::<Vec<_>>(),
            );
            self.add(source);
            return Ok(format!("{kept} AS {alias_name}"));
        }
        if let Some((database, table)) = self.table(name)? {
            return self.base(&title, alias.is_some(), &database, &table, hints);
        }
        let database = self.database(name)?;
        if let Some(view) = database.view(name.schema(), &name.object).cloned() {
            if self.depth > 32 {
                return Err(SqlError::new(
                    217,
                    "Maximum stored procedure, function, trigger, or view nesting level exceeded (limit 32).",
                ));
            }
            let scopes = std::mem::take(&mut self.scopes);
            self.depth += 1;
            let bound = self.query(&view.query);
            self.depth -= 1;
            self.scopes = scopes;
            let mut bound = bound?;
            for (column, name) in bound.columns.iter_mut().zip(&view.columns) {
                column.name.clone_from(name);
            }
            return self.derived(&title, alias, bound);
        }
        let rows = views::find(self, &database, name)?;
        let Some(mut rows) = rows else {
            // A change table that is gone is told of with its database, others as they were written.
            let is_cdc = name.schema.as_deref().is_some_and(|s| same_name(s, "cdc"));
            let full = Name { database: Some(database.name.clone()), ..name.clone() };
            return Err(SqlError::unknown_object(&if is_cdc { full.text() } else { name.text() }));
        };
        let kept = self.alias("v");
        rows.kept.clone_from(&kept);
        let alias_name = self.alias("t");
        let order = order_of(&database.collation);
        let columns = rows.columns.iter().enumerate().map(|(n, column)| {
            let typed = Typed {
                nullable: column.nullable,
                order,
                rank: 1,
                ..Typed::new(format!("{alias_name}.k{}", n + 1), column.kind.clone())
            };
            SourceColumn { name: column.name.to_owned(), typed, hidden: false }
        });
        let source = Source {
            name: title,
            schema: name.schema.clone(),
            database: Some(database.name.clone()),
            columns: columns.collect(),
            alias: alias_name.clone(),
            table: None,
        };
        self.prepared.push(rows);
        self.add(source);
        Ok(format!("temp.{kept} AS {alias_name}"))
    }

    /// A base table; also for statements that change it.
    pub(crate) fn base(
        &mut self,
        title: &str,
        has_alias: bool,
        database: &Arc<Database>,
        table: &Arc<Table>,
        hints: &[String],
    ) -> Result<String, SqlError> {
        self.require("SELECT", database, table)?;
        self.reads(table, hints);
        let seen = self.seen(table);
        let alias = self.alias("t");
        let mut source = self.table_source(title, &alias, database, table)?;
        if !has_alias {
            source.schema = Some(table.schema.clone());
            source.database = Some(database.name.clone());
        }
        let kept = table.kept_name();
        self.add(source);
        Ok(format!("(SELECT * FROM {kept} WHERE {seen}) AS {alias}"))
    }

    /// The columns of a table under an alias of SQLite's; computed columns are written out.
    pub(crate) fn table_source(
        &mut self,
        title: &str,
        alias: &str,
        database: &Arc<Database>,
        table: &Arc<Table>,
    ) -> Result<Source, SqlError> {
        let mut source = Source {
            name: title.to_owned(),
            schema: None,
            database: None,
            columns: Vec::new(),
            alias: alias.to_owned(),
            table: Some((database.clone(), table.clone())),
        };
        for column in table.kept() {
            let typed = Typed {
                nullable: column.nullable,
                order: column.order(),
                rank: 1,
                identity: column.identity.is_some(),
                ..Typed::new(format!("{alias}.{}", column.kept_name()), column.kind.clone())
            };
            source.columns.push(SourceColumn { name: column.name.clone(), typed, hidden: column.hidden });
        }
        for (at, column) in table.columns.iter().enumerate() {
            let Some(computed) = &column.computed else { continue };
            let expr = sql::expression(&computed.text)?;
            let scopes = std::mem::replace(&mut self.scopes, vec![Scope { sources: vec![source.clone()] }]);
            let grouped = self.grouped.take();
            let typed = self.value(&expr);
            self.scopes = scopes;
            self.grouped = grouped;
            let typed = Typed { computed: true, identity: false, nullable: column.nullable, rank: 1, ..typed? };
            let place = at.min(source.columns.len());
            source.columns.insert(place, SourceColumn { name: column.name.clone(), typed, hidden: column.hidden });
        }
        Ok(source)
    }

    fn derived(&mut self, title: &str, alias: Option<&TableAlias>, bound: Bound) -> Result<String, SqlError> {
        let alias_name = self.alias("t");
        let mut columns: Vec<(String, Typed)> =
            bound.columns.iter().map(|c| (c.name.clone(), c.typed.clone())).collect();
        if let Some(alias) = alias {
            if alias.columns.len() > columns.len() {
                let text = format!("'{title}' has more columns than were specified in the column list.");
                return Err(SqlError::new(8158, text));
            }
            for (column, renamed) in columns.iter_mut().zip(&alias.columns) {
                column.0.clone_from(&renamed.name.value);
            }
        }
        if let Some(at) = columns.iter().position(|c| c.0.is_empty()) {
            return Err(SqlError::new(
                8155,
                format!("No column name was specified for column {} of '{title}'.", at + 1),
            ));
        }
        let source = source_of(title, &alias_name, &columns);
        self.add(source);
        Ok(format!("({}) AS {alias_name}", bound.sql))
    }

    pub(super) fn add(&mut self, source: Source) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.sources.push(source);
        }
    }
}

/// Columns `k1`, `k2`, … of something that was a query.
pub(crate) fn source_of(title: &str, alias: &str, columns: &[(String, Typed)]) -> Source {
    let columns = columns.iter().enumerate().map(|(n, (name, typed))| SourceColumn {
        name: name.clone(),
        typed: Typed { sql: format!("{alias}.k{}", n + 1), is_null: false, rank: typed.rank.max(1), ..typed.clone() },
        hidden: false,
    });
    Source {
        name: title.to_owned(),
        schema: None,
        database: None,
        columns: columns.collect(),
        alias: alias.to_owned(),
        table: None,
    }
}

pub(super) fn plain(arguments: &[FunctionArg]) -> Result<Vec<&Expr>, SqlError> {
    arguments
        .iter()
        .map(|a| match a {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Ok(expr),
            other => Err(SqlError::near(&other.to_string())),
        })
        .collect()
}

//! What a table is made of, from how a statement writes it; and the texts of definitions as the catalog
//! views show them.

use std::sync::Arc;
use std::sync::atomic::AtomicI64;

use sqlparser::ast::{
    BinaryOperator, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, UnaryOperator, Value as Literal,
};

use super::batch::{Frame, Runner};
use crate::engine::bind::{Output, Scope};
use crate::engine::catalogue::{Check, Column, Computed, Database, Default, ForeignKey, Identity, Index, Table};
use crate::engine::fault::{Outcome, SqlError};
use crate::engine::kinds::kind::SYSNAME;
use crate::engine::kinds::text::same_name;
use crate::engine::sql::statement::{ColumnSpec, ConstraintKind, ConstraintSpec, IndexSpec, Name, TableBody};

/// An expression as the server writes it down: numbers in parentheses, names in brackets, functions in lower
/// case, all of it in parentheses. The documents do not tell the rules; they are those of scripted objects.
pub(crate) fn definition(expr: &Expr) -> String {
    format!("({})", inner(expr))
}

fn inner(expr: &Expr) -> String {
    match expr {
        Expr::Nested(e) => inner(e),
        Expr::Value(value) => match &value.value {
            Literal::Number(text, _) => format!("({text})"),
            Literal::SingleQuotedString(text) => format!("'{}'", text.replace('\'', "''")),
            Literal::NationalStringLiteral(text) => format!("N'{}'", text.replace('\'', "''")),
            Literal::HexStringLiteral(text) => format!("0x{text}"),
            Literal::Null => "NULL".into(),
            other => other.to_string(),
        },
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => match expr.as_ref() {
            Expr::Value(value) => match &value.value {
                Literal::Number(text, _) => format!("(-{text})"),
                other => format!("-{other}"),
            },
            other => format!("-{}", inner(other)),
        },
        Expr::Identifier(ident) if ident.value.starts_with('@') => ident.value.clone(),
        Expr::Identifier(ident)
            if ident.quote_style.is_none() && ident.value.eq_ignore_ascii_case("current_timestamp") =>
        {
            "getdate()".into()
        }
        Expr::Identifier(ident) => format!("[{}]", ident.value.replace(']', "]]")),
        Expr::BinaryOp { left, op, right } => {
            let blank = if matches!(op, BinaryOperator::And | BinaryOperator::Or) { " " } else { "" };
            format!("{}{blank}{op}{blank}{}", inner(left), inner(right))
        }
        Expr::Function(function) => {
            let name = function.name.to_string();
            if name.eq_ignore_ascii_case("current_timestamp") {
                return "getdate()".into();
            }
            let arguments = match &function.args {
                FunctionArguments::List(list) => list
                    .args
                    .iter()
                    .map(|a| match a {
                        FunctionArg::Unnamed(FunctionArgExpr::Expr(e)) => inner(e),
                        other => other.to_string(),
                    })
                    .collect::<Vec<_>>()
                    .join(","),
                _ => String::new(),
            };
            format!("{}({arguments})", name.to_lowercase())
        }
        Expr::IsNull(e) => format!("{} IS NULL", inner(e)),
        Expr::IsNotNull(e) => format!("{} IS NOT NULL", inner(e)),
        other => other.to_string(),
    }
}

impl Runner {
    /// A new table, without a place in SQLite yet.
    pub(super) fn built(&self, database: &Database, name: &Name, body: &TableBody, frame: &Frame) -> Outcome<Table> {
        let mut table = Table {
            id: self.engine.object_id(),
            schema: name.schema.clone().unwrap_or_else(|| "dbo".into()),
            name: name.object.clone(),
            columns: Vec::new(),
            indexes: Vec::new(),
            foreign_keys: Vec::new(),
            checks: Vec::new(),
            shipped: false,
            created: self.engine.local_now(),
            next_column: 1,
            period: None,
            history: None,
            is_history: false,
        };
        self.extend(database, &mut table, body, frame)?;
        if let Some((start, end)) = &body.period {
            let id = |name: &str| table.column(name).map(|c| c.id).ok_or_else(|| SqlError::unknown_column(name));
            table.period = Some((id(start)?, id(end)?));
        }
        Ok(table)
    }

    /// Adds columns, constraints and indexes. Errors: 2705, 1779, 1911, 8111, 1750 and those of types.
    pub(super) fn extend(
        &self,
        database: &Database,
        table: &mut Table,
        body: &TableBody,
        frame: &Frame,
    ) -> Outcome<()> {
        for spec in &body.columns {
            if table.column(&spec.name).is_some() {
                let text = format!(
                    "Column names in each table must be unique. Column name '{}' in table '{}' is specified more than once.",
                    spec.name, table.name
                );
                return Err(SqlError::new(2705, text).state(3).into());
            }
            let column = self.column(database, table, spec, frame)?;
            table.columns.push(column);
            table.next_column += 1;
        }
        for constraint in &body.constraints {
            self.constrain(database, table, constraint)?;
        }
        for index in &body.indexes {
            self.add_index(table, index)?;
        }
        Ok(())
    }

    pub(super) fn column(
        &self,
        database: &Database,
        table: &Table,
        spec: &ColumnSpec,
        frame: &Frame,
    ) -> Outcome<Column> {
        let mut binder = self.binder(frame);
        let mut column = Column::plain(table.next_column, &spec.name, SYSNAME, &database.collation);
        match (&spec.kind, &spec.computed) {
            (Some(name), _) => {
                column.kind = binder.kind(name)?;
                let alias = database.alias_type(name.name.schema.as_deref(), &name.name.object);
                let known = crate::types::SqlType::parse(&name.name.object, &name.sizes)?.is_some();
                if let Some(alias) = alias.filter(|_| !known || name.name.schema.is_some()) {
                    column.alias = Some(alias.id);
                    column.nullable = alias.nullable;
                } else if same_name(&name.name.object, "sysname") {
                    column.alias = Some(256);
                    column.nullable = false;
                }
                if column.kind == crate::types::SqlType::RowVersion {
                    column.nullable = false;
                }
            }
            (None, Some((expr, persisted))) => {
                // The type is that of the expression over the columns before.
                let database = Arc::new(database.clone());
                let source = binder.table_source(&table.name, "t", &database, &Arc::new(table.clone()))?;
                binder.scopes.push(Scope { sources: vec![source] });
                let typed = binder.value(expr)?;
                column.kind = typed.kind;
                column.nullable = typed.nullable;
                column.computed = Some(Computed { text: definition(expr), persisted: *persisted });
            }
            (None, None) => return Err(SqlError::near(&spec.name).into()),
        }
        column.collation =
            column.kind.is_text().then(|| spec.collation.clone().unwrap_or_else(|| database.collation.clone()));
        if let Some(nullable) = spec.nullable {
            column.nullable = nullable;
        }
        if let Some((seed, increment)) = spec.identity {
            column.identity = Some(Identity { seed, increment, last: Arc::new(AtomicI64::new(i64::MIN)) });
            column.nullable = false;
        }
        if let Some((name, expr)) = &spec.default {
            column.default = Some(self.default(table, &spec.name, name.as_deref(), expr));
        }
        column.rowguid = spec.rowguid;
        column.sparse = spec.sparse;
        column.hidden = spec.hidden;
        column.generated = spec.generated;
        if spec.generated != 0 {
            column.nullable = false;
        }
        Ok(column)
    }

    pub(super) fn default(&self, table: &Table, column: &str, name: Option<&str>, expr: &Expr) -> Default {
        let id = self.engine.object_id();
        let made = || format!("DF__{:.9}__{:.5}__{id:08X}", table.name, column);
        Default {
            id,
            name: name.map_or_else(made, str::to_owned),
            text: definition(expr),
            named_by_user: name.is_some(),
        }
    }

    fn constrain(&self, database: &Database, table: &mut Table, constraint: &ConstraintSpec) -> Outcome<()> {
        let id = self.engine.object_id();
        let made =
            |prefix: &str| constraint.name.clone().unwrap_or_else(|| format!("{prefix}__{:.9}__{id:08X}", table.name));
        match &constraint.what {
            ConstraintKind::Key { primary, clustered, columns } => {
                if *primary && table.primary_key().is_some() {
                    let text = format!("Table '{}' already has a primary key defined on it.", table.name);
                    return Err(SqlError::new(1779, text).state(0).into());
                }
                let name = made(if *primary { "PK" } else { "UQ" });
                let clustered = clustered.unwrap_or(*primary && table.clustered().is_none());
                let key = key_of(table, columns)?;
                if *primary {
                    for column in &mut table.columns {
                        if key.iter().any(|(id, _)| *id == column.id) {
                            column.nullable = false;
                        }
                    }
                }
                let index = Index {
                    id: next_index(table, clustered),
                    constraint: id,
                    name,
                    unique: true,
                    clustered,
                    primary: *primary,
                    key,
                    include: Vec::new(),
                    filter: None,
                };
                table.indexes.push(index);
            }
            ConstraintKind::Check(expr) => {
                let check = Check { id, name: made("CK"), text: definition(expr) };
                table.checks.push(check);
            }
            ConstraintKind::Default(expr, column) => {
                let default = self.default(table, column, constraint.name.as_deref(), expr);
                let Some(column) = table.columns.iter_mut().find(|c| same_name(&c.name, column)) else {
                    return Err(SqlError::new(
                        1752,
                        format!(
                            "Column '{column}' in table '{}' is invalid for creating a default constraint.",
                            table.name
                        ),
                    )
                    .into());
                };
                if column.default.is_some() {
                    return Err(SqlError::new(1781, "Column already has a DEFAULT bound to it.").into());
                }
                column.default = Some(default);
            }
            ConstraintKind::Foreign { columns, table: other, referred, on_delete } => {
                let name = made("FK");
                let schema = other.schema();
                let own = same_name(schema, &table.schema) && same_name(&other.object, &table.name);
                let found = if own { Some(&*table) } else { database.table(schema, &other.object).map(|t| &**t) };
                let Some(found) = found else {
                    let text = format!("Foreign key '{name}' references invalid table '{}'.", other.text());
                    return Err(SqlError::new(1767, text).state(0).into());
                };
                let referred: Vec<i32> = if referred.is_empty() {
                    found.primary_key().map_or(Vec::new(), |k| k.key.iter().map(|(id, _)| *id).collect())
                } else {
                    ids_of(found, referred)?
                };
                let has_key = found.indexes.iter().any(|i| {
                    i.unique && i.key.len() == referred.len() && i.key.iter().all(|(k, _)| referred.contains(k))
                });
                if !has_key {
                    let text = format!(
                        "There are no primary or candidate keys in the referenced table '{}' that match the referencing column list in the foreign key '{name}'.",
                        other.text()
                    );
                    return Err(SqlError::new(1776, text).state(0).into());
                }
                let key = ForeignKey {
                    id,
                    name,
                    columns: ids_of(table, columns)?,
                    table: found.id,
                    referred,
                    on_delete: *on_delete,
                };
                table.foreign_keys.push(key);
            }
        }
        Ok(())
    }

    pub(super) fn add_index(&self, table: &mut Table, spec: &IndexSpec) -> Outcome<()> {
        if table.indexes.iter().any(|i| same_name(&i.name, &spec.name)) {
            let text = format!(
                "The operation failed because an index or statistics with name '{}' already exists on table '{}.{}'.",
                spec.name, table.schema, table.name
            );
            return Err(SqlError::new(1913, text).into());
        }
        if spec.clustered && table.clustered().is_some() {
            let text =
                format!("Cannot create more than one clustered index on table '{}.{}'.", table.schema, table.name);
            return Err(SqlError::new(1902, text).state(3).into());
        }
        let index = Index {
            id: next_index(table, spec.clustered),
            constraint: 0,
            name: spec.name.clone(),
            unique: spec.unique,
            clustered: spec.clustered,
            primary: false,
            key: key_of(table, &spec.columns)?,
            include: ids_of(table, &spec.include)?,
            filter: spec.filter.as_ref().map(definition),
        };
        table.indexes.push(index);
        Ok(())
    }

    /// Makes the SQLite table and its indexes.
    pub(crate) fn make(&self, table: &Table) -> Outcome<()> {
        let columns: Vec<String> = table.kept().map(kept_column).collect();
        self.db.execute_batch(&format!(
            "CREATE TABLE {} (_row INTEGER PRIMARY KEY, _from INTEGER, _to INTEGER, {})",
            table.kept_name(),
            columns.join(", ")
        ))?;
        for index in &table.indexes {
            self.make_index(table, index)?;
        }
        Ok(())
    }

    pub(super) fn make_index(&self, table: &Table, index: &Index) -> Outcome<()> {
        // Computed columns are not kept, so an index on them is one of the catalogue only.
        let columns: Option<Vec<String>> = index
            .key
            .iter()
            .map(|(id, desc)| {
                table
                    .kept()
                    .find(|c| c.id == *id)
                    .map(|c| format!("{}{}", c.kept_name(), if *desc { " DESC" } else { "" }))
            })
            .collect();
        if let Some(columns) = columns {
            let kept = table.kept_name();
            if index.unique && index.filter.is_none() {
                let key: Vec<String> = index.key.iter().map(|(id, _)| format!("c{id}")).collect();
                let text =
                    format!("SELECT 1 FROM {kept} WHERE _to IS NULL GROUP BY {} HAVING count(*) > 1", key.join(", "));
                if self.db.prepare(&text)?.exists([])? {
                    let text = format!(
                        "The CREATE UNIQUE INDEX statement terminated because a duplicate key was found for the object name '{}.{}' and the index name '{}'.",
                        table.schema, table.name, index.name
                    );
                    return Err(SqlError::new(1505, text).into());
                }
            }
            self.db.execute_batch(&format!(
                "CREATE INDEX IF NOT EXISTS i{}_{} ON {kept} ({})",
                table.id,
                index.id,
                columns.join(", ")
            ))?;
        }
        Ok(())
    }

    /// A table variable, or a temporary table.
    pub(super) fn make_temporary(&mut self, table: Table) -> Outcome<()> {
        self.make(&table)?;
        self.state.change(|s| s.temporary.push(Arc::new(table)));
        Ok(())
    }

    pub(super) fn declare_table(&mut self, name: &str, body: &TableBody, frame: &mut Frame) -> Outcome<()> {
        let world = self.engine.world();
        let Some(tempdb) = world.database_by_id(2) else { return Ok(()) };
        let table = self.built(&tempdb, &Name::local(name), body, frame)?;
        frame.tables.push(name.to_owned());
        self.make_temporary(table)
    }

    /// A table with the columns of a query.
    pub(super) fn create_from(&mut self, name: &Name, columns: &[Output], frame: &Frame) -> Outcome<()> {
        let binder = self.binder(frame);
        let database =
            binder.database(&Name { database: name.database.clone(), schema: None, object: String::new() })?;
        if binder.table(name)?.is_some() {
            return Err(SqlError::new(
                2714,
                format!("There is already an object named '{}' in the database.", name.object),
            )
            .state(6)
            .into());
        }
        drop(binder);
        let mut table = self.built(&database, name, &TableBody::default(), frame)?;
        for column in columns {
            if column.name.is_empty() {
                let text = "An object or column name is missing or empty. For SELECT INTO statements, verify each column has a name.";
                return Err(SqlError::new(1038, text).class(15).into());
            }
            let mut made =
                Column::plain(table.next_column, &column.name, column.typed.kind.clone(), &database.collation);
            made.nullable = column.typed.nullable;
            if column.typed.identity {
                made.identity = Some(Identity { seed: 1, increment: 1, last: Arc::new(AtomicI64::new(i64::MIN)) });
            }
            table.next_column += 1;
            table.columns.push(made);
        }
        if table.is_temporary() {
            return self.make_temporary(table);
        }
        self.make(&table)?;
        let mut changed = (*database).clone();
        changed.tables.insert(table.id, Arc::new(table));
        self.engine.put(changed);
        Ok(())
    }
}

/// How SQLite knows a column: without a type, so that it keeps values as they come.
pub(super) fn kept_column(column: &Column) -> String {
    if column.kind.is_text() {
        format!("{} COLLATE {}", column.kept_name(), column.order())
    } else {
        column.kept_name()
    }
}

pub(super) fn ids_of(table: &Table, names: &[String]) -> Result<Vec<i32>, SqlError> {
    names.iter().map(|n| table.column(n).map(|c| c.id).ok_or_else(|| missing(n))).collect()
}

fn key_of(table: &Table, names: &[(String, bool)]) -> Result<Vec<(i32, bool)>, SqlError> {
    names.iter().map(|(n, desc)| table.column(n).map(|c| (c.id, *desc)).ok_or_else(|| missing(n))).collect()
}

fn missing(name: &str) -> SqlError {
    SqlError::new(1911, format!("Column name '{name}' does not exist in the target table or view."))
}

/// The clustered index is 1, others count from 2.
fn next_index(table: &Table, clustered: bool) -> i32 {
    if clustered { 1 } else { table.indexes.iter().map(|i| i.id).max().unwrap_or(1).max(1) + 1 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::sql::expression;

    #[test]
    fn t_57_definitions_are_written_as_the_server_does() {
        for (text, kept) in [
            ("1", "((1))"),
            ("-1.5", "((-1.5))"),
            ("'a''(b)'", "('a''(b)')"),
            ("N'x'", "(N'x')"),
            ("GETDATE()", "(getdate())"),
            ("1+2", "((1)+(2))"),
            ("NULL", "(NULL)"),
            ("(0)", "((0))"),
            ("amount > 0", "([amount]>(0))"),
        ] {
            assert_eq!(definition(&expression(text).unwrap()), kept, "{text}");
        }
    }
}

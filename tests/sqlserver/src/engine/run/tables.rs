//! Statements that define tables.
//!
//! Follows "CREATE TABLE (Transact-SQL)", "ALTER TABLE (Transact-SQL)", "DROP TABLE (Transact-SQL)" and "Temporal
//! tables".

use std::sync::Arc;

use rusqlite::params_from_iter;

use super::batch::{Frame, Runner};
use super::define::gone;
use super::schema::kept_column;
use crate::engine::bind::{Scope, Typed};
use crate::engine::catalogue::{Database, Table};
use crate::engine::fault::{Outcome, SqlError};
use crate::engine::kinds::text::same_name;
use crate::engine::sql;
use crate::engine::sql::statement::{ColumnSpec, Name, TableBody};
use crate::session::Answers;

impl Runner {
    pub(super) fn create_table(
        &mut self,
        name: &Name,
        body: &TableBody,
        frame: &Frame,
        answers: &mut dyn Answers,
    ) -> Outcome<()> {
        let database = self.database_of(name, frame)?;
        if name.object.starts_with('#') {
            if self.state.temporary(&name.object).is_some() {
                return Err(SqlError::new(
                    2714,
                    format!("There is already an object named '{}' in the database.", name.object),
                )
                .state(6)
                .into());
            }
            let table = self.built(&database, name, body, frame)?;
            return self.make_temporary(table);
        }
        if !self.engine.world().may(&database, &self.state.login.user, "CREATE TABLE", None) {
            return Err(SqlError::new(262, format!("CREATE TABLE permission denied in database '{}'.", database.name))
                .class(14)
                .into());
        }
        self.change(database.id, answers, |runner, database| {
            let schema = name.schema();
            let Some(schema) = database.schema(schema).map(|s| s.name.clone()) else {
                let text = format!("The specified schema name \"{schema}\" either does not exist or you do not have permission to use it.");
                return Err(SqlError::new(2760, text).into());
            };
            if database.table(&schema, &name.object).is_some() || database.view(&schema, &name.object).is_some() {
                return Err(SqlError::new(2714, format!("There is already an object named '{}' in the database.", name.object)).state(6).into());
            }
            let full = Name { schema: Some(schema), ..name.clone() };
            let mut table = runner.built(database, &full, body, frame)?;
            runner.make(&table)?;
            if let Some(history) = &body.versioned {
                runner.version(database, &mut table, history.as_ref())?;
            }
            database.tables.insert(table.id, Arc::new(table));
            Ok(())
        })
    }

    /// Gives a table its history table ("Create a system-versioned temporal table").
    pub(super) fn version(&self, database: &mut Database, table: &mut Table, history: Option<&Name>) -> Outcome<()> {
        if table.period.is_none() {
            let text = format!(
                "Cannot set SYSTEM_VERSIONING to ON when SYSTEM_TIME period is not defined in table '{}'.",
                table.name
            );
            return Err(SqlError::new(13510, text).into());
        }
        let name = history.map_or_else(|| format!("MSSQL_TemporalHistoryFor_{}", table.id), |h| h.object.clone());
        let schema = history.and_then(|h| h.schema.clone()).unwrap_or_else(|| table.schema.clone());
        if let Some(existing) = database.table(&schema, &name) {
            table.history = Some(existing.id);
            return Ok(());
        }
        let mut kept = Table {
            id: self.engine.object_id(),
            schema,
            name,
            indexes: Vec::new(),
            foreign_keys: Vec::new(),
            checks: Vec::new(),
            period: None,
            history: None,
            is_history: true,
            ..table.clone()
        };
        for column in &mut kept.columns {
            column.identity = None;
            column.default = None;
            column.generated = 0;
            column.hidden = false;
        }
        self.make(&kept)?;
        table.history = Some(kept.id);
        database.tables.insert(kept.id, Arc::new(kept));
        Ok(())
    }

    pub(super) fn add_to(
        &mut self,
        name: &Name,
        body: &TableBody,
        frame: &Frame,
        answers: &mut dyn Answers,
    ) -> Outcome<()> {
        let (database, table) = self.alterable(name, frame, answers)?;
        self.change(database.id, answers, |runner, database| {
            let mut changed = (*table).clone();
            let (columns, indexes) = (changed.columns.len(), changed.indexes.len());
            runner.extend(database, &mut changed, body, frame)?;
            let kept = changed.kept_name();
            let rows: i64 = runner.db.prepare(&format!("SELECT count(*) FROM {kept} WHERE _to IS NULL"))?.query_row([], |r| r.get(0))?;
            for column in changed.columns[columns..].iter().filter(|c| c.computed.is_none()) {
                runner.db.execute_batch(&format!("ALTER TABLE {kept} ADD COLUMN {}", kept_column(column)))?;
                if !column.nullable && column.default.is_none() && column.identity.is_none() && rows > 0 {
                    let text = format!(
                        "ALTER TABLE only allows columns to be added that can contain nulls, or have a DEFAULT definition specified, or the column being added is an identity or timestamp column, or alternatively if none of the previous conditions are satisfied the table must be empty to allow addition of this column. Column '{}' cannot be added to non-empty table '{}' because it does not satisfy these conditions.",
                        column.name, changed.name
                    );
                    return Err(SqlError::new(4901, text).into());
                }
                // Rows that are there get the default only if the column takes no NULL.
                if let (Some(default), false) = (&column.default, column.nullable) {
                    let mut binder = runner.binder(frame);
                    let typed = binder.value(&sql::expression(&default.text)?)?;
                    let typed: Typed = binder.store(typed, &column.kind, Vec::new());
                    let text = format!("UPDATE {kept} SET {} = {}", column.kept_name(), typed.sql);
                    runner.db.execute(&text, params_from_iter(binder.parameters.iter()))?;
                }
            }
            for index in &changed.indexes[indexes..] {
                runner.make_index(&changed, index)?;
            }
            database.tables.insert(changed.id, Arc::new(changed));
            runner.remember_ddl(database, table.id, &format!("ALTER TABLE {} ADD", name.text()));
            Ok(())
        })
    }

    /// New type and nullability; the rows are converted. Change tables follow ("Change data capture", handling
    /// changes to source tables).
    pub(super) fn alter_column(
        &mut self,
        name: &Name,
        spec: &ColumnSpec,
        frame: &Frame,
        answers: &mut dyn Answers,
    ) -> Outcome<()> {
        let (database, table) = self.alterable(name, frame, answers)?;
        let Some(old) = table.column(&spec.name).cloned() else {
            let text = format!(
                "ALTER TABLE ALTER COLUMN failed because column '{}' does not exist in table '{}'.",
                spec.name, table.name
            );
            return Err(SqlError::new(4924, text).into());
        };
        self.change(database.id, answers, |runner, database| {
            let mut made = runner.column(database, &table, spec, frame)?;
            made.id = old.id;
            made.name.clone_from(&old.name);
            made.nullable = spec.nullable.unwrap_or(true);
            made.identity.clone_from(&old.identity);
            made.default.clone_from(&old.default);
            runner.convert_column(&table, &old, &made, frame)?;
            let mut changed = (*table).clone();
            for column in changed.columns.iter_mut().filter(|c| c.id == old.id) {
                *column = made.clone();
            }
            let kept = changed.kept_name();
            let text = format!("SELECT EXISTS (SELECT 1 FROM {kept} WHERE _to IS NULL AND {} IS NULL)", made.kept_name());
            let has_null: bool = runner.db.prepare(&text)?.query_row([], |r| r.get(0))?;
            if !made.nullable && has_null {
                let text = format!(
                    "Cannot insert the value NULL into column '{}', table '{}.{}.{}'; column does not allow nulls. UPDATE fails.",
                    made.name, database.name, table.schema, table.name
                );
                return Err(SqlError::new(515, text).state(2).into());
            }
            database.tables.insert(changed.id, Arc::new(changed));
            runner.alter_captured(database, &table, &old, &made, frame)?;
            runner.remember_ddl(database, table.id, &format!("ALTER TABLE {} ALTER COLUMN {} {}", name.text(), made.name, made.kind.text()));
            Ok(())
        })
    }

    /// Rewrites the values of a column.
    pub(crate) fn convert_column(
        &self,
        table: &Table,
        old: &crate::engine::catalogue::Column,
        new: &crate::engine::catalogue::Column,
        frame: &Frame,
    ) -> Outcome<()> {
        if old.kind == new.kind {
            return Ok(());
        }
        let mut binder = self.binder(frame);
        binder.scopes.push(Scope::default());
        let typed = Typed::new(old.kept_name(), old.kind.clone());
        let typed = binder.store(typed, &new.kind, vec![table.name.clone(), new.name.clone()]);
        self.db.execute_batch(&format!("UPDATE {} SET {} = {}", table.kept_name(), old.kept_name(), typed.sql))?;
        Ok(())
    }

    pub(super) fn drop_table(
        &mut self,
        name: &Name,
        if_exists: bool,
        frame: &Frame,
        answers: &mut dyn Answers,
    ) -> Outcome<()> {
        let Some((database, table)) = self.binder(frame).table(name)? else {
            if if_exists {
                return Ok(());
            }
            return Err(gone("table", &name.text()).into());
        };
        if table.is_temporary() {
            self.state.change(|s| s.temporary.retain(|t| t.id != table.id));
            self.db.execute_batch(&format!("DROP TABLE IF EXISTS {}", table.kept_name()))?;
            return Ok(());
        }
        self.alterable(name, frame, answers)?;
        if database.tables.values().any(|t| t.id != table.id && t.foreign_keys.iter().any(|k| k.table == table.id)) {
            let text = format!(
                "Could not drop object '{}' because it is referenced by a FOREIGN KEY constraint.",
                name.text()
            );
            return Err(SqlError::new(3726, text).into());
        }
        if table.history.is_some() {
            let text = format!(
                "Drop table operation failed on table '{}' because it is not a supported operation on system-versioned temporal tables.",
                name.text()
            );
            return Err(SqlError::new(13552, text).into());
        }
        // Its SQLite table stays until the engine ends: a rollback brings the definition back.
        self.change(database.id, answers, |runner, database| {
            runner.drop_captures(database, table.id);
            database.tables.remove(&table.id);
            Ok(())
        })
    }
}

pub(super) fn drop_parts(
    database: &mut Database,
    table: &Arc<Table>,
    constraints: &[String],
    columns: &[String],
    if_exists: bool,
) -> Outcome<()> {
    let mut changed = (**table).clone();
    for name in constraints {
        let before = (changed.indexes.len(), changed.checks.len(), changed.foreign_keys.len());
        changed.indexes.retain(|i| i.constraint == 0 || !same_name(&i.name, name));
        changed.checks.retain(|c| !same_name(&c.name, name));
        changed.foreign_keys.retain(|f| !same_name(&f.name, name));
        let mut found = before != (changed.indexes.len(), changed.checks.len(), changed.foreign_keys.len());
        for column in &mut changed.columns {
            if column.default.as_ref().is_some_and(|d| same_name(&d.name, name)) {
                column.default = None;
                found = true;
            }
        }
        if !found && !if_exists {
            return Err(SqlError::new(3728, format!("'{name}' is not a constraint.")).into());
        }
    }
    for name in columns {
        let Some(column) = changed.column(name).cloned() else {
            if if_exists {
                continue;
            }
            let text = format!(
                "ALTER TABLE DROP COLUMN failed because column '{name}' does not exist in table '{}'.",
                changed.name
            );
            return Err(SqlError::new(4924, text).into());
        };
        let in_index = changed
            .indexes
            .iter()
            .any(|i| i.key.iter().any(|(id, _)| *id == column.id) || i.include.contains(&column.id));
        if in_index || column.default.is_some() {
            let text = format!("ALTER TABLE DROP COLUMN {name} failed because one or more objects access this column.");
            return Err(SqlError::new(4922, text).state(9).into());
        }
        changed.columns.retain(|c| c.id != column.id);
    }
    database.tables.insert(changed.id, Arc::new(changed));
    Ok(())
}

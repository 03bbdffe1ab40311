//! Statements that change the catalogue.
//!
//! Each takes the lock on the database's definitions until its transaction ends, changes a copy of the
//! database, and puts it in the place of the old one.

use std::sync::Arc;

use rusqlite::params_from_iter;

use super::batch::{Frame, Runner};
use super::modules;
use super::schema::kept_column;
use crate::engine::bind::{Scope, Typed, open};
use crate::engine::catalogue::{AliasType, Database, Granted, Permission, Schema, Table, User};
use crate::engine::fault::{Outcome, SqlError};
use crate::engine::kinds::text::same_name;
use crate::engine::locks::{Mode, Target};
use crate::engine::sql;
use crate::engine::sql::statement::{ColumnSpec, DatabaseSetting, Define, Name, PermissionKind, Securable, TableBody};
use crate::engine::world::Login;
use crate::session::Answers;

impl Runner {
    pub(super) fn define(&mut self, define: &Define, frame: &mut Frame, answers: &mut dyn Answers) -> Outcome<()> {
        self.writable()?;
        self.in_transaction(answers, |runner, answers| runner.define_in(define, frame, answers))?;
        Ok(answers.done(None)?)
    }

    /// Changes a copy of a database and puts it in its place. SQLite's part is one transaction.
    pub(crate) fn change(
        &mut self,
        id: i32,
        answers: &dyn Answers,
        change: impl FnOnce(&mut Self, &mut Database) -> Outcome<()>,
    ) -> Outcome<()> {
        self.engine.locks.take(Target::Definitions(id), Mode::Exclusive, self.asker(), &|| self.stopped(answers))?;
        let world = self.engine.world();
        let Some(before) = world.database_by_id(id) else { return Ok(()) };
        let mut after = (*before).clone();
        self.db.execute_batch("BEGIN IMMEDIATE")?;
        change(self, &mut after)?;
        self.db.execute_batch("COMMIT")?;
        if let Some(transaction) = &mut self.transaction
            && !transaction.definitions.iter().any(|(d, _)| *d == id)
        {
            transaction.definitions.push((id, Some(before)));
        }
        self.engine.put(after);
        Ok(())
    }

    pub(super) fn database_of(&self, name: &Name, frame: &Frame) -> Outcome<Arc<Database>> {
        Ok(self.binder(frame).database(&Name { object: name.object.clone(), ..name.clone() })?)
    }

    fn current(&self) -> i32 {
        self.state.database()
    }

    /// The exclusive lock on a table, and error 4922 or 229 if the login may not change it.
    fn alterable(&self, name: &Name, frame: &Frame, answers: &dyn Answers) -> Outcome<(Arc<Database>, Arc<Table>)> {
        let found = self.binder(frame).table(name)?;
        let Some((database, table)) = found else {
            let text = format!(
                "Cannot find the object \"{}\" because it does not exist or you do not have permissions.",
                name.text()
            );
            return Err(SqlError::new(1088, text).state(13).into());
        };
        self.binder(frame).require("ALTER", &database, &table)?;
        if !table.is_temporary() {
            self.engine
                .locks
                .take(Target::Table(table.id), Mode::Exclusive, self.asker(), &|| self.stopped(answers))?;
        }
        Ok((database, table))
    }

    fn define_in(&mut self, define: &Define, frame: &mut Frame, answers: &mut dyn Answers) -> Outcome<()> {
        match define {
            Define::CreateTable { name, body } => self.create_table(name, body, frame, answers),
            Define::AddToTable { table, body } => self.add_to(table, body, frame, answers),
            Define::AlterColumn { table, column } => self.alter_column(table, column, frame, answers),
            Define::DropFromTable { table, constraints, columns, if_exists } => {
                let (database, table) = self.alterable(table, frame, answers)?;
                self.change(database.id, answers, |_, database| {
                    drop_parts(database, &table, constraints, columns, *if_exists)
                })
            }
            Define::DropTable { names, if_exists } => {
                for name in names {
                    self.drop_table(name, *if_exists, frame, answers)?;
                }
                Ok(())
            }
            Define::CreateIndex { table, index } => {
                let (database, table) = self.alterable(table, frame, answers)?;
                if table.is_temporary() {
                    return Ok(());
                }
                self.change(database.id, answers, |runner, database| {
                    let mut changed = (*table).clone();
                    runner.add_index(&mut changed, index)?;
                    if let Some(made) = changed.indexes.last() {
                        runner.make_index(&changed, made)?;
                    }
                    database.tables.insert(changed.id, Arc::new(changed));
                    Ok(())
                })
            }
            Define::DropIndex { name, table, if_exists } => {
                let (database, table) = self.alterable(table, frame, answers)?;
                self.change(database.id, answers, |runner, database| {
                    let mut changed = (*table).clone();
                    let Some(at) = changed.indexes.iter().position(|i| same_name(&i.name, name)) else {
                        if *if_exists {
                            return Ok(());
                        }
                        let text = format!("Cannot drop the index '{}.{name}', because it does not exist or you do not have permission.", table.name);
                        return Err(SqlError::new(3701, text).class(11).state(7).into());
                    };
                    let index = changed.indexes.remove(at);
                    runner.db.execute_batch(&format!("DROP INDEX IF EXISTS i{}_{}", table.id, index.id))?;
                    database.tables.insert(changed.id, Arc::new(changed));
                    Ok(())
                })
            }
            Define::CreateSchema(name) => self.change(self.current(), answers, |_, database| {
                if database.schema(name).is_some() {
                    return Err(SqlError::new(
                        2714,
                        format!("There is already an object named '{name}' in the database."),
                    )
                    .state(6)
                    .into());
                }
                let id = database.schemas.iter().map(|s| s.id).max().unwrap_or(4) + 1;
                database.schemas.push(Schema { id, name: name.clone() });
                Ok(())
            }),
            Define::DropSchema { name, if_exists } => self.change(self.current(), answers, |_, database| {
                if database.schema(name).is_none() && !*if_exists {
                    return Err(gone("schema", name).into());
                }
                if database.tables.values().any(|t| same_name(&t.schema, name)) {
                    return Err(SqlError::new(
                        3729,
                        format!("Cannot drop schema '{name}' because it is being referenced by an object."),
                    )
                    .into());
                }
                database.schemas.retain(|s| !same_name(&s.name, name));
                Ok(())
            }),
            Define::CreateDatabase { name, collation } => self.create_database(name, collation.as_deref()),
            Define::DropDatabase { names, if_exists } => {
                for name in names {
                    self.drop_database(name, *if_exists)?;
                }
                Ok(())
            }
            Define::AlterDatabase { name, setting } => self.alter_database(name.as_deref(), setting, answers),
            Define::CreateType { name, base, nullable } => {
                let base = self.binder(frame).kind(base)?;
                self.change(self.current(), answers, |_, database| {
                    let id = database.types.iter().map(|t| t.id).max().unwrap_or(256) + 1;
                    let schema = name.schema.clone().unwrap_or_else(|| "dbo".into());
                    database.types.push(AliasType { id, schema, name: name.object.clone(), base, nullable: *nullable });
                    Ok(())
                })
            }
            Define::DropType(name) => self.change(self.current(), answers, |_, database| {
                if database.alias_type(name.schema.as_deref(), &name.object).is_none() {
                    return Err(gone("type", &name.text()).into());
                }
                database.types.retain(|t| !same_name(&t.name, &name.object));
                Ok(())
            }),
            Define::CreateView { name, columns, query, text, or_alter } => {
                self.create_view(name, columns, query, text, *or_alter, frame, answers)
            }
            Define::DropView { names, if_exists } => {
                self.drop_modules("view", names, *if_exists, frame, answers, modules::remove_view)
            }
            Define::CreateProcedure { name, parameters, body, text, alter, or_alter } => {
                self.create_procedure(name, parameters, (body, text), (*alter, *or_alter), frame, answers)
            }
            Define::DropProcedure { names, if_exists } => {
                self.drop_modules("procedure", names, *if_exists, frame, answers, modules::remove_procedure)
            }
            Define::CreateLogin { name, password } => {
                self.administrator("CREATE LOGIN")?;
                if self.engine.world().login(name).is_some() {
                    return Err(SqlError::new(15025, format!("The server principal '{name}' already exists.")).into());
                }
                let login =
                    Login { name: name.clone(), password: password.clone(), sysadmin: false, granted: Vec::new() };
                self.engine.change_world(|w| w.logins.push(login));
                Ok(())
            }
            Define::DropLogin(name) => {
                self.administrator("DROP LOGIN")?;
                self.engine.change_world(|w| w.logins.retain(|l| !same_name(&l.name, name)));
                Ok(())
            }
            Define::CreateUser { name, login } => self.change(self.current(), answers, |_, database| {
                if database.users.iter().any(|u| same_name(&u.name, name)) {
                    let text = format!("User, group, or role '{name}' already exists in the current database.");
                    return Err(SqlError::new(15023, text).into());
                }
                database.users.push(User { name: name.clone(), login: login.clone(), roles: Vec::new() });
                Ok(())
            }),
            Define::DropUser(name) => self.change(self.current(), answers, |_, database| {
                database.users.retain(|u| !same_name(&u.name, name));
                Ok(())
            }),
            Define::Role { role, member, add } => self.set_role(role, member, *add, answers),
            Define::Permission { kind, permissions, on, to } => self.permit(*kind, permissions, on, to, frame, answers),
            Define::SystemVersioning { table, history, on } => {
                let (database, table) = self.alterable(table, frame, answers)?;
                self.change(database.id, answers, |runner, database| {
                    let mut changed = (*table).clone();
                    if *on {
                        runner.version(database, &mut changed, history.as_ref())?;
                    } else {
                        changed.history = None;
                    }
                    database.tables.insert(changed.id, Arc::new(changed));
                    Ok(())
                })
            }
        }
    }

    fn create_table(&mut self, name: &Name, body: &TableBody, frame: &Frame, answers: &mut dyn Answers) -> Outcome<()> {
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
            let schema = name.schema.as_deref().unwrap_or("dbo");
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
    fn version(&self, database: &mut Database, table: &mut Table, history: Option<&Name>) -> Outcome<()> {
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

    fn add_to(&mut self, name: &Name, body: &TableBody, frame: &Frame, answers: &mut dyn Answers) -> Outcome<()> {
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
    fn alter_column(
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

    fn drop_table(&mut self, name: &Name, if_exists: bool, frame: &Frame, answers: &mut dyn Answers) -> Outcome<()> {
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

    fn administrator(&self, what: &str) -> Outcome<()> {
        if self.engine.world().is_sysadmin(&self.state.login.user) {
            return Ok(());
        }
        Err(SqlError::new(262, format!("{what} permission denied in database 'master'.")).class(14).into())
    }

    fn create_database(&mut self, name: &str, collation: Option<&str>) -> Outcome<()> {
        self.administrator("CREATE DATABASE")?;
        if self.state.read(|s| s.trancount) > 0 {
            return Err(SqlError::new(
                226,
                "CREATE DATABASE statement not allowed within multi-statement transaction.",
            )
            .into());
        }
        let world = self.engine.world();
        if world.database(name).is_some() {
            let text = format!("Database '{name}' already exists. Choose a different database name.");
            return Err(SqlError::new(1801, text).state(3).into());
        }
        let id = world.databases.iter().map(|d| d.id).max().unwrap_or(4).max(4) + 1;
        let collation = collation.unwrap_or(crate::engine::catalogue::DEFAULT_COLLATION);
        self.engine.put(Database::new(id, name, collation, self.engine.local_now()));
        Ok(())
    }

    fn drop_database(&mut self, name: &str, if_exists: bool) -> Outcome<()> {
        self.administrator("DROP DATABASE")?;
        let world = self.engine.world();
        let Some(database) = world.database(name) else {
            return if if_exists { Ok(()) } else { Err(gone("database", name).into()) };
        };
        let sessions = self.engine.sessions.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if sessions.values().any(|s| s.database() == database.id) {
            return Err(SqlError::new(
                3702,
                format!("Cannot drop database \"{name}\" because it is currently in use."),
            )
            .state(3)
            .into());
        }
        drop(sessions);
        self.engine.change_world(|w| w.databases.retain(|d| d.id != database.id));
        Ok(())
    }

    fn alter_database(
        &mut self,
        name: Option<&str>,
        setting: &DatabaseSetting,
        answers: &mut dyn Answers,
    ) -> Outcome<()> {
        self.administrator("ALTER DATABASE")?;
        let world = self.engine.world();
        let found = match name {
            Some(name) => world.database(name),
            None => world.database_by_id(self.current()),
        };
        let Some(database) = found else {
            let text = format!(
                "User does not have permission to alter database '{}', the database does not exist, or the database is not in a state that allows access checks.",
                name.unwrap_or("")
            );
            return Err(SqlError::new(5011, text).class(14).state(5).into());
        };
        if *setting == DatabaseSetting::Online(false) {
            // WITH ROLLBACK IMMEDIATE, which is taken for granted: other sessions in it end.
            let sessions = self.engine.sessions.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            for session in sessions.values().filter(|s| s.id != self.state.id && s.database() == database.id) {
                session.kill();
            }
            drop(sessions);
            self.engine.locks.wake();
        }
        self.change(database.id, answers, |_, database| {
            match setting {
                DatabaseSetting::AllowSnapshot(on) => database.allow_snapshot = *on,
                DatabaseSetting::ReadCommittedSnapshot(on) => database.read_committed_snapshot = *on,
                DatabaseSetting::Online(on) => database.online = *on,
                DatabaseSetting::Rename(name) => database.name.clone_from(name),
                DatabaseSetting::Other => {}
            }
            Ok(())
        })
    }

    pub(crate) fn set_role(&mut self, role: &str, member: &str, add: bool, answers: &mut dyn Answers) -> Outcome<()> {
        self.change(self.current(), answers, |_, database| {
            let Some(user) = database.users.iter_mut().find(|u| same_name(&u.name, member)) else {
                let text = format!(
                    "Cannot add the principal '{member}', because it does not exist or you do not have permission."
                );
                return Err(SqlError::new(15151, text).into());
            };
            user.roles.retain(|r| !same_name(r, role));
            if add {
                user.roles.push(role.to_lowercase());
            }
            Ok(())
        })
    }

    fn permit(
        &mut self,
        kind: PermissionKind,
        permissions: &[String],
        on: &Securable,
        to: &[String],
        frame: &Frame,
        answers: &mut dyn Answers,
    ) -> Outcome<()> {
        let (id, on) = match on {
            Securable::Database => (self.current(), Granted::Database),
            Securable::Schema(schema) => (self.current(), Granted::Schema(schema.clone())),
            Securable::Object(name) => {
                let procedures = self.database_of(name, frame)?;
                match procedures.procedure(name.schema.as_deref().unwrap_or("dbo"), &name.object) {
                    Some(procedure) => (procedures.id, Granted::Object(procedure.id)),
                    None => {
                        let (database, table) = self.binder(frame).known_table(name)?;
                        (database.id, Granted::Object(table.id))
                    }
                }
            }
        };
        let is_server = |p: &str| p.starts_with("VIEW SERVER") || p.starts_with("VIEW ANY");
        self.engine.change_world(|w| {
            for login in w.logins.iter_mut().filter(|l| to.iter().any(|t| same_name(t, &l.name))) {
                for permission in permissions.iter().filter(|p| is_server(p)) {
                    login.granted.retain(|g| g != permission);
                    if kind == PermissionKind::Grant {
                        login.granted.push(permission.clone());
                    }
                }
            }
        });
        self.change(id, answers, |_, database| {
            for (permission, grantee) in permissions.iter().flat_map(|p| to.iter().map(move |t| (p, t))) {
                database
                    .permissions
                    .retain(|p| !(p.permission == *permission && same_name(&p.grantee, grantee) && p.on == on));
                if kind != PermissionKind::Revoke {
                    database.permissions.push(Permission {
                        grantee: grantee.clone(),
                        permission: permission.clone(),
                        on: on.clone(),
                        denied: kind == PermissionKind::Deny,
                    });
                }
            }
            Ok(())
        })
    }

    /// Whether the current database can be used, for statements that name no object.
    pub(crate) fn usable(&self) -> Outcome<Arc<Database>> {
        let world = self.engine.world();
        let Some(database) = world.database_by_id(self.current()) else {
            return Err(SqlError::new(911, "The current database does not exist any more.").into());
        };
        open(&world, &database, &self.state.login.user)?;
        Ok(database)
    }
}

pub(super) fn gone(what: &str, name: &str) -> SqlError {
    SqlError::new(
        3701,
        format!("Cannot drop the {what} '{name}', because it does not exist or you do not have permission."),
    )
    .class(11)
    .state(5)
}

fn drop_parts(
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

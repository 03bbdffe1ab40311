//! Statements that change the catalogue.
//!
//! Each takes the lock on the database's definitions until its transaction ends, changes a copy of the
//! database, and puts it in the place of the old one.

use std::sync::Arc;

use super::batch::{Frame, Runner};
use super::modules;
use super::tables::drop_parts;
use crate::engine::bind::open;
use crate::engine::catalogue::{AliasType, Database, Schema, Table, User};
use crate::engine::fault::{Outcome, SqlError};
use crate::engine::kinds::text::same_name;
use crate::engine::locks::{Mode, Target};
use crate::engine::sql::statement::{Define, Name};
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

    pub(super) fn current(&self) -> i32 {
        self.state.database()
    }

    /// The exclusive lock on a table, and error 4922 or 229 if the login may not change it.
    pub(super) fn alterable(
        &self,
        name: &Name,
        frame: &Frame,
        answers: &dyn Answers,
    ) -> Outcome<(Arc<Database>, Arc<Table>)> {
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

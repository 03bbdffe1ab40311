//! Procedures: the system's and those of users.

mod capture;
mod catalog;
mod cursor;
mod text;
mod user;

use crate::engine::fault::{Outcome, SqlError};
use crate::engine::kinds::text::same_name;
use crate::engine::run::{Frame, Runner};
use crate::engine::sql::statement::{Argument, Name};
use crate::session::{Answers, Column, Parameter};
use crate::types::SqlType;
use crate::value::SqlValue;

pub(crate) use cursor::Cursors;
pub(crate) use text::Prepared;

/// What a procedure was given, and what it gives back.
pub(crate) struct Given {
    pub(crate) parameters: Vec<Parameter>,
    /// How many `TRY` blocks are around the call.
    pub(crate) in_try: usize,
}

impl Given {
    /// Where a parameter is: by its name (with or without `@`), or by its place if that has no name.
    pub(crate) fn place(&self, name: &str, place: usize) -> Option<usize> {
        let bare = |name: &str| name.trim_start_matches('@').to_owned();
        let named = self.parameters.iter().position(|p| same_name(&bare(&p.name), &bare(name)));
        named.or_else(|| Some(place).filter(|n| self.parameters.get(*n).is_some_and(|p| p.name.is_empty())))
    }

    pub(crate) fn get(&self, name: &str, place: usize) -> Option<&SqlValue> {
        self.place(name, place).map(|at| &self.parameters[at].value)
    }

    /// Of a prepared statement or a cursor; 0 is none.
    pub(crate) fn handle(&self, name: &str, place: usize) -> i32 {
        self.int(name, place).and_then(|n| i32::try_from(n).ok()).unwrap_or(0)
    }

    /// Gives a whole number back, if there is a parameter at the place.
    pub(crate) fn put(&mut self, place: usize, n: i64) {
        if let Some(parameter) = self.parameters.get_mut(place) {
            (parameter.kind, parameter.value) = (SqlType::Int, SqlValue::Int(n));
        }
    }

    pub(crate) fn text(&self, name: &str, place: usize) -> Option<String> {
        match self.get(name, place) {
            Some(SqlValue::Text(text)) => Some(text.clone()),
            _ => None,
        }
    }

    pub(crate) fn int(&self, name: &str, place: usize) -> Option<i64> {
        match self.get(name, place) {
            Some(SqlValue::Int(n)) => Some(*n),
            Some(SqlValue::Bit(b)) => Some((*b).into()),
            // Converted, as any argument is.
            Some(SqlValue::Text(text)) => text.trim().parse().ok(),
            _ => None,
        }
    }
}

impl Runner {
    /// A call by the protocol: outputs and status are told as such.
    pub(crate) fn called(&mut self, name: &str, parameters: Vec<Parameter>, answers: &mut dyn Answers) -> Outcome<()> {
        let Some(name) = crate::engine::functions::split_name(name) else { return Err(SqlError::near(name).into()) };
        let mut given = Given { parameters, in_try: 0 };
        let status = self.procedure(&name, &mut given, 0, answers)?;
        answers.status(status)?;
        for parameter in given.parameters.iter().filter(|p| p.output) {
            answers.output(&parameter.name, &parameter.kind, &parameter.value)?;
        }
        Ok(())
    }

    /// `EXEC`. The result is the status.
    pub(crate) fn execute(
        &mut self,
        name: &Name,
        arguments: &[Argument],
        frame: &mut Frame,
        answers: &mut dyn Answers,
    ) -> Outcome<i32> {
        let mut parameters = Vec::new();
        let mut targets = Vec::new();
        for argument in arguments {
            let Some(expr) = &argument.value else { continue };
            let kind = {
                let mut binder = self.binder(frame);
                binder.value(expr)?.kind
            };
            let value = self.scalar(expr, None, frame, answers)?;
            parameters.push(Parameter {
                name: argument.name.clone().unwrap_or_default(),
                kind,
                value,
                output: argument.output,
            });
            targets.push(argument.output.then(|| expr.to_string()));
        }
        let mut given = Given { parameters, in_try: frame.in_try };
        let status = self.procedure(name, &mut given, frame.depth, answers)?;
        for (target, parameter) in targets.into_iter().zip(given.parameters) {
            if let Some(variable) = target
                && let Some((kind, _)) = frame.variables.get(&variable.to_lowercase()).cloned()
            {
                frame.set(&variable, Self::stored_as(parameter.value, &parameter.kind, &kind)?);
            }
        }
        Ok(status)
    }

    /// Error 2812: there is no such procedure.
    fn procedure(&mut self, name: &Name, given: &mut Given, depth: usize, answers: &mut dyn Answers) -> Outcome<i32> {
        // A procedure of another database runs in that one.
        let home = self.state.database();
        if let Some(other) = &name.database {
            let world = self.engine.world();
            let Some(database) = world.database(other) else {
                let text = format!("Database '{other}' does not exist. Make sure that the name is entered correctly.");
                return Err(SqlError::new(911, text).into());
            };
            crate::engine::bind::open(&world, &database, &self.state.login.user)?;
            self.state.change(|s| s.database = database.id);
        }
        let result = self.system_procedure(name, given, depth, answers);
        if name.database.is_some() {
            self.state.change(|s| s.database = home);
        }
        result
    }

    fn system_procedure(
        &mut self,
        name: &Name,
        given: &mut Given,
        depth: usize,
        answers: &mut dyn Answers,
    ) -> Outcome<i32> {
        let lower = name.object.to_lowercase();
        if let Some(status) = self.user_procedure(name, given, depth, answers)? {
            return Ok(status);
        }
        if let Some(status) = self.cursor_procedure(&lower, given, depth, answers)? {
            return Ok(status);
        }
        if let Some(status) = self.text_procedure(&lower, given, depth, answers)? {
            return Ok(status);
        }
        if let Some(status) = self.capture_procedure(&lower, given, answers)? {
            return Ok(status);
        }
        if let Some(status) = self.catalog_procedure(&lower, given, depth, answers)? {
            return Ok(status);
        }
        match lower.as_str() {
            "sp_rename" => self.rename(given, answers)?,
            "sp_addrolemember" | "sp_droprolemember" => {
                let role = given.text("rolename", 0).unwrap_or_default();
                let member = given.text("membername", 1).unwrap_or_default();
                self.in_transaction(answers, |runner, answers| {
                    runner.set_role(&role, &member, lower == "sp_addrolemember", answers)
                })?;
            }
            _ => {
                return Err(SqlError::new(2812, format!("Could not find stored procedure '{}'.", name.text()))
                    .state(62)
                    .into());
            }
        }
        Ok(0)
    }

    /// "sp_rename": a table (no type) or a column.
    fn rename(&mut self, given: &Given, answers: &mut dyn Answers) -> Outcome<()> {
        let old = given.text("objname", 0).unwrap_or_default();
        let new = given.text("newname", 1).unwrap_or_default();
        let kind = given.text("objtype", 2).unwrap_or_default().to_uppercase();
        let parts: Vec<String> = old.split('.').map(|p| p.trim_matches(['[', ']', '"']).to_owned()).collect();
        let database = self.usable()?;
        let (schema, table, column) = match (kind.as_str(), &parts[..]) {
            ("COLUMN", [table, column]) => ("dbo".to_owned(), table.clone(), Some(column.clone())),
            ("COLUMN", [schema, table, column]) => (schema.clone(), table.clone(), Some(column.clone())),
            ("" | "OBJECT", [table]) => ("dbo".to_owned(), table.clone(), None),
            ("" | "OBJECT", [schema, table]) => (schema.clone(), table.clone(), None),
            _ => return Err(SqlError::unsupported(format!("sp_rename of '{old}' as '{kind}'")).into()),
        };
        let Some(found) = database.table(&schema, &table).cloned() else {
            let text = format!(
                "No item by the name of '{old}' could be found in the current database '{}', given that @itemtype was input as '({kind})'.",
                database.name
            );
            return Err(SqlError::new(15225, text).into());
        };
        self.in_transaction(answers, |runner, answers| {
            runner.change(database.id, answers, |_, database| {
                let mut changed = (*found).clone();
                match &column {
                    None => changed.name.clone_from(&new),
                    Some(column) => {
                        if database.captures_of(found.id).any(|c| c.columns.iter().any(|k| same_name(&k.name, column)))
                        {
                            let text = format!("Cannot alter column '{column}' because it is 'REPLICATED'.");
                            return Err(SqlError::new(4928, text).into());
                        }
                        let Some(column) = changed.columns.iter_mut().find(|c| same_name(&c.name, column)) else {
                            return Err(SqlError::new(
                                15248,
                                "Either the parameter @objname is ambiguous or the claimed @objtype (COLUMN) is wrong.",
                            )
                            .class(11)
                            .into());
                        };
                        column.name.clone_from(&new);
                    }
                }
                database.tables.insert(changed.id, std::sync::Arc::new(changed));
                Ok(())
            })
        })
    }

    /// Answers rows of a procedure's own.
    pub(crate) fn result(
        &self,
        columns: &[(&str, SqlType)],
        rows: Vec<Vec<SqlValue>>,
        answers: &mut dyn Answers,
    ) -> Outcome<()> {
        let columns: Vec<Column> = columns
            .iter()
            .map(|(name, kind)| Column {
                name: (*name).to_owned(),
                kind: kind.clone(),
                nullable: true,
                identity: false,
                computed: false,
            })
            .collect();
        answers.columns(&columns)?;
        let count = rows.len() as u64;
        for row in rows {
            answers.row(&row)?;
        }
        Ok(self.done(count, answers)?)
    }
}

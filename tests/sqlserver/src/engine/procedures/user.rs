//! Procedures that users have made.
//!
//! Follows "CREATE PROCEDURE (Transact-SQL)" and "EXECUTE (Transact-SQL)". Names inside of them are looked up
//! when they run.

use std::sync::Arc;

use super::Given;
use crate::engine::bind::denied;
use crate::engine::catalogue::{Procedure, Table};
use crate::engine::fault::{Outcome, SqlError};
use crate::engine::kinds::text::same_name;
use crate::engine::run::{Frame, NESTING, Next, Runner};
use crate::engine::sql::statement::Name;
use crate::session::Answers;

impl Runner {
    /// `None`: the current database has no such procedure.
    pub(super) fn user_procedure(
        &mut self,
        name: &Name,
        given: &mut Given,
        depth: usize,
        answers: &mut dyn Answers,
    ) -> Outcome<Option<i32>> {
        let world = self.engine.world();
        let Some(database) = world.database_by_id(self.state.database()) else { return Ok(None) };
        let schema = name.schema();
        let Some(procedure) = database.procedure(schema, &name.object).cloned() else { return Ok(None) };
        let on = Table { id: procedure.id, ..Table::named(&procedure.schema, &procedure.name) };
        if !world.may(&database, &self.state.login.user, "EXECUTE", Some(&on)) {
            return Err(denied("EXECUTE", &procedure.name, &database.name, &procedure.schema).into());
        }
        self.run_procedure(&procedure, given, depth, answers).map(Some)
    }

    fn run_procedure(
        &mut self,
        procedure: &Arc<Procedure>,
        given: &mut Given,
        depth: usize,
        answers: &mut dyn Answers,
    ) -> Outcome<i32> {
        if depth >= NESTING {
            let text = "Maximum stored procedure, function, trigger, or view nesting level exceeded (limit 32).";
            return Err(SqlError::new(217, text).into());
        }
        let title = &procedure.name;
        if given.parameters.len() > procedure.parameters.len() {
            let text = format!("Procedure or function {title} has too many arguments specified.");
            return Err(SqlError::new(8144, text).state(2).into());
        }
        for parameter in given.parameters.iter().filter(|p| !p.name.is_empty()) {
            if !procedure.parameters.iter().any(|p| same_name(&p.name, &parameter.name)) {
                let text = format!("{} is not a parameter for procedure {title}.", parameter.name);
                return Err(SqlError::new(8145, text).state(2).into());
            }
        }
        let mut frame = Frame { procedure: title.clone(), depth: depth + 1, in_try: given.in_try, ..Frame::default() };
        let mut places = Vec::new();
        for (n, parameter) in procedure.parameters.iter().enumerate() {
            let kind = self.binder(&frame).kind(&parameter.kind)?;
            let place = given.place(&parameter.name, n);
            let value = match (place, &parameter.default) {
                (Some(place), _) => {
                    let argument = &given.parameters[place];
                    places.push((place, parameter.output));
                    Self::stored_as(argument.value.clone(), &argument.kind, &kind)?
                }
                (None, Some(default)) => self.scalar(default, Some(&kind), &frame, answers)?,
                (None, None) => {
                    let text = format!(
                        "Procedure or function '{title}' expects parameter '{}', which was not supplied.",
                        parameter.name
                    );
                    return Err(SqlError::new(201, text).state(4).into());
                }
            };
            frame.variables.insert(parameter.name.to_lowercase(), (kind, value));
        }
        // SET options of a procedure end with it ("SET statements").
        let options = self.state.read(|s| (s.nocount, s.xact_abort, s.isolation, s.row_limit, s.lock_timeout));
        let result = self.steps(&procedure.body, &mut frame, answers);
        self.state.change(|s| (s.nocount, s.xact_abort, s.isolation, s.row_limit, s.lock_timeout) = options);
        self.forget(&frame);
        let status = match result? {
            Next::Return(status) => status,
            _ => 0,
        };
        for ((place, output), parameter) in places.into_iter().zip(&procedure.parameters) {
            if output && let Some((kind, value)) = frame.variables.get(&parameter.name.to_lowercase()) {
                let argument = &mut given.parameters[place];
                (argument.kind, argument.value) = (kind.clone(), value.clone());
            }
        }
        Ok(status)
    }
}

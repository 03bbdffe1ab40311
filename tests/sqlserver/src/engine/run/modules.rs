//! Views and procedures: what is kept as a text.
//!
//! Follows "CREATE VIEW (Transact-SQL)", "CREATE PROCEDURE (Transact-SQL)" and the pages of `DROP`.

use std::sync::Arc;

use sqlparser::ast::Query;

use super::batch::{Frame, Runner};
use super::define::gone;
use crate::engine::catalogue::{Database, Procedure, View};
use crate::engine::fault::{Outcome, SqlError};
use crate::engine::sql::statement::{Name, ProcedureParameter, Step};
use crate::session::Answers;

fn schema_of(name: &Name) -> &str {
    name.schema.as_deref().unwrap_or("dbo")
}

fn taken(name: &Name) -> SqlError {
    SqlError::new(2714, format!("There is already an object named '{}' in the database.", name.object)).state(3)
}

impl Runner {
    #[allow(clippy::too_many_arguments)]
    pub(super) fn create_view(
        &mut self,
        name: &Name,
        columns: &[String],
        query: &Query,
        text: &str,
        or_alter: bool,
        frame: &Frame,
        answers: &mut dyn Answers,
    ) -> Outcome<()> {
        self.plan(query, frame)?;
        let database = self.database_of(name, frame)?;
        let id = self.engine.object_id();
        self.change(database.id, answers, |_, database| {
            let schema = schema_of(name);
            let old = database.view(schema, &name.object).map(|v| v.id);
            let others =
                database.table(schema, &name.object).is_some() || database.procedure(schema, &name.object).is_some();
            if old.is_some() && !or_alter || others {
                return Err(taken(name).into());
            }
            database.views.retain(|v| Some(v.id) != old);
            database.views.push(View {
                id: old.unwrap_or(id),
                schema: schema.to_owned(),
                name: name.object.clone(),
                columns: columns.to_vec(),
                query: Box::new(query.clone()),
                text: text.to_owned(),
            });
            Ok(())
        })
    }

    pub(super) fn create_procedure(
        &mut self,
        name: &Name,
        parameters: &[ProcedureParameter],
        (body, text): (&Arc<Vec<Step>>, &str),
        (alter, or_alter): (bool, bool),
        frame: &Frame,
        answers: &mut dyn Answers,
    ) -> Outcome<()> {
        for parameter in parameters {
            self.binder(frame).kind(&parameter.kind)?;
        }
        let database = self.database_of(name, frame)?;
        let id = self.engine.object_id();
        let created = self.engine.local_now();
        self.change(database.id, answers, |_, database| {
            let schema = schema_of(name);
            if database.schema(schema).is_none() {
                let text = format!("The specified schema name \"{schema}\" either does not exist or you do not have permission to use it.");
                return Err(SqlError::new(2760, text).into());
            }
            let old = database.procedure(schema, &name.object).cloned();
            if alter && old.is_none() {
                return Err(SqlError::new(208, format!("Invalid object name '{}'.", name.text())).state(6).into());
            }
            let others = database.table(schema, &name.object).is_some() || database.view(schema, &name.object).is_some();
            if old.is_some() && !alter && !or_alter || others {
                return Err(taken(name).into());
            }
            database.procedures.retain(|p| old.as_ref().is_none_or(|o| o.id != p.id));
            database.procedures.push(Arc::new(Procedure {
                id: old.as_ref().map_or(id, |o| o.id),
                schema: schema.to_owned(),
                name: name.object.clone(),
                parameters: parameters.to_vec(),
                body: body.clone(),
                text: text.to_owned(),
                created: old.map_or(created, |o| o.created.clone()),
            }));
            Ok(())
        })
    }

    /// `remove` says whether there was one.
    pub(super) fn drop_modules(
        &mut self,
        what: &str,
        names: &[Name],
        if_exists: bool,
        frame: &Frame,
        answers: &mut dyn Answers,
        remove: fn(&mut Database, &str, &str) -> bool,
    ) -> Outcome<()> {
        for name in names {
            let database = self.database_of(name, frame)?;
            self.change(database.id, answers, |_, database| {
                if !remove(database, schema_of(name), &name.object) && !if_exists {
                    return Err(gone(what, &name.text()).into());
                }
                Ok(())
            })?;
        }
        Ok(())
    }
}

pub(super) fn remove_view(database: &mut Database, schema: &str, name: &str) -> bool {
    let id = database.view(schema, name).map(|v| v.id);
    database.views.retain(|v| Some(v.id) != id);
    id.is_some()
}

pub(super) fn remove_procedure(database: &mut Database, schema: &str, name: &str) -> bool {
    let id = database.procedure(schema, name).map(|p| p.id);
    database.procedures.retain(|p| Some(p.id) != id);
    id.is_some()
}

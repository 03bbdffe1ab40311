//! Control of flow, variables, messages.
//!
//! Follows "Control-of-flow", "TRY...CATCH", "RAISERROR", "THROW", "SET @local_variable".

use sqlparser::ast::Expr;

use super::batch::{Frame, NESTING, Runner};
use crate::engine::fault::{Fault, Outcome, SqlError};
use crate::engine::kinds::convert;
use crate::engine::kinds::kind::nvarchar;
use crate::engine::sql::statement::{Act, Declaration, Declared, Execute, Executed, SetOption, Step};
use crate::engine::{bind, kinds::temporal};
use crate::session::{Answers, Change, Isolation};
use crate::types::{Length, SqlType};
use crate::value::SqlValue;

/// What comes after a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    Step,
    Break,
    Continue,
    Return(i32),
}

impl Runner {
    pub(super) fn block(&mut self, steps: &[Step], frame: &mut Frame, answers: &mut dyn Answers) -> Outcome<Next> {
        for step in steps {
            match self.step(step, frame, answers)? {
                Next::Step => {}
                other => return Ok(other),
            }
        }
        Ok(Next::Step)
    }

    /// Runs a step. An error is told here, unless a `TRY` is around it or it ends the batch.
    fn step(&mut self, step: &Step, frame: &mut Frame, answers: &mut dyn Answers) -> Outcome<Next> {
        if let Some(fault) = self.stopped(answers) {
            return Err(fault);
        }
        let now = self.engine.utc_now();
        self.state.change(|s| s.statement_time = now);
        let result = self.act(&step.act, frame, answers);
        let error = match result {
            Ok(next) => {
                if !matches!(
                    step.act,
                    Act::If { .. }
                        | Act::While { .. }
                        | Act::Block(_)
                        | Act::Try { .. }
                        | Act::Execute(_)
                        | Act::Raise { .. }
                ) {
                    self.state.change(|s| s.error = 0);
                }
                return Ok(next);
            }
            Err(Fault::Error(error)) => error,
            Err(other) => return Err(other),
        };
        self.state.change(|s| s.error = error.number);
        self.after_error(&error, frame.in_try > 0, answers)?;
        if frame.in_try > 0 && error.class > 10 && error.class < 20 {
            self.state.change(|s| s.caught = Some((error.clone(), step.line)));
            return Err(error.into());
        }
        self.say(&error, step.line, frame, answers)?;
        answers.done(None)?;
        if error.class >= 20 {
            return Err(Fault::Killed);
        }
        if ends_batch(&error) || self.state.read(|s| s.xact_abort) {
            return Ok(Next::Return(-6));
        }
        Ok(Next::Step)
    }

    fn act(&mut self, act: &Act, frame: &mut Frame, answers: &mut dyn Answers) -> Outcome<Next> {
        match act {
            Act::If { condition, then, otherwise } => {
                return match (self.holds(condition, frame, answers)?, otherwise) {
                    (true, _) => self.step(then, frame, answers),
                    (false, Some(otherwise)) => self.step(otherwise, frame, answers),
                    (false, None) => Ok(Next::Step),
                };
            }
            Act::While { condition, body } => {
                while self.holds(condition, frame, answers)? {
                    match self.step(body, frame, answers)? {
                        Next::Step | Next::Continue => {}
                        Next::Break => break,
                        Next::Return(status) => return Ok(Next::Return(status)),
                    }
                }
            }
            Act::Block(steps) => return self.block(steps, frame, answers),
            Act::Try { body, catch } => {
                frame.in_try += 1;
                let result = self.block(body, frame, answers);
                frame.in_try -= 1;
                match result {
                    Err(Fault::Error(_)) => {
                        let result = self.block(catch, frame, answers);
                        self.state.change(|s| s.caught = None);
                        return result;
                    }
                    other => return other,
                }
            }
            Act::Break => return Ok(Next::Break),
            Act::Continue => return Ok(Next::Continue),
            Act::Return(value) => {
                let status = match value {
                    Some(expr) => match self.scalar(expr, Some(&SqlType::Int), frame, answers)? {
                        SqlValue::Int(n) => n as i32,
                        _ => 0,
                    },
                    None => 0,
                };
                return Ok(Next::Return(status));
            }
            Act::Declare(declared) => {
                for one in declared {
                    self.declare(one, frame, answers)?;
                }
            }
            Act::Assign(name, expr) => {
                let Some((kind, _)) = frame.variables.get(&name.to_lowercase()).cloned() else {
                    return Err(SqlError::unknown_variable(name).into());
                };
                let value = self.scalar(expr, Some(&kind), frame, answers)?;
                frame.set(name, value);
            }
            Act::SetOption(option) => self.set_option(option, frame, answers)?,
            Act::Print(expr) => {
                let text = match self.scalar(expr, Some(&nvarchar(4000)), frame, answers)? {
                    SqlValue::Text(text) => text,
                    _ => String::new(),
                };
                let message = SqlError { number: 0, class: 0, state: 1, text };
                self.say(&message, 1, frame, answers)?;
            }
            Act::Raise { message, severity, state, arguments } => {
                return self.raise(message, severity, state, arguments, frame, answers);
            }
            Act::Throw(None) => {
                return Err(match self.state.read(|s| s.caught.clone()) {
                    Some((error, _)) => error.into(),
                    None => SqlError::new(
                        10704,
                        "To rethrow an error, a THROW statement must be used inside a CATCH block.",
                    )
                    .class(15)
                    .into(),
                });
            }
            Act::Throw(Some([number, text, state])) => {
                let number = self.scalar(number, Some(&SqlType::Int), frame, answers)?;
                let text = self.scalar(text, Some(&nvarchar(2048)), frame, answers)?;
                let state = self.scalar(state, Some(&SqlType::TinyInt), frame, answers)?;
                let (SqlValue::Int(number), SqlValue::Text(text), SqlValue::Int(state)) = (number, text, state) else {
                    return Err(SqlError::near("THROW").into());
                };
                return Err(SqlError {
                    number: number.clamp(0, i64::from(i32::MAX)) as u32,
                    class: 16,
                    state: state as u8,
                    text,
                }
                .into());
            }
            Act::Use(name) => self.use_database(name, frame, answers)?,
            Act::Begin { name } => self.begin(name, answers)?,
            Act::Commit => self.commit(answers)?,
            Act::Rollback { name } => self.rollback(name, answers)?,
            Act::Save { name } => self.save(name)?,
            Act::Execute(execute) => self.run_execute(execute, frame, answers)?,
            Act::Query(query) => self.select(query, frame, answers)?,
            Act::Insert(insert) => self.insert(insert, frame, answers)?,
            Act::Update(update) => self.update(update, frame, answers)?,
            Act::Delete(delete) => self.delete(delete, frame, answers)?,
            Act::Merge(merge) => self.merge(merge, frame, answers)?,
            Act::Truncate(name) => self.truncate(name, frame, answers)?,
            Act::Define(define) => self.define(define, frame, answers)?,
            Act::Kill(expr) => {
                let id = self.scalar(expr, Some(&SqlType::Int), frame, answers)?;
                self.kill(&id)?;
                answers.done(None)?;
            }
            Act::WaitFor(expr) => {
                let text = self.scalar(expr, Some(&nvarchar(30)), frame, answers)?;
                self.wait(&text, answers)?;
            }
            Act::Nothing => {}
        }
        Ok(Next::Step)
    }

    /// `EXECUTE` of a procedure or a text. A batch tells its client what a procedure returns.
    pub(super) fn run_execute(
        &mut self,
        execute: &Execute,
        frame: &mut Frame,
        answers: &mut dyn Answers,
    ) -> Outcome<()> {
        match &execute.what {
            Executed::Text(text) => {
                let text = self.scalar(text, Some(&SqlType::NVarChar(Length::Max)), frame, answers)?;
                if let SqlValue::Text(text) = text {
                    let inner = Frame { in_try: frame.in_try, ..Frame::default() };
                    self.nested(&text, inner, frame.depth, answers)?;
                }
            }
            Executed::Procedure(name, arguments) => {
                let status = self.execute(name, arguments, frame, answers)?;
                if let Some(variable) = &execute.status {
                    frame.set(variable, SqlValue::Int(status.into()));
                }
                if frame.depth == 0 {
                    answers.status(status)?;
                }
            }
        }
        Ok(())
    }

    /// A batch inside of this one, with variables of its own.
    pub(crate) fn nested(
        &mut self,
        text: &str,
        mut inner: Frame,
        depth: usize,
        answers: &mut dyn Answers,
    ) -> Outcome<Frame> {
        if depth >= NESTING {
            return Err(SqlError::new(
                217,
                "Maximum stored procedure, function, trigger, or view nesting level exceeded (limit 32).",
            )
            .into());
        }
        inner.depth = depth + 1;
        let result = self.parsed(text, &mut inner, answers);
        self.forget(&inner);
        result.map(|()| inner)
    }

    fn declare(&mut self, declared: &Declared, frame: &mut Frame, answers: &mut dyn Answers) -> Outcome<()> {
        match &declared.what {
            Declaration::Scalar(name, value) => {
                let kind = self.binder(frame).kind(name)?;
                let value = match value {
                    Some(expr) => self.scalar(expr, Some(&kind), frame, answers)?,
                    None => SqlValue::Null,
                };
                frame.variables.insert(declared.name.to_lowercase(), (kind, value));
            }
            Declaration::Table(body) => self.declare_table(&declared.name, body, frame)?,
        }
        Ok(())
    }

    fn set_option(&mut self, option: &SetOption, frame: &mut Frame, answers: &mut dyn Answers) -> Outcome<()> {
        match option {
            SetOption::Isolation(level) => {
                // "SET TRANSACTION ISOLATION LEVEL": to SNAPSHOT only outside, or where it began so.
                let (old, count) = self.state.read(|s| (s.isolation, s.trancount));
                let late = self.transaction.as_ref().is_some_and(|t| t.snapshot.is_none() && !t.undo.is_empty());
                if *level == Isolation::Snapshot && old != Isolation::Snapshot && count > 0 && late {
                    let text = "Transaction failed because this DDL statement is not allowed inside a snapshot isolation transaction.";
                    return Err(SqlError::new(3951, text).into());
                }
                self.state.change(|s| s.isolation = *level);
            }
            SetOption::LockTimeout(expr) => {
                let value = self.scalar(expr, Some(&SqlType::Int), frame, answers)?;
                self.state.change(|s| {
                    s.lock_timeout = match value {
                        SqlValue::Int(n) if n >= 0 => Some(n as i32),
                        _ => None,
                    }
                });
            }
            SetOption::NoCount(on) => self.state.change(|s| s.nocount = *on),
            SetOption::XactAbort(on) => self.state.change(|s| s.xact_abort = *on),
            SetOption::ImplicitTransactions(on) => self.state.change(|s| s.implicit = *on),
            SetOption::IdentityInsert(name, on) => {
                let (_, table) = self.binder(frame).known_table(name)?;
                if !table.columns.iter().any(|c| c.identity.is_some()) {
                    let text = format!(
                        "Table '{}' does not have the identity property. Cannot perform SET operation.",
                        name.text()
                    );
                    return Err(SqlError::new(8106, text).into());
                }
                self.state.change(|s| s.identity_insert = on.then_some(table.id));
            }
            SetOption::RowCount(expr) => {
                let value = self.scalar(expr, Some(&SqlType::BigInt), frame, answers)?;
                self.state.change(|s| {
                    s.row_limit = match value {
                        SqlValue::Int(n) => u64::try_from(n).unwrap_or(0),
                        _ => 0,
                    }
                });
            }
            SetOption::DeadlockPriority(n) => self.state.change(|s| s.deadlock_priority = *n),
        }
        Ok(())
    }

    /// Errors: 911, 942, 916.
    pub(crate) fn use_database(&mut self, name: &str, frame: &Frame, answers: &mut dyn Answers) -> Outcome<()> {
        let world = self.engine.world();
        let Some(database) = world.database(name) else {
            let text = format!("Database '{name}' does not exist. Make sure that the name is entered correctly.");
            return Err(SqlError::new(911, text).into());
        };
        bind::open(&world, &database, &self.state.login.user)?;
        let from = world.database_by_id(self.state.database()).map_or(String::new(), |d| d.name.clone());
        self.state.change(|s| s.database = database.id);
        answers.change(&Change::Database { from, to: database.name.clone() })?;
        let told = SqlError {
            number: 5701,
            class: 0,
            state: 2,
            text: format!("Changed database context to '{}'.", database.name),
        };
        self.say(&told, 1, frame, answers)?;
        Ok(())
    }

    fn raise(
        &mut self,
        message: &Expr,
        severity: &Expr,
        state: &Expr,
        arguments: &[Expr],
        frame: &mut Frame,
        answers: &mut dyn Answers,
    ) -> Outcome<Next> {
        let text = self.scalar(message, None, frame, answers)?;
        let (number, text) = match text {
            SqlValue::Int(n) => (n as u32, format!("Error {n}, severity {{severity}}, state {{state}} was raised.")),
            SqlValue::Text(text) => (50_000, text),
            _ => (50_000, String::new()),
        };
        let SqlValue::Int(class) = self.scalar(severity, Some(&SqlType::Int), frame, answers)? else {
            return Ok(Next::Step);
        };
        let SqlValue::Int(state) = self.scalar(state, Some(&SqlType::Int), frame, answers)? else {
            return Ok(Next::Step);
        };
        let mut values = Vec::new();
        for argument in arguments {
            values.push(match self.scalar(argument, Some(&nvarchar(4000)), frame, answers)? {
                SqlValue::Text(text) => text,
                _ => "(null)".into(),
            });
        }
        let error = SqlError {
            number,
            class: class.clamp(0, 25) as u8,
            state: state.clamp(0, 255) as u8,
            text: printed(&text, values),
        };
        if error.class <= 10 {
            let told = SqlError { number: if error.class == 0 { 0 } else { error.number }, ..error };
            self.say(&told, 1, frame, answers)?;
            return Ok(Next::Step);
        }
        Err(error.into())
    }

    fn kill(&mut self, id: &SqlValue) -> Outcome<()> {
        if !self.engine.world().is_sysadmin(&self.state.login.user) {
            return Err(SqlError::new(6102, "User does not have permission to use the KILL statement.")
                .class(14)
                .into());
        }
        let id = match id {
            SqlValue::Int(n) => u16::try_from(*n).unwrap_or(0),
            _ => 0,
        };
        if id == self.state.id {
            return Err(SqlError::new(6104, "Cannot use KILL to kill your own process.").into());
        }
        match self.engine.session_by_id(id) {
            Some(session) => {
                session.kill();
                self.engine.locks.wake();
                Ok(())
            }
            None => Err(SqlError::new(6106, format!("Process ID {id} is not an active process ID.")).into()),
        }
    }

    fn wait(&self, text: &SqlValue, answers: &mut dyn Answers) -> Outcome<()> {
        let SqlValue::Text(text) = text else { return Ok(()) };
        let Some(moment) = temporal::parse(text) else {
            return Err(SqlError::new(
                148,
                format!("Incorrect time syntax in time string '{text}' used with WAITFOR."),
            )
            .class(15)
            .into());
        };
        let time = std::time::Duration::from_micros(moment.ticks / 10);
        let end = std::time::Instant::now() + time;
        while let Some(left) = end.checked_duration_since(std::time::Instant::now()) {
            if let Some(fault) = self.stopped(answers) {
                return Err(fault);
            }
            std::thread::park_timeout(left.min(std::time::Duration::from_millis(20)));
        }
        Ok(())
    }

    /// A row's value as a value of another type, as an assignment does.
    pub(crate) fn stored_as(value: SqlValue, from: &SqlType, to: &SqlType) -> Result<SqlValue, SqlError> {
        match convert::store(value.clone(), from, to) {
            Ok(value) => Ok(value),
            // Variables cut silently.
            Err(None) => convert::convert(value, from, to, -1),
            Err(Some(error)) => Err(error),
        }
    }
}

/// `%s`, `%d`, `%i`, `%u`, `%%` of `RAISERROR`.
fn printed(text: &str, values: Vec<String>) -> String {
    let mut values = values.into_iter();
    let mut result = String::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match (c, chars.peek()) {
            ('%', Some('%')) => {
                chars.next();
                result.push('%');
            }
            ('%', Some('s' | 'd' | 'i' | 'u')) => {
                chars.next();
                result.push_str(&values.next().unwrap_or_else(|| "(null)".into()));
            }
            (c, _) => result.push(c),
        }
    }
    result
}

/// Errors after which the rest of the batch does not run: conversion errors, deadlocks, missing variables, and
/// names that are not found when a batch is compiled. The documents name only some of them.
fn ends_batch(error: &SqlError) -> bool {
    matches!(
        error.number,
        102 | 137 | 156 | 208 | 241 | 242 | 245 | 248 | 911 | 942 | 1205 | 1222 | 3930 | 3952 | 3960 | 8114 | 8169
    )
}

//! A session's side of the engine: requests, batches, errors.

use std::sync::Arc;
use std::time::Duration;

use rusqlite::Connection;

use crate::engine::bind::{Binder, Sight, Variables};
use crate::engine::fault::{Fault, Outcome, SqlError};
use crate::engine::locks::Asker;
use crate::engine::procedures::{Cursors, Prepared};
use crate::engine::session::state::{Inner, SessionState};
use crate::engine::session::transaction::Transaction;
use crate::engine::shared::Engine;
use crate::engine::sql;
use crate::engine::sql::statement::Step;
use crate::session::{Answers, Cancelled, Message, Request, Session};
use crate::value::SqlValue;

/// Level of procedures and batches inside of each other.
pub(crate) const NESTING: usize = 32;

pub(crate) struct Runner {
    pub(crate) engine: Arc<Engine>,
    /// The database that the login has opened.
    home: i32,
    pub(crate) state: Arc<SessionState>,
    pub(crate) db: Connection,
    pub(crate) transaction: Option<Transaction>,
    pub(crate) prepared: Prepared,
    pub(crate) cursors: Cursors,
}

/// Variables and place of a batch or procedure.
#[derive(Default)]
pub(crate) struct Frame {
    pub(crate) variables: Variables,
    pub(crate) procedure: String,
    pub(crate) depth: usize,
    /// Table variables that end with the batch.
    pub(crate) tables: Vec<String>,
    pub(crate) in_try: usize,
}

impl Runner {
    pub(crate) fn new(engine: &Arc<Engine>, state: Arc<SessionState>) -> Result<Self, SqlError> {
        let db = engine.open(&state)?;
        let home = state.database();
        Ok(Self {
            engine: engine.clone(),
            home,
            state,
            db,
            transaction: None,
            prepared: Prepared::default(),
            cursors: Cursors::default(),
        })
    }

    pub(crate) fn asker(&self) -> Asker {
        let (timeout, priority) = self.state.read(|s| (s.lock_timeout, s.deadlock_priority));
        let timeout = timeout.and_then(|t| u64::try_from(t).ok()).map(Duration::from_millis);
        Asker {
            session: self.state.id,
            timeout,
            priority,
            weight: self.transaction.as_ref().map_or(0, |t| t.undo.len()),
        }
    }

    pub(crate) fn binder<'a>(&'a self, frame: &'a Frame) -> Binder<'a> {
        let sight = match &self.transaction {
            Some(Transaction { snapshot: Some(snapshot), number, .. }) => {
                Sight::Snapshot { snapshot: snapshot.clone(), own: *number }
            }
            _ => Sight::Last,
        };
        Binder::new(&self.engine, &self.state, &frame.variables, sight)
    }

    /// Why the session should stop, if it should.
    pub(crate) fn stopped(&self, answers: &dyn Answers) -> Option<Fault> {
        if self.state.killed() || self.engine.stopped.load(std::sync::atomic::Ordering::SeqCst) {
            return Some(Fault::Killed);
        }
        answers.cancelled().then_some(Fault::Cancelled)
    }

    fn text(&mut self, text: &str, answers: &mut dyn Answers) -> Result<(), Cancelled> {
        let mut frame = Frame::default();
        let outcome = self.parsed(text, &mut frame, answers);
        self.forget(&frame);
        self.told(outcome, &frame, answers)
    }

    /// Runs a text in a frame of variables.
    pub(crate) fn parsed(&mut self, text: &str, frame: &mut Frame, answers: &mut dyn Answers) -> Outcome<()> {
        match sql::batch(text) {
            Ok(steps) => self.steps(&steps, frame, answers).map(drop),
            Err((error, line)) => {
                self.state.change(|s| s.error = error.number);
                self.say(&error, line, frame, answers)?;
                answers.done(None)?;
                Ok(())
            }
        }
    }

    /// Steps of a whole batch; an error that ends a statement only is told, and the next one runs.
    pub(crate) fn steps(
        &mut self,
        steps: &[Step],
        frame: &mut Frame,
        answers: &mut dyn Answers,
    ) -> Outcome<super::flow::Next> {
        self.block(steps, frame, answers)
    }

    /// Table variables end with their batch.
    pub(crate) fn forget(&mut self, frame: &Frame) {
        if !frame.tables.is_empty() {
            self.state.change(|s| s.temporary.retain(|t| !frame.tables.contains(&t.name)));
        }
    }

    pub(crate) fn say(
        &self,
        error: &SqlError,
        line: u32,
        frame: &Frame,
        answers: &mut dyn Answers,
    ) -> Result<(), Cancelled> {
        answers.message(&Message {
            number: error.number,
            state: error.state,
            class: error.class,
            text: error.text.clone(),
            procedure: frame.procedure.clone(),
            line,
        })
    }

    /// Tells what ended the request.
    fn told(&mut self, outcome: Outcome<()>, frame: &Frame, answers: &mut dyn Answers) -> Result<(), Cancelled> {
        match outcome {
            Ok(()) => Ok(()),
            Err(Fault::Error(error)) => {
                self.state.change(|s| s.error = error.number);
                self.say(&error, 1, frame, answers)?;
                answers.done(None)
            }
            Err(Fault::Killed) => {
                let error =
                    SqlError::new(596, "Cannot continue the execution because the session is in the kill state.")
                        .class(21);
                self.say(&error, 1, frame, answers)?;
                Err(Cancelled)
            }
            Err(Fault::Cancelled | Fault::Blocked(_)) => Err(Cancelled),
        }
    }
}

impl Session for Runner {
    fn id(&self) -> u16 {
        self.state.id
    }

    fn run(&mut self, request: Request, answers: &mut dyn Answers) -> Result<(), Cancelled> {
        self.state.change(|s| s.running = true);
        let frame = Frame::default();
        let result = match request {
            Request::Batch(text) => self.text(&text, answers),
            Request::Procedure { name, parameters } => {
                let outcome = self.called(&name, parameters, answers);
                self.told(outcome, &frame, answers)
            }
            Request::Begin { isolation, name } => {
                if let Some(level) = isolation {
                    self.state.change(|s| s.isolation = level);
                }
                let outcome = self.begin(&name, answers);
                self.told(outcome, &frame, answers)
            }
            Request::Commit { then_begin, .. } => {
                let outcome =
                    self.commit(answers).and_then(|()| if then_begin { self.begin("", answers) } else { Ok(()) });
                self.told(outcome, &frame, answers)
            }
            Request::Rollback { name, then_begin } => {
                let outcome = self
                    .rollback(&name, answers)
                    .and_then(|()| if then_begin { self.begin("", answers) } else { Ok(()) });
                self.told(outcome, &frame, answers)
            }
            Request::Save { name } => {
                let outcome = self.save(&name);
                self.told(outcome, &frame, answers)
            }
        };
        // A cancelled statement may have left SQLite's transaction open.
        if !self.db.is_autocommit() {
            let _ = self.db.execute_batch("ROLLBACK");
        }
        self.state.change(|s| s.running = false);
        result
    }

    fn reset(&mut self) {
        let _ = self.roll_back_all();
        self.prepared = Prepared::default();
        self.cursors = Cursors::default();
        let temporary = self.state.change(|s| std::mem::replace(s, Inner::new(self.home)).temporary);
        for table in temporary {
            let _ = self.db.execute_batch(&format!("DROP TABLE IF EXISTS {}", table.kept_name()));
        }
    }

    fn killed(&self) -> bool {
        self.state.killed()
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        self.reset();
        self.engine.locks.release(self.state.id);
        let mut sessions = self.engine.sessions.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        sessions.remove(&self.state.id);
    }
}

impl Frame {
    pub(crate) fn set(&mut self, name: &str, value: SqlValue) {
        if let Some(variable) = self.variables.get_mut(&name.to_lowercase()) {
            variable.1 = value;
        }
    }
}

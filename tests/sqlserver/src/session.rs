//! What a client asks of its session, and how the session answers.
//!
//! A session blocks: it runs on a thread of its own, and every call of [`Answers`] may wait for the client.

use crate::types::SqlType;
use crate::value::SqlValue;

/// Who connects, from LOGIN7.
#[derive(Debug, Clone, Default)]
pub struct Login {
    pub user: String,
    pub password: String,
    /// Empty: the login's default database.
    pub database: String,
    pub application: String,
    pub host: String,
    /// `ApplicationIntent=ReadOnly`.
    pub read_only: bool,
}

/// A column of a result.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// Empty: the column has no name.
    pub name: String,
    pub kind: SqlType,
    pub nullable: bool,
    pub identity: bool,
    pub computed: bool,
}

/// A parameter of a procedure call. Without a name it counts by its place.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameter {
    /// With its `@`; empty: by place.
    pub name: String,
    pub kind: SqlType,
    pub value: SqlValue,
    pub output: bool,
}

/// Isolation levels, as requests of the transaction manager number them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isolation {
    ReadUncommitted,
    ReadCommitted,
    RepeatableRead,
    Serializable,
    Snapshot,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Request {
    Batch(String),
    /// Procedures that are called by number (`sp_executesql` is 10) come with their names.
    Procedure {
        name: String,
        parameters: Vec<Parameter>,
    },
    Begin {
        isolation: Option<Isolation>,
        name: String,
    },
    Commit {
        name: String,
        then_begin: bool,
    },
    Rollback {
        name: String,
        then_begin: bool,
    },
    Save {
        name: String,
    },
}

/// An error or an informational message of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    pub number: u32,
    pub state: u8,
    /// Severity; over 10 it is an error, from 20 the connection ends.
    pub class: u8,
    pub text: String,
    pub procedure: String,
    pub line: u32,
}

/// What changes in the client's environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    Database {
        from: String,
        to: String,
    },
    Language {
        from: String,
        to: String,
    },
    /// Descriptor of the transaction that begins.
    Begun(u64),
    Committed(u64),
    RolledBack(u64),
}

/// The client cancelled the request or is gone: nothing more is to be done for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cancelled;

/// Where answers go, in the order of the calls.
///
/// What a listener does not say anything about, it does not listen to.
pub trait Answers {
    /// A result begins.
    fn columns(&mut self, _columns: &[Column]) -> Result<(), Cancelled> {
        Ok(())
    }
    /// As many values as columns.
    fn row(&mut self, _values: &[SqlValue]) -> Result<(), Cancelled> {
        Ok(())
    }
    /// A statement ends; with the rows it returned or changed, unless `SET NOCOUNT ON` or it counts none.
    fn done(&mut self, _rows: Option<u64>) -> Result<(), Cancelled> {
        Ok(())
    }
    fn message(&mut self, _message: &Message) -> Result<(), Cancelled> {
        Ok(())
    }
    fn change(&mut self, _change: &Change) -> Result<(), Cancelled> {
        Ok(())
    }
    /// Value of an output parameter.
    fn output(&mut self, _name: &str, _kind: &SqlType, _value: &SqlValue) -> Result<(), Cancelled> {
        Ok(())
    }
    /// What a procedure returns.
    fn status(&mut self, _status: i32) -> Result<(), Cancelled> {
        Ok(())
    }
    /// Whether the client has cancelled; long work looks now and then.
    fn cancelled(&self) -> bool {
        false
    }
}

/// One connection's side of the engine. Dropping it ends the session: what it began is rolled back.
pub trait Session: Send {
    /// `SPID`.
    fn id(&self) -> u16;
    /// Answers everything that the request leads to; the wire ends the answer itself.
    fn run(&mut self, request: Request, answers: &mut dyn Answers) -> Result<(), Cancelled>;
    /// State as after a login, which a request may ask for (`RESETCONNECTION`).
    fn reset(&mut self);
    /// From another thread: the session ends and its connection with it (`KILL`).
    fn killed(&self) -> bool;
}

/// Takes logins.
pub trait Server: Send + Sync + 'static {
    /// Errors: the message that the client sees (18456, 4060, …).
    fn login(&self, login: &Login) -> Result<(Box<dyn Session>, Greeting), Message>;
}

/// What the answer to a login says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Greeting {
    pub database: String,
    /// Name of the program, e.g. `Microsoft SQL Server`.
    pub program: String,
    /// Major, minor, build.
    pub version: (u8, u8, u16),
}

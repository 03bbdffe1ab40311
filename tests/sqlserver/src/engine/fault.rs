//! What ends a statement early.
//!
//! Numbers, severities and texts are those of "Database Engine events and errors" and of `sys.messages`.

use std::fmt;

use crate::session::Cancelled;

/// An error of the server before it is known in which procedure and line it happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SqlError {
    pub(crate) number: u32,
    /// Severity.
    pub(crate) class: u8,
    pub(crate) state: u8,
    pub(crate) text: String,
}

#[derive(Debug)]
pub(crate) enum Fault {
    Error(SqlError),
    /// The client cancelled the request.
    Cancelled,
    /// The session was ended by `KILL` or by the end of the server.
    Killed,
    /// A row that the statement wants to change was changed by this transaction, which has not ended.
    Blocked(u64),
}

pub(crate) type Outcome<T> = Result<T, Fault>;

impl SqlError {
    /// An error of severity 16.
    pub(crate) fn new(number: u32, text: impl Into<String>) -> Self {
        Self { number, class: 16, state: 1, text: text.into() }
    }

    pub(crate) fn class(mut self, class: u8) -> Self {
        self.class = class;
        self
    }

    pub(crate) fn state(mut self, state: u8) -> Self {
        self.state = state;
        self
    }

    pub(crate) fn near(token: &str) -> Self {
        Self::new(102, format!("Incorrect syntax near '{token}'.")).class(15)
    }

    pub(crate) fn unknown_object(name: &str) -> Self {
        Self::new(208, format!("Invalid object name '{name}'."))
    }

    pub(crate) fn unknown_column(name: &str) -> Self {
        Self::new(207, format!("Invalid column name '{name}'."))
    }

    pub(crate) fn unknown_variable(name: &str) -> Self {
        Self::new(137, format!("Must declare the scalar variable \"{name}\".")).class(15).state(2)
    }

    pub(crate) fn overflow(kind: &str) -> Self {
        Self::new(8115, format!("Arithmetic overflow error converting expression to data type {kind}.")).state(2)
    }

    pub(crate) fn divide_by_zero() -> Self {
        Self::new(8134, "Divide by zero error encountered.")
    }

    /// What the engine does not know, which the real server may well know: the text says so.
    pub(crate) fn unsupported(what: impl fmt::Display) -> Self {
        Self::new(40517, format!("{what} is not supported by this emulator of SQL Server."))
    }
}

/// The form in which an error passes through SQLite, from a function to the statement that called it.
impl fmt::Display for SqlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\u{1}{}\u{1}{}\u{1}{}\u{1}{}", self.number, self.class, self.state, self.text)
    }
}

impl std::error::Error for SqlError {}

impl SqlError {
    fn from_sqlite(text: &str) -> Option<Self> {
        let mut parts = text[text.find('\u{1}')? + 1..].splitn(4, '\u{1}');
        Some(Self {
            number: parts.next()?.parse().ok()?,
            class: parts.next()?.parse().ok()?,
            state: parts.next()?.parse().ok()?,
            text: parts.next()?.to_owned(),
        })
    }
}

impl From<rusqlite::Error> for SqlError {
    /// An error that SQLite itself raised means that a statement was translated wrongly: 8630, the
    /// "internal query processor error" of the real server.
    fn from(error: rusqlite::Error) -> Self {
        let text = error.to_string();
        Self::from_sqlite(&text).unwrap_or_else(|| {
            Self::new(8630, format!("Internal Query Processor Error: the emulator's SQLite says: {text}")).class(17)
        })
    }
}

impl From<SqlError> for rusqlite::Error {
    fn from(error: SqlError) -> Self {
        Self::UserFunctionError(Box::new(error))
    }
}

impl From<SqlError> for Fault {
    fn from(error: SqlError) -> Self {
        Self::Error(error)
    }
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        Self::Error(error.into())
    }
}

impl From<Cancelled> for Fault {
    fn from(_: Cancelled) -> Self {
        Self::Cancelled
    }
}

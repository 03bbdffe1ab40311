//! Types and values: names, sizes, precedence, conversion, and the form in which SQLite keeps them.

mod as_text;
pub(crate) mod convert;
pub(crate) mod decimal;
pub(crate) mod kind;
pub(crate) mod odbc;
pub(crate) mod stored;
pub(crate) mod temporal;
pub(crate) mod text;

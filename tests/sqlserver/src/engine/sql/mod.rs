//! T-SQL as text: what a batch says, before names are looked up.
//!
//! `sqlparser` reads tokens, expressions and queries; statements and control of flow are read here, since
//! the crate's own statements do not have T-SQL's shapes.

mod define;
mod dialect;
mod flow;
mod parse;
mod procedure;
pub(crate) mod statement;
mod table;
mod write;

pub(crate) use parse::{batch, expression, name_of, query};

//! Running what a request asks for.

mod batch;
mod constraints;
mod databases;
mod define;
mod flow;
mod insert;
mod insert_execute;
mod merge;
mod modules;
mod output;
mod rows;
mod schema;
mod security;
mod select;
mod tables;
mod transaction;
mod update;

pub(crate) use batch::{Frame, NESTING, Runner};
pub(crate) use flow::Next;
pub(crate) use rows::Writer;

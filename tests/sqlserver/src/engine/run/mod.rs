//! Running what a request asks for.

mod batch;
mod constraints;
mod define;
mod flow;
mod insert;
mod merge;
mod output;
mod rows;
mod schema;
mod select;
mod transaction;
mod update;

pub(crate) use batch::{Frame, Runner};
pub(crate) use rows::Writer;

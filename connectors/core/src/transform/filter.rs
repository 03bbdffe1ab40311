//! `Filter`: leaves records out; which ones, its predicate says.

use thalweg_config::OptionTable;

use super::options::table;
use super::{Fate, Transform};
use crate::error::Result;
use crate::record::Record;

pub(super) static OPTIONS: OptionTable = table("Filter", &[], &[]);

pub(super) struct Filter;

impl Transform for Filter {
    fn apply(&mut self, _: &mut Record) -> Result<Fate> {
        Ok(Fate::Drop)
    }
}

//! `DropHeaders`: takes headers off by name.

use thalweg_config::{Importance, OptionKind, OptionTable, Settings};

use super::header_list::HeaderList;
use super::options::{option, some_distinct_items, table};
use super::{Fate, Made, Transform};
use crate::error::Result;
use crate::record::Record;

pub(super) static OPTIONS: OptionTable = table(
    "DropHeaders",
    &[option("headers", OptionKind::List, Importance::High, "Names of the headers to take off.")
        .required()
        .check(some_distinct_items)
        .whole_texts()],
    &[],
);

pub(super) struct DropHeaders {
    names: Vec<String>,
    lists: HeaderList,
}

impl DropHeaders {
    pub(super) fn make(settings: &Settings) -> Made {
        Ok(Box::new(Self { names: settings.list("headers").to_vec(), lists: HeaderList::default() }))
    }
}

impl Transform for DropHeaders {
    fn apply(&mut self, record: &mut Record) -> Result<Fate> {
        if !record.headers.is_empty() {
            let gone = |name: &str| self.names.iter().any(|n| n == name);
            record.headers = self.lists.changed(&record.headers, |list| list.retain(|header| !gone(&header.name)));
        }
        Ok(Fate::Keep)
    }
}

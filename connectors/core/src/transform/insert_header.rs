//! `InsertHeader`: adds a header with a constant value.

use std::sync::Arc;

use thalweg_config::{Importance, OptionKind, OptionTable, Settings};

use super::header_list::HeaderList;
use super::literal::literal;
use super::options::{option, table};
use super::{Fate, Made, Transform};
use crate::error::Result;
use crate::record::{Header, Record};

pub(super) static OPTIONS: OptionTable = table(
    "InsertHeader",
    &[
        option("header", OptionKind::String, Importance::High, "Name of the header.").required(),
        option(
            "value.literal",
            OptionKind::String,
            Importance::High,
            "Value of the header. A number, true, false, null, a date, a list in brackets or a map in braces is taken as such; all else is text.",
        )
        .required(),
    ],
    &[],
);

pub(super) struct InsertHeader {
    header: Header,
    lists: HeaderList,
}

impl InsertHeader {
    pub(super) fn make(settings: &Settings) -> Made {
        let datum = literal(settings.text_or_empty("value.literal"));
        let name: Arc<str> = settings.text_or_empty("header").into();
        let header = Header { name, schema: datum.schema, value: datum.value };
        Ok(Box::new(Self { header, lists: HeaderList::default() }))
    }
}

impl Transform for InsertHeader {
    fn apply(&mut self, record: &mut Record) -> Result<Fate> {
        record.headers = self.lists.changed(&record.headers, |list| list.push(self.header.clone()));
        Ok(Fate::Keep)
    }
}

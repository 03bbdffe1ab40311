//! The side of a record that a transform works on: `$Key` or `$Value` of its class.

use crate::record::{Datum, Record};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Key,
    Value,
}

impl Side {
    pub(super) fn of_mut(self, record: &mut Record) -> &mut Datum {
        match self {
            Self::Key => &mut record.key,
            Self::Value => &mut record.value,
        }
    }
}

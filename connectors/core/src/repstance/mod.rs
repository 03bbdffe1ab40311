//! The second message format, `thalweg.format=repstance`: a step between reader and transforms that turns
//! a connector's records (Debezium's envelope) into messages for consumers of Repstance's Kafka target.
//!
//! `step` is the way of a record; `envelope` takes it apart, `row` and `json_tree` make JSON of rows and
//! of documents, `identity` tells changes apart, `cut` keeps messages within their size, `ddl` is the
//! topic of table definitions, `options` what may be set and with which converters it works.
//!
//! Invariants: a message is a function of the record and its position, so that what is read again after
//! a restart gives the same messages with the same `(source.lsn, source.seq)`; all messages of a change
//! follow each other and carry the position of the change (who sends them lets only the last one count);
//! values have no schema. What connectors owe the format: they make no tombstones (see
//! [`is_chosen`]), and a row that changes its key comes as Debezium's pair of delete and create with the
//! headers `__debezium.newkey` and `__debezium.oldkey`, in one batch.
//!
//! It does not: send, convert to bytes, or touch records that are no changes (heartbeats, transactions).

mod cut;
mod ddl;
mod envelope;
mod identity;
mod json_tree;
mod options;
mod row;
mod step;

pub use options::{FormatCheck, check, ddl_topic, is_chosen, with_converters};
pub use step::Repstance;

use crate::error::{Error, ErrorKind, Phase, Result};
use crate::record::{Text, Value};

/// Members of a JSON object, in order.
type Members = Vec<(Value, Value)>;

fn name(text: impl Into<Text>) -> Value {
    Value::text(text)
}

fn member(key: &'static str, value: Value) -> (Value, Value) {
    (Value::text(key), value)
}

/// A record that is not what a connector makes.
fn odd<T>(text: impl Into<String>) -> Result<T> {
    Err(Error::new(ErrorKind::ValueInvalid, Phase::Convert, text))
}

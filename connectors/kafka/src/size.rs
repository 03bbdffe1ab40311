//! The size check of Kafka's Java producer: what a request with this one record needs at most,
//! before compression. Refusing here is the only refusal that costs nothing: no request, no
//! transaction, and the caller may leave the record out and go on.

use thalweg_core::Error;
use thalweg_core::delivery::Message;

use crate::errors::{self, Coordinates};

/// Header of a record batch.
const BATCH: u64 = 61;
/// Most that length, attributes, timestamp, offset and the lengths of key and value can take.
const RECORD: u64 = 21;
/// Most that the lengths of a header's name and value can take.
const HEADER: u64 = 10;

fn request_bytes(message: &Message<'_>) -> u64 {
    let payload = message.key.map_or(0, <[u8]>::len) + message.value.map_or(0, <[u8]>::len);
    let headers: u64 =
        message.headers.iter().map(|(n, v)| HEADER + n.len() as u64 + v.as_ref().map_or(0, |v| v.len() as u64)).sum();
    BATCH + RECORD + payload as u64 + headers
}

/// Refuses a record above `limit` bytes.
pub(crate) fn check(message: &Message<'_>, limit: u64) -> Result<(), Error> {
    let request = request_bytes(message);
    if request <= limit {
        return Ok(());
    }
    let bytes = message.key.map_or(0, <[u8]>::len) + message.value.map_or(0, <[u8]>::len);
    let at = Coordinates { topic: message.topic, partition: message.partition, key: message.key, bytes: bytes as u64 };
    Err(errors::oversize_record(at, request, limit))
}

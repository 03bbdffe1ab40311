//! Heartbeat records, and how the position of a quiet source gets on.
//!
//! A heartbeat is an ordinary record with the present position; without one the same position travels
//! as [`Batch::progress`]. Both take their place behind the records that were read before, so nothing
//! overtakes. It has no timer and no clock of its own: the reader asks with the time it knows.

use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use crate::position::Position;
use crate::record::{Datum, Headers, Record, Schema, Value};
use crate::source::Batch;

fn key_schema() -> Arc<Schema> {
    static SCHEMA: LazyLock<Arc<Schema>> = LazyLock::new(|| {
        let schema = Schema::record([("serverName", Schema::string())]);
        Arc::new(schema.named("io.debezium.connector.common.ServerNameKey").versioned(1))
    });
    SCHEMA.clone()
}

fn value_schema() -> Arc<Schema> {
    static SCHEMA: LazyLock<Arc<Schema>> = LazyLock::new(|| {
        let schema = Schema::record([("ts_ms", Schema::int64())]);
        Arc::new(schema.named("io.debezium.connector.common.Heartbeat").versioned(1))
    });
    SCHEMA.clone()
}

/// Bytes that a heartbeat counts for in the queue.
const HEARTBEAT_BYTES: usize = 256;

/// Makes the heartbeats of one partition.
#[derive(Debug, Clone)]
pub struct Heartbeat {
    /// Zero: off.
    interval: Duration,
    topic: Arc<str>,
    key: Datum,
    last: Instant,
    /// The next one does not wait for the interval.
    forced: bool,
}

impl Heartbeat {
    /// `interval` is `heartbeat.interval.ms` (zero sends none), `server_name` is `topic.prefix`; the
    /// first one is due an interval after `now`.
    pub fn new(interval: Duration, topic: Arc<str>, server_name: &str, now: Instant) -> Self {
        let key = Datum::new(key_schema(), Value::Struct(vec![Value::text(server_name.to_owned())]));
        Self { interval, topic, key, last: now, forced: false }
    }

    pub fn is_on(&self) -> bool {
        !self.interval.is_zero()
    }

    pub fn due(&self, now: Instant) -> bool {
        self.is_on() && (self.forced || now.saturating_duration_since(self.last) >= self.interval)
    }

    /// Makes the next one due at once: at the end of a snapshot.
    pub fn force(&mut self) {
        self.forced = true;
    }

    /// A heartbeat with this position; `wall_ms` is the time it states. `None` while nothing is known
    /// of the position: it would store an empty offset.
    pub fn record(&mut self, position: &Position, now: Instant, wall_ms: i64) -> Option<Record> {
        if position.is_empty() {
            return None;
        }
        self.last = now;
        self.forced = false;
        Some(Record {
            topic: self.topic.clone(),
            partition: Some(0),
            key: self.key.clone(),
            value: Datum::new(value_schema(), Value::Struct(vec![Value::Int64(wall_ms)])),
            headers: Headers::default(),
            timestamp: None,
            position: position.clone(),
        })
    }

    /// Closes a batch behind which the source stands at `position`: a heartbeat if one is due,
    /// otherwise progress, if the position is not that of the last record anyway.
    pub fn close(&mut self, batch: &mut Batch, position: &Position, now: Instant, wall_ms: i64) {
        if self.due(now)
            && let Some(beat) = self.record(position, now, wall_ms)
        {
            batch.records.push(beat);
            batch.bytes += HEARTBEAT_BYTES;
            batch.progress = None;
            return;
        }
        let moved = batch.records.last().is_none_or(|record| record.position != *position);
        batch.progress = (moved && !position.is_empty()).then(|| position.clone());
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use bytes::Bytes;

    use super::*;
    use crate::convert::{Converter, JsonConverter};

    fn position(text: &'static str) -> Position {
        Position::new(Bytes::from_static(text.as_bytes()))
    }

    fn heartbeat(millis: u64, now: Instant) -> Heartbeat {
        Heartbeat::new(Duration::from_millis(millis), "__debezium-heartbeat.p".into(), "p", now)
    }

    fn json(datum: &Datum) -> String {
        let mut out = Vec::new();
        JsonConverter::with_schemas().convert_datum(&"t".into(), datum, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn key_and_value_as_recorded() {
        let now = Instant::now();
        let record = heartbeat(300, now).record(&position("1"), now, 1_795_976_056_780).unwrap();
        assert_eq!(
            json(&record.key),
            r#"{"schema":{"type":"struct","fields":[{"type":"string","optional":false,"field":"serverName"}],"optional":false,"name":"io.debezium.connector.common.ServerNameKey","version":1},"payload":{"serverName":"p"}}"#
        );
        assert_eq!(
            json(&record.value),
            r#"{"schema":{"type":"struct","fields":[{"type":"int64","optional":false,"field":"ts_ms"}],"optional":false,"name":"io.debezium.connector.common.Heartbeat","version":1},"payload":{"ts_ms":1795976056780}}"#
        );
        assert_eq!((&*record.topic, record.partition, record.headers.len()), ("__debezium-heartbeat.p", Some(0), 0));
    }

    #[test]
    fn due_by_interval_or_by_force() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut beat = heartbeat(300, start);
        assert!(!beat.due(at(299)) && beat.due(at(300)));
        assert!(beat.record(&Position::default(), at(300), 0).is_none(), "nothing known of the position");
        assert!(beat.due(at(300)));
        beat.record(&position("1"), at(310), 0).unwrap();
        assert!(!beat.due(at(609)) && beat.due(at(610)));
        beat.record(&position("1"), at(700), 0).unwrap();
        beat.force();
        assert!(beat.due(at(701)));
        beat.record(&position("1"), at(701), 0).unwrap();
        assert!(!beat.due(at(702)));
        let mut off = heartbeat(0, start);
        off.force();
        assert!(!off.due(at(1_000_000)));
    }

    #[test]
    fn a_batch_ends_with_a_heartbeat_or_with_progress() {
        let start = Instant::now();
        let mut beat = heartbeat(1_000, start);
        let late = start + Duration::from_secs(2);

        let mut quiet = Batch::default();
        beat.close(&mut quiet, &position("1"), start, 0);
        assert_eq!((quiet.records.len(), quiet.progress), (0, Some(position("1"))));

        let mut due = Batch::default();
        beat.close(&mut due, &position("2"), late, 7);
        assert_eq!((due.records.len(), due.progress), (1, None));
        assert_eq!(due.records[0].position, position("2"));

        let mut full = Batch { records: due.records, ..Batch::default() };
        beat.close(&mut full, &position("2"), late, 7);
        assert_eq!((full.records.len(), full.progress), (1, None), "the last record says it already");
        let mut filtered = Batch { records: full.records, ..Batch::default() };
        beat.close(&mut filtered, &position("3"), late, 7);
        assert_eq!(filtered.progress, Some(position("3")));
        let mut unknown = Batch::default();
        beat.close(&mut unknown, &Position::default(), late, 7);
        assert_eq!(unknown.progress, None);
    }
}

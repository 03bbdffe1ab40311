//! Change events and documents of a snapshot to records.
//!
//! Works on the raw bytes of a reply: documents become texts that are written only into the message
//! ([`crate::extended_json`]), and share the reply's buffer until then. Per event nothing is locked,
//! and what is allocated is the record itself; and a document from which fields are left out or in
//! which they are renamed ([`crate::fields`]).
//!
//! What cannot be made into a record (a key that is missing, damaged bytes, a new name of a field that
//! is taken) follows `event.processing.failure.handling.mode`; it moves the position like any other
//! event. Fragments must be joined before ([`crate::split`]). The server leaves out what
//! `skipped.operations` names, but for signals, which come with it to be heard: so that is looked at here
//! as well. Where the user's own pipeline stands for all, it decides that, too.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use thalweg_core::envelope::{SnapshotMarker, SourceCommon, SourceTime, context_headers};
use thalweg_core::event_failure::FailureMode;
use thalweg_core::naming::TopicNaming;
use thalweg_core::position::{OffsetMap, Position};
use thalweg_core::record::{Datum, Headers, Record, Text, TextForm, Value};
use thalweg_core::{Error, Phase};
use tracing::warn;

use crate::change::{self, Change, Operation};
use crate::extended_json::{self, Writer};
use crate::fields::{FieldError, FieldRules};
use crate::filter::NamespaceFilter;
use crate::key::{NoKey, id_of, key_text};
use crate::namespace::Namespace;
use crate::options::{MongoConfig, PipelineOrder, SkippedOperations};
use crate::position::{self, MongoPosition, Positions, lsid_text};
use crate::raw::{Element, Malformed, kind};
use crate::schema::{Collection, Collections, envelope, source};
use crate::transaction::Transactions;

/// Short name in `source` and headers.
const CONNECTOR: &str = "mongodb";

/// What became of a change event, besides its records.
#[derive(Debug)]
pub struct Seen {
    /// Behind the event.
    pub position: Position,
    /// Time of the change in ms since the epoch.
    pub source_ms: i64,
    pub fate: Fate,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// Records were made.
    Recorded,
    /// A list does not let it pass, or its type means nothing here.
    Filtered,
    /// No record could be made, and the configuration says to go on.
    Failed,
}

/// Events with records, by kind; and transactions that ended among them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    pub creates: u64,
    pub updates: u64,
    pub deletes: u64,
    pub transactions: u64,
}

/// A snapshot that is being read.
#[derive(Debug)]
struct Reading {
    /// Position of every record but the last.
    unfinished: Position,
    finished: Position,
    /// Time and increment of the position, where known.
    sec: i32,
    ord: i32,
}

/// Makes the records of one partition.
pub struct Decoder {
    collections: Collections,
    documents: Writer,
    updates: Writer,
    tombstones: bool,
    skipped: SkippedOperations,
    on_failure: FailureMode,
    version: Text,
    prefix: Text,
    /// Name of the shard, if each has its own stream.
    replica_set: Option<Text>,
    headers: Headers,
    positions: Positions,
    /// Unset: nothing is told of transactions.
    transactions: Option<Transactions>,
    /// What positions hold of an incremental snapshot and of signals.
    snapshot_state: Option<Arc<[u8]>>,
    /// Behind the event before.
    last: Position,
    reading: Option<Reading>,
    /// Events without a record that nobody has asked for yet.
    failures: u64,
    /// Events with records that nobody has asked for yet.
    tally: Tally,
    scratch: Vec<u8>,
}

/// Where an event came from, for whoever reads that it has no record.
struct Origin<'a> {
    phase: Phase,
    position: &'a Position,
    /// Database and collection; empty if the event does not tell.
    collection: &'a str,
    /// The document of a snapshot: there the position is that of the whole.
    document: Option<&'a [u8]>,
}

/// Most characters of an `_id` in a message.
const ID_SHOWN: usize = 200;

/// Why an event has no record.
#[derive(Debug, thiserror::Error)]
enum Unusable {
    #[error(transparent)]
    NoKey(#[from] NoKey),
    #[error(transparent)]
    Malformed(#[from] Malformed),
    #[error(transparent)]
    Fields(#[from] FieldError),
}

impl Decoder {
    /// `replica_set`: the shard's name, in connection mode `replica_set` on a sharded cluster only.
    pub fn new(
        config: &MongoConfig,
        filter: Arc<NamespaceFilter>,
        task: u32,
        run_id: &str,
        replica_set: Option<Arc<str>>,
    ) -> Self {
        let headers = if config.events.extended_headers {
            context_headers(&config.topic_prefix, task, CONNECTOR, run_id)
        } else {
            Headers::default()
        };
        Self {
            collections: Collections::new(config, filter, replica_set.is_some()),
            documents: config.events.json.documents(),
            updates: config.events.json.updates(),
            tombstones: config.events.tombstones,
            skipped: match config.cursor.order {
                PipelineOrder::UserOnly => SkippedOperations::default(),
                PipelineOrder::UserFirst | PipelineOrder::InternalFirst => config.events.skipped,
            },
            on_failure: config.events.on_failure,
            version: config.events.reported_version.clone().into(),
            prefix: config.topic_prefix.clone().into(),
            replica_set: replica_set.map(Text::Shared),
            headers,
            positions: Positions::default(),
            transactions: config
                .events
                .transactions
                .then(|| Transactions::new(TopicNaming::new(config.naming.clone()).transaction())),
            snapshot_state: None,
            last: Position::default(),
            reading: None,
            failures: 0,
            tally: Tally::default(),
            scratch: Vec::new(),
        }
    }

    /// What the events since the last call were.
    pub fn take_tally(&mut self) -> Tally {
        std::mem::take(&mut self.tally)
    }

    /// How many events had no record since the last call, whatever the configuration made of them.
    pub fn take_failures(&mut self) -> u64 {
        std::mem::take(&mut self.failures)
    }

    /// The stream begins behind `position`: what the first record of a change with several records
    /// carries. A transaction that was open there goes on.
    pub fn stream_from(&mut self, position: Position) {
        if let Some(transactions) = &mut self.transactions {
            transactions.resume(MongoPosition::decode(&position).and_then(|p| p.transaction()));
        }
        self.last = position;
        self.reading = None;
    }

    /// The stream goes on behind `position`, with nothing to read since.
    pub fn passed(&mut self, position: Position) {
        self.last = position;
    }

    /// What each position takes in memory beside the place, in bytes.
    pub fn state_bytes(&self) -> usize {
        self.transactions.as_ref().and_then(Transactions::state).map_or(0, <[u8]>::len)
    }

    /// From now on positions hold this of an incremental snapshot and of signals.
    pub fn set_snapshot_state(&mut self, state: Option<&OffsetMap>) {
        self.snapshot_state = state.and_then(position::shared);
    }

    /// Behind a change, with what is open now.
    fn behind(&mut self, change: &Change<'_>) -> Position {
        let open = self.transactions.as_ref().and_then(Transactions::state);
        let snapshot = self.snapshot_state.as_ref();
        self.positions.of_event(change.cluster_time, change.token, change.lsid, change.txn_number, open, snapshot)
    }

    /// Documents of a snapshot follow, all read at or after `position`.
    pub fn snapshot_from(&mut self, position: &MongoPosition) {
        self.reading = Some(Reading {
            unfinished: position.clone().unfinished().encode(),
            finished: position.encode(),
            sec: position.sec,
            ord: position.ord,
        });
        self.last = position.encode();
        if let Some(transactions) = &mut self.transactions {
            transactions.resume(None);
        }
    }

    /// Appends the records of a change event to `out`. `now_ms` is the processing time.
    ///
    /// Errors: an event that cannot be used, if the configuration says to stop; a list that cannot
    /// be evaluated.
    pub fn change(&mut self, event: &Bytes, now_ms: i64, out: &mut Vec<Record>) -> Result<Seen, Error> {
        self.parsed(event, Change::parse(event), now_ms, out)
    }

    /// [`Decoder::change`] of an event that somebody has parsed already.
    pub(crate) fn parsed(
        &mut self,
        event: &Bytes,
        change: Result<Change<'_>, Malformed>,
        now_ms: i64,
        out: &mut Vec<Record>,
    ) -> Result<Seen, Error> {
        let change = match change {
            Ok(change) => change,
            Err(error) => {
                // Without a token the position stays; the reply's own token moves it.
                let position = self.last.clone();
                let collection = change::collection_of(event);
                let origin =
                    Origin { phase: Phase::Stream, position: &position, collection: &collection, document: None };
                self.failed(&origin, &error.into())?;
                return Ok(Seen { position, source_ms: now_ms, fate: Fate::Failed });
            }
        };
        let source_ms = change.wall_time.unwrap_or(i64::from(change.cluster_time.0) * 1000);
        let fate = match change.operation {
            Operation::Unknown(name) => {
                let operation = String::from_utf8_lossy(name);
                warn!(%operation, "a change event of a type that has no records is skipped");
                Fate::Filtered
            }
            operation => {
                let collection = self.collections.of(change.db, change.collection)?;
                if collection.captured && !self.skips(operation) {
                    match self.records(event, &change, operation, &collection, source_ms, now_ms) {
                        Ok(record) => return Ok(self.push(record, &change, &collection, source_ms, out)),
                        Err(error) => {
                            let collection = collection.namespace.to_string();
                            let position = self.behind(&change);
                            let origin = Origin {
                                phase: Phase::Stream,
                                position: &position,
                                collection: &collection,
                                document: None,
                            };
                            self.failed(&origin, &error)?;
                            Fate::Failed
                        }
                    }
                } else {
                    Fate::Filtered
                }
            }
        };
        self.last = self.behind(&change);
        Ok(Seen { position: self.last.clone(), source_ms, fate })
    }

    fn skips(&self, operation: Operation<'_>) -> bool {
        match operation {
            Operation::Insert => self.skipped.create,
            Operation::Update | Operation::Replace => self.skipped.update,
            Operation::Delete => self.skipped.delete,
            Operation::Unknown(_) => false,
        }
    }

    /// The record; before it what is to be told of transactions, and behind a delete its tombstone. A
    /// change counts as delivered with its last record, so those before carry the position before it.
    fn push(
        &mut self,
        mut record: Record,
        change: &Change<'_>,
        collection: &Collection,
        source_ms: i64,
        out: &mut Vec<Record>,
    ) -> Seen {
        match change.operation {
            Operation::Insert => self.tally.creates += 1,
            Operation::Delete => self.tally.deletes += 1,
            _ => self.tally.updates += 1,
        }
        if let Some(transactions) = &mut self.transactions {
            let session = (change.lsid, change.txn_number);
            let open = transactions.state().is_some();
            let told = out.len();
            let block = transactions.enter(session, &collection.full_name, source_ms, &mut self.last, out);
            self.tally.transactions += u64::from(open && out.len() > told);
            if let Value::Struct(fields) = &mut record.value.value
                && let Some(field) = fields.get_mut(envelope::TRANSACTION)
            {
                *field = block;
            }
        }
        let position = self.behind(change);
        let before = std::mem::replace(&mut self.last, position.clone());
        if change.operation == Operation::Delete && self.tombstones {
            let tombstone = Record {
                topic: record.topic.clone(),
                partition: None,
                key: record.key.clone(),
                value: Datum::none(),
                headers: self.headers.clone(),
                timestamp: None,
                position: position.clone(),
            };
            record.position = before;
            out.push(record);
            out.push(tombstone);
        } else {
            record.position = position.clone();
            out.push(record);
        }
        Seen { position, source_ms, fate: Fate::Recorded }
    }

    fn records(
        &mut self,
        event: &Bytes,
        change: &Change<'_>,
        operation: Operation<'_>,
        collection: &Collection,
        source_ms: i64,
        now_ms: i64,
    ) -> Result<Record, Unusable> {
        let id = id_of(change.document_key.ok_or(NoKey::Missing)?)?;
        let key = key_text(&id, &mut self.scratch)?;
        let rules = collection.fields.as_ref();
        let before = self.document(event, change.before, rules)?;
        let (after, update) = match operation {
            Operation::Delete => (Value::Null, Value::Null),
            Operation::Update => (self.document(event, change.after, rules)?, self.update(event, change, rules)?),
            _ => (self.document(event, change.after, rules)?, Value::Null),
        };
        let source = self.source(
            collection,
            SnapshotMarker::False,
            SourceTime::from_millis(source_ms),
            [
                Value::Int32(change.cluster_time.1 as i32),
                Value::or_null(change.lsid, |lsid| Value::text(lsid_text(lsid))),
                Value::or_null(change.txn_number, Value::Int64),
                Value::or_null(change.wall_time, Value::Int64),
            ],
        );
        Ok(self.record(collection, key, [before, after, update, source], operation.code(), now_ms))
    }

    /// Documents of a blocking snapshot follow, read at or after `position`. Their records carry the
    /// position of the stream, which waits meanwhile.
    pub fn block_from(&mut self, position: &MongoPosition) {
        let stream = self.last.clone();
        self.reading =
            Some(Reading { unfinished: stream.clone(), finished: stream, sec: position.sec, ord: position.ord });
    }

    /// The position of the stream that waits for a blocking snapshot.
    pub fn set_blocking_position(&mut self, position: Position) {
        if let Some(reading) = &mut self.reading {
            reading.finished = position.clone();
            reading.unfinished = position;
        }
    }

    /// The stream goes on behind a blocking snapshot.
    pub fn unblock(&mut self) {
        self.reading = None;
    }

    /// Records of the snapshot carry from now on that it has come so far.
    pub fn set_snapshot_position(&mut self, position: Position) {
        if let Some(reading) = &mut self.reading {
            reading.unfinished = position;
        }
    }

    /// What records of the snapshot carry, but for its last one.
    pub fn snapshot_position(&self) -> Position {
        self.reading.as_ref().map_or_else(|| self.last.clone(), |reading| reading.unfinished.clone())
    }

    /// A document of a snapshot as a record; `None` if none can be made of it and the configuration
    /// says to go on.
    ///
    /// Errors: as [`Decoder::change`].
    pub fn read(&mut self, namespace: &Namespace, document: &Bytes, now: SourceTime) -> Result<Option<Record>, Error> {
        let (sec, ord, position) = match &self.reading {
            Some(reading) => (reading.sec, reading.ord, reading.unfinished.clone()),
            None => (-1, -1, self.last.clone()),
        };
        let time = if sec > 0 { SourceTime::from_millis(i64::from(sec) * 1000) } else { now };
        self.read_as(namespace, document, (SnapshotMarker::True, time, ord), now.ms, position)
    }

    /// A document of a chunk whose window closes with an event of this cluster time. The record carries
    /// the position before that event.
    ///
    /// Errors: as [`Decoder::change`].
    pub fn read_chunk(
        &mut self,
        namespace: &Namespace,
        document: &Bytes,
        (sec, ord): (u32, u32),
        now_ms: i64,
    ) -> Result<Option<Record>, Error> {
        let time = SourceTime::from_millis(i64::from(sec) * 1000);
        let how = (SnapshotMarker::Incremental, time, ord as i32);
        self.read_as(namespace, document, how, now_ms, self.last.clone())
    }

    fn read_as(
        &mut self,
        namespace: &Namespace,
        document: &Bytes,
        how: (SnapshotMarker, SourceTime, i32),
        now_ms: i64,
        position: Position,
    ) -> Result<Option<Record>, Error> {
        let collection = self.collections.of(namespace.db.as_bytes(), namespace.coll.as_bytes())?;
        match self.read_record(&collection, document, how, now_ms) {
            Ok(record) => Ok(Some(Record { position, ..record })),
            Err(error) => {
                let origin = Origin {
                    phase: Phase::Snapshot,
                    position: &self.last.clone(),
                    collection: &namespace.to_string(),
                    document: Some(document),
                };
                self.failed(&origin, &error)?;
                Ok(None)
            }
        }
    }

    fn read_record(
        &mut self,
        collection: &Collection,
        document: &Bytes,
        (marker, time, ord): (SnapshotMarker, SourceTime, i32),
        now_ms: i64,
    ) -> Result<Record, Unusable> {
        let key = key_text(&id_of(document)?, &mut self.scratch)?;
        let after = match &collection.fields {
            Some(rules) => rules.document(document)?.map(Bytes::from),
            None => None,
        };
        let after = json(after.unwrap_or_else(|| document.clone()), self.documents)?;
        let own = [Value::Int32(ord), Value::Null, Value::Null, Value::Null];
        let source = self.source(collection, marker, time, own);
        Ok(self.record(collection, key, [Value::Null, after, Value::Null, source], "r", now_ms))
    }

    /// Turns a record of the snapshot into its last one: marked as such, with the position of a
    /// completed snapshot.
    pub fn complete(&self, record: &mut Record) {
        if let Value::Struct(fields) = &mut record.value.value
            && let Some(Value::Struct(source)) = fields.get_mut(envelope::SOURCE)
            && let Some(marker) = source.get_mut(source::SNAPSHOT)
        {
            *marker = SnapshotMarker::Last.value();
        }
        if let Some(reading) = &self.reading {
            record.position = reading.finished.clone();
        }
    }

    fn document(
        &self,
        event: &Bytes,
        element: Option<Element<'_>>,
        rules: Option<&FieldRules>,
    ) -> Result<Value, Unusable> {
        text(event, element, self.documents, |document| rules.map_or(Ok(None), |r| r.document(document)))
    }

    fn update(&self, event: &Bytes, change: &Change<'_>, rules: Option<&FieldRules>) -> Result<Value, Unusable> {
        let Some(update) = change.update()? else { return Ok(Value::Null) };
        let updated =
            text(event, update.updated, self.updates, |fields| rules.map_or(Ok(None), |r| r.updated(fields)))?;
        let told = |field: String| match rules {
            Some(rules) => rules.told(field),
            None => Some(field),
        };
        let removed = update.removed.into_iter().filter_map(told).map(Value::text).collect();
        let truncated = update
            .truncated
            .into_iter()
            .filter_map(|(field, size)| Some(Value::Struct(vec![Value::text(told(field)?), Value::Int32(size)])));
        let or_null = |values: Vec<Value>| if values.is_empty() { Value::Null } else { Value::Array(values) };
        Ok(Value::Struct(vec![or_null(removed), updated, or_null(truncated.collect())]))
    }

    /// `own`: increment, session, transaction number, wall time.
    fn source(&self, collection: &Collection, snapshot: SnapshotMarker, time: SourceTime, own: [Value; 4]) -> Value {
        let common = SourceCommon {
            version: self.version.clone(),
            connector: CONNECTOR,
            name: self.prefix.clone(),
            time,
            snapshot,
            db: collection.namespace.db.clone().into(),
            sequence: None,
        };
        let mut values = common.values(own.len() + 2);
        if let Some(name) = &self.replica_set {
            values.push(Value::String(name.clone()));
        }
        values.push(Value::String(collection.namespace.coll.clone().into()));
        values.extend(own);
        Value::Struct(values)
    }

    /// `parts`: before, after, update description, source.
    fn record(
        &self,
        collection: &Collection,
        key: Text,
        parts: [Value; 4],
        operation: &'static str,
        now_ms: i64,
    ) -> Record {
        let mut fields = Vec::with_capacity(7);
        fields.extend(parts);
        fields.extend([Value::text(operation), Value::Int64(now_ms), Value::Null]);
        Record {
            topic: collection.topic.clone(),
            partition: None,
            key: Datum::new(collection.key.clone(), Value::Struct(vec![Value::String(key)])),
            value: Datum::new(collection.value.clone(), Value::Struct(fields)),
            headers: self.headers.clone(),
            timestamp: None,
            position: Position::default(),
        }
    }

    /// What the configuration says about an event without a record.
    fn failed(&mut self, origin: &Origin<'_>, error: &Unusable) -> Result<(), Error> {
        self.failures += 1;
        self.on_failure.take(origin, origin.phase, error)
    }
}

impl fmt::Display for Origin<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let offset = MongoPosition::decode(self.position).map(|p| p.to_offset()).unwrap_or_default();
        write!(f, "offset {}", serde_json::Value::Object(offset))?;
        if !self.collection.is_empty() {
            write!(f, " of collection {}", self.collection)?;
        }
        match self.document.and_then(id_shown) {
            Some(id) => write!(f, ", document with _id {id}"),
            None => Ok(()),
        }
    }
}

/// The `_id` as people read it, also one that makes no key.
fn id_shown(document: &[u8]) -> Option<String> {
    let id = id_of(document).ok()?;
    let mut text = Vec::new();
    extended_json::write_value(Writer::Relaxed, TextForm::Plain, id.kind, id.value, &mut text).ok()?;
    Some(String::from_utf8_lossy(&text).chars().take(ID_SHOWN).collect())
}

/// A document of the event as text; null stays null. `changed` gives the document that stands for it,
/// `None` if that is itself.
fn text(
    event: &Bytes,
    element: Option<Element<'_>>,
    writer: Writer,
    changed: impl FnOnce(&[u8]) -> Result<Option<Vec<u8>>, FieldError>,
) -> Result<Value, Unusable> {
    match element {
        Some(Element { kind: kind::DOCUMENT, value, .. }) => {
            let document = changed(value)?.map_or_else(|| event.slice_ref(value), Bytes::from);
            Ok(json(document, writer)?)
        }
        _ => Ok(Value::Null),
    }
}

fn json(document: Bytes, writer: Writer) -> Result<Value, Malformed> {
    Ok(Value::String(Text::Lazy(Arc::new(extended_json::Document::new(document, writer)?))))
}

#[cfg(test)]
#[path = "event_tests.rs"]
mod tests;

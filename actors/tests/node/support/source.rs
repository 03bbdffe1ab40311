//! A scripted source: each partition is a numbered list of events; a position is the number of events
//! before it. Faults are armed by event number and go off once.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use bytes::Bytes;
use parking_lot::Mutex;
use thalweg_config::{OptionTable, Properties, Validation};
use thalweg_core::Error;
use thalweg_core::position::{ChangeId, OffsetMap, Position, PositionCodec, SourcePartition};
use thalweg_core::progress::PartitionProgress;
use thalweg_core::record::{Datum, Headers, Record, RenderText, Schema, Text, TextForm, Value};
use thalweg_core::source::{
    Batch, CheckReport, Connector, PartitionContext, PartitionReader, Plugin, SourceTask, TaskSpec,
};
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

pub const CLASS: &str = "org.example.ScriptConnector";

const PLUGIN: Plugin = Plugin { class: CLASS, aliases: &["script"], version: "1.0" };
static OPTIONS: OptionTable = OptionTable { title: "", options: &[], open_prefixes: &[], cross_checks: &[] };

/// What happens when the reader comes to an event.
#[derive(Clone)]
pub enum Fault {
    Panic,
    Fail(Error),
    /// Never answers again.
    Hang,
    /// Waits for so long because the configuration says so.
    Rest(Duration),
    /// Blocks its thread until told.
    Block(Arc<AtomicBool>),
}

/// Lets a blocked reader go when the test ends, however it ends.
#[derive(Default)]
pub struct Unblock(pub Arc<AtomicBool>);

impl Drop for Unblock {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

pub struct Script {
    partitions: BTreeMap<String, watch::Sender<u64>>,
    faults: Mutex<BTreeMap<(String, u64), VecDeque<Fault>>>,
    /// Errors of the next openings, by partition.
    refusals: Mutex<BTreeMap<String, VecDeque<Error>>>,
    /// Values of single events, where they are not the usual ones.
    values: Mutex<BTreeMap<u64, Value>>,
    /// Records of single events, where more than the value is not the usual.
    records: Mutex<BTreeMap<u64, Record>>,
    /// The position at which a partition without a stored one starts.
    pub start_at: Mutex<u64>,
    /// Records come before the starting position, against the contract.
    pub forgets_start: AtomicBool,
    /// The source ends behind the last event.
    pub ends: AtomicBool,
    /// Records have another position at each reading, as rows of a snapshot do.
    pub wanders: AtomicBool,
    /// The source is a snapshot of a table of this name.
    pub snapshot_of: Mutex<Option<String>>,
    pub batch: AtomicUsize,
    pub opened: AtomicUsize,
    pub closed: AtomicUsize,
    pub read: AtomicUsize,
    /// Position at which each generation started to read.
    pub starts: Mutex<Vec<(String, u64)>>,
    pub durable: Mutex<BTreeMap<String, u64>>,
    /// A reader blocks its thread.
    pub blocked: AtomicBool,
    /// Results of the next plannings; empty: one task with all partitions.
    pub plans: Mutex<VecDeque<Result<Vec<Properties>, Error>>>,
    pub plannings: AtomicUsize,
    /// Tasks that the last planning was told of.
    pub present: Mutex<Vec<Properties>>,
    pub plan_panics: AtomicUsize,
    pub replan: Notify,
}

impl Script {
    pub fn new(partitions: &[(&str, u64)]) -> Arc<Self> {
        let partitions = partitions.iter().map(|(name, events)| ((*name).to_owned(), watch::Sender::new(*events)));
        Arc::new(Self {
            partitions: partitions.collect(),
            faults: Mutex::default(),
            refusals: Mutex::default(),
            values: Mutex::default(),
            records: Mutex::default(),
            start_at: Mutex::new(0),
            forgets_start: AtomicBool::new(false),
            ends: AtomicBool::new(false),
            wanders: AtomicBool::new(false),
            snapshot_of: Mutex::default(),
            batch: AtomicUsize::new(7),
            opened: AtomicUsize::new(0),
            closed: AtomicUsize::new(0),
            read: AtomicUsize::new(0),
            starts: Mutex::default(),
            durable: Mutex::default(),
            blocked: AtomicBool::new(false),
            plans: Mutex::default(),
            plannings: AtomicUsize::new(0),
            present: Mutex::default(),
            plan_panics: AtomicUsize::new(0),
            replan: Notify::new(),
        })
    }
    /// Writes more events, up to this number.
    pub fn write(&self, partition: &str, events: u64) {
        self.partitions[partition].send_replace(events);
    }
    pub fn events(&self, partition: &str) -> u64 {
        *self.partitions[partition].borrow()
    }
    pub fn arm(&self, partition: &str, event: u64, fault: Fault) {
        self.faults.lock().entry((partition.to_owned(), event)).or_default().push_back(fault);
    }
    /// Faults that did not go off yet.
    pub fn armed(&self) -> usize {
        self.faults.lock().values().map(VecDeque::len).sum()
    }
    pub fn refuse_opening(&self, partition: &str, error: Error) {
        self.refusals.lock().entry(partition.to_owned()).or_default().push_back(error);
    }
    pub fn set_value(&self, event: u64, value: Value) {
        self.values.lock().insert(event, value);
    }
    pub fn set_record(&self, event: u64, record: Record) {
        self.records.lock().insert(event, record);
    }
    pub fn has_value(&self, event: u64) -> bool {
        self.values.lock().contains_key(&event)
    }
    pub fn partition(name: &str) -> SourcePartition {
        SourcePartition::new([("server", name)])
    }
    pub fn opened(&self) -> usize {
        self.opened.load(Ordering::SeqCst)
    }
    pub fn closed(&self) -> usize {
        self.closed.load(Ordering::SeqCst)
    }

    fn record(&self, partition: &str, event: u64) -> Record {
        let mut position = position(event + 1);
        if self.wanders.load(Ordering::SeqCst) {
            position = Position::new([&position.place[..], &self.opened().to_be_bytes()].concat().into());
        }
        if let Some(record) = self.records.lock().get(&event) {
            return Record { position, ..record.clone() };
        }
        let value = self.values.lock().get(&event).cloned();
        let schema = Arc::new(Schema::string());
        Record {
            topic: format!("t.{partition}").into(),
            partition: None,
            key: Datum::new(schema.clone(), Value::text(format!("{partition}/{}", event % 5))),
            value: Datum::new(schema, value.unwrap_or_else(|| Value::text(event.to_string()))),
            headers: Headers::default(),
            timestamp: None,
            position,
        }
    }
}

/// A text whose rendering panics: a defect inside the encoder.
#[derive(Debug)]
pub struct Landmine;

impl RenderText for Landmine {
    fn render(&self, _: TextForm, _: &mut Vec<u8>) {
        panic!("stepped on it");
    }
}

impl Landmine {
    pub fn value() -> Value {
        Value::String(Text::Lazy(Arc::new(Self)))
    }
}

/// A text that panics the first time only.
#[derive(Debug, Default)]
pub struct Once(AtomicBool);

impl RenderText for Once {
    fn render(&self, _: TextForm, out: &mut Vec<u8>) {
        assert!(self.0.swap(true, Ordering::SeqCst), "stepped on it once");
        out.extend_from_slice(b"defused");
    }
}

impl Once {
    pub fn value() -> Value {
        Value::String(Text::Lazy(Arc::new(Self::default())))
    }
}

pub fn position(number: u64) -> Position {
    Position::new(Bytes::copy_from_slice(&number.to_be_bytes()))
}

pub fn number(offset: &OffsetMap) -> u64 {
    offset["at"].as_u64().unwrap()
}

struct NumberCodec;

impl PositionCodec for NumberCodec {
    fn to_offset(&self, position: &Position) -> OffsetMap {
        let number = u64::from_be_bytes(position.place[..8].try_into().unwrap());
        [("at".to_owned(), number.into())].into_iter().collect()
    }
    fn from_offset(&self, offset: &OffsetMap) -> Result<Position, String> {
        Ok(position(number(offset)))
    }
    fn check_partition(&self, _: &OffsetMap) -> Result<(), String> {
        Ok(())
    }
    fn change_id(&self, position: &Position) -> ChangeId {
        ChangeId { lsn: number(&self.to_offset(position)).to_string(), seq: "0".to_owned() }
    }
}

/// The connector class over a script.
pub struct ScriptConnector(pub Arc<Script>);

#[async_trait]
impl Connector for ScriptConnector {
    fn plugin(&self) -> &Plugin {
        &PLUGIN
    }
    fn options(&self) -> &'static OptionTable {
        &OPTIONS
    }
    async fn check(&self, _: &Properties, _: &mut Validation, _: Duration) -> CheckReport {
        CheckReport::default()
    }
    async fn plan_tasks(
        &self,
        config: &Properties,
        _: usize,
        present: &[Properties],
    ) -> Result<Vec<Properties>, Error> {
        *self.0.present.lock() = present.to_vec();
        self.0.plannings.fetch_add(1, Ordering::SeqCst);
        if self.0.plan_panics.load(Ordering::SeqCst) > 0 {
            self.0.plan_panics.fetch_sub(1, Ordering::SeqCst);
            panic!("planning exploded");
        }
        match self.0.plans.lock().pop_front() {
            Some(plan) => plan,
            None => Ok(vec![config.clone()]),
        }
    }
    async fn replan_wanted(&self, _: &Properties, cancel: CancellationToken) {
        tokio::select! {
            () = self.0.replan.notified() => {}
            () = cancel.cancelled() => {}
        }
    }
    fn codec(&self) -> &dyn PositionCodec {
        &NumberCodec
    }
    fn open(&self, _: TaskSpec) -> Result<Box<dyn SourceTask>, Error> {
        Ok(Box::new(Task(self.0.clone())))
    }
}

struct Task(Arc<Script>);

#[async_trait]
impl SourceTask for Task {
    fn partitions(&self) -> Vec<SourcePartition> {
        self.0.partitions.keys().map(|name| Script::partition(name)).collect()
    }
    async fn open(
        &self,
        partition: &SourcePartition,
        context: PartitionContext,
    ) -> Result<Box<dyn PartitionReader>, Error> {
        let script = self.0.clone();
        let name = partition.to_map()["server"].as_str().unwrap().to_owned();
        script.opened.fetch_add(1, Ordering::SeqCst);
        let refusal = script.refusals.lock().get_mut(&name).and_then(VecDeque::pop_front);
        if let Some(error) = refusal {
            return Err(error);
        }
        let stored = context.offsets.offset(partition).map(|offset| number(&offset));
        let at = stored.unwrap_or(*script.start_at.lock());
        script.starts.lock().push((name.clone(), at));
        if let Some(table) = &*script.snapshot_of.lock() {
            let events = script.events(&name);
            let progress = thalweg_core::progress::SnapshotProgress { done: 0, expected: events, finished: false };
            context.progress.snapshot_started([(table.clone(), progress)].into());
        }
        let tell_start = stored.is_none() && !script.forgets_start.load(Ordering::SeqCst);
        let events = script.partitions[&name].subscribe();
        Ok(Box::new(Reader { script, name, at, tell_start, events, progress: context.progress }))
    }
}

struct Reader {
    script: Arc<Script>,
    name: String,
    at: u64,
    tell_start: bool,
    events: watch::Receiver<u64>,
    progress: Arc<PartitionProgress>,
}

#[async_trait]
impl PartitionReader for Reader {
    async fn next(&mut self) -> Result<Batch, Error> {
        if std::mem::take(&mut self.tell_start) {
            return Ok(Batch { progress: Some(position(self.at)), ..Batch::default() });
        }
        let at = self.at;
        let end = *self.events.wait_for(|events| *events > at).await.unwrap();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
        self.progress.last_contact_ms.store(i64::try_from(now).unwrap(), Ordering::Relaxed);
        let mut batch = Batch::default();
        while self.at < end && batch.records.len() < self.script.batch.load(Ordering::SeqCst) {
            let fault = {
                let mut faults = self.script.faults.lock();
                let armed = faults.get(&(self.name.clone(), self.at)).is_some_and(|f| !f.is_empty());
                if armed && !batch.records.is_empty() {
                    // It goes off with the next batch, so that what was read before is handed over.
                    break;
                }
                faults.get_mut(&(self.name.clone(), self.at)).and_then(VecDeque::pop_front)
            };
            match fault {
                None => {}
                Some(Fault::Panic) => panic!("the script says so"),
                Some(Fault::Fail(error)) => return Err(error),
                Some(Fault::Hang) => std::future::pending().await,
                Some(Fault::Rest(time)) => self.progress.rest(time).await,
                Some(Fault::Block(until)) => {
                    // Not before others had their turn on this worker: what a worker has just woken
                    // up can be polled by itself only.
                    tokio::time::sleep(Duration::from_millis(1)).await;
                    self.script.blocked.store(true, Ordering::SeqCst);
                    while !until.load(Ordering::SeqCst) {
                        std::thread::yield_now();
                    }
                }
            }
            batch.records.push(self.script.record(&self.name, self.at));
            self.at += 1;
        }
        batch.events = batch.records.len();
        batch.bytes = 100 * batch.records.len();
        self.script.read.fetch_add(batch.events, Ordering::SeqCst);
        PartitionProgress::count(&self.progress.events_read, batch.events as u64);
        if let Some(table) = &*self.script.snapshot_of.lock() {
            self.progress.snapshot_advanced(table, batch.events as u64, self.at == end);
        }
        Ok(batch)
    }
    fn finished(&self) -> bool {
        self.script.ends.load(Ordering::SeqCst) && self.at == *self.events.borrow()
    }
    fn durable(&mut self, position: &Position) {
        let number = number(&NumberCodec.to_offset(position));
        self.script.durable.lock().insert(self.name.clone(), number);
    }
    async fn close(self: Box<Self>, _: Duration) {
        self.script.closed.fetch_add(1, Ordering::SeqCst);
    }
}

impl fmt::Debug for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Panic => "panic",
            Self::Fail(_) => "fail",
            Self::Hang => "hang",
            Self::Rest(_) => "rest",
            Self::Block(_) => "block",
        })
    }
}

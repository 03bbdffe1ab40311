//! Reads one partition of a connector as the runtime would, with the offsets in memory: for tests of connectors.
//!
//! It holds a reader to what the runtime expects of it: where it starts is told before its first record. It does not
//! send anything to Kafka.
#![allow(clippy::missing_errors_doc, clippy::missing_panics_doc, clippy::unwrap_used)]

use std::collections::{BTreeMap, VecDeque};
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use parking_lot::Mutex;
use serde_json::Value as Json;
use thalweg_config::Properties;
use thalweg_core::Error;
use thalweg_core::convert::{Converter, JsonConverter, Written};
use thalweg_core::position::{OffsetMap, OffsetReader, Position, SourcePartition};
use thalweg_core::progress::PartitionProgress;
use thalweg_core::record::{Datum, Record};
use thalweg_core::relational::history::{HistoryStores, LocalStores};
use thalweg_core::signal::Inbox;
use thalweg_core::source::{Batch, Connector, PartitionContext, PartitionReader, SourceTask, TaskSpec};
use tokio_util::sync::CancellationToken;

/// Longer than anything that works.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// What outlives readers: stored offsets by partition, and histories.
pub struct Offsets {
    stored: Mutex<BTreeMap<String, OffsetMap>>,
    histories: Arc<dyn HistoryStores>,
}

impl Default for Offsets {
    fn default() -> Self {
        Self { stored: Mutex::default(), histories: Arc::new(LocalStores::default()) }
    }
}

impl Offsets {
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    pub fn with(partition: &[(&str, &str)], offset: Json) -> Arc<Self> {
        let offsets = Self::new();
        offsets.store(&SourcePartition::new(partition.iter().copied()), offset.as_object().unwrap().clone());
        offsets
    }

    pub fn store(&self, partition: &SourcePartition, offset: OffsetMap) {
        self.stored.lock().insert(partition.canonical().to_string(), offset);
    }

    /// The offset of the only partition; null: nothing is stored yet.
    pub fn only(&self) -> Json {
        let all = self.stored.lock();
        assert!(all.len() < 2, "{all:?}");
        all.values().next().map_or(Json::Null, |offset| Json::Object(offset.clone()))
    }

    pub fn copy(&self) -> Arc<Self> {
        Arc::new(Self { stored: Mutex::new(self.stored.lock().clone()), histories: self.histories.clone() })
    }
}

impl OffsetReader for Offsets {
    fn offset(&self, partition: &SourcePartition) -> Option<OffsetMap> {
        self.stored.lock().get(&**partition.canonical()).cloned()
    }
}

/// A record as a consumer would see it.
#[derive(Debug, Clone)]
pub struct Seen {
    pub topic: String,
    pub key: Json,
    /// `null`: tombstone.
    pub value: Json,
    /// What is stored once the record is delivered.
    pub offset: Json,
    pub record: Record,
}

impl Seen {
    pub fn op(&self) -> &str {
        self.value["op"].as_str().unwrap_or("tombstone")
    }

    /// `after`; a text is read as JSON.
    pub fn after(&self) -> Json {
        match &self.value["after"] {
            Json::String(text) => serde_json::from_str(text).unwrap(),
            other => other.clone(),
        }
    }

    /// `_id` as the key has it.
    pub fn id(&self) -> String {
        self.key["id"].as_str().unwrap().to_owned()
    }

    pub fn snapshot(&self) -> &str {
        self.value["source"]["snapshot"].as_str().unwrap()
    }
}

/// One partition of a connector `C` that is being read.
pub struct Run<C> {
    pub partition: SourcePartition,
    pub offsets: Arc<Offsets>,
    pub progress: Arc<PartitionProgress>,
    pub signals: Inbox,
    connector: PhantomData<C>,
    cancel: CancellationToken,
    /// When the present wait ends, whatever still arrives.
    end: Instant,
    /// A position is stored for the partition itself; until then the runtime sends no record.
    known: bool,
    reader: Option<Box<dyn PartitionReader>>,
    waiting: VecDeque<Seen>,
    /// Position behind everything in `waiting`.
    behind: Option<OffsetMap>,
}

/// All tasks that a configuration yields, opened.
pub async fn tasks<C: Connector + Default>(config: &Properties, max: usize) -> Result<Vec<Box<dyn SourceTask>>> {
    let connector = C::default();
    let configs = connector.plan_tasks(config, max, &[]).await?;
    let open = |(task, config)| {
        let spec = TaskSpec { connector: "c".into(), task, config, run_id: "run".into() };
        Ok(connector.open(spec)?)
    };
    (0..).zip(configs).map(open).collect()
}

impl<C: Connector + Default> Run<C> {
    /// Starts the first partition of the first task.
    pub async fn start(config: &Properties, offsets: &Arc<Offsets>) -> Result<Self> {
        Self::hearing(config, offsets, &Inbox::default()).await
    }

    /// The same, with signals that outlive it.
    pub async fn hearing(config: &Properties, offsets: &Arc<Offsets>, signals: &Inbox) -> Result<Self> {
        // Only what runs is planned: a task without shards needs no connection for that.
        let connector = C::default();
        let spec = TaskSpec { connector: "c".into(), task: 0, config: config.clone(), run_id: "run".into() };
        let task = connector.open(spec)?;
        let partition = task.partitions().first().context("a partition")?.clone();
        Self::open_hearing(&*task, &partition, offsets, signals.clone()).await
    }

    pub async fn open(task: &dyn SourceTask, partition: &SourcePartition, offsets: &Arc<Offsets>) -> Result<Self> {
        Self::open_hearing(task, partition, offsets, Inbox::default()).await
    }

    async fn open_hearing(
        task: &dyn SourceTask,
        partition: &SourcePartition,
        offsets: &Arc<Offsets>,
        signals: Inbox,
    ) -> Result<Self> {
        let cancel = CancellationToken::new();
        let progress = Arc::new(PartitionProgress::default());
        let context = PartitionContext {
            offsets: offsets.clone(),
            cancel: cancel.clone(),
            progress: progress.clone(),
            histories: offsets.histories.clone(),
            signals: signals.clone(),
        };
        let reader = task.open(partition, context).await?;
        Ok(Self {
            partition: partition.clone(),
            offsets: offsets.clone(),
            progress,
            signals,
            connector: PhantomData,
            cancel,
            end: Instant::now() + PATIENCE,
            known: offsets.offset(partition).is_some(),
            reader: Some(reader),
            waiting: VecDeque::new(),
            behind: None,
        })
    }

    /// The next batch; its records are not queued and no offset is stored.
    pub async fn batch(&mut self) -> Result<Batch> {
        self.be_patient();
        self.next().await
    }

    fn be_patient(&mut self) {
        self.end = Instant::now() + PATIENCE;
    }

    async fn next(&mut self) -> Result<Batch> {
        let reader = self.reader.as_mut().context("stopped")?;
        let batch = tokio::time::timeout_at(self.end.into(), reader.next()).await.context("no batch in time")??;
        // As the runtime does: it fails a reader that forgets to say where it starts.
        if !self.known && !batch.records.is_empty() {
            bail!("the reader sent records before the position at which it starts");
        }
        self.known |= batch.progress.is_some();
        Ok(batch)
    }

    pub fn offset(&self, position: &Position) -> OffsetMap {
        C::default().codec().to_offset(position)
    }

    fn settle(&mut self) {
        if self.waiting.is_empty()
            && let Some(offset) = self.behind.take()
        {
            self.offsets.store(&self.partition, offset);
        }
    }

    /// The reader hears what is stored.
    pub fn tell_stored(&mut self) -> Result<()> {
        let offset = self.offsets.offset(&self.partition).context("an offset")?;
        let position = C::default().codec().from_offset(&offset).map_err(|e| anyhow::anyhow!("{e}"))?;
        self.reader.as_mut().context("stopped")?.durable(&position);
        Ok(())
    }

    fn see(&self, record: &Record) -> Seen {
        Seen {
            topic: record.topic.to_string(),
            key: json_of(&record.key),
            value: json_of(&record.value),
            offset: Json::Object(self.offset(&record.position)),
            record: record.clone(),
        }
    }

    /// The next record; its offset is stored as if it had been delivered.
    pub async fn record(&mut self) -> Result<Seen> {
        self.be_patient();
        while self.waiting.is_empty() {
            self.queue().await?;
        }
        let seen = self.waiting.pop_front().context("a record")?;
        self.offsets.store(&self.partition, seen.offset.as_object().unwrap().clone());
        self.settle();
        Ok(seen)
    }

    pub async fn take(&mut self, n: usize) -> Result<Vec<Seen>> {
        let mut all = Vec::new();
        while all.len() < n {
            all.push(self.record().await.with_context(|| format!("after {} of {n} records", all.len()))?);
        }
        Ok(all)
    }

    /// Whether the reader says that nothing follows.
    pub fn has_finished(&self) -> bool {
        self.reader.as_ref().is_some_and(|reader| reader.finished())
    }

    pub fn waiting_is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// One more batch; its records wait for [`Run::record`]. The position behind it, if it moved.
    pub async fn advance(&mut self) -> Result<Option<OffsetMap>> {
        self.be_patient();
        self.queue().await
    }

    async fn queue(&mut self) -> Result<Option<OffsetMap>> {
        let batch = self.next().await?;
        for record in &batch.records {
            let seen = self.see(record);
            self.waiting.push_back(seen);
        }
        let behind = batch.progress.as_ref().map(|p| self.offset(p));
        self.behind.clone_from(&behind);
        self.settle();
        Ok(behind)
    }

    /// Waits until the position moves without a record; it is stored. Records are a fault.
    pub async fn quiet(&mut self) -> Result<Json> {
        assert!(self.waiting.is_empty(), "{:?}", self.waiting);
        self.be_patient();
        loop {
            let batch = self.next().await?;
            if let Some(record) = batch.records.first() {
                bail!("unexpected record {:?}", self.see(record));
            }
            if let Some(position) = &batch.progress {
                let offset = self.offset(position);
                self.offsets.store(&self.partition, offset.clone());
                return Ok(Json::Object(offset));
            }
        }
    }

    /// The error with which reading ends; records before it are dropped.
    pub async fn error(&mut self) -> Result<Error> {
        self.be_patient();
        let reader = self.reader.as_mut().context("stopped")?;
        loop {
            match tokio::time::timeout_at(self.end.into(), reader.next()).await.context("no error in time")? {
                Err(error) => return Ok(error),
                Ok(_) => continue,
            }
        }
    }

    pub async fn stop(mut self) -> Result<()> {
        self.cancel.cancel();
        if let Some(reader) = self.reader.take() {
            reader.close(Duration::from_secs(10)).await;
        }
        Ok(())
    }
}

/// Through the converter that users have, without schemas.
fn json_of(datum: &Datum) -> Json {
    let mut converter = JsonConverter { schemas: false, ..JsonConverter::with_schemas() };
    let mut out = Vec::new();
    match converter.convert_datum(&"t".into(), datum, &mut out).unwrap() {
        Written::Null | Written::Waiting => Json::Null,
        Written::Bytes => serde_json::from_slice(&out).unwrap(),
    }
}

//! A schema history in a topic: partition 0, no keys, one text in a record, as Debezium writes and reads it.
//!
//! Invariants: a record is acknowledged by all in-sync replicas before it counts, and stands behind all earlier ones;
//! reading goes from the first record to the end as it was when reading began, a portion at a time.
//! The settings of its clients are those under `schema.history.internal.{producer,consumer}.` alone: neither the
//! node's nor the connector's own reach it, because the topic may be in another cluster.
//!
//! It does not: look into the texts, or make the topic (`history_topic`).

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use rdkafka::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::message::Message as _;
use rdkafka::producer::{FutureProducer, FutureRecord};
use rdkafka::util::Timeout;
use rdkafka::{Offset, TopicPartitionList};
use thalweg_config::Properties;
use thalweg_core::delivery::{DeliveryMode, ProducerIdentity};
use thalweg_core::error::Result;
use thalweg_core::relational::history::{HistoryReader, HistoryStore, HistoryTopic};
use thalweg_core::{Error, ErrorKind, Phase};
use tracing::warn;

use crate::errors;
use crate::history_topic;
use crate::settings::{self, Role, client_settings};
use crate::topics::blocking;
use crate::trouble::PlainContext;

/// Bytes of records that are handed over together.
const HANDY: usize = 1 << 20;
/// What a consumer fetches ahead, in KiB.
const AHEAD: &str = "8192";
/// Least wait for a record: none at all would give up before a broker can answer.
const LEAST_POLL: Duration = Duration::from_millis(1);
/// What a history must have; a setting of the user that says otherwise is not used.
const FORCED: [(&str, &[&str]); 3] =
    [("acks", &["all", "-1"]), ("enable.idempotence", &["true"]), ("transactional.id", &[""])];

pub(crate) struct KafkaHistory {
    pub(crate) topic: Arc<HistoryTopic>,
    pub(crate) clients: Clients,
    /// Made with the first record.
    writer: Option<FutureProducer<PlainContext>>,
    pub(crate) warnings: Vec<String>,
}

/// Configurations of the three clients.
#[derive(Clone)]
pub(crate) struct Clients {
    producer: ClientConfig,
    pub(crate) consumer: ClientConfig,
    pub(crate) admin: ClientConfig,
}

impl KafkaHistory {
    pub(crate) fn new(topic: &HistoryTopic) -> Result<Self> {
        let mut warnings = Vec::new();
        let mut own = Properties::new();
        for (key, value) in topic.producer.iter() {
            let forced = FORCED.iter().find(|(name, _)| *name == key);
            if forced.is_some_and(|(_, fine)| !fine.contains(&value.trim().to_ascii_lowercase().as_str())) {
                warnings.push(format!("producer.override.{key} is ignored: a record of a history must not be lost"));
            }
            if forced.is_none() {
                own.set(format!("producer.override.{key}"), value);
                own.set(format!("admin.override.{key}"), value);
            }
        }
        for (key, value) in topic.consumer.iter() {
            own.set(format!("consumer.override.{key}"), value);
        }
        for client in ["producer", "admin", "consumer"] {
            own.set(format!("{client}.override.bootstrap.servers"), topic.bootstrap.as_str());
        }
        let who = ProducerIdentity { group: "history".into(), connector: topic.name.as_str().into(), task: 0 };
        let mut make = |role: Role, given: &Properties| -> Result<ClientConfig> {
            let mut settings = client_settings(&Properties::new(), &own, &who, role).map_err(|mut problems| {
                problems.iter_mut().for_each(|problem| problem.key = own_name(&problem.key));
                settings::as_error(&problems)
            })?;
            // Those of the admin client are the producer's, of which most are not meant for it.
            if role != Role::Admin {
                warnings.extend(settings.warnings);
            }
            if given.get("client.id").is_none() {
                settings.config.set("client.id", &topic.name);
            }
            Ok(settings.config)
        };
        let producer = make(Role::Producer(DeliveryMode::Plain), &topic.producer)?;
        let admin = make(Role::Admin, &topic.producer)?;
        let mut consumer = make(Role::Consumer, &topic.consumer)?;
        // Demanded by the client library; no group is joined and no place stored.
        consumer.set("group.id", &topic.name);
        consumer.set("enable.partition.eof", "true");
        consumer.set("auto.offset.reset", "error");
        for (key, value) in [("isolation.level", "read_uncommitted"), ("queued.max.messages.kbytes", AHEAD)] {
            if topic.consumer.get(key).is_none() {
                consumer.set(key, value);
            }
        }
        let warnings = warnings.iter().map(|warning| own_name(warning)).collect();
        Ok(Self {
            topic: Arc::new(topic.clone()),
            clients: Clients { producer, consumer, admin },
            writer: None,
            warnings,
        })
    }

    async fn writer(&mut self) -> Result<FutureProducer<PlainContext>> {
        if let Some(writer) = &self.writer {
            return Ok(writer.clone());
        }
        let config = self.clients.producer.clone();
        let made = blocking(move || {
            config
                .create_with_context(PlainContext::new("schema history"))
                .map_err(|e| errors::client(Phase::Start, "creating the producer of the schema history", &e))
        });
        Ok(self.writer.insert(made.await?).clone())
    }
}

impl Drop for KafkaHistory {
    fn drop(&mut self) {
        if let Some(writer) = self.writer.take() {
            // Closing joins threads. Without a thread for it, this one has to wait.
            let _ = std::thread::Builder::new().name("kafka-call".to_owned()).spawn(move || drop(writer));
        }
    }
}

/// As the user wrote it.
fn own_name(text: &str) -> String {
    let text = text.replace("producer.override.", "schema.history.internal.producer.");
    let text = text.replace("admin.override.", "schema.history.internal.producer.");
    text.replace("consumer.override.", "schema.history.internal.consumer.")
}

#[async_trait]
impl HistoryStore for KafkaHistory {
    fn describe(&self) -> String {
        format!("topic {}", self.topic.topic)
    }

    async fn prepare(&mut self) -> Result<()> {
        history_topic::prepare(self.topic.clone(), self.clients.clone()).await
    }

    async fn append(&mut self, text: Bytes) -> Result<()> {
        let writer = self.writer().await?;
        let record: FutureRecord<'_, (), [u8]> =
            FutureRecord::to(&self.topic.topic).partition(0).payload(text.as_ref());
        let sent = writer.send(record, Timeout::Never).await;
        let Err((error, _)) = sent else { return Ok(()) };
        let what = format!(
            "a record of {} bytes could not be written to the schema history topic {}",
            text.len(),
            self.topic.topic
        );
        let error = errors::client(Phase::Stream, what, &error);
        Err(if error.kind == ErrorKind::MessageTooLarge {
            error.advise("raise schema.history.internal.producer.max.request.size and the topic's max.message.bytes, then restart the task")
        } else {
            error
        })
    }

    async fn read(&mut self) -> Result<Box<dyn HistoryReader>> {
        let (topic, config) = (self.topic.clone(), self.clients.consumer.clone());
        let reader = blocking(move || {
            let failed = |e: &KafkaError| errors::client(Phase::Start, reading(&topic), e);
            let consumer: BaseConsumer<PlainContext> =
                config.create_with_context(PlainContext::new("schema history")).map_err(|e| failed(&e))?;
            let watermarks = consumer.fetch_watermarks(&topic.topic, 0, topic.query_timeout);
            let explained = |e: &KafkaError| consumer.client().context().trouble.enrich(failed(e));
            let (low, high) = watermarks.map_err(|e| explained(&e))?;
            if low > 0 {
                warn!(topic = topic.topic, first = low, "the first records of the schema history are gone");
            }
            let mut place = TopicPartitionList::new();
            place.add_partition_offset(&topic.topic, 0, Offset::Offset(low)).map_err(|e| failed(&e))?;
            consumer.assign(&place).map_err(|e| failed(&e))?;
            Ok(Reader { consumer: Some(consumer), topic: topic.clone(), end: high, ended: low >= high })
        });
        Ok(Box::new(reader.await?))
    }
}

fn reading(topic: &HistoryTopic) -> String {
    format!("reading the schema history topic {}", topic.topic)
}

struct Reader {
    /// None while it is read, and after a failure.
    consumer: Option<BaseConsumer<PlainContext>>,
    topic: Arc<HistoryTopic>,
    /// The number of the first record that is not read.
    end: i64,
    ended: bool,
}

#[async_trait]
impl HistoryReader for Reader {
    async fn next(&mut self) -> Result<Option<Vec<Bytes>>> {
        if self.ended {
            return Ok(None);
        }
        let Some(consumer) = self.consumer.take() else {
            return Err(Error::new(ErrorKind::Internal, Phase::Start, format!("{} broke off", reading(&self.topic))));
        };
        let (topic, end) = (self.topic.clone(), self.end);
        let read = blocking(move || {
            let portion = portion(&consumer, &topic, end)?;
            Ok((consumer, portion))
        });
        let (consumer, (records, ended)) = read.await?;
        self.consumer = Some(consumer);
        self.ended = ended;
        Ok(Some(records).filter(|records| !records.is_empty()))
    }
}

/// Some records, and whether they are the last ones.
fn portion(consumer: &BaseConsumer<PlainContext>, topic: &HistoryTopic, end: i64) -> Result<(Vec<Bytes>, bool)> {
    let (mut records, mut bytes, mut idle) = (Vec::new(), 0, 0);
    while records.len() < topic.batch && bytes < HANDY {
        match consumer.poll(topic.poll_interval.max(LEAST_POLL)) {
            Some(Ok(message)) => {
                idle = 0;
                if message.offset() < end {
                    let text = Bytes::copy_from_slice(message.payload().unwrap_or_default());
                    bytes += text.len();
                    records.push(text);
                }
                if message.offset() + 1 >= end {
                    return Ok((records, true));
                }
            }
            // What is missing before the end are marks of transactions, or was compacted away.
            Some(Err(KafkaError::PartitionEOF(_))) => return Ok((records, true)),
            Some(Err(error)) => {
                let error = errors::client(Phase::Start, reading(topic), &error);
                if !error.is_retriable() {
                    return Err(consumer.client().context().trouble.enrich(error));
                }
            }
            None => idle += 1,
        }
        if idle > topic.attempts {
            let message = "The database schema history couldn't be recovered. Consider to increase the value for schema.history.internal.kafka.recovery.poll.interval.ms";
            let error = Error::new(
                ErrorKind::BrokerUnavailable,
                Phase::Start,
                format!("{message} (topic {}: {idle} waits without a record)", topic.topic),
            );
            return Err(consumer.client().context().trouble.enrich(error));
        }
    }
    Ok((records, false))
}

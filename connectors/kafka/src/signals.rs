//! The signal channel `kafka`: messages of one topic's partition 0 whose key is the connector's
//! `topic.prefix`.
//!
//! Where reading goes on is stored under the group of the channel, behind the signals that are confirmed.
//! No group is joined: every task of a connector hears every signal. As tasks share the stored place, one
//! that has followed less (its offsets say so) begins before it.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer};
use rdkafka::error::RDKafkaErrorCode;
use rdkafka::message::Message as _;
use rdkafka::{ClientConfig, Offset, TopicPartitionList};
use thalweg_config::Properties;
use thalweg_core::delivery::ProducerIdentity;
use thalweg_core::error::Result;
use thalweg_core::signal::{KAFKA, KafkaSignals, Mark, Received, Signal, SignalChannel};
use thalweg_core::{ErrorKind, Phase};
use tracing::warn;

use crate::errors;
use crate::settings::{self, Role, client_settings};
use crate::topics::blocking;
use crate::trouble::PlainContext;

/// Messages read at once; the rest waits for the next time.
const MOST: usize = 500;
/// Longest wait for a message: connecting is part of the first one.
const POLL: Duration = Duration::from_millis(500);
/// Longest wait for the stored place.
const COMMITTED: Duration = Duration::from_secs(10);
const POLICY: &str = "connector.client.config.override.policy";

pub(crate) struct SignalTopic {
    config: ClientConfig,
    /// None while the topic is not known to be there: a consumer that has once found it missing does not
    /// look again for minutes.
    consumer: Option<BaseConsumer<PlainContext>>,
    topic: Arc<str>,
    key: Arc<str>,
    /// The message that was waited for at the last confirmation.
    waiting: Option<i64>,
    /// What the task has not followed begins here.
    from: Option<i64>,
    /// Where reading began.
    begins: Option<i64>,
}

impl SignalTopic {
    pub(crate) async fn open(
        worker: &Properties,
        who: &ProducerIdentity,
        channel: &KafkaSignals,
        connector: &Properties,
        from: Option<i64>,
    ) -> Result<Self> {
        let mut worker = worker.clone();
        // What is said of signals alone is not an override of the connector's client.
        worker.set(POLICY, "All");
        let mut own: Properties = connector
            .below("signal.consumer.")
            .iter()
            .map(|(k, v)| (format!("consumer.override.{k}"), v.to_owned()))
            .collect();
        if let Some(bootstrap) = &channel.bootstrap {
            own.set("consumer.override.bootstrap.servers", bootstrap);
        }
        let settings = client_settings(&worker, &own, who, Role::Consumer).map_err(|p| settings::as_error(&p))?;
        for warning in &settings.warnings {
            warn!(warning, "signal consumer setting");
        }
        let mut config = settings.config;
        config.set("group.id", &*channel.group);
        config.set("enable.auto.commit", "false");
        config.set("auto.offset.reset", "earliest");
        let (topic, key) = (channel.topic.clone(), channel.key.clone());
        Ok(Self { config, consumer: None, topic, key, waiting: None, from, begins: None })
    }
}

#[async_trait]
impl SignalChannel for SignalTopic {
    fn name(&self) -> &'static str {
        KAFKA
    }

    fn begins(&self) -> Option<i64> {
        self.begins
    }

    async fn poll(&mut self) -> Result<Vec<Received>> {
        let (consumer, config) = (self.consumer.take(), self.config.clone());
        let (topic, key, from) = (self.topic.clone(), self.key.clone(), self.from);
        let read = blocking(move || {
            let (consumer, begins) = match consumer {
                Some(consumer) => (consumer, None),
                None => start(&config, &topic, from)?,
            };
            let read = read(&consumer, &topic, &key)?;
            Ok((consumer, begins, read))
        });
        let (consumer, begins, Read { signals, missing }) = read.await?;
        self.consumer = Some(consumer).filter(|_| !missing);
        // A topic that comes later is read from its beginning.
        self.begins = if missing { Some(0) } else { self.begins.or(begins) };
        Ok(signals)
    }

    async fn settle(&mut self, waiting: Option<&Mark>) -> Result<bool> {
        let waiting = waiting.map(|mark| mark.number);
        if waiting.is_some() && waiting == self.waiting {
            return Ok(false);
        }
        let Some(consumer) = self.consumer.take() else { return Ok(waiting.is_none()) };
        let topic = self.topic.clone();
        let (consumer, stored) = blocking(move || {
            let stored = store_place(&consumer, &topic, waiting);
            Ok((consumer, stored))
        })
        .await?;
        self.consumer = Some(consumer);
        stored?;
        self.waiting = waiting;
        Ok(waiting.is_none())
    }
}

/// Stores where reading goes on: at the message with this number, or behind what was read.
fn store_place(consumer: &BaseConsumer<PlainContext>, topic: &str, waiting: Option<i64>) -> Result<()> {
    let failed = |e| errors::client(Phase::Stream, "storing the place in the topic of signals", &e);
    let stored = match waiting {
        Some(number) => {
            let mut place = TopicPartitionList::new();
            place.add_partition_offset(topic, 0, Offset::Offset(number)).map_err(failed)?;
            consumer.commit(&place, CommitMode::Sync)
        }
        None => consumer.commit_consumer_state(CommitMode::Sync),
    };
    match stored {
        // Nothing was read yet.
        Err(e) if e.rdkafka_error_code() == Some(RDKafkaErrorCode::NoOffset) => Ok(()),
        stored => stored.map_err(failed),
    }
}

/// With the number of the first message that is read; 0 if none was confirmed.
fn start(config: &ClientConfig, topic: &str, from: Option<i64>) -> Result<(BaseConsumer<PlainContext>, Option<i64>)> {
    let failed = |e| errors::client(Phase::Start, "creating the consumer of signals", &e);
    let consumer: BaseConsumer<PlainContext> =
        config.create_with_context(PlainContext::new("signals")).map_err(failed)?;
    let mut place = TopicPartitionList::new();
    place.add_partition_offset(topic, 0, Offset::Stored).map_err(failed)?;
    let confirmed = match consumer.committed_offsets(place.clone(), COMMITTED).map_err(failed)?.find_partition(topic, 0)
    {
        Some(found) => match found.offset() {
            Offset::Offset(number) => Some(number),
            _ => None,
        },
        None => None,
    };
    // Where nothing is confirmed, and so behind a topic that was created again, reading begins at the beginning.
    let begins = confirmed.map(|confirmed| from.map_or(confirmed, |from| from.min(confirmed)));
    if let Some(begins) = begins {
        place.set_partition_offset(topic, 0, Offset::Offset(begins)).map_err(failed)?;
    }
    consumer.assign(&place).map_err(failed)?;
    Ok((consumer, begins.or(Some(0))))
}

struct Read {
    signals: Vec<Received>,
    /// There is no such topic yet.
    missing: bool,
}

fn read(consumer: &BaseConsumer<PlainContext>, topic: &str, key: &str) -> Result<Read> {
    let mut signals = Vec::new();
    while signals.len() < MOST {
        match consumer.poll(if signals.is_empty() { POLL } else { Duration::ZERO }) {
            None => break,
            Some(Ok(message)) => {
                if message.key() != Some(key.as_bytes()) {
                    continue;
                }
                match Signal::from_json(message.payload().unwrap_or_default()) {
                    Ok(signal) => {
                        let time_ms = message.timestamp().to_millis().unwrap_or(0);
                        let mark = Mark { channel: KAFKA, series: topic.into(), number: message.offset(), time_ms };
                        signals.push(Received { signal: Some(signal), mark });
                    }
                    Err(why) => warn!(topic, offset = message.offset(), why, "a signal is ignored"),
                }
            }
            Some(Err(error)) => {
                let error = errors::client(Phase::Stream, "reading signals", &error);
                // The topic may come to be later; connections are the client's own care.
                if error.kind == ErrorKind::TopicMissing {
                    return Ok(Read { signals, missing: true });
                }
                if error.is_retriable() {
                    break;
                }
                return Err(error);
            }
        }
    }
    Ok(Read { signals, missing: false })
}

//! The signal channel `kafka`: messages of one topic's partition 0 whose key is the connector's
//! `topic.prefix`.
//!
//! Where reading goes on is stored under the group of the channel; a signal counts as read when the one
//! after it is asked for. No group is joined: every task of a connector hears every signal.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer};
use rdkafka::message::Message as _;
use rdkafka::{ClientConfig, Offset, TopicPartitionList};
use thalweg_config::Properties;
use thalweg_core::delivery::ProducerIdentity;
use thalweg_core::error::Result;
use thalweg_core::signal::{KafkaSignals, Signal, SignalChannel};
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
const POLICY: &str = "connector.client.config.override.policy";

pub(crate) struct SignalTopic {
    config: ClientConfig,
    /// None while the topic is not known to be there: a consumer that has once found it missing does not
    /// look again for minutes.
    consumer: Option<BaseConsumer<PlainContext>>,
    topic: Arc<str>,
    key: Arc<str>,
}

impl SignalTopic {
    pub(crate) async fn open(
        worker: &Properties,
        who: &ProducerIdentity,
        channel: &KafkaSignals,
        connector: &Properties,
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
        Ok(Self { config, consumer: None, topic: channel.topic.clone(), key: channel.key.clone() })
    }
}

#[async_trait]
impl SignalChannel for SignalTopic {
    async fn poll(&mut self) -> Result<Vec<Signal>> {
        let (consumer, config) = (self.consumer.take(), self.config.clone());
        let (topic, key) = (self.topic.clone(), self.key.clone());
        let read = blocking(move || {
            let consumer = match consumer {
                Some(consumer) => consumer,
                None => start(&config, &topic)?,
            };
            let read = read(&consumer, &topic, &key)?;
            Ok((consumer, read))
        });
        let (consumer, Read { signals, missing }) = read.await?;
        self.consumer = Some(consumer).filter(|_| !missing);
        Ok(signals)
    }
}

fn start(config: &ClientConfig, topic: &str) -> Result<BaseConsumer<PlainContext>> {
    let failed = |e| errors::client(Phase::Start, "creating the consumer of signals", &e);
    let consumer: BaseConsumer<PlainContext> =
        config.create_with_context(PlainContext::new("signals")).map_err(failed)?;
    let mut place = TopicPartitionList::new();
    place.add_partition_offset(topic, 0, Offset::Stored).map_err(failed)?;
    consumer.assign(&place).map_err(failed)?;
    Ok(consumer)
}

struct Read {
    signals: Vec<Signal>,
    /// There is no such topic yet.
    missing: bool,
}

fn read(consumer: &BaseConsumer<PlainContext>, topic: &str, key: &str) -> Result<Read> {
    // What was returned before is in the hands of the readers.
    if let Err(error) = consumer.commit_consumer_state(CommitMode::Sync)
        && !matches!(error.rdkafka_error_code(), Some(rdkafka::error::RDKafkaErrorCode::NoOffset))
    {
        warn!(topic, %error, "the place in the signal topic is not stored");
    }
    let mut signals = Vec::new();
    while signals.len() < MOST {
        match consumer.poll(if signals.is_empty() { POLL } else { Duration::ZERO }) {
            None => break,
            Some(Ok(message)) => {
                if message.key() != Some(key.as_bytes()) {
                    continue;
                }
                match Signal::from_json(message.payload().unwrap_or_default()) {
                    Ok(signal) => signals.push(signal),
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

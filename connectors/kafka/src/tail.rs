//! Following topics: what the demo prints.
//!
//! Reads every partition of the topics that match, from now or from the beginning, new topics from
//! their beginning, and hands records over through a bounded channel. No consumer group is joined
//! and nothing is committed. A slow reader holds the consumer back; dropping the [`Tail`] ends it.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fancy_regex::Regex;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::message::Message as _;
use rdkafka::{Offset, TopicPartitionList};
use thalweg_config::Properties;
use thalweg_core::delivery::ProducerIdentity;
use thalweg_core::error::Result;
use thalweg_core::{Error, Phase};
use tokio::sync::mpsc;

use crate::errors;
use crate::settings::{self, Role, client_settings};
use crate::topics::blocking;
use crate::trouble::PlainContext;

/// How often new topics are looked for.
const TOPICS_EVERY: Duration = Duration::from_millis(500);
/// Longest wait for a record; new topics and the end of the reader are noticed in between.
const POLL: Duration = Duration::from_millis(250);
const ANSWER: Duration = Duration::from_secs(10);

/// Which topics.
#[derive(Debug, Clone)]
pub enum TopicPattern {
    Prefix(String),
    /// Matches anywhere in the name; anchor it if need be.
    Regex(Regex),
}

impl TopicPattern {
    fn matches(&self, topic: &str) -> bool {
        match self {
            Self::Prefix(prefix) => topic.starts_with(prefix.as_str()),
            Self::Regex(regex) => regex.is_match(topic).unwrap_or(false),
        }
    }
}

/// Where to begin in the topics that exist already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum From {
    Beginning,
    Now,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Followed {
    pub topic: Arc<str>,
    pub partition: i32,
    pub offset: i64,
    pub key: Option<Vec<u8>>,
    pub value: Option<Vec<u8>>,
    /// Milliseconds since the epoch.
    pub timestamp: Option<i64>,
}

pub struct Tail {
    records: mpsc::Receiver<Result<Followed>>,
}

impl Tail {
    /// Follows topics of the cluster that the worker's properties name. With [`From::Now`] everything
    /// sent after this returns is seen. `capacity`: records held for a slow reader.
    ///
    /// # Errors
    /// The cluster cannot be reached, or the client settings are wrong.
    pub async fn start(worker: &Properties, topics: TopicPattern, from: From, capacity: usize) -> Result<Self> {
        let who = ProducerIdentity { group: Arc::from("tail"), connector: Arc::from("tail"), task: 0 };
        let settings =
            client_settings(worker, &Properties::new(), &who, Role::Consumer).map_err(|p| settings::as_error(&p))?;
        let mut config = settings.config;
        config.set("client.id", "thalweg-tail");
        // Demanded by the client library; without a subscription no group is joined.
        config.set("group.id", "thalweg-tail");
        config.set("auto.offset.reset", "earliest");
        if config.get("fetch.wait.max.ms").is_none() {
            config.set("fetch.wait.max.ms", "100");
        }
        let (to, records) = mpsc::channel(capacity.max(1));
        let mut follower = blocking(move || {
            let consumer = config
                .create_with_context(PlainContext::new("tail"))
                .map_err(|e| errors::client(Phase::Start, "creating the Kafka consumer", &e))?;
            let mut follower = Follower { consumer, topics, known: HashSet::new(), names: HashSet::new(), to };
            follower.look(if from == From::Now { Offset::End } else { Offset::Beginning })?;
            Ok(follower)
        })
        .await?;
        std::thread::Builder::new().name("kafka-tail".to_owned()).spawn(move || follower.run()).map_err(|e| {
            Error::new(
                thalweg_core::ErrorKind::Internal,
                Phase::Start,
                "the thread of the Kafka consumer cannot be started",
            )
            .because(&e)
        })?;
        Ok(Self { records })
    }

    /// The next record; `None` after an error was returned. Cancel-safe.
    pub async fn next(&mut self) -> Option<Result<Followed>> {
        self.records.recv().await
    }
}

struct Follower {
    consumer: BaseConsumer<PlainContext>,
    topics: TopicPattern,
    known: HashSet<(Arc<str>, i32)>,
    names: HashSet<Arc<str>>,
    to: mpsc::Sender<Result<Followed>>,
}

impl Follower {
    fn run(&mut self) {
        let mut looked = Instant::now();
        while !self.to.is_closed() {
            if looked.elapsed() > TOPICS_EVERY {
                // A cluster that is away for a moment is no reason to stop.
                if let Err(error) = self.look(Offset::Beginning) {
                    tracing::debug!(%error, "topics cannot be listed");
                }
                looked = Instant::now();
            }
            let followed = match self.consumer.poll(POLL) {
                None => continue,
                Some(Ok(message)) => Ok(self.followed(&message)),
                Some(Err(error)) => {
                    let error = errors::client(Phase::Stream, "following topics", &error);
                    // The client library gets over lost connections by itself.
                    if error.is_retriable() || error.kind == thalweg_core::ErrorKind::TopicMissing {
                        continue;
                    }
                    Err(error)
                }
            };
            let last = followed.is_err();
            if self.to.blocking_send(followed).is_err() || last {
                return;
            }
        }
    }

    fn followed(&self, message: &rdkafka::message::BorrowedMessage<'_>) -> Followed {
        let topic = match self.names.get(message.topic()) {
            Some(name) => name.clone(),
            None => Arc::from(message.topic()),
        };
        Followed {
            topic,
            partition: message.partition(),
            offset: message.offset(),
            key: message.key().map(<[u8]>::to_vec),
            value: message.payload().map(<[u8]>::to_vec),
            timestamp: message.timestamp().to_millis(),
        }
    }

    /// Adds partitions that are new, beginning at `offset`.
    fn look(&mut self, offset: Offset) -> Result<()> {
        let what = "listing topics";
        let client = |e| self.consumer.context().trouble.enrich(errors::client(Phase::Start, what, &e));
        let metadata = self.consumer.fetch_metadata(None, ANSWER).map_err(client)?;
        let mut new = TopicPartitionList::new();
        let mut found = Vec::new();
        for topic in metadata.topics().iter().filter(|t| t.error().is_none() && self.topics.matches(t.name())) {
            let name: Arc<str> = Arc::from(topic.name());
            for partition in topic.partitions() {
                let place = (name.clone(), partition.id());
                if self.known.contains(&place) {
                    continue;
                }
                // The end is looked up now: a record sent before the first fetch must be seen.
                let offset = match offset {
                    Offset::End => {
                        let (_, high) = self.consumer.fetch_watermarks(&name, place.1, ANSWER).map_err(client)?;
                        Offset::Offset(high)
                    }
                    other => other,
                };
                new.add_partition_offset(&name, place.1, offset).map_err(client)?;
                found.push(place);
            }
        }
        if !found.is_empty() {
            self.consumer.incremental_assign(&new).map_err(client)?;
            self.names.extend(found.iter().map(|(name, _)| name.clone()));
            self.known.extend(found);
        }
        Ok(())
    }
}

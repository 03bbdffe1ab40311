//! The sink SPI: how encoded messages reach Kafka and how the broker's word comes back.
//!
//! Implemented by the Kafka crate. A [`Producer`] belongs to one task; sequence numbers are dense
//! per producer, start at 0, and are answered through [`Acks`] in any order. "Acknowledged" means durable for
//! the delivery mode: on all in-sync replicas in `plain`, committed in a transaction in `fenced`.
//! A failure is reported once and is final for this producer: it must be dropped, and everything
//! unacknowledged is sent again by the next generation.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use thalweg_config::{OptionTable, Properties, Validation};

use crate::error::{Error, Result};
use crate::relational::history::{HistoryStore, HistoryTopic};
use crate::signal::{KafkaSignals, SignalChannel};

/// Guarantee towards a stale owner (`thalweg.delivery`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DeliveryMode {
    /// Idempotent producer; a stale owner is kept out by its lease.
    Plain,
    /// Transactional producer per task: the broker refuses a stale owner.
    Fenced,
}

/// Who sends: names the producer's client id and transactional id.
#[derive(Debug, Clone)]
pub struct ProducerIdentity {
    pub group: Arc<str>,
    pub connector: Arc<str>,
    pub task: u32,
}

/// A message as bytes, borrowed from the encoder's buffer (the producer copies).
#[derive(Debug, Clone, Copy)]
pub struct Message<'a> {
    pub topic: &'a Arc<str>,
    pub partition: Option<i32>,
    pub key: Option<&'a [u8]>,
    pub value: Option<&'a [u8]>,
    pub headers: &'a EncodedHeaders,
    pub timestamp: Option<i64>,
}

/// Header names and converted values, shared between messages.
pub type EncodedHeaders = Arc<Vec<(Arc<str>, Option<Vec<u8>>)>>;

/// Why a send was not taken.
#[derive(Debug)]
pub enum Refused {
    /// Queue full or a transaction is committing: wait for [`Producer::room`], send again.
    Full,
    /// Final.
    Failed(Error),
}

/// What is wrong or doubtful about the delivery options of a connector.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeliveryCheck {
    /// Option and text, without the standard beginning of a message.
    pub problems: Vec<(String, String)>,
    pub warnings: Vec<String>,
}

#[async_trait]
pub trait ProducerFactory: Send + Sync + 'static {
    /// Options of connectors that belong to the delivery.
    fn options(&self) -> &'static OptionTable;

    /// The client settings that a connector gives, as `config/validate` lists them.
    fn overrides(&self, connector: &Properties) -> Validation;

    /// Checks a connector's delivery options without I/O: client overrides, topic creation.
    fn check(&self, connector: &Properties, mode: DeliveryMode) -> DeliveryCheck;

    /// Connects; in `fenced` mode shuts out the previous owner before it returns.
    async fn open(
        &self,
        identity: ProducerIdentity,
        mode: DeliveryMode,
        connector: &Properties,
        acks: Arc<dyn Acks>,
    ) -> Result<Box<dyn Producer>>;

    /// Opens the signal channel `kafka` of a connector, at the place that is stored for its group, or at
    /// `from` if that is before it. Answers without waiting for the topic.
    async fn signals(
        &self,
        identity: &ProducerIdentity,
        channel: &KafkaSignals,
        connector: &Properties,
        from: Option<i64>,
    ) -> Result<Box<dyn SignalChannel>>;

    /// A schema history in a topic. Nothing is asked of the brokers yet.
    ///
    /// # Errors
    /// A setting of its clients is wrong.
    fn history(&self, history: &HistoryTopic) -> Result<Box<dyn HistoryStore>>;
}

#[async_trait]
pub trait Producer: Send {
    /// Makes sure the topic exists or may be created by the broker. Called before the first message
    /// of each topic; later calls for the same topic are cheap.
    async fn prepare_topic(&mut self, topic: &Arc<str>) -> Result<()>;

    /// Takes one message with the next sequence number; it may be held back until messages before it
    /// are acknowledged. Never blocks, never waits.
    fn try_send(&mut self, seq: u64, message: &Message<'_>) -> Result<(), Refused>;

    /// Resolves when [`Producer::try_send`] is worth trying again. Woken by deliveries, no polling.
    async fn room(&mut self);

    /// Whether messages are held back. [`Producer::hand_over`] sends them when [`Producer::ready`] says
    /// so; call it when no message is coming at once.
    fn holds_back(&self) -> bool {
        false
    }

    /// Resolves when held back messages can be sent, or the producer has failed. Woken, no polling;
    /// cancel-safe.
    async fn ready(&mut self) {
        std::future::pending().await
    }

    /// Sends some of the messages that are held back, if they can be sent now.
    fn hand_over(&mut self) -> Result<()> {
        Ok(())
    }

    /// Resolves when everything that was sent (and is not held back) is acknowledged or failed.
    async fn flush(&mut self, deadline: Duration) -> Result<()>;

    /// Drops everything queued and in flight; nothing is sent afterwards. For a lost lease.
    fn purge(&mut self);
}

/// Receives the broker's word, from the client's own threads. Must not block.
pub trait Acks: Send + Sync {
    fn delivered(&self, seq: u64);
    /// Every sequence number below `next` is durable (transaction committed).
    fn delivered_below(&self, next: u64);
    fn failed(&self, seq: u64, error: Error);
}

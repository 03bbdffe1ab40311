//! Channels outside of the source, and which of them a connector listens to.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use thalweg_config::Settings;

use super::{FileSignals, Mark, Received};
use crate::error::Result;

/// Name of the channel of signals in a topic.
pub const KAFKA: &str = "kafka";

/// Name of the channel of signals that the cluster keeps.
pub const REST: &str = "rest";

/// Where signals come from besides the source.
///
/// A signal is confirmed when nobody needs to hear it again. Invariant: what is not confirmed comes again
/// to whoever opens the channel next.
#[async_trait]
pub trait SignalChannel: Send {
    /// Its name in `signal.enabled.channels`.
    fn name(&self) -> &'static str;

    /// The number before which nothing is given, once it is known, if the channel's numbers are a place.
    fn begins(&self) -> Option<i64> {
        None
    }

    /// What has arrived since the last call, in order. May wait a little, but not for a signal.
    async fn poll(&mut self) -> Result<Vec<Received>>;

    /// Confirms what [`SignalChannel::poll`] has given before the signal at `waiting`; `None`: all of it.
    /// True: nothing waits, and nothing of what was given comes again to anybody.
    async fn settle(&mut self, waiting: Option<&Mark>) -> Result<bool>;
}

/// What a connector's configuration says about channels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Channels {
    /// Signals in the source are followed (`source` among `signal.enabled.channels`).
    pub source: bool,
    /// `signal.file`.
    pub file: Option<String>,
    pub kafka: Option<KafkaSignals>,
    /// Those that the cluster keeps (`POST /connectors/{name}/signals`).
    pub rest: bool,
    pub poll_interval: Duration,
}

/// The channel `kafka`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KafkaSignals {
    pub topic: Arc<str>,
    /// Only messages with this key count: `topic.prefix`.
    pub key: Arc<str>,
    pub group: Arc<str>,
    /// `None`: the brokers of the node.
    pub bootstrap: Option<String>,
}

impl Channels {
    /// From the settings of a connector whose table has the options of signals.
    pub fn of(s: &Settings) -> Self {
        let on = |name: &str| s.list("signal.enabled.channels").iter().any(|c| c.eq_ignore_ascii_case(name));
        let text = |name: &str| s.text(name).map(str::trim).filter(|t| !t.is_empty());
        let prefix = s.text_or_empty("topic.prefix");
        let kafka = on(KAFKA).then(|| KafkaSignals {
            topic: text("signal.kafka.topic").map_or_else(|| format!("{prefix}-signal").into(), Into::into),
            key: prefix.into(),
            group: text("signal.kafka.groupId").unwrap_or("kafka-signal").into(),
            bootstrap: text("signal.kafka.bootstrap.servers").map(str::to_owned),
        });
        Self {
            source: on("source"),
            file: on("file").then(|| text("signal.file").unwrap_or("file-signals.txt").to_owned()),
            kafka,
            rest: on(REST),
            poll_interval: s.millis("signal.poll.interval.ms"),
        }
    }

    /// Whether anything outside of the source is listened to.
    pub fn is_outside(&self) -> bool {
        self.file.is_some() || self.kafka.is_some() || self.rest
    }

    /// Those that every task has to confirm, also one that follows no signals.
    pub fn of_every_task(&self) -> Self {
        Self { source: false, file: None, kafka: None, rest: self.rest, poll_interval: self.poll_interval }
    }

    /// The channel `file`, if it is on. `owner` tells the task from others that may use the same file.
    pub fn open_file(&self, owner: &str) -> Option<FileSignals> {
        self.file.as_ref().map(|path| FileSignals::new(path, owner))
    }
}

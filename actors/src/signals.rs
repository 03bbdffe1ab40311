//! Listens to the signal channels outside of the source, for all partitions of a task.
//!
//! Every partition hears every signal; which collections are its own, its reader knows. Invariants: a
//! channel that fails is tried again and never ends the task; listening ends with the run.
//! It does not: understand a signal.

use std::sync::Arc;

use thalweg_config::Properties;
use thalweg_core::delivery::{ProducerFactory, ProducerIdentity};
use thalweg_core::signal::{Channels, Inbox, SignalChannel};
use tokio::task::JoinHandle;
use tracing::{Instrument, info, warn};

use crate::memory::UnitMemory;

/// The inboxes of a task's partitions, and what fills them.
pub(crate) struct Signals {
    inboxes: Vec<Inbox>,
    listener: Option<JoinHandle<()>>,
}

/// What listening needs.
pub(crate) struct Listener {
    pub channels: Channels,
    pub identity: ProducerIdentity,
    pub producers: Arc<dyn ProducerFactory>,
    pub config: Properties,
    pub memory: Arc<UnitMemory>,
}

impl Signals {
    /// For so many partitions. Without a listener nothing ever arrives.
    pub(crate) fn start(partitions: usize, listener: Option<Listener>) -> Self {
        let inboxes: Vec<Inbox> = (0..partitions).map(|_| Inbox::default()).collect();
        let listener = listener.filter(|l| l.channels.is_outside()).map(|listener| {
            let span = listener.memory.span.clone();
            tokio::spawn(listener.run(inboxes.clone()).instrument(span))
        });
        Self { inboxes, listener }
    }

    pub(crate) fn inbox(&self, partition: usize) -> Inbox {
        self.inboxes.get(partition).cloned().unwrap_or_default()
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        if let Some(listener) = &self.listener {
            listener.abort();
        }
    }
}

impl Listener {
    async fn run(self, inboxes: Vec<Inbox>) {
        let mut file = self.channels.open_file();
        if let Some(path) = &self.channels.file {
            warn!(path, "signals are read from a file of whichever host runs the task; all of them must share it");
        }
        let mut kafka: Option<Box<dyn SignalChannel>> = None;
        loop {
            if let Some(channel) = &mut file {
                self.poll("file", channel, &inboxes).await;
            }
            if let (Some(wanted), None) = (&self.channels.kafka, &kafka) {
                match self.producers.signals(&self.identity, wanted, &self.config).await {
                    Ok(channel) => {
                        info!(topic = %wanted.topic, "listening for signals");
                        kafka = Some(channel);
                    }
                    Err(error) => {
                        warn!(channel = "kafka", error = %self.memory.hide(&error.to_string()), "no signals can be read");
                    }
                }
            }
            if let Some(channel) = &mut kafka {
                self.poll("kafka", &mut **channel, &inboxes).await;
            }
            tokio::time::sleep(self.channels.poll_interval).await;
        }
    }

    async fn poll(&self, name: &str, channel: &mut dyn SignalChannel, inboxes: &[Inbox]) {
        match channel.poll().await {
            Ok(signals) => {
                for signal in signals {
                    info!(channel = name, signal = signal.id, kind = signal.kind, "signal received");
                    for inbox in inboxes {
                        inbox.put(signal.clone());
                    }
                }
            }
            Err(error) => {
                warn!(channel = name, error = %self.memory.hide(&error.to_string()), "signals cannot be read");
            }
        }
    }
}

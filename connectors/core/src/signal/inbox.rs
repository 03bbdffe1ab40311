//! Signals from outside of the source on their way to the reader of a partition.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tracing::warn;

use super::Signal;

/// Signals that wait to be read; more than that are nobody's intention.
const MOST: usize = 1_000;

/// A bounded queue with many writers and one reader. Cheap to clone; clones share it.
#[derive(Debug, Clone, Default)]
pub struct Inbox {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    waiting: Mutex<VecDeque<Signal>>,
    arrived: Notify,
}

impl Inbox {
    pub fn put(&self, signal: Signal) {
        let mut waiting = self.shared.waiting.lock();
        if waiting.len() >= MOST {
            drop(waiting);
            warn!(signal = signal.id, "too many signals are waiting, this one is ignored; send it again later");
            return;
        }
        waiting.push_back(signal);
        drop(waiting);
        self.shared.arrived.notify_one();
    }

    /// The next signal. Cancel-safe.
    pub async fn take(&self) -> Signal {
        loop {
            if let Some(signal) = self.shared.waiting.lock().pop_front() {
                return signal;
            }
            self.shared.arrived.notified().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value as Json;

    use super::*;

    fn signal(id: usize) -> Signal {
        Signal { id: id.to_string(), kind: "log".into(), data: Json::Null }
    }

    #[tokio::test]
    async fn in_order_and_bounded() {
        let inbox = Inbox::default();
        for id in 0..MOST + 5 {
            inbox.put(signal(id));
        }
        for id in 0..MOST {
            assert_eq!(inbox.take().await.id, id.to_string());
        }
        let (later, reader) = (inbox.clone(), tokio::spawn(async move { inbox.take().await.id }));
        later.put(signal(7));
        assert!(reader.await.is_ok_and(|id| id == "7"));
    }
}

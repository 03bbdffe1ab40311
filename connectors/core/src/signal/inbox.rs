//! Signals from outside of the source on their way to the reader of a partition.
//!
//! A signal stays here until an offset is stored that contains what followed from it: a reader that begins
//! anew before that hears it again. Invariant: signals are taken in the order in which they came, and are
//! let go in that order.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::{Followed, Received};

/// Signals that are held at once; the others wait in their channels.
const MOST: usize = 1_000;

/// A bounded queue with one writer and one reader. Cheap to clone; clones share it.
#[derive(Debug, Clone, Default)]
pub struct Inbox {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    queue: Mutex<Queue>,
    arrived: Notify,
}

#[derive(Debug, Default)]
struct Queue {
    signals: VecDeque<Received>,
    /// So many of them the reader has.
    taken: usize,
    /// Signals that were let go because what followed from them is stored.
    stored: u64,
    /// So many of these never come again.
    settled: u64,
}

impl Inbox {
    pub fn has_room(&self) -> bool {
        self.shared.queue.lock().signals.len() < MOST
    }

    /// Adds a signal; ask [`Inbox::has_room`] before.
    pub fn put(&self, received: Received) {
        self.shared.queue.lock().signals.push_back(received);
        self.shared.arrived.notify_one();
    }

    /// The next signal. Cancel-safe.
    pub async fn take(&self) -> Received {
        loop {
            {
                let mut queue = self.shared.queue.lock();
                if let Some(received) = queue.signals.get(queue.taken).cloned() {
                    queue.taken += 1;
                    return received;
                }
            }
            self.shared.arrived.notified().await;
        }
    }

    /// The reader begins anew: what is not stored is taken again.
    pub fn rewind(&self) {
        self.shared.queue.lock().taken = 0;
        self.shared.arrived.notify_one();
    }

    /// An offset is stored that contains what followed from these.
    pub fn stored(&self, followed: &Followed) {
        let mut queue = self.shared.queue.lock();
        while queue.taken > 0 && queue.signals.front().is_some_and(|first| followed.contains(&first.mark)) {
            queue.signals.pop_front();
            (queue.taken, queue.stored) = (queue.taken - 1, queue.stored + 1);
        }
    }

    /// How many signals, from the first one on, were let go.
    pub fn count_stored(&self) -> u64 {
        self.shared.queue.lock().stored
    }

    /// The first `count` signals are confirmed: nobody hears them again.
    pub fn settle(&self, count: u64) {
        self.shared.queue.lock().settled = count;
    }

    /// Whether all signals so far are confirmed.
    pub fn is_settled(&self) -> bool {
        let queue = self.shared.queue.lock();
        queue.signals.is_empty() && queue.settled == queue.stored
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value as Json;

    use super::super::{Mark, Signal};
    use super::*;

    fn received(number: i64) -> Received {
        let signal = Signal { id: number.to_string(), kind: "log".into(), data: Json::Null };
        Received { signal: Some(signal), mark: Mark { channel: "file", series: "s".into(), number, time_ms: 0 } }
    }

    async fn take(inbox: &Inbox, numbers: std::ops::Range<i64>) {
        for number in numbers {
            assert_eq!(inbox.take().await, received(number));
        }
    }

    #[tokio::test]
    async fn in_order_and_bounded() {
        let inbox = Inbox::default();
        let mut put = 0;
        while inbox.has_room() {
            inbox.put(received(put));
            put += 1;
        }
        assert_eq!(put, MOST as i64);
        take(&inbox, 0..put).await;
        let (later, reader) = (inbox.clone(), tokio::spawn(async move { inbox.take().await.mark.number }));
        later.put(received(put));
        assert!(reader.await.is_ok_and(|number| number == put));
    }

    #[tokio::test]
    async fn what_is_not_stored_is_taken_again() {
        let inbox = Inbox::default();
        (0..5).for_each(|number| inbox.put(received(number)));
        let mut followed = Followed::default();
        followed.note(&received(3).mark);
        inbox.stored(&followed);
        assert_eq!(inbox.count_stored(), 0, "nobody has followed them here");
        take(&inbox, 0..3).await;
        followed.note(&received(1).mark);
        inbox.stored(&followed);
        assert_eq!((inbox.count_stored(), inbox.is_settled()), (2, false));
        inbox.rewind();
        take(&inbox, 2..5).await;
        followed.note(&received(4).mark);
        inbox.stored(&followed);
        assert_eq!((inbox.count_stored(), inbox.is_settled()), (5, false), "not confirmed yet");
        inbox.settle(5);
        assert!(inbox.is_settled());
        inbox.put(received(5));
        assert!(!inbox.is_settled());
    }
}

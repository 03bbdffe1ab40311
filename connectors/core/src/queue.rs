//! The bounded channel of batches between a partition's reader and its encoder.
//!
//! Invariants: order is kept; what is queued never exceeds the limits, except that one batch larger
//! than a limit passes when the queue is empty; a full queue makes the reader wait, nothing is ever
//! dropped while both ends live. Dropping a [`Sender::send`] future that waits drops its batch, so
//! that is done only when the generation ends.
//!
//! It does not carry errors: a reader that fails drops its sender, and its own exit says why.

use std::sync::Arc;

use tokio::sync::{Semaphore, mpsc};

use crate::source::Batch;

/// Limits of one queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Records (`max.queue.size`); a batch without records counts as one. At least 1.
    pub records: usize,
    /// Bytes as batches state them (`max.queue.size.in.bytes`); 0 = bounded by records only.
    pub bytes: usize,
}

/// Fill level, for metrics. Room that a waiting batch has already been given counts as filled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    pub records: usize,
    pub bytes: usize,
}

/// The other end is gone; the batch comes back.
#[derive(Debug)]
pub struct Closed(pub Batch);

#[derive(Debug)]
struct Budget {
    permits: Semaphore,
    total: u32,
}

impl Budget {
    fn new(total: usize) -> Self {
        let total = u32::try_from(total).unwrap_or(u32::MAX).max(1);
        Self { permits: Semaphore::new(total as usize), total }
    }
    /// What an amount costs: never more than the whole, so that it can always be had.
    fn cost(&self, amount: usize) -> u32 {
        u32::try_from(amount).unwrap_or(u32::MAX).clamp(1, self.total)
    }
    async fn take(&self, cost: u32) -> bool {
        match self.permits.acquire_many(cost).await {
            Ok(permit) => {
                permit.forget();
                true
            }
            Err(_) => false,
        }
    }
    fn give_back(&self, cost: u32) {
        self.permits.add_permits(cost as usize);
    }
    fn used(&self) -> usize {
        (self.total as usize).saturating_sub(self.permits.available_permits())
    }
}

#[derive(Debug)]
struct Budgets {
    limits: Limits,
    records: Budget,
    bytes: Budget,
}

struct Queued {
    batch: Batch,
    records: u32,
    bytes: u32,
}

#[derive(Debug)]
pub struct Sender {
    /// Unbounded by itself: every entry holds at least one permit of `budgets.records`.
    channel: mpsc::UnboundedSender<Queued>,
    budgets: Arc<Budgets>,
}

#[derive(Debug)]
pub struct Receiver {
    channel: mpsc::UnboundedReceiver<Queued>,
    budgets: Arc<Budgets>,
}

/// Reads the fill level without holding either end open.
#[derive(Debug, Clone)]
pub struct Gauge(Arc<Budgets>);

pub fn bounded(limits: Limits) -> (Sender, Receiver) {
    let bytes = if limits.bytes == 0 { usize::MAX } else { limits.bytes };
    let budgets = Arc::new(Budgets { limits, records: Budget::new(limits.records), bytes: Budget::new(bytes) });
    let (tx, rx) = mpsc::unbounded_channel();
    (Sender { channel: tx, budgets: budgets.clone() }, Receiver { channel: rx, budgets })
}

impl Sender {
    /// Waits until there is room, then queues the batch.
    pub async fn send(&self, batch: Batch) -> Result<(), Closed> {
        let Budgets { records, bytes, .. } = &*self.budgets;
        let (r, b) = (records.cost(batch.records.len()), bytes.cost(batch.bytes));
        // Always in this order; permits come back only by receiving, so two senders cannot block
        // each other for good.
        if !records.take(r).await {
            return Err(Closed(batch));
        }
        let held = Held { budget: records, cost: r };
        if !bytes.take(b).await {
            return Err(Closed(batch));
        }
        held.keep();
        self.channel.send(Queued { batch, records: r, bytes: b }).map_err(|refused| Closed(refused.0.batch))
    }
    /// Resolves when the receiver is gone.
    pub async fn closed(&self) {
        self.channel.closed().await;
    }
    pub fn gauge(&self) -> Gauge {
        Gauge(self.budgets.clone())
    }
}

/// Gives record permits back if the wait for bytes is dropped.
struct Held<'a> {
    budget: &'a Budget,
    cost: u32,
}

impl Held<'_> {
    fn keep(mut self) {
        self.cost = 0;
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.budget.give_back(self.cost);
    }
}

impl Receiver {
    /// The next batch; `None` when every sender is gone and the queue is empty. Cancel-safe. Its
    /// room is free at once, so that the reader fills it while the batch is encoded.
    pub async fn recv(&mut self) -> Option<Batch> {
        let queued = self.channel.recv().await?;
        self.budgets.records.give_back(queued.records);
        self.budgets.bytes.give_back(queued.bytes);
        Some(queued.batch)
    }
    pub fn gauge(&self) -> Gauge {
        Gauge(self.budgets.clone())
    }
}

impl Drop for Receiver {
    /// Wakes senders that wait for room which nobody will make any more.
    fn drop(&mut self) {
        self.channel.close();
        self.budgets.records.permits.close();
        self.budgets.bytes.permits.close();
    }
}

impl Gauge {
    pub fn limits(&self) -> Limits {
        self.0.limits
    }
    pub fn usage(&self) -> Usage {
        Usage { records: self.0.records.used(), bytes: self.0.bytes.used() }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use proptest::prelude::*;

    use super::*;
    use crate::position::Position;
    use crate::record::{Datum, Headers, Record};

    fn batch(records: usize, bytes: usize) -> Batch {
        let record = Record {
            topic: "t".into(),
            partition: None,
            key: Datum::none(),
            value: Datum::none(),
            headers: Headers::default(),
            timestamp: None,
            position: Position::default(),
        };
        Batch { records: vec![record; records], events: records, bytes, progress: None }
    }

    fn poll<F: Future>(future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
        future.poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn waits_for_bytes_and_for_records() {
        let (tx, mut rx) = bounded(Limits { records: 10, bytes: 100 });
        assert!(matches!(poll(pin!(tx.send(batch(1, 60)))), Poll::Ready(Ok(()))));
        let mut blocked = pin!(tx.send(batch(1, 60)));
        assert!(poll(blocked.as_mut()).is_pending());
        assert!(matches!(poll(pin!(rx.recv())), Poll::Ready(Some(b)) if b.bytes == 60));
        assert!(matches!(poll(blocked.as_mut()), Poll::Ready(Ok(()))));
        assert!(matches!(poll(pin!(tx.send(batch(9, 10)))), Poll::Ready(Ok(()))));
        assert!(poll(pin!(tx.send(batch(1, 1)))).is_pending());
    }

    /// CFG-05: memory bounded by the byte limit plus one record; a single larger one still passes.
    #[test]
    fn a_batch_larger_than_the_queue_passes_alone() {
        let (tx, mut rx) = bounded(Limits { records: 4, bytes: 1_000_000 });
        assert!(matches!(poll(pin!(tx.send(batch(50, 9_000_000)))), Poll::Ready(Ok(()))));
        let mut next = pin!(tx.send(batch(1, 1)));
        assert!(poll(next.as_mut()).is_pending());
        assert!(matches!(poll(pin!(rx.recv())), Poll::Ready(Some(b)) if b.records.len() == 50));
        assert!(matches!(poll(next.as_mut()), Poll::Ready(Ok(()))));
    }

    #[test]
    fn a_dropped_wait_gives_its_room_back() {
        let (tx, mut rx) = bounded(Limits { records: 10, bytes: 10 });
        assert!(matches!(poll(pin!(tx.send(batch(1, 10)))), Poll::Ready(Ok(()))));
        {
            let mut waiting = pin!(tx.send(batch(9, 10)));
            assert!(poll(waiting.as_mut()).is_pending());
        }
        assert_eq!(tx.gauge().usage(), Usage { records: 1, bytes: 10 });
        assert!(matches!(poll(pin!(rx.recv())), Poll::Ready(Some(_))));
        assert_eq!(tx.gauge().usage(), Usage { records: 0, bytes: 0 });
        assert_eq!(rx.gauge().limits(), Limits { records: 10, bytes: 10 });
    }

    #[tokio::test]
    async fn ends_in_both_directions() {
        let (tx, mut rx) = bounded(Limits { records: 1, bytes: 0 });
        tx.send(batch(1, 7)).await.unwrap();
        let waiting = tokio::spawn(async move { tx.send(batch(1, 8)).await });
        assert_eq!(rx.recv().await.unwrap().bytes, 7);
        waiting.await.unwrap().unwrap();
        assert_eq!(rx.recv().await.unwrap().bytes, 8);
        assert!(rx.recv().await.is_none());

        let (tx, rx) = bounded(Limits { records: 1, bytes: 0 });
        tx.send(batch(1, 7)).await.unwrap();
        let waiting = tokio::spawn(async move {
            let result = tx.send(batch(1, 8)).await;
            tx.closed().await;
            result
        });
        drop(rx);
        assert_eq!(waiting.await.unwrap().unwrap_err().0.bytes, 8);
    }

    proptest! {
        /// Any sequence of sends and receives keeps order and limits.
        #[test]
        fn order_and_limits_hold(
            limits in (1usize..20, 1usize..200),
            batches in proptest::collection::vec((0usize..30, 0usize..300), 1..40),
            receive_first in any::<u64>(),
        ) {
            let (tx, mut rx) = bounded(Limits { records: limits.0, bytes: limits.1 });
            let mut seen = Vec::new();
            for (n, &(records, bytes)) in batches.iter().enumerate() {
                let mut send = pin!(tx.send(batch(records, bytes)));
                if receive_first >> (n % 64) & 1 == 1
                    && let Poll::Ready(Some(b)) = poll(pin!(rx.recv())) {
                    seen.push((b.records.len(), b.bytes));
                }
                while poll(send.as_mut()).is_pending() {
                    let usage = rx.gauge().usage();
                    prop_assert!(usage.records <= limits.0 && usage.bytes <= limits.1);
                    match poll(pin!(rx.recv())) {
                        Poll::Ready(Some(b)) => seen.push((b.records.len(), b.bytes)),
                        _ => prop_assert!(false, "blocked although the queue is empty"),
                    }
                }
            }
            drop(tx);
            while let Poll::Ready(Some(b)) = poll(pin!(rx.recv())) {
                seen.push((b.records.len(), b.bytes));
            }
            prop_assert_eq!(seen, batches);
        }
    }
}

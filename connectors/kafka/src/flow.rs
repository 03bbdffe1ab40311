//! How far a producer has come, and waking the one task that waits for news of it.
//!
//! The client's thread counts what is settled, the committing thread what is committed; the encoder
//! waits until the client has settled something, a commit has ended, or something has failed. The
//! first failure is kept and final. A waiter is woken when one of these happens and never polls; a
//! wake that finds nobody waiting is kept for the next one.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use thalweg_core::Error;
use thalweg_core::delivery::Acks;
use tokio::sync::Notify;

#[derive(Debug, Default)]
pub(crate) struct Flow {
    /// Cost of the records given to the client.
    handed: AtomicU64,
    /// Cost of those it has reported on.
    settled: AtomicU64,
    /// Every sequence number below is committed (`fenced` mode only).
    committed: AtomicU64,
    wake: Notify,
    stopped: AtomicBool,
    failure: OnceLock<Error>,
}

impl Flow {
    /// Before the client gets records of this cost.
    pub(crate) fn hand_over(&self, cost: u64) {
        self.handed.fetch_add(cost, Ordering::SeqCst);
    }

    /// The client has reported on records of this cost.
    pub(crate) fn settle(&self, cost: u64) {
        self.settled.fetch_add(cost, Ordering::SeqCst);
        self.nudge();
    }

    /// Cost of what the client has and has not reported on.
    pub(crate) fn unsettled(&self) -> u64 {
        // In this order it is never too little.
        let settled = self.settled.load(Ordering::SeqCst);
        self.handed.load(Ordering::SeqCst).saturating_sub(settled)
    }

    pub(crate) fn committed(&self) -> u64 {
        self.committed.load(Ordering::SeqCst)
    }

    pub(crate) fn commit(&self, upto: u64) {
        self.committed.fetch_max(upto, Ordering::SeqCst);
        self.nudge();
    }

    /// Wakes the waiter.
    pub(crate) fn nudge(&self) {
        self.wake.notify_one();
    }

    /// Waits for the next news. Look first, then wait: news in between are not lost. Cancel-safe; one
    /// waiter at a time.
    pub(crate) async fn news(&self) {
        self.wake.notified().await;
    }

    /// The same, or until a time.
    pub(crate) async fn news_until(&self, end: Option<Instant>) {
        match end {
            None => self.news().await,
            Some(end) => {
                let _ = tokio::time::timeout_at(end.into(), self.news()).await;
            }
        }
    }

    /// Keeps the first failure, reports it, and wakes the waiter. Later ones are consequences.
    pub(crate) fn fail(&self, acks: &dyn Acks, seq: u64, error: Error) {
        if self.is_stopped() || self.failure.set(error.clone()).is_err() {
            return;
        }
        acks.failed(seq, error);
        self.nudge();
    }

    /// Keeps a failure that cannot be reported to anybody else.
    pub(crate) fn give_up(&self, error: Error) {
        let _ = self.failure.set(error);
        self.nudge();
    }

    pub(crate) fn failure(&self) -> Option<&Error> {
        self.failure.get()
    }

    /// From here on nothing is reported any more.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        self.nudge();
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use std::sync::Arc;

    use parking_lot::Mutex;
    use thalweg_core::{ErrorKind, Phase};

    use super::*;

    /// Remembers what it was told.
    #[derive(Default)]
    pub(crate) struct Heard(pub(crate) Mutex<Vec<(u64, Option<ErrorKind>)>>);

    impl Acks for Heard {
        fn delivered(&self, seq: u64) {
            self.0.lock().push((seq, None));
        }
        fn delivered_below(&self, next: u64) {
            self.0.lock().push((next, None));
        }
        fn failed(&self, seq: u64, error: Error) {
            self.0.lock().push((seq, Some(error.kind)));
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn no_wake_up_is_lost() {
        let flow = Arc::new(Flow::default());
        let (loads, arriving) = std::sync::mpsc::channel::<u64>();
        let reporter = flow.clone();
        let thread = std::thread::spawn(move || {
            for load in arriving {
                (0..load).for_each(|_| reporter.settle(1));
            }
        });
        for n in 0..50_000 {
            let load = n % 5 + 1;
            flow.hand_over(load);
            loads.send(load).unwrap();
            while flow.unsettled() > 0 {
                flow.news().await;
            }
        }
        drop(loads);
        thread.join().unwrap();
    }

    #[tokio::test]
    async fn the_first_failure_is_reported_once_and_none_after_a_stop() {
        let (flow, heard) = (Flow::default(), Heard::default());
        flow.fail(&heard, 4, Error::new(ErrorKind::Fenced, Phase::Deliver, "x"));
        flow.fail(&heard, 5, Error::new(ErrorKind::Timeout, Phase::Deliver, "y"));
        assert_eq!(*heard.0.lock(), [(4, Some(ErrorKind::Fenced))]);
        flow.news().await;
        let stopped = Flow::default();
        stopped.stop();
        stopped.fail(&heard, 1, Error::new(ErrorKind::Timeout, Phase::Deliver, "z"));
        assert!(stopped.failure().is_none() && heard.0.lock().len() == 1);
        stopped.news().await;
    }
}

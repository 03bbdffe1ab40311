//! How far a producer has come, and waking the one task that waits for it.
//!
//! The client's thread reports progress, the encoder waits for a mark: in `plain` mode the unit is
//! the cost of records (room in the queue), in `fenced` mode the sequence number (what is
//! committed). The first failure is kept and final. Reporting costs one atomic addition and one load;
//! a waiter is woken once, when its mark is reached, and never polls.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use thalweg_core::Error;
use thalweg_core::delivery::Acks;
use tokio::sync::Notify;

const NOBODY: u64 = u64::MAX;

#[derive(Debug)]
pub(crate) struct Flow {
    done: AtomicU64,
    /// The mark somebody waits for.
    wanted: AtomicU64,
    wake: Notify,
    stopped: AtomicBool,
    failure: OnceLock<Error>,
}

impl Flow {
    pub(crate) fn new() -> Self {
        Self {
            done: AtomicU64::new(0),
            wanted: AtomicU64::new(NOBODY),
            wake: Notify::new(),
            stopped: AtomicBool::new(false),
            failure: OnceLock::new(),
        }
    }

    pub(crate) fn done(&self) -> u64 {
        self.done.load(Ordering::SeqCst)
    }

    /// Progress by `units`; from the client's thread.
    pub(crate) fn advance(&self, units: u64) {
        let done = self.done.fetch_add(units, Ordering::SeqCst) + units;
        self.wake_at(done);
    }

    /// Progress up to `mark`.
    pub(crate) fn advance_to(&self, mark: u64) {
        self.done.fetch_max(mark, Ordering::SeqCst);
        self.wake_at(mark);
    }

    fn wake_at(&self, done: u64) {
        if done >= self.wanted.load(Ordering::SeqCst) {
            self.wanted.store(NOBODY, Ordering::SeqCst);
            self.wake.notify_one();
        }
    }

    /// Wakes the waiter whatever it waits for.
    pub(crate) fn nudge(&self) {
        self.wake.notify_one();
    }

    /// Resolves when `mark` is reached, or after a failure, a stop or a nudge. Cancel-safe; one waiter
    /// at a time. It may resolve early; the caller looks.
    pub(crate) async fn reached(&self, mark: u64) {
        // Announce, then look: the reporter adds, then looks for the announcement. Both are
        // sequentially consistent, so at least one sees the other.
        self.wanted.store(mark, Ordering::SeqCst);
        if self.done() >= mark || self.is_stopped() || self.failure().is_some() {
            return;
        }
        self.wake.notified().await;
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
        let flow = Arc::new(Flow::new());
        let reporter = flow.clone();
        const UNITS: u64 = 200_000;
        let thread = std::thread::spawn(move || (0..UNITS).for_each(|_| reporter.advance(1)));
        let mut mark = 0;
        while mark < UNITS {
            mark = (mark + 7).min(UNITS);
            while flow.done() < mark {
                flow.reached(mark).await;
            }
        }
        thread.join().unwrap();
        assert_eq!(flow.done(), UNITS);
    }

    #[tokio::test]
    async fn the_first_failure_is_reported_once_and_none_after_a_stop() {
        let (flow, heard) = (Flow::new(), Heard::default());
        flow.fail(&heard, 4, Error::new(ErrorKind::Fenced, Phase::Deliver, "x"));
        flow.fail(&heard, 5, Error::new(ErrorKind::Timeout, Phase::Deliver, "y"));
        assert_eq!(*heard.0.lock(), [(4, Some(ErrorKind::Fenced))]);
        flow.reached(100).await;
        let stopped = Flow::new();
        stopped.stop();
        stopped.fail(&heard, 1, Error::new(ErrorKind::Timeout, Phase::Deliver, "z"));
        assert!(stopped.failure().is_none() && heard.0.lock().len() == 1);
        stopped.reached(1).await;
    }
}

//! What goes wrong on purpose: for every connection, or for one.
//!
//! Everything that a fault does it does to packets of answers: requests are run all the same, except
//! those that are refused. Packets of TLS handshakes are not counted.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::session::Message;

#[derive(Debug, Default)]
struct Plan {
    drop_after: Option<DropAfter>,
    refusals: VecDeque<Message>,
    silent: bool,
    delay: Duration,
}

#[derive(Debug, Clone, Copy)]
struct DropAfter {
    packets: u64,
    /// Tells one order to drop from the next.
    order: u64,
}

/// The switchboard of faults. Clones control the same faults.
#[derive(Debug, Clone, Default)]
pub struct Faults(Arc<watch::Sender<Plan>>);

impl Faults {
    /// Drops each connection in place of the packet after so many, counted from now or from its beginning.
    pub fn drop_after(&self, packets: u64) {
        self.0.send_modify(|plan| {
            let order = plan.drop_after.map_or(0, |d| d.order + 1);
            plan.drop_after = Some(DropAfter { packets, order });
        });
    }

    /// Answers a request with an error in place of running it: the next one, or the one after those
    /// that are to be refused already.
    pub fn refuse_next(&self, error: Message) {
        self.0.send_modify(|plan| plan.refusals.push_back(error));
    }

    /// Nothing is sent any more, until [`Self::clear`].
    pub fn silence(&self) {
        self.0.send_modify(|plan| plan.silent = true);
    }

    /// Every answer begins so much later.
    pub fn delay(&self, delay: Duration) {
        self.0.send_modify(|plan| plan.delay = delay);
    }

    /// Nothing goes wrong from now on.
    pub fn clear(&self) {
        self.0.send_modify(|plan| *plan = Plan::default());
    }

    pub(crate) fn take_refusal(&self) -> Option<Message> {
        let mut refusal = None;
        self.0.send_if_modified(|plan| {
            refusal = plan.refusals.pop_front();
            refusal.is_some()
        });
        refusal
    }

    fn is_silent(&self) -> bool {
        self.0.borrow().silent
    }

    async fn until_not_silent(&self) {
        // The sender lives as long as `self`.
        let _ = self.0.subscribe().wait_for(|plan| !plan.silent).await;
    }
}

/// A connection's view of the faults.
#[derive(Debug)]
pub(crate) struct Gate {
    sources: [Source; 2],
}

#[derive(Debug)]
struct Source {
    faults: Faults,
    /// The order to drop that packets are counted for, and how many went out since.
    order: Option<u64>,
    sent: u64,
}

impl Gate {
    /// `all` are those of every connection, `own` of this one.
    pub(crate) fn new(all: Faults, own: Faults) -> Self {
        Self { sources: [all, own].map(|faults| Source { faults, order: None, sent: 0 }) }
    }

    /// Returns when a packet may go out; `first`: it begins an answer. Errors: the connection is to be dropped.
    pub(crate) async fn pass(&mut self, first: bool) -> io::Result<()> {
        if first {
            let delay: Duration = self.sources.iter().map(|s| s.faults.0.borrow().delay).sum();
            if !delay.is_zero() {
                tokio::time::sleep(delay).await;
            }
        }
        while self.sources.iter().any(|s| s.faults.is_silent()) {
            for source in &self.sources {
                source.faults.until_not_silent().await;
            }
        }
        for source in &mut self.sources {
            source.count()?;
        }
        Ok(())
    }

    /// The error that a request is to be answered with.
    pub(crate) fn take_refusal(&self) -> Option<Message> {
        self.sources.iter().find_map(|s| s.faults.take_refusal())
    }
}

impl Source {
    fn count(&mut self) -> io::Result<()> {
        let order = self.faults.0.borrow().drop_after;
        if self.order != order.map(|o| o.order) {
            (self.order, self.sent) = (order.map(|o| o.order), 0);
        }
        if order.is_some_and(|o| self.sent >= o.packets) {
            return Err(io::Error::new(io::ErrorKind::ConnectionAborted, "the connection is dropped on purpose"));
        }
        self.sent += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn packets_are_counted_from_the_order_to_drop() {
        let (all, own) = (Faults::default(), Faults::default());
        let mut gate = Gate::new(all.clone(), own.clone());
        gate.pass(true).await.unwrap();
        all.drop_after(1);
        gate.pass(true).await.unwrap();
        assert!(gate.pass(true).await.is_err());
        all.drop_after(1);
        gate.pass(true).await.unwrap();
        all.clear();
        own.drop_after(0);
        assert!(gate.pass(true).await.is_err());
    }

    #[tokio::test]
    async fn silence_lasts_until_it_is_cleared() {
        let (all, own) = (Faults::default(), Faults::default());
        let mut gate = Gate::new(all.clone(), own.clone());
        all.silence();
        own.silence();
        let mut passing = Box::pin(gate.pass(true));
        assert!(futures::poll!(&mut passing).is_pending());
        all.clear();
        assert!(futures::poll!(&mut passing).is_pending());
        own.clear();
        passing.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_delay_holds_back_the_first_packet_of_an_answer() {
        let all = Faults::default();
        let mut gate = Gate::new(all.clone(), Faults::default());
        all.delay(Duration::from_secs(9));
        let start = tokio::time::Instant::now();
        gate.pass(true).await.unwrap();
        gate.pass(false).await.unwrap();
        assert_eq!(start.elapsed(), Duration::from_secs(9));
    }
}

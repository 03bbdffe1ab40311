//! When records go to the client: one load, and the next when the client has settled it.
//!
//! An idempotent librdkafka client has one request of a partition on its way, however many it may
//! have (it compares the number of records with the limit for requests). Records behind that request
//! make its thread ask without pause whether they may leave, which takes up to a third of a core and
//! wins nothing. So they wait here, as bytes, while they are still being added to; what has gathered
//! when the answer comes is the next load, at most a request. Under load that makes full requests,
//! and without load nothing waits.
//!
//! Where a partition has no leader, the client settles nothing of it for long. After a while the rest
//! goes on without it: topics do not wait for each other.
//!
//! Invariants: records reach the client in the order of their numbers; [`Flow`] counts a record as
//! handed over before the client can settle it; waiting records and the loads that the client reads
//! from together stay within the limit.
//!
//! It does not: wait, or decide how much may gather.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rdkafka::error::RDKafkaErrorCode;
use thalweg_core::delivery::Message;
use thalweg_core::envelope::SourceTime;

use crate::backlog::Backlog;
use crate::client::Client;
use crate::errors::Coordinates;
use crate::flow::Flow;
use crate::loads::Loads;
use crate::outlet::Outlet;

/// While more records are coming, an idle client gets a load when it is worth a request.
const EARLY: usize = 64 * 1024;
/// A client that has not settled a load after this time gets the next one.
const PATIENCE: Duration = Duration::from_millis(50);

pub(crate) struct Gate {
    outlet: Outlet,
    backlog: Backlog,
    loads: Arc<Loads>,
    flow: Arc<Flow>,
    /// When the last load left.
    left: Instant,
}

impl Gate {
    pub(crate) fn new(client: Arc<Client>, flow: Arc<Flow>) -> Self {
        let loads = client.loads().clone();
        Self { outlet: Outlet::new(client), backlog: Backlog::new(loads.clone()), loads, flow, left: Instant::now() }
    }

    /// Whether a record of this cost fits; with nothing on its way any does.
    pub(crate) fn has_room(&self, cost: u64, limit: u64) -> bool {
        let held = self.backlog.cost() + self.loads.cost();
        held == 0 || held + cost <= limit
    }

    pub(crate) fn push(&mut self, seq: u64, cost: u64, message: &Message<'_>) {
        self.backlog.push(seq, cost, message);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.backlog.is_empty()
    }

    /// Whether a load may leave now.
    pub(crate) fn is_open(&self) -> bool {
        !self.backlog.is_empty() && (self.flow.unsettled() == 0 || self.left.elapsed() >= PATIENCE)
    }

    /// Asked with each record while more are coming: without a look at the clock, for which a full
    /// producer or one that has gathered everything has time.
    pub(crate) fn is_worth_opening(&self) -> bool {
        self.backlog.next_size() >= EARLY && self.flow.unsettled() == 0
    }

    /// When a load may leave: not before `earliest`, then at the latest when the client has not settled
    /// the last one for too long. `None` if there is none.
    pub(crate) fn opens_at(&self, earliest: Instant) -> Option<Instant> {
        if self.backlog.is_empty() {
            return None;
        }
        Some(if self.flow.unsettled() == 0 { earliest } else { earliest.max(self.left + PATIENCE) })
    }

    /// Hands one load over and returns the number behind its last record. `refused` is told what the
    /// client does not take; after a failure of the producer the rest of the load is dropped.
    pub(crate) fn hand_over(&mut self, mut refused: impl FnMut(u64, RDKafkaErrorCode, Coordinates<'_>)) -> Option<u64> {
        let load = self.backlog.take()?;
        let end = load.numbers().end;
        let worth_a_request = load.size() >= EARLY;
        self.left = Instant::now();
        self.flow.hand_over(load.cost());
        let now_ms = SourceTime::now().ms;
        let mut not_taken = load.len();
        let lent = self.loads.lend(load);
        for (seq, cost, message) in lent.load().records() {
            if self.flow.is_stopped() || self.flow.failure().is_some() {
                break;
            }
            // SAFETY: `loads` keeps the load as it is until the client has let go of its records, and
            // the client drops `loads` only after it is closed.
            if let Err(code) = unsafe { self.outlet.produce(seq, &message, now_ms) } {
                let bytes = message.key.map_or(0, <[u8]>::len) + message.value.map_or(0, <[u8]>::len);
                let at = Coordinates {
                    topic: message.topic,
                    partition: message.partition,
                    key: message.key,
                    bytes: bytes as u64,
                };
                self.flow.settle(cost);
                refused(seq, code, at);
            } else {
                not_taken -= 1;
            }
        }
        self.loads.let_go(lent, not_taken + 1);
        if worth_a_request {
            self.outlet.client().hurry();
        }
        Some(end)
    }

    pub(crate) fn clear(&mut self) {
        self.backlog.clear();
    }

    pub(crate) fn client(&self) -> &Arc<Client> {
        self.outlet.client()
    }
}

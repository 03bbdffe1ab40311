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
//! handed over before the client can settle it; waiting records and those in the client together
//! stay within the limit.
//!
//! It does not: wait, or decide how much may gather.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rdkafka::error::RDKafkaErrorCode;
use thalweg_core::delivery::Message;

use crate::backlog::Backlog;
use crate::errors::Coordinates;
use crate::flow::Flow;
use crate::outlet::Outlet;

/// While more records are coming, an idle client gets a load when it is worth a request.
const EARLY: usize = 64 * 1024;
/// A client that has not settled a load after this time gets the next one.
const PATIENCE: Duration = Duration::from_millis(50);

pub(crate) struct Gate {
    outlet: Outlet,
    backlog: Backlog,
    flow: Arc<Flow>,
    /// When the last load left.
    left: Instant,
}

/// What one load was.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct HandedOver {
    pub(crate) cost: u64,
    /// Behind its last record.
    pub(crate) end: u64,
}

impl Gate {
    pub(crate) fn new(outlet: Outlet, flow: Arc<Flow>, batch_size: u64) -> Self {
        Self { outlet, backlog: Backlog::new(batch_size), flow, left: Instant::now() }
    }

    /// Whether a record of this cost fits; with nothing on its way any does.
    pub(crate) fn has_room(&self, cost: u64, limit: u64) -> bool {
        let held = self.backlog.cost() + self.flow.unsettled();
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

    /// The same while more records are coming.
    pub(crate) fn is_worth_opening(&self) -> bool {
        self.backlog.next_size() >= EARLY && self.is_open()
    }

    /// When a load may leave although the client has not settled the last one.
    pub(crate) fn opens_at(&self) -> Option<Instant> {
        (!self.backlog.is_empty()).then(|| self.left + PATIENCE)
    }

    /// Hands one load over. `refused` is told what the client does not take; after a failure of the
    /// producer the rest of the load is dropped.
    pub(crate) fn hand_over(
        &mut self,
        mut refused: impl FnMut(u64, RDKafkaErrorCode, Coordinates<'_>),
    ) -> Option<HandedOver> {
        let load = self.backlog.take()?;
        let handed = HandedOver { cost: load.cost(), end: load.end()? };
        self.left = Instant::now();
        self.flow.hand_over(load.cost());
        for (seq, cost, message) in load.records() {
            if self.flow.is_stopped() || self.flow.failure().is_some() {
                break;
            }
            if let Err(code) = self.outlet.produce(seq, &message) {
                let bytes = message.key.map_or(0, <[u8]>::len) + message.value.map_or(0, <[u8]>::len);
                let at = Coordinates {
                    topic: message.topic,
                    partition: message.partition,
                    key: message.key,
                    bytes: bytes as u64,
                };
                self.flow.settle(cost);
                refused(seq, code, at);
            }
        }
        self.backlog.reuse(load);
        Some(handed)
    }

    pub(crate) fn clear(&mut self) {
        self.backlog.clear();
    }

    pub(crate) fn client(&self) -> &Arc<crate::client::Client> {
        self.outlet.client()
    }
}

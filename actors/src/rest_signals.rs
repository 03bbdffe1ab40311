//! The signal channel `rest`: what the cluster keeps for a connector, seen from one of its tasks.
//!
//! Invariant: a signal is gone when every task of the connector has confirmed it; until then the marks in
//! the offsets say which partitions have followed it.

use std::sync::Arc;

use async_trait::async_trait;
use thalweg_core::error::Result;
use thalweg_core::signal::{Mark, REST, Received, SignalChannel};

use crate::port::{ClusterPort, Epoch, UnitId};

pub(crate) struct RestSignals {
    port: Arc<dyn ClusterPort>,
    unit: UnitId,
    epoch: Epoch,
    /// The last one that was given, and the last one that is confirmed.
    given: i64,
    confirmed: i64,
}

impl RestSignals {
    pub(crate) fn new(port: Arc<dyn ClusterPort>, unit: UnitId, epoch: Epoch) -> Self {
        Self { port, unit, epoch, given: 0, confirmed: 0 }
    }
}

#[async_trait]
impl SignalChannel for RestSignals {
    fn name(&self) -> &'static str {
        REST
    }

    async fn poll(&mut self) -> Result<Vec<Received>> {
        let signals = self.port.signals(self.unit.connector(), self.given);
        self.given = signals.last().map_or(self.given, |last| last.mark.number);
        Ok(signals)
    }

    async fn settle(&mut self, waiting: Option<&Mark>) -> Result<bool> {
        let through = waiting.map_or(self.given, |mark| mark.number - 1);
        if through > self.confirmed && self.port.keeps_signals(self.unit.connector(), through) {
            self.port.confirm_signals(&self.unit, self.epoch, through).await?;
        }
        self.confirmed = through.max(self.confirmed);
        // Other tasks may still have to confirm them.
        Ok(waiting.is_none() && !self.port.keeps_signals(self.unit.connector(), self.given))
    }
}

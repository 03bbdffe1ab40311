//! Asks for the lease every heartbeat interval, for as long as there is an incarnation.
//!
//! Heartbeats overlap: a slow answer does not hold back the next question. One that found no leader is
//! followed by the next within moments, so that a new leader hears of everybody at once. It does not
//! decide who the leader is; the link does.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use super::guard::LeaseGuard;
use super::table::Grant;
use crate::raft::StateView;

/// Heartbeats that may be on their way at a time.
const IN_FLIGHT: usize = 8;
/// Pause after a heartbeat that found no leader.
const RETRY: Duration = Duration::from_millis(100);

#[async_trait]
pub trait LeaseLink: Send + Sync + 'static {
    /// Asks the present leader (which may be this node). `None`: no leader, or no answer in time.
    async fn heartbeat(&self, incarnation: u64, seq: u64, applied: u64) -> Option<Grant>;
}

pub struct LeaseKeeper {
    pub guard: Arc<LeaseGuard>,
    pub view: Arc<StateView>,
    pub link: Arc<dyn LeaseLink>,
    /// The node's incarnation, once registered.
    pub incarnation: watch::Receiver<Option<u64>>,
}

impl LeaseKeeper {
    /// Ends with the token.
    pub async fn run(mut self, stop: CancellationToken) {
        let mut ticks = tokio::time::interval(self.guard.terms().heartbeat);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut calls: JoinSet<()> = JoinSet::new();
        let again = Arc::new(Notify::new());
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                _ = ticks.tick() => {}
                () = again.notified() => {}
                // A new incarnation does not wait for the next beat.
                changed = self.incarnation.changed() => if changed.is_err() { return },
            }
            while calls.try_join_next().is_some() {}
            let Some(incarnation) = *self.incarnation.borrow_and_update() else { continue };
            if calls.len() >= IN_FLIGHT {
                continue;
            }
            let Some(seq) = self.guard.sending(incarnation) else { continue };
            let (guard, link, applied) = (self.guard.clone(), self.link.clone(), self.view.applied());
            let again = again.clone();
            calls.spawn(async move {
                match link.heartbeat(incarnation, seq, applied).await {
                    Some(Grant::Granted) => guard.granted(seq),
                    // The end of an incarnation shows in the applied state too; there the herder sees it.
                    Some(refused) => tracing::warn!(incarnation, ?refused, "heartbeat was refused"),
                    None => {
                        tracing::debug!(incarnation, seq, "heartbeat was not answered");
                        tokio::time::sleep(RETRY).await;
                        again.notify_one();
                    }
                }
            });
        }
    }
}

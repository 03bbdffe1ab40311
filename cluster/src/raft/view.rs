//! Read access to the applied state, and the notice that it has moved on.
//!
//! Invariants: one writer (the state machine of this replica); the announced index never exceeds
//! what has been applied. Readers hold the lock briefly and never across an await.

use parking_lot::{RwLock, RwLockReadGuard};
use tokio::sync::watch;

use super::command::{Command, Reply};
use super::state::State;

#[derive(Debug)]
pub struct StateView {
    state: RwLock<State>,
    applied: watch::Sender<u64>,
}

impl StateView {
    /// A view of `state`, which holds everything up to log index `applied`.
    pub fn new(state: State, applied: u64) -> Self {
        Self { state: RwLock::new(state), applied: watch::Sender::new(applied) }
    }

    /// At least as new as [`StateView::applied`] said before.
    pub fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read()
    }

    /// Index of the last applied log entry of any kind.
    pub fn applied(&self) -> u64 {
        *self.applied.borrow()
    }

    /// Sees every move of [`StateView::applied`], coalesced.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.applied.subscribe()
    }

    /// Resolves when everything up to `index` has been applied here.
    pub async fn wait_for(&self, index: u64) {
        // The sender lives as long as `self`.
        let _ = self.changes().wait_for(|applied| *applied >= index).await;
    }

    /// Writer: applies one command. Readers see it at once, waiters after [`StateView::announce`].
    pub fn apply(&self, index: u64, command: &Command) -> Reply {
        self.state.write().apply(index, command)
    }

    /// Writer: everything up to `index`, commands or not, has been applied.
    pub fn announce(&self, index: u64) {
        self.applied.send_if_modified(|applied| {
            let moved = index > *applied;
            *applied = index.max(*applied);
            moved
        });
    }

    /// Writer: a snapshot takes the place of the state.
    pub fn install(&self, index: u64, state: State) {
        *self.state.write() = state;
        self.announce(index);
    }
}

//! A log of one copy for tests: what is proposed is applied at once, or fails as told.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use tokio::sync::{Semaphore, watch};

use super::command::{Command, Reply};
use super::state::State;
use super::{ProposeError, Proposer, StateView};

pub(crate) struct LocalLog {
    pub(crate) view: Arc<StateView>,
    index: Mutex<u64>,
    failure: Mutex<Option<ProposeError>>,
    /// Permits to answer; plenty unless [`LocalLog::hold`] was called.
    gate: Semaphore,
    pub(crate) proposed: watch::Sender<Vec<Command>>,
}

impl LocalLog {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            view: Arc::new(StateView::new(State::default(), 0)),
            index: Mutex::new(0),
            failure: Mutex::default(),
            gate: Semaphore::new(Semaphore::MAX_PERMITS),
            proposed: watch::Sender::new(Vec::new()),
        })
    }
    /// What follows is not applied.
    pub(crate) fn fail(&self, failure: Option<ProposeError>) {
        *self.failure.lock() = failure;
    }
    /// Proposals wait from now on.
    pub(crate) fn hold(&self) {
        self.gate.forget_permits(Semaphore::MAX_PERMITS);
    }
    pub(crate) fn let_through(&self, count: usize) {
        self.gate.add_permits(count);
    }
    pub(crate) fn apply(&self, command: impl Into<Command>) -> Reply {
        let mut index = self.index.lock();
        *index += 1;
        let reply = self.view.apply(*index, &command.into());
        self.view.announce(*index);
        reply
    }
    pub(crate) async fn until(&self, what: &str, holds: impl Fn(&State) -> bool) {
        let mut changes = self.view.changes();
        let wait = async {
            loop {
                changes.mark_unchanged();
                if holds(&self.view.read()) {
                    return;
                }
                changes.changed().await.unwrap();
            }
        };
        if tokio::time::timeout(Duration::from_secs(20), wait).await.is_err() {
            panic!("never came true: {what}; the state is {:#?}", self.view.read());
        }
    }
}

#[async_trait]
impl Proposer for LocalLog {
    async fn propose(&self, command: Command) -> Result<Reply, ProposeError> {
        self.proposed.send_modify(|all| all.push(command.clone()));
        self.gate.acquire().await.unwrap().forget();
        match self.failure.lock().clone() {
            Some(failure) => Err(failure),
            None => Ok(self.apply(command)),
        }
    }
}

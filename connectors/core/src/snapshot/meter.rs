//! What an incremental snapshot has done, as numbers for metrics.
//!
//! Told by the state machine when a chunk is published, a signal is followed or the snapshot ends: nothing
//! per row or event. It outlives restarts of the reader; figures count since the task was placed here, or
//! since the snapshot began if that was later. Keys are not kept: they are data of the source.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// How a snapshot stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    Running,
    Paused,
    Completed,
    /// Stopped, or given up.
    Aborted,
}

/// What was read of one collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Scanned {
    /// With those that a change has overtaken.
    pub rows: u64,
    /// Chunks that are published.
    pub chunks: u64,
}

/// An incremental snapshot at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IncrementalView {
    pub standing: Standing,
    pub started: Instant,
    /// Since its begin, or until its end.
    pub duration: Duration,
    /// Of it, the pauses that signals have asked for.
    pub paused: Duration,
    /// Collections that are not read to their end; an expression counts as one until it is known what it means.
    pub waiting: usize,
    /// Collections that were read to their end, left out or taken out.
    pub ended: usize,
    /// Those of which something was read, by name.
    pub tables: BTreeMap<String, Scanned>,
}

/// The latest incremental snapshot of a partition.
#[derive(Debug, Default)]
pub struct IncrementalMeter {
    state: Mutex<Option<State>>,
}

#[derive(Debug)]
struct State {
    standing: Standing,
    started: Instant,
    until: Option<Instant>,
    /// Pauses that are over, and since when the present one lasts.
    paused: Duration,
    paused_since: Option<Instant>,
    waiting: usize,
    ended: usize,
    tables: BTreeMap<String, Scanned>,
}

impl IncrementalMeter {
    /// `None`: there was none since the task was placed here.
    pub fn view(&self) -> Option<IncrementalView> {
        self.state.lock().as_ref().map(|state| {
            let now = state.until.unwrap_or_else(Instant::now);
            let pause = state.paused_since.map(|since| now.saturating_duration_since(since));
            IncrementalView {
                standing: state.standing,
                started: state.started,
                duration: now.saturating_duration_since(state.started),
                paused: state.paused + pause.unwrap_or_default(),
                waiting: state.waiting,
                ended: state.ended,
                tables: state.tables.clone(),
            }
        })
    }

    /// A snapshot is under way; one that was already goes on, and a pause is over.
    pub(super) fn runs(&self) {
        let mut state = self.state.lock();
        match state.as_mut().filter(|state| state.until.is_none()) {
            Some(state) => state.stand(Standing::Running),
            None => *state = Some(State::new()),
        }
    }

    pub(super) fn pauses(&self) {
        self.change(|state| state.stand(Standing::Paused));
    }

    /// So many collections are left in the queue.
    pub(super) fn waits(&self, waiting: usize) {
        self.change(|state| state.waiting = waiting);
    }

    pub(super) fn published(&self, table: &str, rows: usize) {
        self.change(|state| {
            let scanned = match state.tables.get_mut(table) {
                Some(scanned) => scanned,
                None => state.tables.entry(table.to_owned()).or_default(),
            };
            scanned.rows += rows as u64;
            scanned.chunks += 1;
        });
    }

    /// So many collections more are done with.
    pub(super) fn ended(&self, collections: usize) {
        self.change(|state| state.ended += collections);
    }

    /// It is over; nothing is left of one that was not under way.
    pub(super) fn ends(&self, standing: Standing) {
        self.change(|state| {
            state.stand(standing);
            state.until = Some(Instant::now());
        });
    }

    /// Only what is under way changes.
    fn change(&self, change: impl FnOnce(&mut State)) {
        if let Some(state) = self.state.lock().as_mut().filter(|state| state.until.is_none()) {
            change(state);
        }
    }
}

impl State {
    fn new() -> Self {
        Self {
            standing: Standing::Running,
            started: Instant::now(),
            until: None,
            paused: Duration::ZERO,
            paused_since: None,
            waiting: 0,
            ended: 0,
            tables: BTreeMap::new(),
        }
    }

    fn stand(&mut self, standing: Standing) {
        if standing == Standing::Paused {
            self.paused_since.get_or_insert_with(Instant::now);
        } else if let Some(since) = self.paused_since.take() {
            self.paused += since.elapsed();
        }
        self.standing = standing;
    }
}

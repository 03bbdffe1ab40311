//! One collection or table while it is being snapshotted: its progress, its rate, its time left.
//!
//! Lives from the first row to the last. The partition actor feeds it once per heartbeat; it keeps
//! the view that status shows, and writes one log line every ten seconds and one at the end.
//! It does not: read rows (that is the partition's reader).

use std::sync::Arc;
use std::time::{Duration, Instant};

use actix::{Actor, ActorContext, Context, Handler, Message};
use thalweg_core::progress::SnapshotProgress;
use tracing::info;

use crate::memory::PartitionMemory;
use crate::turn::Turn;
use crate::view::TableView;

const LOG_EVERY: Duration = Duration::from_secs(10);
/// Weight of the newest measurement in the rate.
const NEWEST: f64 = 0.3;

pub(crate) struct TableActor {
    memory: Arc<PartitionMemory>,
    name: String,
    pace: Pace,
    logged: Instant,
}

/// Present numbers of the table.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Advanced(pub SnapshotProgress);

impl TableActor {
    pub(crate) fn new(memory: Arc<PartitionMemory>, name: String) -> Self {
        let now = Instant::now();
        Self { memory, name, pace: Pace::new(now), logged: now }
    }
}

impl Actor for TableActor {
    type Context = Context<Self>;
}

impl Handler<Advanced> for TableActor {
    type Result = ();

    fn handle(&mut self, Advanced(progress): Advanced, ctx: &mut Self::Context) {
        let _turn = Turn::of(&self.memory.span);
        let now = Instant::now();
        self.pace.look(progress.done, now);
        let view = TableView {
            name: self.name.clone(),
            rows_done: progress.done,
            rows_expected: progress.expected,
            rate: self.pace.rate(progress.done, now),
            left: if progress.finished { None } else { self.pace.left(&progress, now) },
            finished: progress.finished,
        };
        if progress.finished || now.duration_since(self.logged) >= LOG_EVERY {
            self.logged = now;
            info!(
                table = %self.name,
                rows = view.rows_done,
                rows_expected = view.rows_expected,
                rows_per_second = view.rate.round(),
                seconds_left = view.left.map(|l| l.as_secs()),
                finished = view.finished,
                "snapshot progress"
            );
        }
        self.memory.set_table(view);
        if progress.finished {
            ctx.stop();
        }
    }
}

/// Rate of a growing count, smoothed.
#[derive(Debug)]
struct Pace {
    started: Instant,
    last: (Instant, u64),
    lately: Option<f64>,
}

impl Pace {
    fn new(now: Instant) -> Self {
        Self { started: now, last: (now, 0), lately: None }
    }
    fn look(&mut self, done: u64, now: Instant) {
        let seconds = now.saturating_duration_since(self.last.0).as_secs_f64();
        if seconds < 0.05 {
            return;
        }
        let measured = done.saturating_sub(self.last.1) as f64 / seconds;
        self.lately = Some(self.lately.map_or(measured, |old| old + (measured - old) * NEWEST));
        self.last = (now, done);
    }
    fn rate(&self, done: u64, now: Instant) -> f64 {
        let seconds = now.saturating_duration_since(self.started).as_secs_f64();
        self.lately.unwrap_or(if seconds > 0.0 { done as f64 / seconds } else { 0.0 })
    }
    fn left(&self, progress: &SnapshotProgress, now: Instant) -> Option<Duration> {
        let rate = self.rate(progress.done, now);
        let rows = progress.expected.saturating_sub(progress.done);
        (rate > 0.0 && progress.expected > 0).then(|| Duration::from_secs_f64((rows as f64 / rate).min(1e9)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pace_follows_the_recent_rate() {
        let start = Instant::now();
        let mut pace = Pace::new(start);
        let at = |s: u64| start + Duration::from_secs(s);
        for second in 1..=10 {
            pace.look(second * 100, at(second));
        }
        assert!((pace.rate(1000, at(10)) - 100.0).abs() < 1.0);
        for second in 11..=40 {
            pace.look(1000 + (second - 10) * 10, at(second));
        }
        assert!((pace.rate(1300, at(40)) - 10.0).abs() < 1.0);
        let progress = SnapshotProgress { done: 1300, expected: 1400, finished: false };
        let left = pace.left(&progress, at(40)).map(|l| l.as_secs());
        assert!(left.is_some_and(|l| (9..=11).contains(&l)), "{left:?}");
        let unknown = SnapshotProgress { done: 1300, expected: 0, finished: false };
        assert_eq!(pace.left(&unknown, at(40)), None);
    }
}

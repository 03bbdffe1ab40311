//! Progress, not just liveness: a partition that is said to run but does not move is a fault.
//!
//! Each stage shows a [`Pulse`]: a beat per batch, and what it waits for. Waits that are nobody's
//! fault here (a full queue because the broker is slow, a pause, an empty queue) are named, so
//! back-pressure is never taken for a hang. A `StageWatch` compares two looks at one of them.
//!
//! Invariants: a beat costs one relaxed store per batch; a named wait ends with its guard.
//! It does not: act. The actor that watches ends what stands still and builds it anew.

use std::fmt;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// What a stage legitimately waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Wait {
    /// Nothing: it works, or waits for the source.
    None = 0,
    Paused = 1,
    /// The stage behind it is slower.
    Queue = 2,
    /// There is nothing to send.
    Input = 3,
    /// The producer is full or commits a transaction.
    Broker = 4,
    /// A topic is being looked up or created.
    Topic = 5,
    /// A former owner's last sends must have ended.
    FormerOwner = 6,
    /// The position at which the source was opened is being stored.
    StartPosition = 7,
    /// It has ended.
    End = 8,
    /// A converter asks the schema registry.
    SchemaRegistry = 9,
}

impl Wait {
    fn from_byte(byte: u8) -> Self {
        match byte {
            1 => Self::Paused,
            2 => Self::Queue,
            3 => Self::Input,
            4 => Self::Broker,
            5 => Self::Topic,
            6 => Self::FormerOwner,
            7 => Self::StartPosition,
            8 => Self::End,
            9 => Self::SchemaRegistry,
            _ => Self::None,
        }
    }
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "working",
            Self::Paused => "paused",
            Self::Queue => "waiting for room in the queue",
            Self::Input => "waiting for changes",
            Self::Broker => "waiting for the broker",
            Self::Topic => "waiting for a topic",
            Self::FormerOwner => "waiting for the last sends of the former owner",
            Self::StartPosition => "waiting for the starting position to be stored",
            Self::End => "ended",
            Self::SchemaRegistry => "waiting for the schema registry",
        })
    }
}

/// Sign of life of one stage.
#[derive(Debug, Default)]
pub(crate) struct Pulse {
    beats: AtomicU64,
    wait: AtomicU8,
}

/// Ends a named wait when dropped.
#[derive(Debug)]
pub(crate) struct Waiting<'a>(&'a Pulse);

impl Pulse {
    /// Once per batch.
    pub(crate) fn beat(&self) {
        self.beats.fetch_add(1, Ordering::Relaxed);
    }
    #[must_use]
    pub(crate) fn waiting(&self, wait: Wait) -> Waiting<'_> {
        self.wait.store(wait as u8, Ordering::Relaxed);
        Waiting(self)
    }
    /// A stage that is about to start or to end.
    pub(crate) fn set(&self, wait: Wait) {
        self.wait.store(wait as u8, Ordering::Relaxed);
        self.beat();
    }
    pub(crate) fn wait(&self) -> Wait {
        Wait::from_byte(self.wait.load(Ordering::Relaxed))
    }
    pub(crate) fn beats(&self) -> u64 {
        self.beats.load(Ordering::Relaxed)
    }
}

impl Drop for Waiting<'_> {
    /// The end of a wait is a sign of life.
    fn drop(&mut self) {
        self.0.set(Wait::None);
    }
}

/// Two looks apart in time at one stage.
#[derive(Debug)]
pub(crate) struct StageWatch {
    /// Longest silence; zero switches the watch off.
    limit: Duration,
    mark: (u64, i64),
    since: Instant,
}

impl StageWatch {
    pub(crate) fn new(limit: Duration, now: Instant) -> Self {
        Self { limit, mark: (u64::MAX, i64::MIN), since: now }
    }
    /// Looks again: how long the stage has stood still without a reason, if that is too long.
    /// `contact` is any further sign of life, e.g. the last answer of the source; `resting`: it waits
    /// because the configuration says so.
    pub(crate) fn look(&mut self, pulse: &Pulse, contact: i64, resting: bool, now: Instant) -> Option<Duration> {
        let mark = (pulse.beats(), contact);
        if resting || pulse.wait() != Wait::None || mark != self.mark {
            self.mark = mark;
            self.since = now;
        }
        let silence = now.saturating_duration_since(self.since);
        (!self.limit.is_zero() && silence >= self.limit).then_some(silence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(60);

    struct Scene {
        pulse: Pulse,
        watch: StageWatch,
        start: Instant,
    }

    impl Scene {
        fn new(limit: Duration) -> Self {
            let start = Instant::now();
            Self { pulse: Pulse::default(), watch: StageWatch::new(limit, start), start }
        }
        fn look(&mut self, seconds: u64, contact: i64) -> Option<Duration> {
            self.watch.look(&self.pulse, contact, false, self.start + Duration::from_secs(seconds))
        }
    }

    #[test]
    fn silence_is_a_fault_after_the_limit_only() {
        let mut scene = Scene::new(LIMIT);
        assert_eq!(scene.look(1, 0), None);
        assert_eq!(scene.look(60, 0), None);
        assert_eq!(scene.look(61, 0), Some(LIMIT));
    }

    #[test]
    fn contact_with_a_quiet_source_and_beats_are_progress() {
        let mut scene = Scene::new(LIMIT);
        assert!((0..600).step_by(30).all(|second| scene.look(second, second as i64).is_none()));
        for second in (600..1200).step_by(30) {
            scene.pulse.beat();
            assert_eq!(scene.look(second, 0), None);
        }
    }

    #[test]
    fn back_pressure_and_pause_are_not_hangs() {
        for wait in [Wait::Queue, Wait::Paused, Wait::Broker, Wait::Input, Wait::SchemaRegistry] {
            let mut scene = Scene::new(LIMIT);
            scene.pulse.set(wait);
            assert!((0..1000).step_by(10).all(|second| scene.look(second, 0).is_none()), "{wait}");
        }
    }

    #[test]
    fn a_rest_of_the_source_is_not_a_hang_and_silence_is_counted_from_its_end() {
        let mut scene = Scene::new(LIMIT);
        for second in (0..=1000).step_by(10) {
            let now = scene.start + Duration::from_secs(second);
            assert_eq!(scene.watch.look(&scene.pulse, 0, true, now), None);
        }
        assert_eq!(scene.look(1059, 0), None);
        assert_eq!(scene.look(1060, 0), Some(LIMIT));
    }

    #[test]
    fn silence_is_counted_from_the_end_of_a_wait() {
        let mut scene = Scene::new(LIMIT);
        let waiting = scene.pulse.waiting(Wait::Queue);
        assert_eq!(scene.watch.look(&scene.pulse, 0, false, scene.start + Duration::from_secs(500)), None);
        drop(waiting);
        assert_eq!(scene.pulse.wait(), Wait::None);
        assert_eq!(scene.look(530, 0), None);
        assert_eq!(scene.look(589, 0), None);
        assert_eq!(scene.look(590, 0), Some(LIMIT));
    }

    #[test]
    fn zero_switches_the_watch_off() {
        let mut scene = Scene::new(Duration::ZERO);
        assert_eq!(scene.look(100_000, 0), None);
    }
}

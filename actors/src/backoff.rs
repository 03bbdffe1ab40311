//! How long to wait before trying again, and when to give up.
//!
//! Delays double from 0.5 s to 60 s with jitter; `errors.retry.delay.initial.ms` and
//! `errors.retry.delay.max.ms` move both ends, `retriable.restart.connector.wait.ms` makes the wait
//! fixed, `errors.max.retries` bounds failures in a row (-1 without limit, 0 none). Panics have a
//! budget of their own, because repeating a defect for ever helps nobody.
//!
//! Invariant: only healthy progress (a record acknowledged by Kafka) resets the count.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

/// Panics in a row, without progress between them, that are answered by a restart.
const PANICS: u32 = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BackoffPolicy {
    pub base: Duration,
    pub cap: Duration,
    /// Waits are exactly this long, if set.
    pub fixed: Option<Duration>,
    /// Failures in a row that are answered by a retry; `None` = without limit.
    pub max_retries: Option<u32>,
}

impl Default for BackoffPolicy {
    fn default() -> Self {
        Self { base: Duration::from_millis(500), cap: Duration::from_secs(60), fixed: None, max_retries: None }
    }
}

/// Answer to a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    After(Duration),
    /// The budget is spent.
    GiveUp,
}

#[derive(Debug)]
pub(crate) struct Backoff {
    policy: BackoffPolicy,
    failures: u32,
    panics: u32,
    random: RandomState,
}

impl Backoff {
    pub(crate) fn new(policy: BackoffPolicy) -> Self {
        Self { policy, failures: 0, panics: 0, random: RandomState::new() }
    }
    pub(crate) fn set_policy(&mut self, policy: BackoffPolicy) {
        self.policy = policy;
    }
    /// Failures in a row so far.
    pub(crate) fn failures(&self) -> u32 {
        self.failures
    }
    pub(crate) fn reset(&mut self) {
        self.failures = 0;
        self.panics = 0;
    }
    pub(crate) fn failed(&mut self) -> Next {
        self.failures = self.failures.saturating_add(1);
        match self.policy.max_retries {
            Some(max) if self.failures > max => Next::GiveUp,
            _ => Next::After(self.delay()),
        }
    }
    pub(crate) fn panicked(&mut self) -> Next {
        self.panics = self.panics.saturating_add(1);
        match self.failed() {
            Next::After(delay) if self.panics <= PANICS => Next::After(delay),
            _ => Next::GiveUp,
        }
    }
    /// Between half of the doubled delay and the whole of it.
    fn delay(&self) -> Duration {
        if let Some(fixed) = self.policy.fixed {
            return fixed;
        }
        let doublings = self.failures.saturating_sub(1).min(16);
        let full = self.policy.base.saturating_mul(1 << doublings).min(self.policy.cap);
        let share = (self.random.hash_one(self.failures) % 1024) as f64 / 1023.0;
        full.mul_f64(0.5 + share / 2.0)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    fn policy(max_retries: Option<u32>) -> BackoffPolicy {
        BackoffPolicy { max_retries, ..BackoffPolicy::default() }
    }

    #[test]
    fn delays_double_up_to_the_cap_with_jitter_below() {
        let mut backoff = Backoff::new(policy(None));
        let mut full = Duration::from_millis(500);
        for _ in 0..40 {
            let Next::After(delay) = backoff.failed() else { panic!("no limit was set") };
            assert!(delay >= full / 2 && delay <= full, "{delay:?} is outside of {full:?}");
            full = (full * 2).min(Duration::from_secs(60));
        }
        backoff.reset();
        assert!(matches!(backoff.failed(), Next::After(d) if d <= Duration::from_millis(500)));
    }

    #[test]
    fn run_13_retries_are_counted_in_a_row() {
        for (max, refused_at) in [(Some(0), 1), (Some(3), 4)] {
            let mut backoff = Backoff::new(policy(max));
            for n in 1..refused_at {
                assert!(matches!(backoff.failed(), Next::After(_)), "failure {n} of budget {max:?}");
            }
            assert_eq!(backoff.failed(), Next::GiveUp);
        }
        let mut unlimited = Backoff::new(policy(None));
        assert!((0..1000).all(|_| matches!(unlimited.failed(), Next::After(_))));
        let mut healed = Backoff::new(policy(Some(1)));
        for _ in 0..5 {
            assert!(matches!(healed.failed(), Next::After(_)));
            healed.reset();
        }
    }

    #[test]
    fn a_fixed_wait_is_kept_exactly() {
        let wait = Duration::from_secs(10);
        let mut backoff = Backoff::new(BackoffPolicy { fixed: Some(wait), ..BackoffPolicy::default() });
        assert!((0..20).all(|_| backoff.failed() == Next::After(wait)));
    }

    #[test]
    fn panics_have_their_own_budget() {
        let mut backoff = Backoff::new(policy(None));
        for _ in 0..PANICS {
            assert!(matches!(backoff.panicked(), Next::After(_)));
        }
        assert_eq!(backoff.panicked(), Next::GiveUp);
        let mut none = Backoff::new(policy(Some(0)));
        assert_eq!(none.panicked(), Next::GiveUp);
    }
}

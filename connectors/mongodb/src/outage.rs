//! Waiting between attempts to connect (`connect.backoff.*`, `connect.max.attempts`).
//!
//! Attempts are counted per outage; the first answer of the server ends it. No jitter: the delays
//! are documented one by one.

use std::time::Duration;

use crate::options::ConnectionConfig;

#[derive(Debug)]
pub(crate) struct Outage {
    initial: Duration,
    longest: Duration,
    max_attempts: u32,
    failed: u32,
}

impl Outage {
    pub(crate) fn new(config: &ConnectionConfig) -> Self {
        Self {
            initial: config.backoff_initial,
            longest: config.backoff_max,
            max_attempts: config.max_attempts,
            failed: 0,
        }
    }

    /// The server answered.
    pub(crate) fn over(&mut self) {
        self.failed = 0;
    }

    /// Attempts that failed in this outage.
    pub(crate) fn attempts(&self) -> u32 {
        self.failed
    }

    /// Another attempt failed: how long to wait before the next one. `None`: it was the last one.
    pub(crate) fn failed(&mut self) -> Option<Duration> {
        self.failed += 1;
        let doubled = self.initial.saturating_mul(2_u32.saturating_pow(self.failed - 1));
        (self.failed < self.max_attempts).then(|| doubled.min(self.longest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t_19_delays_double_up_to_the_limit() {
        let mut outage =
            Outage { initial: Duration::from_secs(1), longest: Duration::from_secs(120), max_attempts: 16, failed: 0 };
        let mut delays = Vec::new();
        while let Some(delay) = outage.failed() {
            delays.push(delay.as_secs());
        }
        assert_eq!(delays, [1, 2, 4, 8, 16, 32, 64, 120, 120, 120, 120, 120, 120, 120, 120]);
        assert_eq!(outage.attempts(), 16);
        outage.over();
        assert_eq!(outage.failed(), Some(Duration::from_secs(1)));
    }

    #[test]
    fn one_attempt_means_one() {
        let mut outage =
            Outage { initial: Duration::from_secs(1), longest: Duration::from_secs(1), max_attempts: 1, failed: 0 };
        assert_eq!(outage.failed(), None);
    }
}

//! Notices a position that has not moved for long, though a healthy source moves it
//! (`internal.offset.activity.monitor.interval.ms`).

use std::time::{Duration, Instant};

#[derive(Debug)]
pub struct Stillness<P> {
    /// Zero: off.
    limit: Duration,
    since: Instant,
    position: Option<P>,
}

impl<P: PartialEq> Stillness<P> {
    pub fn new(limit: Duration, now: Instant) -> Self {
        Self { limit, since: now, position: None }
    }

    /// Once per answer of the source; whether the limit is over, and was told of.
    pub fn see(&mut self, position: Option<P>, now: Instant) -> bool {
        if self.position != position {
            self.position = position;
            self.since = now;
        } else if !self.limit.is_zero() && now.saturating_duration_since(self.since) >= self.limit {
            tracing::warn!(
                seconds = self.limit.as_secs(),
                "the position has not moved, this may indicate the connector is no longer receiving events"
            );
            self.since = now;
            return true;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_tells_once_in_each_interval_without_a_move() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut still = Stillness::new(Duration::from_secs(10), start);
        assert_eq!([1, 9, 10, 11, 20].map(|s| still.see(Some(1), at(s))), [false, false, false, true, false]);
        assert!(!still.see(Some(2), at(30)) && still.see(Some(2), at(40)));
        let mut off = Stillness::new(Duration::ZERO, start);
        assert!(!off.see(Some(1), at(1)) && !off.see(Some(1), at(1_000)));
    }
}

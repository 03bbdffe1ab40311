//! The pause between two looks for changes: short while changes come, up to `poll.interval.ms` while none do.

use std::time::Duration;

/// After a change.
const SHORTEST: Duration = Duration::from_millis(5);

#[derive(Debug, Clone)]
pub struct Pace {
    longest: Duration,
    next: Duration,
}

impl Pace {
    /// `longest`: `poll.interval.ms`.
    pub const fn new(longest: Duration) -> Self {
        Self { longest, next: longest }
    }

    /// Changes came.
    pub fn moved(&mut self) {
        self.next = SHORTEST.min(self.longest);
    }

    /// Nothing came: so long to wait. Each time it is twice as long.
    pub fn idle(&mut self) -> Duration {
        let pause = self.next;
        self.next = (pause * 2).min(self.longest);
        pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pauses(pace: &mut Pace, count: usize) -> Vec<u128> {
        (0..count).map(|_| pace.idle().as_millis()).collect()
    }

    #[test]
    fn pauses_grow_to_the_interval_and_shrink_with_a_change() {
        let mut pace = Pace::new(Duration::from_millis(50));
        assert_eq!(pauses(&mut pace, 2), [50, 50]);
        pace.moved();
        assert_eq!(pauses(&mut pace, 6), [5, 10, 20, 40, 50, 50]);
        pace.moved();
        assert_eq!(pauses(&mut pace, 1), [5]);
        let mut short = Pace::new(Duration::from_millis(2));
        short.moved();
        assert_eq!(pauses(&mut short, 2), [2, 2]);
    }
}

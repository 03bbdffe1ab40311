//! Since when no former leader can have proved that it led.
//!
//! A leader proves it with answers of a majority, and a new one is elected by a majority: some voter
//! is in both. What that voter has answered to no leader since is not proved, so every voter says with
//! its vote for how long it has heard from none, and the shortest of these times counts. A new leader
//! need not wait out a lease that was granted before that: an election does not add to the time that
//! the tasks of a lost node stand still.
//!
//! It does not: decide anything, or keep more than the latest term.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// A term that this node leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Leadership {
    pub term: u64,
    /// Length of the time, up to when this node noticed that it leads, in which no former leader can
    /// have proved that it led. It may have been longer.
    pub quiet: Duration,
}

/// Votes for this node.
#[derive(Debug, Default)]
pub struct Ballots {
    latest: Mutex<Option<Ballot>>,
}

#[derive(Debug)]
struct Ballot {
    term: u64,
    quiet_since: Instant,
}

impl Ballots {
    /// A vote for this node in `term`, from a voter that has heard from no leader for `silence`.
    pub fn granted(&self, term: u64, silence: Duration) {
        let now = Instant::now();
        let since = now.checked_sub(silence).unwrap_or(now);
        let mut latest = self.latest.lock();
        match &mut *latest {
            Some(ballot) if ballot.term == term => ballot.quiet_since = ballot.quiet_since.max(since),
            Some(ballot) if ballot.term > term => {}
            _ => *latest = Some(Ballot { term, quiet_since: since }),
        }
    }

    /// By the votes of others; `None` if there were none in this term.
    pub fn quiet(&self, term: u64) -> Option<Duration> {
        self.latest.lock().as_ref().filter(|b| b.term == term).map(|b| b.quiet_since.elapsed())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    #[test]
    fn the_voter_that_heard_last_counts() {
        let ballots = Ballots::default();
        assert!(ballots.quiet(1).is_none());
        ballots.granted(3, Duration::from_secs(60));
        ballots.granted(3, Duration::from_secs(2));
        ballots.granted(3, Duration::from_secs(90));
        let quiet = ballots.quiet(3).unwrap();
        assert!(quiet >= Duration::from_secs(2) && quiet < Duration::from_secs(60), "{quiet:?}");
        // A late answer to an earlier question says nothing of this term, nor does this term of others.
        ballots.granted(2, Duration::ZERO);
        assert!(ballots.quiet(3).unwrap() >= Duration::from_secs(2));
        assert!(ballots.quiet(2).is_none() && ballots.quiet(4).is_none());
        ballots.granted(4, Duration::from_secs(7));
        assert!(ballots.quiet(3).is_none() && ballots.quiet(4).unwrap() >= Duration::from_secs(7));
    }
}

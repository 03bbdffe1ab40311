//! Notices that the stream has gone past a watermark without showing it: somebody's stage of
//! `cursor.pipeline` keeps it back, and the incremental snapshot would wait for ever in silence.
//!
//! The watermark behind a chunk is in the log of a majority when the chunk's reader ends. So a stream that
//! then has nothing more to give, again and again, or that has come to much later changes, will not show
//! it any more. Says so and no more: the snapshot goes on should the watermark come after all. Pure.

use std::time::{Duration, Instant};

/// Empty answers in a row. The first ones may have been on their way, or a secondary may be behind.
const QUIET: u32 = 8;

/// Changes that are so much later than the watermark, for clocks that differ.
const LATER: i64 = 60_000;

/// Between two warnings.
const AGAIN: Duration = Duration::from_secs(60);

#[derive(Debug, Default)]
pub(crate) struct Unseen {
    /// Wall clock at the first answer behind the chunk, in milliseconds since the epoch.
    since: Option<i64>,
    quiet: u32,
    told: Option<Instant>,
}

/// An answer of the stream, read to its end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Answer {
    /// Both watermarks of the present chunk are written and the second one has not been seen.
    pub(crate) awaited: bool,
    /// When its newest change was written; `None`: it has none.
    pub(crate) newest_ms: Option<i64>,
    pub(crate) now_ms: i64,
}

impl Unseen {
    /// Whether it is time to say that the watermark does not come.
    pub(crate) fn see(&mut self, answer: Answer, now: Instant) -> bool {
        if !answer.awaited {
            *self = Self::default();
            return false;
        }
        let since = *self.since.get_or_insert(answer.now_ms);
        self.quiet = if answer.newest_ms.is_none() { self.quiet + 1 } else { 0 };
        let passed = self.quiet >= QUIET || answer.newest_ms.is_some_and(|newest| newest > since + LATER);
        let due = passed && self.told.is_none_or(|told| now.duration_since(told) >= AGAIN);
        if due {
            self.told = Some(now);
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: i64 = 1_000_000;

    fn answer(newest_ms: Option<i64>) -> Answer {
        Answer { awaited: true, newest_ms, now_ms: START }
    }

    #[test]
    fn a_stream_without_more_has_passed_it() {
        let (mut unseen, now) = (Unseen::default(), Instant::now());
        for _ in 1..QUIET {
            assert!(!unseen.see(answer(None), now));
        }
        assert!(unseen.see(answer(None), now));
        assert!(!unseen.see(answer(None), now), "not with every answer");
        assert!(unseen.see(answer(None), now + AGAIN));
        let seen = Answer { awaited: false, ..answer(None) };
        assert!(!unseen.see(seen, now + AGAIN));
        assert!(!unseen.see(answer(None), now + AGAIN), "it counts anew");
    }

    #[test]
    fn a_busy_stream_has_passed_it_with_much_later_changes() {
        let (mut unseen, now) = (Unseen::default(), Instant::now());
        // Behind by a day, it comes nearer.
        for newest in [START - 86_400_000, START - 1, START + 5_000, START + LATER] {
            for _ in 0..=QUIET {
                assert!(!unseen.see(answer(Some(newest)), now), "{newest}");
            }
        }
        assert!(unseen.see(answer(Some(START + LATER + 1)), now));
    }
}

//! How long transactions last, and what bounds them.

use std::time::Duration;

/// So many times as long lasts a transaction during which a record found no room.
const PRESSED: u32 = 3;

/// What the transactions of one producer have to respect.
#[derive(Debug, Clone)]
pub(crate) struct Pace {
    /// From the first record of a transaction to its commit.
    pub(crate) commit_after: Duration,
    /// The broker aborts a transaction that is older.
    pub(crate) transaction_timeout: Duration,
    pub(crate) max_request: u64,
    pub(crate) batch_size: u64,
}

impl Pace {
    /// From the first record to the commit, well before the broker would abort. `pressed`: records come
    /// faster than they leave.
    pub(crate) fn lasts(&self, pressed: bool) -> Duration {
        let wanted = if pressed { self.commit_after.saturating_mul(PRESSED) } else { self.commit_after };
        wanted.min(self.transaction_timeout / 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transaction_ends_before_the_broker_would_abort_it() {
        let lasts = |commit_after, pressed| {
            let (commit_after, transaction_timeout) = (Duration::from_millis(commit_after), Duration::from_secs(120));
            Pace { commit_after, transaction_timeout, max_request: 1, batch_size: 1 }.lasts(pressed).as_millis()
        };
        assert_eq!((lasts(100, false), lasts(100, true)), (100, 300));
        assert_eq!((lasts(50_000, false), lasts(50_000, true)), (50_000, 60_000));
        assert_eq!((lasts(u64::MAX, false), lasts(u64::MAX, true)), (60_000, 60_000));
    }
}

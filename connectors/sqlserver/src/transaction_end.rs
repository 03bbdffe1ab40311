//! When a transaction is over that nothing follows.
//!
//! The end of a transaction shows with the first change of the next one. On a database that has become quiet it
//! is taken for over when nothing was read for two rounds of the capture job and the newest scan of the log found
//! nothing ("sys.dm_cdc_log_scan_sessions"). A readable secondary has no
//! scans: whoever reads one must not ask.

use std::time::{Duration, Instant};

use crate::catalogue::Catalogue;
use crate::errors::Fault;
use crate::link::SqlLink;

#[derive(Debug, Clone)]
pub struct TransactionEnd {
    wait: Duration,
    /// When changes were read last; `None`: the end is known.
    since: Option<Instant>,
}

impl TransactionEnd {
    /// `capture`: pause of the capture job.
    pub fn new(capture: Duration) -> Self {
        Self { wait: capture * 2, since: None }
    }

    /// Changes were read, or a transaction was open at the start.
    pub fn moved(&mut self, now: Instant) {
        self.since = Some(now);
    }

    /// Whether the transaction of the changes that were read last is over; true once.
    ///
    /// # Errors
    /// Those of the link. It is asked again after another wait.
    pub async fn is_over(&mut self, now: Instant, catalogue: &Catalogue, link: &mut SqlLink) -> Result<bool, Fault> {
        let Some(since) = self.since else { return Ok(false) };
        if now.saturating_duration_since(since) < self.wait {
            return Ok(false);
        }
        self.since = Some(now);
        let is_over = catalogue.scan_is_idle(link).await?;
        if is_over {
            self.since = None;
        }
        Ok(is_over)
    }
}

//! One turn of an actor: its log lines name the unit, and it stays short.
//!
//! All actors share one thread, so a handler stays under a millisecond. Debug builds log those that
//! do not; release builds do not look at the clock.

use tracing::Span;
use tracing::span::EnteredSpan;

/// Held for the length of a handler; never across an await.
pub(crate) struct Turn {
    #[cfg(debug_assertions)]
    started: std::time::Instant,
    _span: EnteredSpan,
}

impl Turn {
    pub(crate) fn of(span: &Span) -> Self {
        Self {
            #[cfg(debug_assertions)]
            started: std::time::Instant::now(),
            _span: span.clone().entered(),
        }
    }
}

#[cfg(debug_assertions)]
impl Drop for Turn {
    fn drop(&mut self) {
        let took = self.started.elapsed();
        if took > std::time::Duration::from_millis(1) {
            tracing::debug!(micros = took.as_micros() as u64, "an actor took a long turn");
        }
    }
}

//! Guard against long turns: all actors share one thread, so a handler stays under a millisecond.
//! Debug builds log the ones that do not; release builds pay nothing.

#[cfg(debug_assertions)]
pub(crate) struct Turn {
    actor: &'static str,
    started: std::time::Instant,
}

#[cfg(debug_assertions)]
impl Turn {
    pub(crate) fn of(actor: &'static str) -> Self {
        Self { actor, started: std::time::Instant::now() }
    }
}

#[cfg(debug_assertions)]
impl Drop for Turn {
    fn drop(&mut self) {
        let took = self.started.elapsed();
        if took > std::time::Duration::from_millis(1) {
            tracing::debug!(actor = self.actor, micros = took.as_micros() as u64, "an actor took a long turn");
        }
    }
}

#[cfg(not(debug_assertions))]
pub(crate) struct Turn;

#[cfg(not(debug_assertions))]
impl Turn {
    pub fn of(_actor: &'static str) -> Self {
        Self
    }
}

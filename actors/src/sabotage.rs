//! Deliberate defects, to prove that the fault harness finds them. Only with the cargo feature
//! `sabotage`; without it every question is answered "no" at compile time.
//!
//! Which defect is active says the environment variable `THALWEG_SABOTAGE`.

/// What is broken on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Defect {
    /// Positions are committed when a message is handed to the producer, not when Kafka has it.
    CommitEarly,
    /// Leases never end and reports of stale owners are taken.
    NoFencing,
}

#[cfg(feature = "sabotage")]
pub fn active(defect: Defect) -> bool {
    use std::sync::OnceLock;

    static CHOSEN: OnceLock<Option<Defect>> = OnceLock::new();
    let chosen = CHOSEN.get_or_init(|| match std::env::var("THALWEG_SABOTAGE").as_deref() {
        Ok("commit-early") => Some(Defect::CommitEarly),
        Ok("no-fencing") => Some(Defect::NoFencing),
        _ => None,
    });
    *chosen == Some(defect)
}

#[cfg(not(feature = "sabotage"))]
#[inline(always)]
pub const fn active(_: Defect) -> bool {
    false
}

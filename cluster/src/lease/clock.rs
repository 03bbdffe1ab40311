//! The clock of leases: monotonic, and it goes on while the machine or the process is suspended.
//!
//! `Instant` does not count a suspended machine, so a node that wakes up could take an old lease for
//! held. Linux has `CLOCK_BOOTTIME` for that; elsewhere the monotonic clock has to do.

use std::time::Duration;

/// Time since some fixed moment before the process started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct BootInstant(pub Duration);

impl BootInstant {
    pub fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
    pub fn minus(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(duration))
    }
    pub fn plus(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(duration))
    }
}

/// Source of [`BootInstant`]s and of the wall clock, so that a simulation can own the time.
pub trait Clock: Send + Sync + 'static {
    fn now(&self) -> BootInstant;
    /// Milliseconds since the epoch. Only ever bounds waiting.
    fn wall_ms(&self) -> u64;
}

#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> BootInstant {
        #[cfg(target_os = "linux")]
        let id = nix::time::ClockId::CLOCK_BOOTTIME;
        #[cfg(not(target_os = "linux"))]
        let id = nix::time::ClockId::CLOCK_MONOTONIC;
        // Both clocks exist on every supported system. If one could not be read, the end of time is
        // the safe answer: no lease is held then.
        nix::time::clock_gettime(id).map_or(BootInstant(Duration::MAX), |time| BootInstant(time.into()))
    }

    fn wall_ms(&self) -> u64 {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }
}

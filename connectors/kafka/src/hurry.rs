//! Telling the client that nothing more is coming for the moment.
//!
//! librdkafka waits `linger.ms` for a batch to grow, and cannot know that a load was all of it. With
//! one load on its way at a time that pause is dead time: a sixth of a snapshot's. Only a flush ends
//! it, and a flush blocks, so it has a thread; it sleeps unless asked.
//!
//! It does not: wait for reports, or hurry small loads, whose linger costs less than waking threads.

use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use rdkafka::types::RDKafka;
use rdkafka_sys as sys;

/// How long the client is in a hurry: long enough for its threads to have noticed, whatever else
/// runs; while it lasts, what does not fit in one batch makes them poll without pause.
const LONG_ENOUGH: Duration = Duration::from_millis(5);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    Nothing,
    Hurry,
    End,
}

#[derive(Debug)]
pub(crate) struct Hurry {
    asked: Mutex<Asked>,
    changed: Condvar,
}

impl Hurry {
    pub(crate) fn new() -> Self {
        Self { asked: Mutex::new(Asked::Nothing), changed: Condvar::new() }
    }

    /// What the client has now is to leave at once.
    pub(crate) fn now(&self) {
        let mut asked = self.asked.lock();
        if *asked == Asked::Nothing {
            *asked = Asked::Hurry;
            self.changed.notify_one();
        }
    }

    pub(crate) fn end(&self) {
        *self.asked.lock() = Asked::End;
        self.changed.notify_one();
    }

    /// Serves a client until [`Hurry::end`].
    ///
    /// # Safety
    /// The client has to live as long.
    pub(crate) unsafe fn serve(&self, client: *mut RDKafka) {
        let limit = i32::try_from(LONG_ENOUGH.as_millis()).unwrap_or(i32::MAX);
        while self.wait() {
            // SAFETY: the client lives. Not being done in this time is no failure.
            unsafe { sys::rd_kafka_flush(client, limit) };
        }
    }

    /// False at the end.
    fn wait(&self) -> bool {
        let mut asked = self.asked.lock();
        while *asked == Asked::Nothing {
            self.changed.wait(&mut asked);
        }
        if *asked == Asked::Hurry {
            *asked = Asked::Nothing;
            return true;
        }
        false
    }
}

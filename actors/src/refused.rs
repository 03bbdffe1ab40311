//! Messages that the broker refuses as too large although the client let them pass, where such
//! messages are to be left out (`errors.tolerance=all`).
//!
//! The broker checks batches, so the first refused message may be an innocent one that shared a batch
//! with another. It is only a suspect: the next run sends it alone, and only what is refused alone is
//! left out. If suspects pass again and again, the batches are at fault, not a message, and the error
//! is not tolerated.
//!
//! Messages are told apart by what stays the same when the source is read again: a change by its
//! position, a row of a snapshot by its key, since it may be read at another position and with other times
//! in it. Nothing is recognised by its key for longer than it may be read again: a later change of the same
//! row is sent.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use thalweg_core::position::Position;

/// The most messages that are remembered; older ones are behind the committed position.
const MOST: usize = 1000;
/// How much the size of a row may differ when it is read again: the times in it have more digits or fewer.
const OTHER_TIMES: usize = 32;
/// Suspects in a row that turned out innocent.
const DOUBTS: u32 = 3;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RefusedMessage {
    pub(crate) partition: usize,
    pub(crate) position: Position,
    pub(crate) topic: Arc<str>,
    /// Of the key's bytes; `None`: there is no key.
    pub(crate) key: Option<u64>,
    /// Bytes of key and value.
    pub(crate) size: usize,
}

impl RefusedMessage {
    /// What stands for a key.
    pub(crate) fn key(key: Option<&[u8]>) -> Option<u64> {
        let mut hasher = DefaultHasher::new();
        key?.hash(&mut hasher);
        Some(hasher.finish())
    }

    /// Whether this is the other one, perhaps read again.
    fn is(&self, other: &Self) -> bool {
        let same_key = self.key.is_some() && self.key == other.key;
        self.partition == other.partition
            && self.topic == other.topic
            && match self.position == other.position {
                true => self.size == other.size,
                false => same_key && self.size.abs_diff(other.size) <= OTHER_TIMES,
            }
    }
}

/// What is to be done with a message that is about to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Treatment {
    Send,
    /// With nothing else in flight.
    SendAlone,
    LeaveOut,
}

/// What followed from a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Finding {
    /// It was refused alone: left out from now on.
    Guilty,
    /// It is sent alone next time.
    Suspect,
    /// Messages pass alone but not together: nothing to leave out.
    Batches,
}

#[derive(Debug, Clone)]
struct Guilty {
    message: RefusedMessage,
    /// Messages before which it was left out, in this run.
    left_out: Option<u64>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Refusals {
    guilty: Vec<Guilty>,
    suspect: Option<RefusedMessage>,
    doubts: u32,
}

impl Refusals {
    /// Nothing was ever refused: no message needs to be looked at.
    pub(crate) fn is_empty(&self) -> bool {
        self.guilty.is_empty() && self.suspect.is_none()
    }
    pub(crate) fn treatment(&self, message: &RefusedMessage) -> Treatment {
        if self.guilty.iter().any(|guilty| guilty.message.is(message)) {
            Treatment::LeaveOut
        } else if self.suspect.as_ref().is_some_and(|suspect| suspect.is(message)) {
            Treatment::SendAlone
        } else {
            Treatment::Send
        }
    }
    /// The broker refused a message.
    pub(crate) fn refused(&mut self, message: RefusedMessage, alone: bool) -> Finding {
        if alone {
            self.suspect = None;
            self.doubts = 0;
            if self.guilty.len() >= MOST {
                self.guilty.remove(0);
            }
            self.guilty.push(Guilty { message, left_out: None });
            return Finding::Guilty;
        }
        self.doubts += 1;
        if self.doubts > DOUBTS {
            return Finding::Batches;
        }
        self.suspect = Some(message);
        Finding::Suspect
    }
    /// The message is left out. It is not read again once the `next` messages so far are committed.
    pub(crate) fn left_out(&mut self, message: &RefusedMessage, next: u64) {
        for guilty in self.guilty.iter_mut().filter(|guilty| guilty.message.is(message)) {
            guilty.left_out = Some(next);
        }
    }
    /// So many messages of this run are committed.
    pub(crate) fn committed(&mut self, messages: u64) {
        self.guilty.retain(|guilty| guilty.left_out.is_none_or(|next| next > messages));
    }
    /// A run begins.
    pub(crate) fn begin(&mut self) {
        for guilty in &mut self.guilty {
            guilty.left_out = None;
        }
    }
    /// The suspect was acknowledged.
    pub(crate) fn passed(&mut self) {
        self.suspect = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(at: u8) -> RefusedMessage {
        row(at, at, 7)
    }

    fn row(at: u8, key: u8, size: usize) -> RefusedMessage {
        let key = RefusedMessage::key(Some(&[key]));
        RefusedMessage { partition: 0, position: Position::new(vec![at].into()), topic: "t".into(), key, size }
    }

    #[test]
    fn only_what_is_refused_alone_is_left_out() {
        let mut refusals = Refusals::default();
        assert!(refusals.is_empty());
        assert_eq!(refusals.refused(message(1), false), Finding::Suspect);
        assert_eq!(refusals.treatment(&message(1)), Treatment::SendAlone);
        assert_eq!(refusals.treatment(&message(2)), Treatment::Send);
        assert_eq!(refusals.refused(message(1), true), Finding::Guilty);
        assert_eq!(refusals.treatment(&message(1)), Treatment::LeaveOut);
    }

    #[test]
    fn a_row_that_is_read_again_is_known_by_its_key() {
        let mut refusals = Refusals::default();
        assert_eq!(refusals.refused(row(1, 5, 1_000), false), Finding::Suspect);
        assert_eq!(refusals.treatment(&row(2, 5, 1_002)), Treatment::SendAlone);
        assert_eq!(refusals.refused(row(2, 5, 1_002), true), Finding::Guilty);
        assert_eq!(refusals.treatment(&row(3, 5, 999)), Treatment::LeaveOut);
        for other in [row(3, 6, 1_000), row(3, 5, 500), RefusedMessage { topic: "u".into(), ..row(3, 5, 1_000) }] {
            assert_eq!(refusals.treatment(&other), Treatment::Send);
        }
        let without_key = |at| RefusedMessage { key: None, ..row(at, 0, 1_000) };
        refusals.refused(without_key(1), true);
        assert_eq!(refusals.treatment(&without_key(1)), Treatment::LeaveOut);
        assert_eq!(refusals.treatment(&without_key(2)), Treatment::Send);
    }

    /// What changes a row later on may pass: the limit may have been raised.
    #[test]
    fn what_cannot_be_read_again_is_forgotten() {
        let mut refusals = Refusals::default();
        refusals.refused(row(1, 5, 1_000), true);
        refusals.committed(100);
        refusals.left_out(&row(2, 5, 1_000), 101);
        refusals.committed(100);
        assert_eq!(refusals.treatment(&row(3, 5, 1_000)), Treatment::LeaveOut, "it may come again");
        // A run that ends before the commit.
        refusals.begin();
        refusals.committed(200);
        assert_eq!(refusals.treatment(&row(3, 5, 1_000)), Treatment::LeaveOut);
        refusals.left_out(&row(3, 5, 1_000), 7);
        refusals.committed(7);
        assert!(refusals.is_empty());
    }

    #[test]
    fn suspects_that_pass_point_at_the_batches() {
        let mut refusals = Refusals::default();
        for at in 0..3 {
            assert_eq!(refusals.refused(message(at), false), Finding::Suspect);
            refusals.passed();
            assert_eq!(refusals.treatment(&message(at)), Treatment::Send);
        }
        assert_eq!(refusals.refused(message(3), false), Finding::Batches);
        // A guilty one in between clears the batches.
        let mut refusals = Refusals::default();
        for at in 0..20 {
            assert_eq!(refusals.refused(message(at), false), Finding::Suspect);
            assert_eq!(refusals.refused(message(at), true), Finding::Guilty);
        }
    }
}

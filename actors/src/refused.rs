//! Messages that the broker refuses as too large although the client let them pass, where such
//! messages are to be left out (`errors.tolerance=all`).
//!
//! The broker checks batches, so the first refused message may be an innocent one that shared a batch
//! with another. It is only a suspect: the next run sends it alone, and only what is refused alone is
//! left out. If suspects pass again and again, the batches are at fault, not a message, and the error
//! is not tolerated.
//!
//! Messages are told apart by what stays the same when the source is read again.

use std::sync::Arc;

use thalweg_core::position::Position;

/// The most messages that are remembered; older ones are behind the committed position.
const MOST: usize = 1000;
/// Suspects in a row that turned out innocent.
const DOUBTS: u32 = 3;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RefusedMessage {
    pub(crate) partition: usize,
    pub(crate) position: Position,
    pub(crate) topic: Arc<str>,
    /// Bytes of key and value.
    pub(crate) size: usize,
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

#[derive(Debug, Clone, Default)]
pub(crate) struct Refusals {
    guilty: Vec<RefusedMessage>,
    suspect: Option<RefusedMessage>,
    doubts: u32,
}

impl Refusals {
    /// Nothing was ever refused: no message needs to be looked at.
    pub(crate) fn is_empty(&self) -> bool {
        self.guilty.is_empty() && self.suspect.is_none()
    }
    pub(crate) fn treatment(&self, message: &RefusedMessage) -> Treatment {
        if self.guilty.contains(message) {
            Treatment::LeaveOut
        } else if self.suspect.as_ref() == Some(message) {
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
            self.guilty.push(message);
            return Finding::Guilty;
        }
        self.doubts += 1;
        if self.doubts > DOUBTS {
            return Finding::Batches;
        }
        self.suspect = Some(message);
        Finding::Suspect
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
        RefusedMessage { partition: 0, position: Position(vec![at].into()), topic: "t".into(), size: 7 }
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

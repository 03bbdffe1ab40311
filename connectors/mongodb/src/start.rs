//! What a partition begins with, from its snapshot mode and what is stored. Pure.

use thalweg_core::Error;

use crate::options::SnapshotMode;

/// What is known about the partition before it starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Known {
    Nothing,
    /// A snapshot was under way: its position is of no use.
    Unfinished,
    Position,
}

impl SnapshotMode {
    /// Whether collections are read at this start.
    pub(crate) fn reads(self, known: Known) -> bool {
        match self {
            Self::Always => true,
            Self::NoData => false,
            Self::ConfigurationBased { data, .. } => data,
            Self::Initial | Self::InitialOnly | Self::WhenNeeded => known != Known::Position,
        }
    }

    /// Whether there is ever a first snapshot.
    pub(crate) fn may_read(self) -> bool {
        self.reads(Known::Nothing) || self.reads_when_lost()
    }

    /// Whether a snapshot that was interrupted goes on where it stood: not if each start takes its own.
    pub(crate) fn goes_on(self) -> bool {
        matches!(self, Self::Initial | Self::InitialOnly | Self::WhenNeeded)
    }

    /// Whether the change stream is followed.
    pub(crate) fn streams(self) -> bool {
        match self {
            Self::InitialOnly => false,
            Self::ConfigurationBased { stream, .. } => stream,
            _ => true,
        }
    }

    /// Whether a position that the server no longer holds is answered by reading everything again.
    pub(crate) fn reads_when_lost(self) -> bool {
        matches!(self, Self::WhenNeeded | Self::ConfigurationBased { on_data_error: true, .. })
    }

    /// An unfinished snapshot must be taken again, which some modes never do.
    pub(crate) fn check_unfinished(self) -> Result<(), Error> {
        if self.reads(Known::Unfinished) {
            return Ok(());
        }
        Err(Error::config(
            "The connector previously stopped while taking a snapshot, but now the connector is configured to never \
             allow snapshots.",
        )
        .advise(
            "set snapshot.mode to initial or when_needed to take the snapshot again, or reset the offsets of the \
             stopped connector to go on from now",
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn configured(data: bool, stream: bool, on_data_error: bool) -> SnapshotMode {
        SnapshotMode::ConfigurationBased { data, stream, on_data_error }
    }

    #[test]
    fn when_each_mode_reads() {
        use Known::{Nothing, Position, Unfinished};
        for (mode, expected) in [
            (SnapshotMode::Initial, [true, true, false]),
            (SnapshotMode::InitialOnly, [true, true, false]),
            (SnapshotMode::WhenNeeded, [true, true, false]),
            (SnapshotMode::Always, [true, true, true]),
            (SnapshotMode::NoData, [false, false, false]),
            (configured(true, false, false), [true, true, true]),
            (configured(false, true, true), [false, false, false]),
        ] {
            assert_eq!([Nothing, Unfinished, Position].map(|known| mode.reads(known)), expected, "{mode:?}");
            assert_eq!(mode.check_unfinished().is_ok(), expected[1], "{mode:?}");
        }
    }

    #[test]
    fn what_follows_a_snapshot_and_a_lost_position() {
        for (mode, streams, again) in [
            (SnapshotMode::Initial, true, false),
            (SnapshotMode::InitialOnly, false, false),
            (SnapshotMode::Always, true, false),
            (SnapshotMode::NoData, true, false),
            (SnapshotMode::WhenNeeded, true, true),
            (configured(true, false, false), false, false),
            (configured(false, true, true), true, true),
        ] {
            assert_eq!((mode.streams(), mode.reads_when_lost()), (streams, again), "{mode:?}");
        }
    }
}

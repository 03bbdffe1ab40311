//! What a partition begins with, from its snapshot mode and what is stored. Pure.

use thalweg_config::Settings;

use crate::error::{Error, Result};

/// `snapshot.mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SnapshotMode {
    #[default]
    Initial,
    InitialOnly,
    Always,
    /// Structures only.
    NoData,
    /// Structures only, for a history that is lost; the stored position stays.
    Recovery,
    WhenNeeded,
    WhenNeededNoData,
    ConfigurationBased(Configured),
}

/// `snapshot.mode.configuration.based.*`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Configured {
    pub data: bool,
    pub schema: bool,
    pub stream: bool,
    pub on_schema_error: bool,
    pub on_data_error: bool,
}

/// What is known about the partition before it starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Known {
    Nothing,
    /// A snapshot was under way.
    Unfinished,
    Position,
}

/// What a start reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reads {
    Nothing,
    Structures,
    StructuresAndRows,
}

impl Reads {
    const fn of(structures: bool, rows: bool) -> Self {
        match (structures, rows) {
            (_, true) => Self::StructuresAndRows,
            (true, false) => Self::Structures,
            (false, false) => Self::Nothing,
        }
    }
}

impl SnapshotMode {
    /// From the canonical texts of the options.
    pub fn from_settings(s: &Settings) -> Self {
        let flag = |name: &str| s.bool(&format!("snapshot.mode.configuration.based.{name}"));
        match s.text_or_empty("snapshot.mode") {
            "initial_only" => Self::InitialOnly,
            "always" => Self::Always,
            "no_data" => Self::NoData,
            "recovery" => Self::Recovery,
            "when_needed" => Self::WhenNeeded,
            "when_needed_no_data" => Self::WhenNeededNoData,
            "configuration_based" => Self::ConfigurationBased(Configured {
                data: flag("snapshot.data"),
                schema: flag("snapshot.schema"),
                stream: flag("start.stream"),
                on_schema_error: flag("snapshot.on.schema.error"),
                on_data_error: flag("snapshot.on.data.error"),
            }),
            _ => Self::Initial,
        }
    }

    /// What is read at this start. Rows need structures: they are read with them.
    pub fn reads(self, known: Known) -> Reads {
        let is_new = known != Known::Position;
        match self {
            Self::Always => Reads::StructuresAndRows,
            Self::Recovery => Reads::Structures,
            Self::ConfigurationBased(Configured { data, schema, .. }) => Reads::of(schema, data),
            Self::Initial | Self::InitialOnly | Self::WhenNeeded => Reads::of(is_new, is_new),
            Self::NoData | Self::WhenNeededNoData => Reads::of(is_new, false),
        }
    }

    /// What is read if the source no longer holds the stored position; `None`: the loss is an error.
    pub fn reads_when_lost(self) -> Option<Reads> {
        match self {
            Self::WhenNeeded => Some(Reads::StructuresAndRows),
            Self::WhenNeededNoData => Some(Reads::Structures),
            Self::ConfigurationBased(Configured { on_data_error: true, data, .. }) => Some(Reads::of(true, data)),
            _ => None,
        }
    }

    /// Whether a lost history is made anew from the present structures.
    pub fn rebuilds_history(self) -> bool {
        matches!(self, Self::Recovery | Self::ConfigurationBased(Configured { on_schema_error: true, .. }))
    }

    /// Whether changes are followed.
    pub fn streams(self) -> bool {
        match self {
            Self::InitialOnly => false,
            Self::ConfigurationBased(Configured { stream, .. }) => stream,
            _ => true,
        }
    }

    /// Whether the stored position stays, whatever is read.
    pub fn keeps_position(self) -> bool {
        self == Self::Recovery
    }

    /// # Errors
    /// What is stored is of no use to this mode.
    pub fn check(self, known: Known) -> Result<()> {
        if self == Self::Recovery && known == Known::Nothing {
            let text = "Could not find existing redo log information while attempting schema only recovery snapshot";
            return Err(Error::config(text).advise("set snapshot.mode=initial: there is nothing to recover"));
        }
        if known == Known::Unfinished && self.reads(known) == Reads::Nothing {
            let text = "The connector previously stopped while taking a snapshot, but now the connector is configured \
                        to never allow snapshots. Reconfigure the connector to use snapshots initially or when needed.";
            return Err(Error::config(text).advise(
                "set snapshot.mode to initial or when_needed to take the snapshot again, or reset the offsets of the \
                 stopped connector",
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Known::{Nothing, Position, Unfinished};
    use super::*;

    const fn configured(data: bool, schema: bool) -> SnapshotMode {
        let rest = Configured { data: false, schema: false, stream: true, on_schema_error: true, on_data_error: true };
        SnapshotMode::ConfigurationBased(Configured { data, schema, ..rest })
    }

    #[test]
    fn what_each_mode_reads() {
        use Reads::{Nothing as No, Structures as S, StructuresAndRows as R};
        for (mode, expected, lost) in [
            (SnapshotMode::Initial, [R, R, No], None),
            (SnapshotMode::InitialOnly, [R, R, No], None),
            (SnapshotMode::Always, [R, R, R], None),
            (SnapshotMode::NoData, [S, S, No], None),
            (SnapshotMode::Recovery, [S, S, S], None),
            (SnapshotMode::WhenNeeded, [R, R, No], Some(R)),
            (SnapshotMode::WhenNeededNoData, [S, S, No], Some(S)),
            (configured(true, false), [R, R, R], Some(R)),
            (configured(false, true), [S, S, S], Some(S)),
            (configured(false, false), [No, No, No], Some(S)),
        ] {
            assert_eq!([Nothing, Unfinished, Position].map(|known| mode.reads(known)), expected, "{mode:?}");
            assert_eq!(mode.reads_when_lost(), lost, "{mode:?}");
        }
    }

    #[test]
    fn what_a_mode_cannot_start_with() {
        for (mode, expected) in [
            (SnapshotMode::Initial, [true, true, true]),
            (SnapshotMode::Recovery, [false, true, true]),
            (configured(false, false), [true, false, true]),
        ] {
            assert_eq!([Nothing, Unfinished, Position].map(|known| mode.check(known).is_ok()), expected, "{mode:?}");
        }
    }

    #[test]
    fn what_follows() {
        assert!(!SnapshotMode::InitialOnly.streams() && SnapshotMode::Recovery.streams());
        assert!(SnapshotMode::Recovery.keeps_position() && SnapshotMode::Recovery.rebuilds_history());
        assert!(configured(false, false).streams() && configured(false, false).rebuilds_history());
        assert!(!SnapshotMode::WhenNeeded.rebuilds_history());
    }
}

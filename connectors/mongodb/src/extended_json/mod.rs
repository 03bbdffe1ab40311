//! placeholder header

/// Which extended JSON the texts of an event are written in (`json.serialization.mode`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum JsonMode {
    /// `before` and `after` strict, `updatedFields` relaxed with spaces.
    #[default]
    Legacy,
    Strict,
    Extended,
    Relaxed,
}

impl JsonMode {
    /// Canonical option text; anything else is the default.
    pub fn parse(text: &str) -> Self {
        match text {
            "strict" => Self::Strict,
            "extended" => Self::Extended,
            "relaxed" => Self::Relaxed,
            _ => Self::Legacy,
        }
    }
}

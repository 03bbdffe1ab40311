//! The stored form of the state: a format, then the tables one after the other.
//!
//! Invariants: another layout gets another format, and a build that does not know it refuses to decode;
//! a table that came later is written only when it has a row, so that a cluster that does not use it can
//! still be read by an earlier build.

use std::collections::BTreeMap;

use bincode::de::Decoder;
use bincode::enc::Encoder;
use bincode::error::{DecodeError, EncodeError};
use bincode::{Decode, Encode};

use super::State;

/// Leads the encoded state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
enum Format {
    V1,
    /// With signals.
    V2,
    /// With signals and schema histories.
    V3,
}

impl Encode for State {
    fn encode<E: Encoder>(&self, encoder: &mut E) -> Result<(), EncodeError> {
        let Self {
            clock_ms,
            layout,
            feature_level,
            nodes,
            connectors,
            placements,
            offsets,
            statuses,
            topics,
            loggers,
            signals,
            histories,
        } = self;
        let format = match (signals.is_empty(), histories.is_empty()) {
            (_, false) => Format::V3,
            (false, true) => Format::V2,
            (true, true) => Format::V1,
        };
        format.encode(encoder)?;
        clock_ms.encode(encoder)?;
        layout.encode(encoder)?;
        feature_level.encode(encoder)?;
        nodes.encode(encoder)?;
        connectors.encode(encoder)?;
        placements.encode(encoder)?;
        offsets.encode(encoder)?;
        statuses.encode(encoder)?;
        topics.encode(encoder)?;
        loggers.encode(encoder)?;
        if format >= Format::V2 {
            signals.encode(encoder)?;
        }
        if format >= Format::V3 {
            histories.encode(encoder)?;
        }
        Ok(())
    }
}

impl<Context> Decode<Context> for State {
    fn decode<D: Decoder<Context = Context>>(decoder: &mut D) -> Result<Self, DecodeError> {
        let format = Format::decode(decoder)?;
        Ok(Self {
            clock_ms: Decode::decode(decoder)?,
            layout: Decode::decode(decoder)?,
            feature_level: Decode::decode(decoder)?,
            nodes: Decode::decode(decoder)?,
            connectors: Decode::decode(decoder)?,
            placements: Decode::decode(decoder)?,
            offsets: Decode::decode(decoder)?,
            statuses: Decode::decode(decoder)?,
            topics: Decode::decode(decoder)?,
            loggers: Decode::decode(decoder)?,
            signals: if format >= Format::V2 { Decode::decode(decoder)? } else { BTreeMap::new() },
            histories: if format >= Format::V3 { Decode::decode(decoder)? } else { BTreeMap::new() },
        })
    }
}

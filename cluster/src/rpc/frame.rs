//! The frame around everything that is stored or sent.
//!
//! ```text
//! offset  bytes  content
//!      0      4  magic "THWG"
//!      4      1  format version, 1
//!      5      1  kind
//!      6      2  zero, reserved
//!      8      4  length of the body, little endian
//!     12      4  CRC32C over bytes 0..12 and the body, little endian
//!     16      n  body: bincode, standard configuration
//! ```
//!
//! Invariants: the length is checked against the caller's limit before a byte is allocated; an
//! unknown version or kind is an error and never skipped; a body must be used up to its last byte.
//! The numbers of [`Kind`] are on disk: they are appended, never reused.
//!
//! It does not: know what a body means, or compress.

use bincode::config::{Configuration, Limit, LittleEndian, Varint};
use bincode::{Decode, Encode};
use tokio::io::{AsyncRead, AsyncReadExt};

pub const HEADER: usize = 16;
const MAGIC: [u8; 4] = *b"THWG";
const VERSION: u8 = 1;

/// Largest body of anything but a snapshot.
pub const MAX_BODY: usize = 16 << 20;
/// Largest snapshot. The state is held in memory, so this bounds memory, not usefulness.
pub const MAX_SNAPSHOT: usize = 512 << 20;

/// The limits bound what decoding may allocate for a body that lies about the length of a part of
/// it; they count decoded sizes, which are larger than encoded ones.
type Standard<L> = Configuration<LittleEndian, Varint, L>;
const BINCODE: Standard<Limit<{ 4 * MAX_BODY }>> = bincode::config::standard().with_limit::<{ 4 * MAX_BODY }>();
const BINCODE_SNAPSHOT: Standard<Limit<{ 4 * MAX_SNAPSHOT }>> =
    bincode::config::standard().with_limit::<{ 4 * MAX_SNAPSHOT }>();

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    // stored
    StoreHeader = 1,
    Identity = 2,
    Vote = 3,
    LogId = 4,
    Entry = 5,
    SnapshotMeta = 6,
    Snapshot = 7,
    // sent
    Hello = 16,
    Welcome = 17,
    Request = 18,
    Response = 19,
}

impl Kind {
    const ALL: [Self; 11] = [
        Self::StoreHeader,
        Self::Identity,
        Self::Vote,
        Self::LogId,
        Self::Entry,
        Self::SnapshotMeta,
        Self::Snapshot,
        Self::Hello,
        Self::Welcome,
        Self::Request,
        Self::Response,
    ];

    fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u8 == number)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    #[error(
        "not a Thalweg frame (it starts with {0:02x?}): the other side speaks another protocol, or plain and TLS are mixed"
    )]
    NotAFrame([u8; 4]),
    #[error("frame format {found}, this build knows format {VERSION}: upgrade this node")]
    UnknownVersion { found: u8 },
    #[error("unknown frame kind {found}: upgrade this node")]
    UnknownKind { found: u8 },
    #[error("frame of kind {found:?} where {wanted:?} was expected")]
    WrongKind { wanted: Kind, found: Kind },
    #[error("frame of {length} bytes, the limit is {limit}")]
    TooLarge { length: usize, limit: usize },
    #[error("frame cut off: {have} of {need} bytes")]
    Truncated { have: usize, need: usize },
    #[error("checksum of a {kind:?} frame does not match its content")]
    Checksum { kind: Kind },
    #[error("body of a {kind:?} frame cannot be decoded: {why}")]
    Body { kind: Kind, why: String },
}

/// Reading a frame from a connection.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The other side closed between two frames.
    #[error("connection closed")]
    Closed,
    #[error(transparent)]
    Io(#[from] std::io::Error),
    #[error(transparent)]
    Frame(#[from] FrameError),
}

/// A whole frame with `body` encoded. `limit` is on the body.
pub fn encode<T: Encode>(kind: Kind, body: &T, limit: usize) -> Result<Vec<u8>, FrameError> {
    encode_after(kind, &[], body, limit)
}

/// As [`encode`], with raw bytes in front of the encoded value.
pub fn encode_after<T: Encode>(kind: Kind, front: &[u8], body: &T, limit: usize) -> Result<Vec<u8>, FrameError> {
    let mut frame = vec![0; HEADER];
    frame.extend_from_slice(front);
    bincode::encode_into_std_write(body, &mut frame, bincode::config::standard())
        .map_err(|e| FrameError::Body { kind, why: e.to_string() })?;
    let length = frame.len() - HEADER;
    if length > limit {
        return Err(FrameError::TooLarge { length, limit });
    }
    frame[0..4].copy_from_slice(&MAGIC);
    frame[4] = VERSION;
    frame[5] = kind as u8;
    frame[8..12].copy_from_slice(&(length as u32).to_le_bytes());
    let crc = checksum(&frame[0..12], &frame[HEADER..]);
    frame[12..16].copy_from_slice(&crc.to_le_bytes());
    Ok(frame)
}

/// The checked body of a frame that is wholly in memory; bytes after it are an error.
pub fn body(wanted: Kind, frame: &[u8], limit: usize) -> Result<&[u8], FrameError> {
    let header: &[u8; HEADER] =
        frame.first_chunk::<HEADER>().ok_or(FrameError::Truncated { have: frame.len(), need: HEADER })?;
    let header = Header::parse(header, limit)?;
    if header.kind != wanted {
        return Err(FrameError::WrongKind { wanted, found: header.kind });
    }
    let body = &frame[HEADER..];
    if body.len() != header.length {
        return Err(FrameError::Truncated { have: body.len(), need: header.length });
    }
    header.check(body)?;
    Ok(body)
}

/// Decodes a frame that is wholly in memory.
pub fn decode<T: Decode<()>>(kind: Kind, frame: &[u8], limit: usize) -> Result<T, FrameError> {
    decode_body(kind, body(kind, frame, limit)?)
}

/// Decodes a body that [`body`] or [`read`] has checked.
pub fn decode_body<T: Decode<()>>(kind: Kind, body: &[u8]) -> Result<T, FrameError> {
    let decoded = match kind {
        Kind::Snapshot => bincode::decode_from_slice(body, BINCODE_SNAPSHOT),
        _ => bincode::decode_from_slice(body, BINCODE),
    };
    let (value, used) = decoded.map_err(|e| FrameError::Body { kind, why: e.to_string() })?;
    if used != body.len() {
        return Err(FrameError::Body { kind, why: format!("{} bytes left over", body.len() - used) });
    }
    Ok(value)
}

/// The next frame of a connection.
pub async fn read(from: &mut (impl AsyncRead + Unpin), limit: usize) -> Result<(Kind, Vec<u8>), ReadError> {
    let mut raw = [0; HEADER];
    let mut have = 0;
    while have < HEADER {
        match from.read(&mut raw[have..]).await? {
            0 if have == 0 => return Err(ReadError::Closed),
            0 => return Err(FrameError::Truncated { have, need: HEADER }.into()),
            n => have += n,
        }
    }
    let header = Header::parse(&raw, limit)?;
    let mut body = vec![0; header.length];
    from.read_exact(&mut body).await?;
    header.check(&body)?;
    Ok((header.kind, body))
}

struct Header {
    kind: Kind,
    length: usize,
    checksum: u32,
    summed: [u8; 12],
}

impl Header {
    fn parse(raw: &[u8; HEADER], limit: usize) -> Result<Self, FrameError> {
        let [m0, m1, m2, m3, version, kind, _, _, l0, l1, l2, l3, c0, c1, c2, c3] = *raw;
        if [m0, m1, m2, m3] != MAGIC {
            return Err(FrameError::NotAFrame([m0, m1, m2, m3]));
        }
        if version != VERSION {
            return Err(FrameError::UnknownVersion { found: version });
        }
        let kind = Kind::from_number(kind).ok_or(FrameError::UnknownKind { found: kind })?;
        let length = u32::from_le_bytes([l0, l1, l2, l3]) as usize;
        if length > limit {
            return Err(FrameError::TooLarge { length, limit });
        }
        let mut summed = [0; 12];
        summed.copy_from_slice(&raw[0..12]);
        Ok(Self { kind, length, checksum: u32::from_le_bytes([c0, c1, c2, c3]), summed })
    }

    fn check(&self, body: &[u8]) -> Result<(), FrameError> {
        if checksum(&self.summed, body) == self.checksum {
            Ok(())
        } else {
            Err(FrameError::Checksum { kind: self.kind })
        }
    }
}

fn checksum(header: &[u8], body: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(header), body)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn golden_bytes() {
        let frame = encode(Kind::LogId, &(7u64, "ab".to_owned()), 100).unwrap();
        let hex: String = frame.iter().map(|b| format!("{b:02x}")).collect();
        assert_eq!(hex, "5448574701040000040000000c9b5c4407026162");
        assert_eq!(decode::<(u64, String)>(Kind::LogId, &frame, 100).unwrap(), (7, "ab".to_owned()));
    }

    #[test]
    fn refuses_what_it_does_not_know() {
        let good = encode(Kind::Vote, &1u64, 100).unwrap();
        let with = |at: usize, value: u8| {
            let mut bad = good.clone();
            bad[at] = value;
            decode::<u64>(Kind::Vote, &bad, 100).unwrap_err()
        };
        assert!(matches!(with(0, b'X'), FrameError::NotAFrame(_)));
        assert_eq!(with(4, 2), FrameError::UnknownVersion { found: 2 });
        assert_eq!(with(5, 99), FrameError::UnknownKind { found: 99 });
        assert_eq!(with(5, 4), FrameError::WrongKind { wanted: Kind::Vote, found: Kind::LogId });
        assert_eq!(with(11, 0xff), FrameError::TooLarge { length: 0xff00_0001, limit: 100 });
        assert_eq!(with(8, 2), FrameError::Truncated { have: 1, need: 2 });
        assert_eq!(with(16, 2), FrameError::Checksum { kind: Kind::Vote });
        assert!(matches!(decode::<u64>(Kind::Vote, &good[..9], 100).unwrap_err(), FrameError::Truncated { .. }));
        assert!(matches!(
            decode::<u8>(Kind::Vote, &encode(Kind::Vote, &(1u8, 2u8), 9).unwrap(), 9),
            Err(FrameError::Body { .. })
        ));
        assert!(matches!(encode(Kind::Entry, &vec![0u8; 50], 40).unwrap_err(), FrameError::TooLarge { .. }));
    }

    #[test]
    fn a_body_that_lies_about_a_length_allocates_nothing() {
        // A vector that claims 2^60 elements.
        let mut lie = vec![0xfd];
        lie.extend_from_slice(&(1u64 << 60).to_le_bytes());
        assert!(decode_body::<Vec<u64>>(Kind::Entry, &lie).is_err());
    }

    proptest! {
        #[test]
        fn any_single_flip_is_noticed(text in ".{0,40}", at in 0usize..1000, bit in 0u8..8) {
            let frame = encode(Kind::Entry, &text, 1000).unwrap();
            prop_assert_eq!(&decode::<String>(Kind::Entry, &frame, 1000).unwrap(), &text);
            let mut bad = frame.clone();
            let at = at % bad.len();
            bad[at] ^= 1 << bit;
            prop_assert!(decode::<String>(Kind::Entry, &bad, 1000).is_err());
        }
    }

    #[tokio::test]
    async fn reads_frame_after_frame_and_then_the_end() {
        let mut bytes = encode(Kind::Hello, &1u8, 10).unwrap();
        bytes.extend(encode(Kind::Request, &"x", 10).unwrap());
        let cut = bytes[..bytes.len() - 1].to_vec();
        let mut from = bytes.as_slice();
        assert_eq!(read(&mut from, 10).await.unwrap(), (Kind::Hello, vec![1]));
        assert_eq!(read(&mut from, 10).await.unwrap().0, Kind::Request);
        assert!(matches!(read(&mut from, 10).await.unwrap_err(), ReadError::Closed));
        let mut from = cut.as_slice();
        read(&mut from, 10).await.unwrap();
        assert!(matches!(read(&mut from, 10).await.unwrap_err(), ReadError::Io(_)));
    }
}

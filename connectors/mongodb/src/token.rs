//! Resume tokens of change streams: `{_data: "<hex>"}`, made by the server.
//!
//! Only what is stable is read: the cluster time in the first nine bytes, and in the two known
//! versions the flag that says "from an invalidating event". Tokens are never compared in order, and a
//! token that does not look like this is passed on to the server as it is.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bson::{RawDocumentBuf, Timestamp, rawdoc};
use bytes::Bytes;

use crate::raw::{self, Elements, Malformed, kind};

/// First byte: a timestamp follows.
const TIMESTAMP: u8 = 0x82;
/// Marks of small numbers: zero, and values of one to four bytes.
const ZERO: u8 = 0x29;
const NUMBERS: std::ops::RangeInclusive<u8> = 0x2B..=0x2E;
/// Versions whose fields up to the flag are known, as encoded.
const KNOWN_VERSIONS: [u8; 2] = [0x02, 0x04];
const TRUE: u8 = 0x6F;

/// A token as the BSON document that the server sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token(Bytes);

impl Token {
    /// Errors: the bytes are not one BSON document.
    pub fn new(document: Bytes) -> Result<Self, Malformed> {
        raw::check(&document).map(|_| Self(document))
    }

    /// From an offset: Base64 of the document. Releases up to 2.2 stored the bare hex text.
    pub fn from_text(text: &str) -> Self {
        let decoded = BASE64.decode(text.trim()).ok().and_then(|bytes| Self::new(bytes.into()).ok());
        decoded.unwrap_or_else(|| Self(rawdoc! {"_data": text.trim()}.into_bytes().into()))
    }

    /// Base64 of the document: the form in offsets.
    pub fn to_text(&self) -> String {
        BASE64.encode(&self.0)
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// As an option of `$changeStream`.
    pub fn to_document(&self) -> RawDocumentBuf {
        RawDocumentBuf::from_bytes(self.0.to_vec()).unwrap_or_default()
    }

    /// Cluster time of the event, or of the moment that the token stands for.
    pub fn time(&self) -> Option<Timestamp> {
        let data = self.data();
        let word = |at: usize| Some(u32::from_be_bytes(*data.get(at..)?.first_chunk()?));
        if data.first() != Some(&TIMESTAMP) {
            return None;
        }
        Some(Timestamp { time: word(1)?, increment: word(5)? })
    }

    /// Whether the token is of an event that closed the stream: it can only be used with `startAfter`.
    pub fn is_from_invalidate(&self) -> bool {
        self.invalidate_flag() == Some(TRUE)
    }

    /// Place of the event among those of its transaction, or of one oplog entry.
    pub fn place(&self) -> Option<u32> {
        self.front().map(|(place, _)| place)
    }

    fn invalidate_flag(&self) -> Option<u8> {
        self.front()?.1
    }

    /// Place in the transaction, and the byte behind time, version, kind of token and that place.
    fn front(&self) -> Option<(u32, Option<u8>)> {
        let data = self.data();
        let (first, mut rest) = data.split_first()?;
        rest = rest.get(8..)?;
        let mut number = || {
            let (mark, after) = rest.split_first()?;
            let size = match mark {
                &ZERO => 0,
                mark if NUMBERS.contains(mark) => usize::from(mark - NUMBERS.start()) + 1,
                _ => return None,
            };
            let (value, after) = after.split_at_checked(size)?;
            rest = after;
            Some(value)
        };
        let version = number()?;
        let known = matches!(version, [v] if KNOWN_VERSIONS.contains(v));
        if *first != TIMESTAMP || !known {
            return None;
        }
        number()?;
        let place = number()?;
        // Numbers are stored shifted by one bit.
        let place = place.iter().fold(0u64, |n, byte| n << 8 | u64::from(*byte)) >> 1;
        Some((u32::try_from(place).unwrap_or(u32::MAX), rest.first().copied()))
    }

    /// The token's bytes; empty if `_data` is not hex text.
    fn data(&self) -> Vec<u8> {
        let hex = Elements::of(&self.0).into_iter().flatten().flatten().find(|e| e.name == b"_data");
        let Some(hex) = hex.filter(|e| e.kind == kind::STRING).and_then(|e| raw::string(e.value).ok()) else {
            return Vec::new();
        };
        let digit = |b: u8| char::from(b).to_digit(16).map(|d| d as u8);
        hex.chunks_exact(2).map_while(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVENT: &str = "awAAAAJfZGF0YQBbAAAAODI2QjBDNUVENTAwMDAwMDAyMkIwMjJDMDEwMDI5NkU1QTEwMDQ1NEFDQ0JBNUMyQkM0MDI0QTEyRDE3QzAzMzgyNjMyMTQ2MUU1RjY5NjQwMDJCMDIwMDA0AAA=";
    const BATCH: &str = "LwAAAAJfZGF0YQAfAAAAODI2QjBDNUYxMTAwMDAwMDA2MkIwMjI5Mjk2RTA0AAA=";

    #[test]
    fn base64_round_trip_and_time() {
        for (text, time, increment) in [(EVENT, 1_795_972_821, 2), (BATCH, 1_795_972_881, 6)] {
            let token = Token::from_text(text);
            assert_eq!(token.to_text(), text);
            assert_eq!(token.time(), Some(Timestamp { time, increment }));
            assert!(!token.is_from_invalidate());
            assert_eq!(token.place(), Some(0));
            assert_eq!(token.to_document().as_bytes(), token.as_bytes());
        }
    }

    /// A server of another version writes other things behind the time: they are not taken apart, and go
    /// back to the server as they came.
    #[test]
    fn t_14_nothing_behind_the_time_has_to_be_understood() {
        for behind in ["2B0229296E04", "2B0429296E04", "2B0829296E04", "FF00FF", ""] {
            let hex = format!("826B0C5F1100000006{behind}");
            let stored = Token::from_text(&hex).to_text();
            let token = Token::from_text(&stored);
            assert_eq!(token.time(), Some(Timestamp { time: 1_795_972_881, increment: 6 }), "{hex}");
            assert_eq!(token.to_document().get_str("_data").ok(), Some(hex.as_str()));
            assert!(!token.is_from_invalidate());
        }
    }

    #[test]
    fn mgo_27_bare_hex_of_old_releases() {
        let token = Token::from_text("826B0C5F11000000062B0229296E04");
        assert_eq!(token.to_text(), BATCH);
    }

    #[test]
    fn mgo_17_tokens_of_invalidating_events_are_known() {
        for (hex, expected) in [
            ("826B0C5F11000000062B022C0100296F5A10", true),
            ("826B0C5F11000000062B042C0100296F04", true),
            ("826B0C5F11000000062B022C01002B056F5A10", true),
            ("826B0C5F11000000062B022C01002C01056F5A10", true),
            ("826B0C5F11000000062B022C0100296E5A10", false),
            ("826B0C5F11000000062B0229296E04", false),
            // A version that is not known: the server says it when asked.
            ("826B0C5F11000000062B062C0100296F5A10", false),
            ("826B0C5F11000000062B022C", false),
        ] {
            assert_eq!(Token::from_text(hex).is_from_invalidate(), expected, "{hex}");
        }
    }

    #[test]
    fn damaged_tokens_have_no_time() {
        for text in ["", "zz", "82", "826B0C5F1100", "816B0C5F1100000006", "ÿé"] {
            let token = Token::from_text(text);
            assert_eq!((token.time(), token.is_from_invalidate()), (None, false), "{text}");
        }
        assert!(Token::new(Bytes::from_static(b"\x05\0\0\0")).is_err());
        let other = Token::new(rawdoc! {"_data": 5, "x": 1}.into_bytes().into());
        assert_eq!(other.map(|t| t.time()), Ok(None));
    }

    /// Places as the server counts them in a transaction: 0 has a mark of its own, then one byte, then two.
    #[test]
    fn places_in_a_transaction() {
        for (hex, place) in [("29", 0), ("2B02", 1), ("2BFE", 127), ("2C0100", 128), ("2D030D40", 99_999 + 1)] {
            let token = Token::from_text(&format!("826B0C5ED5000000022B022C0100{hex}6E5A"));
            assert_eq!(token.place(), Some(place), "{hex}");
            assert!(!token.is_from_invalidate());
        }
        assert_eq!(Token::from_text("zz").place(), None);
    }
}

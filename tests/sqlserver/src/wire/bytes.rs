//! Numbers and texts as they stand in TDS streams, read with checks and written without.
//!
//! [MS-TDS] "Data Type Definitions": numbers are little-endian unless a structure says otherwise,
//! texts are UTF-16LE behind a count of code units (`B_VARCHAR`: one byte, `US_VARCHAR`: two).

use std::fmt;

/// Why a message of the client is not understood: the error that the client gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Malformed {
    /// Number of the server's message.
    pub(crate) number: u32,
    pub(crate) text: String,
}

impl Malformed {
    /// Message 4002: the stream is not what the protocol says.
    pub(crate) fn stream(text: impl Into<String>) -> Self {
        let text = text.into();
        Self {
            number: 4002,
            text: format!("The incoming tabular data stream (TDS) protocol stream is incorrect. {text}"),
        }
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (message {})", self.text, self.number)
    }
}

/// Reads from the front of a message.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(crate) fn remaining(&self) -> usize {
        self.rest.len()
    }

    pub(crate) fn peek(&self) -> Option<u8> {
        self.rest.first().copied()
    }

    pub(crate) fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or_else(|| {
            Malformed::stream(format!(
                "The stream ended unexpectedly: {count} bytes were to follow, {} are left.",
                self.rest.len()
            ))
        })?;
        self.rest = rest;
        Ok(taken)
    }

    /// Everything that is left.
    pub(crate) fn take_rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.rest)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, Malformed> {
        Ok(u8::from_le_bytes(self.array()?))
    }

    pub(crate) fn u16(&mut self) -> Result<u16, Malformed> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    pub(crate) fn u16_be(&mut self) -> Result<u16, Malformed> {
        Ok(u16::from_be_bytes(self.array()?))
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Malformed> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub(crate) fn u64(&mut self) -> Result<u64, Malformed> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// `B_VARCHAR`.
    pub(crate) fn short_text(&mut self) -> Result<String, Malformed> {
        let units = usize::from(self.u8()?);
        utf16(self.take(2 * units)?)
    }

    /// `US_VARCHAR`.
    pub(crate) fn text(&mut self) -> Result<String, Malformed> {
        let units = usize::from(self.u16()?);
        utf16(self.take(2 * units)?)
    }
}

/// UTF-16LE as text. Surrogates without their other half, which the server can hold and Rust's texts
/// cannot, become replacement characters.
pub(crate) fn utf16(bytes: &[u8]) -> Result<String, Malformed> {
    let (units, odd) = bytes.as_chunks::<2>();
    if !odd.is_empty() {
        return Err(Malformed::stream(format!("Text in UTF-16 has an odd number of bytes, {}.", bytes.len())));
    }
    Ok(char::decode_utf16(units.iter().map(|u| u16::from_le_bytes(*u)))
        .map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER))
        .collect())
}

/// What tokens are written with.
pub(crate) trait Write {
    fn put(&mut self, bytes: &[u8]);

    fn put_u16(&mut self, value: u16) {
        self.put(&value.to_le_bytes());
    }

    fn put_u32(&mut self, value: u32) {
        self.put(&value.to_le_bytes());
    }

    fn put_u64(&mut self, value: u64) {
        self.put(&value.to_le_bytes());
    }

    fn put_utf16(&mut self, text: &str) {
        for unit in text.encode_utf16() {
            self.put_u16(unit);
        }
    }

    /// `B_VARCHAR`; a text of more than 255 code units is cut there.
    fn put_short_text(&mut self, text: &str) {
        let text = cut(text, 255);
        self.put(&[u8::try_from(text.encode_utf16().count()).unwrap_or(u8::MAX)]);
        self.put_utf16(text);
    }

    /// `US_VARCHAR`; a text of more than 65,535 code units is cut there.
    fn put_text(&mut self, text: &str) {
        let text = cut(text, usize::from(u16::MAX));
        self.put_u16(u16::try_from(text.encode_utf16().count()).unwrap_or(u16::MAX));
        self.put_utf16(text);
    }
}

impl Write for Vec<u8> {
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

impl Write for bytes::BytesMut {
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

/// The longest start of a text with at most so many UTF-16 code units.
pub(crate) fn cut(text: &str, units: usize) -> &str {
    // A code unit takes at least one byte of UTF-8.
    if text.len() <= units {
        return text;
    }
    let mut left = units;
    for (at, character) in text.char_indices() {
        match left.checked_sub(character.len_utf16()) {
            Some(fewer) => left = fewer,
            None => return &text[..at],
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_between_characters_and_never_inside_a_pair() {
        assert_eq!(cut("añb", 2), "añ");
        assert_eq!(cut("a😀b", 2), "a");
        assert_eq!(cut("a😀b", 3), "a😀");
        assert_eq!(cut("ab", 9), "ab");
    }

    #[test]
    fn reading_past_the_end_says_what_was_to_follow() {
        let mut reader = Reader::new(&[1, 2]);
        let error = reader.u32().unwrap_err();
        assert!(error.text.contains("4 bytes were to follow, 2 are left"), "{error}");
        assert_eq!(reader.u16(), Ok(0x0201), "a failed read takes nothing");
    }

    #[test]
    fn half_a_surrogate_pair_becomes_a_replacement_character() {
        assert_eq!(utf16(&[0x3d, 0xd8, 0x41, 0]).unwrap(), "\u{fffd}A");
        assert!(utf16(&[0x41]).is_err());
    }
}

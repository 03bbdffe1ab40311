//! The collation that the server says its texts have, and the code page that follows from it.
//!
//! [MS-TDS] "Collation Rule Definition".

/// `SQL_Latin1_General_CP1_CI_AS`: LCID 0x0409, ignoring case, kana and width, sort order 52.
pub(crate) const SERVER: [u8; 5] = [0x09, 0x04, 0xd0, 0x00, 0x34];

const UTF8: u8 = 0x04;

/// How non-Unicode text is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Charset {
    Windows1252,
    Utf8,
}

impl Charset {
    /// Of a text that a client sends. Clients take the server's collation, or one of UTF-8.
    pub(crate) fn of(collation: [u8; 5]) -> Self {
        if collation[3] & UTF8 != 0 { Self::Utf8 } else { Self::Windows1252 }
    }

    /// Bytes that are no text become replacement characters.
    pub(crate) fn decode(self, bytes: &[u8]) -> String {
        match self {
            Self::Windows1252 => bytes.iter().map(|b| character(*b)).collect(),
            Self::Utf8 => String::from_utf8_lossy(bytes).into_owned(),
        }
    }
}

/// Windows-1252 from 0x80 to 0x9F; everywhere else a byte is its character's number. Bytes that the
/// code page leaves open are the control characters of that number, as Windows maps them.
const HIGH_CONTROLS: [char; 32] = [
    '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž', '\u{8f}', '\u{90}', '‘', '’',
    '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9d}', 'ž', 'Ÿ',
];

fn character(byte: u8) -> char {
    match byte {
        0x80..=0x9f => HIGH_CONTROLS[usize::from(byte - 0x80)],
        other => char::from(other),
    }
}

/// A character in Windows-1252; one that is not in it is a question mark, as the server converts.
pub(crate) fn windows_1252(character: char) -> u8 {
    match u8::try_from(u32::from(character)) {
        Ok(byte) if !(0x80..=0x9f).contains(&byte) => byte,
        _ => (0x80..)
            .zip(HIGH_CONTROLS)
            .find_map(|(byte, candidate)| (candidate == character).then_some(byte))
            .unwrap_or(b'?'),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_of_windows_1252_comes_back() {
        for byte in 0..=u8::MAX {
            assert_eq!(windows_1252(character(byte)), byte);
        }
        assert_eq!(windows_1252('€'), 0x80);
        assert_eq!(windows_1252('Ÿ'), 0x9f);
        assert_eq!(windows_1252('ę'), b'?');
    }

    #[test]
    fn the_collation_of_a_text_says_its_code_page() {
        assert_eq!(Charset::of(SERVER).decode(b"caf\xe9 \x80"), "café €");
        assert_eq!(Charset::of([0x09, 0x04, 0xd0, 0x24, 0]).decode("café".as_bytes()), "café");
    }
}

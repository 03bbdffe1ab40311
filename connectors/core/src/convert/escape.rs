//! The inside of a JSON string as Kafka Connect's JSON writer (Jackson, to bytes) produces it.
//!
//! Escaped are `"`, `\`, control characters (short forms where JSON has them, else `\u00XX` in upper
//! case) and characters beyond the basic plane (as a surrogate pair `\uD83D\uDE00`); everything else
//! is raw UTF-8, `/` and U+007F included.

const HEX: &[u8; 16] = b"0123456789ABCDEF";
const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = 0x8080_8080_8080_8080;

/// Appends `text` escaped, without quotes around it.
pub fn json_escape(text: &str, out: &mut Vec<u8>) {
    let bytes = text.as_bytes();
    let mut start = 0;
    loop {
        let at = next_special(bytes, start);
        out.extend_from_slice(&bytes[start..at]);
        let Some(&byte) = bytes.get(at) else { return };
        start = at + 1;
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0x08 => out.extend_from_slice(b"\\b"),
            0x0C => out.extend_from_slice(b"\\f"),
            0..0x20 => push_unit(u16::from(byte), out),
            _ => {
                if let Some(character) = text[at..].chars().next() {
                    for unit in character.encode_utf16(&mut [0; 2]) {
                        push_unit(*unit, out);
                    }
                    start = at + character.len_utf8();
                }
            }
        }
    }
}

/// Appends `text` as a JSON string with its quotes.
pub fn json_string(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    json_escape(text, out);
    out.push(b'"');
}

fn push_unit(unit: u16, out: &mut Vec<u8>) {
    let digit = |shift: u16| HEX[usize::from(unit >> shift & 0xF)];
    out.extend_from_slice(&[b'\\', b'u', digit(12), digit(8), digit(4), digit(0)]);
}

fn is_special(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\' || byte >= 0xF0
}

/// Index of the next byte that needs escaping, or the length. Eight bytes at a time: the tests for
/// "zero" and "below" may also mark bytes above a true hit, never below it, so the first one counts.
fn next_special(bytes: &[u8], from: usize) -> usize {
    let mut at = from;
    while let Some(chunk) = bytes.get(at..at + 8) {
        let mut word = [0; 8];
        word.copy_from_slice(chunk);
        let word = u64::from_le_bytes(word);
        let below_space = word.wrapping_sub(ONES * 0x20) & !word;
        let quote = word ^ (ONES * u64::from(b'"'));
        let quote = quote.wrapping_sub(ONES) & !quote;
        let backslash = word ^ (ONES * u64::from(b'\\'));
        let backslash = backslash.wrapping_sub(ONES) & !backslash;
        let four_bytes = word & word << 1 & word << 2 & word << 3;
        let special = (below_space | quote | backslash | four_bytes) & HIGHS;
        if special != 0 {
            return at + (special.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    bytes[at..].iter().position(|b| is_special(*b)).map_or(bytes.len(), |n| at + n)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use proptest::prelude::*;

    use super::*;

    fn escaped(text: &str) -> String {
        let mut out = Vec::new();
        json_escape(text, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn golden() {
        assert_eq!(
            escaped("a\"b\\c/\u{8}\u{c}\n\r\t\u{0}\u{1f}\u{7f}é漢\u{2028}😀z"),
            "a\\\"b\\\\c/\\b\\f\\n\\r\\t\\u0000\\u001F\u{7f}é漢\u{2028}\\uD83D\\uDE00z"
        );
        assert_eq!(escaped(""), "");
        assert_eq!(escaped("plain text of more than eight bytes"), "plain text of more than eight bytes");
    }

    proptest! {
        #[test]
        fn a_json_reader_gets_the_text_back(text in "(?s).{0,60}") {
            let mut out = Vec::new();
            json_string(&text, &mut out);
            prop_assert_eq!(serde_json::from_slice::<String>(&out).unwrap(), text);
        }

        #[test]
        fn the_word_scan_agrees_with_the_byte_scan(bytes in prop::collection::vec(any::<u8>(), 0..80), from in 0usize..8) {
            let from = from.min(bytes.len());
            let expected = bytes[from..].iter().position(|b| is_special(*b)).map_or(bytes.len(), |n| from + n);
            prop_assert_eq!(next_special(&bytes, from), expected);
        }
    }
}

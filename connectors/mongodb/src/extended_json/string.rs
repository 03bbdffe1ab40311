//! The inside of a string: escapes by character category, repair of malformed UTF-8.

use super::category::Shown;
use super::form::{Form, put};

const HEX: &[u8; 16] = b"0123456789abcdef";
const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = 0x8080_8080_8080_8080;

/// Appends `"`, the text, `"`.
pub(super) fn quoted<F: Form>(text: &[u8], out: &mut Vec<u8>) {
    put!(F, out, "\"");
    content::<F>(text, out);
    put!(F, out, "\"");
}

/// Appends `"`, the name of a field, `": `.
pub(super) fn name<F: Form>(text: &[u8], out: &mut Vec<u8>) {
    put!(F, out, "\"");
    content::<F>(text, out);
    put!(F, out, "\": ");
}

#[inline]
fn content<F: Form>(text: &[u8], out: &mut Vec<u8>) {
    let at = next_special(text, 0);
    out.extend_from_slice(&text[..at]);
    if at < text.len() {
        special::<F>(text, at, out);
    }
}

/// From the first byte that may need care to the end.
fn special<F: Form>(text: &[u8], mut at: usize, out: &mut Vec<u8>) {
    let mut start = at;
    loop {
        at = next_special(text, at);
        let Some(&byte) = text.get(at) else { break };
        if byte < 0x80 {
            out.extend_from_slice(&text[start..at]);
            ascii::<F>(byte, out);
            at += 1;
            start = at;
            continue;
        }
        let (character, size) = decode(&text[at..]);
        let size = size.max(1);
        match character {
            Some(c) if u16::try_from(u32::from(c)).is_ok_and(|unit| Shown::table().contains(unit)) => at += size,
            character => {
                out.extend_from_slice(&text[start..at]);
                match character {
                    Some(c) => c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| escape::<F>(*unit, out)),
                    None => out.extend_from_slice("\u{fffd}".as_bytes()),
                }
                at += size;
                start = at;
            }
        }
    }
    out.extend_from_slice(&text[start..]);
}

fn ascii<F: Form>(byte: u8, out: &mut Vec<u8>) {
    match byte {
        b'"' => put!(F, out, "\\\""),
        b'\\' => put!(F, out, "\\\\"),
        b'\n' => put!(F, out, "\\n"),
        b'\r' => put!(F, out, "\\r"),
        b'\t' => put!(F, out, "\\t"),
        0x08 => put!(F, out, "\\b"),
        0x0C => put!(F, out, "\\f"),
        _ => escape::<F>(u16::from(byte), out),
    }
}

fn escape<F: Form>(unit: u16, out: &mut Vec<u8>) {
    let digit = |shift: u16| HEX[usize::from(unit >> shift & 0xF)];
    put!(F, out, "\\");
    out.extend_from_slice(&[b'u', digit(12), digit(8), digit(4), digit(0)]);
}

fn is_special(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\' || byte >= 0x7F
}

/// Index of the next byte that is not printable ASCII, or a quote or backslash; else the length.
/// Eight bytes at a time: the tests may also mark bytes above a true hit, never below it.
fn next_special(text: &[u8], from: usize) -> usize {
    let mut at = from;
    while let Some(chunk) = text.get(at..at + 8) {
        let mut word = [0; 8];
        word.copy_from_slice(chunk);
        let word = u64::from_le_bytes(word);
        let below_blank = word.wrapping_sub(ONES * 0x20) & !word;
        let equals = |byte: u8| {
            let difference = word ^ (ONES * u64::from(byte));
            difference.wrapping_sub(ONES) & !difference
        };
        let special = (word | below_blank | equals(b'"') | equals(b'\\') | equals(0x7F)) & HIGHS;
        if special != 0 {
            return at + (special.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    text[at..].iter().position(|b| is_special(*b)).map_or(text.len(), |n| at + n)
}

pub(super) fn lossy(bytes: &[u8], out: &mut String) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return out.push_str(text);
    }
    let mut rest = bytes;
    while let Some(&byte) = rest.first() {
        let (character, size) = if byte < 0x80 { (Some(char::from(byte)), 1) } else { decode(rest) };
        out.push(character.unwrap_or(char::REPLACEMENT_CHARACTER));
        rest = &rest[size.clamp(1, rest.len())..];
    }
}

/// The character at the start of `text`, whose first byte is not ASCII, and its size; `None` for
/// bytes that Java replaces by one U+FFFD. Java differs from the usual rule in that the three bytes
/// of a surrogate count as one mistake.
fn decode(text: &[u8]) -> (Option<char>, usize) {
    let byte = |i: usize| text.get(i).copied();
    let continues = |i: usize| byte(i).is_some_and(|b| b & 0xC0 == 0x80);
    let bits = |i: usize| u32::from(text[i] & 0x3F);
    let first = text[0];
    match first {
        0xC2..=0xDF => match byte(1) {
            Some(_) if continues(1) => (char::from_u32(u32::from(first & 0x1F) << 6 | bits(1)), 2),
            Some(_) => (None, 1),
            None => (None, text.len()),
        },
        0xE0..=0xEF => {
            let second_fits = continues(1) && (first != 0xE0 || text[1] & 0xE0 != 0x80);
            match (byte(1), byte(2)) {
                (Some(_), Some(_)) if second_fits && continues(2) => {
                    (char::from_u32(u32::from(first & 0x0F) << 12 | bits(1) << 6 | bits(2)), 3)
                }
                (Some(_), Some(_)) => (None, if second_fits { 2 } else { 1 }),
                (Some(_), None) if !second_fits => (None, 1),
                _ => (None, text.len()),
            }
        }
        0xF0..=0xF4 => {
            let second_fits = continues(1)
                && match first {
                    0xF0 => text[1] >= 0x90,
                    0xF4 => text[1] < 0x90,
                    _ => true,
                };
            match text.len() {
                1 => (None, 1),
                _ if !second_fits => (None, 1),
                2 => (None, 2),
                _ if !continues(2) => (None, 2),
                3 => (None, 3),
                _ if !continues(3) => (None, 3),
                _ => {
                    let code = u32::from(first & 0x07) << 18 | bits(1) << 12 | bits(2) << 6 | bits(3);
                    (char::from_u32(code), 4)
                }
            }
        }
        _ => (None, 1),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::super::form::{Escaped, Plain};
    use super::*;

    fn plain(bytes: &[u8]) -> String {
        let mut out = Vec::new();
        content::<Plain>(bytes, &mut out);
        String::from_utf8(out).unwrap()
    }

    fn repaired(bytes: &[u8]) -> String {
        let mut out = String::new();
        lossy(bytes, &mut out);
        out
    }

    #[test]
    fn t_33_escapes() {
        assert_eq!(plain(b"a\"b\\c\x08\x0c\n\r\t/<'"), "a\\\"b\\\\c\\b\\f\\n\\r\\t/<'");
        for (text, expected) in [
            ("\u{1}", "\\u0001"),
            ("\u{7f}", "\\u007f"),
            ("e\u{301}", "e\\u0301"),
            ("\u{200b}\u{2028}", "\\u200b\\u2028"),
            ("😀", "\\ud83d\\ude00"),
            ("é中\u{a0}\u{fffd}", "é中\u{a0}\u{fffd}"),
            ("long text without anything special, then é", "long text without anything special, then é"),
        ] {
            assert_eq!(plain(text.as_bytes()), expected);
        }
    }

    #[test]
    fn mgo_28_malformed_utf8_becomes_replacement_characters() {
        for (bytes, expected) in [
            (b"\xC3\x28".as_slice(), "\u{fffd}("),
            (b"a\xFFb", "a\u{fffd}b"),
            (b"\x80\x80", "\u{fffd}\u{fffd}"),
            (b"\xC0\xAF", "\u{fffd}\u{fffd}"),
            (b"\xE0\x80\xAF", "\u{fffd}\u{fffd}\u{fffd}"),
            (b"\xE4\xB8x", "\u{fffd}x"),
            (b"\xE4\xB8", "\u{fffd}"),
            (b"\xC3", "\u{fffd}"),
            // A surrogate is one mistake in Java.
            (b"\xED\xA0\x80x", "\u{fffd}x"),
            (b"\xF0\x9F\x98", "\u{fffd}"),
            (b"\xF0\x9F\x98x", "\u{fffd}x"),
            (b"\xF4\x90\x80\x80", "\u{fffd}\u{fffd}\u{fffd}\u{fffd}"),
            (b"\xF8\x88\x80\x80\x80", "\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}"),
        ] {
            assert_eq!(plain(bytes), expected, "{bytes:x?}");
            assert_eq!(repaired(bytes), expected, "{bytes:x?}");
        }
    }

    proptest! {
        #[test]
        fn the_word_scan_agrees_with_the_byte_scan(text in prop::collection::vec(any::<u8>(), 0..64), from in 0_usize..9) {
            let from = from.min(text.len());
            let expected = text[from..].iter().position(|b| is_special(*b)).map_or(text.len(), |n| from + n);
            prop_assert_eq!(next_special(&text, from), expected);
        }

        #[test]
        fn a_json_reader_gets_valid_text_back(text in "(?s).{0,40}") {
            let json = format!("\"{}\"", plain(text.as_bytes()));
            prop_assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
        }

        #[test]
        fn escaped_form_is_the_plain_form_escaped(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let mut out = Vec::new();
            content::<Escaped>(&bytes, &mut out);
            let json = format!("\"{}\"", String::from_utf8(out).unwrap());
            prop_assert_eq!(serde_json::from_str::<String>(&json).unwrap(), plain(&bytes));
        }

        #[test]
        fn without_surrogates_java_repairs_as_others_do(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            prop_assume!(!bytes.windows(2).any(|w| w[0] == 0xED && w[1] >= 0xA0));
            prop_assert_eq!(repaired(&bytes), String::from_utf8_lossy(&bytes));
        }
    }
}

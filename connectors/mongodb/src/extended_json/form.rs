//! Plain text or the inside of a JSON string: the same structure, quotes and backslashes escaped.
//!
//! Both forms are separate instances of the writers, so the choice costs nothing per character.

pub(super) trait Form {
    const ESCAPED: bool;
}

pub(super) struct Plain;
pub(super) struct Escaped;

impl Form for Plain {
    const ESCAPED: bool = false;
}

impl Form for Escaped {
    const ESCAPED: bool = true;
}

const fn is_escaped(byte: u8) -> bool {
    matches!(byte, b'"' | b'\\')
}

/// Length of `text` when escaped.
pub(super) const fn escaped_length(text: &[u8]) -> usize {
    let (mut length, mut i) = (text.len(), 0);
    while i < text.len() {
        length += is_escaped(text[i]) as usize;
        i += 1;
    }
    length
}

/// `text` escaped, at compile time. `N` is its [`escaped_length`].
pub(super) const fn escape<const N: usize>(text: &[u8]) -> [u8; N] {
    let mut out = [0; N];
    let (mut at, mut i) = (0, 0);
    while i < text.len() {
        if is_escaped(text[i]) {
            out[at] = b'\\';
            at += 1;
        }
        out[at] = text[i];
        at += 1;
        i += 1;
    }
    out
}

/// Appends a literal in the form `$form`.
macro_rules! put {
    ($form:ty, $out:expr, $text:literal) => {{
        const PLAIN: &[u8] = $text.as_bytes();
        const ESCAPED: [u8; $crate::extended_json::form::escaped_length(PLAIN)] =
            $crate::extended_json::form::escape(PLAIN);
        $out.extend_from_slice(if <$form>::ESCAPED { &ESCAPED } else { PLAIN });
    }};
}

pub(super) use put;

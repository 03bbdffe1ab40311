//! A message that is larger than it may be: the longest strings of its row are cut.
//!
//! One length holds for both images, so a value that did not change is the same in both afterwards.
//! Strings that the source holds as bytes are cut to whole groups of base64. Key columns stay whole,
//! and so does what says the type of a value in a document (`$oid`, `$date`), except for `$binary` and
//! `$code`. What is cut is named in `source.truncated`, by column or path.

use bytes::Bytes;

use super::Members;
use crate::convert::json_escape;
use crate::error::{Error, ErrorKind, Phase, Result};
use crate::record::{Text, Value};

/// Strings up to this length, as JSON, are never cut.
const SHORTEST: usize = 64;
/// Of a type's name in a document, values of these are contents.
const CONTENTS: [&str; 3] = ["$binary", "$code", "$symbol"];
const TRUNCATED: &str = "truncated";

/// A value's size as JSON is at most this. Costs less than writing it.
pub(super) fn bound(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) => 5,
        // Every character as six.
        Value::String(Text::Lazy(_)) => usize::MAX / 8,
        Value::String(text) => text.as_str().len().saturating_mul(6) + 2,
        Value::Bytes(bytes) => bytes.len() / 3 * 4 + 6,
        Value::Array(values) => values.iter().map(|value| bound(value) + 1).fold(2, usize::saturating_add),
        Value::Map(pairs) => {
            pairs.iter().map(|(k, v)| bound(k).saturating_add(bound(v)) + 2).fold(2, usize::saturating_add)
        }
        Value::Struct(values) => values.iter().map(|value| bound(value) + 1).fold(2, usize::saturating_add),
        _ => 32,
    }
}

/// Cuts strings of `before` and `after` until `size` of the envelope is at most `most`. Gives the names
/// of what was cut.
///
/// # Errors
/// Kind `MessageTooLarge`: there is not enough to cut. The envelope is then of no use.
pub(super) fn fit(
    envelope: &mut Members,
    keys: &[String],
    most: usize,
    mut size: impl FnMut(&Members) -> Result<usize>,
) -> Result<Vec<String>> {
    let whole = size(envelope)?;
    if whole <= most {
        return Ok(Vec::new());
    }
    let mut strings = Vec::new();
    for image in images(envelope) {
        visit(image, keys, &mut |path, value, _| strings.push((path.to_owned(), length(value))));
    }
    strings.retain(|(_, length)| *length > SHORTEST);
    strings.sort_by_key(|(_, length)| std::cmp::Reverse(*length));
    // The list of names takes room as well, and how much is known only when the length is.
    let mut excess = whole - most;
    for _ in 0..16 {
        let Some(level) = level(&strings, excess) else { break };
        let mut named: Vec<String> = Vec::new();
        for (path, _) in strings.iter().filter(|(_, length)| *length > level) {
            if !named.contains(path) {
                named.push(path.clone());
            }
        }
        // `,"truncated":["a","b"]`
        let list = named.iter().map(|path| escaped_length(path) + 3).sum::<usize>() + TRUNCATED.len() + 5;
        if level_holds(&strings, level, whole + list - most) {
            for image in images(envelope) {
                visit(image, keys, &mut |_, value, base64| cut(value, level, base64));
            }
            named.sort();
            list_in_source(envelope, &named);
            if size(envelope)? <= most {
                return Ok(named);
            }
            break;
        }
        excess = whole + list - most;
    }
    Err(Error::new(
        ErrorKind::MessageTooLarge,
        Phase::Convert,
        format!("a message of {whole} bytes cannot be cut to {most}: it has not enough long strings outside of its key"),
    )
    .advise("raise thalweg.repstance.max.message.bytes (and producer.override.max.request.size and the topic's max.message.bytes), or exclude fields of the row, then restart the task"))
}

fn images(envelope: &mut Members) -> impl Iterator<Item = &mut Value> {
    envelope.iter_mut().filter(|(name, _)| is(name, "before") || is(name, "after")).map(|(_, image)| image)
}

fn is(name: &Value, text: &str) -> bool {
    matches!(name, Value::String(name) if name.as_str() == text)
}

fn list_in_source(envelope: &mut Members, named: &[String]) {
    for (name, source) in envelope {
        if is(name, "source")
            && let Value::Map(source) = source
        {
            let list = named.iter().map(|path| Value::text(path.clone())).collect();
            source.push((Value::text(TRUNCATED), Value::Array(list)));
        }
    }
}

/// The greatest length that saves `excess` bytes; `strings` from the longest on.
fn level(strings: &[(String, usize)], excess: usize) -> Option<usize> {
    let mut sum = 0usize;
    for (at, (_, length)) in strings.iter().enumerate() {
        sum += length;
        let next = strings.get(at + 1).map_or(SHORTEST, |(_, length)| *length);
        let level = sum.checked_sub(excess).map(|left| left / (at + 1)).unwrap_or(0);
        if level >= next {
            return Some(level);
        }
    }
    None
}

fn level_holds(strings: &[(String, usize)], level: usize, excess: usize) -> bool {
    strings.iter().map(|(_, length)| length.saturating_sub(level)).sum::<usize>() >= excess
}

/// Calls `each` with every string of an image that may be cut: its path, and whether it is base64 text.
fn visit(image: &mut Value, keys: &[String], each: &mut impl FnMut(&str, &mut Value, bool)) {
    let Value::Map(columns) = image else { return };
    for (column, value) in columns {
        let Value::String(column) = column else { continue };
        let column = column.as_str();
        if !keys.iter().any(|key| *key == column) {
            walk(value, &mut column.into_owned(), false, each);
        }
    }
}

fn walk(value: &mut Value, path: &mut String, binary: bool, each: &mut impl FnMut(&str, &mut Value, bool)) {
    let back = path.len();
    match value {
        Value::String(_) | Value::Bytes(_) => each(path, value, binary),
        Value::Array(values) => {
            for (at, value) in values.iter_mut().enumerate() {
                path.push_str(&format!(".{at}"));
                walk(value, path, binary, each);
                path.truncate(back);
            }
        }
        Value::Map(pairs) => {
            for (name, value) in pairs {
                let Value::String(name) = name else { continue };
                let name = name.as_str();
                if name.starts_with('$') {
                    // A value's type, not a field: the path stays that of the value.
                    if CONTENTS.contains(&&*name) {
                        walk(value, path, name == "$binary", each);
                    }
                } else if binary {
                    if name == "base64" {
                        walk(value, path, true, each);
                    }
                } else {
                    path.push('.');
                    path.push_str(&name);
                    walk(value, path, false, each);
                    path.truncate(back);
                }
            }
        }
        _ => {}
    }
}

/// Characters between the quotes.
fn length(value: &Value) -> usize {
    match value {
        Value::String(text) => escaped_length(&text.as_str()),
        Value::Bytes(bytes) => bytes.len().div_ceil(3) * 4,
        _ => 0,
    }
}

fn escaped_length(text: &str) -> usize {
    let mut escaped = Vec::new();
    json_escape(text, &mut escaped);
    escaped.len()
}

fn cut(value: &mut Value, level: usize, base64: bool) {
    if length(value) <= level {
        return;
    }
    match value {
        Value::Bytes(bytes) => *bytes = Bytes::copy_from_slice(&bytes[..(level / 4 * 3).min(bytes.len())]),
        Value::String(text) => {
            let whole = text.as_str().into_owned();
            let end = if base64 { level / 4 * 4 } else { end_within(&whole, level) };
            // Base64 is ASCII; a text that claims to be and is not is cut between characters.
            let end = (0..=end.min(whole.len())).rev().find(|at| whole.is_char_boundary(*at)).unwrap_or(0);
            *text = Text::from(whole[..end].to_owned());
        }
        _ => {}
    }
}

/// Where the escaped text is not yet longer than `level`.
fn end_within(text: &str, level: usize) -> usize {
    let (mut used, mut escaped) = (0, Vec::new());
    for (at, character) in text.char_indices() {
        escaped.clear();
        json_escape(character.encode_utf8(&mut [0; 4]), &mut escaped);
        used += escaped.len();
        if used > level {
            return at;
        }
    }
    text.len()
}

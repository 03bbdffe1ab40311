//! "String functions (Transact-SQL)" and other functions over texts and bytes.

use super::Call;
use crate::engine::fault::SqlError;
use crate::engine::kinds::convert;
use crate::engine::kinds::text;
use crate::types::SqlType;
use crate::value::SqlValue;

fn text_at(arguments: &[SqlValue], n: usize) -> &str {
    match arguments.get(n) {
        Some(SqlValue::Text(text)) => text,
        _ => "",
    }
}

fn int_at(arguments: &[SqlValue], n: usize) -> Option<i64> {
    match arguments.get(n) {
        Some(SqlValue::Int(number)) => Some(*number),
        Some(SqlValue::Bit(b)) => Some((*b).into()),
        _ => None,
    }
}

fn units(text: &str) -> Vec<u16> {
    text.encode_utf16().collect()
}

fn from_units(units: &[u16]) -> SqlValue {
    SqlValue::Text(String::from_utf16_lossy(units))
}

pub(crate) fn len(_: &Call<'_>, arguments: &[SqlValue]) -> Result<SqlValue, SqlError> {
    Ok(SqlValue::Int(match &arguments[0] {
        SqlValue::Text(text) => text::units(text.trim_end_matches(' ')) as i64,
        SqlValue::Bytes(bytes) => bytes.len() as i64,
        _ => 0,
    }))
}

pub(crate) fn datalength(call: &Call<'_>, arguments: &[SqlValue]) -> Result<SqlValue, SqlError> {
    Ok(SqlValue::Int(match &arguments[0] {
        SqlValue::Text(text) if call.kind(0).is_unicode() => text::units(text) as i64 * 2,
        SqlValue::Text(text) => text.chars().count() as i64,
        SqlValue::Bytes(bytes) => bytes.len() as i64,
        SqlValue::Variant(inner) => inner.0.sizes().0.into(),
        _ => call.kind(0).sizes().0.into(),
    }))
}

pub(crate) fn upper(_: &Call<'_>, arguments: &[SqlValue]) -> Result<SqlValue, SqlError> {
    Ok(SqlValue::Text(text_at(arguments, 0).to_uppercase()))
}

pub(crate) fn lower(_: &Call<'_>, arguments: &[SqlValue]) -> Result<SqlValue, SqlError> {
    Ok(SqlValue::Text(text_at(arguments, 0).to_lowercase()))
}

pub(crate) fn trim(call: &Call<'_>, arguments: &[SqlValue]) -> Result<SqlValue, SqlError> {
    let text = text_at(arguments, 0);
    Ok(SqlValue::Text(
        match call.signature.name {
            "LTRIM" => text.trim_start_matches(' '),
            "RTRIM" => text.trim_end_matches(' '),
            _ => text.trim_matches(' '),
        }
        .to_owned(),
    ))
}

fn negative(function: &str) -> SqlError {
    SqlError::new(537, format!("Invalid length parameter passed to the {function} function.")).state(2)
}

pub(crate) fn substring(_: &Call<'_>, arguments: &[SqlValue]) -> Result<SqlValue, SqlError> {
    let start = int_at(arguments, 1).unwrap_or(1);
    let length = int_at(arguments, 2).unwrap_or(i64::MAX);
    if length < 0 {
        return Err(negative("LEFT or SUBSTRING"));
    }
    let cut = |total: usize| {
        let from = (start - 1).clamp(0, total as i64) as usize;
        let to = start.saturating_sub(1).saturating_add(length).clamp(from as i64, total as i64) as usize;
        from..to
    };
    Ok(match &arguments[0] {
        SqlValue::Text(text) => {
            let units = units(text);
            from_units(&units[cut(units.len())])
        }
        SqlValue::Bytes(bytes) => SqlValue::Bytes(bytes[cut(bytes.len())].to_vec()),
        _ => SqlValue::Null,
    })
}

pub(crate) fn left_or_right(call: &Call<'_>, arguments: &[SqlValue]) -> Result<SqlValue, SqlError> {
    let length = int_at(arguments, 1).unwrap_or(0);
    if length < 0 {
        return Err(negative(if call.signature.name == "LEFT" { "left" } else { "right" }));
    }
    let units = units(text_at(arguments, 0));
    let length = usize::try_from(length).unwrap_or(usize::MAX).min(units.len());
    Ok(from_units(if call.signature.name == "LEFT" { &units[..length] } else { &units[units.len() - length..] }))
}

pub(crate) fn replace(call: &Call<'_>, arguments: &[SqlValue]) -> Result<SqlValue, SqlError> {
    let (text, from, to) = (text_at(arguments, 0), text_at(arguments, 1), text_at(arguments, 2));
    if from.is_empty() {
        return Ok(SqlValue::Text(text.to_owned()));
    }
    let mut result = String::new();
    let mut rest = text;
    while let Some(at) = find(rest, from, call.note(0) == text::CI) {
        result.push_str(&rest[..at.start]);
        result.push_str(to);
        rest = &rest[at.end..];
    }
    result.push_str(rest);
    Ok(SqlValue::Text(result))
}

/// Where `needle` begins and ends in `text`.
fn find(text: &str, needle: &str, ignore_case: bool) -> Option<std::ops::Range<usize>> {
    let same = |a: char, b: char| a == b || ignore_case && a.to_lowercase().eq(b.to_lowercase());
    text.char_indices().find_map(|(start, _)| {
        let mut rest = text[start..].char_indices();
        let mut end = start;
        for wanted in needle.chars() {
            let (at, c) = rest.next()?;
            if !same(c, wanted) {
                return None;
            }
            end = start + at + c.len_utf8();
        }
        Some(start..end)
    })
}

pub(crate) fn charindex(call: &Call<'_>, arguments: &[SqlValue]) -> Result<SqlValue, SqlError> {
    let text = text_at(arguments, 1);
    let start = int_at(arguments, 2).unwrap_or(1).max(1) as usize - 1;
    let skipped = text::cut(text, start).len();
    let found = find(&text[skipped..], text_at(arguments, 0), call.note(0) == text::CI);
    Ok(SqlValue::Int(found.filter(|f| !f.is_empty()).map_or(0, |f| text::units(&text[..skipped + f.start]) as i64 + 1)))
}

pub(crate) fn replicate(_: &Call<'_>, arguments: &[SqlValue]) -> Result<SqlValue, SqlError> {
    let Some(times) = int_at(arguments, 1).filter(|n| *n >= 0) else { return Ok(SqlValue::Null) };
    let text = text_at(arguments, 0);
    // What is no MAX type ends at 8000 bytes; MAX types end at 2 GB, of which a test has no use.
    let most = 128 << 20;
    let times = (times as usize).min(most / text.len().max(1));
    Ok(SqlValue::Text(text.repeat(times)))
}

pub(crate) fn space(_: &Call<'_>, arguments: &[SqlValue]) -> Result<SqlValue, SqlError> {
    Ok(int_at(arguments, 0)
        .filter(|n| *n >= 0)
        .map_or(SqlValue::Null, |n| SqlValue::Text(" ".repeat(n.min(8000) as usize))))
}

pub(crate) fn reverse(_: &Call<'_>, arguments: &[SqlValue]) -> Result<SqlValue, SqlError> {
    Ok(SqlValue::Text(text_at(arguments, 0).chars().rev().collect()))
}

/// NULL counts as an empty text.
pub(crate) fn concat(_: &Call<'_>, arguments: &[SqlValue]) -> Result<SqlValue, SqlError> {
    Ok(SqlValue::Text((0..arguments.len()).map(|n| text_at(arguments, n)).collect()))
}

pub(crate) fn concat_ws(_: &Call<'_>, arguments: &[SqlValue]) -> Result<SqlValue, SqlError> {
    let parts: Vec<&str> =
        (1..arguments.len()).filter(|n| arguments[*n] != SqlValue::Null).map(|n| text_at(arguments, n)).collect();
    Ok(SqlValue::Text(parts.join(text_at(arguments, 0))))
}

pub(crate) fn quotename(_: &Call<'_>, arguments: &[SqlValue]) -> Result<SqlValue, SqlError> {
    let text = text_at(arguments, 0);
    let (open, close) = match text_at(arguments, 1).chars().next().unwrap_or('[') {
        '[' | ']' => ('[', ']'),
        '(' | ')' => ('(', ')'),
        '<' | '>' => ('<', '>'),
        '{' | '}' => ('{', '}'),
        c @ ('\'' | '"' | '`') => (c, c),
        _ => return Ok(SqlValue::Null),
    };
    if text::units(text) > 128 {
        return Ok(SqlValue::Null);
    }
    Ok(SqlValue::Text(format!("{open}{}{close}", text.replace(close, &format!("{close}{close}")))))
}

/// Cuts a part out and puts a text in its place.
pub(crate) fn stuff(_: &Call<'_>, arguments: &[SqlValue]) -> Result<SqlValue, SqlError> {
    let units = units(text_at(arguments, 0));
    let (start, length) = (int_at(arguments, 1).unwrap_or(0), int_at(arguments, 2).unwrap_or(-1));
    if start < 1 || length < 0 || start as usize > units.len() {
        return Ok(SqlValue::Null);
    }
    let start = start as usize - 1;
    let end = start.saturating_add(length as usize).min(units.len());
    let put = self::units(text_at(arguments, 3));
    Ok(from_units(&[&units[..start], &put, &units[end..]].concat()))
}

pub(crate) fn char_of(call: &Call<'_>, arguments: &[SqlValue]) -> Result<SqlValue, SqlError> {
    let most = if call.signature.name == "CHAR" { 255 } else { 0x10ffff };
    let c = int_at(arguments, 0).filter(|n| (0..=most).contains(n)).and_then(|n| char::from_u32(n as u32));
    Ok(c.map_or(SqlValue::Null, |c| SqlValue::Text(c.into())))
}

pub(crate) fn code_of(_: &Call<'_>, arguments: &[SqlValue]) -> Result<SqlValue, SqlError> {
    Ok(text_at(arguments, 0).encode_utf16().next().map_or(SqlValue::Null, |u| SqlValue::Int(u.into())))
}

pub(crate) fn patindex(call: &Call<'_>, arguments: &[SqlValue]) -> Result<SqlValue, SqlError> {
    let (pattern, text) = (text_at(arguments, 0), text_at(arguments, 1));
    let open_start = pattern.starts_with('%');
    let pattern = pattern.trim_start_matches('%');
    let found = text
        .char_indices()
        .map(|(at, _)| at)
        .take(if open_start { usize::MAX } else { 1 })
        .find(|at| text::like(&text[*at..], pattern, None, call.note(0) == text::CI));
    Ok(SqlValue::Int(found.map_or(0, |at| text::units(&text[..at]) as i64 + 1)))
}

pub(crate) fn newid(_: &Call<'_>, _: &[SqlValue]) -> Result<SqlValue, SqlError> {
    let mut bytes = fastrand::u128(..).to_be_bytes();
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    Ok(SqlValue::Uuid(bytes))
}

pub(crate) fn isnumeric(_: &Call<'_>, arguments: &[SqlValue]) -> Result<SqlValue, SqlError> {
    let is = match &arguments[0] {
        SqlValue::Text(_) => {
            convert::convert(arguments[0].clone(), &SqlType::VarChar(crate::types::Length::Max), &SqlType::Float, -1)
                .is_ok()
        }
        SqlValue::Null | SqlValue::Bytes(_) | SqlValue::Uuid(_) => false,
        _ => true,
    };
    Ok(SqlValue::Int(is.into()))
}

/// Numbers as text, right-aligned.
pub(crate) fn str(_: &Call<'_>, arguments: &[SqlValue]) -> Result<SqlValue, SqlError> {
    let SqlValue::Float(number) = arguments[0] else { return Ok(SqlValue::Null) };
    let width = int_at(arguments, 1).unwrap_or(10).clamp(0, 8000) as usize;
    let decimals = int_at(arguments, 2).unwrap_or(0).clamp(0, 16) as usize;
    let text = format!("{number:>width$.decimals$}");
    Ok(SqlValue::Text(if text.len() > width { "*".repeat(width) } else { text }))
}

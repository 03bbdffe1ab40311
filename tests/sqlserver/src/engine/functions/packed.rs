//! Rows as texts, for `APPLY`: SQLite has no lateral joins but for table-valued functions, so the rows of the
//! right side become one array of texts, and its elements rows again.

use rusqlite::Connection;
use rusqlite::functions::FunctionFlags;
use rusqlite::types::{Value, ValueRef};

use crate::engine::fault::SqlError;
use crate::engine::kinds::convert;

pub(crate) const PACK: &str = "ts_pack";
pub(crate) const UNPACK: &str = "ts_unpack";

/// A letter for the type, the length of what follows, a colon, and the value.
fn pack(value: ValueRef<'_>, out: &mut String) {
    let (letter, text) = match value {
        ValueRef::Null => ('n', String::new()),
        ValueRef::Integer(n) => ('i', n.to_string()),
        ValueRef::Real(f) => ('r', f.to_bits().to_string()),
        ValueRef::Text(text) => ('t', String::from_utf8_lossy(text).into_owned()),
        ValueRef::Blob(bytes) => ('b', convert::to_hex(bytes)),
    };
    out.push(letter);
    out.push_str(&text.len().to_string());
    out.push(':');
    out.push_str(&text);
}

/// The value at a place, from 0. `None`: the text is no packed row.
fn unpack(mut packed: &str, place: usize) -> Option<Value> {
    for _ in 0..place {
        packed = split(packed)?.2;
    }
    let (letter, text, _) = split(packed)?;
    Some(match letter {
        'n' => Value::Null,
        'i' => Value::Integer(text.parse().ok()?),
        'r' => Value::Real(f64::from_bits(text.parse().ok()?)),
        't' => Value::Text(text.to_owned()),
        'b' => Value::Blob(convert::hex(text)?),
        _ => return None,
    })
}

/// Letter, value and the rest.
fn split(packed: &str) -> Option<(char, &str, &str)> {
    let letter = packed.chars().next()?;
    let (length, rest) = packed.get(1..)?.split_once(':')?;
    let (text, rest) = rest.split_at_checked(length.parse().ok()?)?;
    Some((letter, text, rest))
}

pub(super) fn register(db: &Connection) -> rusqlite::Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    db.create_scalar_function(PACK, -1, flags, |context| {
        let mut out = String::new();
        for n in 0..context.len() {
            pack(context.get_raw(n), &mut out);
        }
        Ok(out)
    })?;
    db.create_scalar_function(UNPACK, 2, flags, |context| {
        let ValueRef::Text(packed) = context.get_raw(0) else { return Ok(Value::Null) };
        let place = context.get::<i64>(1)?;
        let value = std::str::from_utf8(packed).ok().zip(usize::try_from(place).ok()).and_then(|(t, n)| unpack(t, n));
        Ok(value.ok_or_else(|| SqlError::new(8630, "a packed row is broken"))?)
    })
}

#[cfg(test)]
mod tests {
    use rusqlite::types::{Value, ValueRef};

    use super::{pack, unpack};

    #[test]
    fn values_come_out_as_they_went_in() {
        let values = [
            Value::Null,
            Value::Integer(-5),
            Value::Real(-0.1),
            Value::Text("a:3ü".into()),
            Value::Text(String::new()),
            Value::Blob(vec![0, 255]),
        ];
        let mut packed = String::new();
        values.iter().for_each(|v| pack(ValueRef::from(v), &mut packed));
        for (place, value) in values.iter().enumerate() {
            assert_eq!(unpack(&packed, place).as_ref(), Some(value));
        }
        assert_eq!(unpack(&packed, values.len()), None);
        assert_eq!(unpack("t9:short", 0), None);
    }
}

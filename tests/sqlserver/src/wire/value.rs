//! Values behind their lengths, as rows and output parameters have them.

use super::bytes::Write;
use super::scalar::{self, Unfit};
use super::type_info::Prefix;
use super::{plp, variant};
use crate::types::SqlType;
use crate::value::SqlValue;

/// What SQL Server sends for the text pointer and the time stamp, which no client may use.
const TEXT_POINTER: &[u8; 16] = b"dummy textptr\0\0\0";
const TIME_STAMP: &[u8; 8] = b"dummyTS\0";

/// Bytes of a NULL.
pub(crate) fn null_bytes(prefix: Prefix) -> usize {
    match prefix {
        Prefix::Fixed(_) => 0,
        Prefix::Byte | Prefix::TextPointer => 1,
        Prefix::Short => 2,
        Prefix::Variant => 4,
        Prefix::Chunks { .. } => 8,
    }
}

/// Whether a value is NULL; a `sql_variant` of NULL is one.
pub(crate) fn is_null(value: &SqlValue) -> bool {
    match value {
        SqlValue::Null => true,
        SqlValue::Variant(inner) => inner.1 == SqlValue::Null,
        _ => false,
    }
}

/// Appends a value. After an error, `out` holds a part of it.
pub(crate) fn put(kind: &SqlType, prefix: Prefix, value: &SqlValue, out: &mut Vec<u8>) -> Result<(), Unfit> {
    if is_null(value) {
        match prefix {
            Prefix::Fixed(_) => return Err(Unfit::new("is NULL in a column that has none")),
            Prefix::Byte | Prefix::TextPointer => out.push(0),
            Prefix::Short => out.put_u16(u16::MAX),
            Prefix::Variant => out.put_u32(0),
            Prefix::Chunks { .. } => plp::put_null(out),
        }
        return Ok(());
    }
    match prefix {
        Prefix::Fixed(_) => scalar::put(kind, value, out),
        // These have 17 bytes at most.
        Prefix::Byte => counted(out, 1, |out| scalar::put(kind, value, out)),
        Prefix::Short => counted(out, 2, |out| scalar::put(kind, value, out)),
        Prefix::TextPointer => {
            out.push(TEXT_POINTER.len() as u8);
            out.put(TEXT_POINTER);
            out.put(TIME_STAMP);
            counted(out, 4, |out| scalar::put(kind, value, out))
        }
        Prefix::Variant => counted(out, 4, |out| match value {
            SqlValue::Variant(inner) => variant::put(&inner.0, &inner.1, out),
            _ => Err(Unfit::new("is no sql_variant")),
        }),
        Prefix::Chunks { announced } => {
            let mut bytes = Vec::new();
            scalar::put(kind, value, &mut bytes)?;
            plp::put(&bytes, announced, out);
            Ok(())
        }
    }
}

/// Puts the count of what `write` appends before it, in `width` bytes.
fn counted(
    out: &mut Vec<u8>,
    width: usize,
    write: impl FnOnce(&mut Vec<u8>) -> Result<(), Unfit>,
) -> Result<(), Unfit> {
    let at = out.len();
    out.resize(at + width, 0);
    write(out)?;
    let count = (out.len() - at - width) as u64;
    if width < 8 && count >> (8 * width) != 0 {
        return Err(Unfit::new("is too long"));
    }
    out[at..at + width].copy_from_slice(&count.to_le_bytes()[..width]);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Length;
    use crate::wire::type_info::prefix;

    fn bytes(kind: &SqlType, nullable: bool, value: &SqlValue) -> Vec<u8> {
        let mut out = Vec::new();
        put(kind, prefix(kind, nullable), value, &mut out).unwrap();
        out
    }

    #[test]
    fn every_prefix_has_its_null() {
        for (kind, null) in [
            (SqlType::Int, vec![0]),
            (SqlType::VarChar(Length::Limited(10)), vec![255; 2]),
            (SqlType::Text, vec![0]),
            (SqlType::SqlVariant, vec![0; 4]),
            (SqlType::Xml, vec![255; 8]),
        ] {
            assert_eq!(bytes(&kind, true, &SqlValue::Null), null);
            assert_eq!(null_bytes(prefix(&kind, true)), null.len());
        }
        let variant = SqlValue::Variant(Box::new((SqlType::Int, SqlValue::Null)));
        assert_eq!(bytes(&SqlType::SqlVariant, true, &variant), [0; 4]);
        assert!(put(&SqlType::Int, Prefix::Fixed(4), &SqlValue::Null, &mut Vec::new()).is_err());
    }

    #[test]
    fn lengths_stand_before_values() {
        assert_eq!(bytes(&SqlType::Int, true, &SqlValue::Int(-2)), [4, 254, 255, 255, 255]);
        assert_eq!(bytes(&SqlType::Int, false, &SqlValue::Int(-2)), [254, 255, 255, 255]);
        let text = SqlType::NVarChar(Length::Limited(5));
        assert_eq!(bytes(&text, true, &SqlValue::Text("ab".into())), [4, 0, b'a', 0, b'b', 0]);
        let variant = SqlValue::Variant(Box::new((SqlType::TinyInt, SqlValue::Int(9))));
        assert_eq!(bytes(&SqlType::SqlVariant, true, &variant), [3, 0, 0, 0, 0x30, 0, 9]);
        let image = bytes(&SqlType::Image, true, &SqlValue::Bytes(vec![1, 2]));
        assert_eq!(image[0], 16);
        assert_eq!(image[25..], [2, 0, 0, 0, 1, 2]);
    }
}

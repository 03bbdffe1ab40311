//! Values in chunks, without a limit to their length: the MAX types, `xml` and CLR types.
//!
//! [MS-TDS] "Partially Length-prefixed Bytes".

use super::bytes::{Malformed, Reader, Write};

const NULL: u64 = u64::MAX;
const UNKNOWN: u64 = u64::MAX - 1;

/// Bytes of a chunk: more than a packet of the default size carries, less than the largest.
const CHUNK: usize = 8040;

pub(crate) fn put_null(out: &mut Vec<u8>) {
    out.put_u64(NULL);
}

/// `announced`: the length stands before the chunks, which the server leaves out of `xml` and CLR types.
pub(crate) fn put(bytes: &[u8], announced: bool, out: &mut Vec<u8>) {
    out.put_u64(if announced { bytes.len() as u64 } else { UNKNOWN });
    for chunk in bytes.chunks(CHUNK) {
        out.put_u32(CHUNK.min(chunk.len()) as u32);
        out.put(chunk);
    }
    out.put_u32(0);
}

/// The bytes; `None`: NULL.
pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Option<Vec<u8>>, Malformed> {
    let announced = reader.u64()?;
    if announced == NULL {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    loop {
        let chunk = reader.u32()?;
        if chunk == 0 {
            break;
        }
        bytes.extend_from_slice(reader.take(chunk as usize)?);
    }
    if announced != UNKNOWN && announced != bytes.len() as u64 {
        let text = format!("A value in chunks was announced with {announced} bytes and has {}.", bytes.len());
        return Err(Malformed::stream(text));
    }
    Ok(Some(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_cut_into_chunks_and_ended_by_an_empty_one() {
        let mut out = Vec::new();
        let value = vec![7; CHUNK + 1];
        put(&value, true, &mut out);
        assert_eq!(out[..12], [0x69, 0x1f, 0, 0, 0, 0, 0, 0, 0x68, 0x1f, 0, 0]);
        assert_eq!(out[12 + CHUNK..], [1, 0, 0, 0, 7, 0, 0, 0, 0]);
        assert_eq!(read(&mut Reader::new(&out)), Ok(Some(value)));
        out.clear();
        put(b"", false, &mut out);
        assert_eq!(out, [0xfe, 255, 255, 255, 255, 255, 255, 255, 0, 0, 0, 0]);
        assert_eq!(read(&mut Reader::new(&out)), Ok(Some(Vec::new())));
    }

    #[test]
    fn chunks_of_any_length_make_one_value() {
        let mut sent = 3_u64.to_le_bytes().to_vec();
        for byte in *b"abc" {
            sent.extend_from_slice(&[1, 0, 0, 0, byte]);
        }
        sent.extend_from_slice(&[0; 4]);
        assert_eq!(read(&mut Reader::new(&sent)), Ok(Some(b"abc".to_vec())));
        sent[0] = 4;
        assert!(read(&mut Reader::new(&sent)).unwrap_err().text.contains("announced with 4 bytes and has 3"));
        assert!(read(&mut Reader::new(&sent[..12])).is_err());
    }
}

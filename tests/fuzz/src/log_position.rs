//! SQL Server's log sequence numbers and positions, from texts and offsets that people edit and from bytes of other
//! releases.
//!
//! Promised: no panic. A number has one text, which reads back to it in any case and with any colons; texts are in
//! the order of the numbers. What is read from an offset or from bytes survives both forms.
//!
//! The first byte says how the others are read: as the text of a number, an offset, the bytes of a position, or two
//! numbers.

use bytes::Bytes;
use serde_json::Value as Json;
use thalweg_core::position::{OffsetMap, Position, PositionCodec};
use thalweg_sqlserver::lsn::Lsn;
use thalweg_sqlserver::position::{SqlServerCodec, SqlServerPosition};

/// One input.
pub fn run(data: &[u8]) {
    let Some((&choice, rest)) = data.split_first() else { return };
    match choice {
        0 => {
            if let Some(lsn) = std::str::from_utf8(rest).ok().and_then(Lsn::parse) {
                number(lsn);
            }
        }
        1 => {
            if let Ok(map) = serde_json::from_slice::<OffsetMap>(rest) {
                offset(&map);
            }
        }
        2 => {
            let bytes = Position::new(Bytes::copy_from_slice(rest));
            let _ = (SqlServerCodec.change_id(&bytes), SqlServerCodec.to_offset(&bytes));
            if let Some(decoded) = SqlServerPosition::decode(&bytes) {
                position(&decoded);
            }
        }
        _ => {
            let numbers: Vec<Lsn> = rest.chunks(10).filter_map(Lsn::from_slice).take(2).collect();
            numbers.iter().copied().for_each(number);
            if let [a, b] = numbers[..] {
                assert_eq!(a.cmp(&b), a.to_string().cmp(&b.to_string()));
            }
        }
    }
}

fn number(lsn: Lsn) {
    let text = lsn.to_string();
    for spelling in [text.clone(), text.to_uppercase(), text.replace(':', "")] {
        assert_eq!(Lsn::parse(&spelling), Some(lsn));
    }
    match lsn.next() {
        Some(next) => assert!(next > lsn),
        None => assert_eq!(lsn, Lsn::MAX),
    }
}

/// There and back through the bytes.
fn position(position: &SqlServerPosition) {
    let bytes = position.encode();
    let decoded = SqlServerPosition::decode(&bytes).expect("its own bytes");
    if is_whole(position.others()) {
        assert_eq!(&decoded, position);
        assert_eq!(decoded.encode(), bytes);
    }
    let _ = (SqlServerCodec.change_id(&bytes), position.transaction());
    let _ = SqlServerCodec.from_offset(&position.to_offset());
}

fn offset(map: &OffsetMap) {
    let _ = SqlServerCodec.check_partition(map);
    let Ok(read) = SqlServerPosition::from_offset(map) else { return };
    position(&read);
    let again = read.to_offset();
    let reread = SqlServerPosition::from_offset(&again).expect("its own offset");
    assert_eq!((reread.place, reread.serial, reread.snapshot), (read.place, read.serial, read.snapshot));
    position(&read.clone().completed());
    position(&read.past_snapshot());
}

/// Whether no number in it has a fraction or an exponent: JSON rounds those.
fn is_whole(map: &OffsetMap) -> bool {
    fn whole(value: &Json) -> bool {
        match value {
            Json::Number(number) => !number.is_f64(),
            Json::Array(items) => items.iter().all(whole),
            Json::Object(members) => members.values().all(whole),
            _ => true,
        }
    }
    map.values().all(whole)
}

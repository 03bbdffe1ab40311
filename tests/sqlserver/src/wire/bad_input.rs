//! Whatever a client sends is read or refused; and what a session says of numbers is sent or refused.

use proptest::prelude::*;

use super::login::Login7;
use super::login::tests::login7;
use super::packet::{Kind, Message, Reset};
use super::prelogin::Prelogin;
use super::{request, scalar};
use crate::types::SqlType;
use crate::value::SqlValue;

/// Headers of no transaction, then a call of `sp_executesql` with parameters of many types.
fn call() -> Vec<u8> {
    let mut bytes = vec![22, 0, 0, 0, 18, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0];
    bytes.extend([0xff, 0xff, 10, 0, 0, 0]);
    for parameter in [
        &[0x26, 4, 4, 1, 0, 0, 0][..],
        &[0x6a, 17, 38, 4, 5, 1, 1, 0, 0, 0],
        &[0xe7, 8, 0, 9, 4, 0xd0, 0, 0x34, 2, 0, 65, 0],
        &[0xe7, 0xff, 0xff, 9, 4, 0xd0, 0, 0x34, 254, 255, 255, 255, 255, 255, 255, 255, 2, 0, 0, 0, 65, 0, 0, 0, 0, 0],
        &[0x2a, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8],
        &[0x62, 73, 31, 0, 0, 8, 0, 0, 0, 0x6a, 2, 5, 2, 1, 1, 0, 0],
        &[0x6f, 8, 8, 1, 0, 0, 0, 1, 0, 0, 0],
        &[0xf1, 0, 2, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 65, 0, 0, 0, 0, 0],
    ] {
        bytes.extend([0, 0]);
        bytes.extend(parameter);
    }
    bytes
}

/// Bytes with some of them changed and the end cut off.
fn damaged(bytes: Vec<u8>) -> impl Strategy<Value = Vec<u8>> {
    let length = bytes.len();
    let changes = prop::collection::vec((0..length, any::<u8>()), 0..4);
    (changes, 0..=length).prop_map(move |(changes, end)| {
        let mut damaged = bytes.clone();
        for (at, byte) in changes {
            damaged[at] = byte;
        }
        damaged.truncate(end);
        damaged
    })
}

fn parse(kind: Kind, bytes: Vec<u8>) {
    let _ = request::parse(&Message { kind, reset: Reset::No, bytes }, 0);
}

proptest! {
    #[test]
    fn damaged_calls_do_no_harm(bytes in damaged(call())) {
        parse(Kind::Rpc, bytes);
    }

    #[test]
    fn damaged_logins_do_no_harm(bytes in damaged(login7("sa", "secret", "db", [0, 0, 0, 0x10], &[10, 1, 0, 0, 0, 1, 0xff]))) {
        let _ = Login7::parse(&bytes);
    }

    #[test]
    fn any_bytes_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Prelogin::parse(&bytes);
        let _ = Login7::parse(&bytes);
        for kind in [Kind::Batch, Kind::Rpc, Kind::TransactionManager] {
            let mut behind_headers = call()[..22].to_vec();
            behind_headers.extend(&bytes);
            parse(kind, behind_headers);
            parse(kind, bytes.clone());
        }
    }

    #[test]
    fn any_numbers_of_a_session_do_no_harm(
        days in any::<i32>(),
        ticks in any::<u64>(),
        offset in any::<i16>(),
        units in any::<i128>(),
        scale in any::<u8>(),
        precision in any::<u8>(),
    ) {
        for (kind, value) in [
            (SqlType::Date, SqlValue::Date(days)),
            (SqlType::Time { scale }, SqlValue::Time(ticks)),
            (SqlType::DateTime2 { scale }, SqlValue::DateTime { days, ticks }),
            (SqlType::DateTimeOffset { scale }, SqlValue::DateTimeOffset { days, ticks, offset }),
            (SqlType::DateTime, SqlValue::DateTime { days, ticks }),
            (SqlType::SmallDateTime, SqlValue::DateTime { days, ticks }),
            (SqlType::Decimal { precision, scale: 4 }, SqlValue::Decimal { units, scale }),
        ] {
            let _ = scalar::put(&kind, &value, &mut Vec::new());
        }
    }
}

#[test]
fn the_call_that_is_damaged_is_whole_before() {
    let message = Message { kind: Kind::Rpc, reset: Reset::No, bytes: call() };
    request::parse(&message, 0).unwrap();
}

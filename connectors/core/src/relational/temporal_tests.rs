//! Values that SQL Server and Informix columns have in each mode.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::*;
use crate::relational::moment::NANOS_PER_DAY;

use TimePrecision as P;

const MODES: [P; 7] = [
    P::Adaptive,
    P::AdaptiveTimeMicroseconds,
    P::Connect,
    P::IsoString,
    P::Microseconds,
    P::Nanoseconds,
    P::Structured,
];

fn at(year: i32, month: u8, day: u8, nanos: u64) -> Timestamp {
    Timestamp { date: Date::new(year, month, day).unwrap(), time: TimeOfDay::from_nanos(nanos).unwrap() }
}

const fn clock(hour: u64, minute: u64, second: u64, nanos: u64) -> u64 {
    ((hour * 60 + minute) * 60 + second) * 1_000_000_000 + nanos
}

/// The last part of the schema's name.
fn short(schema: &Schema) -> &str {
    let name = schema.name.as_deref().unwrap();
    name.strip_prefix("io.debezium.time.").unwrap_or_else(|| name.strip_prefix("org.apache.kafka.connect.").unwrap())
}

#[test]
fn schemas_by_mode_and_digits() {
    let date = ["Date", "Date", "data.Date", "IsoDate", "Date", "Date", "StructuredDate"];
    let time = |adaptive| [adaptive, "MicroTime", "data.Time", "IsoTime", "MicroTime", "NanoTime", "StructuredTime"];
    let stamp = |adaptive| {
        [adaptive, adaptive, "data.Timestamp", "IsoTimestamp", "MicroTimestamp", "NanoTimestamp", "StructuredTimestamp"]
    };
    for (at, mode) in MODES.into_iter().enumerate() {
        assert_eq!(short(&date_schema(mode)), date[at]);
        for fraction in 0..=9 {
            let (t, s) = match fraction {
                0..=3 => ("Time", "Timestamp"),
                4..=6 => ("MicroTime", "MicroTimestamp"),
                _ => ("NanoTime", "NanoTimestamp"),
            };
            assert_eq!(short(&time_schema(Unit::of_time(mode, fraction))), time(t)[at], "{mode:?} {fraction}");
            assert_eq!(
                short(&timestamp_schema(Unit::of_timestamp(mode, fraction))),
                stamp(s)[at],
                "{mode:?} {fraction}"
            );
        }
        let zoned = if mode == P::Structured { "StructuredZonedTimestamp" } else { "ZonedTimestamp" };
        assert_eq!(short(&zoned_schema(mode)), zoned);
        assert_eq!(zoned_schema(mode).version, Some(1));
    }
    let ty = |unit| time_schema(unit).ty;
    assert_eq!((ty(Unit::Connect), ty(Unit::Millis), ty(Unit::Micros)), (Type::Int32, Type::Int32, Type::Int64));
}

#[test]
fn sql_05_times_keep_their_precision() {
    let value = |mode, fraction, nanos| {
        time_value(Unit::of_time(mode, fraction), TimeOfDay::from_nanos(nanos).unwrap(), fraction)
    };
    let late = |nanos| clock(21, 7, 9, nanos);
    assert_eq!(value(P::Adaptive, 2, late(120_000_000)), Value::Int32(76_029_120));
    assert_eq!(value(P::Adaptive, 4, late(123_400_000)), Value::Int64(76_029_123_400));
    assert_eq!(value(P::Adaptive, 7, late(123_456_700)), Value::Int64(76_029_123_456_700));
    for (mode, expected) in [
        (P::Adaptive, Value::Int64(37_425_678_901_200)),
        (P::AdaptiveTimeMicroseconds, Value::Int64(37_425_678_901)),
        (P::Connect, Value::Int32(37_425_678)),
        (P::Microseconds, Value::Int64(37_425_678_901)),
        (P::Nanoseconds, Value::Int64(37_425_678_901_200)),
        (P::IsoString, Value::text("10:23:45.6789012Z")),
    ] {
        assert_eq!(value(mode, 7, clock(10, 23, 45, 678_901_200)), expected, "{mode:?}");
    }
    assert_eq!(value(P::IsoString, 0, 0), Value::text("00:00:00Z"));
}

#[test]
fn t_56_the_last_moment_of_a_day() {
    let last = TimeOfDay::from_nanos(NANOS_PER_DAY - 100).unwrap();
    assert_eq!(time_value(Unit::Connect, last, 7), Value::Int32(86_399_999));
}

#[test]
fn timestamps_in_every_mode() {
    let value =
        |mode, fraction, timestamp| timestamp_value(Unit::of_timestamp(mode, fraction), timestamp, fraction).unwrap();
    let july = at(2018, 7, 13, clock(11, 23, 45, 340_000_000));
    assert_eq!(value(P::Adaptive, 7, july), Value::Int64(1_531_481_025_340_000_000));
    assert_eq!(value(P::Adaptive, 3, at(2018, 7, 13, clock(13, 23, 45, 780_000_000))), Value::Int64(1_531_488_225_780));
    let march = at(2024, 3, 27, clock(12, 34, 56, 123_450_000));
    for (mode, expected) in [
        (P::Adaptive, Value::Int64(1_711_542_896_123_450)),
        (P::AdaptiveTimeMicroseconds, Value::Int64(1_711_542_896_123_450)),
        (P::Connect, Value::Int64(1_711_542_896_123)),
        (P::Microseconds, Value::Int64(1_711_542_896_123_450)),
        (P::Nanoseconds, Value::Int64(1_711_542_896_123_450_000)),
        (P::IsoString, Value::text("2024-03-27T12:34:56.12345Z")),
    ] {
        assert_eq!(value(mode, 5, march), expected, "{mode:?}");
    }
    let parts = value(P::Structured, 5, march);
    let expected =
        [Value::Int32(2024), Value::Int8(3), Value::Int8(27), Value::Int8(12), Value::Int8(34), Value::Int8(56)]
            .into_iter()
            .chain([Value::Int32(123_450_000), Value::Null, Value::Int32(5)]);
    assert_eq!(parts, Value::Struct(expected.collect()));
}

#[test]
fn dates_in_every_mode() {
    let date = Date::new(2017, 9, 15).unwrap();
    for mode in [P::Adaptive, P::AdaptiveTimeMicroseconds, P::Connect, P::Microseconds, P::Nanoseconds] {
        assert_eq!(date_value(mode, date), Value::Int32(17_424));
    }
    assert_eq!(date_value(P::IsoString, date), Value::text("2017-09-15Z"));
    let parts = vec![Value::Int32(2017), Value::Int8(9), Value::Int8(15), Value::Null];
    assert_eq!(date_value(P::Structured, date), Value::Struct(parts));
}

#[test]
fn sql_06_nanoseconds_never_wrap() {
    let nanos = |timestamp| timestamp_value(Unit::Nanos, timestamp, 7);
    let last = |nanos| at(2262, 4, 11, clock(23, 47, 16, nanos));
    assert_eq!(nanos(last(854_775_800)), Ok(Value::Int64(9_223_372_036_854_775_800)));
    assert!(nanos(last(854_775_900)).is_err());
    assert_eq!(nanos(at(1677, 9, 21, clock(0, 12, 43, 145_224_192))), Ok(Value::Int64(i64::MIN)));
    let error = nanos(at(9999, 12, 31, NANOS_PER_DAY - 100)).unwrap_err();
    assert!(error.starts_with("9999-12-31T23:59:59.9999999 is outside the representable range"), "{error}");
}

#[test]
fn t_55_the_ends_of_the_calendar_in_other_units() {
    let (first, last) = (at(1, 1, 1, 0), at(9999, 12, 31, NANOS_PER_DAY - 100));
    assert_eq!(timestamp_value(Unit::Micros, first, 7), Ok(Value::Int64(-62_135_596_800_000_000)));
    assert_eq!(timestamp_value(Unit::Micros, last, 7), Ok(Value::Int64(253_402_300_799_999_999)));
    assert_eq!(timestamp_value(Unit::Iso, first, 7), Ok(Value::text("0001-01-01T00:00:00Z")));
    assert!(timestamp_value(Unit::Nanos, first, 7).is_err());
}

#[test]
fn structs_have_a_value_for_every_field() {
    let july = at(2018, 7, 13, clock(12, 23, 45, 456_000_000));
    let zoned = zoned_value(P::Structured, ZonedTimestamp { local: july, offset_seconds: 39_600 }, 3);
    for (schema, value) in [
        (date_schema(P::Structured), date_value(P::Structured, july.date)),
        (time_schema(Unit::Structured), time_value(Unit::Structured, july.time, 3)),
        (timestamp_schema(Unit::Structured), timestamp_value(Unit::Structured, july, 3).unwrap()),
        (zoned_schema(P::Structured), zoned),
    ] {
        let mut out = Vec::new();
        let mut json =
            crate::convert::JsonConverter { schemas: false, ..crate::convert::JsonConverter::with_schemas() };
        let datum = crate::record::Datum::new(schema.into(), value);
        crate::convert::Converter::convert_datum(&mut json, &"t".into(), &datum, &mut out).unwrap();
        assert!(out.ends_with(b"}"), "{}", String::from_utf8_lossy(&out));
    }
}

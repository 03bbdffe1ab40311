//! Types, modes and the ends of their ranges.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use proptest::prelude::*;

use super::*;
use crate::relational::modes::TimePrecision;
use crate::relational::moment::NANOS_PER_DAY;

fn conversion(ty: ValueType, modes: ValueModes) -> Conversion {
    Conversion::new(ty, modes, Placeholder::new("__debezium_unavailable_value").unwrap())
}

fn decimals(ty: ValueType, decimal: DecimalMode, unscaled: i128, scale: i16) -> Result<Value, String> {
    let modes = ValueModes { decimal, ..ValueModes::default() };
    conversion(ty, modes).value(&Cell::Decimal(Decimal::new(unscaled, scale)))
}

/// As JSON has bytes.
fn base64(value: Value) -> String {
    let Value::Bytes(bytes) = value else { panic!("{value:?}") };
    STANDARD.encode(bytes)
}

const fn decimal(precision: u16, scale: i16) -> ValueType {
    ValueType::Decimal { precision, scale }
}

#[test]
fn sql_08_decimals_in_every_mode() {
    let nines = 10i128.pow(38) - 1;
    for (ty, unscaled, bytes, text, double) in [
        (decimal(10, 2), -1780, "+Qw=", "-17.80", -17.8),
        (decimal(19, 4), -123_400, "/h34", "-12.3400", -12.34),
        (decimal(10, 4), -50, "zg==", "-0.0050", -0.005),
        (decimal(38, 0), nines, "SztMqFqGxHoJiiI//////w==", "99999999999999999999999999999999999999", 1e38),
        (decimal(19, 4), 63_230, "APb+", "6.3230", 6.323),
        (decimal(5, 0), -1, "/w==", "-1", -1.0),
        (decimal(5, 0), 0, "AA==", "0", 0.0),
    ] {
        let ValueType::Decimal { scale, .. } = ty else { panic!() };
        assert_eq!(base64(decimals(ty, DecimalMode::Precise, unscaled, scale).unwrap()), bytes);
        assert_eq!(decimals(ty, DecimalMode::String, unscaled, scale).unwrap(), Value::text(text));
        assert_eq!(decimals(ty, DecimalMode::Double, unscaled, scale).unwrap(), Value::Float64(double));
    }
    let schema = conversion(decimal(19, 4), ValueModes::default()).schema();
    assert_eq!(schema.name.as_deref(), Some("org.apache.kafka.connect.data.Decimal"));
    let parameters: Vec<(&str, &str)> = schema.parameters.iter().map(|(k, v)| (&**k, &**v)).collect();
    assert_eq!(parameters, [("scale", "4"), ("connect.decimal.precision", "19")]);
}

#[test]
fn decimals_are_widened_and_never_rounded() {
    assert_eq!(decimals(decimal(10, 3), DecimalMode::String, 2001, 1).unwrap(), Value::text("200.100"));
    assert_eq!(decimals(decimal(10, 1), DecimalMode::String, 20_010, 2).unwrap(), Value::text("200.1"));
    let error = decimals(decimal(10, 1), DecimalMode::Precise, 20_011, 2).unwrap_err();
    assert_eq!(error, "a number does not fit the scale 1 of its column");
    assert!(decimals(decimal(38, 30), DecimalMode::Precise, i128::MAX, 0).is_err());
    let whole = conversion(decimal(10, 2), ValueModes::default()).value(&Cell::Int(5)).unwrap();
    assert_eq!(base64(whole), STANDARD.encode(500i16.to_be_bytes()));
}

#[test]
fn decimals_with_a_scale_of_their_own() {
    let value = |mode, unscaled, scale| decimals(ValueType::VariableDecimal, mode, unscaled, scale).unwrap();
    let bytes = Value::Bytes(Bytes::copy_from_slice(&[1, 0x2E, 0x0B]));
    assert_eq!(value(DecimalMode::Precise, 77_323, 3), Value::Struct(vec![Value::Int32(3), bytes]));
    assert_eq!(value(DecimalMode::String, 77_323, 3), Value::text("77.323"));
    assert_eq!(value(DecimalMode::Double, 77_323, -3), Value::Float64(77_323_000.0));
    let schema = conversion(ValueType::VariableDecimal, ValueModes::default()).schema();
    assert_eq!(schema.name.as_deref(), Some("io.debezium.data.VariableScaleDecimal"));
    assert_eq!(schema.fields().iter().map(|f| &*f.name).collect::<Vec<_>>(), ["scale", "value"]);
}

#[test]
fn cnv_04_bytes_in_every_mode() {
    let bytes = Bytes::from_static(&[0xFB, 0xFF, 0x10, 0x00]);
    for (binary, text) in
        [(BinaryMode::Base64, "+/8QAA=="), (BinaryMode::Base64UrlSafe, "-_8QAA=="), (BinaryMode::Hex, "fbff1000")]
    {
        let conversion = conversion(ValueType::Bytes, ValueModes { binary, ..ValueModes::default() });
        assert_eq!(conversion.schema(), Schema::string());
        assert_eq!(conversion.value(&Cell::Bytes(bytes.clone())).unwrap(), Value::text(text));
        assert_eq!(conversion.value(&Cell::Bytes(Bytes::new())).unwrap(), Value::text(""));
        assert_eq!(conversion.value(&Cell::Null).unwrap(), Value::Null);
    }
    let plain = conversion(ValueType::Bytes, ValueModes::default());
    assert_eq!(plain.schema(), Schema::bytes());
    assert_eq!(base64(plain.value(&Cell::Bytes(bytes.clone())).unwrap()), "+/8QAA==", "as JSON has it");
    assert_eq!(plain.value(&Cell::Bytes(bytes.clone())).unwrap(), Value::Bytes(bytes));
    assert_eq!(plain.value(&Cell::Bytes(Bytes::new())).unwrap(), Value::Bytes(Bytes::new()));
    assert_eq!(plain.value(&Cell::Null).unwrap(), Value::Null);
}

#[test]
fn sql_11_values_that_the_log_does_not_hold() {
    let value = |ty, modes| conversion(ty, modes).value(&Cell::Unavailable).unwrap();
    let text = "__debezium_unavailable_value";
    let plain = ValueModes::default();
    assert_eq!(value(ValueType::Text(TextKind::Plain), plain), Value::text(text));
    assert_eq!(base64(value(ValueType::Bytes, plain)), "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ==");
    let hex = ValueModes { binary: BinaryMode::Hex, ..plain };
    assert_eq!(value(ValueType::Bytes, hex), Value::text(crate::position::hex(text.as_bytes())));
    assert_eq!(value(ValueType::Int32, plain), Value::Null);

    let raw = Placeholder::new("hex:41fF").unwrap();
    assert_eq!((&*raw.text, raw.bytes.as_ref()), ("A\u{FFFD}", [0x41, 0xFF].as_slice()));
    for wrong in ["hex:4", "hex:+1", "hex:xy", "hex:äö"] {
        assert!(Placeholder::check(wrong).is_err(), "{wrong}");
    }
    assert_eq!(Placeholder::check("hex:"), Ok(()));
}

#[test]
fn numbers_and_their_ends() {
    let value = |ty, cell| conversion(ty, ValueModes::default()).value(&cell);
    assert_eq!(value(ValueType::Int16, Cell::Int(255)), Ok(Value::Int16(255)));
    assert_eq!(value(ValueType::Int16, Cell::Int(-32_768)), Ok(Value::Int16(i16::MIN)));
    assert_eq!(value(ValueType::Int16, Cell::Int(32_768)), Err("a number does not fit into 16 bits".to_owned()));
    assert_eq!(value(ValueType::Int32, Cell::Int(1 << 31)), Err("a number does not fit into 32 bits".to_owned()));
    assert_eq!(value(ValueType::Int64, Cell::Int(i64::MIN)), Ok(Value::Int64(i64::MIN)));
    assert_eq!(value(ValueType::Float32, Cell::Float32(0.1)), Ok(Value::Float32(0.1)));
    assert_eq!(value(ValueType::Boolean, Cell::Bool(true)), Ok(Value::Bool(true)));
    assert_eq!(value(ValueType::Int32, Cell::text("7")), Err("a text came for a column of type Int32".to_owned()));
}

#[test]
fn sql_39_texts_with_a_meaning() {
    for (kind, name) in [
        (TextKind::Plain, None),
        (TextKind::Json, Some("io.debezium.data.Json")),
        (TextKind::Xml, Some("io.debezium.data.Xml")),
        (TextKind::Uuid, Some("io.debezium.data.Uuid")),
    ] {
        let conversion = conversion(ValueType::Text(kind), ValueModes::default());
        assert_eq!(conversion.schema().name.as_deref(), name);
        assert_eq!(conversion.value(&Cell::text("x")).unwrap(), Value::text("x"));
    }
}

/// Of every type in every mode the zero is a value of the schema.
#[test]
fn zeros_fit_their_schemas() {
    use crate::convert::{Converter, JsonConverter};
    let types = [
        (ValueType::Boolean, "false"),
        (ValueType::Int16, "0"),
        (ValueType::Int32, "0"),
        (ValueType::Int64, "0"),
        (ValueType::Float32, "0.0"),
        (ValueType::Float64, "0.0"),
        (decimal(10, 2), "\"AA==\""),
        (ValueType::VariableDecimal, r#"{"scale":0,"value":"AA=="}"#),
        (ValueType::Date, "0"),
        (ValueType::Time { fraction: 7 }, "0"),
        (ValueType::Timestamp { fraction: 0 }, "0"),
        (ValueType::ZonedTimestamp { fraction: 7 }, "\"1970-01-01T00:00:00Z\""),
        (ValueType::Text(TextKind::Plain), "\"\""),
        (ValueType::Bytes, "\"\""),
    ];
    let json = |ty, modes| {
        let conversion = conversion(ty, modes);
        let datum = crate::record::Datum::new(conversion.schema().into(), conversion.zero());
        let mut out = Vec::new();
        let mut converter = JsonConverter { schemas: false, ..JsonConverter::with_schemas() };
        converter.convert_datum(&"t".into(), &datum, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    };
    for (ty, expected) in types {
        assert_eq!(json(ty, ValueModes::default()), expected, "{ty:?}");
        for time in [TimePrecision::Connect, TimePrecision::IsoString, TimePrecision::Structured] {
            for decimal in [DecimalMode::Double, DecimalMode::String] {
                assert_ne!(json(ty, ValueModes { time, decimal, binary: BinaryMode::Hex }), "null", "{ty:?}");
            }
        }
    }
    let strings = ValueModes { decimal: DecimalMode::String, ..ValueModes::default() };
    assert_eq!(json(decimal(10, 2), strings), "\"0.00\"");
}

fn any_cell() -> impl Strategy<Value = Cell> {
    let time = || (0..NANOS_PER_DAY).prop_map(|nanos| TimeOfDay::from_nanos(nanos).unwrap());
    let timestamp = move || (any::<i32>(), time()).prop_map(|(days, time)| Timestamp { date: Date(days), time });
    let zoned = (timestamp(), -64_800..=64_800)
        .prop_map(|(local, offset_seconds)| Cell::ZonedTimestamp(ZonedTimestamp { local, offset_seconds }));
    prop_oneof![
        Just(Cell::Null),
        Just(Cell::Unavailable),
        any::<bool>().prop_map(Cell::Bool),
        any::<i64>().prop_map(Cell::Int),
        any::<f32>().prop_map(Cell::Float32),
        any::<f64>().prop_map(Cell::Float64),
        (any::<i128>(), -400..400_i16).prop_map(|(unscaled, scale)| Cell::Decimal(Decimal::new(unscaled, scale))),
        any::<i32>().prop_map(|days| Cell::Date(Date(days))),
        time().prop_map(Cell::Time),
        timestamp().prop_map(Cell::Timestamp),
        zoned,
        "\\PC{0,8}".prop_map(|text: String| Cell::text(text)),
        any::<Vec<u8>>().prop_map(|bytes| Cell::Bytes(bytes.into())),
    ]
}

fn any_type() -> impl Strategy<Value = ValueType> {
    let fraction = || 0..=9_u8;
    prop_oneof![
        Just(ValueType::Boolean),
        Just(ValueType::Int16),
        Just(ValueType::Int32),
        Just(ValueType::Int64),
        Just(ValueType::Float32),
        Just(ValueType::Float64),
        (1..39_u16, -10..39_i16).prop_map(|(precision, scale)| ValueType::Decimal { precision, scale }),
        Just(ValueType::VariableDecimal),
        Just(ValueType::Date),
        fraction().prop_map(|fraction| ValueType::Time { fraction }),
        fraction().prop_map(|fraction| ValueType::Timestamp { fraction }),
        fraction().prop_map(|fraction| ValueType::ZonedTimestamp { fraction }),
        Just(ValueType::Text(TextKind::Json)),
        Just(ValueType::Bytes),
    ]
}

fn any_modes() -> impl Strategy<Value = ValueModes> {
    use BinaryMode as B;
    use DecimalMode as D;
    use TimePrecision as T;
    let decimal = prop::sample::select(vec![D::Precise, D::Double, D::String]);
    let time = prop::sample::select(vec![
        T::Adaptive,
        T::AdaptiveTimeMicroseconds,
        T::Connect,
        T::IsoString,
        T::Microseconds,
        T::Nanoseconds,
        T::Structured,
    ]);
    let binary = prop::sample::select(vec![B::Bytes, B::Base64, B::Base64UrlSafe, B::Hex]);
    (decimal, time, binary).prop_map(|(decimal, time, binary)| ValueModes { decimal, time, binary })
}

proptest! {
    /// Whatever comes is refused, or is a value that converters can write by its schema.
    #[test]
    fn a_value_fits_its_schema(ty in any_type(), modes in any_modes(), cell in any_cell()) {
        let conversion = conversion(ty, modes);
        if let Ok(value) = conversion.value(&cell) {
            let schema = Schema { optional: true, ..conversion.schema() };
            let datum = crate::record::Datum::new(schema.into(), value);
            let mut json = crate::convert::JsonConverter::with_schemas();
            let written = crate::convert::Converter::convert_datum(&mut json, &"t".into(), &datum, &mut Vec::new());
            prop_assert!(written.is_ok(), "{ty:?} {modes:?} {cell:?}: {written:?}");
        }
    }
}

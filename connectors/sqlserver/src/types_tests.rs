#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use std::borrow::Cow;

use thalweg_core::record::Value;
use thalweg_core::relational::modes::ValueModes;
use thalweg_core::relational::value_type::{Conversion, Placeholder};
use tiberius::numeric::Numeric;
use tiberius::time as wire;

use super::*;

fn described(base: &str, max_length: i32, precision: u8, scale: u8) -> Described {
    Described {
        name: "c".into(),
        id: 7,
        declared: base.into(),
        base: base.into(),
        max_length,
        precision,
        scale,
        nullable: false,
        identity: false,
        computed: false,
        default: None,
    }
}

#[test]
fn columns_are_described_as_the_jdbc_driver_does() {
    for (base, max_length, precision, scale, expected) in [
        ("bit", 1, 1, 0, (-7, 1, Some(0))),
        ("tinyint", 1, 3, 0, (-6, 3, Some(0))),
        ("smallint", 2, 5, 0, (5, 5, Some(0))),
        ("int", 4, 10, 0, (4, 10, Some(0))),
        ("bigint", 8, 19, 0, (-5, 19, Some(0))),
        ("real", 4, 24, 0, (7, 24, None)),
        ("float", 8, 53, 0, (8, 53, None)),
        ("decimal", 9, 18, 2, (3, 18, Some(2))),
        ("numeric", 17, 38, 0, (2, 38, Some(0))),
        ("money", 8, 19, 4, (3, 19, Some(4))),
        ("smallmoney", 4, 10, 4, (3, 10, Some(4))),
        ("char", 5, 0, 0, (1, 5, None)),
        ("varchar", 255, 0, 0, (12, 255, None)),
        ("varchar", -1, 0, 0, (12, 2_147_483_647, None)),
        ("text", 16, 0, 0, (-1, 2_147_483_647, None)),
        ("nchar", 10, 0, 0, (-15, 5, None)),
        ("nvarchar", 40, 0, 0, (-9, 20, None)),
        ("nvarchar", -1, 0, 0, (-9, 1_073_741_823, None)),
        ("ntext", 16, 0, 0, (-16, 1_073_741_823, None)),
        ("binary", 3, 0, 0, (-2, 3, None)),
        ("varbinary", -1, 0, 0, (-3, 2_147_483_647, None)),
        ("image", 16, 0, 0, (-4, 2_147_483_647, None)),
        ("timestamp", 8, 0, 0, (-2, 8, None)),
        ("uniqueidentifier", 16, 0, 0, (1, 36, None)),
        ("date", 3, 10, 0, (91, 10, Some(0))),
        ("time", 3, 8, 0, (92, 8, Some(0))),
        ("time", 5, 16, 7, (92, 16, Some(7))),
        ("datetime", 8, 23, 3, (93, 23, Some(3))),
        ("smalldatetime", 4, 16, 0, (93, 16, Some(0))),
        ("datetime2", 6, 19, 0, (93, 19, Some(0))),
        ("datetime2", 8, 27, 7, (93, 27, Some(7))),
        ("datetimeoffset", 8, 26, 0, (-155, 26, Some(0))),
        ("datetimeoffset", 10, 34, 7, (-155, 34, Some(7))),
    ] {
        let column = described(base, max_length, precision, scale).column(1);
        assert_eq!((column.jdbc_type, column.length.unwrap(), column.scale), expected, "{base}");
    }
}

#[test]
fn t_76_aliases_and_identities_show_in_the_name_only() {
    let mut column = described("int", 4, 10, 0);
    column.identity = true;
    assert_eq!(&*column.column(1).type_name, "int identity");
    assert!(!column.column(1).auto_incremented, "the driver does not tell it");
    let mut number = described("decimal", 9, 18, 0);
    number.identity = true;
    assert_eq!(&*number.column(1).type_name, "decimal() identity");
    let mut alias = described("varchar", 20, 0, 0);
    alias.declared = "phone".into();
    let alias = alias.column(3);
    assert_eq!((&*alias.type_name, alias.jdbc_type, alias.length, alias.position), ("phone", 12, Some(20), 3));
}

#[test]
fn t_01_a_computed_column_may_be_null() {
    let mut column = described("int", 4, 10, 0);
    column.computed = true;
    assert!(column.column(1).optional && !column.column(1).generated);
}

#[test]
fn sql_39_types_without_mapping_are_left_out() {
    assert_eq!(value_type(&described("sql_variant", 8016, 0, 0).column(1)), None);
    assert_eq!(value_type(&described("vector", 20, 0, 0).column(1)), None);
    for clr in ["hierarchyid", "geometry", "geography", "my_point"] {
        assert_eq!(value_type(&described(clr, -1, 0, 0).column(1)), Some(ValueType::Bytes), "{clr}");
    }
    assert_eq!(value_type(&described("xml", -1, 0, 0).column(1)), Some(ValueType::Text(TextKind::Plain)));
}

/// As messages have it by default.
fn value(base: &str, precision: u8, scale: u8, data: ColumnData<'static>) -> Value {
    let ty = value_type(&described(base, 8, precision, scale).column(1)).unwrap();
    let conversion = Conversion::new(ty, ValueModes::default(), Placeholder::new("?").unwrap());
    conversion.value(&cell(data).unwrap()).unwrap()
}

const DAY: u32 = 736_887; // 2018-07-13, counted from 0001-01-01.

fn time(base: &str, increments: u64, scale: u8) -> Value {
    value(base, 0, scale, ColumnData::Time(Some(wire::Time::new(increments, scale))))
}

#[test]
fn sql_05_times_keep_their_precision() {
    assert_eq!(time("time", 3_742_568, 2), Value::Int32(37_425_680));
    assert_eq!(time("time", 374_256_789, 4), Value::Int64(37_425_678_900));
    assert_eq!(time("time", 374_256_789_012, 7), Value::Int64(37_425_678_901_200));
    assert_eq!(time("time", 863_999_999_999, 7), Value::Int64(86_399_999_999_900));
    let at = wire::DateTime2::new(wire::Date::new(DAY), wire::Time::new(410_253_400_000, 7));
    assert_eq!(value("datetime2", 0, 7, ColumnData::DateTime2(Some(at))), Value::Int64(1_531_481_025_340_000_000));
    let date = ColumnData::Date(Some(wire::Date::new(DAY)));
    assert_eq!(value("date", 0, 0, date), Value::Int32(17_725));
}

fn datetime(days: i32, ticks: u32) -> Value {
    value("datetime", 0, 3, ColumnData::DateTime(Some(wire::DateTime::new(days, ticks))))
}

#[test]
fn sql_07_datetime_before_1900_and_its_ticks() {
    assert_eq!(datetime(-2, 0), Value::Int64(-2_209_161_600_000));
    assert_eq!(datetime(-53_690, 0), Value::Int64(-6_847_804_800_000));
    // 2021-03-04 05:06:07 and 266 ticks.
    assert_eq!(datetime(44_257, 18_367 * 300 + 266), Value::Int64(1_614_834_367_887));
    assert_eq!(datetime(25_567, 1), Value::Int64(3));
    assert_eq!(datetime(25_567, 2), Value::Int64(7));
    assert_eq!(datetime(25_567, 25_919_999), Value::Int64(86_399_997));
    let minutes = wire::SmallDateTime::new(43_292, 14 * 60 + 24);
    assert_eq!(value("smalldatetime", 0, 0, ColumnData::SmallDateTime(Some(minutes))), Value::Int64(1_531_491_840_000));
}

#[test]
fn t_54_offsets_are_kept() {
    // 2018-07-13 01:23:45.456 in UTC.
    let utc = wire::DateTime2::new(wire::Date::new(DAY), wire::Time::new(5_025_456, 3));
    let text = |offset| {
        let Value::String(text) =
            value("datetimeoffset", 0, 3, ColumnData::DateTimeOffset(Some(wire::DateTimeOffset::new(utc, offset))))
        else {
            panic!("no text")
        };
        text.as_str().into_owned()
    };
    assert_eq!(text(660), "2018-07-13T12:23:45.456+11:00");
    assert_eq!(text(0), "2018-07-13T01:23:45.456Z");
    assert_eq!(text(-210), "2018-07-12T21:53:45.456-03:30");
    assert_eq!(text(840), "2018-07-13T15:23:45.456+14:00");
}

#[test]
fn sql_08_negative_numbers_keep_all_digits() {
    let text = |value: i128, precision, scale| {
        let number = Numeric::new_with_scale(value, scale);
        match cell(ColumnData::Numeric(Some(number))).unwrap() {
            Cell::Decimal(decimal) => {
                assert!(matches!(
                    self::value("decimal", precision, scale, ColumnData::Numeric(Some(number))),
                    Value::Bytes(_)
                ));
                decimal.plain_text()
            }
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(text(-1780, 10, 2), "-17.80");
    assert_eq!(text(-123, 5, 4), "-0.0123");
    assert_eq!(text(-50, 10, 4), "-0.0050");
    assert_eq!(text(10_i128.pow(38) - 1, 38, 0), "9".repeat(38));
}

#[test]
fn other_values_come_as_they_are() {
    let uuid = tiberius::Uuid::from_u128(0x6f96_19ff_8b86_d011_b42d_00c0_4fc9_64ff);
    assert_eq!(
        value("uniqueidentifier", 0, 0, ColumnData::Guid(Some(uuid))),
        Value::text("6F9619FF-8B86-D011-B42D-00C04FC964FF")
    );
    assert_eq!(value("tinyint", 0, 0, ColumnData::U8(Some(255))), Value::Int16(255));
    assert_eq!(value("bigint", 0, 0, ColumnData::I64(Some(i64::MIN))), Value::Int64(i64::MIN));
    assert_eq!(value("nvarchar", 0, 0, ColumnData::String(Some(Cow::Borrowed("")))), Value::text(""));
    assert_eq!(value("bit", 0, 0, ColumnData::Bit(None)), Value::Null);
    assert_eq!(value("xml", 0, 0, ColumnData::Xml(None)), Value::Null);
}

#[test]
fn damaged_moments_are_refused() {
    for data in [
        ColumnData::Time(Some(wire::Time::new(u64::MAX, 0))),
        ColumnData::Time(Some(wire::Time::new(86_400, 0))),
        ColumnData::DateTime(Some(wire::DateTime::new(0, 25_920_000))),
        ColumnData::SmallDateTime(Some(wire::SmallDateTime::new(0, 1_440))),
    ] {
        assert!(cell(data.clone()).is_err(), "{data:?}");
    }
    let far = ColumnData::DateTime(Some(wire::DateTime::new(i32::MIN, 0)));
    let _ = cell(far);
}

#[test]
fn money_is_selected_as_a_decimal() {
    assert_eq!(described("money", 8, 19, 4).selected("[m]"), "CAST([m] AS decimal(19,4))");
    assert_eq!(described("smallmoney", 4, 10, 4).selected("[m]"), "CAST([m] AS decimal(10,4))");
    assert_eq!(described("int", 4, 10, 0).selected("[m]"), "[m]");
}

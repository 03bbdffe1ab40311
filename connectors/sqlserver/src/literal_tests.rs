#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use proptest::prelude::*;

use super::*;
use crate::types::Described;

fn column(base: &str, precision: u8, scale: u8, definition: &str) -> Column {
    let described = Described {
        name: "c".into(),
        id: 1,
        declared: base.into(),
        base: base.into(),
        max_length: 20,
        precision,
        scale,
        nullable: true,
        identity: false,
        computed: false,
        default: Some(definition.into()),
    };
    described.column(1)
}

fn default(base: &str, scale: u8, definition: &str) -> Result<Option<Cell>, String> {
    parse(definition, &column(base, 20, scale, definition))
}

fn constant(base: &str, scale: u8, definition: &str) -> Cell {
    default(base, scale, definition).unwrap().unwrap()
}

fn at(year: i32, month: u8, day: u8, nanos: u64) -> Timestamp {
    Timestamp { date: Date::new(year, month, day).unwrap(), time: TimeOfDay::from_nanos(nanos).unwrap() }
}

const NOON: u64 = 45_296_000_000_000;

#[test]
fn sql_09_constants_of_every_type() {
    let decimal = |unscaled, scale| Cell::Decimal(Decimal::new(unscaled, scale));
    for (base, scale, definition, expected) in [
        ("int", 0, "((-5))", Cell::Int(-5)),
        ("bigint", 0, "((3147483648.))", Cell::Int(3_147_483_648)),
        ("bit", 0, "((1))", Cell::Bool(true)),
        ("bit", 0, "('false')", Cell::Bool(false)),
        ("decimal", 5, "((100.12345))", decimal(10_012_345, 5)),
        ("numeric", 3, "((200.1))", decimal(200_100, 3)),
        ("money", 4, "((12.5))", decimal(125_000, 4)),
        ("smallmoney", 4, "((-$0.005))", decimal(-50, 4)),
        ("float", 0, "((1.2345e2))", Cell::Float64(123.45)),
        ("float", 0, "((1.2345000000000000e+003))", Cell::Float64(1234.5)),
        ("real", 0, "((1.5))", Cell::Float32(1.5)),
        ("date", 0, "('2019-02-03')", Cell::Date(Date(17_930))),
        ("time", 7, "('12:34:56.1234567')", Cell::Time(TimeOfDay::from_nanos(45_296_123_456_700).unwrap())),
        ("datetime", 3, "('2019-01-01 12:34:56.789')", Cell::Timestamp(at(2019, 1, 1, NOON + 790_000_000))),
        ("datetime2", 7, "('2019-01-01T12:34:56.1234567')", Cell::Timestamp(at(2019, 1, 1, NOON + 123_456_700))),
        ("smalldatetime", 0, "('20190101 12:34:30')", Cell::Timestamp(at(2019, 1, 1, 45_300_000_000_000))),
        ("char", 0, "('aaa')", Cell::text("aaa".to_owned())),
        ("nvarchar", 0, "(N'eee')", Cell::text("eee".to_owned())),
        ("varbinary", 0, "(0x0102)", Cell::Bytes(Bytes::from_static(&[1, 2]))),
        ("uniqueidentifier", 0, "('6F96')", Cell::text("6F96".to_owned())),
    ] {
        assert_eq!(constant(base, scale, definition), expected, "{base} {definition}");
    }
}

#[test]
fn t_57_quotes_parentheses_and_signs() {
    for (definition, expected) in [
        ("('a(b)')", "a(b)"),
        ("(N'it''s')", "it's"),
        ("('')", ""),
        ("(')')", ")"),
        ("('''')", "'"),
        ("((N'(('))", "(("),
        ("((7))", "7"),
        ("((-7))", "-7"),
    ] {
        assert_eq!(constant("nvarchar", 0, definition), Cell::text(expected.to_owned()), "{definition}");
    }
    assert_eq!(constant("decimal", 1, "((-1.5))"), Cell::Decimal(Decimal::new(-15, 1)));
    assert_eq!(constant("decimal", 1, "(-(1.55))"), Cell::Decimal(Decimal::new(-16, 1)));
    assert_eq!(constant("int", 0, "('5')"), Cell::Int(5));
    assert_eq!(constant("int", 0, "((5.9))"), Cell::Int(5));
    assert_eq!(constant("tinyint", 0, "((255))"), Cell::Int(255));
    assert_eq!(constant("varbinary", 0, "(0x102)"), Cell::Bytes(Bytes::from_static(&[1, 2])));
    assert_eq!(constant("varbinary", 0, "(0x)"), Cell::Bytes(Bytes::new()));
    assert_eq!(default("int", 0, "(NULL)"), Ok(None));
}

#[test]
fn sql_10_what_must_be_evaluated_is_no_default() {
    for (base, definition) in [
        ("datetime", "(getdate())"),
        ("uniqueidentifier", "(newid())"),
        ("int", "(NEXT VALUE FOR [dbo].[sq])"),
        ("date", "(CONVERT([date],getdate()))"),
        ("int", "((1)+(2))"),
        ("nvarchar", "('a'+'b')"),
        ("nvarchar", "((1.5))"),
        ("int", "((1))(("),
        ("int", "((2147483648.))"),
        ("smallint", "((40000))"),
        ("tinyint", "((-1))"),
        ("varbinary", "(0x0g)"),
        ("varbinary", "((1))"),
        ("date", "('2019-02-30')"),
        ("date", "('0000-01-01')"),
        ("date", "('3 Feb 2019')"),
        ("time", "('25:00')"),
        ("time", "('12:00:00.')"),
        ("datetimeoffset", "('2019-01-01 00:00 +15:00')"),
        ("float", "((1e999))"),
        ("decimal", "((1e999))"),
        ("int", ""),
        ("int", "()"),
        ("nvarchar", "(')"),
    ] {
        let told = default(base, 0, definition).unwrap_err();
        let expected = format!(
            "Cannot parse column default value '{definition}' to type '{base}'. Expression evaluation is not supported."
        );
        assert_eq!(told, expected);
    }
    for base in ["sql_variant", "xml"] {
        assert_eq!(default(base, 0, "('x')"), Err(format!("Mapper for type '{base}' not found.")));
    }
}

#[test]
fn dates_and_times_round_as_the_server_does() {
    assert_eq!(
        constant("smalldatetime", 0, "('2018-07-13 14:23:45')"),
        Cell::Timestamp(at(2018, 7, 13, 51_840_000_000_000))
    );
    assert_eq!(constant("smalldatetime", 0, "('2018-12-31 23:59:45')"), Cell::Timestamp(at(2019, 1, 1, 0)));
    assert_eq!(constant("datetime", 3, "('2018-12-31 23:59:59.999')"), Cell::Timestamp(at(2019, 1, 1, 0)));
    assert_eq!(constant("datetime", 3, "('12:00')"), Cell::Timestamp(at(1900, 1, 1, 43_200_000_000_000)));
    let zoned =
        |nanos, offset_seconds| Cell::ZonedTimestamp(ZonedTimestamp { local: at(2018, 7, 13, nanos), offset_seconds });
    assert_eq!(constant("datetimeoffset", 3, "('2018-07-13 12:34:56.1239 +11:00')"), zoned(NOON + 123_000_000, 39_600));
    assert_eq!(constant("datetimeoffset", 0, "('2018-07-13T12:34:56Z')"), zoned(NOON, 0));
    assert_eq!(constant("datetimeoffset", 0, "('2018-07-13 12:34:56-05:30')"), zoned(NOON, -19_800));
}

proptest! {
    #[test]
    fn a_text_comes_out_as_it_went_in(text in "\\PC{0,30}") {
        let definition = format!("(N'{}')", text.replace('\'', "''"));
        prop_assert_eq!(constant("nvarchar", 0, &definition), Cell::text(text));
    }

    #[test]
    fn whole_numbers_come_out_as_they_went_in(number: i64) {
        prop_assert_eq!(constant("bigint", 0, &format!("(({number}))")), Cell::Int(number));
    }

    #[test]
    fn any_definition_is_a_constant_or_told(definition in "[-+(N'x0-9.e:$ )TZ]{0,24}|\\PC{0,24}", at in 0..12_usize) {
        let bases = ["int", "bit", "decimal", "float", "nvarchar", "varbinary", "date", "time", "datetime", "datetime2", "smalldatetime", "datetimeoffset"];
        let _ = default(bases[at], 3, &definition);
    }
}

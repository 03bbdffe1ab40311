//! Every type in both directions.

use std::borrow::Cow;

use thalweg_sqlserver_emulator::session::{Answers, Cancelled, Request};
use thalweg_sqlserver_emulator::types::{Length, SqlType};
use thalweg_sqlserver_emulator::value::SqlValue;
use thalweg_sqlserver_emulator::wire::server::Options;
use tiberius::numeric::Numeric;
use tiberius::time::{Date, DateTime, DateTime2, DateTimeOffset, SmallDateTime, Time};
use tiberius::xml::XmlData;
use tiberius::{ColumnData, ToSql, Uuid};

use crate::script::{client, column, start};

/// 2008-02-29, counted from 0001-01-01.
const DAY: i32 = 733_100;
/// 12:34:56.123.
const TICKS: u64 = 452_961_230_000;
/// From 0001-01-01 to 1900-01-01.
const DAYS_TO_1900: i32 = 693_595;

fn text(text: &str) -> SqlValue {
    SqlValue::Text(text.into())
}

fn bytes(bytes: &[u8]) -> SqlValue {
    SqlValue::Bytes(bytes.to_vec())
}

fn string(text: &str) -> ColumnData<'static> {
    ColumnData::String(Some(Cow::Owned(text.to_owned())))
}

fn binary(bytes: &[u8]) -> ColumnData<'static> {
    ColumnData::Binary(Some(Cow::Owned(bytes.to_vec())))
}

fn variant(kind: SqlType, value: SqlValue) -> SqlValue {
    SqlValue::Variant(Box::new((kind, value)))
}

fn datetime2(scale: u8, increments: u64) -> DateTime2 {
    DateTime2::new(Date::new(DAY as u32), Time::new(increments, scale))
}

/// What the session sends and what the client has to see.
fn cases() -> Vec<(SqlType, SqlValue, ColumnData<'static>)> {
    let datetime = SqlValue::DateTime { days: DAY, ticks: TICKS };
    let uuid = *Uuid::from_u128(0x0011_2233_4455_6677_8899_aabb_ccdd_eeff).as_bytes();
    let number = |value, scale| ColumnData::Numeric(Some(Numeric::new_with_scale(value, scale)));
    let mut cases = vec![
        (SqlType::Bit, SqlValue::Bit(true), ColumnData::Bit(Some(true))),
        (SqlType::TinyInt, SqlValue::Int(255), ColumnData::U8(Some(255))),
        (SqlType::SmallInt, SqlValue::Int(-32768), ColumnData::I16(Some(-32768))),
        (SqlType::Int, SqlValue::Int(-2_147_483_648), ColumnData::I32(Some(i32::MIN))),
        (SqlType::BigInt, SqlValue::Int(i64::MAX), ColumnData::I64(Some(i64::MAX))),
        (SqlType::Real, SqlValue::Real(-1.5), ColumnData::F32(Some(-1.5))),
        (SqlType::Float, SqlValue::Float(1e300), ColumnData::F64(Some(1e300))),
        // The client has money as a double.
        (SqlType::SmallMoney, SqlValue::Money(-12_345), ColumnData::F64(Some(-1.2345))),
        (SqlType::Money, SqlValue::Money(98_765_432_101), ColumnData::F64(Some(9_876_543.210_1))),
        (SqlType::Date, SqlValue::Date(DAY), ColumnData::Date(Some(Date::new(DAY as u32)))),
        (
            SqlType::DateTime,
            datetime.clone(),
            ColumnData::DateTime(Some(DateTime::new(DAY - DAYS_TO_1900, 45_296 * 300 + 37))),
        ),
        (
            SqlType::SmallDateTime,
            datetime.clone(),
            ColumnData::SmallDateTime(Some(SmallDateTime::new((DAY - DAYS_TO_1900) as u16, 12 * 60 + 35))),
        ),
        (SqlType::UniqueIdentifier, SqlValue::Uuid(uuid), ColumnData::Guid(Some(Uuid::from_bytes(uuid)))),
        (SqlType::Char(4), text("é€"), string("é€  ")),
        (SqlType::VarChar(Length::Limited(8000)), text("naïve"), string("naïve")),
        (SqlType::VarChar(Length::Max), text("naïve"), string("naïve")),
        (SqlType::NChar(3), text("ж"), string("ж  ")),
        (SqlType::NVarChar(Length::Limited(4000)), text("grün 😀"), string("grün 😀")),
        (SqlType::NVarChar(Length::Max), text(""), string("")),
        (SqlType::Binary(3), bytes(&[1, 2]), binary(&[1, 2, 0])),
        (SqlType::VarBinary(Length::Limited(8000)), bytes(&[]), binary(&[])),
        (SqlType::VarBinary(Length::Max), bytes(&[9; 9000]), binary(&[9; 9000])),
        (SqlType::Text, text("naïve"), string("naïve")),
        (SqlType::NText, text("grün 😀"), string("grün 😀")),
        (SqlType::Image, bytes(&[1, 0, 255]), binary(&[1, 0, 255])),
        (SqlType::Xml, text("<ü/>"), ColumnData::Xml(Some(Cow::Owned(XmlData::new("<ü/>"))))),
        (SqlType::RowVersion, bytes(&[0, 0, 0, 0, 0, 0, 7, 209]), binary(&[0, 0, 0, 0, 0, 0, 7, 209])),
        (SqlType::Clr("hierarchyid"), bytes(&[0x58]), binary(&[0x58])),
        (SqlType::Clr("geography"), bytes(&[1; 5000]), binary(&[1; 5000])),
        (SqlType::SqlVariant, variant(SqlType::Int, SqlValue::Int(7)), ColumnData::I32(Some(7))),
        (SqlType::SqlVariant, variant(SqlType::VarChar(Length::Limited(20)), text("naïve")), string("naïve")),
        (SqlType::SqlVariant, variant(SqlType::NVarChar(Length::Limited(20)), text("ж")), string("ж")),
        (SqlType::SqlVariant, variant(SqlType::VarBinary(Length::Limited(4)), bytes(&[1])), binary(&[1])),
        (
            SqlType::SqlVariant,
            variant(SqlType::Decimal { precision: 30, scale: 2 }, SqlValue::Decimal { units: -5, scale: 2 }),
            number(-5, 2),
        ),
        (
            SqlType::SqlVariant,
            variant(SqlType::DateTime2 { scale: 3 }, datetime.clone()),
            ColumnData::DateTime2(Some(datetime2(3, 45_296_123))),
        ),
        (
            SqlType::SqlVariant,
            variant(SqlType::UniqueIdentifier, SqlValue::Uuid(uuid)),
            ColumnData::Guid(Some(Uuid::from_bytes(uuid))),
        ),
    ];
    for precision in [1, 9, 10, 19, 20, 28, 29, 38] {
        let scale = precision / 2;
        let units = -(10_i128.pow(precision.into()) - 1);
        let value = SqlValue::Decimal { units, scale };
        cases.push((SqlType::Decimal { precision, scale }, value.clone(), number(units, scale)));
        cases.push((SqlType::Numeric { precision, scale }, value, number(units, scale)));
    }
    for (scale, increments) in
        (0..=7).zip([45_296, 452_961, 4_529_612, 45_296_123, 452_961_230, 4_529_612_300, 45_296_123_000, TICKS])
    {
        let time = Time::new(increments, scale);
        cases.push((SqlType::Time { scale }, SqlValue::Time(TICKS), ColumnData::Time(Some(time))));
        let both = datetime2(scale, increments);
        cases.push((SqlType::DateTime2 { scale }, datetime.clone(), ColumnData::DateTime2(Some(both))));
        let offset = SqlValue::DateTimeOffset { days: DAY, ticks: TICKS, offset: -330 };
        let with_offset = ColumnData::DateTimeOffset(Some(DateTimeOffset::new(both, -330)));
        cases.push((SqlType::DateTimeOffset { scale }, offset, with_offset));
    }
    cases
}

/// A row of one value, alone in its result.
fn answer_alone(kind: &SqlType, nullable: bool, value: &SqlValue, answers: &mut dyn Answers) -> Result<(), Cancelled> {
    answers.columns(&[column("v", kind.clone(), nullable)])?;
    answers.row(std::slice::from_ref(value))?;
    answers.done(Some(1))
}

#[tokio::test]
async fn every_type_reaches_the_client() {
    let (_script, server) = start(Options::default(), |_, answers| {
        for (kind, value, _) in cases() {
            answer_alone(&kind, true, &value, answers)?;
            answer_alone(&kind, false, &value, answers)?;
        }
        Ok(())
    })
    .await;
    let mut client = client(&server).await;
    let results = client.simple_query("SELECT everything").await.unwrap().into_results().await.unwrap();
    let expected = cases();
    assert_eq!(results.len(), 2 * expected.len());
    for ((kind, _, expected), results) in expected.iter().zip(results.chunks(2)) {
        for (nullable, rows) in [true, false].iter().zip(results) {
            let [row] = rows.as_slice() else { panic!("one row of {kind:?}") };
            let (_, seen) = row.cells().next().unwrap();
            assert_eq!(seen, expected, "{kind:?}, nullable: {nullable}");
        }
    }
}

fn is_null(data: &ColumnData<'_>) -> bool {
    format!("{data:?}").ends_with("(None)")
}

#[tokio::test]
async fn every_type_can_be_null_alone_and_among_others() {
    let (_script, server) = start(Options::default(), |_, answers| {
        let cases = cases();
        for (kind, ..) in &cases {
            answer_alone(kind, true, &SqlValue::Null, answers)?;
        }
        // A row without a bitmap, then rows with one: every second value NULL, and all of them.
        let columns: Vec<_> = cases.iter().map(|(kind, ..)| column("v", kind.clone(), true)).collect();
        answers.columns(&columns)?;
        for null in [|_| false, |i| i % 2 == 0, |i| i % 2 == 1, |_| true] as [fn(usize) -> bool; 4] {
            let values: Vec<_> = cases
                .iter()
                .enumerate()
                .map(|(i, (_, value, _))| if null(i) { SqlValue::Null } else { value.clone() })
                .collect();
            answers.row(&values)?;
        }
        answers.done(Some(4))
    })
    .await;
    let mut client = client(&server).await;
    let mut results = client.simple_query("SELECT nothing").await.unwrap().into_results().await.unwrap();
    let expected = cases();
    let together = results.pop().unwrap();
    assert_eq!(results.len(), expected.len());
    for (rows, (kind, ..)) in results.iter().zip(&expected) {
        assert!(is_null(rows[0].cells().next().unwrap().1), "{kind:?}");
    }
    for (row, null) in
        together.iter().zip([|_| false, |i| i % 2 == 0, |i| i % 2 == 1, |_| true] as [fn(usize) -> bool; 4])
    {
        for (i, ((_, seen), (kind, _, expected))) in row.cells().zip(&expected).enumerate() {
            assert_eq!(is_null(seen), null(i), "{kind:?}");
            assert!(null(i) || seen == expected, "{kind:?}: {seen:?}");
        }
    }
    assert_eq!(together.len(), 4);
}

/// Sends the parameters of `sp_executesql` back as a row.
fn echo(request: &Request, answers: &mut dyn Answers) -> Result<(), Cancelled> {
    let Request::Procedure { name, parameters } = request else { panic!("{request:?}") };
    assert_eq!(
        (name.as_str(), parameters[0].name.as_str(), parameters[1].name.as_str()),
        ("sp_executesql", "stmt", "params")
    );
    let parameters = &parameters[2..];
    let columns: Vec<_> = parameters.iter().map(|p| column(&p.name, p.kind.clone(), true)).collect();
    answers.columns(&columns)?;
    answers.row(&parameters.iter().map(|p| p.value.clone()).collect::<Vec<_>>())?;
    answers.done(Some(1))?;
    answers.status(0)
}

#[tokio::test]
async fn parameters_of_every_type_that_the_client_has_come_back() {
    let (script, server) = start(Options::default(), echo).await;
    let mut client = client(&server).await;
    let long_text = "ж".repeat(100_000);
    let long_bytes = vec![5; 100_000];
    let time = Time::new(TICKS, 7);
    let given: Vec<ColumnData<'_>> = vec![
        ColumnData::Bit(Some(false)),
        ColumnData::U8(Some(200)),
        ColumnData::I16(Some(-2)),
        ColumnData::I32(Some(i32::MIN)),
        ColumnData::I64(Some(i64::MIN)),
        ColumnData::F32(Some(0.5)),
        ColumnData::F64(Some(-0.1)),
        string("grün 😀"),
        string(&long_text),
        binary(&[0, 1, 2]),
        binary(&long_bytes),
        ColumnData::Guid(Some(Uuid::from_u128(7))),
        ColumnData::Numeric(Some(Numeric::new_with_scale(-12_345, 3))),
        ColumnData::Numeric(Some(Numeric::new_with_scale(10_i128.pow(37), 0))),
        ColumnData::Date(Some(Date::new(DAY as u32))),
        ColumnData::Time(Some(time)),
        ColumnData::DateTime2(Some(datetime2(7, TICKS))),
        ColumnData::DateTimeOffset(Some(DateTimeOffset::new(datetime2(7, TICKS), 120))),
        ColumnData::DateTime(Some(DateTime::new(DAY - DAYS_TO_1900, 300))),
        ColumnData::SmallDateTime(Some(SmallDateTime::new(1, 2))),
        ColumnData::Xml(Some(Cow::Owned(XmlData::new("<ü/>")))),
    ];
    let parameters: Vec<&dyn ToSql> = given.iter().map(|d| d as &dyn ToSql).collect();
    let row = client.query("SELECT @P1", &parameters).await.unwrap().into_row().await.unwrap().unwrap();
    for ((column, seen), given) in row.cells().zip(&given) {
        assert_eq!(seen, given, "{}", column.name());
    }
    assert_eq!(row.len(), given.len());
    let Request::Procedure { parameters, .. } = script.requests().remove(0) else { panic!("a procedure") };
    let kinds: Vec<_> = parameters[9..14].iter().map(|p| &p.kind).collect();
    let expected = [
        &SqlType::NVarChar(Length::Limited(4000)),
        &SqlType::NVarChar(Length::Max),
        &SqlType::VarBinary(Length::Limited(8000)),
        &SqlType::VarBinary(Length::Max),
        &SqlType::UniqueIdentifier,
    ];
    assert_eq!(kinds, expected);
}

#[tokio::test]
async fn parameters_may_be_null() {
    let (_script, server) = start(Options::default(), echo).await;
    let mut client = client(&server).await;
    let given: [&dyn ToSql; 9] = [
        &None::<bool>,
        &None::<i32>,
        &None::<i64>,
        &None::<f64>,
        &None::<&str>,
        &None::<Vec<u8>>,
        &None::<Uuid>,
        &None::<Numeric>,
        &None::<u8>,
    ];
    let row = client.query("SELECT @P1", &given).await.unwrap().into_row().await.unwrap().unwrap();
    assert_eq!(row.len(), 9);
    for (column, seen) in row.cells() {
        assert!(is_null(seen), "{}: {seen:?}", column.name());
    }
}

//! Large results in little memory.

use futures::TryStreamExt;
use thalweg_sqlserver_emulator::types::{Length, SqlType};
use thalweg_sqlserver_emulator::value::SqlValue;
use thalweg_sqlserver_emulator::wire::server::Options;

use crate::script::{client, column, start};

const ROWS: i64 = 1_000_000;
/// What the rows have on the wire is four times as much.
const ALLOWED_KIB: u64 = 100 * 1024;

/// Largest size of this process so far.
fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[tokio::test]
async fn a_million_rows_go_through_a_fraction_of_their_size() {
    let before = peak_kib();
    let (_script, server) = start(Options::default(), |_, answers| {
        let text = SqlType::NVarChar(Length::Limited(200));
        answers.columns(&[column("n", SqlType::BigInt, false), column("t", text, true)])?;
        let text = SqlValue::Text("x".repeat(200));
        for number in 0..ROWS {
            answers.row(&[SqlValue::Int(number), text.clone()])?;
        }
        answers.done(Some(ROWS as u64))
    })
    .await;
    let mut config = crate::script::config(&server);
    config.packet_size(32767);
    let mut client = crate::script::connect(config, server.address().port()).await.unwrap();
    let mut rows = client.simple_query("SELECT n, t FROM large").await.unwrap().into_row_stream();
    let mut expected = 0;
    while let Some(row) = rows.try_next().await.unwrap() {
        assert_eq!(row.get::<i64, _>(0), Some(expected));
        assert_eq!(row.get::<&str, _>(1).map(str::len), Some(200));
        expected += 1;
    }
    assert_eq!(expected, ROWS);
    let grown = peak_kib() - before;
    assert!(grown < ALLOWED_KIB, "the process grew by {grown} KiB");
}

#[tokio::test]
async fn values_larger_than_packets_come_whole() {
    let (_script, server) = start(Options::default(), |_, answers| {
        answers.columns(&[
            column("b", SqlType::VarBinary(Length::Max), true),
            column("t", SqlType::NVarChar(Length::Max), true),
            column("i", SqlType::Image, true),
            column("x", SqlType::Xml, true),
        ])?;
        for length in [0, 1, 4079, 4080, 4081, 8040, 8041, 1_000_000] {
            answers.row(&[
                SqlValue::Bytes((0..length).map(|i| i as u8).collect()),
                SqlValue::Text("ж".repeat(length)),
                SqlValue::Bytes(vec![7; length]),
                SqlValue::Text(format!("<a>{}</a>", "x".repeat(length))),
            ])?;
        }
        answers.done(Some(8))
    })
    .await;
    let mut client = client(&server).await;
    let rows = client.simple_query("SELECT b, t FROM large").await.unwrap().into_first_result().await.unwrap();
    let lengths: Vec<usize> = rows
        .iter()
        .map(|row| {
            let bytes = row.get::<&[u8], _>(0).unwrap();
            assert!(bytes.iter().enumerate().all(|(i, b)| *b == i as u8));
            let text = row.get::<&str, _>(1).unwrap();
            assert!(text.chars().all(|c| c == 'ж'));
            assert_eq!(text.chars().count(), bytes.len());
            assert_eq!(row.get::<&[u8], _>(2).unwrap(), vec![7; bytes.len()]);
            assert_eq!(row.get::<&tiberius::xml::XmlData, _>(3).unwrap().as_ref().len(), bytes.len() + 7);
            bytes.len()
        })
        .collect();
    assert_eq!(lengths, [0, 1, 4079, 4080, 4081, 8040, 8041, 1_000_000]);
}

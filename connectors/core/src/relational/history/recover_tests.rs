//! Histories of a source whose positions are numbers.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use serde_json::{Value as Json, json};

use super::super::memory::MemoryHistory;
use super::*;
use crate::relational::column::{Column, jdbc};
use crate::relational::table::Table;
use crate::relational::table_filter::NameLists;
use crate::relational::table_id::NameForm;

struct Numbers;

impl HistoryOrder for Numbers {
    fn is_at_or_before(&self, recorded: &OffsetMap, stored: &OffsetMap) -> bool {
        recorded["lsn"].as_i64() <= stored["lsn"].as_i64()
    }
}

fn partition(database: &str) -> SourcePartition {
    SourcePartition::new([("server", "s1"), ("database", database)])
}

fn offset(lsn: i64) -> OffsetMap {
    json!({ "lsn": lsn }).as_object().unwrap().clone()
}

pub(in super::super) fn id(name: &str) -> TableId {
    TableId::new(Some("shop"), Some("dbo"), name)
}

/// A table of so many columns.
pub(in super::super) fn change(kind: ChangeKind, name: &str, columns: i32) -> TableChange {
    let columns = (1..=columns).map(|at| Column::new(&format!("c{at}"), at, jdbc::INTEGER, "int")).collect();
    TableChange::new(kind, Table::new(id(name), columns, Vec::new()).unwrap())
}

fn record(database: &str, lsn: i64, changes: Vec<TableChange>) -> HistoryRecord {
    HistoryRecord {
        source: partition(database),
        position: offset(lsn),
        ts_ms: Some(1),
        database_name: Some(database.to_owned()),
        schema_name: Some("dbo".to_owned()),
        ddl: None,
        changes: Some(changes),
    }
}

fn filter(exclude: &[&str]) -> TableFilter {
    let exclude = exclude.iter().map(|name| (*name).to_owned()).collect();
    let none = NameLists::default();
    let tables = NameLists { exclude, ..NameLists::default() };
    TableFilter::new(&none, &none, &tables, &[NameForm::WithoutCatalog]).unwrap()
}

pub(in super::super) struct Fixture {
    pub(in super::super) store: MemoryHistory,
    history: SchemaHistory,
}

impl Fixture {
    pub(in super::super) fn new(written: Captured) -> Self {
        let store = MemoryHistory::default();
        let history = SchemaHistory::new(Box::new(store.clone()), TwoParts::SchemaAndTable, written);
        Self { store, history }
    }

    pub(in super::super) async fn record(&mut self, database: &str, lsn: i64, changes: Vec<TableChange>) {
        self.history.record(record(database, lsn, changes), &filter(&["dbo.excluded"])).await.unwrap();
    }

    pub(in super::super) async fn resume(&mut self, lsn: i64, rebuilds: bool) -> Result<Resumed> {
        let stops = [(partition("shop"), offset(lsn))];
        self.history.resume(&stops, &Numbers, &filter(&["dbo.excluded"]), rebuilds).await
    }

    /// Names and numbers of columns at a position.
    async fn tables(&mut self, lsn: i64) -> Vec<(String, usize)> {
        let Resumed::Recovered(tables) = self.resume(lsn, false).await.unwrap() else { panic!() };
        tables.iter().map(|table| (table.id.table().to_owned(), table.columns().len())).collect()
    }
}

/// SQL-16 in small: tables are made, one grows, one is dropped and made again, one is renamed.
async fn eventful() -> Fixture {
    use ChangeKind::{Alter, Create, Drop};
    let mut fixture = Fixture::new(Captured::All);
    fixture.record("shop", 1, vec![change(Create, "a", 1)]).await;
    fixture.record("shop", 1, vec![change(Create, "b", 1), change(Create, "excluded", 1)]).await;
    fixture.record("other", 1, vec![change(Create, "x", 9)]).await;
    fixture.record("shop", 5, vec![change(Alter, "b", 2)]).await;
    fixture.record("shop", 6, vec![change(Drop, "a", 1)]).await;
    fixture.record("shop", 7, vec![change(Create, "a", 3)]).await;
    let renamed = TableChange { previous_id: Some(id("b")), ..change(Alter, "c", 2) };
    fixture.record("shop", 8, vec![renamed]).await;
    fixture
}

#[tokio::test]
async fn structures_are_those_of_the_stored_position() {
    let mut fixture = eventful().await;
    for (lsn, expected) in [
        (1, vec![("a", 1), ("b", 1)]),
        (4, vec![("a", 1), ("b", 1)]),
        (5, vec![("a", 1), ("b", 2)]),
        (6, vec![("b", 2)]),
        (7, vec![("a", 3), ("b", 2)]),
        (8, vec![("a", 3), ("c", 2)]),
        (99, vec![("a", 3), ("c", 2)]),
    ] {
        let expected: Vec<(String, usize)> = expected.into_iter().map(|(name, n)| (name.to_owned(), n)).collect();
        assert_eq!(fixture.tables(lsn).await, expected, "at {lsn}");
    }
}

#[tokio::test]
async fn without_an_offset_the_structures_are_read_anew() {
    let mut fixture = eventful().await;
    let resumed = fixture.history.resume(&[], &Numbers, &filter(&[]), false).await.unwrap();
    assert_eq!(resumed, Resumed::Fresh);
}

#[tokio::test]
async fn sql_41_a_lost_history_is_noticed() {
    let mut fixture = Fixture::new(Captured::All);
    for lsn in [3, 4] {
        let error = fixture.resume(lsn, false).await.unwrap_err();
        assert!(
            error.message.contains("is fully or partially missing")
                && error.advice().contains("snapshot.mode=recovery")
        );
        assert_eq!(error.policy(), crate::error::Policy::NeedsUser);
        assert_eq!(fixture.resume(lsn, true).await.unwrap(), Resumed::Rebuild);
        // A history of another source is none.
        fixture.record("other", 1, vec![change(ChangeKind::Create, "x", 1)]).await;
    }
}

#[tokio::test]
async fn what_is_no_record_is_passed_over_and_a_damaged_one_is_not() {
    let mut fixture = eventful().await;
    for text in ["", "no json", r#"{"source":{"server":"s1","database":"shop"},"position":{"lsn":8},"ddl":"x"}"#] {
        fixture.store.append(text.as_bytes().to_vec().into()).await.unwrap();
    }
    assert_eq!(fixture.tables(99).await.len(), 2);
    let mut damaged: Json = serde_json::from_str(&record("shop", 9, Vec::new()).to_text()).unwrap();
    damaged["tableChanges"] = json!([{"type": "CREATE"}]);
    fixture.store.append(damaged.to_string().into()).await.unwrap();
    let error = fixture.resume(99, true).await.unwrap_err();
    assert_eq!(error.message, "record 11 of the schema history in memory cannot be read");
    assert_eq!(error.causes, ["tableChanges.id is missing"]);
}

#[tokio::test]
async fn only_what_is_captured_may_be_written() {
    let both = || vec![change(ChangeKind::Create, "a", 1), change(ChangeKind::Create, "excluded", 1)];
    for (written, expected) in [(Captured::All, 2), (Captured::Databases, 2), (Captured::Tables, 1)] {
        let mut fixture = Fixture::new(written);
        fixture.record("shop", 1, both()).await;
        fixture.record("shop", 1, both().split_off(1)).await;
        let mut reader = fixture.store.read().await.unwrap();
        let texts = reader.next().await.unwrap().unwrap();
        let first = HistoryRecord::parse(&texts[0], TwoParts::SchemaAndTable).unwrap();
        assert_eq!((first.changes.unwrap().len(), texts.len()), (expected, expected), "{written:?}");
    }
}

/// Records without the database in their source, as a connector with one database wrote them once.
#[tokio::test]
async fn a_source_may_say_which_records_are_its_own() {
    struct ByServer;
    impl HistoryOrder for ByServer {
        fn is_at_or_before(&self, recorded: &OffsetMap, stored: &OffsetMap) -> bool {
            Numbers.is_at_or_before(recorded, stored)
        }
        fn is_of(&self, record: &HistoryRecord, partition: &SourcePartition) -> bool {
            record.source == *partition || record.database_name.as_deref() == Some("shop")
        }
    }
    let mut fixture = Fixture::new(Captured::All);
    let old = HistoryRecord {
        source: SourcePartition::new([("server", "s1")]),
        ..record("shop", 1, vec![change(ChangeKind::Create, "a", 1)])
    };
    fixture.history.record(old, &filter(&[])).await.unwrap();
    let stops = [(partition("shop"), offset(1))];
    let resumed = fixture.history.resume(&stops, &ByServer, &filter(&[]), false).await.unwrap();
    assert!(matches!(resumed, Resumed::Recovered(tables) if tables.len() == 1));
    assert!(fixture.resume(1, false).await.is_err());
}

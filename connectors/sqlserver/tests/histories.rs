//! Any history is told as it happened, however it is read and wherever reading begins again.

use std::collections::BTreeMap;

use proptest::prelude::*;

use crate::fixture::{Lab, behind, changes, drain, known, shown};

const TABLES: [&str; 3] = ["a", "b", "c"];

/// What somebody wants to do: it is left out where it cannot be done.
#[derive(Debug, Clone)]
enum Wish {
    Insert,
    Update,
    Delete,
    Move,
}

type Wishes = Vec<Vec<(usize, Wish, i32, i32)>>;

fn wishes() -> impl Strategy<Value = Wishes> {
    let wish =
        prop_oneof![3 => Just(Wish::Insert), 3 => Just(Wish::Update), 1 => Just(Wish::Delete), 2 => Just(Wish::Move)];
    let one = (0..TABLES.len(), wish, 0..6_i32, 0..4_i32);
    prop::collection::vec(prop::collection::vec(one, 1..7), 1..7)
}

/// The statements of each transaction, and the changes that they are.
fn history(wishes: Wishes) -> (Vec<String>, Vec<String>) {
    let mut rows = TABLES.map(|_| BTreeMap::new());
    let (mut transactions, mut expected) = (Vec::new(), Vec::new());
    for transaction in wishes {
        let mut statements = String::new();
        for (at, wish, id, value) in transaction {
            let (table, rows) = (TABLES[at], &mut rows[at]);
            match (wish, rows.get(&id).copied()) {
                (Wish::Insert, None) => {
                    rows.insert(id, value);
                    statements += &format!("INSERT dbo.{table} VALUES ({id}, {value}); ");
                    expected.push(format!("{table} +{id},{value}"));
                }
                (Wish::Update, Some(old)) if old != value => {
                    rows.insert(id, value);
                    statements += &format!("UPDATE dbo.{table} SET v = {value} WHERE id = {id}; ");
                    expected.push(format!("{table} {id},{old}>{id},{value}"));
                }
                (Wish::Delete, Some(old)) => {
                    rows.remove(&id);
                    statements += &format!("DELETE dbo.{table} WHERE id = {id}; ");
                    expected.push(format!("{table} -{id},{old}"));
                }
                (Wish::Move, Some(old)) if !rows.contains_key(&(id + 1)) => {
                    rows.remove(&id);
                    rows.insert(id + 1, old);
                    statements += &format!("UPDATE dbo.{table} SET id = {} WHERE id = {id}; ", id + 1);
                    expected.extend([format!("{table} -{id},{old}"), format!("{table} +{},{old}", id + 1)]);
                }
                _ => {}
            }
        }
        if !statements.is_empty() {
            transactions.push(format!("BEGIN TRAN; {statements}COMMIT"));
        }
    }
    (transactions, expected)
}

async fn told(transactions: Vec<String>, expected: Vec<String>, more: &[(&str, &str)], stop: prop::sample::Index) {
    let mut lab = Lab::start().await;
    for table in TABLES {
        lab.table(table, "id int PRIMARY KEY, v int").await;
    }
    for transaction in &transactions {
        lab.change(transaction).await;
    }
    let whole = drain(&mut lab.stream(more)).await;
    let text: Vec<String> = shown(&whole).into_iter().filter(|step| !step.starts_with("CREATE")).collect();
    assert_eq!(text, expected, "{transactions:?}");
    if expected.is_empty() {
        return;
    }
    let stop = stop.index(expected.len());
    let position = behind(changes(&whole)[stop]);
    let rest = drain(&mut lab.stream_from(more, known(&whole), &position)).await;
    assert_eq!(shown(&rest), expected[stop + 1..], "behind {stop} of {transactions:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn t_11_any_history_is_told_once_and_goes_on_anywhere(
        wishes in wishes(),
        direct: bool,
        rows in 1..6_usize,
        most in 0..3_u32,
        stop: prop::sample::Index,
    ) {
        let (transactions, expected) = history(wishes);
        let (rows, most) = (rows.to_string(), most.to_string());
        let more: [(&str, &str); 3] = [
            ("data.query.mode", if direct { "direct" } else { "function" }),
            ("streaming.fetch.size", &rows),
            ("max.iteration.transactions", &most),
        ];
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        runtime.block_on(told(transactions, expected, &more, stop));
    }
}

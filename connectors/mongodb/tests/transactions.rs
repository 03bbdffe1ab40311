//! Transaction metadata from real transactions: markers, places of changes, and restarts between any
//! two records.

use anyhow::Result;
use bson::{Document, doc};
use mongodb::{ClientSession, Database};
use serde_json::{Value as Json, json};
use thalweg_core::position::SourcePartition;
use thalweg_services::{MemberOptions, ReplicaSet, Router, Shards};

use crate::fixture::run::{Offsets, Run, Seen, tasks};
use crate::fixture::{bed, config};

const ON: (&str, &str) = ("provide.transaction.metadata", "true");
const WHOLE: [(&str, &str); 1] = [("server_id", "t")];

/// What is told of transactions, without ids and times.
fn told(seen: &Seen) -> Json {
    let value = &seen.value;
    match (value["status"].as_str(), seen.op()) {
        (Some(status), _) => json!([status, value["event_count"], value["data_collections"]]),
        (None, "tombstone") => json!("tombstone"),
        (None, op) => {
            let block = &value["transaction"];
            json!([op, seen.id(), block["total_order"], block["data_collection_order"]])
        }
    }
}

fn all_told(seen: &[Seen]) -> Vec<Json> {
    seen.iter().map(told).collect()
}

/// The open transaction in a stored offset.
fn kept(offset: &Json) -> Json {
    let members = offset.as_object().unwrap();
    let of_transaction = |(name, _): &(&String, &Json)| name.starts_with("transaction_");
    Json::Object(members.iter().filter(of_transaction).map(|(n, v)| (n.clone(), v.clone())).collect())
}

async fn insert(db: &Database, session: &mut ClientSession, collection: &str, id: i32) -> Result<()> {
    db.collection::<Document>(collection).insert_one(doc! {"_id": id}).session(session).await?;
    Ok(())
}

#[tokio::test]
async fn mgo_19_t_87_begin_and_end_around_a_transaction() -> Result<()> {
    let bed = bed("mgo_19").await?;
    let a = bed.db.collection::<Document>("a");
    let mut run = Run::start(&bed.config(&[("snapshot.mode", "no_data"), ON]), &Offsets::new()).await?;
    run.quiet().await?;
    a.insert_one(doc! {"_id": 0}).await?;
    let mut session = bed.client.start_session().await?;
    session.start_transaction().await?;
    insert(&bed.db, &mut session, "a", 1).await?;
    insert(&bed.db, &mut session, "a", 2).await?;
    session.commit_transaction().await?;
    let first = run.take(4).await?;
    assert_eq!(
        all_told(&first),
        [json!(["c", "0", null, null]), json!(["BEGIN", null, null]), json!(["c", "1", 1, 1]), json!(["c", "2", 2, 2])]
    );
    let source = &first[2].value["source"];
    let id = format!("{}:{}", source["lsid"].as_str().unwrap(), source["txnNumber"]);
    assert_eq!((&first[1].key, &first[1].value["id"]), (&json!({"id": id}), &json!(id)));
    assert_eq!(first[1].value["ts_ms"], source["ts_ms"]);
    assert_eq!(first[3].value["transaction"]["id"], json!(id));
    // The end is withheld as long as nothing follows; what is stored meanwhile still knows of it.
    let quiet = run.quiet().await?;
    assert_eq!(kept(&quiet), json!({"transaction_id": id, "transaction_data_collection_order_mgo_19.a": 2}));
    for i in 3..6 {
        a.insert_one(doc! {"_id": i}).await?;
    }
    let rest = run.take(4).await?;
    let counts = json!([{"data_collection": "mgo_19.a", "event_count": 2}]);
    assert_eq!(told(&rest[0]), json!(["END", 2, counts]));
    assert_eq!(rest[0].value["ts_ms"], rest[1].value["source"]["ts_ms"]);
    assert!(rest[1..].iter().all(|r| r.value["transaction"].is_null() && r.op() == "c"));
    let markers = first.iter().chain(&rest).filter(|r| r.topic == "t.transaction").count();
    assert_eq!(markers, 2);
    assert_eq!(kept(&run.quiet().await?), json!({}));
    run.stop().await
}

/// Debezium's connector for MongoDB tells a second BEGIN after a restart and counts from 1 again; the counts
/// are members of its offset all the same, and Debezium's others restore them. Here they go on, on purpose.
///
/// Two transactions over two collections, one of which is not captured at times, one given up, and
/// plain changes: stopped behind every record and started again.
#[tokio::test]
async fn t_04_a_restart_inside_of_transactions_goes_on_counting() -> Result<()> {
    let bed = bed("txn_restart").await?;
    let config = bed.config(&[("snapshot.mode", "no_data"), ("collection.exclude.list", "txn_restart.no"), ON]);
    bed.db.collection::<Document>("a").insert_one(doc! {"_id": 1}).await?;
    let offsets = Offsets::new();
    let mut run = Run::start(&config, &offsets).await?;
    run.quiet().await?;
    let mut session = bed.client.start_session().await?;
    session.start_transaction().await?;
    for (collection, id) in [("a", 2), ("b", 3), ("no", 4), ("a", 5)] {
        insert(&bed.db, &mut session, collection, id).await?;
    }
    bed.db.collection::<Document>("a").delete_one(doc! {"_id": 1}).session(&mut session).await?;
    session.commit_transaction().await?;
    session.start_transaction().await?;
    insert(&bed.db, &mut session, "a", 6).await?;
    session.abort_transaction().await?;
    session.start_transaction().await?;
    insert(&bed.db, &mut session, "b", 7).await?;
    session.commit_transaction().await?;
    bed.db.collection::<Document>("no").insert_one(doc! {"_id": 8}).await?;
    bed.db.collection::<Document>("b").insert_one(doc! {"_id": 9}).await?;
    let all = run.take(11).await?;
    run.stop().await?;
    let count = |name: &str, n: i64| json!({"data_collection": format!("txn_restart.{name}"), "event_count": n});
    let expected = [
        json!(["BEGIN", null, null]),
        json!(["c", "2", 1, 1]),
        json!(["c", "3", 2, 1]),
        json!(["c", "5", 3, 2]),
        json!(["d", "1", 4, 3]),
        json!("tombstone"),
        json!(["END", 4, [count("a", 3), count("b", 1)]]),
        json!(["BEGIN", null, null]),
        json!(["c", "7", 1, 1]),
        json!(["END", 1, [count("b", 1)]]),
        json!(["c", "9", null, null]),
    ];
    assert_eq!(all_told(&all), expected);

    for (last, seen) in all.iter().enumerate().take(10) {
        let mut run = Run::start(&config, &Offsets::with(&WHOLE, seen.offset.clone())).await?;
        // A delete comes again together with its tombstone.
        let from = if seen.op() == "d" { last } else { last + 1 };
        let again = run.take(11 - from).await?;
        assert_eq!(all_told(&again), expected[from..], "behind {:?}", expected[last]);
        for (now, then) in again.iter().zip(&all[from..]) {
            assert_eq!(kept(&now.offset), kept(&then.offset));
            assert_eq!((&now.key, &now.topic), (&then.key, &then.topic));
        }
        run.stop().await?;
    }
    Ok(())
}

/// What Debezium stored inside of a transaction, and what it stored before this option was set.
#[tokio::test]
async fn offsets_that_debezium_wrote_inside_of_a_transaction() -> Result<()> {
    let bed = bed("txn_taken_over").await?;
    let config = bed.config(&[("snapshot.mode", "no_data"), ON]);
    let mut run = Run::start(&config, &Offsets::new()).await?;
    run.quiet().await?;
    let mut session = bed.client.start_session().await?;
    session.start_transaction().await?;
    for id in 1..4 {
        insert(&bed.db, &mut session, "a", id).await?;
    }
    session.commit_transaction().await?;
    let seen = run.take(4).await?;
    run.stop().await?;
    let id = &seen[0].value["id"];
    let mut offset = seen[1].offset.clone();
    assert_eq!(
        offset.as_object().unwrap().keys().collect::<Vec<_>>(),
        [
            "sec",
            "ord",
            "resume_token",
            "lsid",
            "txnNumber",
            "transaction_id",
            "transaction_data_collection_order_txn_taken_over.a",
        ]
    );
    // It may have counted more.
    offset["transaction_data_collection_order_txn_taken_over.b"] = json!(7);
    let mut run = Run::start(&config, &Offsets::with(&WHOLE, offset.clone())).await?;
    let next = run.record().await?;
    assert_eq!(next.value["transaction"], json!({"id": id, "total_order": 9, "data_collection_order": 2}));
    run.stop().await?;
    for name in ["transaction_id", "transaction_data_collection_order_txn_taken_over.a"] {
        offset.as_object_mut().unwrap().remove(name);
    }
    let mut run = Run::start(&config, &Offsets::with(&WHOLE, offset)).await?;
    let next = run.take(2).await?;
    assert_eq!(all_told(&next), [json!(["BEGIN", null, null]), json!(["c", "2", 1, 1])]);
    run.stop().await
}

/// Thousands of changes over several collections, in several batches.
#[tokio::test]
async fn a_large_transaction_is_counted_through_its_batches() -> Result<()> {
    let bed = bed("txn_large").await?;
    let config = bed.config(&[("snapshot.mode", "no_data"), ("max.batch.size", "100"), ON]);
    let mut run = Run::start(&config, &Offsets::new()).await?;
    run.quiet().await?;
    let mut session = bed.client.start_session().await?;
    session.start_transaction().await?;
    for (collection, documents) in [("a", 0..1500), ("b", 0..700), ("a", 1500..2500)] {
        let documents = documents.map(|i| doc! {"_id": i});
        bed.db.collection::<Document>(collection).insert_many(documents).session(&mut session).await?;
    }
    session.commit_transaction().await?;
    bed.db.collection::<Document>("a").insert_one(doc! {"_id": -1}).await?;
    let seen = run.take(3203).await?;
    for (at, record) in seen[1..3201].iter().enumerate() {
        let order = if at < 1500 {
            at + 1
        } else if at < 2200 {
            at - 1499
        } else {
            at - 699
        };
        let block = &record.value["transaction"];
        assert_eq!((&block["total_order"], &block["data_collection_order"]), (&json!(at + 1), &json!(order)));
    }
    let count = |name: &str, n: i64| json!({"data_collection": format!("txn_large.{name}"), "event_count": n});
    assert_eq!(told(&seen[3201]), json!(["END", 3200, [count("a", 2500), count("b", 700)]]));
    run.stop().await
}

/// Each shard tells begin and end of its part, with the counts of its part.
#[tokio::test]
async fn t_83_every_shard_tells_its_part() -> Result<()> {
    let a = ReplicaSet::start("rsA", 1, &MemberOptions::default()).await?;
    let b = ReplicaSet::start("rsB", 1, &MemberOptions::default()).await?;
    let host = |set: &ReplicaSet| format!("{}/{}", set.name, set.members[0].address());
    let shards = [("s1".to_owned(), host(&a)), ("s2".to_owned(), host(&b))];
    let router = Router::start(Shards::Are(shards.into_iter().collect()), None).await?;
    let mode = [("mongodb.connection.mode", "replica_set"), ("snapshot.mode", "no_data"), ON];
    let config = config(&router.uri(), &[&mode[..], &[("database.include.list", "shop")]].concat());
    let running = tasks(&config, 1).await?;
    for (set, changes) in [(&a, 2), (&b, 3)] {
        let shard = SourcePartition::new([("server_id", "t"), ("rs", &*set.name)]);
        let mut run = Run::open(&*running[0], &shard, &Offsets::new()).await?;
        run.quiet().await?;
        let client = set.client().await?;
        let db = client.database("shop");
        let mut session = client.start_session().await?;
        session.start_transaction().await?;
        for id in 0..changes {
            insert(&db, &mut session, "orders", id).await?;
        }
        session.commit_transaction().await?;
        db.collection::<Document>("orders").insert_one(doc! {"_id": 9}).await?;
        let seen = run.take(usize::try_from(changes)? + 3).await?;
        let counts = json!([{"data_collection": "shop.orders", "event_count": changes}]);
        assert_eq!(told(&seen[0]), json!(["BEGIN", null, null]), "{}", set.name);
        assert_eq!(told(&seen[seen.len() - 2]), json!(["END", changes, counts]), "without the shard's name");
        assert!(seen.iter().filter(|r| r.value["status"].is_string()).all(|r| r.topic == "t.transaction"));
        run.stop().await?;
    }
    Ok(())
}

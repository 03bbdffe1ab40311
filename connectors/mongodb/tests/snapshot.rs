//! What a snapshot reads, how its records are marked, and what interrupts it.

use std::sync::atomic::Ordering;

use anyhow::{Context, Result};
use bson::{Bson, Document, RawDocumentBuf, doc};
use mongodb::options::{ReadPreference, SelectionCriteria};
use serde_json::json;
use thalweg_mongodb::position::MongoPosition;
use thalweg_services::{MemberOptions, ReplicaSet, ask_without_session, until};

use crate::fixture::run::{Offsets, Run, Seen};
use crate::fixture::{PATIENCE, bed, config};

async fn numbered(collection: &mongodb::Collection<Document>, n: i32) -> Result<()> {
    collection.insert_many((0..n).map(|i| doc! {"_id": i, "text": "x".repeat(200)})).await?;
    Ok(())
}

fn marks(records: &[Seen]) -> Vec<&str> {
    records.iter().map(Seen::snapshot).collect()
}

#[tokio::test]
async fn documents_are_read_then_changes_follow() -> Result<()> {
    let bed = bed("snapshot_then_stream").await?;
    let orders = bed.db.collection::<Document>("orders");
    orders.insert_many([doc! {"_id": 1, "n": 7_i64}, doc! {"_id": 2, "n": 8_i64}]).await?;
    let offsets = Offsets::new();
    let mut run = Run::start(&bed.config(&[]), &offsets).await?;

    // Before any record the place to start again is stored: nothing of the snapshot is delivered.
    let start = run.quiet().await?;
    let token = start["resume_token"].clone();
    assert_eq!(start, json!({"sec": -1, "ord": -1, "initsync": true, "undelivered": true, "resume_token": token}));

    let read = run.take(2).await?;
    assert_eq!(read[0].topic, "t.snapshot_then_stream.orders");
    assert_eq!(read[0].key, json!({"id": "1"}));
    assert_eq!(read[0].value["after"], r#"{"_id": 1,"n": {"$numberLong": "7"}}"#);
    assert_eq!(read[0].value["before"], json!(null));
    assert_eq!(read[0].value["updateDescription"], json!(null));
    assert_eq!(marks(&read), ["true", "last"]);
    assert!(read.iter().all(|r| r.op() == "r"));
    assert_eq!(read[0].value["source"]["ord"], -1);
    assert_eq!(read[0].offset, json!({"sec": -1, "ord": -1, "initsync": true, "resume_token": token}));
    assert_eq!(read[1].offset, json!({"sec": -1, "ord": -1, "resume_token": token}));

    orders.insert_one(doc! {"_id": 3}).await?;
    orders.update_one(doc! {"_id": 1}, doc! {"$set": {"n": 9_i64}}).await?;
    orders.delete_one(doc! {"_id": 2}).await?;
    let changes = run.take(4).await?;
    let ops: Vec<&str> = changes.iter().map(Seen::op).collect();
    assert_eq!(ops, ["c", "u", "d", "tombstone"]);
    assert_eq!(changes[1].value["updateDescription"]["updatedFields"], r#"{"n": 9}"#);
    assert_eq!(changes[2].key, changes[3].key);
    assert!(changes[..3].iter().all(|r| r.snapshot() == "false"));
    let progress = run.progress.snapshot().unwrap();
    assert_eq!((progress.done(), progress.expected()), (2, 2));
    assert!(progress.ended.is_some());
    run.stop().await
}

#[tokio::test]
async fn mgo_03_t_70_parallel_snapshot_keeps_collections_apart() -> Result<()> {
    let bed = bed("mgo_03").await?;
    for i in 1..=8 {
        numbered(&bed.db.collection(&format!("c{i}")), 500).await?;
    }
    let config = bed.config(&[("snapshot.max.threads", "4"), ("snapshot.fetch.size", "50")]);
    let mut run = Run::start(&config, &Offsets::new()).await?;
    let read = run.take(4000).await?;
    let mut seen = std::collections::BTreeSet::new();
    for record in &read {
        let collection = record.value["source"]["collection"].as_str().unwrap();
        assert_eq!(record.topic, format!("t.mgo_03.{collection}"));
        assert_eq!(record.value["source"]["db"], "mgo_03");
        assert_eq!(record.offset["resume_token"], read[0].offset["resume_token"], "all readers share the position");
        assert_eq!(record.value["source"]["ord"], read[0].value["source"]["ord"]);
        assert!(seen.insert((record.topic.clone(), record.id())));
    }
    let last: Vec<usize> = (0..4000).filter(|i| read[*i].snapshot() == "last").collect();
    assert_eq!(last, [3999]);
    assert!(read[..3999].iter().all(|r| r.offset["initsync"] == true));
    assert_eq!(read[3999].offset.get("initsync"), None);
    run.quiet().await?;
    run.stop().await
}

#[tokio::test]
async fn t_69_the_last_mark_is_not_lost_to_an_empty_collection() -> Result<()> {
    let bed = bed("snapshot_empty_last").await?;
    numbered(&bed.db.collection("a"), 3).await?;
    bed.db.create_collection("z").await?;
    let mut run = Run::start(&bed.config(&[]), &Offsets::new()).await?;
    let read = run.take(3).await?;
    assert_eq!(marks(&read), ["true", "true", "last"]);
    run.stop().await
}

#[tokio::test]
async fn collections_come_in_the_order_of_their_names() -> Result<()> {
    let bed = bed("snapshot_order").await?;
    let other = bed.client.database("snapshot_order2");
    for (db, name) in [(&bed.db, "c"), (&other, "b"), (&bed.db, "a"), (&other, "c")] {
        numbered(&db.collection(name), 1).await?;
    }
    let config = bed.config(&[("database.include.list", "snapshot_order2?")]);
    let mut run = Run::start(&config, &Offsets::new()).await?;
    let topics: Vec<String> = run.take(4).await?.into_iter().map(|r| r.topic).collect();
    assert_eq!(topics, ["t.snapshot_order.a", "t.snapshot_order2.b", "t.snapshot_order.c", "t.snapshot_order2.c"]);
    run.stop().await
}

#[tokio::test]
async fn t_74_an_empty_snapshot_is_finished_at_once_and_stored() -> Result<()> {
    let bed = bed("snapshot_empty").await?;
    let offsets = Offsets::new();
    let mut run = Run::start(&bed.config(&[]), &offsets).await?;
    while run.quiet().await?.get("initsync").is_some() {}
    run.stop().await?;

    numbered(&bed.db.collection("late"), 2).await?;
    let mut run = Run::start(&bed.config(&[]), &offsets).await?;
    let changes = run.take(2).await?;
    assert!(changes.iter().all(|r| r.op() == "c"), "no second snapshot");
    run.stop().await
}

#[tokio::test]
async fn mgo_04_t_68_interrupted_snapshot_starts_again() -> Result<()> {
    let bed = bed("mgo_04").await?;
    numbered(&bed.db.collection("a"), 500).await?;
    let config = bed.config(&[("max.batch.size", "1")]);
    let offsets = Offsets::new();
    // Killed before any record.
    let mut run = Run::start(&config, &offsets).await?;
    run.quiet().await?;
    drop(run);
    assert_eq!(offsets.only()["initsync"], true);
    // Stopped after the first one.
    let mut run = Run::start(&config, &offsets).await?;
    run.quiet().await?;
    run.record().await?;
    run.stop().await?;
    assert_eq!((&offsets.only()["initsync"], offsets.only().get("undelivered")), (&json!(true), None));

    let mut run = Run::start(&config, &offsets).await?;
    run.quiet().await?;
    let read = run.take(500).await?;
    let last = read.last().unwrap();
    assert_eq!((last.snapshot(), last.offset.get("initsync")), ("last", None));
    let mut ids: Vec<i32> = read.iter().map(|r| r.id().parse().unwrap()).collect();
    ids.sort_unstable();
    assert!(ids.iter().copied().eq(0..500));
    bed.db.collection::<Document>("a").insert_one(doc! {"_id": 1000}).await?;
    assert_eq!(run.record().await?.op(), "c");
    run.stop().await
}

#[tokio::test]
async fn mgo_07_finished_snapshot_is_remembered() -> Result<()> {
    let bed = bed("mgo_07").await?;
    numbered(&bed.db.collection("a"), 10).await?;
    let offsets = Offsets::new();
    let mut run = Run::start(&bed.config(&[]), &offsets).await?;
    run.take(10).await?;
    run.quiet().await?;
    run.stop().await?;
    let mut run = Run::start(&bed.config(&[]), &offsets).await?;
    run.quiet().await?;
    bed.db.collection::<Document>("a").insert_one(doc! {"_id": 77}).await?;
    let next = run.record().await?;
    assert_eq!((next.op(), next.id().as_str()), ("c", "77"));
    run.stop().await
}

#[tokio::test]
async fn mgo_25_t_71_filter_overrides_apply_to_the_snapshot_only() -> Result<()> {
    let bed = bed("mgo_25").await?;
    let a = bed.db.collection::<Document>("a");
    a.insert_many((0..5).map(|i| doc! {"_id": i, "dead": i >= 3})).await?;
    numbered(&bed.db.collection("b"), 2).await?;
    let config = bed.config(&[
        ("snapshot.collection.filter.overrides", " mgo_25.a , "),
        ("snapshot.collection.filter.overrides.mgo_25.a", "{dead: false}"),
    ]);
    let mut run = Run::start(&config, &Offsets::new()).await?;
    let read = run.take(5).await?;
    assert_eq!(read.iter().filter(|r| r.topic.ends_with(".a")).count(), 3);
    a.insert_one(doc! {"_id": 9, "dead": true}).await?;
    assert_eq!(run.record().await?.op(), "c");
    run.stop().await
}

#[tokio::test]
async fn only_listed_collections_are_read_and_all_are_streamed() -> Result<()> {
    let bed = bed("snapshot_include").await?;
    for name in ["a1", "a2", "b"] {
        numbered(&bed.db.collection(name), 1).await?;
    }
    let config = bed.config(&[("snapshot.include.collection.list", r"Snapshot_include\.A.*")]);
    let mut run = Run::start(&config, &Offsets::new()).await?;
    let topics: Vec<String> = run.take(2).await?.into_iter().map(|r| r.topic).collect();
    assert_eq!(topics, ["t.snapshot_include.a1", "t.snapshot_include.a2"]);
    bed.db.collection::<Document>("b").insert_one(doc! {"_id": 5}).await?;
    assert_eq!(run.record().await?.topic, "t.snapshot_include.b");
    run.stop().await
}

#[tokio::test]
async fn t_64_views_and_time_series_are_left_out_and_capped_collections_are_not() -> Result<()> {
    let bed = bed("snapshot_kinds").await?;
    numbered(&bed.db.collection("plain"), 2).await?;
    bed.db.run_command(doc! {"create": "ring", "capped": true, "size": 4096}).await?;
    bed.db.collection("ring").insert_one(doc! {"_id": 1}).await?;
    bed.db.run_command(doc! {"create": "measures", "timeseries": {"timeField": "at"}}).await?;
    bed.db.collection("measures").insert_one(doc! {"at": bson::DateTime::now(), "v": 1}).await?;
    bed.db.run_command(doc! {"create": "view", "viewOn": "plain", "pipeline": []}).await?;

    let mut run = Run::start(&bed.config(&[]), &Offsets::new()).await?;
    let topics: Vec<String> = run.take(3).await?.into_iter().map(|r| r.topic).collect();
    assert_eq!(topics, ["t.snapshot_kinds.plain", "t.snapshot_kinds.plain", "t.snapshot_kinds.ring"]);
    bed.db.collection("measures").insert_one(doc! {"at": bson::DateTime::now(), "v": 2}).await?;
    bed.db.collection("ring").insert_one(doc! {"_id": 2}).await?;
    let next = run.record().await?;
    assert_eq!((next.topic.as_str(), next.op()), ("t.snapshot_kinds.ring", "c"));
    run.stop().await?;

    let config = bed.config(&[("snapshot.include.views", "true")]);
    let mut run = Run::start(&config, &Offsets::new()).await?;
    let topics: Vec<String> = run.take(6).await?.into_iter().map(|r| r.topic).collect();
    assert_eq!(topics.iter().filter(|t| t.ends_with(".view")).count(), 2);
    run.stop().await
}

#[tokio::test]
async fn t_02_a_failing_read_fails_the_snapshot_as_a_whole() -> Result<()> {
    let bed = bed("snapshot_fails").await?;
    numbered(&bed.db.collection("a"), 300).await?;
    numbered(&bed.db.collection("b"), 300).await?;
    let offsets = Offsets::new();
    let config = bed.config(&[("snapshot.fetch.size", "100")]);
    let faults = bed.faults().await?;
    faults.inject(1, doc! {"failCommands": ["getMore"], "errorCode": 43}).await?;
    let mut run = Run::start(&config, &offsets).await?;
    run.record().await?;
    let error = run.error().await?;
    assert!(error.to_string().contains("snapshot_fails.a"), "{error}");
    assert_eq!(error.kind, thalweg_core::ErrorKind::SourceBusy);
    drop(run);
    assert_eq!(offsets.only()["initsync"], true);
    let mut run = Run::start(&config, &offsets).await?;
    assert_eq!(run.take(600).await?.last().unwrap().snapshot(), "last");
    run.stop().await
}

/// One document larger than the wanted size of a reply, among small ones.
#[tokio::test]
async fn documents_of_any_size_are_read() -> Result<()> {
    let bed = bed("snapshot_sizes").await?;
    let a = bed.db.collection::<Document>("a");
    let sizes = [10, 9_000_000, 20, 15_000_000, 30];
    for (i, size) in (0..).zip(sizes) {
        a.insert_one(doc! {"_id": i, "b": Bson::from("y".repeat(size))}).await?;
    }
    let mut run = Run::start(&bed.config(&[]), &Offsets::new()).await?;
    let read = run.take(5).await?;
    let found: Vec<usize> = read.iter().map(|r| r.after()["b"].as_str().unwrap().len()).collect();
    assert_eq!(found, sizes);
    run.stop().await
}

/// Kafka is slow: nothing is asked of the server for longer than it keeps an idle cursor. The cursors
/// belong to sessions, which are kept in use, so they stay.
#[tokio::test]
async fn a_slow_consumer_does_not_lose_its_cursor() -> Result<()> {
    let args = ["--setParameter", "cursorTimeoutMillis=100", "--setParameter", "clientCursorMonitorFrequencySecs=1"];
    let args = args.map(str::to_owned).to_vec();
    let set = ReplicaSet::start("rs0", 1, &MemberOptions { args, ..MemberOptions::default() }).await?;
    let client = set.client().await?;
    numbered(&client.database("slow").collection("a"), 1000).await?;
    let config = config(&set.uri(), &[("snapshot.fetch.size", "10")]);
    let mut run = Run::start(&config, &Offsets::new()).await?;
    run.take(10).await?;
    // A cursor without a session, opened later and idle for as long, is ended by then.
    let find = doc! {"find": "a", "batchSize": 1, "$db": "slow"};
    let reply = ask_without_session(set.members[0].port, &find).await?;
    assert_ne!(reply.get_document("cursor")?.get_i64("id")?, 0);
    until("an idle cursor has timed out", PATIENCE, || async {
        let status = client.database("admin").run_command(doc! {"serverStatus": 1}).await?;
        let timed_out = status.get_document("metrics")?.get_document("cursor")?.get_i64("timedOut")?;
        Ok((timed_out > 0).then_some(()))
    })
    .await?;
    let read = run.take(990).await?;
    assert_eq!(read.last().unwrap().snapshot(), "last");
    run.stop().await
}

/// A document whose text `??`, wherever it is, is no UTF-8.
fn malformed(document: Document) -> Result<RawDocumentBuf> {
    let mut bytes = Vec::new();
    document.to_writer(&mut bytes)?;
    let at = bytes.windows(2).position(|w| w == b"??").context("no ?? in the document")?;
    bytes[at..at + 2].copy_from_slice(&[0xc3, 0x28]);
    Ok(RawDocumentBuf::from_bytes(bytes)?)
}

#[tokio::test]
async fn mgo_28_t_30_documents_that_are_not_utf_8() -> Result<()> {
    let bed = bed("mgo_28_read").await?;
    // As a command: the driver looks at the ids of what it inserts.
    for document in [doc! {"_id": 1, "s": "a??b"}, doc! {"_id": "k??y"}] {
        bed.db.run_raw_command(malformed(doc! {"insert": "a", "documents": [document]})?).await?;
    }
    bed.db.collection("a").insert_one(doc! {"_id": 2}).await?;
    for mode in ["warn", "skip"] {
        let config = bed.config(&[("event.processing.failure.handling.mode", mode)]);
        let mut run = Run::start(&config, &Offsets::new()).await?;
        let records = run.take(2).await?;
        assert_eq!(records[0].after(), json!({"_id": 1, "s": "a\u{fffd}(b"}));
        assert_eq!((records[1].id().as_str(), records[1].snapshot()), ("2", "last"));
        assert_eq!(run.progress.events_failed.load(Ordering::Relaxed), 1);
        run.stop().await?;
    }
    let mut run = Run::start(&bed.config(&[]), &Offsets::new()).await?;
    let error = run.error().await?;
    assert!(error.message.ends_with(" of collection mgo_28_read.a, document with _id \"k\u{fffd}(y\""), "{error}");
    assert_eq!(run.progress.events_failed.load(Ordering::Relaxed), 1);
    run.stop().await
}

/// Reads on with a new reader after so many records each time, until the snapshot is complete; all
/// records.
async fn interrupted(bed: &crate::fixture::Bed, more: &[(&str, &str)], every: usize) -> Result<Vec<Seen>> {
    let (offsets, config) = (Offsets::new(), bed.config(more));
    let mut all = Vec::new();
    loop {
        let mut run = Run::start(&config, &offsets).await?;
        for _ in 0..every {
            let record = run.record().await?;
            let last = record.snapshot() == "last";
            all.push(record);
            if last {
                let offset = offsets.only();
                assert!(offset.get("thalweg_snapshot").is_none() && offset.get("initsync").is_none(), "{offset}");
                run.stop().await?;
                return Ok(all);
            }
        }
        run.stop().await?;
    }
}

fn ids_of<'a>(records: impl IntoIterator<Item = &'a Seen>, collection: &str) -> Vec<i64> {
    let of = |r: &&Seen| r.value["source"]["collection"] == collection;
    records.into_iter().filter(of).map(|r| r.after()["_id"].as_i64().unwrap()).collect()
}

#[tokio::test]
async fn an_interrupted_snapshot_goes_on_within_a_large_collection() -> Result<()> {
    let bed = bed("goes_on").await?;
    let large = bed.db.collection::<Document>("large");
    // Not in the order in which they lie.
    large.insert_many((0..12_000).rev().map(|i| doc! {"_id": i})).await?;
    for name in ["a_small", "z_small"] {
        bed.db.collection::<Document>(name).insert_many((0..20).map(|i| doc! {"_id": i})).await?;
    }
    let fetch = ("snapshot.fetch.size", "500");
    for more in [vec![fetch], vec![fetch, ("snapshot.max.threads", "3"), ("snapshot.max.threads.multiplier", "2")]] {
        let all = interrupted(&bed, &more, 2_700).await?;
        let restarts = all.len() / 2_700;
        for name in ["a_small", "z_small"] {
            let read = ids_of(&all, name);
            let distinct: std::collections::BTreeSet<i64> = read.iter().copied().collect();
            assert_eq!(distinct, (0..20).collect(), "{name}");
            assert!(read.len() <= 40, "{name} is read once, or once more where it was interrupted");
        }
        let read = ids_of(&all, "large");
        let distinct: std::collections::BTreeSet<i64> = read.iter().copied().collect();
        assert_eq!(distinct, (0..12_000).collect());
        // What was under way in each of the readers is repeated.
        let bound = 12_000 + restarts * 500 * if more.len() > 1 { 3 } else { 1 };
        assert!(read.len() <= bound, "{} rows read, {restarts} restarts", read.len());
        let lasts = all.iter().filter(|r| r.snapshot() == "last").count();
        assert_eq!(lasts, 1);
    }
    Ok(())
}

#[tokio::test]
async fn changes_since_the_begin_of_a_snapshot_follow_although_it_was_interrupted() -> Result<()> {
    let bed = bed("goes_on_then_streams").await?;
    let large = bed.db.collection::<Document>("large");
    large.insert_many((0..10_000).map(|i| doc! {"_id": i})).await?;
    let (offsets, config) = (Offsets::new(), bed.config(&[("snapshot.fetch.size", "1000")]));
    let mut run = Run::start(&config, &offsets).await?;
    run.take(3_500).await?;
    run.stop().await?;
    // Of a part that is read already, and of one that is not.
    large.update_one(doc! {"_id": 7}, doc! {"$set": {"n": 1}}).await?;
    large.delete_one(doc! {"_id": 9_000}).await?;
    let stored = offsets.only();
    assert!(
        stored["thalweg_snapshot"]
            .as_str()
            .unwrap()
            .starts_with(r#"{"done":[],"open":{"goes_on_then_streams.large":[["#)
    );
    let mut run = Run::start(&config, &offsets).await?;
    let mut read = 0;
    loop {
        let record = run.record().await?;
        read += 1;
        assert_eq!(record.offset["resume_token"], stored["resume_token"], "one begin, however often interrupted");
        if record.snapshot() == "last" {
            break;
        }
    }
    assert!((6_499..=7_499).contains(&read), "{read}");
    let changes = run.take(2).await?;
    assert_eq!(
        (changes[0].op(), changes[0].id(), changes[1].op(), changes[1].id()),
        ("u", "7".into(), "d", "9000".into())
    );
    run.stop().await
}

/// A snapshot goes on with the filters and lists of now, also where it has been already.
/// A member that lags is read only when it has everything up to the position of the snapshot.
#[tokio::test]
async fn a_member_that_lags_does_not_hide_what_was_before_the_snapshot() -> Result<()> {
    const COLLECTIONS: usize = 12;
    let set = ReplicaSet::start("rs0", 2, &MemberOptions::default()).await?;
    let primary = set.primary().await?;
    let (client, lagging) = (set.client().await?, set.members[1 - primary].direct().await?);
    let admin = client.database("admin");
    // The primary alone is the majority.
    let mut about = admin.run_command(doc! {"replSetGetConfig": 1}).await?.get_document("config")?.clone();
    about.insert("version", about.get_i32("version")? + 1);
    if let Some(Bson::Document(member)) = about.get_array_mut("members")?.get_mut(1 - primary) {
        member.extend(doc! {"votes": 0, "priority": 0});
    }
    admin.run_command(doc! {"replSetReconfig": about}).await?;
    let db = client.database("lags");
    let name = |n: usize| format!("c{n:02}");
    for n in 0..COLLECTIONS - 1 {
        db.collection(&name(n)).insert_one(doc! {"_id": 0}).await?;
    }
    until("both have it", PATIENCE, || async {
        let newest = lagging.database("lags").collection::<Document>(&name(COLLECTIONS - 2));
        let nearest = SelectionCriteria::ReadPreference(ReadPreference::Nearest { options: None });
        Ok(newest.find_one(doc! {}).selection_criteria(nearest).await?.map(drop))
    })
    .await?;
    let stop = doc! {"configureFailPoint": "stopReplProducer", "mode": "alwaysOn"};
    lagging.database("admin").run_command(stop).await?;
    // A reply with operations that the producer had fetched before may still be on its way.
    until("the member lags", PATIENCE, || async {
        db.collection("probe").insert_one(doc! {}).await?;
        let lags = lagging.database("admin").run_command(doc! {"replSetGetStatus": 1}).await?;
        let of = |n: usize| {
            let member = lags.get_array("members").ok()?.get(n)?.as_document()?;
            member.get_document("optime").ok()?.get_timestamp("ts").ok()
        };
        Ok((of(primary) > of(1 - primary)).then_some(()))
    })
    .await?;
    db.collection::<Document>("probe").drop().await?;
    // The last collection is new altogether.
    for n in 0..COLLECTIONS {
        db.collection(&name(n)).insert_one(doc! {"_id": 1}).await?;
    }
    let status = admin.run_command(doc! {"hello": 1}).await?;
    let written = status.get_timestamp("operationTime")?;

    let uri = format!("{}&readPreference=nearest&localThresholdMS=1000&appName=lags", set.uri());
    let config = config(&uri, &[("database.include.list", "lags")]);
    // Until the position comes from the member that does not lag.
    let (offsets, mut run) = loop {
        let offsets = Offsets::new();
        let mut run = Run::start(&config, &offsets).await?;
        let start = run.advance().await?.context("where it starts")?;
        let begun = MongoPosition::from_offset(&start).map_err(anyhow::Error::msg)?.time();
        if begun >= Some(written) {
            break (offsets, run);
        }
        run.stop().await?;
    };
    let caught_up = tokio::spawn(async move {
        let admin = lagging.database("admin");
        let find = doc! {"appName": "lags", "command.find": {"$exists": true}, "active": true};
        until("a read waits for the member", PATIENCE, || async {
            let pipeline = [doc! {"$currentOp": {"allUsers": true}}, doc! {"$match": find.clone()}];
            let mut waiting = admin.aggregate(pipeline).await?;
            Ok(waiting.advance().await?.then_some(()))
        })
        .await?;
        admin.run_command(doc! {"configureFailPoint": "stopReplProducer", "mode": "off"}).await?;
        anyhow::Ok(())
    });
    let mut read = Vec::new();
    while read.last().is_none_or(|last: &Seen| last.snapshot() != "last") {
        read.push(run.record().await?);
    }
    for n in 0..COLLECTIONS {
        let new: &[i64] = if n < COLLECTIONS - 1 { &[0, 1] } else { &[1] };
        assert_eq!(ids_of(&read, &name(n)), new, "{}", name(n));
    }
    caught_up.await??;
    drop(offsets);
    run.stop().await
}

#[tokio::test]
async fn what_a_snapshot_has_read_through_another_filter_is_read_anew() -> Result<()> {
    let bed = bed("filter_changed").await?;
    for name in ["a", "b", "c"] {
        numbered(&bed.db.collection(name), 20).await?;
    }
    bed.db.collection::<Document>("large").insert_many((0..12_000).map(|i| doc! {"_id": i})).await?;
    let filtered = |of_a: &str, of_large: &str, read: &str| {
        bed.config(&[
            ("snapshot.fetch.size", "500"),
            ("snapshot.include.collection.list", read),
            ("snapshot.collection.filter.overrides", "filter_changed.a,filter_changed.b,filter_changed.large"),
            ("snapshot.collection.filter.overrides.filter_changed.a", of_a),
            ("snapshot.collection.filter.overrides.filter_changed.b", "{_id: {$lt: 5}}"),
            ("snapshot.collection.filter.overrides.filter_changed.large", of_large),
        ])
    };
    let offsets = Offsets::new();
    let before = filtered("{_id: {$lt: 10}}", "{_id: {$gte: 1000}}", r"filter_changed\.(a|b|large)");
    let mut run = Run::start(&before, &offsets).await?;
    run.take(10 + 5 + 3_000).await?;
    run.stop().await?;

    // Of what is done another part, of what is under way more, and one collection that was not listed.
    let after = filtered("{_id: {$gte: 15}}", "{}", "");
    let mut run = Run::start(&after, &offsets).await?;
    let mut read = Vec::new();
    while read.last().is_none_or(|last: &Seen| last.snapshot() != "last") {
        read.push(run.record().await?);
    }
    assert_eq!(ids_of(&read, "a"), (15..20).collect::<Vec<_>>());
    assert_eq!(ids_of(&read, "b"), [0_i64; 0], "its filter is the same");
    assert_eq!(ids_of(&read, "c"), (0..20).collect::<Vec<_>>());
    assert_eq!(ids_of(&read, "large"), (0..12_000).collect::<Vec<_>>());
    run.stop().await
}

#[tokio::test]
async fn a_snapshot_begins_anew_if_it_is_told_to_or_cannot_go_on() -> Result<()> {
    let bed = bed("anew").await?;
    bed.db.collection::<Document>("large").insert_many((0..10_000).map(|i| doc! {"_id": i})).await?;
    for (more, odd) in [(("thalweg.snapshot.resume", "false"), None), (("tasks.max", "1"), Some("{\"done\":1}"))] {
        let (offsets, config) = (Offsets::new(), bed.config(&[more]));
        let mut run = Run::start(&config, &offsets).await?;
        run.take(10).await?;
        run.stop().await?;
        let mut offset = offsets.only();
        assert_eq!(offset["initsync"], true);
        assert_eq!(offset.get("thalweg_snapshot").is_some(), odd.is_some());
        if let Some(odd) = odd {
            offset["thalweg_snapshot"] = odd.into();
        }
        let offsets = Offsets::with(&[("server_id", "t")], offset);
        let mut run = Run::start(&config, &offsets).await?;
        let read = run.take(10_000).await?;
        assert_eq!(ids_of(&read, "large"), (0..10_000).collect::<Vec<_>>());
        run.stop().await?;
    }
    Ok(())
}

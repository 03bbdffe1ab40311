//! Odd but lawful behaviour of servers and documents; the numbers are those of the list of cases that this
//! connector is measured by.

use anyhow::Result;
use bson::{Bson, Document, doc};
use serde_json::{Value as Json, json};
use thalweg_core::{ErrorKind, Policy};
use thalweg_services::{MemberOptions, ReplicaSet};

use crate::fixture::bed;
use crate::fixture::run::{Offsets, Run, Seen};
use crate::lost::time_of;

const NO_DATA: (&str, &str) = ("snapshot.mode", "no_data");
const WHOLE: [(&str, &str); 1] = [("server_id", "t")];

/// A stored token that is none: the position is lost, at once and for the user to decide.
#[tokio::test]
async fn t_08_damaged_tokens_are_lost_positions() -> Result<()> {
    let bed = bed("t_08").await?;
    for token in ["not hex", ""] {
        let offsets = Offsets::with(&WHOLE, json!({"sec": 1, "ord": 1, "resume_token": token}));
        let mut run = Run::start(&bed.config(&[NO_DATA]), &offsets).await?;
        let error = run.error().await?;
        assert_eq!((error.kind, error.policy()), (ErrorKind::PositionLost, Policy::NeedsUser), "{token:?}: {error}");
        run.stop().await?;
    }
    Ok(())
}

/// Only what is not captured changes, and there are no heartbeats: the position follows all the same, and
/// with it what is stored.
#[tokio::test]
async fn t_12_the_position_of_quiet_collections_moves_on() -> Result<()> {
    let bed = bed("t_12").await?;
    let offsets = Offsets::new();
    let mut run = Run::start(&bed.config(&[NO_DATA]), &offsets).await?;
    let first = time_of(&run.quiet().await?)?;
    let busy = bed.client.database("t_12_busy").collection::<Document>("z");
    busy.insert_one(doc! {"at": 1}).await?;
    while time_of(&run.quiet().await?)? <= first {}
    assert!(time_of(&offsets.only())? > first);
    run.stop().await
}

/// An oplog that reaches back to its own begin: positions from before there was anything are good.
#[tokio::test]
async fn t_13_positions_older_than_an_oplog_that_lost_nothing() -> Result<()> {
    let set = ReplicaSet::start("rs0", 1, &MemberOptions::default()).await?;
    set.client().await?.database("inv").collection("a").insert_one(doc! {"_id": 1}).await?;
    let config = crate::fixture::config(&set.uri(), &[("database.include.list", "inv")]);
    for offset in
        [json!({"sec": 1, "ord": 1}), json!({"sec": 1, "ord": 1, "resume_token": "8200000001000000012B0229296E04"})]
    {
        let mut run = Run::start(&config, &Offsets::with(&WHOLE, offset.clone())).await?;
        let record = run.record().await?;
        assert_eq!((record.op(), record.id().as_str()), ("c", "1"), "{offset}");
        run.stop().await?;
    }
    Ok(())
}

/// Names with dots, a dollar in front, or nothing at all, and values nested in every way: as written.
#[tokio::test]
async fn t_29_t_34_odd_names_and_nested_values_are_written_as_they_are() -> Result<()> {
    let bed = bed("t_29").await?;
    let a = bed.db.collection::<Document>("a");
    let mut run = Run::start(&bed.config(&[NO_DATA]), &Offsets::new()).await?;
    run.quiet().await?;
    let odd = doc! {
        "_id": 1, "a.b": 1, "$c": 2, "": 3, "sub": {"$d": 1, "e.f": [], "": {}}, "deep": [[], [{}], [[["x"]]]],
    };
    // The driver's checks of names are the user's own; the server takes them all.
    bed.db.run_command(doc! {"insert": "a", "documents": [odd.clone()]}).await?;
    let inserted = run.record().await?;
    let text = r#"{"_id": 1,"a.b": 1,"$c": 2,"": 3,"sub": {"$d": 1,"e.f": [],"": {}},"deep": [[],[{}],[[["x"]]]]}"#;
    assert_eq!(inserted.value["after"], text);
    a.update_one(doc! {"_id": 1}, doc! {"$set": {"deep.1": [{"k": [[]]}]}}).await?;
    let updated = run.record().await?;
    let fields: Json = serde_json::from_str(updated.value["updateDescription"]["updatedFields"].as_str().unwrap())?;
    assert_eq!(fields, json!({"deep.1": [{"k": [[]]}]}));
    run.stop().await
}

/// Without a change there is no record; an update that only removes has an empty document of new values.
#[tokio::test]
async fn t_37_t_45_updates_that_set_nothing() -> Result<()> {
    let bed = bed("t_37").await?;
    let a = bed.db.collection::<Document>("a");
    let mut run = Run::start(&bed.config(&[NO_DATA]), &Offsets::new()).await?;
    run.quiet().await?;
    a.insert_one(doc! {"_id": 1, "x": 1, "y": 2}).await?;
    let same = a.update_one(doc! {"_id": 1}, doc! {"$set": {"x": 1}}).await?;
    assert_eq!((same.matched_count, same.modified_count), (1, 0));
    a.update_one(doc! {"_id": 1}, doc! {"$unset": {"y": ""}}).await?;
    let records = run.take(2).await?;
    assert_eq!((records[0].op(), records[1].op()), ("c", "u"));
    let description = &records[1].value["updateDescription"];
    assert_eq!(*description, json!({"removedFields": ["y"], "updatedFields": "{}", "truncatedArrays": null}));
    run.stop().await
}

/// Images that a collection begins to keep are there for later changes only.
#[tokio::test]
async fn t_42_post_images_from_the_change_that_turns_them_on() -> Result<()> {
    let bed = bed("t_42").await?;
    let a = bed.db.collection::<Document>("a");
    a.insert_one(doc! {"_id": 1, "x": 0}).await?;
    let images = [("capture.mode.full.update.type", "post_image"), NO_DATA];
    let mut run = Run::start(&bed.config(&images), &Offsets::new()).await?;
    run.quiet().await?;
    for x in [1, 2] {
        a.update_one(doc! {"_id": 1}, doc! {"$set": {"x": x}}).await?;
        let record = run.record().await?;
        let after = if x == 1 { Json::Null } else { json!({"_id": 1, "x": 2}) };
        assert_eq!((record.op(), record.after()), ("u", after));
        let on = doc! {"collMod": "a", "changeStreamPreAndPostImages": {"enabled": true}};
        bed.db.run_command(on).await?;
    }
    run.stop().await
}

/// What a capped collection overwrites and what a time-to-live index removes are deletes like others. The
/// list of cases expects nothing of capped collections; MongoDB 6.0.5 was seen to tell their deletes (it
/// does since 5.0), and what the server tells is passed on.
#[tokio::test]
async fn t_65_overwritten_and_expired_documents_are_deletes() -> Result<()> {
    let bed = bed("t_65").await?;
    bed.db.run_command(doc! {"create": "capped", "capped": true, "size": 4096, "max": 2}).await?;
    let old = doc! {"key": {"at": 1}, "name": "at_1", "expireAfterSeconds": 1};
    bed.db.run_command(doc! {"createIndexes": "ttl", "indexes": [old]}).await?;
    let mut run = Run::start(&bed.config(&[NO_DATA]), &Offsets::new()).await?;
    run.quiet().await?;
    let capped = bed.db.collection::<Document>("capped");
    for id in 1..=3 {
        capped.insert_one(doc! {"_id": id}).await?;
    }
    let told = |seen: &Seen| format!("{} {}", seen.op(), seen.id());
    let records = run.take(5).await?;
    assert_eq!(records.iter().map(told).collect::<Vec<_>>(), ["c 1", "c 2", "c 3", "d 1", "tombstone 1"]);
    let admin = bed.client.database("admin");
    admin.run_command(doc! {"setParameter": 1, "ttlMonitorSleepSecs": 1}).await?;
    let long_ago = bson::DateTime::from_millis(1_000_000_000_000);
    bed.db.collection::<Document>("ttl").insert_one(doc! {"_id": 9, "at": long_ago}).await?;
    let records = run.take(3).await?;
    assert_eq!(records.iter().map(told).collect::<Vec<_>>(), ["c 9", "d 9", "tombstone 9"]);
    run.stop().await
}

/// Changes of one transaction have one time: their order is that of the stream.
#[tokio::test]
async fn t_89_changes_of_a_transaction_have_one_time() -> Result<()> {
    let bed = bed("t_89").await?;
    let a = bed.db.collection::<Document>("a");
    let config = bed.config(&[NO_DATA, ("provide.transaction.metadata", "true")]);
    let mut run = Run::start(&config, &Offsets::new()).await?;
    run.quiet().await?;
    let mut session = bed.client.start_session().await?;
    session.start_transaction().await?;
    for id in 0..3 {
        a.insert_one(doc! {"_id": id}).session(&mut session).await?;
    }
    session.commit_transaction().await?;
    let records = run.take(4).await?;
    let place = |n: usize| (&records[n].value["source"]["ts_ms"], &records[n].value["source"]["ord"]);
    assert_eq!((place(1), place(2)), (place(2), place(3)));
    let tokens: std::collections::BTreeSet<_> =
        records[1..].iter().map(|r| r.offset["resume_token"].as_str()).collect();
    assert_eq!(tokens.len(), 3);
    let orders: Vec<_> = records[1..].iter().map(|r| r.value["transaction"]["total_order"].clone()).collect();
    assert_eq!(orders, [1, 2, 3]);
    run.stop().await
}

/// One key in all records of a document, whatever form the documents have.
#[tokio::test]
async fn t_23_t_24_keys_do_not_follow_the_form_of_documents() -> Result<()> {
    let bed = bed("t_23").await?;
    let a = bed.db.collection::<Document>("a");
    let at = bson::DateTime::from_millis(1_704_067_200_700);
    let id = doc! {"_id": {"at": at, "n": 5_i64}};
    let key = r#"{"at": {"$date": "2024-01-01T00:00:00.7Z"},"n": 5}"#;
    for mode in ["legacy", "strict", "extended", "relaxed"] {
        let mut document = id.clone();
        document.insert("v", Bson::DateTime(at));
        a.insert_one(&document).await?;
        let mut run = Run::start(&bed.config(&[("json.serialization.mode", mode)]), &Offsets::new()).await?;
        let read = run.record().await?;
        a.update_one(id.clone(), doc! {"$set": {"x": 1}}).await?;
        a.delete_one(id.clone()).await?;
        let mut records = run.take(3).await?;
        records.push(read);
        assert!(records.iter().all(|r| r.id() == key), "{mode}: {records:?}");
        if mode == "legacy" {
            let after = records[3].value["after"].as_str().unwrap();
            assert!(after.contains(r#""v": {"$date": 1704067200700}"#), "{after}");
        }
        run.stop().await?;
    }
    Ok(())
}

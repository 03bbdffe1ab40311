//! Records of live changes.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use bson::{Document, RawDocumentBuf, doc};
use futures::{FutureExt, StreamExt};
use mongodb::change_stream::event::ResumeToken;
use serde_json::json;

use crate::fixture::bed;
use crate::fixture::run::{Offsets, Run};

#[tokio::test]
async fn t_36_t_38_t_45_t_46_changes_of_all_kinds() -> Result<()> {
    let bed = bed("stream_kinds").await?;
    let a = bed.db.collection::<Document>("a");
    let mut run = Run::start(&bed.config(&[("snapshot.mode", "no_data")]), &Offsets::new()).await?;
    run.quiet().await?;
    let long = ["an element of some length"; 9];
    a.insert_one(doc! {"_id": 1, "x": 1, "arr": &long[..]}).await?;
    a.update_one(doc! {"_id": 1}, doc! {"$set": {"x": 2}, "$unset": {"arr.2": ""}}).await?;
    a.update_one(doc! {"_id": 1}, vec![doc! {"$set": {"arr": {"$slice": ["$arr", 4]}}}]).await?;
    a.replace_one(doc! {"_id": 1}, doc! {"y": true}).await?;
    a.update_one(doc! {"_id": 2}, doc! {"$set": {"up": "sert"}}).upsert(true).await?;
    a.delete_one(doc! {"_id": 1}).await?;

    let records = run.take(7).await?;
    let ops: Vec<&str> = records.iter().map(|r| r.op()).collect();
    assert_eq!(ops, ["c", "u", "u", "u", "c", "d", "tombstone"]);
    assert!(records.iter().all(|r| r.topic == "t.stream_kinds.a"));
    let description = &records[1].value["updateDescription"];
    let updated: serde_json::Value = serde_json::from_str(description["updatedFields"].as_str().unwrap())?;
    assert_eq!(updated, json!({"arr.2": null, "x": 2}));
    assert_eq!(records[2].value["updateDescription"]["truncatedArrays"], json!([{"field": "arr", "size": 4}]));
    let deleted = &records[5].value;
    assert!(["before", "after", "updateDescription"].iter().all(|part| deleted[part].is_null()), "{deleted}");
    assert_eq!((records[5].id(), records[5].key == records[6].key), ("1".to_owned(), true));
    assert_eq!(records[6].value, json!(null));
    // Half a change is never stored: what is stored with the delete lies before it.
    assert_ne!(records[6].offset["resume_token"], records[5].offset["resume_token"]);
    run.stop().await
}

#[tokio::test]
async fn mgo_16_t_44_a_replacement_carries_the_whole_document() -> Result<()> {
    let bed = bed("mgo_16").await?;
    let a = bed.db.collection::<Document>("a");
    let no_data = ("snapshot.mode", "no_data");
    for (id, more) in [(1, &[no_data][..]), (2, &[no_data, ("capture.mode", "change_streams")])] {
        let mut run = Run::start(&bed.config(more), &Offsets::new()).await?;
        run.quiet().await?;
        a.insert_one(doc! {"_id": id, "x": 1}).await?;
        a.replace_one(doc! {"_id": id}, doc! {"x": 2}).await?;
        let replaced = &run.take(2).await?[1];
        assert_eq!((replaced.op(), replaced.after()), ("u", json!({"_id": id, "x": 2})), "{more:?}");
        assert_eq!(replaced.value["updateDescription"], json!(null));
        run.stop().await?;
    }
    Ok(())
}

#[tokio::test]
async fn mgo_02_source_time_is_the_wall_clock() -> Result<()> {
    let bed = bed("mgo_02").await?;
    let mut run = Run::start(&bed.config(&[("snapshot.mode", "no_data")]), &Offsets::new()).await?;
    run.quiet().await?;
    for i in 0..10 {
        bed.db.collection("a").insert_one(doc! {"_id": i}).await?;
    }
    let times: Vec<i64> = run.take(10).await?.iter().map(|r| r.value["source"]["ts_ms"].as_i64().unwrap()).collect();
    let now = i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis())?;
    assert!(times.iter().any(|t| t % 1000 != 0), "{times:?}");
    assert!(times.iter().all(|t| (now - t).abs() < 60_000), "{times:?}, now {now}");
    run.stop().await
}

/// The two lists of cases disagree on an `_id` that is no UTF-8: one repairs it, the other lets it fail as
/// `event.processing.failure.handling.mode` says. It fails: two ids might become one key. Values are repaired.
#[tokio::test]
async fn mgo_28_t_30_invalid_utf_8_is_replaced() -> Result<()> {
    let bed = bed("mgo_28").await?;
    let mut run = Run::start(&bed.config(&[("snapshot.mode", "no_data")]), &Offsets::new()).await?;
    run.quiet().await?;
    let mut bytes = Vec::new();
    doc! {"_id": 1, "s": "a??b"}.to_writer(&mut bytes)?;
    let at = bytes.windows(2).position(|w| w == b"??").unwrap();
    bytes[at..at + 2].copy_from_slice(&[0xc3, 0x28]);
    let raw = bed.db.collection::<RawDocumentBuf>("a");
    raw.insert_one(RawDocumentBuf::from_bytes(bytes)?).await?;
    bed.db.collection("a").insert_one(doc! {"_id": 2}).await?;
    let records = run.take(2).await?;
    assert_eq!(records[0].after(), json!({"_id": 1, "s": "a\u{fffd}(b"}));
    assert_eq!(records[1].id(), "2");
    run.stop().await
}

/// A change without a key, and what the configuration makes of it.
#[tokio::test]
async fn run_08_changes_that_cannot_be_read_are_counted_and_named() -> Result<()> {
    let bed = bed("run_08_keyless").await?;
    let a = bed.db.collection::<Document>("a");
    let with = |mode: &'static str| {
        bed.config(&[
            ("snapshot.mode", "no_data"),
            ("cursor.pipeline", r#"[{"$unset": "documentKey"}]"#),
            ("event.processing.failure.handling.mode", mode),
        ])
    };
    for mode in ["warn", "skip", "fail"] {
        let mut run = Run::start(&with(mode), &Offsets::new()).await?;
        run.quiet().await?;
        a.insert_many([doc! {"mode": mode}, doc! {"mode": mode}]).await?;
        let failed = if mode == "fail" {
            let error = run.error().await?;
            let start = error.message.starts_with("Error while processing event at offset {");
            assert!(start && error.message.ends_with(" of collection run_08_keyless.a"), "{error}");
            1
        } else {
            while run.progress.events_read.load(Ordering::Relaxed) < 2 {
                run.quiet().await?;
            }
            2
        };
        assert_eq!(run.progress.events_failed.load(Ordering::Relaxed), failed, "{mode}");
        assert_eq!(run.progress.events_filtered.load(Ordering::Relaxed), 0, "{mode}");
        run.stop().await?;
    }
    Ok(())
}

#[tokio::test]
async fn mgo_29_explicit_start_point() -> Result<()> {
    let bed = bed("mgo_29").await?;
    let a = bed.db.collection::<Document>("a");
    let mut session = bed.client.start_session().await?;
    let mut times = Vec::new();
    for i in 1..=5 {
        a.insert_one(doc! {"_id": i}).session(&mut session).await?;
        times.push(session.operation_time().unwrap());
    }
    let third = (u64::from(times[2].time) << 32 | u64::from(times[2].increment)).to_string();
    let config = bed.config(&[("snapshot.mode", "no_data"), ("capture.start.op.time", &third)]);
    let offsets = Offsets::new();
    let mut run = Run::start(&config, &offsets).await?;
    let ids: Vec<String> = run.take(3).await?.iter().map(|r| r.id()).collect();
    assert_eq!(ids, ["3", "4", "5"]);
    run.stop().await?;
    a.insert_one(doc! {"_id": 6}).await?;
    let mut run = Run::start(&config, &offsets).await?;
    assert_eq!(run.record().await?.id(), "6", "the stored offset wins");
    run.stop().await
}

/// The place where reading starts is stored before the first record, so that a successor does not
/// start at "now".
#[tokio::test]
async fn run_16_a_position_exists_before_the_first_message() -> Result<()> {
    let bed = bed("run_16").await?;
    let config = bed.config(&[("snapshot.mode", "no_data")]);
    let offsets = Offsets::new();
    let mut run = Run::start(&config, &offsets).await?;
    let first = run.batch().await?;
    assert!(first.records.is_empty());
    let start = run.offset(&first.progress.unwrap());
    bed.db.collection("a").insert_many((0..5).map(|i| doc! {"_id": i})).await?;
    run.take(5).await?;
    drop(run);
    // Of what the first owner delivered nothing was committed; its successor repeats all of it.
    let stored = Offsets::with(&[("server_id", "t")], start.into());
    let mut run = Run::start(&config, &stored).await?;
    let ids: Vec<String> = run.take(5).await?.iter().map(|r| r.id()).collect();
    assert_eq!(ids, ["0", "1", "2", "3", "4"]);
    run.stop().await
}

/// Dropping the future of `next` loses nothing.
#[tokio::test]
async fn next_can_be_cancelled_anywhere() -> Result<()> {
    let bed = bed("stream_cancel").await?;
    let a = bed.db.collection::<Document>("a");
    a.insert_many((0..300).map(|i| doc! {"_id": i})).await?;
    let config = bed.config(&[("max.batch.size", "7"), ("snapshot.fetch.size", "10")]);
    let mut run = Run::start(&config, &Offsets::new()).await?;
    let mut ids = Vec::new();
    let mut inserted = false;
    while ids.len() < 600 {
        // Polled once, dropped, polled again.
        if let Some(batch) = run.batch().now_or_never() {
            ids.extend(batch?.records.iter().map(|r| r.key.clone()));
        }
        tokio::task::yield_now().await;
        if ids.len() == 300 && !inserted {
            inserted = true;
            a.insert_many((300..600).map(|i| doc! {"_id": i})).await?;
        }
    }
    assert_eq!(ids.len(), 600);
    for (i, pair) in ids.windows(2).enumerate() {
        assert_ne!(pair[0], pair[1], "at {i}");
    }
    run.stop().await
}

/// No polling on the way: a change is handed over as soon as the server delivers it.
#[tokio::test]
async fn a_single_change_is_not_held_back() -> Result<()> {
    let bed = bed("stream_latency").await?;
    let mut run = Run::start(&bed.config(&[("snapshot.mode", "no_data")]), &Offsets::new()).await?;
    run.quiet().await?;
    let mut fastest = Duration::MAX;
    for i in 0..50 {
        bed.db.collection("a").insert_one(doc! {"_id": i}).await?;
        let written = Instant::now();
        assert_eq!(run.record().await?.id(), i.to_string());
        fastest = fastest.min(written.elapsed());
    }
    // The server's own part is some milliseconds; a poll would show as tens or hundreds.
    assert!(fastest < Duration::from_millis(20), "{fastest:?}");
    run.stop().await
}

#[tokio::test]
async fn mgo_20_t_47_oversized_events() -> Result<()> {
    let bed = bed("mgo_20").await?;
    bed.db.run_command(doc! {"create": "a", "changeStreamPreAndPostImages": {"enabled": true}}).await?;
    let a = bed.db.collection::<Document>("a");
    a.insert_one(doc! {"_id": "big", "t": "x".repeat(15_900_000)}).await?;
    let more = [
        ("snapshot.mode", "no_data"),
        ("capture.mode", "change_streams_update_full_with_pre_image"),
        ("cursor.oversize.handling.mode", "fail"),
    ];
    let offsets = Offsets::new();
    let mut run = Run::start(&bed.config(&more), &offsets).await?;
    run.quiet().await?;
    let start = offsets.copy();
    a.insert_one(doc! {"_id": "A"}).await?;
    a.replace_one(doc! {"_id": "big"}, doc! {"t": "y".repeat(15_900_000)}).await?;
    a.insert_one(doc! {"_id": "B"}).await?;
    let error = run.error().await?;
    assert!(error.to_string().contains("10334"), "{error}");
    assert_ne!(error.policy(), thalweg_core::Policy::Retry);
    drop(run);
    // What the advice says finds the collection, at the position that the error names.
    let trace = error.trace();
    assert!(trace.contains("$project: {ns: 1, documentKey: 1}"), "{trace}");
    let position = trace.lines().find_map(|l| l.split("the change stream was read from the position ").nth(1));
    let token: ResumeToken = serde_json::from_str(position.context("no position")?)?;
    let changes = bed.client.watch().pipeline([doc! {"$project": {"ns": 1, "documentKey": 1}}]).resume_after(token);
    let mut changes = changes.await?.with_type::<Document>();
    loop {
        let change = changes.next().await.context("the stream ended")??;
        if change.get_document("ns")?.get_str("db")? == "mgo_20"
            && change.get_document("documentKey")? == &doc! {"_id": "big"}
        {
            break;
        }
    }

    let mut skip = more.to_vec();
    skip[2].1 = "skip";
    skip.push(("cursor.oversize.skip.threshold", "8000000"));
    let mut run = Run::start(&bed.config(&skip), &start).await?;
    let ids: Vec<String> = run.take(2).await?.iter().map(|r| r.id()).collect();
    assert_eq!(ids, [r#""A""#, r#""B""#]);
    run.stop().await?;

    // This server cannot split events: an error that says so, and no endless retry.
    let mut split = more.to_vec();
    split[2].1 = "split";
    let error = Run::start(&bed.config(&split), &Offsets::new()).await?.error().await?;
    assert!(error.to_string().contains("40324"), "{error}");
    assert_eq!(error.policy(), thalweg_core::Policy::NeedsUser);
    Ok(())
}

//! What signals bring about: incremental and blocking snapshots, in chunks and restarts, and notices.

use std::collections::BTreeSet;

use anyhow::Result;
use bson::oid::ObjectId;
use bson::spec::BinarySubtype;
use bson::{Binary, Bson, DateTime, Document, RawDocumentBuf, doc};
use futures::{StreamExt, TryStreamExt};
use serde_json::{Value as Json, json};
use thalweg_core::signal::{Inbox, Mark, Received, Signal};
use thalweg_mongodb::key::{id_of, key_text};

use crate::fixture::run::{Offsets, Run, Seen};
use crate::fixture::{Bed, bed};

const WATERMARKS: &str = "signals";

/// Streams from now, with a signal collection and small chunks.
fn streaming(bed: &Bed, more: &[(&str, &str)]) -> thalweg_config::Properties {
    let signals = format!("{}.{WATERMARKS}", bed.db.name());
    let mut all = vec![
        ("snapshot.mode", "no_data"),
        ("signal.data.collection", signals.as_str()),
        ("incremental.snapshot.chunk.size", "100"),
    ];
    all.extend(more);
    bed.config(&all)
}

async fn signal(bed: &Bed, id: &str, kind: &str, data: Json) -> Result<()> {
    let signals = bed.db.collection::<Document>(WATERMARKS);
    signals.insert_one(doc! {"_id": id, "type": kind, "data": data.to_string()}).await?;
    Ok(())
}

/// The signal with this number in a channel outside of the source.
fn received(number: i64, kind: &str, data: Json) -> Received {
    let mark = Mark { channel: "kafka", series: "t-signal".into(), number, time_ms: 0 };
    Received { signal: Some(Signal { id: format!("{kind}-{number}"), kind: kind.to_owned(), data }), mark }
}

fn is_of(record: &Seen, collection: &str) -> bool {
    record.value["source"]["collection"] == collection
}

/// What these tests ask of a run.
trait AdHocRun {
    async fn reads(&mut self, collection: &str, n: usize) -> Result<Vec<Seen>>;
    async fn notices(&mut self, n: usize) -> Result<Vec<Json>>;
    async fn is_over(&mut self) -> Result<()>;
}

impl AdHocRun for Run {
    /// Records of a collection until so many of them were read; everything else is passed by.
    async fn reads(&mut self, collection: &str, n: usize) -> Result<Vec<Seen>> {
        let mut found = Vec::new();
        while found.len() < n {
            let record = self.record().await?;
            if is_of(&record, collection) && record.op() == "r" {
                found.push(record);
            }
        }
        Ok(found)
    }

    /// Records until one of this topic.
    async fn notices(&mut self, n: usize) -> Result<Vec<Json>> {
        let mut found = Vec::new();
        while found.len() < n {
            let record = self.record().await?;
            if record.topic == "notices" {
                found.push(record.value);
            }
        }
        Ok(found)
    }

    /// Nothing of an incremental snapshot is left in the offset; documents that are read until then are
    /// a fault.
    async fn is_over(&mut self) -> Result<()> {
        loop {
            let record = self.record().await?;
            if record.op() == "r" {
                anyhow::bail!("unexpected {record:?}");
            }
            if record.offset.get("incremental_snapshot_collections").is_none() {
                return Ok(());
            }
        }
    }
}

#[tokio::test]
async fn mgo_24_t_77_t_79_conditional_incremental_snapshot_over_restarts() -> Result<()> {
    let bed = bed("mgo_24").await?;
    for name in ["c1", "c2"] {
        let documents = (0..1000).map(|aa| doc! {"_id": format!("{name}-{aa:04}"), "aa": aa});
        bed.db.collection::<Document>(name).insert_many(documents).await?;
    }
    let offsets = Offsets::new();
    let config = streaming(&bed, &[]);
    let mut run = Run::start(&config, &offsets).await?;
    run.quiet().await?;
    let conditions = json!([
        {"data-collection": "mgo_24.c1", "filter": "{aa: {$lt: 250}}"},
        {"data-collection": "mgo_24.c2", "filter": "{aa: 250}"},
    ]);
    let data = json!({"data-collections": ["mgo_24.c1", "mgo_24.c2"], "additional-conditions": conditions});
    signal(&bed, "s1", "execute-snapshot", data).await?;

    let mut ids = Vec::new();
    ids.extend(run.reads("c1", 100).await?.iter().map(Seen::id));
    for _ in 0..3 {
        // What was read and not delivered is read again, from the last chunk on.
        run.stop().await?;
        run = Run::start(&config, &offsets).await?;
        ids.extend(run.reads("c1", 30).await?.iter().map(Seen::id));
    }
    while ids.iter().collect::<BTreeSet<_>>().len() < 250 {
        ids.extend(run.reads("c1", 1).await?.iter().map(Seen::id));
    }
    let expected: BTreeSet<String> = (0..250).map(|aa| format!("\"c1-{aa:04}\"")).collect();
    assert_eq!(ids.iter().cloned().collect::<BTreeSet<_>>(), expected);
    assert!(ids.len() <= 250 + 4 * 100, "at most a chunk is repeated by each restart, {} records", ids.len());

    let only = run.reads("c2", 1).await?;
    assert_eq!(only[0].after()["aa"], 250);
    assert_eq!((only[0].snapshot(), only[0].op()), ("incremental", "r"));
    run.is_over().await?;
    run.stop().await
}

#[tokio::test]
async fn t_76_changes_in_a_window_are_newer_than_its_rows() -> Result<()> {
    for strategy in ["insert_insert", "insert_delete"] {
        let bed = bed(&format!("window_{strategy}")).await?;
        let orders = bed.db.collection::<Document>("orders");
        orders.insert_many((0..2000).map(|i| doc! {"_id": i, "n": 0})).await?;
        let config = streaming(&bed, &[("incremental.snapshot.watermarking.strategy", strategy)]);
        let mut run = Run::start(&config, &Offsets::new()).await?;
        run.quiet().await?;
        signal(&bed, "s1", "execute-snapshot", json!({"data-collections": [".*\\.orders"]})).await?;
        let writer = tokio::spawn(async move {
            for n in 1..=400 {
                let id = (n * 37) % 2000;
                if n % 5 == 0 {
                    orders.delete_one(doc! {"_id": id}).await?;
                } else {
                    orders.update_one(doc! {"_id": id}, doc! {"$set": {"n": n}}).upsert(true).await?;
                }
            }
            anyhow::Ok(orders)
        });
        // A consumer that keeps the newest of each key.
        let mut state = std::collections::BTreeMap::new();
        let mut reads = 0;
        let mut orders = None;
        let mut writer = Some(writer);
        let marks = bed.db.collection::<Document>("mark");
        loop {
            let record = run.record().await?;
            if is_of(&record, "orders") || record.op() == "tombstone" {
                reads += usize::from(record.op() == "r");
                match record.op() {
                    "d" => drop(state.remove(&record.id())),
                    "tombstone" => {}
                    _ => drop(state.insert(record.id(), record.after())),
                }
            }
            let running = record.offset.get("incremental_snapshot_collections").is_some();
            if !running && reads > 0 {
                if let Some(writer) = writer.take() {
                    orders = Some(writer.await??);
                    marks.insert_one(doc! {"_id": "end"}).await?;
                } else if is_of(&record, "mark") {
                    break;
                }
            }
        }
        let mut cursor = orders.unwrap().find(doc! {}).await?;
        let mut truth = std::collections::BTreeMap::new();
        while cursor.advance().await? {
            let document = cursor.deserialize_current()?;
            let (id, n) = (document.get_i32("_id")?, document.get_i32("n")?);
            truth.insert(id.to_string(), json!({"_id": id, "n": n}));
        }
        assert_eq!(state, truth, "{strategy}");
        run.stop().await?;
    }
    Ok(())
}

#[tokio::test]
async fn t_76_ids_of_all_types_are_read_in_the_order_of_the_server() -> Result<()> {
    let bed = bed("all_ids").await?;
    let binary = |subtype, bytes: &[u8]| Bson::Binary(Binary { subtype, bytes: bytes.to_vec() });
    let ids: Vec<Bson> = vec![
        Bson::Null,
        f64::NAN.into(),
        Bson::Double(-1.5),
        Bson::Int32(0),
        Bson::Int64(1 << 40),
        "1e45".parse::<bson::Decimal128>()?.into(),
        "a".into(),
        "b".into(),
        doc! {"a": 1}.into(),
        doc! {"a": 2}.into(),
        binary(BinarySubtype::Generic, b"x"),
        binary(BinarySubtype::Uuid, &[7; 16]),
        ObjectId::new().into(),
        false.into(),
        true.into(),
        DateTime::from_millis(5).into(),
        Bson::Timestamp(bson::Timestamp { time: 1, increment: 1 }),
        Bson::JavaScriptCode("f()".into()),
    ];
    // Not in their order.
    let documents = ids.iter().rev().map(|id| doc! {"_id": id.clone()});
    bed.db.collection::<Document>("odd").insert_many(documents).await?;
    let mut run = Run::start(&streaming(&bed, &[("incremental.snapshot.chunk.size", "2")]), &Offsets::new()).await?;
    run.quiet().await?;
    signal(&bed, "s1", "execute-snapshot", json!({"data-collections": ["all_ids.odd"]})).await?;
    let read = run.reads("odd", ids.len()).await?;
    let mut sorted = bed.db.collection::<Document>("odd").find(doc! {}).sort(doc! {"_id": 1}).await?;
    let mut wanted = Vec::new();
    while sorted.advance().await? {
        let document = RawDocumentBuf::from_bytes(sorted.current().as_bytes().to_vec())?;
        wanted.push(key_text(&id_of(document.as_bytes())?, &mut Vec::new())?.as_str().into_owned());
    }
    assert_eq!(read.iter().map(Seen::id).collect::<Vec<_>>(), wanted);
    run.is_over().await?;
    run.stop().await
}

#[tokio::test]
async fn signals_from_elsewhere_pause_resume_and_stop() -> Result<()> {
    let bed = bed("elsewhere").await?;
    bed.db.collection::<Document>("a").insert_many((0..500).map(|i| doc! {"_id": i})).await?;
    bed.db.collection::<Document>("b").insert_many((0..50).map(|i| doc! {"_id": i})).await?;
    let config =
        streaming(&bed, &[("notification.enabled.channels", "sink,log"), ("notification.sink.topic.name", "notices")]);
    let mut run = Run::start(&config, &Offsets::new()).await?;
    let mut number = 0;
    let mut ask = |run: &Run, kind: &str, data: Json| {
        number += 1;
        run.signals.put(received(number, kind, data));
    };
    assert_eq!(run.notices(1).await?[0]["type"], "SKIPPED");
    ask(&run, "pause-snapshot", json!({}));
    ask(&run, "execute-snapshot", json!({"data-collections": ["elsewhere\\.[ab]"]}));
    let started = run.notices(2).await?;
    assert_eq!(
        (&started[0]["type"], &started[0]["aggregate_type"], &started[0]["id"]),
        (&json!("STARTED"), &json!("Incremental Snapshot"), &json!("execute-snapshot-2"))
    );
    assert_eq!(started[1]["additional_data"]["current_collection_in_progress"], "elsewhere.a");
    assert_eq!(started[1]["additional_data"]["last_processed_key"], "99");
    assert_eq!(started[1]["additional_data"]["maximum_key"], "499");
    ask(&run, "pause-snapshot", json!({}));
    loop {
        if run.notices(1).await?[0]["type"] == "PAUSED" {
            break;
        }
    }
    ask(&run, "resume-snapshot", json!({}));
    ask(&run, "stop-snapshot", json!({"data-collections": ["elsewhere.b"]}));
    let mut told = Vec::new();
    while told.last() != Some(&json!("COMPLETED")) {
        let notice = run.notices(1).await?.remove(0);
        assert_ne!(notice["additional_data"]["current_collection_in_progress"], "elsewhere.b");
        told.push(notice["type"].clone());
    }
    assert_eq!(told[0], "RESUMED");
    assert!(told.contains(&json!("TABLE_SCAN_COMPLETED")));
    run.is_over().await?;
    run.stop().await
}

/// Until an offset is stored that contains what followed from a signal, it is heard again; then it is
/// confirmed, and passed by if it is heard again in spite of that.
#[tokio::test]
async fn a_signal_from_elsewhere_is_kept_until_its_effect_is_stored() -> Result<()> {
    let bed = bed("kept_signal").await?;
    bed.db.collection::<Document>("a").insert_many((0..300).map(|i| doc! {"_id": i})).await?;
    let (offsets, inbox, config) = (Offsets::new(), Inbox::default(), streaming(&bed, &[]));
    let execute = received(7, "execute-snapshot", json!({"data-collections": ["kept_signal.a"]}));
    let mut run = Run::hearing(&config, &offsets, &inbox).await?;
    run.quiet().await?;
    inbox.put(execute.clone());
    // It is followed, and its reader ends before anything of that is stored.
    while !run.batch().await?.records.iter().any(|r| r.topic.ends_with(".a")) {}
    run.stop().await?;
    assert_eq!(inbox.count_stored(), 0);

    // The next reader hears it again, and it is not let go before the reader hears that its effect is stored.
    let mut run = Run::hearing(&config, &offsets, &inbox).await?;
    let ids: Vec<String> = run.reads("a", 300).await?.iter().map(Seen::id).collect();
    assert_eq!(ids, (0..300).map(|i| i.to_string()).collect::<Vec<_>>());
    run.is_over().await?;
    assert_eq!(offsets.only()["thalweg_signals"], r#"{"kafka":["t-signal",7,0]}"#);
    assert_eq!(inbox.count_stored(), 0);
    run.stop().await?;

    // Another process hears it again, although the offset has its effect.
    let inbox = Inbox::default();
    inbox.put(execute);
    let mut run = Run::hearing(&config, &offsets, &inbox).await?;
    while inbox.count_stored() == 0 {
        run.tell_stored()?;
        run.quiet().await?;
    }
    assert!(!inbox.is_settled());
    inbox.settle(1);
    run.tell_stored()?;
    while run.quiet().await?.get("thalweg_signals").is_some() {}
    run.stop().await
}

/// Neither while its pattern waits, nor after a restart meanwhile.
#[tokio::test]
async fn a_collection_of_a_pattern_that_waits_can_be_taken_out() -> Result<()> {
    let bed = bed("taken_out").await?;
    for name in ["a", "b", "c"] {
        bed.db.collection::<Document>(name).insert_many((0..5).map(|i| doc! {"_id": i})).await?;
    }
    let (offsets, config) = (Offsets::new(), streaming(&bed, &[]));
    let mut run = Run::start(&config, &offsets).await?;
    run.quiet().await?;
    run.signals.put(received(1, "execute-snapshot", json!({"data-collections": ["taken_out\\..*"]})));
    run.signals.put(received(2, "stop-snapshot", json!({"data-collections": ["taken_out.b"]})));
    // Both are followed before a chunk can have been read.
    while offsets.only().get("thalweg_signals") != Some(&json!(r#"{"kafka":["t-signal",2,0]}"#)) {
        run.quiet().await?;
    }
    run.stop().await?;
    let mut run = Run::start(&config, &offsets).await?;
    let mut read = Vec::new();
    while read.len() < 10 {
        let record = run.record().await?;
        if record.op() == "r" {
            read.push(record.value["source"]["collection"].clone());
        }
    }
    assert!(read.iter().eq([json!("a"), json!("c")].iter().flat_map(|name| std::iter::repeat_n(name, 5))), "{read:?}");
    run.is_over().await?;
    run.stop().await
}

/// Nothing is read while the snapshot is paused, and at most the present chunk is read again. (How long it
/// was paused is no metric here: `SnapshotPausedDurationInSeconds` is not served.)
#[tokio::test]
async fn t_81_a_pause_repeats_one_chunk_at_most() -> Result<()> {
    let bed = bed("t_81").await?;
    bed.db.collection::<Document>("a").insert_many((0..500).map(|i| doc! {"_id": i})).await?;
    let marks = bed.db.collection::<Document>("marks");
    let sink = [("notification.enabled.channels", "sink"), ("notification.sink.topic.name", "notices")];
    let mut run = Run::start(&streaming(&bed, &sink), &Offsets::new()).await?;
    assert_eq!(run.notices(1).await?[0]["type"], "SKIPPED");
    let mut asked = 0;
    let mut ask = |run: &Run, kind: &str, data: Json| {
        asked += 1;
        run.signals.put(received(asked, kind, data));
    };
    ask(&run, "execute-snapshot", json!({"data-collections": ["t_81.a"]}));
    let mut ids: Vec<String> = Vec::new();
    let mut pauses = 0;
    loop {
        let record = run.record().await?;
        match (record.topic.as_str(), record.op()) {
            ("notices", _) if record.value["type"] == "PAUSED" => {
                // Two changes, one after the other, and nothing of the snapshot before or between them.
                for id in [pauses * 2, pauses * 2 + 1] {
                    marks.insert_one(doc! {"_id": id}).await?;
                    loop {
                        let next = run.record().await?;
                        assert_ne!(next.op(), "r", "paused");
                        if is_of(&next, "marks") {
                            break;
                        }
                    }
                }
                pauses += 1;
                ask(&run, "resume-snapshot", json!({}));
            }
            ("notices", _) if record.value["type"] == "COMPLETED" => break,
            (_, "r") => {
                ids.push(record.id());
                if ids.len() == 150 || ids.len() == 320 {
                    ask(&run, "pause-snapshot", json!({}));
                }
            }
            _ => {}
        }
    }
    assert_eq!(pauses, 2);
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), 500);
    assert!(ids.len() <= 500 + pauses as usize * 100, "{} documents for 500", ids.len());
    run.is_over().await?;
    run.stop().await
}

#[tokio::test]
async fn a_blocking_snapshot_from_elsewhere_is_repeated_until_it_has_ended() -> Result<()> {
    let bed = bed("kept_blocking").await?;
    bed.db.collection::<Document>("a").insert_many((0..300).map(|i| doc! {"_id": i})).await?;
    bed.db.collection::<Document>("b").insert_many((0..5).map(|i| doc! {"_id": i})).await?;
    let (offsets, inbox) = (Offsets::new(), Inbox::default());
    let config = streaming(&bed, &[("snapshot.fetch.size", "100")]);
    let mut run = Run::hearing(&config, &offsets, &inbox).await?;
    run.quiet().await?;
    inbox.put(received(1, "execute-snapshot", json!({"data-collections": [".*\\.a"], "type": "blocking"})));
    // Signals are followed in their order: not while the one before is under way.
    inbox.put(received(2, "execute-snapshot", json!({"data-collections": [".*\\.b"]})));
    run.reads("a", 150).await?;
    run.tell_stored()?;
    assert_eq!(inbox.count_stored(), 0);
    run.stop().await?;

    let mut run = Run::hearing(&config, &offsets, &inbox).await?;
    let read = run.take(300).await?;
    assert!(read.iter().all(|r| is_of(r, "a")));
    assert_eq!((read[0].snapshot(), read[299].snapshot()), ("true", "last"));
    let read = run.reads("b", 5).await?;
    assert!(read.iter().all(|r| r.snapshot() == "incremental"));
    run.is_over().await?;
    run.tell_stored()?;
    assert_eq!(inbox.count_stored(), 2);

    // One that fails is not repeated.
    let odd = json!({"data-collections": [".*\\.a"], "type": "blocking", "additional-conditions": [
        {"data-collection": "kept_blocking.a", "filter": "{"}]});
    inbox.put(received(3, "execute-snapshot", odd));
    while inbox.count_stored() < 3 {
        run.quiet().await?;
        run.tell_stored()?;
    }
    run.stop().await
}

/// Watermarks that belong to no chunk of this run, of an earlier one or of somebody else, open and close
/// nothing.
#[tokio::test]
async fn t_82_watermarks_of_another_run_are_passed_over() -> Result<()> {
    let bed = bed("t_82").await?;
    bed.db.collection::<Document>("a").insert_many((0..300).map(|i| doc! {"_id": i})).await?;
    let offsets = Offsets::new();
    let config = streaming(&bed, &[]);
    let mut run = Run::start(&config, &offsets).await?;
    run.quiet().await?;
    let before = offsets.copy();
    signal(&bed, "s1", "execute-snapshot", json!({"data-collections": ["t_82.a"]})).await?;
    let mut ids: Vec<String> = run.reads("a", 150).await?.iter().map(Seen::id).collect();
    run.stop().await?;
    // The marks of this run come once more, and so does the signal.
    for (run_of, from) in [("as it stood", &offsets), ("from before the signal", &before)] {
        let signals = bed.db.collection::<Document>(WATERMARKS);
        for (kind, end) in [("open", "open"), ("close", "close"), ("close", "open")] {
            let id = format!("{run_of}-{kind}-{end}");
            signals.insert_one(doc! {"_id": id, "type": format!("snapshot-window-{kind}"), "payload": ""}).await?;
        }
        let mut run = Run::start(&config, &from.copy()).await?;
        let mut again: Vec<String> = Vec::new();
        loop {
            let record = run.record().await?;
            if is_of(&record, "a") {
                assert_eq!(record.op(), "r", "{run_of}");
                again.push(record.id());
            } else if !again.is_empty() && record.offset.get("incremental_snapshot_collections").is_none() {
                break;
            }
        }
        let distinct = again.iter().collect::<BTreeSet<_>>().len();
        assert_eq!(distinct, again.len(), "{run_of}: nothing twice within a run");
        if run_of == "as it stood" {
            ids.append(&mut again);
        } else {
            assert_eq!(distinct, 300, "{run_of}");
        }
        run.stop().await?;
    }
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), 300);
    assert!(ids.len() <= 300 + 100, "{} documents for 300", ids.len());
    Ok(())
}

/// A signal collection that is not there when the task starts, and a signal that names what is unknown, what
/// is not captured, the signal collection itself, the same twice, and a thousand collections at once.
#[tokio::test]
async fn cfg_06_signals_to_unknown_excluded_and_many_collections() -> Result<()> {
    const MANY: usize = 1000;
    let bed = bed("cfg_06").await?;
    let excluded = bed.client.database("cfg_06_excluded").collection::<Document>("x");
    excluded.insert_one(doc! {"_id": 1}).await?;
    let named = |n: usize| format!("n{n:04}");
    futures::stream::iter(0..MANY)
        .map(|n| bed.db.create_collection(named(n)).into_future())
        .buffer_unordered(16)
        .try_collect::<Vec<()>>()
        .await?;
    for n in [0, 500, MANY - 1] {
        bed.db.collection::<Document>(&named(n)).insert_one(doc! {"_id": 1}).await?;
    }
    let sink = [("notification.enabled.channels", "sink"), ("notification.sink.topic.name", "notices")];
    let mut run = Run::start(&streaming(&bed, &sink), &Offsets::new()).await?;
    assert_eq!(run.notices(1).await?[0]["type"], "SKIPPED");
    let collections =
        ["cfg_06.nosuch", "cfg_06_excluded.x", "CFG_06\\.n.*", "cfg_06.n0500", "cfg_06.n0500", "cfg_06.signals", ".*"];
    signal(&bed, "s1", "execute-snapshot", json!({"data-collections": collections})).await?;
    let live = bed.db.collection::<Document>("live");
    live.insert_one(doc! {"_id": 1}).await?;

    let (mut read, mut ended, mut lived) = (Vec::new(), std::collections::BTreeMap::new(), 0);
    loop {
        let record = run.record().await?;
        if record.topic == "notices" {
            let data = &record.value["additional_data"];
            match record.value["type"].as_str() {
                Some("TABLE_SCAN_COMPLETED") => {
                    let collection = data["scanned_collection"].as_str().unwrap().to_owned();
                    let before = ended.insert(collection, data["status"].as_str().unwrap().to_owned());
                    assert_eq!(before, None, "{data}: twice");
                }
                Some("COMPLETED") => break,
                _ => {}
            }
        } else if record.op() == "r" {
            read.push(record.topic);
        } else {
            lived += usize::from(is_of(&record, "live"));
        }
    }
    // `live` came into being meanwhile and may be one of all.
    read.retain(|topic| topic != "t.cfg_06.live");
    ended.remove("cfg_06.live");
    read.sort();
    assert_eq!(read, ["t.cfg_06.n0000", "t.cfg_06.n0500", "t.cfg_06.n0999"], "each once, and no signals");
    assert_eq!(ended.len(), MANY);
    assert_eq!(ended.values().filter(|status| *status == "SUCCEEDED").count(), 3);
    assert_eq!(ended.values().filter(|status| *status == "EMPTY").count(), MANY - 3);
    live.insert_one(doc! {"_id": 2}).await?;
    while lived < 2 {
        lived += usize::from(is_of(&run.record().await?, "live"));
    }
    run.stop().await?;
    bed.db.drop().await?;
    Ok(())
}

#[tokio::test]
async fn a_blocking_snapshot_lets_the_stream_wait() -> Result<()> {
    let bed = bed("blocking").await?;
    bed.db.collection::<Document>("a").insert_many((0..20).map(|i| doc! {"_id": i, "n": i})).await?;
    bed.db.collection::<Document>("b").insert_many((0..3).map(|i| doc! {"_id": i})).await?;
    let offsets = Offsets::new();
    let mut run = Run::start(&streaming(&bed, &[]), &offsets).await?;
    run.quiet().await?;
    let data = json!({"data-collections": ["blocking.a", "blocking.b"], "type": "blocking", "additional-conditions": [
        {"data-collection": "blocking.a", "filter": "{\"n\": {\"$lt\": 2}}"}]});
    signal(&bed, "s1", "execute-snapshot", data.clone()).await?;
    let signalled = run.record().await?;
    assert!(is_of(&signalled, WATERMARKS) && signalled.op() == "c");
    let read = run.take(5).await?;
    let marks: Vec<&str> = read.iter().map(Seen::snapshot).collect();
    assert_eq!(marks, ["true", "true", "true", "true", "last"]);
    // The position is that of the stream, whatever is read beside it.
    let stands = &read[0].offset["resume_token"];
    assert!(read.iter().all(|r| r.offset["resume_token"] == *stands && r.offset.get("initsync").is_none()));
    bed.db.collection::<Document>("a").insert_one(doc! {"_id": 100}).await?;
    let change = run.record().await?;
    assert_eq!((change.op(), change.id()), ("c", "100".to_owned()));

    // One that cannot be taken is told and forgotten.
    let odd = json!({"data-collections": ["blocking.a"], "type": "blocking", "additional-conditions": [
        {"data-collection": "blocking.a", "filter": "{"}]});
    signal(&bed, "s2", "execute-snapshot", odd).await?;
    bed.db.collection::<Document>("a").insert_one(doc! {"_id": 101}).await?;
    assert!(is_of(&run.record().await?, WATERMARKS));
    assert_eq!(run.record().await?.id(), "101");
    run.stop().await
}

#[tokio::test]
async fn mgo_21_t_56_t_57_signals_pass_the_lists_and_are_not_read() -> Result<()> {
    let bed = bed("mgo_21").await?;
    let ops = bed.client.database("mgo_21_ops").collection::<Document>("signals");
    bed.db.collection::<Document>("a").insert_one(doc! {"_id": 1}).await?;
    ops.insert_one(doc! {"_id": "old", "type": "log", "data": "{}"}).await?;
    let config = bed.config(&[("signal.data.collection", "mgo_21_ops.signals"), ("skipped.operations", "c")]);
    let mut run = Run::start(&config, &Offsets::new()).await?;
    run.quiet().await?;
    assert_eq!(run.record().await?.snapshot(), "last", "the signal collection is not read");
    // Inserts are skipped, signals are heard in spite of that.
    let data = doc! {"data-collections": ["mgo_21.a"]};
    ops.insert_one(doc! {"_id": "s1", "type": "execute-snapshot", "data": data}).await?;
    let read = run.record().await?;
    assert_eq!((read.snapshot(), read.id()), ("incremental", "1".to_owned()));
    run.stop().await
}

#[tokio::test]
async fn t_78_cfg_06_signals_that_cannot_be_followed_change_nothing() -> Result<()> {
    let bed = bed("ignored").await?;
    bed.db.collection::<Document>("a").insert_one(doc! {"_id": 1}).await?;
    let mut run = Run::start(&streaming(&bed, &[]), &Offsets::new()).await?;
    run.quiet().await?;
    let signals = bed.db.collection::<Document>(WATERMARKS);
    for (n, document) in [
        doc! {"_id": 0, "type": "no-such-signal", "data": {}},
        doc! {"_id": 1, "type": "execute-snapshot"},
        doc! {"_id": 2, "type": "execute-snapshot", "data": "{"},
        doc! {"_id": 3, "type": "execute-snapshot", "data": {"data-collections": ["ignored.a"], "surrogate-key": "x"}},
        doc! {"_id": 4, "type": "log", "data": {"message": "at {}"}},
        doc! {"_id": 5, "type": "stop-snapshot", "data": ""},
    ]
    .into_iter()
    .enumerate()
    {
        signals.insert_one(document).await?;
        let record = run.record().await?;
        assert_eq!((record.op(), record.id()), ("c", n.to_string()));
        assert!(record.offset.get("incremental_snapshot_collections").is_none());
    }
    // What the server refuses ends with its collection.
    let data = doc! {"data-collections": ["ignored.a", "ignored.b"],
    "additional-conditions": [{"data-collection": "ignored.a", "filter": "{$foo: 1}"}]};
    bed.db.collection::<Document>("b").insert_one(doc! {"_id": 2}).await?;
    signals.insert_one(doc! {"_id": 5.5, "type": "execute-snapshot", "data": data}).await?;
    assert_eq!(run.reads("b", 1).await?[0].id(), "2");
    run.is_over().await?;
    // Unknown collections and filters that are none end with their own collection.
    let data = doc! {"data-collections": ["ignored.none", "ignored.a", "no dot"],
    "additional-conditions": [{"data-collection": "ignored.a", "filter": "{"}]};
    signals.insert_one(doc! {"_id": 6, "type": "execute-snapshot", "data": data}).await?;
    run.is_over().await?;
    signals
        .insert_one(doc! {"_id": 7, "type": "execute-snapshot", "data": {"data-collections": ["ignored.a"]}})
        .await?;
    assert_eq!(run.reads("a", 1).await?[0].id(), "1");
    run.stop().await
}

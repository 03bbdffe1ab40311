//! Heartbeat records: when they come, under which name, and with which position.

use anyhow::Result;
use bson::{Document, doc};
use serde_json::json;
use thalweg_config::Properties;

use crate::fixture::bed;
use crate::fixture::run::{Offsets, Run, Seen};

/// Longer than a test runs: only what is forced is sent.
const NEVER: (&str, &str) = ("heartbeat.interval.ms", "3600000");
const ALWAYS: (&str, &str) = ("heartbeat.interval.ms", "1");

fn is_beat(seen: &Seen) -> bool {
    seen.topic.starts_with("__debezium-heartbeat")
}

async fn change(run: &mut Run) -> Result<Seen> {
    loop {
        let seen = run.record().await?;
        if !is_beat(&seen) {
            return Ok(seen);
        }
    }
}

/// None while a snapshot is read, however long the interval is over; one at its end, at once.
#[tokio::test]
async fn none_during_a_snapshot_and_one_at_its_end() -> Result<()> {
    for interval in [ALWAYS, NEVER] {
        let bed = bed(&format!("beats_snapshot{}", interval.1)).await?;
        bed.db.collection::<Document>("a").insert_many((0..300).map(|i| doc! {"_id": i})).await?;
        let config = bed.config(&[interval, ("max.batch.size", "7"), ("snapshot.fetch.size", "10")]);
        let mut run = Run::start(&config, &Offsets::new()).await?;
        let read = run.take(300).await?;
        assert!(read.iter().all(|r| r.op() == "r"), "{interval:?}");
        let beat = run.record().await?;
        assert!(is_beat(&beat), "{interval:?}");
        assert_eq!((&beat.key, beat.record.partition), (&json!({"serverName": "t"}), Some(0)));
        assert!(beat.record.headers.is_empty());
        assert_eq!(beat.offset, read[299].offset, "the snapshot is complete");
        assert_eq!(beat.offset.get("initsync"), None);
        run.stop().await?;
    }
    Ok(())
}

/// Once within an interval at most, whatever is read; and never without the option.
#[tokio::test]
async fn at_most_one_within_an_interval() -> Result<()> {
    let bed = bed("beats_interval").await?;
    let a = bed.db.collection::<Document>("a");
    for (more, beats) in [(&[NEVER][..], 1), (&[("heartbeat.interval.ms", "0")], 0), (&[], 0)] {
        let ids = || (0..50).map(|i| doc! {"_id": i});
        let mut run = Run::start(&bed.config(more), &Offsets::new()).await?;
        let mut seen = Vec::new();
        if beats == 1 {
            seen.push(run.record().await?);
        } else {
            while run.quiet().await?.get("initsync").is_some() {}
        }
        a.insert_many(ids()).await?;
        seen.extend(run.take(50).await?);
        a.delete_many(doc! {}).await?;
        seen.extend(run.take(100).await?);
        // An answer without changes as well.
        run.quiet().await?;
        assert_eq!(seen.iter().filter(|r| is_beat(r)).count(), beats, "{more:?}");
        run.stop().await?;
    }
    Ok(())
}

/// Changes that are not captured and answers without changes bring them on; each has the position up to
/// which the stream was read, which changes in between do not take back.
#[tokio::test]
async fn quiet_and_filtered_changes_bring_them_with_the_present_position() -> Result<()> {
    let bed = bed("beats_quiet").await?;
    let other = bed.db.collection::<Document>("other");
    // The server does not keep the others back: their events are read and dropped here.
    let own = [("cursor.pipeline.order", "user_only"), ("cursor.pipeline", "[{$match: {'ns.db': 'beats_quiet'}}]")];
    let lists = [("snapshot.mode", "no_data"), ("collection.include.list", r"beats_quiet\.a"), ALWAYS];
    let config = bed.config(&[&own[..], &lists].concat());
    let offsets = Offsets::new();
    let mut run = Run::start(&config, &offsets).await?;
    let first = run.record().await?;
    assert!(is_beat(&first), "without any change");
    assert_eq!((&first.offset["sec"], &first.offset["ord"]), (&json!(-1), &json!(-1)));
    assert_eq!(run_filtered(&run), 0);
    other.insert_one(doc! {"_id": 1}).await?;
    let mut beats = vec![first];
    while run_filtered(&run) == 0 {
        let beat = run.record().await?;
        assert!(is_beat(&beat), "{beat:?}");
        beats.push(beat);
    }
    bed.db.collection::<Document>("a").insert_one(doc! {"_id": 1}).await?;
    let change = change(&mut run).await?;
    assert_eq!(change.op(), "c");
    let behind = run.record().await?;
    assert!(is_beat(&behind));
    let mut times = Vec::new();
    for seen in beats.iter().chain([&change, &behind]) {
        let text = seen.offset["resume_token"].as_str().unwrap();
        let bytes = base64::Engine::decode(&base64::engine::general_purpose::STANDARD, text)?;
        // The type, then seconds and increment.
        times.push(Document::from_reader(&bytes[..])?.get_str("_data")?[..18].to_owned());
    }
    assert!(times.is_sorted(), "{times:?}");
    run.stop().await
}

fn run_filtered(run: &Run) -> u64 {
    run.progress.events_filtered.load(std::sync::atomic::Ordering::Relaxed)
}

#[tokio::test]
async fn names_of_the_topic() -> Result<()> {
    let bed = bed("beats_names").await?;
    let named = |more: &[(&str, &str)]| -> Properties { bed.config(&[&[NEVER], more].concat()) };
    for (more, topic) in [
        (&[][..], "__debezium-heartbeat.t"),
        (&[("topic.heartbeat.prefix", "beats")], "beats.t"),
        (&[("heartbeat.topics.prefix", "older")], "older.t"),
        (&[("topic.heartbeat.prefix", "beats"), ("topic.delimiter", "_")], "beats_t"),
        (&[("topic.heartbeat.prefix", "beats"), ("topic.heartbeat.name", "whole.name")], "whole.name"),
    ] {
        let mut run = Run::start(&named(more), &Offsets::new()).await?;
        assert_eq!(run.record().await?.topic, topic, "{more:?}");
        run.stop().await?;
    }
    Ok(())
}

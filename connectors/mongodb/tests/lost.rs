//! Positions that the server no longer holds.

use std::time::Duration;

use anyhow::{Context, Result};
use bson::{Document, Timestamp, doc};
use mongodb::Client;
use serde_json::{Value as Json, json};
use thalweg_core::{ErrorKind, Policy};
use thalweg_mongodb::token::Token;
use thalweg_services::{MemberOptions, ReplicaSet, until};

use crate::fixture::run::{Offsets, Run};
use crate::fixture::{PATIENCE, bed, config};

const WHOLE: [(&str, &str); 1] = [("server_id", "t")];

/// A server whose oplog can be rolled over quickly: the smallest size, and a checkpoint every
/// second (nothing is cut off the oplog before one).
async fn forgetful() -> Result<ReplicaSet> {
    let args = ["--syncdelay", "1"].map(str::to_owned).to_vec();
    ReplicaSet::start("rs0", 1, &MemberOptions { oplog_mb: 1, args, ..MemberOptions::default() }).await
}

async fn operation_time(client: &Client) -> Result<Timestamp> {
    Ok(client.database("admin").run_command(doc! {"hello": 1}).await?.get_timestamp("operationTime")?)
}

/// Cluster time of an offset's token.
pub fn time_of(offset: &Json) -> Result<Timestamp> {
    Token::from_text(offset["resume_token"].as_str().context("a token")?).time().context("a time in it")
}

/// Writes until everything up to now has left the oplog.
async fn roll(client: &Client) -> Result<()> {
    let now = operation_time(client).await?;
    let filler = client.database("filler").collection::<Document>("f");
    let oplog = client.database("local").collection::<Document>("oplog.rs");
    until("the oplog has rolled over", PATIENCE, || async {
        for _ in 0..10 {
            filler.insert_one(doc! {"_id": 1, "t": "z".repeat(1 << 20)}).await?;
            filler.delete_one(doc! {"_id": 1}).await?;
        }
        let first = oplog.find_one(doc! {}).sort(doc! {"$natural": 1}).await?.unwrap();
        let first: Timestamp = first.get_timestamp("ts")?;
        Ok((first > now).then_some(()))
    })
    .await
}

#[tokio::test]
async fn mgo_05_t_05_lost_resume_point() -> Result<()> {
    let set = forgetful().await?;
    let client = set.client().await?;
    let a = client.database("inv").collection::<Document>("a");
    let with = |mode: &[(&'static str, &'static str)]| {
        let mut more = vec![("database.include.list", "inv")];
        more.extend(mode);
        config(&set.uri(), &more)
    };
    // Positions of all kinds: of an event, of a quiet stream, a bare time.
    a.insert_one(doc! {"_id": 1}).await?;
    let offsets = Offsets::new();
    let mut run = Run::start(&with(&[]), &offsets).await?;
    run.take(1).await?;
    let quiet = run.quiet().await?;
    a.insert_one(doc! {"_id": 2}).await?;
    let event = run.record().await?.offset;
    run.stop().await?;
    let bare = json!({"sec": event["sec"], "ord": event["ord"]});
    let damaged = json!({"sec": 1, "ord": 1, "resume_token": "not a token"});
    roll(&client).await?;

    for offset in [&quiet, &event, &bare, &damaged] {
        for mode in ["initial", "no_data", "initial_only", "always"] {
            let stored = Offsets::with(&WHOLE, offset.clone());
            let config = config(&set.uri(), &[("database.include.list", "inv"), ("snapshot.mode", mode)]);
            let error = Run::start(&config, &stored).await?.error().await?;
            assert_eq!(error.kind, ErrorKind::PositionLost, "{mode} {offset}: {error}");
            assert_eq!(error.policy(), Policy::NeedsUser);
            let text = error.trace();
            assert!(text.contains("no longer available on the server"), "{text}");
            assert!(text.contains("when_needed") || text.contains("when needed"), "{text}");
            assert_eq!(stored.only(), *offset, "the offset stays");
        }
        // A new snapshot, then the stream.
        let when_needed: [&[(&str, &str)]; 2] = [
            &[("snapshot.mode", "when_needed")],
            &[
                ("snapshot.mode", "configuration_based"),
                ("snapshot.mode.configuration.based.start.stream", "true"),
                ("snapshot.mode.configuration.based.snapshot.on.data.error", "true"),
            ],
        ];
        for (i, mode) in (0..).zip(when_needed) {
            let stored = Offsets::with(&WHOLE, offset.clone());
            let mut run = Run::start(&with(mode), &stored).await?;
            let read = run.record().await?;
            assert_eq!(read.op(), "r", "{mode:?} {offset}");
            while run.record().await?.snapshot() != "last" {}
            a.update_one(doc! {"_id": 1}, doc! {"$inc": {"n": 1 + i}}).await?;
            assert_eq!(run.record().await?.op(), "u");
            run.stop().await?;
        }
        let stored = Offsets::with(&WHOLE, offset.clone());
        let mode =
            [("snapshot.mode", "configuration_based"), ("snapshot.mode.configuration.based.start.stream", "true")];
        let error = Run::start(&with(&mode), &stored).await?.error().await?;
        assert_eq!(error.kind, ErrorKind::PositionLost, "{error}");
    }
    Ok(())
}

/// Nothing is written to what is captured, and the oplog rolls over: heartbeats carry the position on.
#[tokio::test]
async fn mgo_06_heartbeats_keep_the_position_of_a_quiet_collection() -> Result<()> {
    let set = forgetful().await?;
    let client = set.client().await?;
    let a = client.database("inv").collection::<Document>("a");
    let config = config(&set.uri(), &[("collection.include.list", r"inv\.a"), ("heartbeat.interval.ms", "1")]);
    a.insert_one(doc! {"_id": 1}).await?;
    let offsets = Offsets::new();
    let mut run = Run::start(&config, &offsets).await?;
    assert_eq!(run.record().await?.op(), "r");
    let beat = run.record().await?;
    assert_eq!(beat.topic, "__debezium-heartbeat.t");
    assert_eq!(beat.key, json!({"serverName": "t"}));
    assert!(beat.value["ts_ms"].is_i64());
    assert_eq!(beat.record.partition, Some(0));
    let before = beat.offset;

    {
        let rolled = roll(&client);
        tokio::pin!(rolled);
        loop {
            tokio::select! {
                done = &mut rolled => break done?,
                beat = run.record() => assert!(beat?.topic.starts_with("__"), "nothing else is captured"),
            }
        }
    }
    // The next heartbeat is of now.
    let now = operation_time(&client).await?;
    let mut moved = run.record().await?.offset;
    while time_of(&moved)? <= now {
        moved = run.record().await?.offset;
    }
    run.stop().await?;
    let error = Run::start(&config, &Offsets::with(&WHOLE, before)).await?.error().await?;
    assert_eq!(error.kind, ErrorKind::PositionLost, "the oplog has rolled over: {error}");

    a.insert_one(doc! {"_id": 2}).await?;
    let mut run = Run::start(&config, &offsets).await?;
    let mut next = run.record().await?;
    while next.topic.starts_with("__") {
        next = run.record().await?;
    }
    assert_eq!((next.op(), next.id().as_str()), ("c", "2"), "no snapshot");
    run.stop().await
}

/// The stream stands still (Kafka is slow) while the oplog rolls over it.
#[tokio::test]
async fn t_06_a_stream_that_is_overtaken_by_the_oplog() -> Result<()> {
    let set = forgetful().await?;
    let client = set.client().await?;
    let a = client.database("inv").collection::<Document>("a");
    for mode in ["when_needed", "initial"] {
        a.delete_many(doc! {}).await?;
        let config =
            config(&set.uri(), &[("database.include.list", "inv"), ("snapshot.mode", mode), ("max.batch.size", "1")]);
        let mut run = Run::start(&config, &Offsets::new()).await?;
        while run.quiet().await?.get("initsync").is_some() {}
        // More than is fetched ahead.
        for round in 0..8 {
            a.insert_many((0..10).map(|i| doc! {"_id": round * 10 + i, "t": "w".repeat(1 << 20)})).await?;
        }
        roll(&client).await?;
        a.delete_many(doc! {"_id": {"$gt": 0}}).await?;
        roll(&client).await?;
        if mode == "initial" {
            let error = run.error().await?;
            assert_eq!(error.kind, ErrorKind::PositionLost, "{error}");
            continue;
        }
        let mut record = run.record().await?;
        while record.op() != "r" {
            record = run.record().await?;
        }
        assert_eq!((record.id().as_str(), record.snapshot()), ("0", "last"));
        run.stop().await?;
    }
    Ok(())
}

#[tokio::test]
async fn t_07_a_token_of_another_target_is_lost_not_retried() -> Result<()> {
    let bed = bed("lost_target").await?;
    let mut run = Run::start(&bed.config(&[("snapshot.mode", "no_data")]), &Offsets::new()).await?;
    run.quiet().await?;
    bed.db.collection("a").insert_one(doc! {"_id": 1}).await?;
    let offset: Json = run.record().await?.offset;
    run.stop().await?;
    let stored = Offsets::with(&WHOLE, offset);
    let config = bed.config(&[("capture.scope", "collection"), ("capture.target", "lost_target.b")]);
    let mut run = Run::start(&config, &stored).await?;
    // The server notices with the first change that passes the place without having seen it.
    bed.db.collection("b").insert_one(doc! {"_id": 1}).await?;
    let error = run.error().await?;
    assert_eq!(error.kind, ErrorKind::PositionLost, "{error}");
    Ok(())
}

/// While the token is checked the network fails: that is no lost position.
#[tokio::test]
async fn t_18_a_broken_connection_is_not_a_lost_position() -> Result<()> {
    let bed = bed("lost_not").await?;
    let offsets = Offsets::new();
    let mut run = Run::start(&bed.config(&[]), &offsets).await?;
    while run.quiet().await?.get("initsync").is_some() {}
    run.stop().await?;
    let faults = bed.faults().await?;
    faults.inject(3, doc! {"failCommands": ["aggregate"], "closeConnection": true}).await?;
    let config = bed.config(&[("connect.backoff.initial.delay.ms", "1")]);
    let mut run = Run::start(&config, &offsets).await?;
    bed.db.collection("a").insert_one(doc! {"_id": 1}).await?;
    assert_eq!(run.record().await?.op(), "c");
    assert!(run.progress.disconnects.load(std::sync::atomic::Ordering::Relaxed) >= 1);
    tokio::time::timeout(Duration::from_secs(10), run.stop()).await?
}

//! Errors that the server gives on purpose: every class of reaction.

use std::sync::atomic::Ordering;

use anyhow::{Context, Result};
use bson::{Document, doc};
use futures::FutureExt;
use thalweg_core::{ErrorKind, Policy};

use crate::fixture::bed;
use crate::fixture::run::{Offsets, Run};

/// A stream that is opened again goes on with the next change: nothing twice, nothing missing.
#[tokio::test]
async fn passing_errors_are_not_noticed() -> Result<()> {
    let bed = bed("faults_passing").await?;
    let faults = bed.faults().await?;
    let a = bed.db.collection::<Document>("a");
    let config = bed.config(&[("snapshot.mode", "no_data"), ("connect.backoff.initial.delay.ms", "1")]);
    let mut run = Run::start(&config, &Offsets::new()).await?;
    run.quiet().await?;
    // One of each sort; all codes are in the unit tests.
    let codes = [43, 91, 136, 234, 10107, 11602];
    let mut written = 0;
    for code in codes {
        faults.inject(1, doc! {"failCommands": ["getMore"], "errorCode": code}).await?;
        a.insert_one(doc! {"_id": written, "code": code}).await?;
        let record = run.record().await.with_context(|| format!("after code {code}"))?;
        assert_eq!(record.after()["code"], code);
        written += 1;
    }
    let by_label = doc! {
        "failCommands": ["aggregate", "getMore"], "errorCode": 8, "errorLabels": ["ResumableChangeStreamError"],
    };
    for fault in [by_label, doc! {"failCommands": ["getMore", "aggregate"], "closeConnection": true}] {
        faults.inject(3, fault).await?;
        a.insert_one(doc! {"_id": written}).await?;
        assert_eq!(run.record().await?.id(), written.to_string());
        written += 1;
    }
    assert!(run.progress.disconnects.load(Ordering::Relaxed) >= codes.len() as u64);
    run.stop().await
}

/// Opening the stream works, every answer after that fails: that ends, and not at full speed.
#[tokio::test]
async fn a_stream_that_never_gets_on_is_given_up() -> Result<()> {
    let bed = bed("faults_endless").await?;
    let faults = bed.faults().await?;
    let config = bed.config(&[
        ("snapshot.mode", "no_data"),
        ("connect.backoff.initial.delay.ms", "1"),
        ("connect.max.attempts", "4"),
    ]);
    let mut run = Run::start(&config, &Offsets::new()).await?;
    run.quiet().await?;
    faults.inject(1000, doc! {"failCommands": ["getMore"], "errorCode": 43}).await?;
    let error = run.error().await?;
    assert!(error.to_string().contains("after 4 attempts"), "{error}");
    assert_eq!(error.policy(), Policy::NeedsUser);
    Ok(())
}

#[tokio::test]
async fn other_errors_end_the_run_with_their_kind() -> Result<()> {
    let bed = bed("faults_final").await?;
    let faults = bed.faults().await?;
    let config = bed.config(&[("snapshot.mode", "no_data")]);
    let offsets = Offsets::new();
    let mut run = Run::start(&config, &offsets).await?;
    run.quiet().await?;
    run.stop().await?;
    for (command, code, kind) in [
        ("aggregate", 286, ErrorKind::PositionLost),
        ("getMore", 286, ErrorKind::PositionLost),
        ("aggregate", 280, ErrorKind::PositionLost),
        ("getMore", 280, ErrorKind::PositionLost),
        ("aggregate", 260, ErrorKind::PositionLost),
        ("aggregate", 40647, ErrorKind::PositionLost),
        ("aggregate", 13, ErrorKind::Permission),
        ("getMore", 13, ErrorKind::Permission),
        ("getMore", 18, ErrorKind::Auth),
        ("aggregate", 8000, ErrorKind::Auth),
    ] {
        faults.inject(1, doc! {"failCommands": [command], "errorCode": code}).await?;
        let mut run = Run::start(&config, &offsets.copy()).await?;
        let error = run.error().await?;
        assert_eq!(error.kind, kind, "{command} {code}: {error}");
        assert_eq!(error.policy(), Policy::NeedsUser);
    }
    // A final answer about the stream itself.
    for code in [9, 20, 40324, 51091, 40573, 40674, 10334] {
        faults.inject(1, doc! {"failCommands": ["aggregate"], "errorCode": code}).await?;
        let error = Run::start(&config, &offsets.copy()).await?.error().await?;
        assert_eq!(error.policy(), Policy::NeedsUser, "{code}: {error}");
        assert_ne!(error.kind, ErrorKind::PositionLost, "{code}");
    }
    // Everything else is worth another try of the supervisor.
    faults.inject(1, doc! {"failCommands": ["getMore"], "errorCode": 8}).await?;
    let error = Run::start(&config, &offsets.copy()).await?.error().await?;
    assert_eq!(error.policy(), Policy::Retry, "{error}");
    Ok(())
}

#[tokio::test]
async fn users_may_name_further_errors_that_pass() -> Result<()> {
    let bed = bed("faults_named").await?;
    let faults = bed.faults().await?;
    let named = bed
        .config(&[("snapshot.mode", "no_data"), ("internal.custom.retriable.exception", ".*sufficient privileges.*")]);
    faults.inject(1, doc! {"failCommands": ["aggregate"], "errorCode": 13}).await?;
    let error = Run::start(&named, &Offsets::new()).await?.error().await?;
    assert_eq!(error.policy(), Policy::Retry, "{error}");
    Ok(())
}

#[tokio::test]
async fn mgo_08_t_19_connection_failures_at_start_are_retried() -> Result<()> {
    let bed = bed("mgo_08").await?;
    let faults = bed.faults().await?;
    bed.db.collection("a").insert_one(doc! {"_id": 1}).await?;
    let config = bed.config(&[("connect.backoff.initial.delay.ms", "1"), ("connect.backoff.max.delay.ms", "4")]);
    faults.inject(12, doc! {"failCommands": ["hello", "aggregate", "listDatabases"], "closeConnection": true}).await?;
    let mut run = Run::start(&config, &Offsets::new()).await?;
    assert_eq!(run.record().await?.op(), "r");
    run.stop().await
}

#[tokio::test]
async fn attempts_to_connect_end() -> Result<()> {
    let port = thalweg_services::free_port()?;
    let config = crate::fixture::config(
        &format!("mongodb://127.0.0.1:{port}/?replicaSet=rs0"),
        &[
            ("mongodb.server.selection.timeout.ms", "50"),
            ("connect.backoff.initial.delay.ms", "1"),
            ("connect.backoff.max.delay.ms", "2"),
            ("connect.max.attempts", "3"),
        ],
    );
    let error = Run::start(&config, &Offsets::new()).await?.error().await?;
    assert!(error.to_string().contains("Unable to connect to MongoDB after 3 attempts"), "{error}");
    assert_eq!(error.policy(), Policy::NeedsUser);
    Ok(())
}

/// Delays that were asked for: a watch that looks for signs of life must see them, however long they are.
#[tokio::test]
async fn intended_waits_are_no_standstill() -> Result<()> {
    let bed = bed("faults_rest").await?;
    let hours = "7200000";
    let nowhere = format!("mongodb://127.0.0.1:{}/?replicaSet=rs0", thalweg_services::free_port()?);
    for config in [
        bed.config(&[("snapshot.delay.ms", hours)]),
        bed.config(&[("streaming.delay.ms", hours)]),
        crate::fixture::config(
            &nowhere,
            &[
                ("mongodb.server.selection.timeout.ms", "50"),
                ("connect.backoff.initial.delay.ms", hours),
                ("connect.backoff.max.delay.ms", hours),
            ],
        ),
    ] {
        let mut run = Run::start(&config, &Offsets::new()).await?;
        thalweg_services::until("it rests", crate::fixture::PATIENCE, || {
            // Before the streaming delay lies a snapshot, which somebody must take.
            let read = run.advance().now_or_never();
            let rests = run.progress.is_resting().then_some(());
            async move { read.transpose().map(|_| rests) }
        })
        .await?;
        let progress = run.progress.clone();
        run.stop().await?;
        assert!(!progress.is_resting());
    }
    Ok(())
}

/// A server that holds back its answer for longer than `mongodb.socket.timeout.ms` allows.
#[tokio::test]
async fn silence_is_ended_by_the_socket_timeout() -> Result<()> {
    let bed = bed("faults_silence").await?;
    let faults = bed.faults().await?;
    let config = bed.config(&[
        ("snapshot.mode", "no_data"),
        ("mongodb.socket.timeout.ms", "200"),
        ("cursor.max.await.time.ms", "50"),
        ("connect.backoff.initial.delay.ms", "1"),
    ]);
    let mut run = Run::start(&config, &Offsets::new()).await?;
    run.quiet().await?;
    faults.inject(1, doc! {"failCommands": ["getMore"], "blockConnection": true, "blockTimeMS": 30_000}).await?;
    bed.db.collection("a").insert_one(doc! {"_id": 1}).await?;
    let record = tokio::time::timeout(std::time::Duration::from_secs(15), run.record()).await??;
    assert_eq!(record.id(), "1");
    assert!(run.progress.disconnects.load(Ordering::Relaxed) >= 1);
    run.stop().await
}

//! Three members: the primary changes while reading.

use std::sync::atomic::Ordering;

use anyhow::Result;
use bson::{Document, doc};
use mongodb::options::{Acknowledgment, WriteConcern};
use nix::sys::signal::Signal;
use thalweg_services::{MemberOptions, ReplicaSet, until};

use crate::fixture::run::{Offsets, Run};
use crate::fixture::{PATIENCE, config};

/// Inserts the next number durably, whoever is primary now.
async fn insert(collection: &mongodb::Collection<Document>, n: i32) -> Result<()> {
    until("a durable insert", PATIENCE, || async {
        match collection.insert_one(doc! {"_id": n}).await {
            Ok(_) => Ok(Some(())),
            Err(e) if e.to_string().contains("E11000") => Ok(Some(())),
            Err(e) => Err(e.into()),
        }
    })
    .await
}

/// SIGKILL, a frozen primary, and a graceful step-down (which leaves the stream where it is), in one
/// run of the connector: every number once and in order, no snapshot after the first, elections
/// counted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t_01_reading_goes_on_over_elections() -> Result<()> {
    let mut set = ReplicaSet::start("rs3", 3, &MemberOptions::default()).await?;
    let client = set.client().await?;
    let majority = WriteConcern::builder().w(Acknowledgment::Majority).build();
    let options = mongodb::options::CollectionOptions::builder().write_concern(majority).build();
    let numbers = client.database("n").collection_with_options::<Document>("numbers", options);
    insert(&numbers, 0).await?;
    let config = config(
        &set.uri(),
        &[
            ("database.include.list", "n"),
            ("connect.backoff.initial.delay.ms", "100"),
            ("mongodb.heartbeat.frequency.ms", "500"),
            ("mongodb.connect.timeout.ms", "1000"),
        ],
    );
    let mut run = Run::start(&config, &Offsets::new()).await?;
    assert_eq!(run.record().await?.op(), "r");
    let mut next = 1;
    for event in ["nothing", "kill", "freeze", "step down"] {
        let old = set.primary().await?;
        match event {
            "step down" => drop(set.step_down().await?),
            "kill" => set.members[old].kill()?,
            "freeze" => set.members[old].signal(Signal::SIGSTOP)?,
            _ => {}
        }
        for _ in 0..5 {
            insert(&numbers, next).await?;
            let record = run.record().await?;
            assert_eq!((record.op(), record.id()), ("c", next.to_string()), "after {event}");
            next += 1;
        }
        match event {
            "kill" => set.members[old].start()?,
            "freeze" => set.members[old].signal(Signal::SIGCONT)?,
            _ => {}
        }
        if event == "kill" || event == "freeze" {
            // The next fault needs a majority without its victim.
            let client = set.members[set.primary().await?].direct().await?;
            until("the killed member is back", PATIENCE, || async {
                let status = client.database("admin").run_command(doc! {"replSetGetStatus": 1}).await?;
                let up = status.get_array("members")?.iter().filter_map(|m| m.as_document()?.get_i32("state").ok());
                Ok((up.filter(|state| *state == 1 || *state == 2).count() == 3).then_some(()))
            })
            .await?;
        }
    }
    assert!(run.progress.elections.load(Ordering::Relaxed) >= 3, "{:?}", run.progress.elections);
    assert!(run.progress.disconnects.load(Ordering::Relaxed) >= 2);
    run.stop().await
}

/// Without a majority the primary takes writes that it may have to take back: they are no records
/// until the majority has them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t_20_writes_without_a_majority_are_no_records() -> Result<()> {
    let set = ReplicaSet::start("rs3", 3, &MemberOptions::default()).await?;
    let primary = set.primary().await?;
    let direct = set.members[primary].direct().await?;
    // It stays primary for as long as this takes.
    let admin = direct.database("admin");
    let mut patient = admin.run_command(doc! {"replSetGetConfig": 1}).await?.get_document("config")?.clone();
    let version = patient.get_i32("version")?;
    patient.insert("version", version + 1);
    patient.get_document_mut("settings")?.insert("electionTimeoutMillis", 60_000);
    admin.run_command(doc! {"replSetReconfig": patient}).await?;
    let one = WriteConcern::builder().w(Acknowledgment::Nodes(1)).build();
    let options = mongodb::options::CollectionOptions::builder().write_concern(one).build();
    let numbers = direct.database("n").collection_with_options::<Document>("numbers", options);
    let uri = format!("mongodb://{}/?directConnection=true", set.members[primary].address());
    let config = config(
        &uri,
        &[("database.include.list", "n"), ("snapshot.mode", "no_data"), ("cursor.max.await.time.ms", "50")],
    );
    let mut run = Run::start(&config, &Offsets::new()).await?;
    run.batch().await?;
    let others = || set.members.iter().enumerate().filter(|(i, _)| *i != primary).map(|(_, m)| m);
    for member in others() {
        member.signal(Signal::SIGSTOP)?;
    }
    numbers.insert_one(doc! {"_id": 1}).await?;
    assert_eq!(numbers.count_documents(doc! {}).await?, 1);
    for _ in 0..5 {
        assert!(run.batch().await?.records.is_empty());
    }
    for member in others() {
        member.signal(Signal::SIGCONT)?;
    }
    assert_eq!(run.record().await?.id(), "1");
    run.stop().await
}

//! Starting again at stored offsets.

use anyhow::Result;
use bson::{Document, doc};
use serde_json::{Value as Json, json};

use crate::fixture::bed;
use crate::fixture::run::{Offsets, Run};

const WHOLE: [(&str, &str); 1] = [("server_id", "t")];

#[tokio::test]
async fn t_03_t_88_reading_resumes_at_every_position() -> Result<()> {
    let bed = bed("resume_every").await?;
    let a = bed.db.collection::<Document>("a");
    let config = bed.config(&[("snapshot.mode", "no_data")]);
    let offsets = Offsets::new();
    let mut run = Run::start(&config, &offsets).await?;
    run.quiet().await?;
    let start = offsets.only();
    a.insert_one(doc! {"_id": 1}).await?;
    a.update_one(doc! {"_id": 1}, doc! {"$set": {"x": 1}}).await?;
    a.delete_one(doc! {"_id": 1}).await?;
    let mut session = bed.client.start_session().await?;
    session.start_transaction().await?;
    for i in 10..14 {
        a.insert_one(doc! {"_id": i}).session(&mut session).await?;
    }
    session.commit_transaction().await?;
    a.insert_one(doc! {"_id": 2}).await?;
    let all = run.take(9).await?;
    run.stop().await?;
    assert_eq!(all[4].value["source"]["lsid"], all[7].value["source"]["lsid"]);
    assert!(all[4].value["source"]["lsid"].is_string() && all[4].value["source"]["txnNumber"].is_i64());
    assert_eq!(all[8].value["source"]["lsid"], Json::Null);

    let stored = std::iter::once(&start).chain(all.iter().map(|r| &r.offset)).enumerate();
    for (delivered, offset) in stored.filter(|(i, _)| *i < 9) {
        let mut run = Run::start(&config, &Offsets::with(&WHOLE, offset.clone())).await?;
        // A delete and its tombstone are one: what is stored with the delete comes before it.
        let from = if delivered == 3 { 2 } else { delivered };
        let again = run.take(9 - from).await?;
        for (expected, record) in all[from..].iter().zip(&again) {
            assert_eq!(record.key, expected.key);
            // With a delete is stored what lies before it, which an empty answer may have moved.
            if record.op() != "d" {
                assert_eq!(record.offset, expected.offset, "from {delivered}");
            }
            assert_eq!(record.value["source"]["ts_ms"], expected.value["source"]["ts_ms"]);
            assert_eq!(record.value["source"]["ord"], expected.value["source"]["ord"]);
            assert_eq!(record.op(), expected.op());
        }
        run.stop().await?;
    }
    Ok(())
}

#[tokio::test]
async fn mgo_18_restart_inside_a_transaction() -> Result<()> {
    let bed = bed("mgo_18").await?;
    let a = bed.db.collection::<Document>("a");
    a.insert_one(doc! {"_id": -1}).await?;
    let config = bed.config(&[("snapshot.mode", "no_data")]);
    let offsets = Offsets::new();
    let mut run = Run::start(&config, &offsets).await?;
    run.quiet().await?;
    let mut session = bed.client.start_session().await?;
    for transaction in [0..4, 4..9] {
        session.start_transaction().await?;
        for i in transaction {
            a.insert_one(doc! {"_id": i}).session(&mut session).await?;
        }
        session.commit_transaction().await?;
    }
    run.take(2).await?;
    run.stop().await?;
    let mut run = Run::start(&config, &offsets).await?;
    let ids: Vec<String> = run.take(7).await?.iter().map(|r| r.id()).collect();
    assert_eq!(ids, ["2", "3", "4", "5", "6", "7", "8"]);
    run.stop().await
}

#[tokio::test]
async fn t_09_t_10_offsets_of_other_releases_are_found() -> Result<()> {
    let bed = bed("resume_compat").await?;
    let a = bed.db.collection::<Document>("a");
    let config = bed.config(&[]);
    let offsets = Offsets::new();
    let mut run = Run::start(&config, &offsets).await?;
    while run.quiet().await?.get("initsync").is_some() {}
    let offset = offsets.only();
    run.stop().await?;
    a.insert_one(doc! {"_id": 1}).await?;

    // By replica set.
    let older = Offsets::with(&[("rs", "rs0"), ("server_id", "t")], offset.clone());
    let mut run = Run::start(&config, &older).await?;
    let next = run.record().await?;
    assert_eq!((next.op(), next.id().as_str()), ("c", "1"));
    run.stop().await?;
    // As plain hex.
    let base64 = offset["resume_token"].as_str().unwrap();
    let bytes = base64::Engine::decode(&base64::engine::general_purpose::STANDARD, base64)?;
    let hex = Document::from_reader(&bytes[..])?.get_str("_data")?.to_owned();
    let plain = json!({"sec": 1, "ord": 1, "resume_token": hex});
    let mut run = Run::start(&config, &Offsets::with(&WHOLE, plain)).await?;
    assert_eq!(run.record().await?.op(), "c");
    run.stop().await?;
    // Without a token: mgo_27.
    let time = u32::from_str_radix(&hex[2..10], 16)?;
    let ord = u32::from_str_radix(&hex[10..18], 16)?;
    let bare = json!({"sec": time, "ord": ord});
    let mut run = Run::start(&config, &Offsets::with(&WHOLE, bare)).await?;
    assert_eq!(run.record().await?.op(), "c");
    run.stop().await
}

//! Capture modes: what `before` and `after` of updates hold.

use anyhow::Result;
use bson::{Document, doc};
use serde_json::{Value as Json, json};

use crate::fixture::run::{Offsets, Run, Seen};
use crate::fixture::{Bed, bed};

async fn with_images(name: &str) -> Result<Bed> {
    let bed = bed(name).await?;
    bed.db.run_command(doc! {"create": "with", "changeStreamPreAndPostImages": {"enabled": true}}).await?;
    bed.db.create_collection("without").await?;
    for collection in ["with", "without"] {
        bed.db.collection(collection).insert_one(doc! {"_id": 1, "x": 1}).await?;
    }
    Ok(bed)
}

fn before(record: &Seen) -> Json {
    record.value["before"].as_str().map_or(Json::Null, |text| serde_json::from_str(text).unwrap())
}

/// Two updates and a delete in both collections while nothing reads, then all of it is read.
async fn records(bed: &Bed, more: &[(&str, &str)]) -> Result<Vec<Seen>> {
    let mut all = vec![("snapshot.mode", "no_data"), ("tombstones.on.delete", "false")];
    all.extend(more);
    let config = bed.config(&all);
    let offsets = Offsets::new();
    let mut run = Run::start(&config, &offsets).await?;
    run.quiet().await?;
    run.stop().await?;
    for collection in ["with", "without"] {
        let collection = bed.db.collection::<Document>(collection);
        for x in [2, 3] {
            collection.update_one(doc! {"_id": 1}, doc! {"$set": {"x": x}}).await?;
        }
        collection.delete_one(doc! {"_id": 1}).await?;
    }
    let mut run = Run::start(&config, &offsets).await?;
    let records = run.take(6).await?;
    run.stop().await?;
    Ok(records)
}

fn doc_x(x: i32) -> Json {
    json!({"_id": 1, "x": x})
}

#[tokio::test]
async fn without_images() -> Result<()> {
    let bed = with_images("images_none").await?;
    let records = records(&bed, &[("capture.mode", "change_streams")]).await?;
    for record in &records {
        assert_eq!((before(record), record.after()), (Json::Null, Json::Null));
    }
    assert_eq!(records[0].value["updateDescription"]["updatedFields"], r#"{"x": 2}"#);
    Ok(())
}

/// mgo_14 (a): both updates may show the last state; each has its own step.
#[tokio::test]
async fn mgo_14_a_lookup_of_a_document_that_still_exists() -> Result<()> {
    let bed = with_images("mgo_14_exists").await?;
    let config = bed.config(&[("snapshot.mode", "no_data"), ("capture.mode", "change_streams_update_full")]);
    let offsets = Offsets::new();
    let mut run = Run::start(&config, &offsets).await?;
    run.quiet().await?;
    run.stop().await?;
    let without = bed.db.collection::<Document>("without");
    for x in [2, 3] {
        without.update_one(doc! {"_id": 1}, doc! {"$set": {"x": x}}).await?;
    }
    let mut run = Run::start(&config, &offsets).await?;
    for (record, x) in run.take(2).await?.iter().zip([2, 3]) {
        assert_eq!((record.op(), record.after()), ("u", doc_x(3)));
        assert_eq!(record.value["updateDescription"]["updatedFields"], format!(r#"{{"x": {x}}}"#));
    }
    run.stop().await
}

/// mgo_14 (b): by the time of the lookup the document is gone; each update still has its own step.
#[tokio::test]
async fn mgo_14_lookup_shows_the_present_state() -> Result<()> {
    let bed = with_images("mgo_14_lookup").await?;
    let records = records(&bed, &[("capture.mode", "change_streams_update_full")]).await?;
    let ops: Vec<&str> = records.iter().map(Seen::op).collect();
    assert_eq!(ops, ["u", "u", "d", "u", "u", "d"]);
    for record in &records {
        assert_eq!(record.after(), Json::Null);
    }
    let steps: Vec<&Json> = records[..2].iter().map(|r| &r.value["updateDescription"]["updatedFields"]).collect();
    assert_eq!(steps, [r#"{"x": 2}"#, r#"{"x": 3}"#]);
    Ok(())
}

#[tokio::test]
async fn mgo_14_post_images_show_each_state() -> Result<()> {
    let bed = with_images("mgo_14_post").await?;
    let more = [("capture.mode", "change_streams_update_full"), ("capture.mode.full.update.type", "post_image")];
    let records = records(&bed, &more).await?;
    let after: Vec<Json> = records.iter().map(Seen::after).collect();
    assert_eq!(after, [doc_x(2), doc_x(3), Json::Null, Json::Null, Json::Null, Json::Null]);
    assert!(records.iter().all(|r| before(r) == Json::Null));
    Ok(())
}

#[tokio::test]
async fn mgo_15_before_images() -> Result<()> {
    let bed = with_images("mgo_15").await?;
    let records = records(&bed, &[("capture.mode", "change_streams_update_full_with_pre_image")]).await?;
    let seen: Vec<Json> = records.iter().map(before).collect();
    assert_eq!(seen, [doc_x(1), doc_x(2), doc_x(3), Json::Null, Json::Null, Json::Null]);
    Ok(())
}

#[tokio::test]
async fn before_images_alone() -> Result<()> {
    let bed = with_images("images_pre").await?;
    let records = records(&bed, &[("capture.mode", "change_streams_with_pre_image")]).await?;
    let seen: Vec<(Json, Json)> = records[..3].iter().map(|r| (before(r), r.after())).collect();
    assert_eq!(seen, [(doc_x(1), Json::Null), (doc_x(2), Json::Null), (doc_x(3), Json::Null)]);
    Ok(())
}

//! Filters, scopes, and what happens to the collections themselves.

use anyhow::Result;
use bson::{Document, doc};

use crate::fixture::run::{Offsets, Run};
use crate::fixture::{bed, config};

#[tokio::test]
async fn mgo_01_t_54_blanks_in_lists() -> Result<()> {
    let bed = bed("mgo_01").await?;
    for name in ["a", "b", "c"] {
        bed.db.collection(name).insert_one(doc! {"_id": 1}).await?;
    }
    let list = [("collection.include.list", " mgo_01.a ,\n   mgo_01.b  ,,"), ("database.include.list", "mgo_01, crm")];
    let mut run = Run::start(&config(&bed.uri, &list), &Offsets::new()).await?;
    let read: Vec<String> = run.take(2).await?.into_iter().map(|r| r.topic).collect();
    assert_eq!(read, ["t.mgo_01.a", "t.mgo_01.b"]);
    for name in ["a", "c", "b"] {
        bed.db.collection(name).insert_one(doc! {"_id": 2}).await?;
    }
    let streamed: Vec<String> = run.take(2).await?.into_iter().map(|r| r.topic).collect();
    assert_eq!(streamed, ["t.mgo_01.a", "t.mgo_01.b"]);
    run.stop().await
}

#[tokio::test]
async fn t_53_database_lists_are_anchored() -> Result<()> {
    let bed = bed("ns_db1").await?;
    let others = ["ns_db12", "my_ns_db1"].map(|name| bed.client.database(name));
    let mut including = Run::start(&bed.config(&[("snapshot.mode", "no_data")]), &Offsets::new()).await?;
    let exclude = [("database.exclude.list", "ns_db1"), ("database.include.list", ""), ("snapshot.mode", "no_data")];
    let mut excluding = Run::start(&config(&bed.uri, &[exclude[0], exclude[2]]), &Offsets::new()).await?;
    including.quiet().await?;
    excluding.batch().await?;
    for db in [&others[0], &bed.db, &others[1]] {
        db.collection("a").insert_one(doc! {"_id": 1}).await?;
    }
    assert_eq!(including.record().await?.topic, "t.ns_db1.a");
    including.quiet().await?;
    // Other tests write to databases of their own meanwhile.
    let mut seen = Vec::new();
    while seen.len() < 2 {
        let topic = excluding.record().await?.topic;
        if topic.contains("ns_db1") {
            seen.push(topic);
        }
    }
    assert_eq!(seen, ["t.ns_db12.a", "t.my_ns_db1.a"]);
    including.stop().await?;
    excluding.stop().await
}

#[tokio::test]
async fn mgo_22_literal_filter_mode() -> Result<()> {
    let bed = bed("mgo_22").await?;
    let list = [("filters.match.mode", "literal"), ("collection.include.list", "mgo_22.a.b,mgo_22.a+b")];
    for name in ["a.b", "a+b", "axb", "A.b"] {
        bed.db.collection(name).insert_one(doc! {"_id": 1}).await?;
    }
    let mut run = Run::start(&config(&bed.uri, &list), &Offsets::new()).await?;
    let mut read: Vec<String> = run.take(2).await?.into_iter().map(|r| r.topic).collect();
    read.sort();
    assert_eq!(read, ["t.mgo_22.a.b", "t.mgo_22.a_b"]);
    for name in ["axb", "A.b", "a+b", "a.b"] {
        bed.db.collection(name).insert_one(doc! {"_id": 2}).await?;
    }
    let streamed: Vec<String> = run.take(2).await?.into_iter().map(|r| r.topic).collect();
    assert_eq!(streamed, ["t.mgo_22.a_b", "t.mgo_22.a.b"]);
    run.stop().await
}

/// Drop, rename, index and validator changes make no records; streams of a database or a collection
/// that the server closes are opened again behind the closing event, in this run and in the next.
#[tokio::test]
async fn mgo_17_t_61_t_62_t_63_collections_come_and_go() -> Result<()> {
    for (name, scope, target) in [
        ("mgo_17_deployment", "deployment", ""),
        ("mgo_17_database", "database", "mgo_17_database"),
        ("mgo_17_collection", "collection", "mgo_17_collection.a"),
    ] {
        let bed = bed(name).await?;
        let a = bed.db.collection::<Document>("a");
        let b = bed.db.collection::<Document>("b");
        let mut more = vec![("capture.scope", scope), ("snapshot.mode", "no_data")];
        if !target.is_empty() {
            more.push(("capture.target", target));
        }
        let config = bed.config(&more);
        let offsets = Offsets::new();
        let mut run = Run::start(&config, &offsets).await?;
        run.quiet().await?;
        a.insert_one(doc! {"_id": 1}).await?;
        a.create_index(mongodb::IndexModel::builder().keys(doc! {"x": 1}).build()).await?;
        bed.db.run_command(doc! {"collMod": "a", "validator": {}}).await?;
        a.drop().await?;
        a.insert_one(doc! {"_id": 2}).await?;
        let ids: Vec<String> = run.take(2).await?.iter().map(|r| r.id()).collect();
        assert_eq!(ids, ["1", "2"], "{scope}");

        if scope != "collection" {
            b.insert_one(doc! {"_id": 3}).await?;
            let rename = doc! {"renameCollection": format!("{name}.b"), "to": format!("{name}.a2")};
            bed.client.database("admin").run_command(rename).await?;
            bed.db.collection::<Document>("a2").update_one(doc! {"_id": 3}, doc! {"$set": {"x": 1}}).await?;
            let topics: Vec<String> = run.take(2).await?.into_iter().map(|r| r.topic).collect();
            assert_eq!(topics, [format!("t.{name}.b"), format!("t.{name}.a2")]);
        }
        bed.db.drop().await?;
        a.insert_one(doc! {"_id": 4}).await?;
        assert_eq!(run.record().await?.id(), "4", "{scope}");
        // The stored token is that of the event which closed the stream.
        bed.db.drop().await?;
        run.quiet().await?;
        run.quiet().await?;
        run.stop().await?;
        a.insert_one(doc! {"_id": 5}).await?;
        let mut run = Run::start(&config, &offsets).await?;
        let next = run.record().await?;
        assert_eq!((next.op(), next.id().as_str()), ("c", "5"), "{scope}");
        run.stop().await?;
    }
    Ok(())
}

#[tokio::test]
async fn operations_are_left_out_on_the_server() -> Result<()> {
    let bed = bed("ns_skipped").await?;
    let a = bed.db.collection::<Document>("a");
    let config = bed.config(&[("snapshot.mode", "no_data"), ("skipped.operations", "c,d")]);
    let mut run = Run::start(&config, &Offsets::new()).await?;
    run.quiet().await?;
    a.insert_one(doc! {"_id": 1}).await?;
    a.update_one(doc! {"_id": 1}, doc! {"$set": {"x": 1}}).await?;
    a.delete_one(doc! {"_id": 1}).await?;
    a.insert_one(doc! {"_id": 2}).await?;
    a.replace_one(doc! {"_id": 2}, doc! {"y": 1}).await?;
    let seen: Vec<(String, String)> = run.take(2).await?.iter().map(|r| (r.op().to_owned(), r.id())).collect();
    assert_eq!(seen, [("u".to_owned(), "1".to_owned()), ("u".to_owned(), "2".to_owned())]);
    run.stop().await
}

#[tokio::test]
async fn t_66_t_67_own_stages_and_what_the_server_thinks_of_them() -> Result<()> {
    let bed = bed("ns_pipeline").await?;
    let a = bed.db.collection::<Document>("a");
    let no_data = ("snapshot.mode", "no_data");
    let config = bed.config(&[no_data, ("cursor.pipeline", "[{$match:{'fullDocument.name':'Dennis'}}]")]);
    let mut run = Run::start(&config, &Offsets::new()).await?;
    run.quiet().await?;
    a.insert_many([doc! {"_id": 1, "name": "Ann"}, doc! {"_id": 2, "name": "Dennis"}]).await?;
    assert_eq!(run.record().await?.id(), "2");
    run.stop().await?;

    // Events of kinds that nobody asked for are left out, not failed on.
    let own = format!(r#"[{{"$match": {{"ns.db": "{}"}}}}]"#, bed.db.name());
    let config = bed.config(&[no_data, ("cursor.pipeline.order", "user_only"), ("cursor.pipeline", &own)]);
    let mut run = Run::start(&config, &Offsets::new()).await?;
    run.quiet().await?;
    bed.db.collection::<Document>("gone").insert_one(doc! {"_id": 1}).await?;
    bed.db.collection::<Document>("gone").drop().await?;
    a.insert_one(doc! {"_id": 3}).await?;
    let ids: Vec<String> = run.take(2).await?.iter().map(|r| r.id()).collect();
    assert_eq!(ids, ["1", "3"]);
    run.stop().await?;

    for (stages, code) in [(r#"[{"$group": {"_id": "$ns"}}]"#, "20"), (r#"[{"$project": {"_id": 0}}]"#, "280")] {
        let config = bed.config(&[no_data, ("cursor.pipeline", stages)]);
        let mut run = Run::start(&config, &Offsets::new()).await?;
        a.insert_one(doc! {"x": 1}).await?;
        let failing = run.error();
        tokio::pin!(failing);
        let error = loop {
            tokio::select! {
                error = &mut failing => break error?,
                // The stream may have opened after the first one.
                inserted = a.insert_one(doc! {"x": 1}) => drop(inserted?),
            }
        };
        assert!(error.to_string().contains(code), "{error}");
        assert_eq!(error.policy(), thalweg_core::Policy::NeedsUser, "{error}");
        assert_ne!(error.kind, thalweg_core::ErrorKind::PositionLost, "{error}");
    }
    Ok(())
}

#[tokio::test]
async fn t_58_t_59_lists_that_match_nothing_leave_the_stream_running() -> Result<()> {
    let bed = bed("ns_nothing").await?;
    let config = bed.config(&[("collection.include.list", "ns_nothing.later")]);
    let mut run = Run::start(&config, &Offsets::new()).await?;
    while run.quiet().await?.get("initsync").is_some() {}
    bed.db.collection("later").insert_one(doc! {"_id": 1}).await?;
    assert_eq!(run.record().await?.op(), "c");
    run.stop().await
}

#[tokio::test]
async fn more_collections_than_allowed() -> Result<()> {
    let bed = bed("ns_guardrail").await?;
    for name in ["a", "b", "c"] {
        bed.db.create_collection(name).await?;
    }
    let limit = [("guardrail.collections.max", "2"), ("guardrail.collections.limit.action", "fail")];
    let error = Run::start(&bed.config(&limit), &Offsets::new()).await?.error().await?;
    assert_eq!(error.policy(), thalweg_core::Policy::NeedsUser);
    assert!(error.to_string().contains("guardrail.collections.max"), "{error}");
    let mut run = Run::start(&bed.config(&limit[..1]), &Offsets::new()).await?;
    run.quiet().await?;
    run.stop().await
}

//! Sharded clusters: real replica sets behind a stand-in for the router.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::Result;
use bson::{Document, doc};
use serde_json::json;
use thalweg_config::Properties;
use thalweg_core::position::SourcePartition;
use thalweg_core::source::Connector;
use thalweg_core::{ErrorKind, Policy};
use thalweg_mongodb::MongoDbConnector;
use thalweg_services::{MemberOptions, ReplicaSet, Router, Shards};
use tokio_util::sync::CancellationToken;

use crate::fixture::run::{Offsets, Run, Seen, tasks};
use crate::fixture::{PATIENCE, config, shared};

const MODE: (&str, &str) = ("mongodb.connection.mode", "replica_set");

fn listed(shards: &[(&str, &str)]) -> Shards {
    Shards::Are(shards.iter().map(|(id, host)| ((*id).to_owned(), (*host).to_owned())).collect())
}

fn by_shard(router: &Router, more: &[(&str, &str)]) -> Properties {
    let mut all = vec![MODE];
    all.extend(more);
    config(&router.uri(), &all)
}

fn partitions(tasks: &[Box<dyn thalweg_core::source::SourceTask>]) -> Vec<Vec<SourcePartition>> {
    tasks.iter().map(|t| t.partitions()).collect()
}

fn shard(name: &str) -> SourcePartition {
    SourcePartition::new([("server_id", "t"), ("rs", name)])
}

#[tokio::test]
async fn mgo_30_shards_are_spread_over_tasks() -> Result<()> {
    let three =
        listed(&[("s3", "rsC/h:3"), ("s1", "rsA/h:1,h:11"), ("s2", "rsB/h:2"), ("s1b", "rsA/h:1"), ("bad", "h:9")]);
    let router = Router::start(three, None).await?;
    for (max, expected) in [
        (1, vec![vec!["rsA", "rsB", "rsC"]]),
        (2, vec![vec!["rsA", "rsB"], vec!["rsC"]]),
        (5, vec![vec!["rsA"], vec!["rsB"], vec!["rsC"]]),
    ] {
        let found = partitions(&tasks(&by_shard(&router, &[]), max).await?);
        let expected: Vec<Vec<SourcePartition>> =
            expected.into_iter().map(|names| names.into_iter().map(shard).collect()).collect();
        assert_eq!(found, expected, "tasks.max={max}");
    }
    let whole = partitions(&tasks(&config(&router.uri(), &[]), 5).await?);
    assert_eq!(whole, [[SourcePartition::new([("server_id", "t")])]]);
    Ok(())
}

#[tokio::test]
async fn a_replica_set_is_one_task_in_every_mode() -> Result<()> {
    let found = partitions(&tasks(&config(&shared()?.uri(), &[MODE]), 4).await?);
    assert_eq!(found, [[SourcePartition::new([("server_id", "t")])]]);
    Ok(())
}

#[tokio::test]
async fn a_cluster_without_shards_has_no_tasks() -> Result<()> {
    for none in [&[][..], &[("s1", "h:1")]] {
        let router = Router::start(listed(none), None).await?;
        assert_eq!(tasks(&by_shard(&router, &[]), 3).await?.len(), 0);
    }
    Ok(())
}

#[tokio::test]
async fn shards_cannot_be_listed() -> Result<()> {
    let router = Router::start(Shards::Unauthorized, None).await?;
    let connector = MongoDbConnector::new();
    let quick = [("mongodb.server.selection.timeout.ms", "500"), ("connect.max.attempts", "1")];
    let error = connector.plan_tasks(&by_shard(&router, &quick), 3, &[]).await.unwrap_err();
    assert_eq!((error.kind, error.policy()), (ErrorKind::Permission, Policy::NeedsUser), "{error}");
    assert!(error.to_string().contains("config.shards"), "{error}");
    let mut validation = connector.validate(&by_shard(&router, &quick));
    connector.check(&by_shard(&router, &quick), &mut validation, PATIENCE).await;
    assert!(
        validation.messages()[0].starts_with("User doesn't have sufficient privileges: "),
        "{:?}",
        validation.messages()
    );

    router.set_shards(Shards::Broken);
    let error = connector.plan_tasks(&by_shard(&router, &quick), 3, &[]).await.unwrap_err();
    assert_eq!(error.policy(), Policy::Retry, "{error}");
    router.set_shards(listed(&[("s1", "rsA/h:1")]));
    assert_eq!(connector.plan_tasks(&by_shard(&router, &quick), 3, &[]).await?.len(), 1);
    Ok(())
}

#[tokio::test]
async fn t_86_another_set_of_shards_is_planned_again() -> Result<()> {
    let router = Router::start(listed(&[("s1", "rsA/h:1"), ("s2", "rsB/h:2")]), None).await?;
    let config = by_shard(&router, &[("mongodb.poll.interval.ms", "10")]);
    let connector = MongoDbConnector::new();
    let wanted = connector.replan_wanted(&config, CancellationToken::new());
    tokio::pin!(wanted);
    // Other hosts, an error, a break: none of these is another set of shards.
    let steps = [
        listed(&[("s1", "rsA/h:1,h:5"), ("s2", "rsB/h:2")]),
        Shards::Unauthorized,
        Shards::Broken,
        listed(&[("s2", "rsB/h:2"), ("s1", "rsA/h:1")]),
    ];
    for step in steps {
        // Two more looks: at least one of them began after the change.
        let before = router.looks();
        router.set_shards(step);
        let looked = thalweg_services::until("two more looks", PATIENCE, || async {
            Ok((router.looks() >= before + 2).then_some(()))
        });
        tokio::select! {
            () = &mut wanted => panic!("nothing to plan again"),
            looked = looked => looked?,
        }
    }
    router.set_shards(listed(&[("s1", "rsA/h:1"), ("s2", "rsB/h:2"), ("s3", "rsC/h:3")]));
    tokio::time::timeout(PATIENCE, wanted).await?;
    // In the other mode, and when cancelled, it never resolves by itself.
    let cancel = CancellationToken::new();
    let through_router = self::config(&router.uri(), &[]);
    let watching = connector.replan_wanted(&through_router, cancel.clone());
    assert!(tokio::time::timeout(Duration::from_millis(50), watching).await.is_err());
    Ok(())
}

#[tokio::test]
async fn every_shard_is_read_with_offsets_of_its_own() -> Result<()> {
    let a = ReplicaSet::start("rsA", 1, &MemberOptions::default()).await?;
    let b = ReplicaSet::start("rsB", 1, &MemberOptions::default()).await?;
    let host = |set: &ReplicaSet| format!("{}/{}", set.name, set.members[0].address());
    let (host_a, host_b) = (host(&a), host(&b));
    let router = Router::start(listed(&[("s1", &host_a), ("s2", &host_b)]), None).await?;
    for (set, id) in [(&a, 1), (&b, 2)] {
        set.client().await?.database("shop").collection("orders").insert_one(doc! {"_id": id}).await?;
    }
    let config = by_shard(
        &router,
        &[
            ("database.include.list", "shop"),
            ("mongodb.connection.string.shard.params", "readPreference=primaryPreferred&appName=by_shard"),
        ],
    );
    let offsets = Offsets::new();
    let running = tasks(&config, 1).await?;
    assert_eq!(running.len(), 1);
    for (name, id, set) in [("rsA", "1", &a), ("rsB", "2", &b)] {
        let mut run = Run::open(&*running[0], &shard(name), &offsets).await?;
        let read = run.record().await?;
        assert_eq!((read.op(), read.id().as_str(), read.snapshot()), ("r", id, "last"));
        assert_eq!(read.value["source"]["rs"], name);
        assert_eq!(read.topic, "t.shop.orders");
        // The parameters arrived at the shard.
        let seen = set.client().await?.database("admin").run_command(doc! {"currentOp": 1, "$all": true}).await?;
        let names: BTreeSet<&str> =
            seen.get_array("inprog")?.iter().filter_map(|op| op.as_document()?.get_str("appName").ok()).collect();
        assert!(names.contains("by_shard"), "{names:?}");
        set.client().await?.database("shop").collection("orders").insert_one(doc! {"_id": 10}).await?;
        assert_eq!(run.record().await?.op(), "c");
        run.stop().await?;
    }
    for name in ["rsA", "rsB"] {
        let offset = thalweg_core::position::OffsetReader::offset(&*offsets, &shard(name)).unwrap();
        assert!(offset["resume_token"].is_string());
    }

    // From the mode that reads through the router: every shard starts at the time of that token.
    let token = thalweg_core::position::OffsetReader::offset(&*offsets, &shard("rsA")).unwrap();
    a.client().await?.database("shop").collection("orders").insert_one(doc! {"_id": 11}).await?;
    let whole = Offsets::with(&[("server_id", "t")], token.into());
    let mut allowed = config.clone();
    allowed.set("internal.mongodb.allow.offset.invalidation", "true");
    let running = tasks(&allowed, 1).await?;
    let mut run = Run::open(&*running[0], &shard("rsA"), &whole.copy()).await?;
    let record = run.record().await?;
    assert_eq!(record.op(), "c", "no snapshot");
    run.stop().await?;
    let running = tasks(&config, 1).await?;
    let mut run = Run::open(&*running[0], &shard("rsA"), &whole).await?;
    assert_eq!(run.record().await?.op(), "r", "not allowed: as if there were no offset");
    run.stop().await
}

/// One stream through the router, and what becomes of offsets that were stored shard by shard.
#[tokio::test]
async fn mgo_27_t_11_through_the_router() -> Result<()> {
    let set = shared()?;
    let host = format!("rsA/{}", set.members[0].address());
    let router = Router::start(listed(&[("s1", &host), ("s2", "rsB/h:2")]), Some(set.members[0].port)).await?;
    let db = set.client().await?.database("mgo_27");
    let orders = db.collection::<Document>("orders");
    orders.insert_one(doc! {"_id": 1}).await?;
    let config = config(&router.uri(), &[("database.include.list", "mgo_27")]);
    let offsets = Offsets::new();
    let mut run = Run::start(&config, &offsets).await?;
    let read = run.record().await?;
    assert_eq!((read.op(), read.value["source"].get("rs")), ("r", None));
    orders.insert_one(doc! {"_id": 2}).await?;
    let change = run.record().await?;
    assert_eq!(change.op(), "c");
    run.stop().await?;
    orders.insert_one(doc! {"_id": 3}).await?;

    let per_shard = |shards: &[&str]| {
        let offsets = Offsets::new();
        for name in shards {
            offsets.store(&shard(name), change.offset.as_object().unwrap().clone());
        }
        offsets
    };
    let error = Run::start(&config, &per_shard(&["rsA", "s2"])).await?.error().await?;
    assert_eq!(error.policy(), Policy::NeedsUser);
    assert!(
        error.to_string().contains(
            "Offsets from previous version are invalid, either manually delete them or set \
         'internal.mongodb.allow.offset.invalidation=true' to allow streaming to resume from the oldest shard specific \
         offset"
        ),
        "{error}"
    );

    let mut allowed = config.clone();
    allowed.set("internal.mongodb.allow.offset.invalidation", "true");
    // The oldest of them counts.
    let oldest = per_shard(&["s1", "rsB"]);
    oldest.store(&shard("rsB"), json!({"sec": 2_000_000_000, "ord": 1}).as_object().unwrap().clone());
    let mut run = Run::start(&allowed, &oldest).await?;
    let next = run.record().await?;
    assert_eq!((next.op(), next.id().as_str()), ("c", "3"));
    run.stop().await?;
    // Not all of them: no offset at all.
    let mut run = Run::start(&allowed, &per_shard(&["rsA"])).await?;
    assert_eq!(run.record().await?.op(), "r");
    run.stop().await?;
    // An offset of the time when a sharded cluster was called `cluster`.
    let older = Offsets::with(&[("rs", "cluster"), ("server_id", "t")], change.offset.clone());
    let mut run = Run::start(&config, &older).await?;
    assert_eq!(run.record().await?.id(), "3");
    run.stop().await
}

/// Shard by shard, nothing orders what two shards have of one document. A document that both have (an orphan
/// of a migration) is read from both. A change of the shard key that moves a document is a delete there and
/// an insert here, and its halves have the same key in the same topic: whichever comes last wins. One stream
/// through a real router filters orphans and keeps the order; that needs a mongos and is not shown here.
#[tokio::test]
async fn t_75_t_84_two_shards_that_have_one_document() -> Result<()> {
    let a = ReplicaSet::start("rsA", 1, &MemberOptions::default()).await?;
    let b = ReplicaSet::start("rsB", 1, &MemberOptions::default()).await?;
    let host = |set: &ReplicaSet| format!("{}/{}", set.name, set.members[0].address());
    let (host_a, host_b) = (host(&a), host(&b));
    let router = Router::start(listed(&[("s1", &host_a), ("s2", &host_b)]), None).await?;
    let (on_a, on_b) = (a.client().await?, b.client().await?);
    let [on_a, on_b] = [&on_a, &on_b].map(|client| client.database("shop").collection::<Document>("orders"));
    on_a.insert_one(doc! {"_id": 1, "region": "a"}).await?;
    on_b.insert_one(doc! {"_id": 1, "region": "b"}).await?;
    let config = by_shard(&router, &[("database.include.list", "shop")]);
    let running = tasks(&config, 2).await?;
    assert_eq!(running.len(), 2);
    let mut from_a = Run::open(&*running[0], &shard("rsA"), &Offsets::new()).await?;
    let mut from_b = Run::open(&*running[1], &shard("rsB"), &Offsets::new()).await?;
    let (read_a, read_b) = (from_a.record().await?, from_b.record().await?);
    assert_eq!((read_a.op(), &read_a.key, &read_a.topic), (read_b.op(), &read_b.key, &read_b.topic));
    assert_eq!((read_a.after()["region"].as_str(), read_b.after()["region"].as_str()), (Some("a"), Some("b")));

    on_b.insert_one(doc! {"_id": 2, "region": "b"}).await?;
    on_b.delete_one(doc! {"_id": 2}).await?;
    on_a.insert_one(doc! {"_id": 2, "region": "a"}).await?;
    let (left, moved) = (from_b.take(3).await?, from_a.record().await?);
    assert_eq!(left.iter().map(Seen::op).collect::<Vec<_>>(), ["c", "d", "tombstone"]);
    assert_eq!((moved.op(), moved.after()["region"].as_str()), ("c", Some("a")));
    assert!(left.iter().all(|half| (&half.key, &half.topic) == (&moved.key, &moved.topic)));
    from_a.stop().await?;
    from_b.stop().await
}

/// What a router tells of a transaction is one stream: its changes without a gap, one begin, one end. The
/// stand-in has one shard behind it; that a real one puts those of several shards together is the server's
/// promise and is not shown here.
#[tokio::test]
async fn t_83_one_stream_tells_one_transaction() -> Result<()> {
    let set = shared()?;
    let host = format!("rsA/{}", set.members[0].address());
    let router = Router::start(listed(&[("s1", &host), ("s2", "rsB/h:2")]), Some(set.members[0].port)).await?;
    let more = [
        ("database.include.list", "t_83"),
        ("snapshot.mode", "no_data"),
        ("provide.transaction.metadata", "true"),
        ("mongodb.connection.mode", "sharded"),
    ];
    let mut run = Run::start(&config(&router.uri(), &more), &Offsets::new()).await?;
    run.quiet().await?;
    let client = set.client().await?;
    let db = client.database("t_83");
    let mut session = client.start_session().await?;
    session.start_transaction().await?;
    for (collection, id) in [("a", 1), ("b", 2), ("a", 3)] {
        db.collection::<Document>(collection).insert_one(doc! {"_id": id}).session(&mut session).await?;
    }
    // Between the others by time, and none of them.
    db.collection::<Document>("c").insert_one(doc! {"_id": 9}).await?;
    session.commit_transaction().await?;
    for id in [10, 11] {
        db.collection::<Document>("c").insert_one(doc! {"_id": id}).await?;
    }
    let told: Vec<String> = run
        .take(8)
        .await?
        .iter()
        .map(|seen| seen.value["status"].as_str().map_or_else(|| seen.id(), str::to_owned))
        .collect();
    assert_eq!(told, ["9", "BEGIN", "1", "2", "3", "END", "10", "11"]);
    run.stop().await
}

/// A router behind a load balancer: no replica set is asked for, and the stream and the snapshot are read.
#[tokio::test]
async fn t_90_through_a_load_balancer() -> Result<()> {
    let set = shared()?;
    let router = Router::start(listed(&[("s1", "rsA/h:1")]), Some(set.members[0].port)).await?;
    let orders = set.client().await?.database("t_90").collection::<Document>("orders");
    orders.insert_one(doc! {"_id": 1}).await?;
    let config = config(&format!("{}?loadBalanced=true", router.uri()), &[("database.include.list", "t_90")]);
    let connector = MongoDbConnector::new();
    let mut validation = connector.validate(&config);
    connector.check(&config, &mut validation, PATIENCE).await;
    assert_eq!(validation.messages(), [""; 0]);
    let mut run = Run::start(&config, &Offsets::new()).await?;
    assert_eq!(run.record().await?.op(), "r");
    orders.insert_one(doc! {"_id": 2}).await?;
    let change = run.record().await?;
    assert_eq!((change.op(), change.id().as_str()), ("c", "2"));
    run.stop().await
}

//! A connector with several tasks, one for each shard, on the nodes of one cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Context, Result};
use bson::{Document, doc};
use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::producer::{FutureProducer, FutureRecord};
use rdkafka::{Offset, TopicPartitionList};
use serde_json::{Value, json};
use thalweg_tests::{Broker, BrokerOptions, Cluster, MemberOptions, ReplicaSet, Rest, Router, Shards, Topic, until};

use crate::shared::{connector, unique, with};

const SOON: Duration = Duration::from_secs(60);

async fn create_topic(broker: &Broker, name: &str) -> Result<()> {
    let admin: AdminClient<DefaultClientContext> =
        ClientConfig::new().set("bootstrap.servers", broker.bootstrap()).create()?;
    let topic = NewTopic::new(name, 1, TopicReplication::Fixed(1));
    let made = admin.create_topics([&topic], &AdminOptions::new()).await?;
    made.into_iter().next().context("no answer")?.map_err(|(name, code)| anyhow::anyhow!("{name}: {code}"))?;
    Ok(())
}

async fn sets(count: usize) -> Result<Vec<ReplicaSet>> {
    let mut sets = Vec::new();
    for shard in &["rsA", "rsB", "rsC"][..count] {
        sets.push(ReplicaSet::start(shard, 1, &MemberOptions::default()).await?);
    }
    Ok(sets)
}

fn listed(sets: &[ReplicaSet], which: &[usize]) -> Shards {
    let line = |set: &ReplicaSet| (set.name.clone(), format!("{}/{}", set.name, set.members[0].address()));
    Shards::Are(which.iter().map(|shard| line(&sets[*shard])).collect())
}

/// Into the collection that only this shard has.
async fn insert(sets: &[ReplicaSet], database: &str, shard: usize, id: i32) -> Result<()> {
    let collection = sets[shard].client().await?.database(database).collection::<Document>(&format!("c{shard}"));
    collection.insert_one(doc! {"_id": id}).await?;
    Ok(())
}

fn states(status: &Value) -> Vec<&str> {
    status["tasks"].as_array().into_iter().flatten().filter_map(|t| t["state"].as_str()).collect()
}

fn workers(status: &Value) -> Vec<&str> {
    status["tasks"].as_array().into_iter().flatten().filter_map(|t| t["worker_id"].as_str()).collect()
}

/// RUN-01: of three tasks on three nodes the failed one is restarted, and nothing happens to the others.
#[tokio::test(flavor = "multi_thread")]
async fn run_01_only_the_failed_one_of_three_tasks_is_restarted() -> Result<()> {
    let settings = vec![("auto.create.topics.enable".to_owned(), "false".to_owned())];
    let broker = Broker::with(BrokerOptions { settings, ..Default::default() }).await?;
    let (name, database) = (unique("shards"), unique("db"));
    let sets = sets(3).await?;
    let router = Router::start(listed(&sets, &[0, 1, 2]), Some(sets[0].members[0].port)).await?;
    // Shards share their collections; here each has one of its own, so that one of three topics can lack.
    let insert = async |shard: usize, id: i32| insert(&sets, &database, shard, id).await;
    let topic_of = |shard: usize| format!("{name}.{database}.c{shard}");
    for shard in 0..3 {
        insert(shard, 1).await?;
    }
    create_topic(&broker, &topic_of(0)).await?;
    create_topic(&broker, &topic_of(2)).await?;
    let cluster = Cluster::start(3, &broker.bootstrap(), &[]).await?;
    let by_shard = [
        ("mongodb.connection.string", router.uri()),
        ("mongodb.connection.mode", "replica_set".to_owned()),
        ("tasks.max", "3".to_owned()),
    ];
    let by_shard: Vec<(&str, &str)> = by_shard.iter().map(|(key, value)| (*key, value.as_str())).collect();
    let rest = cluster.rest()?;
    rest.create(&name, with(connector(&sets[0], &name, &database), &by_shard)).await?;
    let before = until("the second task has failed", SOON, || async {
        let status = rest.get(&format!("/connectors/{name}/status")).await?.1;
        if states(&status) == ["RUNNING", "FAILED", "RUNNING"] { Ok(Some(status)) } else { anyhow::bail!("{status}") }
    })
    .await?;
    assert_eq!(workers(&before).into_iter().collect::<BTreeSet<_>>().len(), 3, "one task a node: {before}");
    let trace = before["tasks"][1]["trace"].as_str().context("a trace")?;
    assert!(trace.contains(&topic_of(1)), "{trace}");
    let others = [Topic::read(&broker.bootstrap(), &topic_of(0))?, Topic::read(&broker.bootstrap(), &topic_of(2))?];
    for topic in &others {
        topic.take(1, SOON).await?;
    }

    create_topic(&broker, &topic_of(1)).await?;
    let path = format!("/connectors/{name}/restart?includeTasks=true&onlyFailed=true");
    let (status, body) = rest.post(&path, None).await?;
    assert_eq!((status, states(&body)), (202, vec!["RUNNING", "RESTARTING", "RUNNING"]), "{body}");
    assert_eq!(body["connector"]["state"], "RUNNING", "{body}");
    let after = rest.awaits(&name, 3, "RUNNING").await?;
    for task in [0, 2] {
        assert_eq!(workers(&after)[task], workers(&before)[task], "the others stay where they are");
    }
    for shard in 0..3 {
        insert(shard, 2).await?;
    }
    let mended = Topic::read(&broker.bootstrap(), &topic_of(1))?.take(2, SOON).await?;
    assert_eq!(mended.iter().map(|m| m.key_json()["id"].clone()).collect::<Vec<_>>(), ["1", "2"]);
    for topic in &others {
        assert_eq!(topic.take(1, SOON).await?[0].key_json()["id"], "2", "nothing is repeated");
    }

    // One of several, by its number, through every node.
    for (node, id) in cluster.nodes.iter().zip(3..) {
        assert_eq!(node.rest().post(&format!("/connectors/{name}/tasks/1/restart"), None).await?.0, 204);
        let status = node.rest().awaits(&name, 3, "RUNNING").await?;
        assert_eq!([workers(&status)[0], workers(&status)[2]], [workers(&before)[0], workers(&before)[2]]);
        for shard in 0..3 {
            insert(shard, id).await?;
        }
    }
    for shard in 0..3 {
        let all = Topic::read(&broker.bootstrap(), &topic_of(shard))?.take(5, SOON).await?;
        let ids: Vec<Value> = all.iter().map(|m| m.key_json()["id"].clone()).collect();
        assert_eq!(ids, ["1", "2", "3", "4", "5"], "shard {shard}: each change once, in order");
    }
    Ok(())
}

/// Epochs of the tasks that are in somebody's hands, by number.
async fn epochs(rest: &Rest, name: &str) -> Result<BTreeMap<u64, u64>> {
    let (_, rows) = rest.get("/cluster/assignments").await?;
    let of = |row: &Value| (row["connector"] == *name).then(|| Some((row["task"].as_u64()?, row["epoch"].as_u64()?)));
    Ok(rows.as_array().into_iter().flatten().filter_map(of).flatten().collect())
}

/// T-86: a shard comes, another one in front of it goes and comes back. Only their own tasks notice; the one
/// that has lost its shard keeps its number, and waits for the next.
#[tokio::test(flavor = "multi_thread")]
async fn t_86_a_shard_that_comes_or_goes_is_nothing_to_the_tasks_of_the_others() -> Result<()> {
    let broker = Broker::start().await?;
    let (name, database) = (unique("shards"), unique("db"));
    let sets = sets(3).await?;
    let router = Router::start(listed(&sets, &[0, 2]), Some(sets[0].members[0].port)).await?;
    let cluster = Cluster::start(2, &broker.bootstrap(), &[]).await?;
    let rest = cluster.rest()?;
    let by_shard = [
        ("mongodb.connection.string", router.uri()),
        ("mongodb.connection.mode", "replica_set".to_owned()),
        ("mongodb.poll.interval.ms", "200".to_owned()),
        ("tasks.max", "3".to_owned()),
    ];
    let by_shard: Vec<(&str, &str)> = by_shard.iter().map(|(key, value)| (*key, value.as_str())).collect();
    for shard in 0..3 {
        insert(&sets, &database, shard, 1).await?;
    }
    rest.create(&name, with(connector(&sets[0], &name, &database), &by_shard)).await?;
    rest.awaits(&name, 2, "RUNNING").await?;
    let topic = |shard: usize| Topic::read(&broker.bootstrap(), &format!("{name}.{database}.c{shard}"));
    let (of_a, of_b, of_c) = (topic(0)?, topic(1)?, topic(2)?);
    of_a.take(1, SOON).await?;
    of_c.take(1, SOON).await?;
    let first = epochs(&rest, &name).await?;
    assert_eq!(first.keys().collect::<Vec<_>>(), [&0, &1]);

    router.set_shards(listed(&sets, &[0, 1, 2]));
    rest.awaits(&name, 3, "RUNNING").await?;
    of_b.take(1, SOON).await?;
    let second = epochs(&rest, &name).await?;
    assert_eq!([second[&0], second[&1]], [first[&0], first[&1]], "those of the others go on");

    router.set_shards(listed(&sets, &[1, 2]));
    let third = until("the first task is another", SOON, || async {
        let now = epochs(&rest, &name).await?;
        Ok(now.get(&0).is_some_and(|epoch| *epoch != second[&0]).then_some(now))
    })
    .await?;
    let status = rest.awaits(&name, 3, "RUNNING").await?;
    assert_eq!([third[&1], third[&2]], [second[&1], second[&2]], "{status}");
    for shard in 0..3 {
        insert(&sets, &database, shard, 2).await?;
    }
    for topic in [&of_b, &of_c] {
        assert_eq!(topic.take(1, SOON).await?[0].key_json()["id"], "2", "nothing is repeated");
    }

    router.set_shards(listed(&sets, &[0, 1, 2]));
    // From where it was left.
    assert_eq!(of_a.take(1, SOON).await?[0].key_json()["id"], "2");
    let status = rest.awaits(&name, 3, "RUNNING").await?;
    let fourth = epochs(&rest, &name).await?;
    assert_eq!([fourth[&1], fourth[&2]], [second[&1], second[&2]], "{status}");
    for shard in 0..3 {
        let all = topic(shard)?.take(2, SOON).await?;
        assert_eq!(all.iter().map(|m| m.key_json()["id"].clone()).collect::<Vec<_>>(), ["1", "2"], "shard {shard}");
    }
    Ok(())
}

/// Where a group goes on in partition 0 of a topic.
fn confirmed(broker: &Broker, group: &str, topic: &str) -> Result<Option<i64>> {
    let consumer: BaseConsumer =
        ClientConfig::new().set("bootstrap.servers", broker.bootstrap()).set("group.id", group).create()?;
    let mut place = TopicPartitionList::new();
    place.add_partition(topic, 0);
    let found = consumer.committed_offsets(place, SOON)?;
    Ok(match found.find_partition(topic, 0).context("a place")?.offset() {
        Offset::Offset(number) => Some(number),
        _ => None,
    })
}

/// Two tasks hear one topic. One follows a signal and confirms it while the shard of the other is away; the
/// other's node dies, and whoever takes over follows the signal all the same.
#[tokio::test(flavor = "multi_thread")]
async fn a_signal_that_one_task_has_confirmed_is_not_lost_to_another() -> Result<()> {
    let broker = Broker::with(BrokerOptions::default()).await?;
    let (name, database) = (unique("heard"), unique("db"));
    let mut sets = sets(2).await?;
    let router = Router::start(listed(&sets, &[0, 1]), Some(sets[0].members[0].port)).await?;
    for shard in 0..2 {
        insert(&sets, &database, shard, 1).await?;
    }
    let mut cluster = Cluster::start(3, &broker.bootstrap(), &[]).await?;
    let (group, signals) = (unique("group"), format!("{name}-signal"));
    let by_shard = [
        ("mongodb.connection.string", router.uri()),
        ("mongodb.connection.mode", "replica_set".to_owned()),
        ("mongodb.server.selection.timeout.ms", "1000".to_owned()),
        ("connect.backoff.initial.delay.ms", "100".to_owned()),
        ("connect.backoff.max.delay.ms", "500".to_owned()),
        ("tasks.max", "2".to_owned()),
        ("snapshot.mode", "no_data".to_owned()),
        ("signal.enabled.channels", "kafka".to_owned()),
        ("signal.kafka.groupId", group.clone()),
        ("signal.poll.interval.ms", "100".to_owned()),
    ];
    let by_shard: Vec<(&str, &str)> = by_shard.iter().map(|(key, value)| (*key, value.as_str())).collect();
    create_topic(&broker, &signals).await?;
    let rest = cluster.rest()?;
    rest.create(&name, with(connector(&sets[0], &name, &database), &by_shard)).await?;
    rest.awaits(&name, 2, "RUNNING").await?;
    let offsets = format!("/connectors/{name}/offsets");
    // Both listen: their positions say from where on.
    until("both tasks listen", SOON, || async {
        let told = rest.get(&offsets).await?.1.to_string();
        Ok((told.matches("thalweg_signals").count() == 2).then_some(()))
    })
    .await?;
    sets[1].members[0].kill()?;
    let data = json!({"type": "blocking", "data-collections": [format!("{database}.c.*")]});
    let signal = json!({"id": "again", "type": "execute-snapshot", "data": data}).to_string();
    let producer: FutureProducer = ClientConfig::new().set("bootstrap.servers", broker.bootstrap()).create()?;
    let record = FutureRecord::to(&signals).key(&name).payload(&signal).partition(0);
    producer.send(record, SOON).await.map_err(|(error, _)| error)?;
    let topic_of = |shard: usize| Topic::read(&broker.bootstrap(), &format!("{name}.{database}.c{shard}"));
    topic_of(0)?.take(1, SOON).await?;
    let (first, second) = (cluster.owner(&name, 0).await?, cluster.owner(&name, 1).await?);
    // The order of the tasks is that of the shards.
    assert_ne!(first, second, "one task a node");
    until("the other task has heard it, and waits for its shard", SOON, || async {
        Ok(cluster.nodes[second].log().contains("signal received").then_some(()))
    })
    .await?;
    until("the first task has confirmed it", SOON, || async {
        Ok((confirmed(&broker, &group, &signals)? == Some(1)).then_some(()))
    })
    .await?;
    cluster.nodes[second].kill()?;
    sets[1].members[0].start()?;
    let read = topic_of(1)?.take(1, 2 * SOON).await?;
    assert_eq!(read[0].value_json()["op"], "r");
    Ok(())
}

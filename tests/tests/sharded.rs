//! A connector with several tasks, one for each shard, on the nodes of one cluster.

use std::collections::BTreeSet;
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
use thalweg_tests::{Broker, BrokerOptions, Cluster, MemberOptions, ReplicaSet, Router, Shards, Topic, until};

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
    let options = MemberOptions::default();
    let mut sets = Vec::new();
    for shard in ["rsA", "rsB", "rsC"] {
        sets.push(ReplicaSet::start(shard, 1, &options).await?);
    }
    let listed = sets.iter().map(|set| (set.name.clone(), format!("{}/{}", set.name, set.members[0].address())));
    let router = Router::start(Shards::Are(listed.collect()), Some(sets[0].members[0].port)).await?;
    // Shards share their collections; here each has one of its own, so that one of three topics can lack.
    let insert = async |shard: usize, id: i32| -> Result<()> {
        let collection = sets[shard].client().await?.database(&database).collection::<Document>(&format!("c{shard}"));
        collection.insert_one(doc! {"_id": id}).await?;
        Ok(())
    };
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
    let options = MemberOptions::default();
    let mut sets = Vec::new();
    for shard in ["rsA", "rsB"] {
        sets.push(ReplicaSet::start(shard, 1, &options).await?);
    }
    let listed = sets.iter().map(|set| (set.name.clone(), format!("{}/{}", set.name, set.members[0].address())));
    let router = Router::start(Shards::Are(listed.collect()), Some(sets[0].members[0].port)).await?;
    for (shard, set) in sets.iter().enumerate() {
        let collection = set.client().await?.database(&database).collection::<Document>(&format!("c{shard}"));
        collection.insert_one(doc! {"_id": 1}).await?;
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

//! What is left out of a topic is found in the topic for dead letters.

use std::time::Duration;

use anyhow::Result;
use bson::{Document, doc};
use serde_json::json;
use thalweg_tests::{Cluster, Received, Topic};

use crate::shared::{connector, kafka, mongo, unique, with};

const SOON: Duration = Duration::from_secs(30);

fn header<'a>(message: &'a Received, name: &str) -> Option<&'a str> {
    message.headers.iter().find(|(header, _)| header == name).and_then(|(_, text)| text.as_deref())
}

#[tokio::test(flavor = "multi_thread")]
async fn records_that_fail_are_dead_letters_and_the_rest_arrives() -> Result<()> {
    let (broker, set) = (kafka().await?, mongo().await?);
    let cluster = Cluster::start(1, &broker.bootstrap(), &[]).await?;
    let (name, database) = (unique("dead"), unique("db"));
    let collection = set.client().await?.database(&database).collection::<Document>("c");
    let dead = format!("{name}.letters");
    let options = [
        ("errors.tolerance", "all"),
        ("errors.deadletterqueue.topic.name", &*dead),
        ("errors.deadletterqueue.topic.replication.factor", "1"),
        ("transforms", "number"),
        ("transforms.number.type", "org.apache.kafka.connect.transforms.Cast$Key"),
        ("transforms.number.spec", "id:int32"),
        ("tombstones.on.delete", "false"),
    ];
    let rest = cluster.rest()?;
    rest.create(&name, with(connector(set, &name, &database), &options)).await?;
    rest.awaits(&name, 1, "RUNNING").await?;
    rest.awaits_offset(&name).await?;
    collection.insert_one(doc! {"_id": 1}).await?;
    collection.insert_one(doc! {"_id": "abc", "secret": "s3cret"}).await?;
    // Above what the client takes.
    collection.insert_one(doc! {"_id": 2, "text": "x".repeat(1_500_000)}).await?;
    collection.insert_one(doc! {"_id": 3}).await?;
    let topic = Topic::read(&broker.bootstrap(), &format!("{name}.{database}.c"))?;
    let arrived = topic.take(2, SOON).await?;
    assert_eq!(arrived.iter().map(Received::key_json).collect::<Vec<_>>(), [json!({"id": 1}), json!({"id": 3})]);
    let letters = Topic::read(&broker.bootstrap(), &dead)?.take(2, SOON).await?;

    let [failed, large] = [&letters[0], &letters[1]];
    assert_eq!(failed.key.as_deref(), Some(r#"{"id":"\"abc\""}"#), "the record as it was");
    let after = failed.value_json()["after"].take();
    assert_eq!(after, r#"{"_id": "abc","secret": "s3cret"}"#);
    assert_eq!((large.key.as_deref(), large.value.as_deref()), (Some(r#"{"id":2}"#), None));
    let cast = "org.apache.kafka.connect.transforms.Cast$Key";
    let producer = "org.apache.kafka.clients.producer.KafkaProducer";
    for (letter, stage, class) in [(failed, "TRANSFORMATION", cast), (large, "KAFKA_PRODUCE", producer)] {
        assert_eq!(header(letter, "__connect.errors.topic"), Some(&*format!("{name}.{database}.c")));
        assert_eq!(header(letter, "__connect.errors.connector.name"), Some(&*name));
        assert_eq!(header(letter, "__connect.errors.task.id"), Some("0"));
        assert_eq!(
            (header(letter, "__connect.errors.stage"), header(letter, "__connect.errors.class.name")),
            (Some(stage), Some(class))
        );
        assert!(header(letter, "__connect.errors.exception.message").is_some_and(|text| !text.is_empty()));
        let offset = header(letter, "__thalweg.errors.source.offset").unwrap();
        assert!(offset.contains("resume_token") && header(letter, "__thalweg.errors.source.partition").is_some());
        assert!(letter.headers.iter().all(|(_, text)| !text.as_deref().unwrap_or_default().contains("s3cret")));
    }
    assert!(!cluster.nodes[0].log().contains("s3cret"));
    let metrics = rest.get("/metrics").await?.1.to_string();
    let counter = "kafka_connect_task_error_metrics_deadletterqueue_produce_requests";
    assert!(metrics.contains(counter), "{metrics}");
    Ok(())
}

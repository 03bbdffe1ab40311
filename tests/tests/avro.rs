//! Messages in Avro, read with the schemas that a real registry hands out; and what happens while the
//! registry is away or refuses.

use std::collections::HashMap;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use apache_avro::types::Value as Avro;
use apache_avro::{Schema, from_avro_datum};
use bson::{Document, doc};
use serde_json::Value;
use thalweg_tests::{Cluster, SchemaRegistry, Topic, free_port, until};
use tokio::sync::OnceCell;

use crate::shared::{connector, kafka, mongo, unique, with};

const SOON: Duration = Duration::from_secs(30);
const CLASS: &str = "io.confluent.connect.avro.AvroConverter";

static REGISTRY: OnceCell<SchemaRegistry> = OnceCell::const_new();

async fn registry() -> Result<&'static SchemaRegistry> {
    REGISTRY.get_or_try_init(SchemaRegistry::start).await
}

/// A connector that writes Avro.
fn avro(config: Value, url: &str) -> Value {
    let mut config = with(config, &[("key.converter", CLASS), ("value.converter", CLASS)]);
    for side in ["key", "value"] {
        if let Some(members) = config.as_object_mut() {
            members.remove(&format!("{side}.converter.schemas.enable"));
        }
        config[format!("{side}.converter.schema.registry.url")] = url.into();
    }
    config
}

/// Decodes messages as a consumer does: by the id in front.
struct Reader<'a> {
    registry: &'a SchemaRegistry,
    schemas: HashMap<u32, Schema>,
}

impl Reader<'_> {
    async fn decode(&mut self, bytes: Option<&[u8]>) -> Result<HashMap<String, Avro>> {
        let bytes = bytes.context("a null")?;
        let (head, mut body) = bytes.split_at_checked(5).context("too short")?;
        if head[0] != 0 {
            bail!("the first byte is {}", head[0]);
        }
        let id = u32::from_be_bytes([head[1], head[2], head[3], head[4]]);
        if !self.schemas.contains_key(&id) {
            self.schemas.insert(id, Schema::parse_str(&self.registry.schema(id).await?)?);
        }
        let Avro::Record(fields) = from_avro_datum(&self.schemas[&id], &mut body, None)? else { bail!("no record") };
        if !body.is_empty() {
            bail!("{} bytes are left", body.len());
        }
        Ok(fields.into_iter().map(|(name, value)| (name, plain(value))).collect())
    }
}

/// Without the branch of a union.
fn plain(value: Avro) -> Avro {
    match value {
        Avro::Union(_, inner) => *inner,
        value => value,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_decodes_changes_with_the_schemas_of_the_registry() -> Result<()> {
    let (broker, set, registry) = (kafka().await?, mongo().await?, registry().await?);
    let cluster = Cluster::start(1, &broker.bootstrap(), &[]).await?;
    let (name, database) = (unique("avro"), unique("db"));
    let collection = set.client().await?.database(&database).collection::<Document>("c");
    collection.insert_one(doc! {"_id": 1, "text": "grüße"}).await?;
    let rest = cluster.rest()?;
    let config = avro(connector(set, &name, &database), &registry.url());
    let path = "/connector-plugins/MongoDbConnector/config/validate";
    let (status, reply) = rest.put(path, Some(&with(config.clone(), &[("name", name.as_str())]))).await?;
    assert_eq!((status, &reply["error_count"]), (200, &Value::from(0)), "{reply}");
    let rows = reply["configs"].as_array().context("configs")?;
    let row = rows.iter().find(|row| row["value"]["name"] == "field.name.adjustment.mode").context("the row")?;
    // As in Debezium, the reply shows a connector's options with their defaults and without their values.
    assert_eq!(row["definition"]["default_value"], "avro", "the connector itself names the Avro converter");
    rest.create(&name, config).await?;
    rest.awaits(&name, 1, "RUNNING").await?;
    let topic_name = format!("{name}.{database}.c");
    let topic = Topic::read(&broker.bootstrap(), &topic_name)?;
    let mut reader = Reader { registry, schemas: HashMap::new() };
    let mut messages = topic.take(1, SOON).await?;
    collection.update_one(doc! {"_id": 1}, doc! {"$set": {"n": 5}, "$unset": {"text": 1}}).await?;
    collection.delete_one(doc! {"_id": 1}).await?;
    messages.extend(topic.take(3, SOON).await?);

    let mut seen = Vec::new();
    for message in &messages {
        let (key, value) = (message.raw.0.as_deref(), message.raw.1.as_deref());
        assert_eq!(reader.decode(key).await?["id"], Avro::String("1".to_owned()));
        seen.push(match value {
            None => "tombstone".to_owned(),
            Some(_) => {
                let fields = reader.decode(value).await?;
                let Avro::Record(source) = &fields["source"] else { bail!("source is {:?}", fields["source"]) };
                let collection = source.iter().find(|(name, _)| name == "collection").context("collection")?;
                assert_eq!(collection.1, Avro::String("c".to_owned()));
                match &fields["op"] {
                    Avro::String(op) => op.clone(),
                    other => bail!("op is {other:?}"),
                }
            }
        });
    }
    assert_eq!(seen, ["r", "u", "d", "tombstone"]);
    let first = reader.decode(messages[0].raw.1.as_deref()).await?;
    assert_eq!(first["after"], Avro::String(r#"{"_id": 1,"text": "grüße"}"#.to_owned()));
    assert_eq!(first["before"], Avro::Null);
    let update = reader.decode(messages[1].raw.1.as_deref()).await?;
    let Avro::Record(description) = &update["updateDescription"] else { bail!("{:?}", update["updateDescription"]) };
    let removed = description.iter().find(|(name, _)| name == "removedFields").context("removedFields")?.1.clone();
    assert_eq!(plain(removed), Avro::Array(vec![Avro::String("text".to_owned())]));

    let subjects = registry.get("/subjects").await?;
    for side in ["key", "value"] {
        let subject = Value::from(format!("{topic_name}-{side}"));
        assert!(subjects.as_array().is_some_and(|all| all.contains(&subject)), "{subject} in {subjects}");
    }
    Ok(())
}

/// The registry knows the schema under the same id when it is asked without registering.
#[tokio::test(flavor = "multi_thread")]
async fn a_schema_can_be_looked_up_and_a_missing_one_is_named() -> Result<()> {
    let (broker, set, registry) = (kafka().await?, mongo().await?, registry().await?);
    let cluster = Cluster::start(1, &broker.bootstrap(), &[]).await?;
    let (name, database) = (unique("looked"), unique("db"));
    set.client().await?.database(&database).collection::<Document>("c").insert_one(doc! {"_id": 1}).await?;
    let rest = cluster.rest()?;
    let config = avro(connector(set, &name, &database), &registry.url());
    let strict = with(config.clone(), &[("value.converter.auto.register.schemas", "false")]);
    rest.create(&name, strict.clone()).await?;
    let status = rest.awaits(&name, 1, "FAILED").await?;
    let trace = status["tasks"][0]["trace"].as_str().unwrap_or_default();
    assert!(trace.contains(&format!("subject {name}.{database}.c-value: HTTP 404")), "{trace}");
    assert!(trace.contains("advice: register the schema under this subject"), "{trace}");

    // Registered by a connector that may, it is found by one that may not.
    rest.put(&format!("/connectors/{name}/config"), Some(&config)).await?;
    let topic = Topic::read(&broker.bootstrap(), &format!("{name}.{database}.c"))?;
    let registered = topic.take(1, SOON).await?.remove(0);
    rest.put(&format!("/connectors/{name}/config"), Some(&strict)).await?;
    rest.awaits(&name, 1, "RUNNING").await?;
    set.client().await?.database(&database).collection::<Document>("c").insert_one(doc! {"_id": 2}).await?;
    let found = topic.take(1, SOON).await?.remove(0);
    let id = |message: &thalweg_tests::Received| message.raw.1.as_deref().and_then(|b| b.get(..5)).map(<[u8]>::to_vec);
    assert_eq!(id(&registered), id(&found));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_registry_that_is_down_is_waited_for_and_a_stop_does_not_wait() -> Result<()> {
    let (broker, set) = (kafka().await?, mongo().await?);
    let cluster = Cluster::start(1, &broker.bootstrap(), &[]).await?;
    let (name, database) = (unique("down"), unique("db"));
    set.client().await?.database(&database).collection::<Document>("c").insert_one(doc! {"_id": 1}).await?;
    let rest = cluster.rest()?;
    let url = format!("http://user:verysecret@127.0.0.1:{}", free_port()?);
    // Tolerance is for records, not for outages.
    let config = with(avro(connector(set, &name, &database), &url), &[("errors.tolerance", "all")]);
    rest.create(&name, config.clone()).await?;
    until("the status says why the task does not get on", SOON, || async {
        let status = rest.get(&format!("/connectors/{name}/status")).await?.1;
        let text = status.to_string();
        assert!(!text.contains("verysecret"), "{text}");
        Ok(text.contains("it cannot be reached").then_some(()))
    })
    .await?;
    let registry = registry().await?;
    rest.put(&format!("/connectors/{name}/config"), Some(&avro(config, &registry.url()))).await?;
    let topic = Topic::read(&broker.bootstrap(), &format!("{name}.{database}.c"))?;
    topic.take(1, SOON).await?;
    rest.awaits(&name, 1, "RUNNING").await?;
    Ok(())
}

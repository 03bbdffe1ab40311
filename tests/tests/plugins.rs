//! What a node offers, and under which names.

use anyhow::Result;
use thalweg_tests::Cluster;

use crate::shared::{connector, kafka, mongo, unique, with};

const MONGODB: &str = "io.debezium.connector.mongodb.MongoDbConnector";

#[tokio::test(flavor = "multi_thread")]
async fn run_15_each_class_is_listed_once_and_known_by_its_names() -> Result<()> {
    let (cluster, set) = (Cluster::start(1, &kafka().await?.bootstrap(), &[]).await?, mongo().await?);
    let rest = cluster.rest()?;
    for path in ["/connector-plugins", "/connector-plugins?connectorsOnly=false"] {
        let (status, plugins) = rest.get(path).await?;
        let plugins = plugins.as_array().cloned().unwrap_or_default();
        assert_eq!(status, 200);
        let mut seen = std::collections::BTreeSet::new();
        for plugin in &plugins {
            let [class, kind, version] = ["class", "type", "version"].map(|member| plugin[member].as_str());
            assert!(version.is_some_and(|v| !v.is_empty()), "{plugin}");
            assert!(seen.insert((class, kind)), "{plugin} is listed twice");
        }
        assert!(seen.contains(&(Some(MONGODB), Some("source"))), "{plugins:?}");
    }
    for spelling in [MONGODB, "MongoDbConnector", "MongoDb"] {
        let name = unique("named");
        let named = [("connector.class", spelling), ("snapshot.mode", "no_data")];
        rest.create(&name, with(connector(set, &name, "nothing"), &named)).await?;
        let info = rest.get(&format!("/connectors/{name}")).await?.1;
        assert_eq!(
            (info["type"].as_str(), info["config"]["connector.class"].as_str()),
            (Some("source"), Some(spelling))
        );
        rest.awaits(&name, 1, "RUNNING").await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn transforms_of_connectors_are_known_everywhere() -> Result<()> {
    const EXTRACT: &str = "io.debezium.connector.mongodb.transforms.ExtractNewDocumentState";
    let (cluster, set) = (Cluster::start(1, &kafka().await?.bootstrap(), &[]).await?, mongo().await?);
    let rest = cluster.rest()?;
    let plugins = rest.get("/connector-plugins?connectorsOnly=false").await?.1;
    let plugins = plugins.as_array().cloned().unwrap_or_default();
    for class in [EXTRACT, "io.debezium.transforms.outbox.EventRouter"] {
        let listed = plugins.iter().filter(|p| p["class"] == class && p["type"] == "transformation").count();
        assert_eq!(listed, 1, "{class}");
        let (status, options) = rest.get(&format!("/connector-plugins/{class}/config")).await?;
        assert!(status == 200 && options.as_array().is_some_and(|options| options.len() > 5), "{options}");
    }
    let name = unique("unwrapped");
    let unwrap = [("transforms", "u"), ("transforms.u.type", EXTRACT)];
    let config = with(with(connector(set, &name, "nothing"), &[("snapshot.mode", "no_data")]), &unwrap);
    let wrong = with(config.clone(), &[("transforms.u.array.encoding", "list")]);
    let (_, checked) = rest.put("/connector-plugins/MongoDb/config/validate", Some(&wrong)).await?;
    let rows = checked["configs"].as_array().cloned().unwrap_or_default();
    let row = rows.iter().find(|row| row["value"]["name"] == "transforms.u.array.encoding");
    let errors = row.and_then(|row| row["value"]["errors"].as_array()).cloned().unwrap_or_default();
    assert!(errors.len() == 1 && errors[0].as_str().is_some_and(|e| e.contains("array, document")), "{errors:?}");
    rest.create(&name, config).await?;
    rest.awaits(&name, 1, "RUNNING").await.map(|_| ())
}

/// Kafka Connect puts the options of each name into a group of their own, behind its own groups and before
/// those of the connector; client settings and converters come last.
#[tokio::test(flavor = "multi_thread")]
async fn a_validation_shows_what_names_of_the_user_bring() -> Result<()> {
    const EXTRACT: &str = "io.debezium.connector.mongodb.transforms.ExtractNewDocumentState";
    let (cluster, set) = (Cluster::start(1, &kafka().await?.bootstrap(), &[]).await?, mongo().await?);
    let rest = cluster.rest()?;
    let name = unique("shown");
    let options = [
        ("name", name.as_str()),
        ("transforms", "u, r"),
        ("transforms.u.type", EXTRACT),
        ("transforms.u.predicate", "p"),
        ("transforms.r.type", "RegexRouter"),
        ("transforms.r.regex", "(a"),
        ("transforms.r.replacement", "b"),
        ("predicates", "p"),
        ("predicates.p.type", "RecordIsTombstone"),
        ("producer.override.linger.ms", "7"),
        ("producer.override.no.such", "1"),
        ("value.converter", "JsonConverter"),
        ("value.converter.schemas.enable", "x"),
    ];
    let config = with(connector(set, &name, "nothing"), &options);
    let (status, checked) = rest.put("/connector-plugins/mongodb.MongoDb/config/validate", Some(&config)).await?;
    assert_eq!((status, &checked["error_count"]), (200, &2.into()), "{checked}");
    let groups: Vec<&str> = checked["groups"].as_array().into_iter().flatten().filter_map(|g| g.as_str()).collect();
    let place = |group: &str| groups.iter().position(|g| *g == group);
    let order = ["offsets.topic", "Transforms: u", "Transforms: r", "Predicates: p", "MongoDB"].map(place);
    assert!(order.iter().all(Option::is_some) && order.is_sorted(), "{groups:?}");
    let rows = checked["configs"].as_array().cloned().unwrap_or_default();
    let at = |name: &str| rows.iter().position(|row| row["value"]["name"] == name);
    let order = [
        "offsets.storage.topic",
        "transforms.u.type",
        "transforms.r.type",
        "transforms.r.plugin.version",
        "transforms.r.regex",
        "predicates.p.type",
        "topic.prefix",
        "producer.override.linger.ms",
        "producer.override.no.such",
        "value.converter.schemas.enable",
    ]
    .map(at);
    assert!(order.iter().all(Option::is_some) && order.is_sorted(), "{order:?} {rows:?}");
    let row = |name: &str| at(name).map(|at| rows[at].clone()).unwrap_or_default();
    assert_eq!(row("transforms.u.type")["value"]["value"], EXTRACT);
    let recommended = row("transforms.u.type")["value"]["recommended_values"].to_string();
    assert!(recommended.contains(EXTRACT) && recommended.contains("RegexRouter"), "{recommended}");
    let errors = |name: &str| row(name)["value"]["errors"].to_string();
    assert!(errors("transforms.r.regex").contains("Invalid value (a for configuration regex: Invalid regex"));
    let text = "[\"Invalid value x for configuration schemas.enable: Expected value to be either true or false\"]";
    assert_eq!(errors("value.converter.schemas.enable"), text);
    assert!(row("producer.override.no.such")["definition"].is_null());
    assert_eq!(row("producer.override.linger.ms")["definition"]["default_value"], "5");
    let (status, _) = rest
        .put(
            &format!("/connector-plugins/{MONGODB}/config/validate"),
            Some(&with(config, &[("connector.class", "MongoDb")])),
        )
        .await?;
    assert_eq!(status, 400, "a request type is an end of the class");
    Ok(())
}

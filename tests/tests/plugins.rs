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

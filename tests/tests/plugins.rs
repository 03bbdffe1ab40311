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

//! Services that the tests of this binary share, and names that keep them apart.

use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::Result;
use serde_json::{Value, json};
use thalweg_tests::{Broker, BrokerOptions, ReplicaSet};
use tokio::sync::OnceCell;

static BROKER: OnceCell<Broker> = OnceCell::const_new();
static MONGO: OnceCell<ReplicaSet> = OnceCell::const_new();

pub(crate) async fn kafka() -> Result<&'static Broker> {
    let settings = vec![("message.max.bytes".to_owned(), "2000000".to_owned())];
    BROKER.get_or_try_init(|| Broker::with(BrokerOptions { settings, ..Default::default() })).await
}

pub(crate) async fn mongo() -> Result<&'static ReplicaSet> {
    MONGO.get_or_try_init(ReplicaSet::single).await
}

/// A name that no other test of this run uses.
pub(crate) fn unique(stem: &str) -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("{stem}{}x{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// A connector for one database, messages without schemas.
pub(crate) fn connector(set: &ReplicaSet, prefix: &str, database: &str) -> Value {
    json!({
        "connector.class": "io.debezium.connector.mongodb.MongoDbConnector",
        "tasks.max": "1",
        "mongodb.connection.string": set.uri(),
        "topic.prefix": prefix,
        "database.include.list": database,
        "key.converter": "org.apache.kafka.connect.json.JsonConverter",
        "key.converter.schemas.enable": "false",
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter.schemas.enable": "false",
    })
}

/// The same with further properties.
pub(crate) fn with(mut config: Value, more: &[(&str, &str)]) -> Value {
    for (key, value) in more {
        config[*key] = json!(value);
    }
    config
}

//! A Kafka cluster inside the process, for `--dev` and the demo: librdkafka's mock brokers.
//!
//! Listens on loopback ports, creates topics as they are asked for, and knows idempotent and
//! transactional producers. Everything is in memory and gone with the value; each partition keeps
//! its latest 5 MiB. It is not for production: no durability, no authentication, no admin requests.

use rdkafka::ClientConfig;
use rdkafka::client::Client;
use rdkafka::types::RDKafkaType;
use thalweg_core::error::Result;
use thalweg_core::{Error, ErrorKind, Phase};

use crate::errors;
use crate::topics::blocking;
use crate::trouble::PlainContext;

/// Runs until dropped.
pub struct EmbeddedBroker {
    /// Owns the brokers; never sends anything itself.
    client: Option<Client<PlainContext>>,
    bootstrap: String,
}

impl EmbeddedBroker {
    pub async fn start() -> Result<Self> {
        blocking(|| {
            let what = "starting the embedded Kafka broker";
            let mut config = ClientConfig::new();
            config.set("test.mock.num.brokers", "1");
            let native = config.create_native_config().map_err(|e| errors::client(Phase::Start, what, &e))?;
            let context = PlainContext::new("embedded broker");
            let client = Client::new(&config, native, RDKafkaType::RD_KAFKA_PRODUCER, context)
                .map_err(|e| errors::client(Phase::Start, what, &e))?;
            let bootstrap = client.mock_cluster().map(|c| c.bootstrap_servers());
            match bootstrap {
                Some(bootstrap) => Ok(Self { client: Some(client), bootstrap }),
                None => Err(Error::new(ErrorKind::Internal, Phase::Start, what)),
            }
        })
        .await
    }

    /// Value for `bootstrap.servers`.
    pub fn bootstrap_servers(&self) -> &str {
        &self.bootstrap
    }

    /// Makes a topic with this many partitions; others get four when they are first used.
    pub fn create_topic(&self, topic: &str, partitions: i32) -> Result<()> {
        let cluster = self.client.as_ref().and_then(Client::mock_cluster);
        let created = cluster.map(|c| c.create_topic(topic, partitions, 1));
        match created {
            Some(Ok(())) => Ok(()),
            Some(Err(e)) => Err(errors::client(Phase::Start, format!("creating topic {topic}"), &e)),
            None => Err(Error::new(ErrorKind::Internal, Phase::Start, "the embedded Kafka broker is gone")),
        }
    }
}

impl Drop for EmbeddedBroker {
    fn drop(&mut self) {
        let client = self.client.take();
        // Joins the brokers' threads; if no thread can be had, that happens here.
        let _ = std::thread::Builder::new().name("kafka-close".to_owned()).spawn(move || drop(client));
    }
}

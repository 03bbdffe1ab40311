//! A Kafka cluster inside the process, for `--dev` and the demo: librdkafka's mock brokers.
//!
//! Listens on loopback ports, creates topics as they are asked for, and knows idempotent and
//! transactional producers. Everything is in memory and gone with the value; each partition keeps
//! its latest 5 MiB. It is not for production: no durability, no authentication, no admin requests. So
//! producers of the same process make their topics through [`make_topic`]; for those of other processes
//! topics with rules cannot be made.

use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use rdkafka::ClientConfig;
use rdkafka::client::Client;
use rdkafka::error::RDKafkaErrorCode;
use rdkafka::types::RDKafkaType;
use thalweg_core::error::Result;
use thalweg_core::{Error, ErrorKind, Phase};

use crate::errors;
use crate::topics::blocking;
use crate::trouble::PlainContext;

/// Partitions of a topic of which nobody says how many it has.
const PARTITIONS: i32 = 4;

/// Owns the brokers; never sends anything itself.
type Owner = Client<PlainContext>;

/// Clusters of this process by their address. Few, and looked up once per topic.
static RUNNING: Mutex<Vec<(String, Weak<Owner>)>> = Mutex::new(Vec::new());

/// Runs until dropped.
pub struct EmbeddedBroker {
    client: Option<Arc<Owner>>,
    bootstrap: String,
}

/// Makes a topic in the cluster of this process that has this address; one that is there stays as it is.
/// `None`: there is no such cluster. A number of partitions below one leaves it to the cluster. Waits for
/// the cluster's thread.
pub(crate) fn make_topic(bootstrap: &str, topic: &str, partitions: i32) -> Option<Result<()>> {
    let owner = {
        let mut running = RUNNING.lock();
        running.retain(|(_, owner)| owner.strong_count() > 0);
        running.iter().find(|(address, _)| address == bootstrap)?.1.upgrade()?
    };
    Some(create(&owner, topic, if partitions < 1 { PARTITIONS } else { partitions }, true))
}

fn create(owner: &Owner, topic: &str, partitions: i32, may_exist: bool) -> Result<()> {
    match owner.mock_cluster().map(|cluster| cluster.create_topic(topic, partitions, 1)) {
        Some(Ok(())) => Ok(()),
        Some(Err(e)) if may_exist && e.rdkafka_error_code() == Some(RDKafkaErrorCode::TopicAlreadyExists) => Ok(()),
        Some(Err(e)) => Err(errors::client(Phase::Start, format!("creating topic {topic}"), &e)),
        None => Err(Error::new(ErrorKind::Internal, Phase::Start, "the embedded Kafka broker is gone")),
    }
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
                Some(bootstrap) => {
                    let client = Arc::new(client);
                    RUNNING.lock().push((bootstrap.clone(), Arc::downgrade(&client)));
                    Ok(Self { client: Some(client), bootstrap })
                }
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
        let gone = || Error::new(ErrorKind::Internal, Phase::Start, "the embedded Kafka broker is gone");
        create(self.client.as_ref().ok_or_else(gone)?, topic, partitions, false)
    }
}

impl Drop for EmbeddedBroker {
    fn drop(&mut self) {
        let client = self.client.take();
        // Joins the brokers' threads; if no thread can be had, that happens here.
        let _ = std::thread::Builder::new().name("kafka-close".to_owned()).spawn(move || drop(client));
    }
}

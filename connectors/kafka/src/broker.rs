//! Looking at a Kafka cluster from outside of a task: for validation, start-up messages and `check`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rdkafka::producer::{BaseProducer, Producer};
use thalweg_config::Properties;
use thalweg_core::delivery::ProducerIdentity;
use thalweg_core::error::Result;
use thalweg_core::{Error, Phase};

use crate::errors;
use crate::settings::{self, Role, client_settings};
use crate::topics::blocking;
use crate::trouble::PlainContext;

const SLICE: Duration = Duration::from_millis(250);
const EVENTS: Duration = Duration::from_millis(10);

/// What a cluster says about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterFacts {
    pub cluster_id: String,
    /// `host:port` of each broker, by id.
    pub brokers: Vec<(i32, String)>,
}

/// Asks the cluster that the worker's properties name, with the worker's credentials.
///
/// # Errors
/// Not answered within `deadline`: the kind says why (credentials, certificates, unreachable), the
/// message names the address.
pub async fn cluster_facts(worker: &Properties, deadline: Duration) -> Result<ClusterFacts> {
    let who = ProducerIdentity { group: Arc::from("check"), connector: Arc::from("check"), task: 0 };
    let settings =
        client_settings(worker, &Properties::new(), &who, Role::Admin).map_err(|p| settings::as_error(&p))?;
    let mut config = settings.config;
    config.set("client.id", "thalweg-check");
    blocking(move || {
        let bootstrap = config.get("bootstrap.servers").unwrap_or_default().to_owned();
        let what = || format!("asking the Kafka cluster at {bootstrap}");
        let client: BaseProducer<PlainContext> = config
            .create_with_context(PlainContext::new("check"))
            .map_err(|e| errors::client(Phase::Start, what(), &e))?;
        ask(&client, &bootstrap, deadline)
    })
    .await
}

/// Id of the cluster that the worker's properties name, for the REST root.
///
/// # Errors
/// As [`cluster_facts`].
pub async fn cluster_id(worker: &Properties, deadline: Duration) -> Result<String> {
    cluster_facts(worker, deadline).await.map(|f| f.cluster_id)
}

fn ask(producer: &BaseProducer<PlainContext>, bootstrap: &str, deadline: Duration) -> Result<ClusterFacts> {
    let client = producer.client();
    let end = Instant::now() + deadline;
    let unanswered = || -> Error {
        let what = format!("no Kafka broker answered at {bootstrap} within {} ms", deadline.as_millis());
        let error = client.context().trouble.explain(Phase::Start, what);
        if error.kind == thalweg_core::ErrorKind::BrokerUnavailable {
            return error.advise("check bootstrap.servers, that the brokers run, and security.protocol (a TLS listener does not answer a plaintext client)");
        }
        error
    };
    loop {
        let left = end.saturating_duration_since(Instant::now());
        let slice = left.min(SLICE);
        if let Some(cluster_id) = client.fetch_cluster_id(slice) {
            let metadata = client.fetch_metadata(None, left.max(SLICE)).map_err(|_| unanswered())?;
            let brokers = metadata.brokers().iter().map(|b| (b.id(), format!("{}:{}", b.host(), b.port()))).collect();
            return Ok(ClusterFacts { cluster_id, brokers });
        }
        // The client's complaints wait in its queue until somebody fetches them.
        producer.poll(EVENTS);
        if left.is_zero() || client.context().trouble.is_final() {
            return Err(unanswered());
        }
    }
}

//! Making sure that a topic exists before its first record.
//!
//! With `topic.creation.*` the topic is described and, if it is missing, created as its group says;
//! an existing topic is never changed. Without, the broker is asked in the way that lets it create
//! the topic by itself. Either way a topic that cannot be had is an error before any record of it is
//! sent. Each topic is asked for once per producer; a task of many topics lists those of the cluster
//! instead, because an answer about one topic waits behind the records that are on their way to the same
//! broker.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::config::FromClientConfigAndContext;
use rdkafka::error::{KafkaError, RDKafkaErrorCode as Code};
use thalweg_core::error::Result;
use thalweg_core::{Error, ErrorKind, Phase};

use crate::client::{Client, TopicState};
use crate::embedded;
use crate::errors;
use crate::topic_rules::{TopicRules, TopicSpec};
use crate::trouble::PlainContext;

/// For one answer of the cluster.
const ANSWER: Duration = Duration::from_secs(15);
/// A topic that the broker creates by itself, or just created for us, becomes visible within this.
const VISIBLE: Duration = Duration::from_secs(5);
/// So many topics are asked for one by one, those after them are looked up in a list.
const FEW: usize = 4;
const FIRST_LOOK: Duration = Duration::from_millis(10);
const SLOWEST_LOOK: Duration = Duration::from_millis(250);
/// Kafka's own bound.
const LONGEST_NAME: usize = 249;

pub(crate) struct TopicKeeper {
    client: Arc<Client>,
    rules: Option<Arc<TopicRules>>,
    admin: ClientConfig,
    /// Of a client that lists topics: the producer's, which would keep what it hears for a while.
    listing: ClientConfig,
    ready: HashSet<Arc<str>>,
    /// Topics of the cluster when they were listed.
    listed: Option<HashSet<Box<str>>>,
}

impl TopicKeeper {
    /// `config`: the producer's.
    pub(crate) fn new(
        client: Arc<Client>,
        rules: Option<Arc<TopicRules>>,
        admin: ClientConfig,
        config: &ClientConfig,
    ) -> Self {
        let mut listing = config.clone();
        listing.remove("transactional.id");
        Self { client, rules, admin, listing, ready: HashSet::new(), listed: None }
    }

    pub(crate) async fn prepare(&mut self, topic: &Arc<str>) -> Result<()> {
        if self.ready.contains(topic) {
            return Ok(());
        }
        check_name(topic)?;
        if self.listed.is_none() && self.ready.len() >= FEW {
            self.listed = Some(self.list().await);
        }
        if self.listed.as_ref().is_some_and(|listed| listed.contains(&**topic)) {
            self.ready.insert(topic.clone());
            return Ok(());
        }
        match self.spec(topic)? {
            Some(spec) => self.create_if_missing(topic, spec).await?,
            None => self.leave_to_broker(topic).await?,
        }
        self.ready.insert(topic.clone());
        Ok(())
    }

    /// Topics that are there and have no error; none if they cannot be listed, they are asked for then.
    async fn list(&self) -> HashSet<Box<str>> {
        let config = self.listing.clone();
        let listed = blocking(move || {
            let what = || "listing topics".to_owned();
            let failed = |e: &KafkaError| errors::client(Phase::Deliver, what(), e);
            let client: AdminClient<PlainContext> =
                AdminClient::from_config_and_context(&config, PlainContext::new("list of topics"))
                    .map_err(|e| failed(&e))?;
            let metadata = client.inner().fetch_metadata(None, ANSWER).map_err(|e| failed(&e))?;
            let usable = metadata.topics().iter().filter(|t| t.error().is_none() && !t.partitions().is_empty());
            Ok(usable.map(|t| t.name().into()).collect())
        });
        listed.await.unwrap_or_else(|error| {
            tracing::warn!(%error, "topics could not be listed, each is asked for");
            HashSet::new()
        })
    }

    async fn leave_to_broker(&self, topic: &Arc<str>) -> Result<()> {
        if self.ask(topic, Client::ask_for_topic).await? == TopicState::Exists {
            return Ok(());
        }
        match self.look(topic, Client::ask_for_topic).await? {
            TopicState::Exists => self.await_leader(topic).await,
            TopicState::Missing => Err(Error::new(
                ErrorKind::TopicMissing,
                Phase::Deliver,
                format!("topic {topic} does not exist and the broker does not create it"),
            )
            .advise(format!(
                "create topic {topic}, or set topic.creation.default.replication.factor and topic.creation.default.partitions in the connector, or auto.create.topics.enable at the brokers; then restart the task"
            ))),
            TopicState::Refused(code) => Err(errors::coded(Phase::Deliver, format!("topic {topic} is refused"), code)),
        }
    }

    /// How the topic is made; `None` if that is the broker's.
    fn spec(&self, topic: &str) -> Result<Option<TopicSpec>> {
        let Some(rules) = &self.rules else { return Ok(None) };
        let spec = rules.spec(topic).map_err(|e| {
            Error::new(
                ErrorKind::Config,
                Phase::Deliver,
                format!("topic.creation: no group can be found for topic {topic}"),
            )
            .because(&e)
        })?;
        Ok(spec.cloned())
    }

    async fn create_if_missing(&self, topic: &Arc<str>, spec: TopicSpec) -> Result<()> {
        let servers = self.admin.get("bootstrap.servers").unwrap_or_default().to_owned();
        let (name, partitions) = (topic.clone(), spec.partitions);
        if let Some(made) = blocking(move || Ok(embedded::make_topic(&servers, &name, partitions))).await? {
            return made;
        }
        match self.ask(topic, Client::describe_topic).await? {
            TopicState::Exists => return Ok(()),
            TopicState::Missing => {}
            TopicState::Refused(code) => {
                return Err(errors::coded(Phase::Deliver, format!("topic {topic} cannot be described"), code));
            }
        }
        self.create(topic, spec).await?;
        self.await_leader(topic).await
    }

    async fn create(&self, topic: &Arc<str>, spec: TopicSpec) -> Result<()> {
        let (admin, name) = (self.admin.clone(), topic.clone());
        let runtime = tokio::runtime::Handle::current();
        // Starting and closing a client joins threads.
        let outcome = blocking(move || {
            let context = PlainContext::new("topic creation");
            let what = || format!("creating topic {name}");
            let admin = AdminClient::from_config_and_context(&admin, context)
                .map_err(|e| errors::client(Phase::Deliver, what(), &e))?;
            let mut new = NewTopic::new(&name, spec.partitions, TopicReplication::Fixed(spec.replication));
            for (key, value) in &spec.config {
                new = new.set(key, value);
            }
            let options = AdminOptions::new().request_timeout(Some(ANSWER)).operation_timeout(Some(ANSWER));
            let results = runtime
                .block_on(admin.create_topics([&new], &options))
                .map_err(|e| errors::client(Phase::Deliver, what(), &e))?;
            Ok(results.into_iter().find_map(|r| r.err()).map(|(_, code)| code))
        })
        .await?;
        match outcome {
            None => {
                tracing::info!(topic = &**topic, "topic created");
                Ok(())
            }
            Some(Code::TopicAlreadyExists) => Ok(()),
            Some(code) => Err(not_created(topic, code)),
        }
    }

    /// A broker that is about to lead a new topic refuses its first records. Not seeing a leader yet is no
    /// failure: the records wait for it in the client.
    async fn await_leader(&self, topic: &Arc<str>) -> Result<()> {
        self.look(topic, Client::is_led).await.map(drop)
    }

    /// Asks until the topic is there or [`VISIBLE`] has passed.
    async fn look(
        &self,
        topic: &Arc<str>,
        ask: fn(&Client, &str, Duration) -> Result<TopicState>,
    ) -> Result<TopicState> {
        let end = Instant::now() + VISIBLE;
        let mut pause = FIRST_LOOK;
        loop {
            let state = self.ask(topic, ask).await?;
            if state != TopicState::Missing || Instant::now() >= end {
                return Ok(state);
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(SLOWEST_LOOK);
        }
    }

    async fn ask(
        &self,
        topic: &Arc<str>,
        ask: fn(&Client, &str, Duration) -> Result<TopicState>,
    ) -> Result<TopicState> {
        let (client, topic) = (self.client.clone(), topic.clone());
        blocking(move || ask(&client, &topic, ANSWER)).await
    }
}

fn not_created(topic: &str, code: Code) -> Error {
    // Tools know this sentence from Kafka Connect.
    let mut error = errors::coded(
        Phase::Deliver,
        format!(
            "Task failed to create new topic {topic}. Ensure that the task is authorized to create topics or that the topic exists and restart the task"
        ),
        code,
    );
    // A bare permission or configuration kind; anything else may pass with time.
    if error.kind == ErrorKind::Internal {
        error.kind = ErrorKind::Config;
    }
    error
}

pub(crate) fn check_name(topic: &str) -> Result<()> {
    let legal = topic.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'));
    if legal && !topic.is_empty() && topic.len() <= LONGEST_NAME && topic != "." && topic != ".." {
        return Ok(());
    }
    let shown: String = topic.chars().take(LONGEST_NAME).collect();
    Err(Error::new(
        ErrorKind::Config,
        Phase::Deliver,
        format!("{shown:?} is no legal topic name: letters, digits, '.', '_' and '-', at most {LONGEST_NAME} of them"),
    ))
}

/// Runs a call that blocks on a thread of its own. Not on the runtime's pool: a runtime that ends
/// waits for its pool, and a call to an unreachable broker takes its full time.
pub(crate) async fn blocking<T: Send + 'static>(call: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    let broken = || Error::new(ErrorKind::Internal, Phase::Deliver, "a call to the Kafka client broke off");
    let (tell, told) = tokio::sync::oneshot::channel();
    // Whoever waited may be gone; the outcome is dropped then.
    let run = move || drop(tell.send(call()));
    std::thread::Builder::new().name("kafka-call".to_owned()).spawn(run).map_err(|e| broken().because(&e))?;
    told.await.map_err(|_| broken())?
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    #[test]
    fn topic_names() {
        for name in ["a", "shop.inventory.a-b_C9", &"x".repeat(249)] {
            check_name(name).unwrap();
        }
        for name in ["", ".", "..", "a b", "a/b", "ü", "a\0", &"x".repeat(250)] {
            assert_eq!(check_name(name).unwrap_err().kind, ErrorKind::Config, "{name:?}");
        }
    }

    #[test]
    fn kfk_06_the_text_of_connect() {
        let error = not_created("shop.a", Code::TopicAuthorizationFailed);
        assert_eq!(error.kind, ErrorKind::Permission);
        assert!(
            error.message.starts_with("Task failed to create new topic shop.a. Ensure that the task is authorized")
        );
        assert_eq!(not_created("a", Code::InvalidReplicationFactor).kind, ErrorKind::Config);
        assert_eq!(not_created("a", Code::NotController).kind, ErrorKind::BrokerUnavailable);
    }
}

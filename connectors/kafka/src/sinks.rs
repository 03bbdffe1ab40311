//! The door to this crate: opens producers for tasks.
//!
//! One client per task in both modes (see `plain` for why it is not shared). Opening connects, so
//! that a wrong address or password is an error of the start and not of the first record, and in
//! `fenced` mode shuts out the task's former owner before it returns. A cancelled opening leaves
//! nothing behind: the client closes itself on its own thread.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use parking_lot::Mutex;
use thalweg_config::{OptionTable, Properties, Validation};
use thalweg_core::delivery::{Acks, DeliveryCheck, DeliveryMode, Producer, ProducerFactory, ProducerIdentity};
use thalweg_core::error::Result;
use thalweg_core::relational::history::{HistoryStore, HistoryTopic};
use thalweg_core::signal::{KafkaSignals, SignalChannel};
use thalweg_core::{Error, Phase};

use crate::budget::{self, Budget, Share};
use crate::client::{Client, Step};
use crate::fenced::FencedProducer;
use crate::flow::Flow;
use crate::gate::Gate;
use crate::history::KafkaHistory;
use crate::options::{BUFFER_BYTES, COMMIT_AFTER, CONNECTOR_OPTIONS};
use crate::overrides;
use crate::pace::Pace;
use crate::plain::PlainProducer;
use crate::reports::{Reports, SinkContext};
use crate::settings::{self, ClientSettings, Role, SettingProblem, client_settings, transactional_id};
use crate::signals::SignalTopic;
use crate::topic_rules::TopicRules;
use crate::topics::{TopicKeeper, blocking};
use crate::trouble::Trouble;

/// From the start of a client to the first answer of a broker, or the end of the former owner.
const OPEN: Duration = Duration::from_secs(30);
/// Warnings that are remembered as told.
const REMEMBERED: usize = 1_000;
/// A repeated call makes librdkafka ask again at once, where it would wait for half a second by
/// itself: the first answer is "not yet" whenever a former owner left a transaction open, and the
/// broker needs some milliseconds to abort it.
const FIRST_SLICE: Duration = Duration::from_millis(5);
const LONGEST_SLICE: Duration = Duration::from_millis(320);
pub(crate) const COMMIT_AFTER_DEFAULT: Duration = Duration::from_millis(100);

/// Opens producers with the settings of one node.
pub struct KafkaSinks {
    worker: Properties,
    budget: Arc<Budget>,
    /// Warnings are told once, not at every restart of a task.
    told: Mutex<HashSet<String>>,
}

impl KafkaSinks {
    /// `worker`: the node's properties, with references resolved.
    pub fn new(worker: Properties) -> Self {
        let bytes = worker.get(BUFFER_BYTES).and_then(|v| v.trim().parse().ok()).filter(|b| *b > 0);
        Self { worker, budget: Budget::new(bytes.unwrap_or(budget::DEFAULT_BYTES)), told: Mutex::default() }
    }

    fn tell(&self, connector: &str, warnings: &[String]) {
        for warning in warnings {
            let line = format!("{connector}: {warning}");
            let mut told = self.told.lock();
            if told.len() > REMEMBERED {
                told.clear();
            }
            if !told.contains(&line) {
                tracing::warn!(connector, warning = &**warning, "kafka client setting");
                told.insert(line);
            }
        }
    }

    fn plan(&self, who: &ProducerIdentity, mode: DeliveryMode, connector: &Properties) -> Result<Plan> {
        let as_error = |p: Vec<SettingProblem>| settings::as_error(&p);
        let producer = client_settings(&self.worker, connector, who, Role::Producer(mode)).map_err(as_error)?;
        let rules = TopicRules::parse(&self.worker, connector).map_err(as_error)?;
        // An admin client is only needed to create topics.
        let admin = match &rules {
            Some(_) => Some(client_settings(&self.worker, connector, who, Role::Admin).map_err(as_error)?),
            None => None,
        };
        self.tell(&who.connector, &producer.warnings);
        self.tell(&who.connector, admin.as_ref().map_or(&[][..], |a| &a.warnings));
        self.tell(&who.connector, rules.as_ref().map_or(&[][..], |r| &r.warnings));
        let commit_after = [connector, &self.worker]
            .into_iter()
            .find_map(|p| p.get(COMMIT_AFTER)?.trim().parse().ok().filter(|ms| *ms > 0))
            .map_or(COMMIT_AFTER_DEFAULT, Duration::from_millis);
        Ok(Plan { producer, admin, rules, commit_after })
    }
}

struct Plan {
    producer: ClientSettings,
    admin: Option<ClientSettings>,
    rules: Option<TopicRules>,
    commit_after: Duration,
}

/// Every problem and warning of the Kafka side of a connector, without I/O. For validation: the keys
/// are those of the connector's configuration, or of the worker's where a connector inherits it.
pub fn check_settings(
    worker: &Properties,
    connector: &Properties,
    mode: DeliveryMode,
) -> (Vec<SettingProblem>, Vec<String>) {
    let who = ProducerIdentity { group: Arc::from("check"), connector: Arc::from("check"), task: 0 };
    let (mut problems, mut warnings) = (Vec::new(), Vec::new());
    for role in [Role::Producer(mode), Role::Admin] {
        match client_settings(worker, connector, &who, role) {
            Ok(settings) => warnings.extend(settings.warnings),
            Err(found) => problems.extend(found),
        }
    }
    match TopicRules::parse(worker, connector) {
        Ok(rules) => warnings.extend(rules.into_iter().flat_map(|r| r.warnings)),
        Err(found) => problems.extend(found),
    }
    problems.sort_by(|a, b| a.key.cmp(&b.key));
    problems.dedup();
    warnings.sort();
    warnings.dedup();
    (problems, warnings)
}

#[async_trait]
impl ProducerFactory for KafkaSinks {
    fn options(&self) -> &'static OptionTable {
        &CONNECTOR_OPTIONS
    }

    fn overrides(&self, connector: &Properties) -> Validation {
        overrides::listed(connector)
    }

    fn check(&self, connector: &Properties, mode: DeliveryMode) -> DeliveryCheck {
        let (problems, warnings) = check_settings(&self.worker, connector, mode);
        DeliveryCheck { problems: problems.into_iter().map(|p| (p.key, p.reason)).collect(), warnings }
    }

    async fn open(
        &self,
        identity: ProducerIdentity,
        mode: DeliveryMode,
        connector: &Properties,
        acks: Arc<dyn Acks>,
    ) -> Result<Box<dyn Producer>> {
        let plan = self.plan(&identity, mode, connector)?;
        let limits = plan.producer.limits.clone();
        let share = Share::new(&self.budget, limits.buffer_bytes, limits.buffer_messages);
        let name = format!("{}-{}", identity.connector, identity.task);
        let flow = Arc::new(Flow::default());
        let reports = match mode {
            DeliveryMode::Plain => Reports::Acknowledge { tolerates_refusal: limits.tolerates_refusal },
            DeliveryMode::Fenced => Reports::FailuresOnly,
        };
        let context = SinkContext {
            name: name.clone(),
            flow: flow.clone(),
            acks: acks.clone(),
            reports,
            idempotent: plan.producer.config.get("enable.idempotence") == Some("true"),
            floor: share.floor(),
            batch_size: limits.batch_size,
            unconfirmed: limits.request_timeout,
            trouble: Trouble::default(),
        };
        let client = start(plan.producer.config.clone(), context, mode, transactional_id(&identity)).await?;
        let admin = plan.admin.map(|a| a.config).unwrap_or_default();
        let topics = TopicKeeper::new(client.clone(), plan.rules.map(Arc::new), admin, &plan.producer.config);
        Ok(match mode {
            DeliveryMode::Plain => {
                let gate = Gate::new(client, flow.clone());
                Box::new(PlainProducer::new(gate, topics, flow, share, limits.max_request))
            }
            DeliveryMode::Fenced => {
                let pace = Pace {
                    commit_after: plan.commit_after,
                    transaction_timeout: limits.transaction_timeout,
                    max_request: limits.max_request,
                    batch_size: limits.batch_size,
                };
                Box::new(FencedProducer::new(client, topics, flow, acks, share, pace, &name)?)
            }
        })
    }

    fn history(&self, history: &HistoryTopic) -> Result<Box<dyn HistoryStore>> {
        let store = KafkaHistory::new(history)?;
        self.tell(&history.name, &store.warnings);
        Ok(Box::new(store))
    }

    async fn signals(
        &self,
        identity: &ProducerIdentity,
        channel: &KafkaSignals,
        connector: &Properties,
        from: Option<i64>,
    ) -> Result<Box<dyn SignalChannel>> {
        Ok(Box::new(SignalTopic::open(&self.worker, identity, channel, connector, from).await?))
    }
}

async fn start(
    config: rdkafka::ClientConfig,
    context: SinkContext,
    mode: DeliveryMode,
    transactional_id: String,
) -> Result<Arc<Client>> {
    blocking(move || {
        let client = Client::start(&config, context)?;
        // Asking for transactions makes the client connect. By itself a transactional one may wait a
        // second for its timer: if its entry for the coordinator is there before `bootstrap.servers`
        // are read, it takes itself for introduced.
        let asked = (mode == DeliveryMode::Fenced).then(|| client.init_transactions(FIRST_SLICE));
        match asked {
            Some(Step::Done) => {}
            Some(Step::Failed(error)) => return Err(named(error, &transactional_id)),
            Some(Step::Again) => {
                client.connect(OPEN)?;
                shut_out_former_owner(&client, &transactional_id)?;
            }
            None => client.connect(OPEN)?,
        }
        Ok(client)
    })
    .await
}

fn named(mut error: Error, transactional_id: &str) -> Error {
    error.message = format!("transactional id {transactional_id}: {}", error.message);
    error
}

/// Blocks until the broker refuses everything of former owners of the id.
fn shut_out_former_owner(client: &Client, transactional_id: &str) -> Result<()> {
    let end = Instant::now() + OPEN;
    let mut slice = FIRST_SLICE;
    loop {
        match client.init_transactions(slice) {
            Step::Done => return Ok(()),
            Step::Failed(error) => return Err(named(error, transactional_id)),
            Step::Again if Instant::now() < end => slice = (slice * 2).min(LONGEST_SLICE),
            Step::Again => {
                let what = format!(
                    "transactional id {transactional_id}: the broker did not start transactions within {} s",
                    OPEN.as_secs()
                );
                return Err(match client.context() {
                    Some(context) => context.trouble.explain(Phase::Start, what),
                    None => Error::new(thalweg_core::ErrorKind::BrokerUnavailable, Phase::Start, what),
                });
            }
        }
    }
}

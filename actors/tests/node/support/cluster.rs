//! A cluster of one, in memory, that checks what it is told: commits of stale owners are refused,
//! commit numbers rise, stored positions never move back and never pass an unacknowledged message.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::Mutex;
use thalweg_actors::port::{ClusterPort, Epoch, KeptHistory, OffsetCommit, UnitId, UnitState, UnitStatus};
use thalweg_config::Properties;
use thalweg_core::position::{OffsetMap, OffsetReader, SourcePartition};
use thalweg_core::signal::Received;
use thalweg_core::{Error, ErrorKind, Phase};
use tokio::sync::{Notify, watch};

use super::broker::Broker;
use super::random::Random;
use super::source::{Script, number};

pub type Tasks = (Epoch, u64, Vec<Properties>);

#[derive(Default)]
struct State {
    /// Number of crashes.
    life: u64,
    epochs: BTreeMap<UnitId, Epoch>,
    stored: BTreeMap<Arc<str>, OffsetMap>,
    queued: Vec<OffsetCommit>,
    refused: BTreeMap<UnitId, bool>,
    /// Commits wait until [`Cluster::apply`].
    hold: bool,
    /// Commits are applied now or with a later one.
    random: Option<Random>,
    newest: BTreeMap<(UnitId, Epoch, Arc<str>), u64>,
    commits: Vec<OffsetCommit>,
    statuses: Vec<(UnitId, Epoch, UnitStatus)>,
    released: Vec<(UnitId, Epoch)>,
    tasks: Vec<Tasks>,
    publish_errors: Vec<Error>,
    topics: Vec<String>,
    /// Kept for the connector.
    signals: Vec<Received>,
    /// Schema histories by canonical partition.
    histories: BTreeMap<Arc<str>, KeptHistory>,
    violations: Vec<String>,
}

pub struct Cluster {
    script: Arc<Script>,
    broker: Arc<Broker>,
    state: Arc<Mutex<State>>,
    lease: watch::Sender<bool>,
    applied: Notify,
    group: Arc<str>,
}

impl Cluster {
    pub fn new(script: Arc<Script>, broker: Arc<Broker>) -> Arc<Self> {
        Arc::new(Self {
            script,
            broker,
            state: Arc::default(),
            lease: watch::Sender::new(true),
            applied: Notify::new(),
            group: "test".into(),
        })
    }
    /// Makes `epoch` the current placement of a unit.
    pub fn place(&self, unit: &UnitId, epoch: Epoch) {
        self.state.lock().epochs.insert(unit.clone(), epoch);
    }
    pub fn set_lease(&self, held: bool) {
        self.lease.send_replace(held);
    }
    pub fn hold_commits(&self) {
        self.state.lock().hold = true;
    }
    pub fn apply_commits(&self) {
        let mut state = self.state.lock();
        state.hold = false;
        state.apply_all();
        self.applied.notify_waiters();
    }
    pub fn apply_at_random(&self, seed: u64) {
        self.state.lock().random = Some(Random::new(seed));
    }
    /// The process dies: what was not applied is lost, and it says nothing any more.
    pub fn crash(&self) {
        let mut state = self.state.lock();
        state.life += 1;
        state.queued.clear();
        state.refused.clear();
    }
    /// The cluster as a process sees it that lives from now on.
    pub fn member(self: &Arc<Self>) -> Arc<Member> {
        Arc::new(Member { life: self.state.lock().life, cluster: self.clone() })
    }
    pub fn stored(&self, partition: &str) -> Option<u64> {
        self.state.lock().stored.get(Script::partition(partition).canonical()).map(number)
    }
    pub fn commits(&self) -> Vec<u64> {
        self.state.lock().commits.iter().map(|c| number(&c.offset)).collect()
    }
    pub fn states(&self, unit: &UnitId) -> Vec<UnitState> {
        self.statuses(unit).into_iter().map(|(_, status)| status.state).collect()
    }
    pub fn statuses(&self, unit: &UnitId) -> Vec<(Epoch, UnitStatus)> {
        let state = self.state.lock();
        state.statuses.iter().filter(|(u, ..)| u == unit).map(|(_, epoch, status)| (*epoch, status.clone())).collect()
    }
    pub fn released(&self) -> Vec<(UnitId, Epoch)> {
        self.state.lock().released.clone()
    }
    pub fn tasks(&self) -> Vec<Tasks> {
        self.state.lock().tasks.clone()
    }
    pub fn refuse_tasks(&self, error: Error) {
        self.state.lock().publish_errors.push(error);
    }
    pub fn topics(&self) -> Vec<String> {
        self.state.lock().topics.clone()
    }
    /// Panics if an invariant was broken.
    pub fn check(&self) {
        let violations = self.state.lock().violations.clone();
        assert!(violations.is_empty(), "{violations:?}");
    }

    fn commit(&self, commit: OffsetCommit) {
        let passed = self.check_acknowledged(&commit);
        let mut state = self.state.lock();
        state.violations.extend(passed);
        let key = (commit.unit.clone(), commit.epoch, commit.partition.canonical().clone());
        if state.newest.insert(key, commit.seq).is_some_and(|before| before >= commit.seq) {
            state.violations.push(format!("commit number {} does not rise", commit.seq));
        }
        state.commits.push(commit.clone());
        state.queued.push(commit);
        let now = match &mut state.random {
            Some(random) => random.below(3) == 0,
            None => true,
        };
        if now && !state.hold {
            state.apply_all();
            self.applied.notify_waiters();
        }
    }

    async fn settled(&self, unit: &UnitId) -> Result<(), Error> {
        loop {
            let applied = self.applied.notified();
            {
                let mut state = self.state.lock();
                if !state.hold {
                    state.apply_all();
                }
                if state.refused.remove(unit).is_some() {
                    return Err(Error::new(ErrorKind::Fenced, Phase::Commit, "the placement is not current"));
                }
                if state.queued.iter().all(|c| c.unit != *unit) {
                    return Ok(());
                }
            }
            applied.await;
        }
    }

    /// A position may only be handed over when all events before it are acknowledged.
    fn check_acknowledged(&self, commit: &OffsetCommit) -> Option<String> {
        let name = commit.partition.to_map()["server"].as_str().unwrap().to_owned();
        let start = *self.script.start_at.lock();
        let missing = (start..number(&commit.offset)).find(|event| {
            let value = event.to_string();
            !self.broker.is_acked(&format!("t.{name}"), &value) && !self.script.has_value(*event)
        });
        missing.map(|event| format!("{name}: position {} passes event {event}", number(&commit.offset)))
    }
}

impl State {
    fn apply(&mut self, commit: OffsetCommit) {
        if self.epochs.get(&commit.unit) != Some(&commit.epoch) {
            self.refused.insert(commit.unit, true);
            return;
        }
        let key = commit.partition.canonical().clone();
        let at = number(&commit.offset);
        if let Some(before) = self.stored.get(&key).map(number).filter(|before| *before > at) {
            self.violations.push(format!("stored position moved back from {before} to {at}"));
        }
        self.stored.insert(key, commit.offset);
    }
    /// Of the present owner only.
    fn history(&mut self, unit: &UnitId, epoch: Epoch, partition: &SourcePartition) -> Result<&mut KeptHistory, Error> {
        if self.epochs.get(unit) != Some(&epoch) {
            return Err(Error::new(ErrorKind::Fenced, Phase::Start, "stale"));
        }
        Ok(self.histories.entry(partition.canonical().clone()).or_default())
    }
    fn apply_all(&mut self) {
        for commit in std::mem::take(&mut self.queued) {
            self.apply(commit);
        }
    }
}

struct Stored(Arc<Mutex<State>>);

impl OffsetReader for Stored {
    fn offset(&self, partition: &SourcePartition) -> Option<OffsetMap> {
        self.0.lock().stored.get(partition.canonical()).cloned()
    }
}

/// One life of a process.
pub struct Member {
    cluster: Arc<Cluster>,
    life: u64,
}

impl Member {
    fn is_dead(&self) -> bool {
        self.cluster.state.lock().life != self.life
    }
}

#[async_trait]
impl ClusterPort for Member {
    fn commit(&self, commit: OffsetCommit) {
        if !self.is_dead() {
            self.cluster.commit(commit);
        }
    }

    async fn settled(&self, unit: &UnitId) -> Result<(), Error> {
        if self.is_dead() {
            return std::future::pending().await;
        }
        self.cluster.settled(unit).await
    }

    fn status(&self, unit: &UnitId, epoch: Epoch, status: UnitStatus) {
        if !self.is_dead() {
            self.cluster.state.lock().statuses.push((unit.clone(), epoch, status));
        }
    }

    fn released(&self, unit: &UnitId, epoch: Epoch) {
        if !self.is_dead() {
            self.cluster.state.lock().released.push((unit.clone(), epoch));
        }
    }

    fn tasks(&self, _: &Arc<str>, config_revision: u64) -> Vec<Properties> {
        let state = self.cluster.state.lock();
        let newest = state.tasks.last().filter(|(_, revision, _)| *revision == config_revision);
        newest.map(|(_, _, tasks)| tasks.clone()).unwrap_or_default()
    }

    async fn publish_tasks(
        &self,
        _: &Arc<str>,
        epoch: Epoch,
        config_revision: u64,
        tasks: Vec<Properties>,
    ) -> Result<(), Error> {
        let mut state = self.cluster.state.lock();
        if !state.publish_errors.is_empty() {
            return Err(state.publish_errors.remove(0));
        }
        state.tasks.push((epoch, config_revision, tasks));
        Ok(())
    }

    fn signals(&self, _: &Arc<str>, after: i64) -> Vec<Received> {
        let state = self.cluster.state.lock();
        state.signals.iter().filter(|signal| signal.mark.number > after).cloned().collect()
    }

    fn keeps_signals(&self, _: &Arc<str>, through: i64) -> bool {
        self.cluster.state.lock().signals.iter().any(|signal| signal.mark.number <= through)
    }

    async fn confirm_signals(&self, _: &UnitId, _: Epoch, through: i64) -> Result<(), Error> {
        self.cluster.state.lock().signals.retain(|signal| signal.mark.number > through);
        Ok(())
    }

    fn history(&self, _: &Arc<str>, partition: &SourcePartition) -> KeptHistory {
        self.cluster.state.lock().histories.get(partition.canonical()).cloned().unwrap_or_default()
    }

    async fn append_history(
        &self,
        unit: &UnitId,
        epoch: Epoch,
        partition: &SourcePartition,
        text: Arc<str>,
    ) -> Result<(), Error> {
        self.cluster.state.lock().history(unit, epoch, partition)?.texts.push(text);
        Ok(())
    }

    async fn fold_history(
        &self,
        unit: &UnitId,
        epoch: Epoch,
        partition: &SourcePartition,
        (count, _): (u64, u64),
        texts: Vec<Arc<str>>,
    ) -> Result<(), Error> {
        let mut state = self.cluster.state.lock();
        let kept = state.history(unit, epoch, partition)?;
        kept.texts.splice(..count as usize, texts);
        kept.folded += 1;
        Ok(())
    }

    fn topic_used(&self, _: &Arc<str>, topic: &Arc<str>) {
        self.cluster.state.lock().topics.push(topic.to_string());
    }

    fn offsets(&self, _: &Arc<str>) -> Arc<dyn OffsetReader> {
        Arc::new(Stored(self.cluster.state.clone()))
    }

    fn lease_held(&self) -> bool {
        *self.cluster.lease.borrow()
    }

    async fn lease_lost(&self) {
        let _ = self.cluster.lease.subscribe().wait_for(|held| !held).await;
    }

    fn group(&self) -> &Arc<str> {
        &self.cluster.group
    }
}

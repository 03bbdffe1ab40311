//! A simulated cluster: several nodes in one process, each with its own store on disk.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use thalweg_cluster::consensus::{Consensus, Formation, Settings, Timing};
use thalweg_cluster::raft::command::{Expect, TargetState};
use thalweg_cluster::raft::{Command, CommandV1, NodeId, ProposeError, Proposer, Refusal, Reply};
use thalweg_cluster::rpc::faulty::{Faults, FaultyTransport};
use thalweg_cluster::rpc::memory::{MemoryNetwork, MemoryTransport};
use thalweg_config::Properties;

/// What anything in these tests may take on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct Sim {
    pub(crate) network: Arc<MemoryNetwork>,
    pub(crate) faults: Arc<Faults>,
    pub(crate) timing: Timing,
    dir: TempDir,
    nodes: BTreeMap<String, Node>,
}

pub(crate) struct Node {
    pub(crate) consensus: Arc<Consensus>,
    memory: Arc<MemoryTransport>,
}

impl Sim {
    pub(crate) fn new(seed: u64) -> Self {
        if let Ok(filter) = std::env::var("THALWEG_LOG") {
            // Only the first simulation of the process sets it up.
            let _ = tracing_subscriber::fmt().with_env_filter(filter).try_init();
        }
        let timing = Timing {
            heartbeat: Duration::from_millis(100),
            election: (Duration::from_millis(300), Duration::from_millis(600)),
            propose: Duration::from_secs(2),
            replace_after: Duration::from_secs(1),
            ..Timing::default()
        };
        Self {
            network: MemoryNetwork::new(),
            faults: Faults::new(seed),
            timing,
            dir: TempDir::new().unwrap(),
            nodes: BTreeMap::new(),
        }
    }

    /// A group of `n` nodes "a", "b", ... that has formed and has a leader.
    pub(crate) async fn group(seed: u64, n: usize) -> Self {
        let mut sim = Self::new(seed);
        let names: Vec<String> = (0..n).map(|i| ((b'a' + i as u8) as char).to_string()).collect();
        for name in &names {
            sim.start(name, Formation::Found { seeds: names.clone() }).await;
        }
        sim.leader().await;
        sim.eventually("everybody knows everybody", |sim| {
            sim.running().all(|c| c.standing().borrow().members.len() == n && c.standing().borrow().leader.is_some())
        })
        .await;
        sim
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name).join("raft.redb")
    }

    pub(crate) async fn start(&mut self, name: &str, formation: Formation) -> Arc<Consensus> {
        let file = self.file(name);
        self.start_from(name, &file, formation).await
    }

    pub(crate) async fn start_from(
        &mut self,
        name: &str,
        file: &std::path::Path,
        formation: Formation,
    ) -> Arc<Consensus> {
        let memory = self.network.transport(name);
        let transport = Arc::new(FaultyTransport::new(memory.clone(), self.faults.clone(), name));
        let settings = Settings { address: name.into(), formation, timing: self.timing.clone() };
        let consensus = Consensus::start(file, settings, transport).await.unwrap();
        self.nodes.insert(name.into(), Node { consensus: consensus.clone(), memory });
        consensus
    }

    /// The process is gone from one moment to the next, as the others see it.
    pub(crate) async fn kill(&mut self, name: &str) {
        let node = self.nodes.remove(name).unwrap();
        node.memory.kill();
        node.consensus.shutdown(Duration::ZERO).await;
    }

    pub(crate) async fn stop(&mut self, name: &str) {
        let node = self.nodes.remove(name).unwrap();
        node.consensus.shutdown(Duration::from_secs(2)).await;
    }

    pub(crate) fn wipe(&self, name: &str) {
        std::fs::remove_file(self.file(name)).unwrap();
    }

    pub(crate) fn node(&self, name: &str) -> &Arc<Consensus> {
        &self.nodes[name].consensus
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.nodes.keys().cloned().collect()
    }

    pub(crate) fn running(&self) -> impl Iterator<Item = &Arc<Consensus>> {
        self.nodes.values().map(|n| &n.consensus)
    }

    /// Waits until a node leads and another one knows it (or there is no other).
    pub(crate) async fn leader(&self) -> String {
        self.eventually("there is a leader", |sim| sim.leader_now().is_some()).await;
        self.leader_now().unwrap()
    }

    pub(crate) fn leader_now(&self) -> Option<String> {
        let known = |leader: NodeId| {
            self.running().filter(|c| c.standing().borrow().leader.as_ref().is_some_and(|l| l.node == leader)).count()
        };
        let leading = self.nodes.iter().find(|(_, n)| n.consensus.leading().borrow().is_some());
        leading.filter(|(_, n)| 2 * known(n.consensus.node()) > self.nodes.len()).map(|(name, _)| name.clone())
    }

    pub(crate) fn followers(&self) -> Vec<String> {
        let leader = self.leader_now();
        self.names().into_iter().filter(|n| Some(n) != leader.as_ref()).collect()
    }

    pub(crate) async fn eventually(&self, what: &str, holds: impl Fn(&Self) -> bool) {
        let start = Instant::now();
        while !holds(self) {
            if start.elapsed() > PATIENCE {
                let say = |(name, node): (&String, &Node)| {
                    format!(
                        "{name}: applied {} waiting {:?} failed {:?} {:?}",
                        node.consensus.view().applied(),
                        node.consensus.waiting(),
                        *node.consensus.failure().borrow(),
                        *node.consensus.standing().borrow(),
                    )
                };
                let all: Vec<String> = self.nodes.iter().map(say).collect();
                panic!("waited in vain: {what}\n{}", all.join("\n"));
            }
            // Between two looks: the condition spans nodes, so no single notification covers it.
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Voters as the leader has them.
    pub(crate) fn voters(&self) -> Vec<String> {
        let Some(leader) = self.leader_now() else { return Vec::new() };
        let standing = self.node(&leader).standing().borrow().clone();
        standing.voters().filter_map(|v| standing.members.get(&v).map(|m| m.address.clone())).collect()
    }

    pub(crate) fn members(&self) -> usize {
        self.leader_now().map_or(0, |leader| self.node(&leader).standing().borrow().members.len())
    }

    /// Waits until all nodes have applied the same, and checks that it made them equal.
    pub(crate) async fn agree(&self) {
        self.agree_except("").await;
    }

    pub(crate) async fn agree_except(&self, name: &str) {
        let part = |sim: &Self| -> Vec<Arc<Consensus>> {
            sim.nodes.iter().filter(|(n, _)| *n != name).map(|(_, n)| n.consensus.clone()).collect()
        };
        let applied = |sim: &Self| part(sim).iter().map(|c| c.view().applied()).collect::<Vec<_>>();
        self.eventually("all nodes have applied the same", |sim| {
            let leader = sim.leader_now();
            leader.is_some() && applied(sim).windows(2).all(|w| w[0] == w[1])
        })
        .await;
        loop {
            let before = applied(self);
            let hashes: Vec<_> = part(self).iter().map(|c| c.view().read().hash()).collect();
            if before.windows(2).all(|w| w[0] == w[1]) && before == applied(self) {
                assert!(hashes.windows(2).all(|w| w[0] == w[1]), "one index, different states: {hashes:?}");
                return;
            }
            // Between two looks: the condition spans nodes, so no single notification covers it.
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Writes through `name` until it is accepted.
    pub(crate) async fn must_write(&self, name: &str, connector: &str) {
        let start = Instant::now();
        let mut unknown = false;
        loop {
            match self.node(name).propose(create(connector)).await {
                Ok(Reply::ConnectorPut { .. }) => return,
                Ok(Reply::Refused(Refusal::AlreadyExists(_))) if unknown => return,
                Ok(reply) => panic!("{connector}: {reply:?}"),
                Err(error) => {
                    unknown |= error == ProposeError::Unknown;
                    assert!(start.elapsed() < PATIENCE, "{connector} through {name}: {error}");
                }
            }
        }
    }

    pub(crate) fn has(&self, name: &str, connector: &str) -> bool {
        self.node(name).view().read().connectors.contains_key(connector)
    }
}

pub(crate) fn create(connector: &str) -> Command {
    let name = connector.into();
    CommandV1::PutConnector {
        name,
        config: Properties::default(),
        target: TargetState::Started,
        expect: Expect::Absent,
    }
    .into()
}

pub(crate) fn seeds(names: &[&str]) -> Vec<String> {
    names.iter().map(|&n| n.to_owned()).collect()
}

pub(crate) fn found(names: &[&str]) -> Formation {
    Formation::Found { seeds: seeds(names) }
}

pub(crate) fn join(names: &[&str]) -> Formation {
    Formation::Join { seeds: seeds(names) }
}

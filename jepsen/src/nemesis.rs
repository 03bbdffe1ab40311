//! Injects and heals faults. Each ends with everything running and every link mended.
//!
//! A shard that comes or goes is one of them, though no fault of anything.
//!
//! A fault that could not be injected is a failure of the harness, not of the system under test.

use std::time::Duration;

use anyhow::{Context, Result};
use bson::doc;
use nix::sys::signal::Signal;
use thalweg_services::until;

use crate::history::{Function, History, OpType};
use crate::lab::{GUEST, Lab};
use crate::observe::positions;
use crate::schedule::{Fault, Schedule};

/// Longest wait for the cluster to come to rest, and for the stream of a shard to reach its end.
const RESTS: Duration = Duration::from_secs(60);

/// One injected fault, for the report.
#[derive(Debug, Clone)]
pub struct Injected {
    pub fault: Fault,
    pub target: String,
    /// Milliseconds since the start of the run.
    pub from: u64,
    pub healed: u64,
    /// All tasks RUNNING again, after healing.
    pub converged: u64,
    /// Connectors whose owner was hit.
    pub hit: Vec<usize>,
    /// A shard came (true) or went.
    pub shard: Option<bool>,
}

pub struct Nemesis<'a> {
    pub lab: &'a mut Lab,
    pub history: History,
}

impl Nemesis<'_> {
    pub async fn inject(&mut self, fault: Fault, schedule: &mut Schedule) -> Result<Injected> {
        let connector = schedule.pick(self.lab.connectors());
        let task = schedule.pick(self.lab.tasks().await);
        let resharding = matches!(fault, Fault::Reshard | Fault::ReshardKill);
        if resharding {
            self.at_rest().await?;
        }
        let guest = match &self.lab.sharded {
            Some(sharded) => *sharded.guest.read().await,
            None => false,
        };
        let node = match fault {
            Fault::KillLeader => self.lab.cluster.leader().await?,
            Fault::StepDown | Fault::KillPrimary | Fault::RestartBroker | Fault::KillAll => 0,
            _ => self.lab.cluster.owner(&Lab::connector(connector), task).await?,
        };
        let primary = match fault {
            Fault::StepDown | Fault::KillPrimary => self.lab.set.primary().await?,
            _ => 0,
        };
        let target = match fault {
            Fault::StepDown | Fault::KillPrimary => format!("member {primary}"),
            Fault::RestartBroker => "broker".to_owned(),
            Fault::KillAll => "all nodes".to_owned(),
            Fault::Reshard | Fault::ReshardKill => {
                format!("{} {}", Lab::guest(), if guest { "goes" } else { "comes" })
            }
            _ => format!("node {}", node + 1),
        };
        let hit = match fault {
            Fault::StepDown | Fault::KillPrimary | Fault::RestartBroker | Fault::KillAll => {
                (0..self.lab.connectors()).collect()
            }
            _ => self.lab.owned(node).await?,
        };
        let from = self.history.now();
        self.note(OpType::Invoke, fault, &target);
        self.begin(fault, node, primary).await.with_context(|| format!("{} of {target}", fault.name()))?;
        tokio::time::sleep(fault.lasts()).await;
        self.heal(fault, node, primary).await.with_context(|| format!("healing {} of {target}", fault.name()))?;
        self.note(OpType::Info, fault, &target);
        let shard = resharding.then_some(!guest);
        let healed = self.history.now();
        // Whoever waits for it says when it was.
        Ok(Injected { fault, target, from, healed, converged: healed, hit, shard })
    }

    fn note(&self, kind: OpType, fault: Fault, target: &str) {
        let function = Function::Fault { kind: fault.name().to_owned(), target: target.to_owned() };
        self.history.record("nemesis", kind, function, None);
    }

    async fn begin(&mut self, fault: Fault, node: usize, primary: usize) -> Result<()> {
        if matches!(fault, Fault::Reshard | Fault::ReshardKill) {
            self.reshard().await?;
        }
        let nodes = &mut self.lab.cluster.nodes;
        match fault {
            Fault::Reshard => {}
            Fault::KillOwner | Fault::KillLeader | Fault::ReshardKill => nodes[node].kill()?,
            Fault::KillAll => {
                for node in nodes.iter_mut().filter(|n| n.is_running()) {
                    node.kill()?;
                }
            }
            Fault::PauseShort | Fault::PauseLong => nodes[node].process()?.signal(Signal::SIGSTOP)?,
            Fault::Restart => nodes[node].stop().await?,
            Fault::StepDown => {
                self.lab.set.step_down().await?;
            }
            Fault::KillPrimary => self.lab.set.members[primary].kill()?,
            Fault::RestartBroker => self.lab.broker.restart().await?,
            Fault::CutNode => self.cut_nodes(node)?,
            Fault::CutKafka | Fault::CutKafkaKill => self.cut_kafka(node)?,
            Fault::CutSource | Fault::CutSourceKill => self.cut_source(node)?,
            Fault::CutAll => {
                self.cut_nodes(node)?;
                self.cut_kafka(node)?;
                self.cut_source(node)?;
            }
        }
        Ok(())
    }

    async fn heal(&mut self, fault: Fault, node: usize, primary: usize) -> Result<()> {
        let nodes = &mut self.lab.cluster.nodes;
        match fault {
            Fault::KillOwner | Fault::KillLeader | Fault::Restart | Fault::ReshardKill => {
                nodes[node].start()?;
                nodes[node].ready().await?;
            }
            Fault::KillAll => {
                for node in nodes.iter_mut() {
                    node.start()?;
                }
                for node in nodes.iter() {
                    node.ready().await?;
                }
            }
            Fault::PauseShort | Fault::PauseLong => nodes[node].process()?.signal(Signal::SIGCONT)?,
            Fault::KillPrimary => self.lab.set.members[primary].start()?,
            Fault::StepDown | Fault::RestartBroker | Fault::Reshard => {}
            Fault::CutKafkaKill | Fault::CutSourceKill => {
                nodes[node].kill()?;
                self.mend();
                let node = &mut self.lab.cluster.nodes[node];
                node.start()?;
                node.ready().await?;
            }
            Fault::CutNode | Fault::CutKafka | Fault::CutSource | Fault::CutAll => self.mend(),
        }
        Ok(())
    }

    /// The guest among the shards comes, or goes if it is there: its writers have stopped by then, and
    /// what they wrote is read, as it is of a shard that was drained.
    async fn reshard(&self) -> Result<()> {
        let sharded = self.lab.sharded.as_ref().context("there are no shards in this run")?;
        let mut guest = sharded.guest.write().await;
        if *guest {
            let set = self.lab.sets().nth(GUEST).context("no such shard")?;
            let pong = set.client().await?.database("admin").run_command(doc! {"ping": 1}).await?;
            let end = pong.get_timestamp("operationTime").context("the shard tells no time")?;
            let (rest, path) = (self.lab.cluster.rest()?, format!("/connectors/{}/offsets", Lab::connector(0)));
            until("everything of the shard that goes is read", RESTS, || async {
                let body = rest.get(&path).await?.1;
                let reached =
                    positions(&body).any(|p| p.partition == Lab::guest() && p.at >= (end.time, end.increment));
                Ok(reached.then_some(()))
            })
            .await?;
        }
        *guest = !*guest;
        self.lab.list_shards(*guest);
        Ok(())
    }

    /// Waits until no task is on its way between nodes.
    async fn at_rest(&self) -> Result<()> {
        let rest = self.lab.cluster.rest()?;
        until("every task has its place", RESTS, || async {
            let rows = rest.get("/cluster/assignments").await?.1;
            let rows = rows.as_array().cloned().unwrap_or_default();
            let pending = rest.get("/cluster").await?.1["pending_moves"].as_u64().unwrap_or(0);
            let placed = !rows.is_empty() && rows.iter().all(|r| r["phase"] == "assigned");
            Ok((placed && pending == 0).then_some(()))
        })
        .await
    }

    /// Mends every link.
    fn mend(&self) {
        let proxies = self.lab.cluster.nodes.iter().filter_map(|n| n.proxy.as_ref());
        let members = self.lab.sets().flat_map(|s| &s.members).filter_map(|m| m.proxy.as_ref());
        proxies.chain(members).chain(self.lab.broker.proxy.as_ref()).for_each(|p| p.mend());
    }

    /// Nobody reaches the node and the node reaches nobody.
    fn cut_nodes(&mut self, node: usize) -> Result<()> {
        let process = self.lab.cluster.nodes[node].process()?.id();
        for (index, other) in self.lab.cluster.nodes.iter().enumerate() {
            let proxy = other.proxy.as_ref().context("the cluster has no proxies")?;
            if index == node { proxy.cut() } else { proxy.cut_process(process) }
        }
        Ok(())
    }

    fn cut_kafka(&mut self, node: usize) -> Result<()> {
        let process = self.lab.cluster.nodes[node].process()?.id();
        self.lab.broker.proxy.as_ref().context("the broker has no proxy")?.cut_process(process);
        Ok(())
    }

    fn cut_source(&mut self, node: usize) -> Result<()> {
        let process = self.lab.cluster.nodes[node].process()?.id();
        for member in self.lab.sets().flat_map(|s| &s.members) {
            member.proxy.as_ref().context("the replica set has no proxies")?.cut_process(process);
        }
        Ok(())
    }
}

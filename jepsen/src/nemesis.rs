//! Injects and heals faults. Each ends with everything running and every link mended.
//!
//! A fault that could not be injected is a failure of the harness, not of the system under test.

use anyhow::{Context, Result};
use nix::sys::signal::Signal;

use crate::history::{Function, History, OpType};
use crate::lab::{CONNECTORS, Lab};
use crate::schedule::{Fault, Schedule};

/// One injected fault, for the report.
#[derive(Debug, Clone)]
pub struct Injected {
    pub fault: Fault,
    pub target: String,
    /// Milliseconds since the start of the run.
    pub from: u64,
    pub healed: u64,
    /// All tasks RUNNING again, after healing.
    pub converged: Option<u64>,
}

pub struct Nemesis<'a> {
    pub lab: &'a mut Lab,
    pub history: History,
}

impl Nemesis<'_> {
    pub async fn inject(&mut self, fault: Fault, schedule: &mut Schedule) -> Result<Injected> {
        let connector = schedule.pick(CONNECTORS);
        let node = match fault {
            Fault::KillLeader => self.lab.cluster.leader().await?,
            Fault::StepDown | Fault::KillPrimary | Fault::RestartBroker | Fault::KillAll => 0,
            _ => self.lab.cluster.owner(&Lab::connector(connector), 0).await?,
        };
        let primary = match fault {
            Fault::StepDown | Fault::KillPrimary => self.lab.set.primary().await?,
            _ => 0,
        };
        let target = match fault {
            Fault::StepDown | Fault::KillPrimary => format!("member {primary}"),
            Fault::RestartBroker => "broker".to_owned(),
            Fault::KillAll => "all nodes".to_owned(),
            _ => format!("node {}", node + 1),
        };
        let from = self.history.now();
        self.note(OpType::Invoke, fault, &target);
        self.begin(fault, node, primary).await.with_context(|| format!("{} of {target}", fault.name()))?;
        tokio::time::sleep(fault.lasts()).await;
        self.heal(fault, node, primary).await.with_context(|| format!("healing {} of {target}", fault.name()))?;
        self.note(OpType::Info, fault, &target);
        Ok(Injected { fault, target, from, healed: self.history.now(), converged: None })
    }

    fn note(&self, kind: OpType, fault: Fault, target: &str) {
        let function = Function::Fault { kind: fault.name().to_owned(), target: target.to_owned() };
        self.history.record("nemesis", kind, function, None);
    }

    async fn begin(&mut self, fault: Fault, node: usize, primary: usize) -> Result<()> {
        let nodes = &mut self.lab.cluster.nodes;
        match fault {
            Fault::KillOwner | Fault::KillLeader => nodes[node].kill()?,
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
            Fault::CutSource => self.cut_source(node)?,
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
            Fault::KillOwner | Fault::KillLeader | Fault::Restart => {
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
            Fault::StepDown | Fault::RestartBroker => {}
            Fault::CutKafkaKill => {
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

    /// Mends every link.
    fn mend(&self) {
        let proxies = self.lab.cluster.nodes.iter().filter_map(|n| n.proxy.as_ref());
        let members = self.lab.set.members.iter().filter_map(|m| m.proxy.as_ref());
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
        for member in &self.lab.set.members {
            member.proxy.as_ref().context("the replica set has no proxies")?.cut_process(process);
        }
        Ok(())
    }
}

//! A single copy of the state for tests: commands go in, the index rises.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Arc;

use thalweg_config::Properties;

use super::{Phase, Placement, State};
use crate::raft::command::*;
use crate::raft::unit::{Name, NodeId, Unit};

#[derive(Debug, Default, Clone)]
pub(crate) struct World {
    pub(crate) state: State,
    pub(crate) index: u64,
    pub(crate) now_ms: u64,
}

pub(crate) fn name(text: &str) -> Name {
    Arc::from(text)
}

pub(crate) fn about(node: NodeId) -> NodeAbout {
    NodeAbout {
        worker_id: format!("host{node}:8083"),
        rest_url: format!("http://host{node}:8083"),
        rpc_address: format!("host{node}:9083"),
        // The first one: golden bytes hold it.
        feature_level: 1,
    }
}

pub(crate) fn partition(text: &str) -> PartitionText {
    let text = format!("{{\"server_id\":\"{text}\"}}");
    PartitionText { canonical: text.clone(), original: text }
}

impl World {
    pub(crate) fn apply(&mut self, command: impl Into<Command>) -> Reply {
        self.index += 1;
        self.state.apply(self.index, &command.into())
    }
    /// Applies and expects that it is not refused.
    pub(crate) fn ok(&mut self, command: impl Into<Command>) -> Reply {
        let command = command.into();
        let reply = self.apply(command.clone());
        assert!(!matches!(reply, Reply::Refused(_)), "{command:?} was refused: {reply:?}");
        reply
    }
    pub(crate) fn refused(&mut self, command: impl Into<Command>) -> Refusal {
        let before = self.state.clone();
        let Reply::Refused(why) = self.apply(command) else { panic!("was not refused") };
        assert_eq!(
            State { clock_ms: before.clock_ms, ..self.state.clone() },
            before,
            "a refused command changes nothing"
        );
        why
    }
    pub(crate) fn register(&mut self, node: NodeId, boot: u8) -> u64 {
        let reply = self.ok(CommandV1::RegisterNode {
            node,
            boot: [boot; 16],
            about: about(node),
            now_ms: self.now_ms,
            delay_ms: 0,
        });
        let Reply::NodeRegistered { incarnation } = reply else { panic!("{reply:?}") };
        incarnation
    }
    pub(crate) fn expire(&mut self, node: NodeId, gone: bool, delay_ms: u64) {
        let incarnation = self.incarnation(node);
        self.ok(CommandV1::ExpireNode { node, incarnation, gone, now_ms: self.now_ms, delay_ms });
    }
    pub(crate) fn incarnation(&self, node: NodeId) -> u64 {
        self.state.nodes[&node].incarnation
    }
    pub(crate) fn put(&mut self, connector: &str, config: &[(&str, &str)]) -> Reply {
        let config: Properties = config.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        self.ok(CommandV1::PutConnector {
            name: name(connector),
            config,
            target: TargetState::Started,
            expect: Expect::Any,
        })
    }
    pub(crate) fn assign(&mut self, unit: &Unit, node: NodeId) -> u64 {
        let command = self.assign_command(unit, node);
        let Reply::Assigned { epoch } = self.ok(command) else { panic!() };
        epoch
    }
    pub(crate) fn assign_command(&self, unit: &Unit, node: NodeId) -> CommandV1 {
        CommandV1::Assign {
            unit: unit.clone(),
            node,
            incarnation: self.state.nodes.get(&node).map_or(0, |n| n.incarnation),
            previous: self.state.placements.get(unit).map_or(0, |p| p.epoch),
            mode: Delivery::Fenced,
            fence_wait_ms: 0,
            late_sends_ms: 0,
        }
    }
    pub(crate) fn tasks(count: usize, tag: &str) -> Vec<Properties> {
        (0..count)
            .map(|n| [("task.id".to_owned(), n.to_string()), ("tag".to_owned(), tag.to_owned())].into_iter().collect())
            .collect()
    }
    /// The owner of the connector object publishes tasks.
    pub(crate) fn publish(&mut self, connector: &str, tasks: Vec<Properties>) -> Reply {
        let command = self.publish_command(connector, tasks);
        self.ok(command)
    }
    pub(crate) fn publish_command(&self, connector: &str, tasks: Vec<Properties>) -> CommandV1 {
        CommandV1::ReplaceTasks {
            name: name(connector),
            epoch: self.placement(&Unit::connector(connector)).epoch,
            config_revision: self.state.connectors[connector].revision,
            tasks,
        }
    }
    /// Connector object and tasks, all on one node.
    pub(crate) fn running(&mut self, connector: &str, tasks: usize, node: NodeId) {
        self.put(connector, &[("name", connector)]);
        self.assign(&Unit::connector(connector), node);
        self.publish(connector, Self::tasks(tasks, "a"));
        for n in 0..tasks {
            self.assign(&Unit::task(connector, n as u32), node);
        }
    }
    pub(crate) fn placement(&self, unit: &Unit) -> &Placement {
        self.state.placements.get(unit).unwrap_or_else(|| panic!("{unit} has no placement"))
    }
    pub(crate) fn phase(&self, unit: &Unit) -> Option<Phase> {
        self.state.placements.get(unit).map(|p| p.phase)
    }
    pub(crate) fn report(&self, node: NodeId) -> Report {
        Report {
            node,
            incarnation: self.incarnation(node),
            offsets: Vec::new(),
            statuses: Vec::new(),
            topics: Vec::new(),
            released: Vec::new(),
        }
    }
    pub(crate) fn release(&mut self, unit: &Unit) {
        let placement = self.placement(unit).clone();
        let mut report = self.report(placement.node);
        report.incarnation = placement.incarnation;
        report.released.push((unit.clone(), placement.epoch));
        assert_eq!(self.ok(report), Reply::Reported { refused: Vec::new() });
    }
    pub(crate) fn status(&self, unit: &Unit) -> Option<ReportedState> {
        self.state.statuses.get(unit).map(|s| s.state)
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Report {
    pub(crate) node: NodeId,
    pub(crate) incarnation: u64,
    pub(crate) offsets: Vec<OffsetItem>,
    pub(crate) statuses: Vec<StatusItem>,
    pub(crate) topics: Vec<TopicItem>,
    pub(crate) released: Vec<(Unit, u64)>,
}

impl Report {
    pub(crate) fn offset(mut self, unit: &Unit, epoch: u64, seq: u64, key: &str, offset: &str) -> Self {
        let offset = offset.to_owned();
        self.offsets.push(OffsetItem { unit: unit.clone(), epoch, seq, partition: partition(key), offset });
        self
    }
    pub(crate) fn status(mut self, unit: &Unit, epoch: u64, state: ReportedState, trace: Option<&str>) -> Self {
        self.statuses.push(StatusItem { unit: unit.clone(), epoch, state, trace: trace.map(str::to_owned) });
        self
    }
    pub(crate) fn topic(mut self, connector: &str, topic: &str) -> Self {
        self.topics.push(TopicItem { connector: name(connector), topic: name(topic) });
        self
    }
    pub(crate) fn release(mut self, unit: &Unit, epoch: u64) -> Self {
        self.released.push((unit.clone(), epoch));
        self
    }
}

impl From<Report> for Command {
    fn from(report: Report) -> Self {
        let Report { node, incarnation, offsets, statuses, topics, released } = report;
        CommandV1::Report { node, incarnation, offsets, topics, statuses, released }.into()
    }
}

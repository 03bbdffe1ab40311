//! A cluster without Raft and without actors, in virtual time: one copy of the state, real leaders,
//! lease guards and herders' eyes, units that send and commit, and everything that goes wrong.
//!
//! What is checked: commits are accepted from one owner at a time; nothing an owner has sent can
//! arrive behind the first message of a later owner of the same partition (with what the brokers
//! refuse in `fenced` mode taken into account); once all is well again, everything runs, evenly.
//!
//! Not in here: agreement itself (one copy is what Raft provides) and what units read.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use proptest::prelude::*;
use thalweg_actors::port::{Assignment, UnitId};
use thalweg_config::Properties;
use thalweg_core::delivery::DeliveryMode;

use crate::herder::{Standing, assignments};
use crate::leader::{Gone, Leader, Office};
use crate::lease::{BootInstant, Clock, Grant, LeaseGuard};
use crate::raft::command::{Command, CommandV1, DrainMode, Expect, OffsetItem, TargetState};
use crate::raft::state::world::{World, about, name, partition};
use crate::raft::state::{NodeState, Phase};
use crate::raft::{Leadership, Name, NodeId, Reply, State, Unit};

const TICK: u64 = 20;
const NODES: u64 = 4;
const CONNECTORS: u8 = 3;
/// Source partitions of each connector; partition p belongs to task p mod (number of tasks) at first.
const PARTITIONS: usize = 4;
/// A send may arrive this much later, if its process lives on.
const IN_FLIGHT: u64 = 10_000;
/// The same after its process has ended.
const SOCKETS: u64 = 1_000;

#[derive(Default)]
struct HandClock(AtomicU64);

impl Clock for HandClock {
    fn now(&self) -> BootInstant {
        BootInstant(Duration::from_millis(self.0.load(Ordering::SeqCst)))
    }
    fn wall_ms(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}

#[derive(Debug, Clone)]
enum Event {
    Kill(u64),
    Start(u64),
    Cut(u64),
    Heal(u64),
    Pause(u64, u64),
    /// The address of a process that runs refuses connections for once.
    FalseGone(u64),
    Leave(u64),
    Transfer,
    Put(u8, usize, bool),
    /// A partition becomes a task's, while the others stay where they are.
    Move(u8, usize, usize),
    Delete(u8),
    Target(u8, bool),
}

fn event() -> impl Strategy<Value = Event> {
    let node = 1u64..=NODES;
    let connector = 0u8..CONNECTORS;
    prop_oneof![
        3 => node.clone().prop_map(Event::Kill),
        5 => node.clone().prop_map(Event::Start),
        2 => node.clone().prop_map(Event::Cut),
        3 => node.clone().prop_map(Event::Heal),
        2 => (node.clone(), 100u64..9_000).prop_map(|(n, ms)| Event::Pause(n, ms)),
        1 => node.clone().prop_map(Event::FalseGone),
        1 => node.prop_map(Event::Leave),
        1 => Just(Event::Transfer),
        5 => (connector.clone(), 1usize..4, any::<bool>()).prop_map(|(c, t, plain)| Event::Put(c, t, plain)),
        5 => (connector.clone(), 0..PARTITIONS, 0usize..4).prop_map(|(c, p, t)| Event::Move(c, p, t)),
        1 => connector.clone().prop_map(Event::Delete),
        2 => (connector, any::<bool>()).prop_map(|(c, stop)| Event::Target(c, stop)),
    ]
}

/// Cheap repeatable noise.
struct Noise(u64);

impl Noise {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound.max(1)
    }
}

/// A unit that runs in a process.
struct Run {
    epoch: u64,
    seq: u64,
    started: u64,
    committed: u64,
    drained: Option<u64>,
}

struct Process {
    boot: u8,
    registered: Option<u64>,
    guard: LeaseGuard,
    seen: Arc<State>,
    placed: Vec<Assignment>,
    /// Layout and incarnation from which that was made.
    placed_from: (u64, u64),
    runs: BTreeMap<UnitId, Run>,
    next_beat: u64,
    leaving: bool,
}

#[derive(Default)]
struct Machine {
    process: Option<Process>,
    boots: u8,
    cut: bool,
    paused_until: u64,
}

/// Messages between a node and the leader, by the time they arrive.
enum Letter {
    Beat { node: NodeId, incarnation: u64, seq: u64, applied: u64 },
    Answer { node: NodeId, incarnation: u64, seq: u64 },
    Gone { node: NodeId },
}

/// Who sent to a partition, and until when that may still arrive.
struct Sender {
    unit: Unit,
    epoch: u64,
    node: NodeId,
    boot: u8,
    fenced: bool,
    last: u64,
    /// Nothing of it can arrive after this.
    over: Option<u64>,
}

#[derive(Default)]
struct Audit {
    senders: BTreeMap<(String, usize), Vec<Sender>>,
    accepted: BTreeMap<Unit, (u64, NodeId)>,
    sends: u64,
    commits: u64,
}

struct Sim {
    now: u64,
    clock: Arc<HandClock>,
    base: Instant,
    world: World,
    shown: Arc<State>,
    machines: BTreeMap<NodeId, Machine>,
    leader: Option<(NodeId, Leader)>,
    elected_at: Option<u64>,
    /// When any leader last granted a lease.
    granted_at: u64,
    next_step: u64,
    planned: u64,
    gone: BTreeMap<NodeId, Gone>,
    /// Partitions of each task, as connector objects see their sources.
    sources: BTreeMap<Name, Vec<BTreeSet<usize>>>,
    letters: BTreeMap<(u64, u64), Letter>,
    posted: u64,
    noise: Noise,
    office: Office,
    audit: Audit,
}

impl Sim {
    fn new(seed: u64, office: Office) -> Self {
        let mut sim = Self {
            now: 0,
            clock: Arc::default(),
            base: Instant::now(),
            world: World::default(),
            shown: Arc::default(),
            machines: (1..=NODES).map(|n| (n, Machine::default())).collect(),
            leader: None,
            elected_at: None,
            granted_at: 0,
            next_step: 0,
            planned: 0,
            gone: BTreeMap::new(),
            sources: BTreeMap::new(),
            letters: BTreeMap::new(),
            posted: 0,
            noise: Noise(seed),
            office,
            audit: Audit::default(),
        };
        for node in 1..=NODES {
            sim.start(node);
        }
        sim
    }

    fn at(&self) -> BootInstant {
        BootInstant(Duration::from_millis(self.now))
    }

    fn post(&mut self, delay: u64, letter: Letter) {
        self.posted += 1;
        self.letters.insert((self.now + delay, self.posted), letter);
    }

    /// Can talk to the others, and does.
    fn is_up(&self, node: NodeId) -> bool {
        let machine = &self.machines[&node];
        machine.process.is_some() && !machine.cut && machine.paused_until <= self.now
    }

    fn has_quorum(&self) -> bool {
        (1..=NODES).filter(|n| self.is_up(*n)).count() as u64 > NODES / 2
    }

    /// Writes for a node, if a leader is there.
    fn propose(&mut self, node: NodeId, command: impl Into<Command>) -> Option<Reply> {
        let ok = self.is_up(node) && self.leader.is_some() && self.has_quorum();
        ok.then(|| self.write(command))
    }

    fn write(&mut self, command: impl Into<Command>) -> Reply {
        let reply = self.world.apply(command);
        self.shown = Arc::new(self.world.state.clone());
        reply
    }

    fn start(&mut self, node: NodeId) {
        let clock = self.clock.clone();
        let guard = LeaseGuard::new(self.office.terms, clock);
        let machine = self.machines.get_mut(&node).unwrap();
        if machine.process.is_some() {
            return;
        }
        machine.boots += 1;
        machine.process = Some(Process {
            boot: machine.boots,
            registered: None,
            guard,
            seen: Arc::default(),
            placed: Vec::new(),
            placed_from: (0, 0),
            runs: BTreeMap::new(),
            next_beat: 0,
            leaving: false,
        });
        self.gone.remove(&node);
    }

    fn end_process(&mut self, node: NodeId) {
        let machine = self.machines.get_mut(&node).unwrap();
        let Some(process) = machine.process.take() else { return };
        machine.paused_until = 0;
        let over = self.now + SOCKETS;
        for sender in self.audit.senders.values_mut().flatten() {
            if (sender.node, sender.boot) == (node, process.boot) {
                sender.over = Some(sender.over.map_or(over, |o| o.min(over)));
            }
        }
        let delay = 5 + self.noise.below(100);
        self.post(delay, Letter::Gone { node });
    }

    fn happen(&mut self, event: &Event) {
        match *event {
            Event::Kill(node) => self.end_process(node),
            Event::Start(node) => self.start(node),
            Event::Cut(node) => self.machines.get_mut(&node).unwrap().cut = true,
            Event::Heal(node) => self.machines.get_mut(&node).unwrap().cut = false,
            Event::Pause(node, ms) => {
                let until = self.now + ms;
                self.machines.get_mut(&node).unwrap().paused_until = until;
            }
            Event::FalseGone(node) => self.post(1, Letter::Gone { node }),
            Event::Leave(node) => {
                if let Some(process) = &mut self.machines.get_mut(&node).unwrap().process {
                    process.leaving = true;
                }
            }
            Event::Transfer => self.leader = None,
            Event::Put(c, tasks, plain) => {
                let mode = if plain { "plain" } else { "fenced" };
                let parts_of = |task| (0..PARTITIONS).filter(|part| part % tasks == task).collect();
                self.sources.insert(named(c), (0..tasks).map(parts_of).collect());
                let config = Properties::from([("thalweg.delivery", mode)]);
                let target = TargetState::Started;
                self.user(CommandV1::PutConnector { name: named(c), config, target, expect: Expect::Any });
            }
            Event::Move(c, part, to) => {
                let Some(tasks) = self.sources.get_mut(&named(c)) else { return };
                tasks.resize(tasks.len().max(to + 1), BTreeSet::new());
                tasks.iter_mut().for_each(|parts| parts.retain(|other| *other != part));
                tasks[to].insert(part);
                while tasks.pop_if(|parts| parts.is_empty()).is_some() {}
            }
            Event::Delete(c) => self.user(CommandV1::DeleteConnector { name: named(c) }),
            Event::Target(c, stop) => {
                let target = if stop { TargetState::Stopped } else { TargetState::Started };
                self.user(CommandV1::SetTarget { name: named(c), target });
            }
        }
    }

    fn user(&mut self, command: CommandV1) {
        if self.leader.is_some() && self.has_quorum() {
            self.write(command);
        }
    }

    fn run_for(&mut self, ms: u64) {
        let end = self.now + ms;
        while self.now < end {
            self.now += TICK;
            self.world.now_ms = self.now;
            self.clock.0.store(self.now, Ordering::SeqCst);
            self.elect();
            self.deliver();
            self.lead();
            for node in 1..=NODES {
                if self.machines[&node].paused_until <= self.now {
                    self.live(node);
                }
            }
        }
    }

    fn elect(&mut self) {
        if let Some((node, _)) = &self.leader
            && self.is_up(*node)
            && self.has_quorum()
        {
            return;
        }
        self.leader = None;
        let elected_at = match self.elected_at {
            Some(at) => at,
            None => {
                let at = self.now + 600 + self.noise.below(900);
                *self.elected_at.insert(at)
            }
        };
        if self.now < elected_at || !self.has_quorum() {
            return;
        }
        let able: Vec<NodeId> = (1..=NODES).filter(|n| self.is_up(*n)).collect();
        let node = able[self.noise.below(able.len() as u64) as usize];
        // No former leader has granted anything since, which is all that votes can tell.
        let quiet = Duration::from_millis(self.now - self.granted_at);
        let leadership = Leadership { term: self.world.index + 1, quiet };
        let leader = Leader::new(self.office, leadership, self.at(), &self.world.state);
        self.leader = Some((node, leader));
        self.elected_at = None;
        self.next_step = self.now;
    }

    fn deliver(&mut self) {
        while let Some(entry) = self.letters.first_entry()
            && entry.key().0 <= self.now
        {
            let applied_here = self.world.index;
            match entry.remove() {
                Letter::Beat { node, incarnation, seq, applied } => {
                    if !self.is_up(node) {
                        continue;
                    }
                    let at = self.at();
                    let Some((_, leader)) = &mut self.leader else { continue };
                    let grant = leader.heartbeat(&self.world.state, at, node, incarnation, applied, applied_here);
                    if grant == Grant::Granted {
                        self.granted_at = self.now;
                        let delay = self.noise.below(700);
                        self.post(delay, Letter::Answer { node, incarnation, seq });
                    }
                    self.next_step = self.now;
                }
                Letter::Answer { node, incarnation, seq } => {
                    let machine = &self.machines[&node];
                    if let Some(process) = &machine.process
                        && !machine.cut
                        && process.registered == Some(incarnation)
                    {
                        process.guard.granted(seq);
                    }
                }
                Letter::Gone { node } => {
                    if let Some(known) = self.world.state.nodes.get(&node) {
                        self.gone.insert(node, Gone { incarnation: known.incarnation, seen: self.at() });
                        self.next_step = self.now;
                    }
                }
            }
        }
    }

    fn lead(&mut self) {
        let due = self.next_step <= self.now || self.world.state.layout != self.planned;
        let at = self.at();
        let Some((_, leader)) = self.leader.as_mut().filter(|_| due) else { return };
        let step = leader.step(&self.world.state, &self.gone, self.world.index, at, self.now);
        self.planned = self.world.state.layout;
        self.next_step = self.now + step.wake.as_millis() as u64;
        for command in step.commands {
            // Now and then one does not get through.
            if self.noise.below(20) == 0 {
                self.next_step = self.now + 200;
            } else {
                self.write(command);
            }
        }
    }

    fn live(&mut self, node: NodeId) {
        let up = self.is_up(node);
        let Some(mut p) = self.machines.get_mut(&node).unwrap().process.take() else { return };
        let mut ends = false;
        if up && self.leader.is_some() && self.noise.below(3) > 0 {
            p.seen = self.shown.clone();
        }
        // Read before anything else happens after a pause.
        let held = p.guard.held();
        let boot = [p.boot; 16];
        self.machines.get_mut(&node).unwrap().process = Some(p);
        self.register(node, boot);
        self.beat(node, up);
        let mut p = self.machines.get_mut(&node).unwrap().process.take().unwrap();
        if let Some(incarnation) = p.registered {
            if p.placed_from != (p.seen.layout, incarnation) {
                let now = self.base + Duration::from_millis(self.now);
                p.placed = assignments(&p.seen, node, incarnation, &p.placed, now);
                p.placed_from = (p.seen.layout, incarnation);
            }
            self.reconcile(node, &mut p, held);
            if held {
                self.send(node, &p);
                self.commit(node, &mut p, up);
                self.publish(&p, up);
            }
            ends = p.leaving && self.leave(node, &p, up);
        } else {
            p.placed.clear();
            p.runs.clear();
        }
        self.machines.get_mut(&node).unwrap().process = Some(p);
        if ends {
            self.end_process(node);
        }
    }

    /// What the herder does about the registration.
    fn register(&mut self, node: NodeId, boot: [u8; 16]) {
        let p = self.machines.get_mut(&node).unwrap().process.as_mut().unwrap();
        match p.registered {
            Some(_) => match Standing::of(&p.seen, node, boot) {
                Standing::Expired => {
                    p.guard.drop_lease();
                    p.registered = None;
                    let machine = self.machines.get_mut(&node).unwrap();
                    machine.boots += 1;
                    machine.process.as_mut().unwrap().boot = machine.boots;
                }
                Standing::Other => assert!(p.seen.nodes[&node].incarnation < p.registered.unwrap(), "superseded"),
                _ => {}
            },
            None => {
                let register =
                    CommandV1::RegisterNode { node, boot, about: about(node), now_ms: self.now, delay_ms: 0 };
                let reply = self.propose(node, register);
                if let Some(Reply::NodeRegistered { incarnation }) = reply {
                    let p = self.machines.get_mut(&node).unwrap().process.as_mut().unwrap();
                    p.registered = Some(incarnation);
                    p.guard.begin(incarnation);
                }
            }
        }
    }

    fn beat(&mut self, node: NodeId, up: bool) {
        let p = self.machines.get_mut(&node).unwrap().process.as_mut().unwrap();
        let Some(incarnation) = p.registered.filter(|_| p.next_beat <= self.now) else { return };
        p.next_beat = self.now + 500;
        let Some(seq) = p.guard.sending(incarnation) else { return };
        if up {
            let delay = self.noise.below(700);
            let applied = self.world.index;
            self.post(delay, Letter::Beat { node, incarnation, seq, applied });
        }
    }

    /// What the actors do: start, stop, drain, release.
    fn reconcile(&mut self, node: NodeId, p: &mut Process, held: bool) {
        if !held {
            p.runs.clear();
        }
        let placed: BTreeMap<&UnitId, &Assignment> = p.placed.iter().map(|a| (&a.unit, a)).collect();
        p.runs.retain(|unit, run| placed.get(unit).is_some_and(|a| a.epoch.0 == run.epoch));
        let mut released = Vec::new();
        for a in p.placed.iter().filter(|_| held) {
            match p.runs.get_mut(&a.unit) {
                None if !a.revoked => {
                    let run = Run { epoch: a.epoch.0, seq: self.now, started: self.now, committed: 0, drained: None };
                    p.runs.insert(a.unit.clone(), run);
                    self.open_producer(a);
                }
                None => released.push((Unit::from(&a.unit), a.epoch.0)),
                Some(run) if a.revoked => {
                    let drained = *run.drained.get_or_insert(self.now + 20 + self.noise.below(400));
                    if drained <= self.now {
                        released.push((Unit::from(&a.unit), a.epoch.0));
                    }
                }
                Some(_) => {}
            }
        }
        if released.is_empty() {
            return;
        }
        let incarnation = p.registered.unwrap();
        let report = CommandV1::Report {
            node,
            incarnation,
            offsets: vec![],
            topics: vec![],
            statuses: vec![],
            released: released.clone(),
        };
        // It has flushed before: nothing of it is on its way any more, whether this is written or not.
        for (unit, epoch) in &released {
            for sender in self.audit.senders.values_mut().flatten() {
                if (&sender.unit, sender.epoch) == (unit, *epoch) {
                    sender.over = Some(self.now);
                }
            }
        }
        self.machines.get_mut(&node).unwrap().process = None;
        let up = !self.machines[&node].cut && self.machines[&node].paused_until <= self.now;
        if up && self.leader.is_some() && self.has_quorum_with(node) {
            self.write(report);
        }
    }

    /// Like [`Sim::has_quorum`] while `node`'s process is out of its machine.
    fn has_quorum_with(&self, node: NodeId) -> bool {
        (1..=NODES).filter(|n| *n == node || self.is_up(*n)).count() as u64 > NODES / 2
    }

    /// In `fenced` mode the brokers refuse earlier owners of the same task from now on.
    fn open_producer(&mut self, a: &Assignment) {
        if a.mode != DeliveryMode::Fenced {
            return;
        }
        let unit = Unit::from(&a.unit);
        for sender in self.audit.senders.values_mut().flatten() {
            if sender.fenced && sender.unit == unit && sender.epoch < a.epoch.0 {
                sender.over = Some(sender.over.map_or(self.now, |o| o.min(self.now)));
            }
        }
    }

    fn send(&mut self, node: NodeId, p: &Process) {
        let now = self.base + Duration::from_millis(self.now);
        for a in &p.placed {
            let Some(run) = p.runs.get(&a.unit) else { continue };
            let UnitId::Task(connector, _) = &a.unit else { continue };
            if run.drained.is_some() || a.send_after.is_some_and(|after| now < after) {
                continue;
            }
            // Opening the source takes a moment.
            if self.now < run.started + 60 {
                continue;
            }
            let parts = a.config.get("parts").unwrap().chars();
            for part in parts.map(|digit| digit.to_digit(10).unwrap() as usize) {
                let fenced = a.mode == DeliveryMode::Fenced;
                self.audit.sent(
                    (connector.to_string(), part),
                    &Unit::from(&a.unit),
                    run.epoch,
                    node,
                    p.boot,
                    fenced,
                    self.now,
                );
            }
        }
    }

    fn commit(&mut self, node: NodeId, p: &mut Process, up: bool) {
        if !(up && self.leader.is_some() && self.has_quorum_with(node)) {
            return;
        }
        let incarnation = p.registered.unwrap();
        for a in &p.placed {
            let (Some(run), UnitId::Task(..)) = (p.runs.get_mut(&a.unit), &a.unit) else { continue };
            if run.committed + 260 > self.now {
                continue;
            }
            run.seq += 1;
            run.committed = self.now;
            let unit = Unit::from(&a.unit);
            let offset = OffsetItem {
                unit: unit.clone(),
                epoch: run.epoch,
                seq: run.seq,
                partition: partition(&unit.to_string()),
                offset: "{}".into(),
            };
            let reply = self.write(CommandV1::Report {
                node,
                incarnation,
                offsets: vec![offset],
                topics: vec![],
                statuses: vec![],
                released: vec![],
            });
            if reply == (Reply::Reported { refused: vec![] }) {
                self.audit.committed(&unit, run.epoch, node);
            }
        }
    }

    /// The connector object plans its tasks again when its configuration is new, or its source another.
    fn publish(&mut self, p: &Process, up: bool) {
        if !(up && self.leader.is_some()) {
            return;
        }
        for a in &p.placed {
            let UnitId::Connector(connector) = &a.unit else { continue };
            let Some(known) = p.seen.connectors.get(connector) else { continue };
            let config_of = |parts: &BTreeSet<usize>| {
                let parts: String = parts.iter().map(ToString::to_string).collect();
                Properties::from([("parts", parts.as_str())])
            };
            let tasks: Vec<Properties> = self.sources[connector].iter().map(config_of).collect();
            let news = known.tasks_from != known.revision || known.tasks != tasks;
            let due = !a.revoked && known.target == TargetState::Started && news;
            if !due || !p.runs.contains_key(&a.unit) {
                continue;
            }
            let (name, epoch, config_revision) = (connector.clone(), a.epoch.0, known.revision);
            self.write(CommandV1::ReplaceTasks { name, epoch, config_revision, tasks });
        }
    }

    /// Returns true when the process ends.
    fn leave(&mut self, node: NodeId, p: &Process, up: bool) -> bool {
        if !(up && self.leader.is_some() && self.has_quorum_with(node)) {
            return false;
        }
        let incarnation = p.registered.unwrap();
        match self.world.state.nodes.get(&node).map(|n| n.state) {
            Some(NodeState::Alive) => {
                self.write(CommandV1::DrainNode { node, mode: DrainMode::Move });
                false
            }
            Some(NodeState::Draining(_)) => {
                let mine = |p: &crate::raft::state::Placement| p.node == node && p.incarnation == incarnation;
                if self.world.state.placements.values().any(|p| mine(p) && p.is_held()) {
                    return false;
                }
                self.write(CommandV1::NodeLeft { node, incarnation, now_ms: self.now, hold_ms: 0 });
                true
            }
            _ => false,
        }
    }

    /// Everything is repaired; time passes.
    fn heal(&mut self) {
        for node in 1..=NODES {
            let machine = self.machines.get_mut(&node).unwrap();
            machine.cut = false;
            machine.paused_until = 0;
            self.start(node);
            if let Some(process) = &mut self.machines.get_mut(&node).unwrap().process {
                process.leaving = false;
            }
        }
        self.run_for(2_000);
        // A leave that was begun is taken back; one that was finished has ended its process.
        for node in 1..=NODES {
            self.user(CommandV1::UndrainNode { node });
            self.start(node);
        }
        self.run_for(70_000);
    }

    fn check_health(&self) {
        let state = &self.world.state;
        let mut loads = [BTreeMap::new(), BTreeMap::new()];
        for node in 1..=NODES {
            assert_eq!(state.nodes[&node].state, NodeState::Alive, "node {node}");
            loads.iter_mut().for_each(|l| {
                l.insert(node, 0usize);
            });
        }
        for unit in state.units() {
            let p = state.placements.get(&unit).unwrap_or_else(|| panic!("{unit} is placed nowhere"));
            assert_eq!(p.phase, Phase::Assigned, "{unit}");
            let process = self.machines[&p.node].process.as_ref().unwrap();
            assert_eq!(process.runs.get(&unit.id()).map(|r| r.epoch), Some(p.epoch), "{unit} does not run");
            *loads[usize::from(unit.is_task())].get_mut(&p.node).unwrap() += 1;
        }
        assert_eq!(state.placements.len(), state.units().count(), "something is placed that should not be");
        for load in &loads {
            let (min, max) = (load.values().min().unwrap(), load.values().max().unwrap());
            assert!(max - min <= 1, "uneven: {load:?}");
        }
        for (connector, known) in &state.connectors {
            assert!(known.target == TargetState::Stopped || known.tasks_from == known.revision);
            for part in 0..if known.tasks.is_empty() { 0 } else { PARTITIONS } {
                let senders = &self.audit.senders[&(connector.to_string(), part)];
                let last = senders.iter().map(|s| s.last).max().unwrap();
                assert!(last + 100 > self.now, "{connector} partition {part} is not read");
            }
        }
    }
}

impl Audit {
    #[allow(clippy::too_many_arguments)]
    fn sent(&mut self, key: (String, usize), unit: &Unit, epoch: u64, node: NodeId, boot: u8, fenced: bool, now: u64) {
        self.sends += 1;
        let senders = self.senders.entry(key.clone()).or_default();
        if let Some(known) = senders.iter_mut().find(|s| s.epoch == epoch && s.unit == *unit) {
            // What the brokers refuse does no harm.
            let refused = known.fenced && known.over.is_some();
            assert!(known.over.is_none() || refused, "{unit} epoch {epoch} sends after its end");
            if !refused {
                known.last = now;
            }
        } else {
            senders.push(Sender { unit: unit.clone(), epoch, node, boot, fenced, last: now, over: None });
        }
        for old in senders.iter().filter(|s| s.epoch < epoch) {
            let until = (old.last + IN_FLIGHT).min(old.over.unwrap_or(u64::MAX));
            assert!(
                now >= until,
                "{key:?}: {unit} (epoch {epoch}, node {node}) sends at {now}, but {} (epoch {}, node {}, fenced {}) may \
                 arrive until {until}",
                old.unit,
                old.epoch,
                old.node,
                old.fenced
            );
        }
        // Late: somebody newer has begun.
        let mine = senders.iter().find(|s| s.epoch == epoch && s.unit == *unit).unwrap();
        if mine.over.is_none() {
            assert!(
                senders.iter().all(|s| s.epoch <= epoch),
                "{key:?}: {unit} epoch {epoch} sends behind its successor"
            );
        }
    }

    fn committed(&mut self, unit: &Unit, epoch: u64, node: NodeId) {
        self.commits += 1;
        let last = self.accepted.entry(unit.clone()).or_insert((epoch, node));
        assert!(epoch >= last.0, "{unit}: a commit of epoch {epoch} was accepted after one of {}", last.0);
        assert!(epoch > last.0 || node == last.1, "{unit}: two nodes commit with epoch {epoch}");
        *last = (epoch, node);
    }
}

fn named(c: u8) -> crate::raft::Name {
    name(&format!("c{c}"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// CLU-01, CLU-02, CLU-04, G2, G5 to G8, J6, J8.
    #[test]
    fn one_owner_at_a_time_and_all_is_well_after_healing(
        events in prop::collection::vec((20u64..4_000, event()), 0..40),
        seed in any::<u64>(),
        delay in prop_oneof![Just(0u64), Just(4_000)],
    ) {
        let office = Office { max_delay: Duration::from_millis(delay), ..Office::default() };
        let mut sim = Sim::new(seed, office);
        sim.run_for(3_000);
        for c in 0..CONNECTORS {
            sim.happen(&Event::Put(c, 1 + c as usize, c == 0));
        }
        sim.run_for(2_000);
        for (gap, event) in &events {
            sim.happen(event);
            sim.run_for(*gap);
        }
        sim.heal();
        sim.check_health();
        prop_assert!(sim.audit.sends > 0 && sim.audit.commits > 0);
    }
}

/// A partition that comes or goes leaves the tasks of the others as they are, also if a node is lost at
/// that moment.
#[test]
fn what_becomes_of_one_partition_is_nothing_to_the_tasks_of_others() {
    for kills in [false, true] {
        let mut sim = Sim::new(11, Office::default());
        sim.run_for(3_000);
        sim.happen(&Event::Put(0, PARTITIONS, true));
        sim.run_for(15_000);
        let unit = |task| Unit::task(named(0), task);
        let placed =
            |sim: &Sim, task| sim.world.state.placements.get(&unit(task)).map(|p| (p.node, p.epoch, p.fence_wait_ms));
        let before: Vec<_> = (0..2).map(|task| placed(&sim, task).unwrap()).collect();
        let moved: Vec<_> = (2..4).map(|task| placed(&sim, task).unwrap()).collect();
        // The third task gets what the last one has, and that one goes.
        sim.happen(&Event::Move(0, 3, 2));
        if kills {
            sim.happen(&Event::Kill(moved[1].0));
        }
        sim.run_for(20_000);
        for (task, before) in (0..).zip(&before) {
            if before.0 != moved[1].0 || !kills {
                assert_eq!(placed(&sim, task).as_ref(), Some(before), "task {task}");
            }
        }
        let (_, epoch, wait) = placed(&sim, 2).unwrap();
        assert!(epoch > moved[0].1 && (wait > 0) == kills, "epoch {epoch}, wait {wait}");
        assert_eq!(placed(&sim, 3), None);
        // The audit has seen to it that it did not begin too early.
        assert!(sim.audit.senders[&("c0".to_owned(), 3)].iter().any(|s| s.unit == unit(2)));
    }
}

/// CLU-01 in numbers: how long nothing runs after a kill, by the two ways of noticing.
#[test]
fn clu_01_times_of_a_takeover() {
    for (known_gone, at_most) in [(true, 500), (false, 4_500)] {
        let mut sim = Sim::new(7, Office::default());
        sim.run_for(3_000);
        for c in 0..CONNECTORS {
            sim.happen(&Event::Put(c, 3, false));
        }
        sim.run_for(15_000);
        let leader = sim.leader.as_ref().unwrap().0;
        let victim = (1..=NODES).find(|n| *n != leader).unwrap();
        let held: BTreeSet<Unit> =
            sim.world.state.placements.iter().filter(|(_, p)| p.node == victim).map(|(u, _)| u.clone()).collect();
        assert!(!held.is_empty());
        sim.happen(&if known_gone { Event::Kill(victim) } else { Event::Cut(victim) });
        let begin = sim.now;
        let elsewhere = |sim: &Sim| {
            held.iter().all(|unit| {
                let p = &sim.world.state.placements[unit];
                let process = sim.machines[&p.node].process.as_ref();
                p.node != victim && process.is_some_and(|process| process.runs.contains_key(&unit.id()))
            })
        };
        while !elsewhere(&sim) {
            sim.run_for(TICK);
            assert!(sim.now - begin <= at_most, "not taken over after {} ms", sim.now - begin);
        }
        let lease = sim.machines[&victim].process.as_ref().map(|p| p.guard.held());
        assert!(lease != Some(true), "the old owner still holds its lease");
    }
}

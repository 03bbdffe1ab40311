//! What this node runs: compares the placements of the applied state with the running units and makes
//! the difference.
//!
//! The desired list is a level, not an event: the newest one wins, bursts collapse, and every
//! heartbeat repeats what a full mailbox refused. Invariants: a unit runs at most once in this process
//! (its `occupancy`); a unit that is not listed, or listed with another epoch, ends in silence; a
//! child that died is made anew by the same factory.
//! It does not: plan, talk to other nodes, or wait for consensus.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use actix::{
    Actor, ActorContext, ActorFutureExt, Addr, AsyncContext, Context, Handler, Message, StreamHandler, WrapFuture,
};
use parking_lot::{Mutex, RwLock};
use tokio::sync::{Semaphore, oneshot, watch};
use tracing::{Span, error, info, warn};

use crate::backoff::{Backoff, BackoffPolicy, Next};
use crate::connector::ConnectorActor;
use crate::counters::Counters;
use crate::memory::UnitMemory;
use crate::port::{Assignment, ClusterPort, Epoch, UnitId};
use crate::registry::Registry;
use crate::settings::NodeOptions;
use crate::task::{Leave, Sever, TaskActor, Update};
use crate::turn::Turn;
use crate::view::{NodeView, UnitView};

/// A child that has not taken a turn for this long is replaced.
const SILENCE: Duration = Duration::from_secs(15);

/// What the actors and data tasks of a node share.
pub(crate) struct NodeContext {
    pub registry: Registry,
    pub port: Arc<dyn ClusterPort>,
    pub options: NodeOptions,
    memories: RwLock<BTreeMap<UnitId, Arc<UnitMemory>>>,
    reconciled: Mutex<Option<Instant>>,
    /// Nothing is started any more.
    shut_down: AtomicBool,
}

/// Entry to the control plane of a node.
pub struct Node;

impl Node {
    /// Starts the node's actors. Must be called inside an actix system, see [`crate::run`].
    /// Nothing runs until the first [`NodeHandle::reconcile`].
    pub fn start(registry: Registry, port: Arc<dyn ClusterPort>, options: NodeOptions) -> NodeHandle {
        let heartbeat = options.heartbeat;
        let context = Arc::new(NodeContext {
            registry,
            port,
            options,
            memories: RwLock::default(),
            reconciled: Mutex::default(),
            shut_down: AtomicBool::new(false),
        });
        let (desired, list) = watch::channel(None);
        let address = Arc::new(RwLock::new(NodeActor::new(context.clone(), list.clone()).start()));
        let handle = NodeHandle { context: context.clone(), desired: Arc::new(desired), address: address.clone() };
        // The node's own actor is looked after as well; it ends on purpose only at shutdown, and
        // when the last handle is gone.
        actix::spawn(async move {
            let mut beat = tokio::time::interval(heartbeat);
            while list.has_changed().is_ok() && !context.shut_down.load(Ordering::SeqCst) {
                beat.tick().await;
                if !address.read().connected() && !context.shut_down.load(Ordering::SeqCst) {
                    error!("the node actor died, it is made anew");
                    *address.write() = NodeActor::new(context.clone(), list.clone()).start();
                }
            }
        });
        handle
    }
}

type Desired = Option<Arc<Vec<Assignment>>>;

/// Talks to a node's actors from any thread.
#[derive(Clone)]
pub struct NodeHandle {
    context: Arc<NodeContext>,
    desired: Arc<watch::Sender<Desired>>,
    address: Arc<RwLock<Addr<NodeActor>>>,
}

/// How a shutdown went.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ShutdownReport {
    /// Units that delivered, committed and were released.
    pub released: usize,
    /// Units that did not end in time, or had lost their lease.
    pub abandoned: Vec<UnitId>,
    /// Messages that were not acknowledged; their positions are not committed.
    pub unacknowledged: u64,
}

impl NodeHandle {
    /// Makes `assignments` what this node runs: all of them, nothing else. Returns at once; the
    /// newest list wins.
    pub fn reconcile(&self, assignments: Vec<Assignment>) {
        self.desired.send_replace(Some(Arc::new(assignments)));
    }

    /// Restarts a unit in place; false if it does not run here.
    pub async fn restart(&self, unit: &UnitId) -> bool {
        let address = self.address.read().clone();
        address.send(RestartUnit(unit.clone())).await.unwrap_or(false)
    }

    /// Resolves when the node's actor has taken a turn; never while it is stuck or has ended.
    pub async fn turn(&self) {
        let address = self.address.read().clone();
        if address.send(TakeTurn).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Drains and releases all units at the same time; those that need longer than `deadline` are
    /// ended as they are. Nothing is started afterwards.
    pub async fn shutdown(&self, deadline: Duration) -> ShutdownReport {
        let (reply, report) = oneshot::channel();
        let address = self.address.read().clone();
        let asked = address.send(Shutdown { deadline, reply }).await;
        match (asked, tokio::time::timeout(deadline + Duration::from_secs(1), report).await) {
            (Ok(()), Ok(Ok(report))) => report,
            _ => ShutdownReport {
                abandoned: self.context.memories.read().keys().cloned().collect(),
                ..ShutdownReport::default()
            },
        }
    }

    /// The present state of all units. Asks no actor.
    pub fn snapshot(&self) -> NodeView {
        let memories: Vec<_> = self.context.memories.read().values().cloned().collect();
        NodeView {
            units: memories.iter().map(|memory| UnitView::of(memory)).collect(),
            reconciled: *self.context.reconciled.lock(),
        }
    }

    pub fn registry(&self) -> &Registry {
        &self.context.registry
    }
}

#[derive(Message)]
#[rtype(result = "bool")]
struct RestartUnit(UnitId);

/// Nothing to do but to answer.
#[derive(Message)]
#[rtype(result = "()")]
struct TakeTurn;

#[derive(Message)]
#[rtype(result = "()")]
struct Shutdown {
    deadline: Duration,
    reply: oneshot::Sender<ShutdownReport>,
}

/// A unit's actor has ended on request.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct UnitEnded {
    pub unit: UnitId,
    pub epoch: Epoch,
    pub unacknowledged: u64,
    /// It was reported as released.
    pub released: bool,
}

pub(crate) struct NodeActor {
    context: Arc<NodeContext>,
    list: watch::Receiver<Desired>,
    slots: BTreeMap<UnitId, Slot>,
    stopping: Option<Stopping>,
}

struct Stopping {
    reply: oneshot::Sender<ShutdownReport>,
    waiting_for: BTreeSet<UnitId>,
    report: ShutdownReport,
}

/// A unit's place on this node.
struct Slot {
    wanted: Assignment,
    /// What the child was told last.
    told: Assignment,
    child: Option<Child>,
    memory: Arc<UnitMemory>,
    /// It was told to leave.
    leaving: bool,
    /// It has ended on request.
    ended: bool,
    /// Restarts asked for at this node, on top of those of the assignment.
    restarts: u64,
    beat: (u64, Instant),
    deaths: Backoff,
    again_at: Option<Instant>,
}

impl Slot {
    /// The child was not told of the present assignment yet.
    fn news(&self) -> bool {
        let (wanted, told) = (&self.wanted, &self.told);
        wanted.restart + self.restarts != told.restart
            || wanted.target != told.target
            || wanted.config_revision != told.config_revision
            || wanted.config != told.config
    }
}

enum Child {
    Connector(Addr<ConnectorActor>),
    Task(Addr<TaskActor>),
}

impl Child {
    fn connected(&self) -> bool {
        match self {
            Self::Connector(address) => address.connected(),
            Self::Task(address) => address.connected(),
        }
    }
    /// False if its mailbox is full; the next heartbeat tries again.
    fn update(&self, assignment: Assignment) -> bool {
        match self {
            Self::Connector(address) => address.try_send(Update(assignment)).is_ok(),
            Self::Task(address) => address.try_send(Update(assignment)).is_ok(),
        }
    }
    fn leave(&self, revoked: bool) -> bool {
        match self {
            Self::Connector(address) => address.try_send(Leave { revoked }).is_ok(),
            Self::Task(address) => address.try_send(Leave { revoked }).is_ok(),
        }
    }
    /// Ends the child in silence, whatever is in its mailbox.
    fn sever(self, actor: &NodeActor, ctx: &mut Context<NodeActor>) {
        match self {
            Self::Connector(address) => ctx.spawn(address.send(Sever).into_actor(actor).map(|_, _, _| ())),
            Self::Task(address) => ctx.spawn(address.send(Sever).into_actor(actor).map(|_, _, _| ())),
        };
    }
}

impl NodeActor {
    fn new(context: Arc<NodeContext>, list: watch::Receiver<Desired>) -> Self {
        Self { context, list, slots: BTreeMap::new(), stopping: None }
    }

    /// The factory of children: the only place where they are made.
    fn make_child(&self, slot: &Slot, ctx: &mut Context<Self>) -> Child {
        let (context, parent, memory) = (self.context.clone(), ctx.address(), slot.memory.clone());
        let assignment = slot.told.clone();
        match assignment.unit {
            UnitId::Connector(_) => Child::Connector(ConnectorActor::new(context, parent, memory, assignment).start()),
            UnitId::Task(..) => Child::Task(TaskActor::new(context, parent, memory, assignment).start()),
        }
    }

    fn reconcile(&mut self, list: &[Assignment], ctx: &mut Context<Self>) {
        let wanted: BTreeMap<&UnitId, &Assignment> = list.iter().map(|a| (&a.unit, a)).collect();
        let lost: Vec<UnitId> = self
            .slots
            .iter()
            .filter(|(unit, slot)| wanted.get(unit).is_none_or(|a| a.epoch != slot.wanted.epoch))
            .map(|(unit, _)| unit.clone())
            .collect();
        for unit in lost {
            let Some(slot) = self.slots.remove(&unit) else { continue };
            if let Some(child) = slot.child {
                info!(unit = %unit, epoch = slot.wanted.epoch.0, "the unit is not placed here any more");
                child.sever(self, ctx);
            }
            if !wanted.contains_key(&unit) {
                self.context.memories.write().remove(&unit);
            }
        }
        for (unit, assignment) in wanted {
            match self.slots.get_mut(unit) {
                Some(slot) => slot.wanted = assignment.clone(),
                None if assignment.revoked => self.context.port.released(unit, assignment.epoch),
                None => self.place(assignment.clone(), ctx),
            }
        }
        self.tell_all();
        *self.context.reconciled.lock() = Some(Instant::now());
    }

    fn place(&mut self, assignment: Assignment, ctx: &mut Context<Self>) {
        let memory = self.memory_of(&assignment);
        info!(unit = %assignment.unit, epoch = assignment.epoch.0, "the unit is placed here");
        let mut slot = Slot {
            told: assignment.clone(),
            wanted: assignment,
            child: None,
            memory,
            leaving: false,
            ended: false,
            restarts: 0,
            beat: (0, Instant::now()),
            deaths: Backoff::new(BackoffPolicy::default()),
            again_at: None,
        };
        slot.child = Some(self.make_child(&slot, ctx));
        self.slots.insert(slot.wanted.unit.clone(), slot);
    }

    /// The memory of a placement; a new epoch starts with an empty one, but waits for its turn.
    fn memory_of(&self, assignment: &Assignment) -> Arc<UnitMemory> {
        let mut memories = self.context.memories.write();
        let former = memories.get(&assignment.unit);
        if let Some(memory) = former.filter(|memory| memory.epoch == assignment.epoch) {
            return memory.clone();
        }
        let occupancy = former.map_or_else(|| Arc::new(Semaphore::new(1)), |memory| memory.occupancy.clone());
        let memory = UnitMemory::new(assignment.unit.clone(), assignment.epoch, assignment.target, occupancy);
        let memory = Arc::new(memory);
        memories.insert(assignment.unit.clone(), memory.clone());
        memory
    }

    /// Tells each child what it was not told yet.
    fn tell_all(&mut self) {
        let stopping = self.stopping.is_some();
        for slot in self.slots.values_mut() {
            let Some(child) = &slot.child else {
                if slot.ended && slot.wanted.revoked && !stopping {
                    // The report may have been lost with a leader.
                    self.context.port.released(&slot.wanted.unit, slot.wanted.epoch);
                }
                continue;
            };
            if slot.wanted.revoked || stopping {
                slot.leaving = slot.leaving || child.leave(slot.wanted.revoked);
                continue;
            }
            if slot.news() {
                let mut assignment = slot.wanted.clone();
                assignment.restart += slot.restarts;
                if child.update(assignment.clone()) {
                    slot.told = assignment;
                }
            }
        }
    }

    fn tick(&mut self, ctx: &mut Context<Self>) {
        let _turn = Turn::of(&Span::none());
        let now = Instant::now();
        let units: Vec<UnitId> = self.slots.keys().cloned().collect();
        for unit in units {
            let Some(mut slot) = self.slots.remove(&unit) else { continue };
            self.look_after(&mut slot, now, ctx);
            self.slots.insert(unit, slot);
        }
        self.tell_all();
    }

    /// Replaces a child that died or does not take its turns any more.
    fn look_after(&mut self, slot: &mut Slot, now: Instant, ctx: &mut Context<Self>) {
        let beat = slot.memory.beat.load(Ordering::Relaxed);
        if beat != slot.beat.0 {
            slot.beat = (beat, now);
        }
        let died = slot.child.as_ref().is_some_and(|child| !child.connected());
        let silent = slot.child.is_some() && now.duration_since(slot.beat.1) > SILENCE;
        if !slot.ended && (died || silent) {
            Counters::add(&slot.memory.counters.panics, u64::from(died));
            let delay = match slot.deaths.failed() {
                Next::After(delay) => delay,
                Next::GiveUp => SILENCE,
            };
            let why = if died { "its actor died" } else { "its actor does not take turns" };
            error!(unit = %slot.wanted.unit, epoch = slot.wanted.epoch.0, why, delay_ms = delay.as_millis() as u64, "the unit is started anew");
            slot.memory.set_note(Some(format!("started anew because {why}")));
            if let Some(child) = slot.child.take() {
                child.sever(self, ctx);
            }
            slot.again_at = Some(now + delay);
            slot.leaving = false;
        }
        if slot.child.is_none() && slot.again_at.is_some_and(|at| at <= now) {
            slot.again_at = None;
            slot.beat = (beat, now);
            slot.told = slot.wanted.clone();
            slot.told.restart += slot.restarts;
            slot.child = Some(self.make_child(slot, ctx));
        }
    }

    /// Answers a shutdown once nothing is left to wait for.
    fn look_whether_stopped(&mut self, ctx: &mut Context<Self>) {
        if self.stopping.as_ref().is_some_and(|stopping| stopping.waiting_for.is_empty())
            && let Some(stopping) = self.stopping.take()
        {
            let _ = stopping.reply.send(stopping.report);
            ctx.stop();
        }
    }
}

impl Actor for NodeActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        let list = self.list.clone();
        ctx.add_stream(futures::stream::unfold((list, true), |(mut list, first)| async move {
            if !first {
                list.changed().await.ok()?;
            }
            let newest = list.borrow_and_update().clone();
            Some((newest, (list, false)))
        }));
        ctx.run_interval(self.context.options.heartbeat, |actor, ctx| actor.tick(ctx));
    }
}

impl StreamHandler<Desired> for NodeActor {
    fn handle(&mut self, list: Desired, ctx: &mut Self::Context) {
        let _turn = Turn::of(&Span::none());
        if let Some(list) = list.filter(|_| self.stopping.is_none()) {
            self.reconcile(&list, ctx);
        }
    }

    fn finished(&mut self, ctx: &mut Self::Context) {
        // Nobody holds a handle any more.
        for (_, slot) in std::mem::take(&mut self.slots) {
            if let Some(child) = slot.child {
                child.sever(self, ctx);
            }
        }
        ctx.stop();
    }
}

impl Handler<RestartUnit> for NodeActor {
    type Result = bool;

    fn handle(&mut self, RestartUnit(unit): RestartUnit, _: &mut Self::Context) -> bool {
        let Some(slot) = self.slots.get_mut(&unit).filter(|slot| slot.child.is_some() && !slot.leaving) else {
            return false;
        };
        slot.restarts += 1;
        self.tell_all();
        true
    }
}

impl Handler<TakeTurn> for NodeActor {
    type Result = ();

    fn handle(&mut self, _: TakeTurn, _: &mut Self::Context) {}
}

impl Handler<Shutdown> for NodeActor {
    type Result = ();

    fn handle(&mut self, Shutdown { deadline, reply }: Shutdown, ctx: &mut Self::Context) {
        let _turn = Turn::of(&Span::none());
        self.context.shut_down.store(true, Ordering::SeqCst);
        let waiting_for = self.slots.iter().filter(|(_, slot)| slot.child.is_some()).map(|(unit, _)| unit.clone());
        let stopping = Stopping { reply, waiting_for: waiting_for.collect(), report: ShutdownReport::default() };
        info!(units = stopping.waiting_for.len(), deadline_ms = deadline.as_millis() as u64, "all units are drained");
        self.stopping = Some(stopping);
        self.tell_all();
        ctx.run_later(deadline, |actor, ctx| {
            let Some(stopping) = &mut actor.stopping else { return };
            let left = std::mem::take(&mut stopping.waiting_for);
            stopping.report.abandoned.extend(left.iter().cloned());
            for unit in left {
                warn!(unit = %unit, "the unit is not drained in time, it is ended as it is");
                if let Some(child) = actor.slots.remove(&unit).and_then(|slot| slot.child) {
                    child.sever(actor, ctx);
                }
            }
            actor.look_whether_stopped(ctx);
        });
        self.look_whether_stopped(ctx);
    }
}

impl Handler<UnitEnded> for NodeActor {
    type Result = ();

    fn handle(&mut self, ended: UnitEnded, ctx: &mut Self::Context) {
        let _turn = Turn::of(&Span::none());
        if let Some(slot) = self.slots.get_mut(&ended.unit).filter(|slot| slot.wanted.epoch == ended.epoch) {
            slot.child = None;
            slot.ended = true;
        }
        if let Some(stopping) = &mut self.stopping
            && stopping.waiting_for.remove(&ended.unit)
        {
            stopping.report.unacknowledged += ended.unacknowledged;
            if ended.released {
                stopping.report.released += 1;
            } else {
                stopping.report.abandoned.push(ended.unit);
            }
        }
        self.look_whether_stopped(ctx);
    }
}

#[cfg(test)]
#[path = "node_tests.rs"]
mod tests;

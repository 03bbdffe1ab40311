//! One assigned task: its epoch, its target state, its runs.
//!
//! A run is opened as a whole (source, producer, partitions) and taken down as a whole; one variable
//! says what follows once it is over. Invariants: a new run is opened only after the former one has
//! ended; a task without a lease opens nothing; a task that was shut out says nothing; `released` is
//! reported after the last commit is settled and the producer is gone.
//! It does not: see records, or retry a single partition (that is the partition actor's part).

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use actix::{
    Actor, ActorContext, ActorFutureExt, Addr, AsyncContext, Context, Handler, Message, SpawnHandle, WrapFuture,
};
use thalweg_core::delivery::DeliveryMode;
use thalweg_core::{Error, ErrorKind, Phase};
use tokio::task::JoinError;
use tracing::{Instrument, error, info, warn};

use crate::backoff::{Backoff, BackoffPolicy, Next};
use crate::counters::Counters;
use crate::exit::{Exit, ExitKind};
use crate::memory::UnitMemory;
use crate::node::{NodeActor, NodeContext, UnitEnded};
use crate::partition::{Direct, PartitionActor};
use crate::port::{Assignment, Target, UnitState};
use crate::progress::StageWatch;
use crate::reader::Control;
use crate::run::{self, Opened, TaskRun};
use crate::turn::Turn;

/// How long a shut-out unit waits before it believes that it is this node's after all.
pub(crate) const DOUBT: Duration = Duration::from_secs(5);
/// How long requests that were on the wire may still arrive at a broker in `plain` mode.
const LAST_REQUESTS: Duration = Duration::from_secs(10);
/// How long a run may take to end after it was told to end at once.
const GRACE: Duration = Duration::from_secs(10);

pub(crate) struct TaskActor {
    node: Arc<NodeContext>,
    parent: Addr<NodeActor>,
    memory: Arc<UnitMemory>,
    assignment: Assignment,
    /// Number of the present or last run.
    number: u64,
    state: State,
    /// What follows when the present run is over; nothing: its exit decides.
    then: Option<Then>,
    backoff: Backoff,
    run: Option<Run>,
    timer: Option<SpawnHandle>,
    /// Commits when the run was opened. Only a commit is progress: what is acknowledged but not
    /// committed comes again, a record that cannot be passed included.
    commits_before: u64,
    /// A remark is shown; messages acknowledged when it was made.
    noted: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nothing runs: paused before its start, without a lease, or before the next try.
    Waiting,
    Opening,
    Running,
    WindingDown,
    Failed,
    /// Somebody else may own the unit; opened again if it is still assigned here at this time.
    ShutOut(Instant),
    Leaving,
}

#[derive(Debug)]
enum Then {
    Restart,
    /// FAILED has been reported.
    StayFailed,
    Leave,
}

struct Run {
    shared: Arc<TaskRun>,
    partitions: Vec<Part>,
    encoder_exit: Option<Exit>,
    producer_open: bool,
    /// Why the run was ended from here; takes the place of the encoder's exit.
    fault: Option<Exit>,
    watch: StageWatch,
}

struct Part {
    address: Addr<PartitionActor>,
    /// Its source was open once, or is being retried.
    started: bool,
    ended: bool,
}

impl Drop for Run {
    fn drop(&mut self) {
        self.shared.encoder.give_up();
    }
}

/// The unit's assignment has changed (same epoch).
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Update(pub Assignment);

/// Drain, commit, release, end.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Leave {
    /// Another node may start the unit as soon as it is released.
    pub(crate) revoked: bool,
}

/// The unit is not ours any more: end at once and say nothing.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Sever;

#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct PartitionSaid {
    /// Number of the run, and of the partition in it.
    pub place: (u64, usize),
    pub said: Said,
}

pub(crate) enum Said {
    Opened,
    Retrying(ExitKind, String),
    Ended(Exit),
}

impl TaskActor {
    pub(crate) fn new(
        node: Arc<NodeContext>,
        parent: Addr<NodeActor>,
        memory: Arc<UnitMemory>,
        assignment: Assignment,
    ) -> Self {
        Self {
            node,
            parent,
            memory,
            assignment,
            number: 0,
            state: State::Waiting,
            then: None,
            backoff: Backoff::new(BackoffPolicy::default()),
            run: None,
            timer: None,
            commits_before: 0,
            noted: None,
        }
    }

    fn is_paused(&self) -> bool {
        self.assignment.target != Target::Started
    }

    fn report(&self, state: UnitState, cause: Option<&Error>) {
        self.memory.report(&*self.node.port, state, cause);
    }

    fn written(&self) -> u64 {
        self.memory.counters.written.load(Ordering::Relaxed)
    }

    fn commits(&self) -> u64 {
        self.memory.counters.commits.load(Ordering::Relaxed)
    }

    /// Opens the next run, unless the task is paused or may not run now.
    fn start(&mut self, ctx: &mut Context<Self>) {
        self.stop_timer(ctx);
        self.state = State::Waiting;
        if self.is_paused() {
            self.report(UnitState::Paused, None);
            return;
        }
        if !self.node.port.lease_held() {
            return;
        }
        self.number += 1;
        self.state = State::Opening;
        self.then = None;
        self.commits_before = self.commits();
        Counters::add(&self.memory.counters.startup_attempts, 1);
        let number = self.number;
        let opening = run::open(self.node.clone(), self.assignment.clone(), self.memory.clone());
        let opening = tokio::spawn(opening.instrument(self.memory.span.clone()));
        ctx.spawn(opening.into_actor(self).map(move |opened, actor, ctx| actor.opened(number, opened, ctx)));
    }

    fn opened(&mut self, number: u64, opened: Result<Result<Opened, Error>, JoinError>, ctx: &mut Context<Self>) {
        let _turn = Turn::of(&self.memory.span);
        if number != self.number || self.state == State::Leaving {
            return;
        }
        let opened = match opened {
            Ok(Ok(opened)) => opened,
            Ok(Err(error)) => return self.over(Exit::failed(error), ctx),
            Err(join) => return self.over(Exit::from_join(join, "opening of the task", Phase::Start), ctx),
        };
        let Opened { run: shared, encoder, ready } = opened;
        self.backoff.set_policy(shared.settings.backoff);
        self.state = State::Running;
        ctx.spawn(encoder.into_actor(self).map(move |ended, actor, ctx| actor.encoder_ended(number, ended, ctx)));
        ctx.spawn(ready.into_actor(self).map(move |ready, actor, _| actor.producer_opened(number, ready.is_ok())));
        let heartbeat = self.node.options.heartbeat;
        let partitions = shared.partitions.iter().enumerate().map(|(index, partition)| {
            let memory = self.memory.partition(partition);
            let place = (number, index);
            let paused = self.is_paused();
            let actor = PartitionActor::new(shared.clone(), place, memory, ctx.address(), heartbeat, paused);
            Part { address: actor.start(), started: false, ended: false }
        });
        self.run = Some(Run {
            partitions: partitions.collect(),
            encoder_exit: None,
            producer_open: false,
            fault: None,
            watch: StageWatch::new(shared.settings.progress_timeout, Instant::now()),
            shared,
        });
        if self.then.is_some() {
            self.wind_down(ctx);
        } else if self.is_paused() {
            self.report(UnitState::Paused, None);
        }
    }

    fn producer_opened(&mut self, number: u64, open: bool) {
        if let Some(run) = self.run.as_mut().filter(|_| number == self.number && open) {
            run.producer_open = true;
            self.report_running();
        }
    }

    /// RUNNING (or PAUSED) once everything was opened or is being retried.
    fn report_running(&mut self) {
        let Some(run) = &self.run else { return };
        if self.state == State::Running && run.producer_open && run.partitions.iter().all(|p| p.started) {
            if self.memory.state() != UnitState::Running {
                Counters::add(&self.memory.counters.startup_successes, 1);
            }
            self.report(if self.is_paused() { UnitState::Paused } else { UnitState::Running }, None);
        }
    }

    fn direct(&mut self, control: Control, ctx: &mut Context<Self>) {
        let Some(run) = &self.run else { return };
        for part in run.partitions.iter().filter(|part| !part.ended) {
            let sent = part.address.send(Direct(control));
            ctx.spawn(sent.into_actor(self).map(|_, _, _| ()));
        }
    }

    /// Lets the run end in order: read no more, deliver, commit.
    fn wind_down(&mut self, ctx: &mut Context<Self>) {
        self.state = State::WindingDown;
        let Some(run) = &self.run else { return };
        run.shared.encoder.drain();
        self.direct(Control::Drain, ctx);
        self.stop_timer(ctx);
        let number = self.number;
        self.timer = Some(ctx.run_later(self.node.options.stop_timeout, move |actor, ctx| {
            let _turn = Turn::of(&actor.memory.span);
            let Some(run) = actor.run.as_ref().filter(|_| actor.number == number) else { return };
            warn!("the task is not drained in time, it is ended as it is");
            run.shared.encoder.give_up();
            actor.timer = Some(ctx.run_later(GRACE, move |actor, ctx| actor.abandon(number, ctx)));
        }));
        self.look_whether_over(ctx);
    }

    /// A part of the run does not end although it was told to: the unit cannot go on in this process.
    fn abandon(&mut self, number: u64, ctx: &mut Context<Self>) {
        let _turn = Turn::of(&self.memory.span);
        if self.run.is_none() || self.number != number {
            return;
        }
        let error =
            Error::new(ErrorKind::Internal, Phase::Stream, "a part of the task blocks its thread and does not end")
                .advise("Restart this node and report the defect with its log.");
        error!(error = %error, "the task is abandoned");
        if !matches!(self.then, Some(Then::Leave)) {
            self.then = Some(Then::StayFailed);
            self.report(UnitState::Failed, Some(&error));
        }
        self.over(Exit::failed(error), ctx);
    }

    fn encoder_ended(&mut self, number: u64, ended: Result<Exit, JoinError>, ctx: &mut Context<Self>) {
        let _turn = Turn::of(&self.memory.span);
        if number != self.number {
            return;
        }
        let Some(run) = &mut self.run else { return };
        run.encoder_exit = Some(ended.unwrap_or_else(|join| Exit::from_join(join, "encoder", Phase::Convert)));
        // Generations see that the encoder is gone; partitions that wait for a retry are told.
        self.direct(Control::Drain, ctx);
        self.look_whether_over(ctx);
    }

    fn partition_ended(&mut self, index: usize, exit: Exit, ctx: &mut Context<Self>) {
        let Some(run) = &mut self.run else { return };
        let Some(part) = run.partitions.get_mut(index).filter(|part| !part.ended) else { return };
        part.ended = true;
        part.started = true;
        let undecided = self.then.is_none() && run.encoder_exit.is_none() && run.fault.is_none();
        match exit.kind {
            ExitKind::NeedsUser | ExitKind::Fatal if undecided => {
                self.fail(exit.into_error());
                self.then = Some(Then::StayFailed);
                self.wind_down(ctx);
            }
            ExitKind::Fenced if undecided => {
                run.fault = Some(exit);
                run.shared.encoder.purge();
            }
            _ => {
                self.report_running();
                self.look_whether_over(ctx);
            }
        }
    }

    fn look_whether_over(&mut self, ctx: &mut Context<Self>) {
        let Some(run) = &mut self.run else { return };
        if !run.partitions.iter().all(|part| part.ended) {
            return;
        }
        match &run.encoder_exit {
            Some(exit) => {
                let exit = run.fault.take().unwrap_or_else(|| exit.clone());
                self.over(exit, ctx);
            }
            None if self.state == State::WindingDown => run.shared.encoder.close(),
            None => {}
        }
    }

    /// Nothing of the run is left.
    fn over(&mut self, exit: Exit, ctx: &mut Context<Self>) {
        self.run = None;
        self.stop_timer(ctx);
        self.state = State::Waiting;
        if exit.unacknowledged > 0 && exit.kind != ExitKind::Fenced {
            warn!(
                messages = exit.unacknowledged,
                "messages were not acknowledged, they are sent again by the next run"
            );
        }
        match self.then.take() {
            Some(Then::Leave) => self.leave(&exit, ctx),
            Some(Then::Restart) => self.start(ctx),
            Some(Then::StayFailed) => self.state = State::Failed,
            None => self.judge(exit, ctx),
        }
    }

    /// Decides what follows from the end of a run that nobody asked for.
    fn judge(&mut self, exit: Exit, ctx: &mut Context<Self>) {
        if self.commits() > self.commits_before {
            self.backoff.reset();
        }
        let next = match exit.kind {
            ExitKind::Fenced => {
                self.shut_out(&exit);
                return;
            }
            ExitKind::NeedsUser | ExitKind::Fatal => {
                self.fail(exit.into_error());
                return;
            }
            // A message that is left out from now on: nothing to wait for.
            ExitKind::Retriable if exit.error.as_ref().is_some_and(|e| e.kind == ErrorKind::MessageTooLarge) => {
                Next::After(Duration::ZERO)
            }
            ExitKind::Panicked => {
                Counters::add(&self.memory.counters.panics, 1);
                self.backoff.panicked()
            }
            ExitKind::Retriable | ExitKind::Stopped | ExitKind::Finished => self.backoff.failed(),
        };
        let Next::After(delay) = next else {
            let failures = self.backoff.failures();
            self.fail(exit.given_up(failures).into_error());
            return;
        };
        Counters::add(&self.memory.counters.restarts, 1);
        let kind = exit.kind;
        let error = exit.into_error();
        let text = self.memory.hide(&error.to_string());
        warn!(
            run = self.number,
            exit = ?kind,
            failures = self.backoff.failures(),
            delay_ms = delay.as_millis() as u64,
            error = %text,
            "the task ended, it is opened again from the last committed position"
        );
        self.note(format!("restarted from the last committed position after: {text}"));
        // As in Connect, a task that retries is RUNNING.
        self.report(if self.is_paused() { UnitState::Paused } else { UnitState::Running }, None);
        self.timer = Some(ctx.run_later(delay, |actor, ctx| actor.start(ctx)));
    }

    fn fail(&mut self, error: Error) {
        self.state = State::Failed;
        error!(
            kind = ?error.kind,
            phase = ?error.phase,
            error = %self.memory.hide(&error.to_string()),
            "the task has failed"
        );
        self.report(UnitState::Failed, Some(&error));
    }

    /// Lost the lease, or another owner took over: nothing is reported. If the lease comes back and
    /// the assignment has not changed, the unit is still ours.
    fn shut_out(&mut self, exit: &Exit) {
        Counters::add(&self.memory.counters.fenced, 1);
        let without_lease = !self.node.port.lease_held();
        let again = Instant::now() + if without_lease { Duration::ZERO } else { DOUBT };
        self.state = State::ShutOut(again);
        let reason = exit.error.as_ref().map(ToString::to_string);
        info!(without_lease, reason, "the task is shut out, it stops in silence");
    }

    /// Settles the last commits, then gives the unit back.
    fn leave(&mut self, exit: &Exit, ctx: &mut Context<Self>) {
        self.state = State::Leaving;
        self.stop_timer(ctx);
        let (node, memory) = (self.node.clone(), self.memory.clone());
        let unacknowledged = exit.unacknowledged;
        let shut_out = exit.kind == ExitKind::Fenced;
        let linger = self.assignment.mode == DeliveryMode::Plain && self.assignment.revoked && unacknowledged > 0;
        let settling = tokio::spawn(async move {
            // Whatever of this unit still runs in this process has let its producer go.
            let stop_timeout = node.options.stop_timeout;
            let _gone = tokio::time::timeout(stop_timeout, memory.occupancy.acquire()).await;
            let settled = tokio::time::timeout(stop_timeout, node.port.settled(&memory.unit)).await;
            if linger {
                tokio::time::sleep(LAST_REQUESTS).await;
            }
            !matches!(settled, Ok(Err(error)) if error.kind == ErrorKind::Fenced)
        });
        ctx.spawn(settling.into_actor(self).map(move |ours, actor, ctx| {
            let _turn = Turn::of(&actor.memory.span);
            let ours = ours.unwrap_or(false) && !shut_out && actor.node.port.lease_held();
            if ours {
                actor.report(UnitState::Unassigned, None);
                actor.node.port.released(&actor.memory.unit, actor.memory.epoch);
                info!(unacknowledged, "the task is released");
            }
            let ended = UnitEnded {
                unit: actor.memory.unit.clone(),
                epoch: actor.memory.epoch,
                unacknowledged,
                released: ours,
            };
            ctx.spawn(actor.parent.send(ended).into_actor(actor).map(|_, _, ctx| ctx.stop()));
        }));
    }

    fn stop_timer(&mut self, ctx: &mut Context<Self>) {
        if let Some(timer) = self.timer.take() {
            ctx.cancel_future(timer);
        }
    }

    fn set_target(&mut self, ctx: &mut Context<Self>) {
        self.memory.set_target(self.assignment.target);
        match (self.state, self.is_paused()) {
            (State::Running, true) => {
                self.direct(Control::Pause, ctx);
                self.report(UnitState::Paused, None);
            }
            (State::Running, false) => {
                self.direct(Control::Run, ctx);
                self.report(UnitState::Running, None);
            }
            (State::Waiting, _) => self.start(ctx),
            // FAILED stays; the others take the target up when they get on.
            _ => {}
        }
    }

    fn restart(&mut self, ctx: &mut Context<Self>) {
        if self.state == State::Leaving || matches!(self.then, Some(Then::Leave)) {
            return;
        }
        self.backoff.reset();
        self.memory.set_note(None);
        self.report(UnitState::Restarting, None);
        match self.state {
            State::Waiting | State::Failed | State::ShutOut(_) => self.start(ctx),
            State::Opening => self.then = Some(Then::Restart),
            State::Running => {
                self.then = Some(Then::Restart);
                self.wind_down(ctx);
            }
            State::WindingDown => self.then = Some(Then::Restart),
            State::Leaving => {}
        }
    }

    fn tick(&mut self, ctx: &mut Context<Self>) {
        let _turn = Turn::of(&self.memory.span);
        self.memory.beat.fetch_add(1, Ordering::Relaxed);
        if !self.parent.connected() {
            self.sever(ctx);
            return;
        }
        match self.state {
            State::Waiting if self.timer.is_none() && !self.is_paused() => self.start(ctx),
            State::ShutOut(until) if until <= Instant::now() && self.node.port.lease_held() => self.start(ctx),
            State::Running => self.look_after_run(ctx),
            _ => {}
        }
    }

    /// Death of a partition's actor, and an encoder that stands still, end the run.
    fn look_after_run(&mut self, ctx: &mut Context<Self>) {
        if self.noted.is_some_and(|written| self.written() > written) {
            self.noted = None;
            self.memory.set_note(None);
        }
        let Some(run) = self.run.as_mut().filter(|run| run.fault.is_none() && run.encoder_exit.is_none()) else {
            return;
        };
        for part in &mut run.partitions {
            if !part.ended && !part.address.connected() {
                part.ended = true;
                run.fault.get_or_insert(Exit::panicked(
                    "its actor is gone",
                    "supervision of a partition",
                    Phase::Stream,
                ));
            }
        }
        if let Some(silence) = run.watch.look(&self.memory.encoder, 0, false, Instant::now()) {
            Counters::add(&self.memory.counters.stalls, 1);
            let text = format!("records are waiting but none was sent for {} s", silence.as_secs_f64().round());
            run.fault.get_or_insert(Exit::failed(Error::new(ErrorKind::Timeout, Phase::Deliver, text)));
        }
        if run.fault.is_some() {
            run.shared.encoder.give_up();
            let number = self.number;
            self.timer = Some(ctx.run_later(GRACE, move |actor, ctx| actor.abandon(number, ctx)));
        }
    }

    /// A remark in the view, until messages are acknowledged again.
    fn note(&mut self, text: String) {
        self.noted = Some(self.written());
        self.memory.set_note(Some(text));
    }

    fn sever(&mut self, ctx: &mut Context<Self>) {
        if let Some(run) = self.run.take() {
            run.shared.encoder.purge();
        }
        ctx.stop();
    }
}

impl Actor for TaskActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.run_interval(self.node.options.heartbeat, |actor, ctx| actor.tick(ctx));
        self.start(ctx);
    }
}

impl Handler<Update> for TaskActor {
    type Result = ();

    fn handle(&mut self, Update(assignment): Update, ctx: &mut Self::Context) {
        let _turn = Turn::of(&self.memory.span);
        let former = std::mem::replace(&mut self.assignment, assignment);
        let restart = former.restart != self.assignment.restart || former.config != self.assignment.config;
        if former.target != self.assignment.target {
            self.set_target(ctx);
        }
        if restart {
            self.restart(ctx);
        }
    }
}

impl Handler<Leave> for TaskActor {
    type Result = ();

    fn handle(&mut self, Leave { revoked }: Leave, ctx: &mut Self::Context) {
        let _turn = Turn::of(&self.memory.span);
        self.assignment.revoked |= revoked;
        match self.state {
            State::Leaving => {}
            State::Waiting | State::Failed => self.leave(&Exit::stopped(), ctx),
            State::ShutOut(_) => self.leave(&Exit { kind: ExitKind::Fenced, ..Exit::stopped() }, ctx),
            State::Opening => self.then = Some(Then::Leave),
            State::Running => {
                self.then = Some(Then::Leave);
                self.wind_down(ctx);
            }
            State::WindingDown => self.then = Some(Then::Leave),
        }
    }
}

impl Handler<Sever> for TaskActor {
    type Result = ();

    fn handle(&mut self, _: Sever, ctx: &mut Self::Context) {
        let _turn = Turn::of(&self.memory.span);
        self.sever(ctx);
    }
}

impl Handler<PartitionSaid> for TaskActor {
    type Result = ();

    fn handle(&mut self, PartitionSaid { place: (number, index), said }: PartitionSaid, ctx: &mut Self::Context) {
        let _turn = Turn::of(&self.memory.span);
        if number != self.number {
            return;
        }
        match said {
            Said::Opened => {
                if let Some(part) = self.run.as_mut().and_then(|run| run.partitions.get_mut(index)) {
                    part.started = true;
                }
                self.report_running();
            }
            Said::Retrying(kind, why) => {
                if let Some(part) = self.run.as_mut().and_then(|run| run.partitions.get_mut(index)) {
                    part.started = true;
                }
                let how = if kind == ExitKind::Panicked { "restarted" } else { "retried" };
                self.note(format!("a source is {how} from the last committed position after: {why}"));
                self.report_running();
            }
            Said::Ended(exit) => self.partition_ended(index, exit, ctx),
        }
    }
}

#[cfg(test)]
impl TaskActor {
    /// For tests of supervision.
    pub(crate) fn partition_actors(&self) -> Vec<Addr<PartitionActor>> {
        self.run.iter().flat_map(|run| &run.partitions).map(|part| part.address.clone()).collect()
    }
}

//! One source partition of a task (a replica set, a database): the unit of restart.
//!
//! Owns one generation at a time and decides what follows when it ends. A retry is below the states
//! that the cluster sees: it shows in the view, in metrics and in the log. Invariants: a generation is
//! started only while the task's encoder lives; whatever cannot be retried is the task's to decide.
//! It does not: touch a record.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use actix::{
    Actor, ActorContext, ActorFutureExt, Addr, AsyncContext, Context, Handler, Message, SpawnHandle, WrapFuture,
};
use thalweg_core::position::SourcePartition;
use thalweg_core::{Error, ErrorKind, Phase};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinError;
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::{Instrument, info, warn};

use crate::backoff::{Backoff, Next};
use crate::counters::Counters;
use crate::exit::{Exit, ExitKind};
use crate::generation::Generation;
use crate::memory::PartitionMemory;
use crate::progress::StageWatch;
use crate::reader::Control;
use crate::run::TaskRun;
use crate::table::{Advanced, TableActor};
use crate::task::{PartitionSaid, Said, TaskActor};
use crate::turn::Turn;
use crate::view::Activity;

pub(crate) struct PartitionActor {
    run: Arc<TaskRun>,
    /// Number of the run, and of the partition in it.
    place: (u64, usize),
    partition: SourcePartition,
    memory: Arc<PartitionMemory>,
    parent: Addr<TaskActor>,
    heartbeat: Duration,
    paused: bool,
    draining: bool,
    /// A generation is to be started as soon as the partition is not paused.
    wants_start: bool,
    retry: Option<SpawnHandle>,
    live: Option<Live>,
    backoff: Backoff,
    watch: StageWatch,
    /// Why the watch ended the generation.
    stall: Option<Error>,
    /// Records acknowledged when the generation started.
    acked_before: u64,
    tables: BTreeMap<String, Addr<TableActor>>,
    /// The snapshot has ended and its tables know it.
    tables_done: bool,
}

/// Handles of the running generation. Dropping them cancels it.
struct Live {
    control: watch::Sender<Control>,
    cancel: CancellationToken,
    _cancel_on_drop: DropGuard,
}

/// What the task wants of the partition.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Direct(pub Control);

impl PartitionActor {
    pub(crate) fn new(
        run: Arc<TaskRun>,
        place: (u64, usize),
        memory: Arc<PartitionMemory>,
        parent: Addr<TaskActor>,
        heartbeat: Duration,
        paused: bool,
    ) -> Self {
        Self {
            partition: memory.partition.clone(),
            backoff: Backoff::new(run.settings.backoff),
            watch: StageWatch::new(run.settings.progress_timeout, Instant::now()),
            run,
            place,
            memory,
            parent,
            heartbeat,
            paused,
            draining: false,
            wants_start: true,
            retry: None,
            live: None,
            stall: None,
            acked_before: 0,
            tables: BTreeMap::new(),
            tables_done: false,
        }
    }

    fn start_generation(&mut self, ctx: &mut Context<Self>) {
        if !self.wants_start || self.draining || self.live.is_some() {
            return;
        }
        if self.paused {
            self.memory.set_activity(Activity::Paused);
            return;
        }
        self.wants_start = false;
        if let Some(retry) = self.retry.take() {
            ctx.cancel_future(retry);
        }
        self.tables.clear();
        self.tables_done = false;
        self.acked_before = self.acked();
        self.watch = StageWatch::new(self.run.settings.progress_timeout, Instant::now());
        let (control, orders) = watch::channel(Control::Run);
        let cancel = CancellationToken::new();
        let (opened, is_open) = oneshot::channel();
        let generation = Generation {
            run: self.run.clone(),
            index: self.place.1,
            partition: self.partition.clone(),
            memory: self.memory.clone(),
            control: orders,
            cancel: cancel.clone(),
            opened: Some(opened),
        };
        self.memory.generation.fetch_add(1, Ordering::Relaxed);
        let join = tokio::spawn(generation.run().instrument(self.memory.span.clone()));
        self.live = Some(Live { control, _cancel_on_drop: cancel.clone().drop_guard(), cancel });
        ctx.spawn(join.into_actor(self).map(|ended, actor, ctx| actor.ended(ended, ctx)));
        ctx.spawn(is_open.into_actor(self).map(|open, actor, ctx| {
            if open.is_ok() {
                actor.say(Said::Opened, ctx);
            }
        }));
    }

    fn ended(&mut self, ended: Result<Exit, JoinError>, ctx: &mut Context<Self>) {
        let _turn = Turn::of(&self.memory.span);
        self.live = None;
        self.feed_tables();
        let mut exit = ended.unwrap_or_else(|join| {
            Exit::from_join(join, &format!("source of {}", self.partition.original()), Phase::Start)
        });
        if let Some(stall) = self.stall.take() {
            exit = Exit::failed(stall);
        }
        if let Some(error) = &exit.error {
            self.memory.set_last_error(self.run.memory.hide(&error.to_string()));
        }
        let retriable = matches!(exit.kind, ExitKind::Retriable | ExitKind::Panicked);
        if self.draining || self.run.encoder.has_ended() || !retriable {
            self.leave(exit, ctx);
        } else {
            self.retry(exit, ctx);
        }
    }

    fn retry(&mut self, exit: Exit, ctx: &mut Context<Self>) {
        if self.acked() > self.acked_before {
            self.backoff.reset();
        }
        let counters = &self.run.memory.counters;
        let next = if exit.kind == ExitKind::Panicked {
            Counters::add(&counters.panics, 1);
            self.backoff.panicked()
        } else {
            self.backoff.failed()
        };
        let failures = self.backoff.failures();
        let Next::After(delay) = next else {
            self.leave(exit.given_up(failures), ctx);
            return;
        };
        Counters::add(&counters.restarts, 1);
        let why = self.memory.last_error().unwrap_or_default();
        warn!(
            generation = self.memory.generation.load(Ordering::Relaxed),
            exit = ?exit.kind,
            failures,
            delay_ms = delay.as_millis() as u64,
            error = %why,
            "the source ended, it is opened again from the last committed position"
        );
        self.memory.set_activity(Activity::Retrying { at: Instant::now() + delay, failures, why: why.clone() });
        self.wants_start = true;
        self.retry = Some(ctx.run_later(delay, |actor, ctx| actor.start_generation(ctx)));
        self.say(Said::Retrying(exit.kind, why), ctx);
    }

    /// Tells the task the outcome and ends.
    fn leave(&mut self, exit: Exit, ctx: &mut Context<Self>) {
        self.live = None;
        self.wants_start = false;
        self.memory.set_activity(match exit.kind {
            ExitKind::Finished => Activity::Finished,
            ExitKind::NeedsUser | ExitKind::Fatal | ExitKind::Panicked => Activity::Failed,
            ExitKind::Stopped | ExitKind::Fenced | ExitKind::Retriable => Activity::Idle,
        });
        let said = PartitionSaid { place: self.place, said: Said::Ended(exit) };
        ctx.spawn(self.parent.send(said).into_actor(self).map(|_, _, ctx| ctx.stop()));
    }

    fn say(&mut self, said: Said, ctx: &mut Context<Self>) {
        let said = PartitionSaid { place: self.place, said };
        ctx.spawn(self.parent.send(said).into_actor(self).map(|sent, _, ctx| {
            if sent.is_err() {
                ctx.stop();
            }
        }));
    }

    fn acked(&self) -> u64 {
        self.memory.progress.records_acked.load(Ordering::Relaxed)
    }

    fn tick(&mut self, ctx: &mut Context<Self>) {
        let _turn = Turn::of(&self.memory.span);
        if !self.parent.connected() {
            ctx.stop();
            return;
        }
        self.feed_tables();
        let Some(live) = &self.live else { return };
        // An attempt to connect that failed is a sign of life of the reader, too. Both only grow.
        let progress = &self.memory.progress;
        let attempts = progress.disconnects.load(Ordering::Relaxed) as i64;
        let contact = progress.last_contact_ms.load(Ordering::Relaxed).wrapping_add(attempts);
        if let Some(silence) = self.watch.look(&self.memory.reader, contact, progress.is_resting(), Instant::now())
            && self.stall.is_none()
        {
            Counters::add(&self.run.memory.counters.stalls, 1);
            let text = format!(
                "no sign of life from the source of {} for {} s",
                self.partition.original(),
                silence.as_secs_f64().round()
            );
            self.stall = Some(Error::new(ErrorKind::Timeout, Phase::Stream, text));
            live.cancel.cancel();
        }
    }

    /// One actor per collection that is being snapshotted.
    fn feed_tables(&mut self) {
        if self.tables_done {
            return;
        }
        let Some(snapshot) = self.memory.progress.snapshot() else { return };
        self.tables_done = snapshot.ended.is_some();
        for (name, table) in snapshot.tables {
            let address = match self.tables.get(&name) {
                Some(address) => address,
                None if table.done == 0 && !table.finished => continue,
                None => {
                    let actor = TableActor::new(self.memory.clone(), name.clone());
                    self.tables.entry(name).or_insert(actor.start())
                }
            };
            if address.connected() && address.try_send(Advanced(table)).is_err() {
                // Its mailbox is full of older news; the next heartbeat brings newer ones.
                self.tables_done = false;
            }
        }
    }
}

impl Actor for PartitionActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        self.memory.forget_tables();
        self.start_generation(ctx);
        ctx.run_interval(self.heartbeat, |actor, ctx| actor.tick(ctx));
    }
}

impl Handler<Direct> for PartitionActor {
    type Result = ();

    fn handle(&mut self, Direct(control): Direct, ctx: &mut Self::Context) {
        let _turn = Turn::of(&self.memory.span);
        self.paused = control == Control::Pause;
        self.draining |= control == Control::Drain;
        match (&self.live, control) {
            (Some(live), _) => {
                if control == Control::Drain {
                    self.memory.set_activity(Activity::Draining);
                }
                live.control.send_replace(control);
            }
            (None, Control::Drain) => self.leave(Exit::stopped(), ctx),
            (None, Control::Pause) => self.memory.set_activity(Activity::Paused),
            (None, Control::Run) => {
                info!("resumed");
                self.start_generation(ctx);
            }
        }
    }
}

//! One connector object: plans the tasks of its connector and watches whether they must be planned
//! again.
//!
//! Invariants: at most one planning is under way; a newer configuration, a pause or a stop cancels it;
//! what is published holds references, not what they resolve to; more tasks than `tasks.max` are not
//! published. It does not: run tasks, or empty the task set of a stopped connector (the replicated
//! state does that in the same step as the stop).

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use actix::{Actor, ActorContext, ActorFutureExt, Addr, AsyncContext, Context, Handler, SpawnHandle, WrapFuture};
use thalweg_config::Properties;
use thalweg_core::source::Connector;
use thalweg_core::{Error, ErrorKind, Phase};
use tokio::task::JoinError;
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::{Instrument, error, info, warn};

use crate::backoff::{Backoff, BackoffPolicy, Next};
use crate::counters::Counters;
use crate::exit::{Exit, ExitKind};
use crate::memory::UnitMemory;
use crate::node::{NodeActor, NodeContext, UnitEnded};
use crate::port::{Assignment, Target, UnitState};
use crate::run::resolve;
use crate::settings::UnitSettings;
use crate::task::{DOUBT, Leave, Sever, Update};
use crate::turn::Turn;

/// Planning is tried again after this, doubled up to a minute, for ever.
const RETRY: Duration = Duration::from_millis(250);
/// Shortest time between two plannings that the connector asks for.
const REPLAN_PAUSE: Duration = Duration::from_secs(1);

pub(crate) struct ConnectorActor {
    node: Arc<NodeContext>,
    parent: Addr<NodeActor>,
    memory: Arc<UnitMemory>,
    assignment: Assignment,
    backoff: Backoff,
    /// Number of the present planning; results of others are dropped.
    number: u64,
    /// Ends the present planning or watch.
    work: Option<DropGuard>,
    timer: Option<SpawnHandle>,
    /// A start (not just a planning) is under way.
    starting: bool,
    failed: bool,
    leaving: bool,
}

/// A set of tasks that was published.
struct Planned {
    connector: Arc<dyn Connector>,
    /// References resolved.
    config: Properties,
    tasks: usize,
    at: Instant,
    /// Something to say although it went well.
    note: Option<String>,
}

impl ConnectorActor {
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
            backoff: Backoff::new(BackoffPolicy { base: RETRY, ..BackoffPolicy::default() }),
            number: 0,
            work: None,
            timer: None,
            starting: true,
            failed: false,
            leaving: false,
        }
    }

    fn report(&self, state: UnitState, cause: Option<&Error>) {
        self.memory.report(&*self.node.port, state, cause);
    }

    /// Cancels whatever is under way.
    fn cancel(&mut self, ctx: &mut Context<Self>) -> CancellationToken {
        if let Some(timer) = self.timer.take() {
            ctx.cancel_future(timer);
        }
        self.number += 1;
        let token = CancellationToken::new();
        self.work = Some(token.clone().drop_guard());
        token
    }

    /// Brings the object to its target state.
    fn settle(&mut self, ctx: &mut Context<Self>) {
        if self.leaving {
            return;
        }
        self.memory.set_target(self.assignment.target);
        match self.assignment.target {
            Target::Stopped => {
                self.cancel(ctx);
                self.failed = false;
                self.report(UnitState::Stopped, None);
            }
            // Neither a pause nor a resume heals a failed object.
            Target::Paused | Target::Started if self.failed => {}
            Target::Paused => {
                self.cancel(ctx);
                self.report(UnitState::Paused, None);
            }
            Target::Started => {
                self.starting = true;
                self.plan(ctx);
            }
        }
    }

    fn plan(&mut self, ctx: &mut Context<Self>) {
        let token = self.cancel(ctx);
        let number = self.number;
        if self.starting {
            Counters::add(&self.memory.counters.startup_attempts, 1);
        }
        let work = plan(self.node.clone(), self.memory.clone(), self.assignment.clone());
        let planning = async move {
            tokio::select! {
                biased;
                () = token.cancelled() => None,
                planned = work => Some(planned),
            }
        };
        let planning = tokio::spawn(planning.instrument(self.memory.span.clone()));
        ctx.spawn(planning.into_actor(self).map(move |planned, actor, ctx| actor.planned(number, planned, ctx)));
    }

    fn planned(
        &mut self,
        number: u64,
        planned: Result<Option<Result<Planned, Error>>, JoinError>,
        ctx: &mut Context<Self>,
    ) {
        let _turn = Turn::of(&self.memory.span);
        if number != self.number || self.leaving {
            return;
        }
        let exit = match planned {
            Ok(Some(Ok(planned))) => return self.watch(planned, ctx),
            Ok(None) => return,
            Ok(Some(Err(error))) => Exit::failed(error),
            Err(join) => Exit::from_join(join, "planning of tasks", Phase::Start),
        };
        let next = match exit.kind {
            ExitKind::Fenced => {
                // Another node owns the connector; nothing is reported. If the placement is still the
                // same after a while, it is ours after all.
                Counters::add(&self.memory.counters.fenced, 1);
                self.timer = Some(ctx.run_later(DOUBT, |actor, ctx| actor.plan(ctx)));
                return;
            }
            ExitKind::NeedsUser | ExitKind::Fatal => Next::GiveUp,
            ExitKind::Panicked => {
                Counters::add(&self.memory.counters.panics, 1);
                self.backoff.panicked()
            }
            ExitKind::Retriable | ExitKind::Stopped | ExitKind::Finished => self.backoff.failed(),
        };
        let error = exit.into_error();
        let text = self.memory.hide(&error.to_string());
        match next {
            Next::After(delay) => {
                warn!(
                    failures = self.backoff.failures(),
                    delay_ms = delay.as_millis() as u64,
                    error = %text,
                    "planning of tasks failed, it is tried again"
                );
                self.memory.set_note(Some(format!("planning of tasks is tried again after: {text}")));
                self.report_running();
                self.timer = Some(ctx.run_later(delay, |actor, ctx| actor.plan(ctx)));
            }
            Next::GiveUp => {
                error!(kind = ?error.kind, error = %text, "the connector has failed");
                self.failed = true;
                self.work = None;
                self.report(UnitState::Failed, Some(&error));
            }
        }
    }

    fn report_running(&mut self) {
        if std::mem::take(&mut self.starting) {
            Counters::add(&self.memory.counters.startup_successes, 1);
        }
        self.report(UnitState::Running, None);
    }

    /// Waits until the set of tasks should be planned again.
    fn watch(&mut self, planned: Planned, ctx: &mut Context<Self>) {
        self.backoff.reset();
        self.memory.set_note(planned.note);
        self.report_running();
        info!(tasks = planned.tasks, "tasks are planned");
        let token = self.cancel(ctx);
        let number = self.number;
        let Planned { connector, config, at, .. } = planned;
        let watching = async move {
            tokio::select! {
                biased;
                () = token.cancelled() => return,
                () = connector.replan_wanted(&config, token.child_token()) => {}
            }
            tokio::time::sleep_until((at + REPLAN_PAUSE).into()).await;
        };
        let watching = tokio::spawn(watching.instrument(self.memory.span.clone()));
        ctx.spawn(watching.into_actor(self).map(move |ended, actor, ctx| {
            let _turn = Turn::of(&actor.memory.span);
            if number == actor.number && !actor.leaving {
                if let Err(join) = ended {
                    let exit = Exit::from_join(join, "watch for changes of the task set", Phase::Stream);
                    warn!(error = %exit.into_error(), "the watch ended, tasks are planned again");
                    Counters::add(&actor.memory.counters.panics, 1);
                }
                actor.plan(ctx);
            }
        }));
    }

    fn restart(&mut self, ctx: &mut Context<Self>) {
        self.failed = false;
        self.backoff.reset();
        self.report(UnitState::Restarting, None);
        self.settle(ctx);
    }
}

/// Plans and publishes, on a worker thread.
async fn plan(node: Arc<NodeContext>, memory: Arc<UnitMemory>, assignment: Assignment) -> Result<Planned, Error> {
    let name = assignment.unit.connector().clone();
    let resolution = resolve(&node, assignment.config.clone(), &memory).await?;
    let config = resolution.properties;
    let connector = node.registry.connector_of(&config)?.clone();
    memory.set_class(connector.plugin().class, connector.plugin().version);
    let settings = UnitSettings::read(&config)?;
    let at = Instant::now();
    let present = node.port.tasks(&name, assignment.config_revision);
    let mut tasks = connector.plan_tasks(&config, settings.tasks_max, &present).await?;
    let mut note = None;
    if tasks.len() > settings.tasks_max {
        let text =
            format!("connector {name} planned {} tasks although tasks.max allows {}", tasks.len(), settings.tasks_max);
        if settings.tasks_max_enforce {
            return Err(Error::config(text)
                .advise("Raise tasks.max; tasks.max.enforce=false lets the surplus run, but is deprecated."));
        }
        warn!(
            planned = tasks.len(),
            allowed = settings.tasks_max,
            "more tasks than tasks.max are run because tasks.max.enforce is false"
        );
        note = Some(text);
    }
    let planned = tasks.len();
    for task in &mut tasks {
        if task.get("task.class").is_none() {
            task.set("task.class", format!("{}Task", connector.plugin().class));
        }
        *task = resolution.references.hide(&assignment.config, task);
    }
    if !node.port.lease_held() {
        return Err(Error::new(
            ErrorKind::QuorumLost,
            Phase::Start,
            "this node holds no lease, so it may not publish tasks",
        ));
    }
    node.port.publish_tasks(&name, assignment.epoch, assignment.config_revision, tasks).await?;
    Ok(Planned { connector, config, tasks: planned, at, note })
}

impl Actor for ConnectorActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.run_interval(self.node.options.heartbeat, |actor, ctx| {
            actor.memory.beat.fetch_add(1, Ordering::Relaxed);
            if !actor.parent.connected() {
                ctx.stop();
            }
        });
        self.settle(ctx);
    }
}

impl Handler<Update> for ConnectorActor {
    type Result = ();

    fn handle(&mut self, Update(assignment): Update, ctx: &mut Self::Context) {
        let _turn = Turn::of(&self.memory.span);
        let former = std::mem::replace(&mut self.assignment, assignment);
        if former.restart != self.assignment.restart {
            self.restart(ctx);
        } else if former.config_revision != self.assignment.config_revision || former.config != self.assignment.config {
            self.failed = false;
            self.settle(ctx);
        } else if former.target != self.assignment.target {
            self.settle(ctx);
        }
    }
}

impl Handler<Leave> for ConnectorActor {
    type Result = ();

    fn handle(&mut self, _: Leave, ctx: &mut Self::Context) {
        let _turn = Turn::of(&self.memory.span);
        if self.leaving {
            return;
        }
        self.cancel(ctx);
        self.work = None;
        self.leaving = true;
        let ours = self.node.port.lease_held();
        if ours {
            self.report(UnitState::Unassigned, None);
            self.node.port.released(&self.memory.unit, self.memory.epoch);
        }
        let (unit, epoch) = (self.memory.unit.clone(), self.memory.epoch);
        let ended = UnitEnded { unit, epoch, unacknowledged: 0, released: ours };
        ctx.spawn(self.parent.send(ended).into_actor(self).map(|_, _, ctx| ctx.stop()));
    }
}

impl Handler<Sever> for ConnectorActor {
    type Result = ();

    fn handle(&mut self, _: Sever, ctx: &mut Self::Context) {
        self.cancel(ctx);
        self.work = None;
        ctx.stop();
    }
}

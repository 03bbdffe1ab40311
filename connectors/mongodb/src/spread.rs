//! How the tasks of a connector share a snapshot (`thalweg.snapshot.spread`).
//!
//! They speak through their stored offsets only: the first one's says what was planned, each other's
//! how far it has come. Those are read again and again while there is something to wait for. The first
//! one streams only behind the completion of all others, so a row of theirs never comes behind a change
//! of it; a task that is taken over by another node, or whose plan is replaced, is fenced as any task is.

use std::time::{Duration, Instant};

use thalweg_core::Error;
use thalweg_core::snapshot::{Copied, Spread};
use tracing::{info, warn};

use crate::filter::SnapshotSelection;
use crate::link::Link;
use crate::plan::Portion;
use crate::position::MongoPosition;
use crate::pump::{Begun, Kind, Order, Pump};
use crate::stream::StreamSettings;

/// Between two looks at the stored offsets, which are in this node's memory.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// The same while nothing is planned: all that is stored of a snapshot is read for it.
const LOOK_IDLE: Duration = Duration::from_secs(1);

/// Between two lines about what is waited for.
const REPORT_EVERY: Duration = Duration::from_secs(30);

impl Pump {
    /// Reads this task's portion of every snapshot that the first task plans.
    pub(crate) async fn help(
        &self,
        link: &mut Link,
        settings: &StreamSettings,
        portion: Portion,
    ) -> Result<Option<MongoPosition>, Error> {
        let selection = SnapshotSelection::new(&self.config.snapshot.include)?;
        let mut last = None;
        loop {
            let (begun, plan) = self.planned(portion, last.as_ref()).await?;
            last = plan.spread().cloned();
            info!(portion = portion.number, of = portion.of, "this task reads its portion of the snapshot");
            let kind = Kind::Initial { announced: false };
            let order = Order { selection: &selection, portion, plan: Some(plan), kind };
            self.copy_selected(link, settings, begun, order).await?;
        }
    }

    /// The next snapshot of which this portion is not read, and what was planned for all. `last`: one that
    /// was dealt with, though its end may not be stored yet.
    async fn planned(&self, portion: Portion, last: Option<&Spread>) -> Result<(Begun, Copied), Error> {
        let is_ours = |spread: &Spread| spread.portions == portion.of && spread.choice == self.config.snapshot.choice;
        loop {
            if let Some((position, plan)) = self.offsets.portion(0)?
                && let Some(spread) = plan.spread().filter(|spread| is_ours(spread) && Some(*spread) != last)
            {
                let own = self.offsets.portion(portion.number)?.map(|(_, copied)| copied);
                let own = own.filter(|copied| copied.spread() == Some(spread));
                if !own.as_ref().is_some_and(|copied| copied.completes(spread)) {
                    let copied = own.unwrap_or_else(|| plan.portion(portion.number));
                    return Ok((Begun { position: position.begin_of_snapshot(), copied }, plan));
                }
            }
            self.progress.rest(LOOK_IDLE).await;
        }
    }

    /// Resolves when the first task has made another plan than `spread`.
    pub(crate) async fn replaced(&self, spread: Option<&Spread>) {
        let Some(spread) = spread else { return std::future::pending().await };
        loop {
            let plan = self.offsets.portion(0).ok().flatten().and_then(|(_, plan)| plan.spread().cloned());
            if plan.is_some_and(|plan| plan != *spread) {
                warn!("the first task has planned the snapshot anew");
                return;
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// What was planned for the portions of a snapshot that goes on; `None`: it is planned now, because it
    /// is new or because the tasks or what they read are others now. What was read is taken over then.
    pub(crate) fn plan_of(&self, copied: &mut Copied, portion: Portion) -> Result<Option<Copied>, Error> {
        let Some(spread) = copied.spread().cloned() else { return Ok(None) };
        if spread.portions == portion.of && spread.choice == self.config.snapshot.choice {
            return Ok(Some(copied.clone()));
        }
        info!(before = spread.portions, now = portion.of, "the rest of the snapshot is planned anew");
        for number in 1..spread.portions {
            if let Some((_, other)) = self.offsets.portion(number)?.filter(|(_, o)| o.spread() == Some(&spread)) {
                copied.take_over(number, &other);
            }
        }
        copied.unspread();
        Ok(None)
    }

    /// Waits until all other portions of the snapshot are read and stored.
    pub(crate) async fn gathered(&self, spread: &Spread) -> Result<(), Error> {
        let mut told = Instant::now();
        loop {
            let mut missing = Vec::new();
            for number in 1..spread.portions {
                let stored = self.offsets.portion(number)?;
                if !stored.is_some_and(|(_, copied)| copied.completes(spread)) {
                    missing.push(number);
                }
            }
            if missing.is_empty() {
                return Ok(());
            }
            if told.elapsed() >= REPORT_EVERY {
                info!(tasks = ?missing, "this task's portion of the snapshot is read; it waits for those of other tasks");
                told = Instant::now();
            }
            self.progress.rest(LOOK_EVERY).await;
        }
    }
}

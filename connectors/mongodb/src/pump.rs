//! The fetching side of a partition: connects, decides where to start, copies collections, follows
//! the change stream.
//!
//! Runs as a task of its own that ends with the generation, and hands everything over through one
//! bounded channel: so the decoding side only ever waits on that channel and may be dropped at any
//! await. An error that ends the run is the last thing in the channel.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use thalweg_config::Secret;
use thalweg_core::progress::{PartitionProgress, SnapshotProgress};
use thalweg_core::snapshot::Copied;
use thalweg_core::{Error, ErrorKind, Phase};
use tokio::sync::{Mutex, mpsc};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::ad_hoc::BlockingSnapshot;
use crate::connect;
use crate::copier::{Copier, Failed};
use crate::errors::{self, Class};
use crate::feed::Feed;
use crate::filter::{NameList, NamespaceFilter, SnapshotSelection};
use crate::link::{Ended, Link};
use crate::offsets::{Found, StoredOffsets};
use crate::options::{MongoConfig, Oversize};
use crate::pipeline;
use crate::plan::Portion;
use crate::position::MongoPosition;
use crate::reply::Budget;
use crate::shard;
use crate::snapshot;
use crate::start::Known;
use crate::stream::{ChangeStream, StartAt, StreamSettings};
use crate::topology::{self, Cluster};
use crate::window;

/// Positions lost one after the other, each in spite of a new snapshot, after which more of the same
/// is no use.
const LOSSES_IN_A_ROW: u32 = 3;

/// What the partition is: decides which stored offset counts.
#[derive(Debug, Clone)]
pub(crate) enum Part {
    WholeCluster(Portion),
    /// The shard with this replica set.
    Shard(Arc<str>),
}

/// Where a snapshot began, and how far it has come.
pub(crate) struct Begun {
    pub(crate) position: MongoPosition,
    pub(crate) copied: Copied,
}

/// Which snapshot is to be taken.
pub(crate) struct Order<'a> {
    pub(crate) selection: &'a SnapshotSelection,
    pub(crate) portion: Portion,
    /// What was planned for the portions; `None`: that is still to be done.
    pub(crate) plan: Option<Copied>,
    pub(crate) kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Its begin is stored, with all that the plan says, or has to be before the first record.
    Initial {
        announced: bool,
    },
    Blocking,
}

pub(crate) struct Pump {
    pub(crate) config: Arc<MongoConfig>,
    pub(crate) filter: Arc<NamespaceFilter>,
    /// The partition's connection string.
    pub(crate) uri: Secret,
    pub(crate) part: Part,
    pub(crate) offsets: StoredOffsets,
    pub(crate) progress: Arc<PartitionProgress>,
    pub(crate) budget: Arc<Budget>,
    pub(crate) out: mpsc::Sender<Result<Feed, Error>>,
    /// Blocking snapshots that the reader asks for.
    pub(crate) blocking: Mutex<mpsc::Receiver<BlockingSnapshot>>,
}

impl Pump {
    /// Runs until cancelled, or until an error ends it; the connections are closed on return.
    pub(crate) async fn run(self, cancel: CancellationToken) {
        let linked = tokio::select! {
            biased;
            () = cancel.cancelled() => return,
            linked = Link::new(&self.config, self.uri.reveal(), &self.progress) => linked,
        };
        let mut link = match linked {
            Ok(link) => link,
            // A receiver that is gone belongs to a generation that has ended; here and below.
            Err(error) => return drop(self.out.send(Err(error)).await),
        };
        let reading = async {
            let last = self.read(&mut link).await.map(Feed::Finished);
            let finished = last.is_ok();
            let _ = self.out.send(last).await;
            finished
        };
        let finished = tokio::select! {
            biased;
            () = cancel.cancelled() => false,
            finished = reading => finished,
        };
        link.close().await;
        if finished {
            cancel.cancelled().await;
        }
    }

    /// Returns when nothing more is to be read, ever; with what is known of the position.
    async fn read(&self, link: &mut Link) -> Result<Option<MongoPosition>, Error> {
        let cluster = link.insist(Phase::Start, async |client| Ok(topology::detect(&client).await?)).await?;
        if cluster == Cluster::Standalone {
            return Err(standalone());
        }
        let timeout = connect::socket_timeout(&self.config.connection, self.uri.reveal());
        let settings = StreamSettings::new(&self.config, pipeline::stages(&self.config), timeout);
        if let Part::WholeCluster(portion) = self.part
            && !portion.is_first()
        {
            return self.help(link, &settings, portion).await;
        }
        self.survey(link).await?;
        if let Oversize::Skip(bytes) = self.config.cursor.oversize {
            info!(
                bytes,
                "the server leaves out changes with a document or pre-image larger than \
                 cursor.oversize.skip.threshold, without a trace (cursor.oversize.handling.mode=skip)"
            );
        }

        let mode = self.config.snapshot.mode;
        let found = self.stored(link, &cluster).await?;
        let mut announced = found.as_ref().is_some_and(|found| found.own);
        let mut position = found.map(|found| found.position);
        let mut known = match &position {
            None => Known::Nothing,
            Some(position) if position.is_unfinished() => Known::Unfinished,
            Some(_) => Known::Position,
        };
        let mut resumed = None;
        match known {
            Known::Nothing => info!("no previous offset has been found"),
            Known::Unfinished => {
                mode.check_unfinished()?;
                resumed = self.resumable(link, &settings, position.as_ref()).await?;
                if resumed.is_none() {
                    info!("the previous snapshot was not finished, it is taken again");
                }
            }
            Known::Position => {}
        }
        let mut losses = 0;
        let mut stream = None;
        if known == Known::Position && self.config.check_position {
            let mut start = position.as_ref().map_or(StartAt::Now, StartAt::behind);
            match link.open(&settings, &mut start, true, &self.budget, Phase::Start).await {
                Ok(opened) => stream = Some((start, opened)),
                Err(Ended::Final(error)) => return Err(located(error, &start)),
                Err(Ended::Lost(error)) => {
                    losses = 1;
                    self.accept_loss(error, position.as_ref(), losses)?;
                }
            }
        }
        loop {
            if losses > 0 || mode.reads(known) {
                stream = None;
                self.progress.rest(self.config.snapshot.delay).await;
                position = Some(self.copy(link, &settings, resumed.take(), announced).await?);
                (known, announced) = (Known::Position, true);
                if mode.streams() {
                    self.progress.rest(self.config.snapshot.streaming_delay).await;
                }
            }
            if !mode.streams() {
                return match position {
                    Some(position) if self.config.signals.channels.is_outside() => {
                        self.listen(link, &settings, position).await
                    }
                    position => Ok(position),
                };
            }
            let from = match position.take() {
                Some(position) => position,
                None => self.first_position(link, &settings).await?,
            };
            if !std::mem::replace(&mut announced, true) {
                self.send(Feed::Start(from.clone())).await?;
            }
            self.send(Feed::Stream(from.clone())).await?;
            let (start, opened) = match stream.take() {
                Some((start, opened)) => (start, Some(opened)),
                None => (StartAt::behind(&from), None),
            };
            position = Some(from);
            let Followed { ended, replies } = self.follow(link, &settings, start, opened).await;
            match ended {
                Ended::Final(error) => return Err(error),
                Ended::Lost(error) => {
                    losses = if replies > 1 { 1 } else { losses + 1 };
                    self.accept_loss(error, position.as_ref(), losses)?;
                }
            }
        }
    }

    pub(crate) async fn send(&self, feed: Feed) -> Result<(), Error> {
        let gone = |_| Error::new(ErrorKind::Internal, Phase::Stream, "the reader of this partition is gone");
        self.out.send(Ok(feed)).await.map_err(gone)
    }

    /// What is stored for this partition, under its own name or an older one.
    async fn stored(&self, link: &mut Link, cluster: &Cluster) -> Result<Option<Found>, Error> {
        match &self.part {
            Part::Shard(replica_set) => self.offsets.of_one_shard(replica_set, self.is_only_shard()).await,
            Part::WholeCluster(_) => {
                let replica_set = connect::parse(self.uri.reveal()).ok().and_then(|uri| uri.replica_set);
                let found = self.offsets.of_whole(replica_set.as_deref())?;
                if found.is_some() || *cluster != Cluster::Sharded {
                    return Ok(found);
                }
                let shards = link
                    .insist(Phase::Start, async |client| match shard::read_shards(&client).await {
                        Err(error) if errors::class(&error) == Class::Permission => {
                            info!(error = errors::text(&error), "offsets of single shards are not looked for");
                            Ok(Vec::new())
                        }
                        shards => Ok(shards?),
                    })
                    .await?;
                self.offsets.of_all_shards(&shards)
            }
        }
    }

    /// Asks the router, to whom a shard has no link.
    async fn is_only_shard(&self) -> Result<bool, Error> {
        let mut router = Link::new(&self.config, self.config.connection.string.reveal(), &self.progress).await?;
        let shards = router.insist(Phase::Start, async |client| Ok(shard::read_shards(&client).await?)).await;
        router.close().await;
        Ok(shards?.len() == 1)
    }

    /// A mode that reads everything again when the position is lost takes the loss; others do not.
    fn accept_loss(&self, error: Error, position: Option<&MongoPosition>, losses: u32) -> Result<(), Error> {
        if losses >= LOSSES_IN_A_ROW {
            return Err(error.advise(
                "the oplog is too small for a snapshot: the position at its begin was lost before its end, several \
                 times; enlarge the oplog or raise snapshot.max.threads, then restart the task",
            ));
        }
        if self.config.snapshot.mode.reads_when_lost() {
            warn!(%error, "the position is lost, everything is read again");
            return Ok(());
        }
        let offset = position.map(|p| serde_json::Value::Object(p.to_offset()).to_string()).unwrap_or_default();
        let message = format!(
            "The connector is trying to read change stream starting at {offset}, but this is no longer available on \
             the server. Reconfigure the connector to use a snapshot mode when needed."
        );
        let mut lost = Error::new(ErrorKind::PositionLost, error.phase, message);
        lost.causes.push(error.message);
        lost.causes.extend(error.causes);
        Err(lost)
    }

    /// Looks at what is captured, if the configuration limits it.
    async fn survey(&self, link: &mut Link) -> Result<(), Error> {
        let lists = &self.config.filters;
        let all = lists.databases == NameList::All && lists.collections == NameList::All;
        if all && self.config.guardrail.is_none() {
            return Ok(());
        }
        let captured = self.captured(link).await?;
        if captured.is_empty() && !all {
            warn!(
                lists = lists.set(),
                "After applying the include/exclude list filters, no changes will be captured. Please check your \
                 configuration!"
            );
        }
        let Some(guardrail) = self.config.guardrail.filter(|g| captured.len() > g.max) else { return Ok(()) };
        let message =
            format!("{} collections are captured, guardrail.collections.max allows {}", captured.len(), guardrail.max);
        if guardrail.fail {
            return Err(Error::config(message).advise("narrow the include lists, or raise the limit"));
        }
        warn!(
            captured = captured.len(),
            allowed = guardrail.max,
            "more collections are captured than the guardrail allows"
        );
        Ok(())
    }

    async fn captured(&self, link: &mut Link) -> Result<Vec<snapshot::Listed>, Error> {
        let list = async |client| snapshot::captured(&client, &self.config, &self.filter).await;
        Ok(link.insist(Phase::Start, list).await?)
    }

    /// Where a partition starts that has neither an offset nor a snapshot.
    async fn first_position(&self, link: &mut Link, settings: &StreamSettings) -> Result<MongoPosition, Error> {
        match self.config.capture.start_at {
            Some(time) => Ok(MongoPosition::at(time)),
            None => self.present(link, settings).await,
        }
    }

    /// The present end of the change stream.
    async fn present(&self, link: &mut Link, settings: &StreamSettings) -> Result<MongoPosition, Error> {
        loop {
            let mut stream = link.open(settings, &mut StartAt::Now, false, &self.budget, Phase::Start).await?;
            let reply = match stream.next().await {
                Ok(Some(reply)) => reply,
                Ok(None) => continue,
                Err(error) => {
                    link.wait_out(&error, Phase::Start).await?;
                    continue;
                }
            };
            // A change of this very moment: reading starts behind it.
            if let Some(event) = reply.documents.clone().next() {
                let event = event.map_err(|e| Error::new(ErrorKind::SourceBusy, Phase::Start, e.to_string()))?;
                if let Some(position) = MongoPosition::of_event(&event) {
                    return Ok(position);
                }
            }
            if let Some(position) = reply.token.map(MongoPosition::behind_batch).filter(|p| p.token.is_some()) {
                return Ok(position);
            }
            let now = async |client: mongodb::Client| Ok(topology::operation_time(&client.database("admin")).await?);
            match link.insist(Phase::Start, now).await? {
                Some(time) => return Ok(MongoPosition::at(time)),
                None => {
                    return Err(Error::config("the server tells neither a resume token nor its operation time")
                        .advise("use MongoDB 4.4 or later"));
                }
            }
        }
    }

    /// How far the snapshot has come that began at `position`, if it can go on: its changes since then
    /// must still be there.
    async fn resumable(
        &self,
        link: &mut Link,
        settings: &StreamSettings,
        position: Option<&MongoPosition>,
    ) -> Result<Option<Begun>, Error> {
        let Some(position) = position.filter(|_| self.config.snapshot.resumes && self.config.snapshot.mode.goes_on())
        else {
            return Ok(None);
        };
        let copied = match position.copied() {
            None => return Ok(None),
            Some(Ok(copied)) => copied,
            Some(Err(why)) => {
                warn!(why, "the stored state of the snapshot cannot be used, the snapshot begins anew");
                return Ok(None);
            }
        };
        let begin = position.clone().begin_of_snapshot();
        if self.config.snapshot.mode.streams() {
            let mut start = StartAt::behind(&begin);
            match link.open(settings, &mut start, false, &self.budget, Phase::Start).await {
                Ok(_) => {}
                Err(Ended::Final(error)) => return Err(located(error, &start)),
                Err(Ended::Lost(error)) => {
                    warn!(%error, "the position at which the snapshot began is lost, the snapshot begins anew");
                    return Ok(None);
                }
            }
        }
        info!("the previous snapshot was not finished, it goes on");
        Ok(Some(Begun { position: begin, copied }))
    }

    /// A complete snapshot; the position from which the stream goes on.
    async fn copy(
        &self,
        link: &mut Link,
        settings: &StreamSettings,
        resumed: Option<Begun>,
        announced: bool,
    ) -> Result<MongoPosition, Error> {
        let (mut begun, announced) = match resumed {
            Some(begun) => (begun, announced),
            None => (Begun { position: self.present(link, settings).await?, copied: Copied::default() }, false),
        };
        let portion = match self.part {
            Part::WholeCluster(portion) => portion,
            Part::Shard { .. } => Portion::ALL,
        };
        let plan = self.plan_of(&mut begun.copied, portion)?;
        let announced = announced && (plan.is_some() || portion == Portion::ALL);
        let position = begun.position.clone();
        let selection = SnapshotSelection::new(&self.config.snapshot.include)?;
        let order = Order { selection: &selection, portion, plan, kind: Kind::Initial { announced } };
        self.copy_selected(link, settings, begun, order).await?;
        Ok(position)
    }

    /// A snapshot that a signal asks for, while the stream waits. Its failure is its own; errors: the
    /// reader is gone.
    async fn block(&self, link: &mut Link, settings: &StreamSettings, asked: &BlockingSnapshot) -> Result<(), Error> {
        info!(signal = asked.signal, "the stream waits for a blocking snapshot");
        let taken = async {
            let selection = SnapshotSelection::asked(&asked.request)?;
            let begun = Begun { position: self.present(link, settings).await?, copied: Copied::default() };
            let order = Order { selection: &selection, portion: Portion::ALL, plan: None, kind: Kind::Blocking };
            self.copy_selected(link, settings, begun, order).await
        };
        if let Err(error) = taken.await {
            warn!(signal = asked.signal, %error, "the blocking snapshot failed and is not repeated, the stream goes on");
            self.send(Feed::Aborted).await?;
        }
        Ok(())
    }

    /// Nothing is streamed: what is left are the blocking snapshots that signals from outside ask for. Errors
    /// as those of [`Pump::read`]; it does not end otherwise.
    async fn listen(
        &self,
        link: &mut Link,
        settings: &StreamSettings,
        position: MongoPosition,
    ) -> Result<Option<MongoPosition>, Error> {
        self.send(Feed::Stream(position)).await?;
        let mut blocking = self.blocking.lock().await;
        loop {
            tokio::select! {
                Some(asked) = blocking.recv() => self.block(link, settings, &asked).await?,
                // However long nothing is asked for, that is no standstill.
                () = self.progress.rest(Duration::MAX) => {}
            }
        }
    }

    pub(crate) async fn copy_selected(
        &self,
        link: &mut Link,
        settings: &StreamSettings,
        begun: Begun,
        order: Order<'_>,
    ) -> Result<(), Error> {
        let Begun { position, copied } = begun;
        let Order { selection, portion, plan, kind } = order;
        let captured: Vec<_> =
            self.captured(link).await?.into_iter().filter(|l| !self.filter.is_signals(&l.namespace)).collect();
        let list = async |client| {
            let mut copied = copied.clone();
            let share = snapshot::Share { portion, plan: plan.as_ref(), choice: &self.config.snapshot.choice };
            let (sources, elsewhere) =
                snapshot::sources(&client, &self.config, selection, captured.clone(), share, &mut copied).await?;
            Ok((sources, elsewhere, copied))
        };
        let (sources, elsewhere, copied) = link.insist(Phase::Snapshot, list).await?;
        if kind == (Kind::Initial { announced: false }) {
            self.send(Feed::Start(position.clone().with_copied(&copied).begun())).await?;
        }
        let own = sources.iter().map(|s| (s.namespace.to_string(), s.expected.unwrap_or(0)));
        let expected: BTreeMap<String, SnapshotProgress> = own
            .chain(elsewhere.iter().map(|namespace| (namespace.to_string(), 0)))
            .map(|(name, expected)| (name, SnapshotProgress { expected, ..SnapshotProgress::default() }))
            .collect();
        let spread = copied.spread().cloned();
        let blocking = kind == Kind::Blocking;
        self.send(Feed::Snapshot { position: position.clone(), expected, copied, blocking }).await?;
        let copier = Copier {
            client: link.client.clone(),
            out: self.out.clone(),
            budget: self.budget.clone(),
            timeout: settings.timeout(),
            begun: position.told_until(),
            sessions: Arc::default(),
        };
        let reading = async {
            let replaced = self.replaced(spread.as_ref().filter(|_| !portion.is_first()));
            let read = copier.copy(sources, self.config.snapshot.threads, replaced).await;
            let read = read.map_err(|failed| self.unread(failed))?;
            if let Some(spread) = spread.as_ref().filter(|_| portion.is_first()) {
                self.gathered(spread).await?;
            }
            Ok::<bool, Error>(read)
        };
        let read = tokio::select! {
            read = reading => read?,
            never = window::watch(&link.client, position.time()) => match never {},
        };
        for namespace in elsewhere {
            self.send(Feed::CollectionRead(namespace)).await?;
        }
        match (portion.is_first(), read) {
            (true, _) => self.send(Feed::Copied).await,
            (false, true) => self.send(Feed::PortionCopied).await,
            // Another plan has taken the place of this one.
            (false, false) => Ok(()),
        }
    }

    fn unread(&self, Failed { namespace, error }: Failed) -> Error {
        PartitionProgress::count(&self.progress.disconnects, 1);
        let message = format!("Snapshotting of collection {namespace} failed");
        let mut whole = Error { message, ..error.clone() };
        whole.causes.insert(0, error.message);
        whole
    }

    /// Hands over one reply after the other, opening the stream again after errors that pass and
    /// behind events that close it.
    async fn follow(
        &self,
        link: &mut Link,
        settings: &StreamSettings,
        mut start: StartAt,
        mut opened: Option<ChangeStream>,
    ) -> Followed {
        let mut replies = 0;
        loop {
            let stream = match opened.take() {
                Some(stream) => Ok(stream),
                None => link.open(settings, &mut start, true, &self.budget, Phase::Stream).await,
            };
            info!(%start, "the change stream is read");
            let ended = match stream {
                Ok(stream) => self.follow_one(link, stream, &mut start, &mut replies).await,
                Err(ended) => Err(ended),
            };
            let ended = match ended {
                Ok(Some(asked)) => self.block(link, settings, &asked).await.map_err(Ended::from),
                Ok(None) => Ok(()),
                Err(ended) => Err(ended),
            };
            match ended {
                Ok(()) => {}
                Err(Ended::Final(error)) => return Followed { ended: Ended::Final(located(error, &start)), replies },
                Err(ended) => return Followed { ended, replies },
            }
        }
    }

    /// Until the stream must be opened again, at `start`: because it was closed, or after a snapshot
    /// for which it has to wait.
    async fn follow_one(
        &self,
        link: &mut Link,
        mut stream: ChangeStream,
        start: &mut StartAt,
        replies: &mut u64,
    ) -> Result<Option<BlockingSnapshot>, Ended> {
        let mut blocking = self.blocking.lock().await;
        let opened_at = start.clone();
        let opened_replies = *replies + 1;
        loop {
            let next = tokio::select! {
                // What was handed over counts, the answer under way comes again.
                Some(asked) = blocking.recv() => return Ok(Some(asked)),
                next = stream.next() => next,
            };
            let reply = match next {
                Ok(Some(reply)) => reply,
                Ok(None) => break,
                Err(error) => return link.wait_out(&error, Phase::Stream).await.map(|()| None),
            };
            // The first one is that of the opening.
            *replies += 1;
            if *replies > opened_replies {
                link.answered();
            }
            match reply.token.clone().map(MongoPosition::behind_batch) {
                Some(position) if position.token.is_some() => *start = StartAt::behind(&position),
                _ => warn!("Resume token not available on this poll"),
            }
            let exhausted = reply.exhausted;
            self.send(Feed::Changes(reply)).await?;
            if exhausted {
                break;
            }
        }
        info!("change stream invalidated, opening it again behind the event that closed it");
        if *start == opened_at {
            // Closed without an event: not at full speed.
            self.progress.rest(self.config.connection.backoff_initial).await;
        }
        Ok(None)
    }
}

impl Drop for Pump {
    /// Whoever tries no more is not trying again.
    fn drop(&mut self) {
        self.progress.end_absence();
    }
}

/// How far following the stream came.
struct Followed {
    ended: Ended,
    replies: u64,
}

/// The error, and where in the stream it happened.
fn located(mut error: Error, start: &StartAt) -> Error {
    error.causes.push(format!("the change stream was read from the position {start}"));
    error
}

pub(crate) fn standalone() -> Error {
    Error::config("the server is standalone and has no change streams").advise(
        "make it a replica set, of one member if need be: start mongod with --replSet rs0, run rs.initiate(), and add \
         replicaSet=rs0 to mongodb.connection.string",
    )
}

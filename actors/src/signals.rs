//! Listens to the signal channels outside of the source, for all partitions of a task.
//!
//! Every partition hears every signal; which collections are its own, its reader knows. Invariants: a
//! signal is confirmed to its channel when every partition has stored an offset that contains what followed
//! from it, and those of a channel in its order; a channel that fails is tried again and never ends the
//! task; what there is no room for waits in its channel; listening ends with the run.
//! It does not: understand a signal.

use std::collections::VecDeque;
use std::sync::Arc;

use thalweg_config::Properties;
use thalweg_core::delivery::{ProducerFactory, ProducerIdentity};
use thalweg_core::signal::{Channels, Followed, Inbox, KAFKA, Mark, Received, SignalChannel};
use tokio::task::JoinHandle;
use tracing::{Instrument, info, warn};

use crate::memory::UnitMemory;
use crate::rest_signals::RestSignals;

/// The inboxes of a task's partitions, and what fills them.
pub(crate) struct Signals {
    inboxes: Vec<Inbox>,
    listener: Option<JoinHandle<()>>,
}

/// What listening needs.
pub(crate) struct Listener {
    pub channels: Channels,
    pub identity: ProducerIdentity,
    pub producers: Arc<dyn ProducerFactory>,
    pub config: Properties,
    pub memory: Arc<UnitMemory>,
    /// The channel of signals that the cluster keeps.
    pub rest: RestSignals,
    /// Other tasks of the connector follow the same signals.
    pub shares: bool,
    /// What the partitions' stored positions say.
    pub followed: Vec<Followed>,
}

impl Signals {
    /// For so many partitions. Without a listener nothing ever arrives.
    pub(crate) fn start(partitions: usize, follows: bool, listener: Option<Listener>) -> Self {
        let inboxes: Vec<Inbox> = (0..partitions).map(|_| Inbox::default()).collect();
        let follows = follows && partitions > 0;
        let listener = listener.map(|mut listener| {
            if !follows {
                listener.channels = listener.channels.of_every_task();
            }
            listener
        });
        let listener = listener.filter(|l| l.channels.is_outside()).map(|listener| {
            let span = listener.memory.span.clone();
            let followers = if follows { inboxes.clone() } else { Vec::new() };
            tokio::spawn(listener.run(followers).instrument(span))
        });
        Self { inboxes, listener }
    }

    pub(crate) fn inbox(&self, partition: usize) -> Inbox {
        self.inboxes.get(partition).cloned().unwrap_or_default()
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        if let Some(listener) = &self.listener {
            listener.abort();
        }
    }
}

impl Listener {
    async fn run(mut self, inboxes: Vec<Inbox>) {
        let owner = format!("{}-{}", self.identity.connector, self.identity.task);
        let mut file = self.channels.open_file(&owner);
        if let Some(path) = &self.channels.file {
            warn!(path, "signals are read from a file of whichever host runs the task; all of them must share it");
        }
        let mut kafka: Option<Box<dyn SignalChannel>> = None;
        let mut post = Post { inboxes, ..Post::default() };
        loop {
            post.look();
            let mut settled = true;
            if let Some(channel) = &mut file {
                settled &= serve(&self.memory, channel, &mut post).await;
            }
            if self.channels.rest {
                settled &= serve(&self.memory, &mut self.rest, &mut post).await;
            }
            if let (Some(wanted), None) = (&self.channels.kafka, &kafka) {
                let from = self.followed.iter().filter_map(|f| f.number(KAFKA, &wanted.topic)).min();
                let from = from.map(|number| number + 1);
                match self.producers.signals(&self.identity, wanted, &self.config, from).await {
                    Ok(channel) => {
                        info!(topic = %wanted.topic, "listening for signals");
                        kafka = Some(channel);
                    }
                    Err(error) => {
                        warn!(channel = "kafka", error = %self.memory.hide(&error.to_string()), "no signals can be read");
                    }
                }
            }
            if let Some(channel) = &mut kafka {
                settled &= serve(&self.memory, &mut **channel, &mut post).await;
                if self.shares
                    && let Some((wanted, begins)) = self.channels.kafka.as_ref().zip(channel.begins())
                {
                    post.begin(Mark { channel: KAFKA, series: wanted.topic.clone(), number: begins - 1, time_ms: 0 });
                }
            }
            if settled && post.marks.is_empty() {
                post.all_settled();
            }
            post.deliver();
            tokio::time::sleep(self.channels.poll_interval).await;
        }
    }
}

/// Confirms what is stored, and takes what has arrived. False: not everything so far is confirmed.
async fn serve(memory: &UnitMemory, channel: &mut dyn SignalChannel, post: &mut Post) -> bool {
    let name = channel.name();
    let waiting = post.waiting_of(name);
    let settled = channel.settle(waiting).await;
    if let Err(error) = &settled {
        let error = memory.hide(&error.to_string());
        warn!(channel = name, %error, "signals that were followed cannot be confirmed; they may come again");
    }
    let settled = matches!(settled, Ok(true));
    if !post.held_back.is_empty() {
        return settled;
    }
    match channel.poll().await {
        Ok(signals) => post.held_back.extend(signals),
        Err(error) => {
            warn!(channel = name, error = %memory.hide(&error.to_string()), "signals cannot be read");
        }
    }
    settled && post.held_back.is_empty()
}

/// Signals between the channels and the readers.
#[derive(Default)]
struct Post {
    inboxes: Vec<Inbox>,
    /// Those that were handed to the readers and are not stored by all of them, in their order; `None`: a place.
    marks: VecDeque<Option<Mark>>,
    /// So many were stored before these.
    stored: u64,
    /// There is no room for these yet.
    held_back: VecDeque<Received>,
    /// The readers were told where listening to a channel that tasks share begins.
    begun: bool,
}

impl Post {
    /// Looks what the readers have stored.
    fn look(&mut self) {
        // Where nobody follows them, they wait for nobody.
        let all = self.stored + self.marks.len() as u64;
        let stored = self.inboxes.iter().map(Inbox::count_stored).min().unwrap_or(all);
        let news = usize::try_from(stored - self.stored).unwrap_or(usize::MAX).min(self.marks.len());
        self.marks.drain(..news);
        self.stored = stored;
    }

    /// The first signal of a channel that is not stored.
    fn waiting_of(&self, channel: &str) -> Option<&Mark> {
        let held_back = self.held_back.iter().filter(|r| r.signal.is_some()).map(|r| &r.mark);
        self.marks.iter().flatten().chain(held_back).find(|mark| mark.channel == channel)
    }

    fn all_settled(&self) {
        for inbox in &self.inboxes {
            inbox.settle(self.stored);
        }
    }

    /// Tells the readers where listening begins, before the first signal.
    fn begin(&mut self, mark: Mark) {
        if !std::mem::replace(&mut self.begun, true) {
            self.held_back.push_front(Received { signal: None, mark });
        }
    }

    /// Hands over what there is room for.
    fn deliver(&mut self) {
        while self.inboxes.iter().all(Inbox::has_room) {
            let Some(received) = self.held_back.pop_front() else { return };
            let mark = &received.mark;
            if let Some(signal) = &received.signal {
                info!(channel = mark.channel, signal = signal.id, kind = signal.kind, "signal received");
            }
            self.marks.push_back(received.signal.is_some().then(|| mark.clone()));
            for inbox in &self.inboxes {
                inbox.put(received.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value as Json;
    use thalweg_core::signal::Signal;

    use super::*;

    fn received(channel: &'static str, number: i64) -> Received {
        let signal = Signal { id: String::new(), kind: "log".into(), data: Json::Null };
        Received { signal: Some(signal), mark: Mark { channel, series: "s".into(), number, time_ms: 0 } }
    }

    async fn follow(inbox: &Inbox, followed: &mut Followed, signals: usize) {
        for _ in 0..signals {
            followed.note(&inbox.take().await.mark);
        }
        inbox.stored(followed);
    }

    fn waiting(post: &mut Post, channel: &str) -> Option<i64> {
        post.look();
        post.waiting_of(channel).map(|mark| mark.number)
    }

    /// A signal waits for the last of the partitions, and nothing is lost where there is no room.
    #[tokio::test]
    async fn a_signal_is_confirmed_when_all_partitions_have_stored_it() {
        let inboxes = vec![Inbox::default(), Inbox::default()];
        let mut post = Post { inboxes: inboxes.clone(), ..Post::default() };
        post.held_back.extend([received("kafka", 7), received("file", 1), received("kafka", 8)]);
        assert_eq!(
            (waiting(&mut post, "kafka"), waiting(&mut post, "file")),
            (Some(7), Some(1)),
            "not handed over yet"
        );
        post.deliver();
        let mut followed = [Followed::default(), Followed::default()];
        follow(&inboxes[0], &mut followed[0], 3).await;
        assert_eq!((waiting(&mut post, "kafka"), waiting(&mut post, "file")), (Some(7), Some(1)));
        follow(&inboxes[1], &mut followed[1], 1).await;
        assert_eq!((waiting(&mut post, "kafka"), waiting(&mut post, "file")), (Some(8), Some(1)));
        follow(&inboxes[1], &mut followed[1], 2).await;
        assert_eq!((waiting(&mut post, "kafka"), waiting(&mut post, "file")), (None, None));
        post.all_settled();
        assert!(inboxes.iter().all(Inbox::is_settled));

        // A place is no signal: nobody waits for it in the channel, and all have to store it.
        post.begin(received("kafka", 8).mark);
        post.begin(received("kafka", 99).mark);
        post.deliver();
        assert_eq!((waiting(&mut post, "kafka"), post.marks.len()), (None, 1));
        for (inbox, followed) in inboxes.iter().zip(&mut followed) {
            let place = inbox.take().await;
            assert_eq!((place.signal, place.mark.number), (None, 8));
            inbox.stored(followed);
        }
        post.look();
        assert!(post.marks.is_empty());

        post.held_back.extend((0..1_500).map(|number| received("file", number + 2)));
        post.deliver();
        let left = post.held_back.len();
        assert!(left > 0 && inboxes.iter().all(|inbox| !inbox.has_room()));
        for (inbox, followed) in inboxes.iter().zip(&mut followed) {
            follow(inbox, followed, 1_500 - left).await;
        }
        post.deliver();
        assert_eq!((waiting(&mut post, "file"), post.held_back.len()), (Some(1_502 - left as i64), 0));
    }
}

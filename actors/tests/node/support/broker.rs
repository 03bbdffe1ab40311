//! A recording broker: messages land in the order of sending, answers come when the test wants.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use thalweg_config::{OptionTable, Properties};
use thalweg_core::delivery::{
    Acks, DeliveryCheck, DeliveryMode, Message, Producer, ProducerFactory, ProducerIdentity, Refused,
};
use thalweg_core::relational::history::{HistoryStore, HistoryTopic};
use thalweg_core::signal::{KafkaSignals, SignalChannel};
use thalweg_core::{Error, ErrorKind, Phase};
use tokio::sync::Notify;

use super::random::Random;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Landed {
    pub topic: String,
    pub key: String,
    pub value: String,
    pub headers: Vec<(String, String)>,
    pub acked: bool,
    /// Number of the producer that sent it.
    pub producer: usize,
    pub seq: u64,
}

#[derive(Default)]
pub struct Rules {
    /// Answer nothing until [`Broker::release`].
    pub hold: bool,
    /// Land and answer in random portions.
    pub random: Option<Random>,
    /// Messages are held back until they are handed over.
    pub gather: bool,
    /// Most messages in flight; `Full` above.
    pub room: Option<usize>,
    /// Messages longer than this are refused by the client.
    pub client_limit: Option<usize>,
    /// Messages longer than this are refused by the broker, later.
    pub broker_limit: Option<usize>,
    /// The messages with these numbers of all messages ever sent share a batch that is refused.
    pub refused_batches: Vec<usize>,
    /// Fails with this error at the message with this number of all messages ever sent.
    pub fail_at: Option<(usize, Error)>,
    pub panic_at: Option<usize>,
    pub open_errors: VecDeque<Error>,
    pub topic_errors: VecDeque<Error>,
}

#[derive(Default)]
struct State {
    /// Number of crashes.
    life: usize,
    rules: Rules,
    /// Taken, not yet handed over.
    held: VecDeque<Landed>,
    /// Handed over, not yet landed.
    pending: VecDeque<Landed>,
    landed: Vec<Landed>,
    /// Landed, not yet answered: index into `landed`.
    unanswered: Vec<usize>,
    acks: Option<(usize, Arc<dyn Acks>)>,
    sent: usize,
    opened: usize,
    purged: usize,
    live: usize,
    most_live: usize,
    topics: Vec<String>,
    last: String,
    /// Told once, when so many messages were sent.
    crash: Option<(usize, Arc<Notify>)>,
}

pub struct Broker {
    state: Mutex<State>,
    moved: Notify,
}

impl Broker {
    pub fn new() -> Arc<Self> {
        Arc::new(Self { state: Mutex::default(), moved: Notify::new() })
    }
    pub fn producers(self: &Arc<Self>) -> Producers {
        Producers { life: self.state.lock().life, broker: self.clone() }
    }
    /// The process dies: what has not landed never does, what was not answered never is.
    pub fn crash(&self) {
        let mut state = self.state.lock();
        state.life += 1;
        state.held.clear();
        state.pending.clear();
        state.unanswered.clear();
        state.acks = None;
    }
    pub fn rules<T>(&self, change: impl FnOnce(&mut Rules) -> T) -> T {
        change(&mut self.state.lock().rules)
    }
    pub fn landed(&self) -> Vec<Landed> {
        self.state.lock().landed.clone()
    }
    pub fn values(&self) -> Vec<String> {
        self.state.lock().landed.iter().map(|m| m.value.clone()).collect()
    }
    pub fn sent(&self) -> usize {
        self.state.lock().sent
    }
    /// Value of the message that was sent last.
    pub fn last(&self) -> String {
        self.state.lock().last.clone()
    }
    pub fn opened(&self) -> usize {
        self.state.lock().opened
    }
    pub fn purged(&self) -> usize {
        self.state.lock().purged
    }
    pub fn live(&self) -> usize {
        self.state.lock().live
    }
    /// Most producers that were open at the same time.
    pub fn most_live(&self) -> usize {
        self.state.lock().most_live
    }
    pub fn topics(&self) -> Vec<String> {
        self.state.lock().topics.clone()
    }
    /// Tells when so many messages were sent in all.
    pub fn crash_after(&self, messages: usize) -> Arc<Notify> {
        let told = Arc::new(Notify::new());
        self.state.lock().crash = Some((messages, told.clone()));
        told
    }
    /// Answers everything and holds nothing back any more.
    pub fn release(&self) {
        let mut state = self.state.lock();
        state.rules.hold = false;
        state.settle();
        self.moved.notify_waiters();
    }
    /// Answers one landed message by its number.
    pub fn answer(&self, seq: u64) {
        let mut state = self.state.lock();
        state.land(usize::MAX);
        let at = state.unanswered.iter().position(|i| state.landed[*i].seq == seq).unwrap();
        state.answer(at);
    }
    /// Whether a message with this topic and value is acknowledged.
    pub fn is_acked(&self, topic: &str, value: &str) -> bool {
        self.state.lock().landed.iter().any(|m| m.acked && m.topic == topic && m.value == value)
    }
}

impl State {
    fn land(&mut self, most: usize) {
        for _ in 0..most.min(self.pending.len()) {
            let Some(message) = self.pending.pop_front() else { return };
            self.unanswered.push(self.landed.len());
            self.landed.push(message);
        }
    }
    fn answer(&mut self, at: usize) {
        let index = self.unanswered.remove(at);
        let message = &mut self.landed[index];
        let Some((producer, acks)) = &self.acks else { return };
        if message.producer == *producer {
            message.acked = true;
            acks.delivered(message.seq);
        }
    }
    /// Lands and answers everything, in an order of its own.
    fn settle(&mut self) {
        self.land(usize::MAX);
        while !self.unanswered.is_empty() {
            let at = match &mut self.rules.random {
                Some(random) => random.below(self.unanswered.len()),
                None => 0,
            };
            self.answer(at);
        }
    }
    /// What happens by itself after a send.
    fn go_on(&mut self) {
        if self.rules.hold {
            self.land(usize::MAX);
            return;
        }
        let Some(random) = &mut self.rules.random else { return self.settle() };
        let (land, answer) = (random.below(4), random.below(4));
        self.land(land);
        for _ in 0..answer.min(self.unanswered.len()) {
            let most = self.unanswered.len();
            let at = self.rules.random.as_mut().map_or(0, |random| random.below(most));
            self.answer(at);
        }
    }
    fn in_flight(&self) -> usize {
        self.pending.len() + self.unanswered.len()
    }
}

/// Makes producers for a broker, as long as their process lives.
pub struct Producers {
    broker: Arc<Broker>,
    life: usize,
}

#[async_trait]
impl ProducerFactory for Producers {
    fn options(&self) -> &'static OptionTable {
        const NONE: OptionTable = OptionTable { title: "", options: &[], open_prefixes: &[""], cross_checks: &[] };
        &NONE
    }

    fn overrides(&self, _: &Properties) -> thalweg_config::Validation {
        thalweg_config::Validation::default()
    }

    fn check(&self, _: &Properties, _: DeliveryMode) -> DeliveryCheck {
        DeliveryCheck::default()
    }

    async fn open(
        &self,
        _: ProducerIdentity,
        _: DeliveryMode,
        _: &Properties,
        acks: Arc<dyn Acks>,
    ) -> Result<Box<dyn Producer>, Error> {
        let mut state = self.broker.state.lock();
        if let Some(error) = state.rules.open_errors.pop_front() {
            return Err(error);
        }
        state.opened += 1;
        state.live += 1;
        state.most_live = state.most_live.max(state.live);
        let number = state.opened;
        state.acks = Some((number, acks.clone()));
        Ok(Box::new(Recorder { broker: self.broker.clone(), life: self.life, number, acks, ended: false }))
    }

    async fn signals(
        &self,
        _: &ProducerIdentity,
        _: &KafkaSignals,
        _: &Properties,
        _: Option<i64>,
    ) -> Result<Box<dyn SignalChannel>, Error> {
        Err(Error::config("this broker has no signals"))
    }

    fn history(&self, _: &HistoryTopic) -> Result<Box<dyn HistoryStore>, Error> {
        Err(Error::config("this broker has no schema histories"))
    }
}

struct Recorder {
    broker: Arc<Broker>,
    life: usize,
    number: usize,
    acks: Arc<dyn Acks>,
    ended: bool,
}

impl Recorder {
    fn end(&mut self) {
        if !std::mem::replace(&mut self.ended, true) {
            let mut state = self.broker.state.lock();
            state.purged += 1;
            state.held.retain(|m| m.producer != self.number);
            state.pending.retain(|m| m.producer != self.number);
            let State { unanswered, landed, .. } = &mut *state;
            unanswered.retain(|i| landed[*i].producer != self.number);
        }
    }
}

fn text(bytes: Option<&[u8]>) -> String {
    bytes.map_or_else(|| "null".to_owned(), |bytes| String::from_utf8(bytes.to_vec()).unwrap())
}

fn too_large() -> Error {
    Error::new(ErrorKind::MessageTooLarge, Phase::Deliver, "the message is larger than the topic allows")
}

#[async_trait]
impl Producer for Recorder {
    async fn prepare_topic(&mut self, topic: &Arc<str>) -> Result<(), Error> {
        let mut state = self.broker.state.lock();
        if let Some(error) = state.rules.topic_errors.pop_front() {
            return Err(error);
        }
        state.topics.push(topic.to_string());
        Ok(())
    }

    fn try_send(&mut self, seq: u64, message: &Message<'_>) -> Result<(), Refused> {
        let mut guard = self.broker.state.lock();
        let state = &mut *guard;
        assert!(!self.ended, "sent after the purge");
        if state.life != self.life {
            // The process is dead; nobody sees what it does.
            return Ok(());
        }
        let size = message.key.map_or(0, <[u8]>::len) + message.value.map_or(0, <[u8]>::len);
        if state.rules.client_limit.is_some_and(|limit| size > limit) {
            return Err(Refused::Failed(too_large()));
        }
        if state.rules.room.is_some_and(|room| state.in_flight() >= room) {
            return Err(Refused::Full);
        }
        state.sent += 1;
        if state.rules.panic_at == Some(state.sent) {
            state.rules.panic_at = None;
            drop(guard);
            panic!("the client exploded");
        }
        if let Some((_, error)) = state.rules.fail_at.take_if(|(at, _)| *at == state.sent) {
            drop(guard);
            self.acks.failed(seq, error);
            return Ok(());
        }
        if state.rules.refused_batches.contains(&state.sent) {
            drop(guard);
            self.acks.failed(seq, too_large());
            return Ok(());
        }
        if state.rules.broker_limit.is_some_and(|limit| size > limit) {
            drop(guard);
            self.acks.failed(seq, too_large());
            return Ok(());
        }
        let landed = Landed {
            topic: message.topic.to_string(),
            key: text(message.key),
            value: text(message.value),
            headers: message.headers.iter().map(|(name, value)| (name.to_string(), text(value.as_deref()))).collect(),
            acked: false,
            producer: self.number,
            seq,
        };
        state.last.clone_from(&landed.value);
        if state.rules.gather {
            state.held.push_back(landed);
        } else {
            state.pending.push_back(landed);
            state.go_on();
        }
        if let Some((_, told)) = state.crash.take_if(|(at, _)| state.sent >= *at) {
            told.notify_one();
        }
        Ok(())
    }

    async fn room(&mut self) {
        loop {
            let moved = self.broker.moved.notified();
            {
                let mut state = self.broker.state.lock();
                if !state.rules.hold {
                    state.settle();
                    return;
                }
            }
            moved.await;
        }
    }

    fn holds_back(&self) -> bool {
        !self.broker.state.lock().held.is_empty()
    }

    async fn ready(&mut self) {
        if !self.holds_back() {
            std::future::pending::<()>().await;
        }
    }

    fn hand_over(&mut self) -> Result<(), Error> {
        let mut guard = self.broker.state.lock();
        let State { held, pending, .. } = &mut *guard;
        pending.append(held);
        guard.go_on();
        Ok(())
    }

    async fn flush(&mut self, deadline: Duration) -> Result<(), Error> {
        let settled = async {
            loop {
                let moved = self.broker.moved.notified();
                {
                    let mut state = self.broker.state.lock();
                    if !state.rules.hold {
                        state.settle();
                    }
                    if state.in_flight() == 0 {
                        return;
                    }
                }
                moved.await;
            }
        };
        tokio::time::timeout(deadline, settled)
            .await
            .map_err(|_| Error::new(ErrorKind::Timeout, Phase::Deliver, "messages were not acknowledged in time"))
    }

    fn purge(&mut self) {
        self.end();
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.end();
        let mut state = self.broker.state.lock();
        state.live -= 1;
        state.acks.take_if(|(number, _)| *number == self.number);
    }
}

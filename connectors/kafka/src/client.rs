//! The native producer: one librdkafka client with its polling thread, and everything that has to
//! talk to it below the safe API.
//!
//! The only file with unsafe code. Invariants: a topic handle keeps the client alive and is released
//! before it; a message's opaque is its sequence number; key and value are copied by librdkafka
//! during the call; headers are handed over on success and freed here on failure. Closing a client
//! joins threads, so it happens on a thread of its own and never blocks a caller.
//!
//! It does not: decide when to send, count what is on its way, or know transactions' rules.

use std::ffi::{CStr, CString};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::time::{Duration, Instant};

use rdkafka::config::RDKafkaLogLevel;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::Message as _;
use rdkafka::producer::{DeliveryResult, Producer as _, ProducerContext, PurgeConfig, ThreadedProducer};
use rdkafka::types::{RDKafka, RDKafkaTopic};
use rdkafka::{ClientConfig, ClientContext};
use rdkafka_sys as sys;
use thalweg_core::delivery::{Acks, EncodedHeaders, Message};
use thalweg_core::{Error, ErrorKind, Phase};

use crate::budget;
use crate::errors::{self, Coordinates};
use crate::flow::Flow;
use crate::trouble::{self, Trouble};

// A sequence number travels in a pointer.
const _: () = assert!(usize::BITS >= 64);

/// What a delivery report means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reports {
    /// Each report is an acknowledgement and frees room.
    Acknowledge { floor: u64, tolerates_refusal: bool },
    /// Only failures count; a commit acknowledges.
    FailuresOnly,
}

/// Receives the client's events, on the client's threads.
pub(crate) struct SinkContext {
    pub(crate) name: String,
    pub(crate) flow: Arc<Flow>,
    pub(crate) acks: Arc<dyn Acks>,
    pub(crate) reports: Reports,
    pub(crate) batch_size: u64,
    pub(crate) trouble: Trouble,
    /// Set once the client exists; valid while it delivers reports.
    native: AtomicPtr<RDKafka>,
}

impl SinkContext {
    pub(crate) fn new(name: String, flow: Arc<Flow>, acks: Arc<dyn Acks>, reports: Reports, batch_size: u64) -> Self {
        let native = AtomicPtr::new(ptr::null_mut());
        Self { name, flow, acks, reports, batch_size, trouble: Trouble::default(), native }
    }

    #[cold]
    fn refused(&self, code: RDKafkaErrorCode, at: Coordinates<'_>, seq: u64) {
        let error = match self.fatal() {
            Some((fatal, text)) => {
                let mut error = errors::refused_record(fatal, at, self.batch_size);
                error.causes.push(text);
                error
            }
            None => errors::refused_record(code, at, self.batch_size),
        };
        let error = self.trouble.enrich(error);
        let tolerated = matches!(self.reports, Reports::Acknowledge { tolerates_refusal: true, .. })
            && matches!(error.kind, ErrorKind::MessageTooLarge | ErrorKind::ValueInvalid);
        if tolerated {
            self.acks.failed(seq, error);
        } else {
            self.flow.fail(&*self.acks, seq, error);
        }
    }

    /// The error that ended the client, behind the generic code that records fail with.
    fn fatal(&self) -> Option<(RDKafkaErrorCode, String)> {
        fatal_error(self.native.load(Ordering::Acquire))
    }
}

impl ClientContext for SinkContext {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, text: &str) {
        trouble::log(&self.name, level, facility, text);
    }
    fn error(&self, error: KafkaError, reason: &str) {
        self.trouble.heard(&self.name, &error, reason);
    }
}

impl ProducerContext for SinkContext {
    type DeliveryOpaque = usize;

    fn delivery(&self, result: &DeliveryResult<'_>, seq: usize) {
        if self.flow.is_stopped() {
            return;
        }
        let seq = seq as u64;
        let message = match result {
            Ok(message) => message,
            Err((error, message)) => {
                let at = Coordinates {
                    topic: message.topic(),
                    partition: Some(message.partition()),
                    key: message.key(),
                    bytes: (message.key_len() + message.payload_len()) as u64,
                };
                self.refused(error.rdkafka_error_code().unwrap_or(RDKafkaErrorCode::Fail), at, seq);
                message
            }
        };
        if let Reports::Acknowledge { floor, .. } = self.reports {
            if result.is_ok() {
                self.acks.delivered(seq);
            }
            self.flow.advance(budget::cost(floor, message.key_len(), message.payload_len()));
        }
    }
}

/// Outcome of one call that makes a transaction advance.
#[derive(Debug)]
pub(crate) enum Step {
    Done,
    /// Not yet; the same call again continues it.
    Again,
    Failed(Error),
}

/// A running librdkafka producer.
pub(crate) struct Client {
    producer: Option<ThreadedProducer<SinkContext>>,
    native: *mut RDKafka,
}

// SAFETY: librdkafka's client may be used from any thread; the pointer lives as long as `producer`.
unsafe impl Send for Client {}
// SAFETY: as above.
unsafe impl Sync for Client {}

impl Client {
    /// Starts the client's threads; connects in the background. Takes milliseconds: not for a
    /// runtime's worker thread.
    pub(crate) fn start(config: &ClientConfig, context: SinkContext) -> Result<Arc<Self>, Error> {
        let name = context.name.clone();
        let producer: ThreadedProducer<SinkContext> = config
            .create_with_context(context)
            .map_err(|e| errors::client(Phase::Start, format!("creating the Kafka client {name}"), &e))?;
        let native = producer.client().native_ptr();
        producer.client().context().native.store(native, Ordering::Release);
        Ok(Arc::new(Self { producer: Some(producer), native }))
    }

    fn producer(&self) -> Option<&ThreadedProducer<SinkContext>> {
        self.producer.as_ref()
    }

    pub(crate) fn context(&self) -> Option<&SinkContext> {
        self.producer().map(|p| &**p.client().context())
    }

    /// Waits until a broker has answered. Blocks.
    pub(crate) fn connect(&self, deadline: Duration) -> Result<(), Error> {
        const SLICE: Duration = Duration::from_millis(250);
        let (Some(producer), Some(context)) = (self.producer(), self.context()) else { return Err(closed()) };
        let end = Instant::now() + deadline;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if producer.client().fetch_cluster_id(left.min(SLICE)).is_some() {
                return Ok(());
            }
            if left.is_zero() || context.trouble.is_final() {
                let what = format!("no Kafka broker answered {} within {} ms", context.name, deadline.as_millis());
                return Err(context.trouble.explain(Phase::Start, what));
            }
        }
    }

    /// Metadata of one topic; lets the broker create it if it is set up to. Blocks.
    pub(crate) fn ask_for_topic(&self, topic: &str, timeout: Duration) -> Result<TopicState, Error> {
        let producer = self.producer().ok_or_else(closed)?;
        let what = || format!("asking for topic {topic}");
        let metadata = producer
            .client()
            .fetch_metadata(Some(topic), timeout)
            .map_err(|e| self.explained(errors::client(Phase::Deliver, what(), &e)))?;
        let Some(found) = metadata.topics().first() else { return Ok(TopicState::Missing) };
        Ok(match found.error() {
            None if found.partitions().is_empty() => TopicState::Missing,
            None => TopicState::Exists,
            Some(error) => topic_state(RDKafkaErrorCode::from(error)),
        })
    }

    /// Whether a topic exists, without creating it. Blocks.
    pub(crate) fn describe_topic(&self, topic: &str, timeout: Duration) -> Result<TopicState, Error> {
        let what = || format!("describing topic {topic}");
        let name = CString::new(topic).map_err(|e| errors::client(Phase::Deliver, what(), &e.into()))?;
        let millis = i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX).max(1);
        // SAFETY: every object made here is destroyed here, after the last use of what it owns; the
        // names are copied by the collection; the event owns the result that is read from it.
        let code = unsafe {
            let mut names = [name.as_ptr()];
            let topics = sys::rd_kafka_TopicCollection_of_topic_names(names.as_mut_ptr(), names.len());
            let options =
                sys::rd_kafka_AdminOptions_new(self.native, sys::rd_kafka_admin_op_t::RD_KAFKA_ADMIN_OP_DESCRIBETOPICS);
            let mut text = [0; 256];
            sys::rd_kafka_AdminOptions_set_request_timeout(options, millis, text.as_mut_ptr(), text.len());
            let queue = sys::rd_kafka_queue_new(self.native);
            sys::rd_kafka_DescribeTopics(self.native, topics, options, queue);
            let event = sys::rd_kafka_queue_poll(queue, millis.saturating_add(1000));
            let code = if event.is_null() { RDKafkaErrorCode::OperationTimedOut } else { described(event) };
            if !event.is_null() {
                sys::rd_kafka_event_destroy(event);
            }
            sys::rd_kafka_queue_destroy(queue);
            sys::rd_kafka_AdminOptions_destroy(options);
            sys::rd_kafka_TopicCollection_destroy(topics);
            code
        };
        match topic_state(code) {
            TopicState::Refused(code) if errors::kind(code) == ErrorKind::BrokerUnavailable => {
                Err(self.explained(errors::coded(Phase::Deliver, what(), code)))
            }
            state => Ok(state),
        }
    }

    fn explained(&self, error: Error) -> Error {
        match self.context() {
            Some(context) => context.trouble.enrich(error),
            None => error,
        }
    }

    /// One slice of shutting out former owners of the transactional id. Blocks up to `slice`.
    pub(crate) fn init_transactions(&self, slice: Duration) -> Step {
        // SAFETY: the client lives; the call blocks at most `slice`.
        self.step(Phase::Start, "starting transactions", unsafe {
            sys::rd_kafka_init_transactions(self.native, millis(slice))
        })
    }

    /// Local: nothing is sent before the first record. Waits for the client's main thread only.
    pub(crate) fn begin_transaction(&self) -> Result<(), Error> {
        const WHAT: &str = "beginning a transaction";
        // SAFETY: the client lives.
        match self.step(Phase::Deliver, WHAT, unsafe { sys::rd_kafka_begin_transaction(self.native) }) {
            Step::Done => Ok(()),
            Step::Failed(error) => Err(error),
            Step::Again => Err(self.explained(Error::new(ErrorKind::BrokerUnavailable, Phase::Deliver, WHAT))),
        }
    }

    /// One slice of a commit: waits for the records, then for the coordinator. Blocks up to `slice`.
    pub(crate) fn commit_transaction(&self, slice: Duration) -> Step {
        // SAFETY: the client lives; its polling thread serves the delivery reports meanwhile.
        self.step(Phase::Commit, "committing a transaction", unsafe {
            sys::rd_kafka_commit_transaction(self.native, millis(slice))
        })
    }

    /// One slice of an abort. Blocks up to `slice`.
    pub(crate) fn abort_transaction(&self, slice: Duration) -> Step {
        // SAFETY: as for the commit.
        self.step(Phase::Commit, "aborting a transaction", unsafe {
            sys::rd_kafka_abort_transaction(self.native, millis(slice))
        })
    }

    fn step(&self, phase: Phase, what: &str, error: *mut sys::rd_kafka_error_t) -> Step {
        if error.is_null() {
            return Step::Done;
        }
        // SAFETY: a non-null error is ours to read and to destroy.
        let (code, retriable, text) = unsafe {
            let code: RDKafkaErrorCode = sys::rd_kafka_error_code(error).into();
            let retriable = sys::rd_kafka_error_is_retriable(error) != 0;
            let text = CStr::from_ptr(sys::rd_kafka_error_string(error)).to_string_lossy().into_owned();
            sys::rd_kafka_error_destroy(error);
            (code, retriable, text)
        };
        if retriable || matches!(code, RDKafkaErrorCode::OperationTimedOut | RDKafkaErrorCode::InProgress) {
            return Step::Again;
        }
        let (code, text) = fatal_error(self.native).unwrap_or((code, text));
        let mut error = errors::coded(phase, what, code);
        error.causes.push(text);
        Step::Failed(self.explained(error))
    }

    /// Drops what is queued and in flight. Does not wait for the client's threads.
    pub(crate) fn purge(&self) {
        if let Some(producer) = self.producer() {
            producer.purge(PurgeConfig::default().queue().inflight().non_blocking());
        }
    }

    /// Records that are not settled yet.
    pub(crate) fn unsettled(&self) -> usize {
        self.producer().map_or(0, |p| usize::try_from(p.in_flight_count()).unwrap_or(0))
    }

    pub(crate) fn fatal(&self) -> Option<(RDKafkaErrorCode, String)> {
        fatal_error(self.native)
    }
}

impl Drop for Client {
    /// Closing joins the polling thread and librdkafka's own, which takes a tenth of a second.
    fn drop(&mut self) {
        let producer = self.producer.take();
        // If no thread can be had, the closure is dropped here, and the producer with it.
        let _ = std::thread::Builder::new().name("kafka-close".to_owned()).spawn(move || drop(producer));
    }
}

fn closed() -> Error {
    Error::new(ErrorKind::Internal, Phase::Deliver, "the Kafka client is closed")
}

fn millis(duration: Duration) -> i32 {
    i32::try_from(duration.as_millis()).unwrap_or(i32::MAX)
}

fn fatal_error(native: *mut RDKafka) -> Option<(RDKafkaErrorCode, String)> {
    if native.is_null() {
        return None;
    }
    let mut text = [0; 512];
    // SAFETY: the client lives (reports come from its own threads); the buffer is as long as told.
    let code: RDKafkaErrorCode = unsafe { sys::rd_kafka_fatal_error(native, text.as_mut_ptr(), text.len()) }.into();
    if code == RDKafkaErrorCode::NoError {
        return None;
    }
    // SAFETY: librdkafka terminates what it writes into the buffer.
    let text = unsafe { CStr::from_ptr(text.as_ptr()) }.to_string_lossy().into_owned();
    Some((code, text))
}

/// What the cluster says about a topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TopicState {
    Exists,
    /// Not there, or not yet.
    Missing,
    Refused(RDKafkaErrorCode),
}

fn topic_state(code: RDKafkaErrorCode) -> TopicState {
    match code {
        // A partition without a leader right now is an existing topic.
        RDKafkaErrorCode::NoError | RDKafkaErrorCode::LeaderNotAvailable => TopicState::Exists,
        RDKafkaErrorCode::UnknownTopicOrPartition | RDKafkaErrorCode::UnknownTopic => TopicState::Missing,
        code => TopicState::Refused(code),
    }
}

/// The code of the one topic in the answer to a description.
///
/// # Safety
/// `event` must be a live event.
unsafe fn described(event: *mut sys::rd_kafka_event_t) -> RDKafkaErrorCode {
    // SAFETY: results are read only while the event lives.
    unsafe {
        let code: RDKafkaErrorCode = sys::rd_kafka_event_error(event).into();
        if code != RDKafkaErrorCode::NoError {
            return code;
        }
        let result = sys::rd_kafka_event_DescribeTopics_result(event);
        if result.is_null() {
            return RDKafkaErrorCode::Fail;
        }
        let mut count = 0;
        let topics = sys::rd_kafka_DescribeTopics_result_topics(result, &mut count);
        if topics.is_null() || count == 0 {
            return RDKafkaErrorCode::UnknownTopicOrPartition;
        }
        let error = sys::rd_kafka_TopicDescription_error(*topics);
        if error.is_null() { RDKafkaErrorCode::NoError } else { sys::rd_kafka_error_code(error).into() }
    }
}

/// A topic as librdkafka knows it; spares a look-up by name per record.
struct TopicHandle {
    native: *mut RDKafkaTopic,
    /// Released after the topic.
    _client: Arc<Client>,
}

// SAFETY: topic objects may be used from any thread.
unsafe impl Send for TopicHandle {}

impl TopicHandle {
    fn new(client: &Arc<Client>, topic: &str) -> Result<Self, RDKafkaErrorCode> {
        let name = CString::new(topic).map_err(|_| RDKafkaErrorCode::InvalidTopic)?;
        // SAFETY: the client lives; without a configuration of its own the topic takes the client's.
        let native = unsafe { sys::rd_kafka_topic_new(client.native, name.as_ptr(), ptr::null_mut()) };
        if native.is_null() {
            return Err(RDKafkaErrorCode::InvalidTopic);
        }
        Ok(Self { native, _client: client.clone() })
    }
}

impl Drop for TopicHandle {
    fn drop(&mut self) {
        // SAFETY: the handle owns one reference, and the client still lives.
        unsafe { sys::rd_kafka_topic_destroy(self.native) }
    }
}

/// Hands records to a client. Belongs to one sender at a time.
pub(crate) struct Outlet {
    topics: std::collections::HashMap<Arc<str>, TopicHandle>,
    /// Topic of the previous record, found without hashing.
    recent: Option<(Arc<str>, *mut RDKafkaTopic)>,
    client: Arc<Client>,
}

// SAFETY: the pointer belongs to a handle in `topics`, which is never removed.
unsafe impl Send for Outlet {}

impl Outlet {
    pub(crate) fn new(client: Arc<Client>) -> Self {
        Self { topics: std::collections::HashMap::new(), recent: None, client }
    }

    pub(crate) fn client(&self) -> &Arc<Client> {
        &self.client
    }

    fn topic(&mut self, topic: &Arc<str>) -> Result<*mut RDKafkaTopic, RDKafkaErrorCode> {
        if let Some((name, native)) = &self.recent
            && Arc::ptr_eq(name, topic)
        {
            return Ok(*native);
        }
        let native = match self.topics.get(topic) {
            Some(handle) => handle.native,
            None => {
                let handle = TopicHandle::new(&self.client, topic)?;
                let native = handle.native;
                self.topics.insert(topic.clone(), handle);
                native
            }
        };
        self.recent = Some((topic.clone(), native));
        Ok(native)
    }

    /// Queues a copy of the record. Never blocks.
    pub(crate) fn produce(&mut self, seq: u64, message: &Message<'_>) -> Result<(), RDKafkaErrorCode> {
        let topic = self.topic(message.topic)?;
        let headers = Headers::new(message.headers);
        let (key, key_len) = parts(message.key);
        let (value, value_len) = parts(message.value);
        // SAFETY: every argument has the type its tag asks for, and the list is terminated. Key and
        // value are borrowed for the call only (copied). The topic belongs to this client.
        let code: RDKafkaErrorCode = unsafe {
            sys::rd_kafka_producev(
                self.client.native,
                sys::rd_kafka_vtype_t::RD_KAFKA_VTYPE_RKT,
                topic,
                sys::rd_kafka_vtype_t::RD_KAFKA_VTYPE_PARTITION,
                message.partition.unwrap_or(-1),
                sys::rd_kafka_vtype_t::RD_KAFKA_VTYPE_MSGFLAGS,
                sys::RD_KAFKA_MSG_F_COPY,
                sys::rd_kafka_vtype_t::RD_KAFKA_VTYPE_VALUE,
                value,
                value_len,
                sys::rd_kafka_vtype_t::RD_KAFKA_VTYPE_KEY,
                key,
                key_len,
                sys::rd_kafka_vtype_t::RD_KAFKA_VTYPE_OPAQUE,
                seq as usize as *mut std::ffi::c_void,
                sys::rd_kafka_vtype_t::RD_KAFKA_VTYPE_TIMESTAMP,
                message.timestamp.unwrap_or(0),
                sys::rd_kafka_vtype_t::RD_KAFKA_VTYPE_HEADERS,
                headers.native,
                sys::rd_kafka_vtype_t::RD_KAFKA_VTYPE_END,
            )
        }
        .into();
        if code != RDKafkaErrorCode::NoError {
            return Err(code);
        }
        headers.handed_over();
        Ok(())
    }
}

fn parts(bytes: Option<&[u8]>) -> (*const std::ffi::c_void, usize) {
    bytes.map_or((ptr::null(), 0), |b| (b.as_ptr().cast(), b.len()))
}

/// Native headers of one record. librdkafka copies a list header by header as well, so there is
/// nothing to gain from keeping one.
struct Headers {
    native: *mut sys::rd_kafka_headers_t,
}

impl Headers {
    fn new(headers: &EncodedHeaders) -> Self {
        if headers.is_empty() {
            return Self { native: ptr::null_mut() };
        }
        // SAFETY: names and values are copied with the lengths given; a null value has no length.
        unsafe {
            let native = sys::rd_kafka_headers_new(headers.len());
            for (name, value) in headers.iter() {
                let (value, len) = parts(value.as_deref());
                sys::rd_kafka_header_add(native, name.as_ptr().cast(), name.len() as isize, value, len as isize);
            }
            Self { native }
        }
    }

    fn handed_over(mut self) {
        self.native = ptr::null_mut();
    }
}

impl Drop for Headers {
    fn drop(&mut self) {
        if !self.native.is_null() {
            // SAFETY: still ours.
            unsafe { sys::rd_kafka_headers_destroy(self.native) }
        }
    }
}

//! The native producer: one librdkafka client, the thread that serves its events, and one that makes
//! it send at once ([`crate::hurry`]).
//!
//! rdkafka's `ThreadedProducer` is the same in shape, but its thread spins for the last millisecond
//! of every 100 ms wait (0.8 % of a core for each idle producer, measured), hands each record over
//! through two reference counts, and builds the client out of reach of its socket settings. Here the
//! thread sleeps until there is an event, reports a whole event, and then wakes who waits
//! until everything is settled.
//!
//! Invariants: the native client outlives its queue, its polling thread, and every topic handle; the
//! loads it reads from outlive it.
//! Closing joins threads, so it happens on the polling thread and never blocks a caller. A
//! connection that is closed, or whose data nobody confirms, drops what it still holds, so that
//! nothing arrives late from a socket's buffer.
//!
//! It does not: send records, count what is on its way, or know the rules of transactions.

use std::ffi::{CStr, CString};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rdkafka::config::RDKafkaLogLevel;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::types::{RDKafka, RDKafkaQueue, RDKafkaType};
use rdkafka::{ClientConfig, ClientContext};
use rdkafka_sys as sys;
use thalweg_core::{Error, ErrorKind, Phase};

use crate::budget;
use crate::errors::{self, Coordinates};
use crate::hurry::Hurry;
use crate::loads::{Loads, Tally};
use crate::reports::SinkContext;

/// The polling thread looks at least this often whether it should end; closing wakes it.
const LOOK_EVERY_MS: i32 = 60_000;

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
    link: Option<Arc<Link>>,
    native: *mut RDKafka,
    loads: Arc<Loads>,
}

// SAFETY: librdkafka's client may be used from any thread; the pointer lives as long as `link`.
unsafe impl Send for Client {}
// SAFETY: as above.
unsafe impl Sync for Client {}

/// What the polling thread shares with the owner.
struct Link {
    client: rdkafka::client::Client<SinkContext>,
    /// The client's main queue: delivery reports, errors, log lines.
    queue: *mut RDKafkaQueue,
    stop: AtomicBool,
    hurry: Hurry,
    /// What the client reads from: dropped after it.
    loads: Arc<Loads>,
}

// SAFETY: librdkafka's queues may be used from any thread.
unsafe impl Send for Link {}
// SAFETY: as above.
unsafe impl Sync for Link {}

impl Drop for Link {
    fn drop(&mut self) {
        // SAFETY: our reference to the queue, released before the client.
        unsafe { sys::rd_kafka_queue_destroy(self.queue) }
    }
}

impl Client {
    /// Starts the client's threads; connects in the background. Takes milliseconds: not for a
    /// runtime's worker thread.
    pub(crate) fn start(config: &ClientConfig, context: SinkContext) -> Result<Arc<Self>, Error> {
        let loads = Arc::new(Loads::new(context.batch_size));
        let name = context.name.clone();
        let failed = |e: &KafkaError| errors::client(Phase::Start, format!("creating the Kafka client {name}"), e);
        let native_config = config.create_native_config().map_err(|e| failed(&e))?;
        // SAFETY: the configuration is alive; the callback matches its declaration.
        unsafe {
            sys::rd_kafka_conf_set_events(native_config.ptr(), sys::RD_KAFKA_EVENT_DR | sys::RD_KAFKA_EVENT_ERROR);
            #[cfg(target_os = "linux")]
            sys::rd_kafka_conf_set_socket_cb(native_config.ptr(), Some(socket::open));
        }
        let client = rdkafka::client::Client::new(config, native_config, RDKafkaType::RD_KAFKA_PRODUCER, context)
            .map_err(|e| failed(&e))?;
        let native = client.native_ptr();
        // SAFETY: the client lives; the reference taken here is released by `Link`.
        let queue = unsafe { sys::rd_kafka_queue_get_main(native) };
        let stop = AtomicBool::new(false);
        let link = Arc::new(Link { client, queue, stop, hurry: Hurry::new(), loads: loads.clone() });
        let (hurried, served) = (link.clone(), link.clone());
        // SAFETY: the link holds the client.
        let hurrying = thread("kafka-flush", move || unsafe { hurried.hurry.serve(hurried.client.native_ptr()) })?;
        thread("kafka-events", move || serve(served, hurrying)).inspect_err(|_| link.hurry.end())?;
        Ok(Arc::new(Self { link: Some(link), native, loads }))
    }

    pub(crate) fn native(&self) -> *mut RDKafka {
        self.native
    }

    /// What [`crate::outlet::Outlet`] hands over has to stand in.
    pub(crate) fn loads(&self) -> &Arc<Loads> {
        &self.loads
    }

    /// What it has been given leaves at once, without `linger.ms`.
    pub(crate) fn hurry(&self) {
        if let Some(link) = &self.link {
            link.hurry.now();
        }
    }

    fn client(&self) -> Option<&rdkafka::client::Client<SinkContext>> {
        self.link.as_ref().map(|l| &l.client)
    }

    pub(crate) fn context(&self) -> Option<&SinkContext> {
        self.client().map(|c| &**c.context())
    }

    /// Waits until a broker has answered. Blocks.
    pub(crate) fn connect(&self, deadline: Duration) -> Result<(), Error> {
        const SLICE: Duration = Duration::from_millis(250);
        let (Some(client), Some(context)) = (self.client(), self.context()) else { return Err(closed()) };
        let end = Instant::now() + deadline;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if client.fetch_cluster_id(left.min(SLICE)).is_some() {
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
        let client = self.client().ok_or_else(closed)?;
        let what = || format!("asking for topic {topic}");
        let metadata = client
            .fetch_metadata(Some(topic), timeout)
            .map_err(|e| self.explained(errors::client(Phase::Deliver, what(), &e)))?;
        let Some(found) = metadata.topics().first() else { return Ok(TopicState::Missing) };
        Ok(match found.error() {
            None if found.partitions().is_empty() => TopicState::Missing,
            None => TopicState::Exists,
            Some(error) => topic_state(RDKafkaErrorCode::from(error)),
        })
    }

    /// Whether the broker that leads a topic's first partition knows that it does: what the one that was
    /// asked for the topic says may come earlier. Blocks.
    pub(crate) fn is_led(&self, topic: &str, timeout: Duration) -> Result<TopicState, Error> {
        // The client keeps for a while that it did not know the topic, unless it asks anew.
        let state = self.ask_for_topic(topic, timeout)?;
        let (TopicState::Exists, Some(client)) = (state, self.client()) else { return Ok(state) };
        let asked = client.fetch_watermarks(topic, 0, timeout);
        Ok(match asked.err().and_then(|e| e.rdkafka_error_code()) {
            // An answer, or one that says nothing about it.
            None | Some(RDKafkaErrorCode::TopicAuthorizationFailed) => TopicState::Exists,
            Some(_) => TopicState::Missing,
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

    /// Waits up to `slice` until each record has its report. Blocks.
    pub(crate) fn flush(&self, slice: Duration) -> Step {
        // SAFETY: the client lives; its polling thread serves the delivery reports meanwhile.
        match unsafe { sys::rd_kafka_flush(self.native, millis(slice)) }.into() {
            RDKafkaErrorCode::NoError => Step::Done,
            _ => Step::Again,
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
        purge(self.native);
    }

    /// Records that are not settled yet.
    pub(crate) fn unsettled(&self) -> usize {
        // SAFETY: the client lives.
        usize::try_from(unsafe { sys::rd_kafka_outq_len(self.native) }).unwrap_or(0)
    }

    pub(crate) fn fatal(&self) -> Option<(RDKafkaErrorCode, String)> {
        fatal_error(self.native)
    }
}

impl Drop for Client {
    /// Returns at once; the polling thread closes the client, which joins librdkafka's threads.
    fn drop(&mut self) {
        let Some(link) = self.link.take() else { return };
        purge(self.native);
        link.stop.store(true, Ordering::SeqCst);
        link.hurry.end();
        // SAFETY: the queue lives as long as the link.
        unsafe { sys::rd_kafka_queue_yield(link.queue) }
    }
}

fn thread(name: &str, body: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, Error> {
    std::thread::Builder::new().name(name.to_owned()).spawn(body).map_err(|e| {
        Error::new(ErrorKind::Internal, Phase::Start, format!("the thread {name} cannot be started")).because(&e)
    })
}

/// The polling thread.
fn serve(link: Arc<Link>, hurrying: JoinHandle<()>) {
    link.serve();
    // Ends within milliseconds; should it have panicked, it has ended.
    let _ = hurrying.join();
    // The owner lets go within a few instructions; closing here keeps that off its thread.
    while Arc::strong_count(&link) > 1 {
        std::thread::yield_now();
    }
}

impl Link {
    fn serve(&self) {
        let guard = Unwound(self);
        while !self.stop.load(Ordering::SeqCst) {
            // SAFETY: the queue lives; an event is ours and destroyed after its last use.
            unsafe {
                let event = sys::rd_kafka_queue_poll(self.queue, LOOK_EVERY_MS);
                if event.is_null() {
                    continue;
                }
                let mut reported = None;
                match sys::rd_kafka_event_type(event) {
                    sys::RD_KAFKA_EVENT_DR => reported = Some(self.reports(event)),
                    sys::RD_KAFKA_EVENT_ERROR => self.complaint(event),
                    sys::RD_KAFKA_EVENT_LOG => self.log_line(event),
                    _ => {}
                }
                sys::rd_kafka_event_destroy(event);
                // Now librdkafka has let go of the records.
                if let Some((tally, settled)) = reported {
                    tally.settle();
                    self.client.context().flow.settle(settled);
                }
            }
        }
        drop(guard);
    }

    /// Reports every record of the event; returns their number by load, and their cost.
    ///
    /// # Safety
    /// `event` must be a live delivery report event.
    unsafe fn reports(&self, event: *mut sys::rd_kafka_event_t) -> (Tally<'_>, u64) {
        let context = self.client.context();
        let (mut tally, mut settled) = (self.loads.tally(), 0);
        loop {
            // SAFETY: messages live as long as their event.
            let Some(message) = (unsafe { sys::rd_kafka_event_message_next(event).as_ref() }) else {
                return (tally, settled);
            };
            let seq = message._private as usize as u64;
            tally.count(seq);
            settled += budget::cost(context.floor, message.key_len, message.len);
            if context.flow.is_stopped() {
                continue;
            }
            let code = RDKafkaErrorCode::from(message.err);
            let placed = message.offset >= 0 || !context.idempotent;
            if code == RDKafkaErrorCode::NoError && placed {
                context.delivered(seq);
                continue;
            }
            // SAFETY: a report carries its topic, and key and value as long as it lives.
            let (topic, key) = unsafe {
                let key = (!message.key.is_null())
                    .then(|| std::slice::from_raw_parts(message.key.cast::<u8>(), message.key_len));
                (CStr::from_ptr(sys::rd_kafka_topic_name(message.rkt)).to_string_lossy(), key)
            };
            let bytes = (message.key_len + message.len) as u64;
            let at = Coordinates { topic: &topic, partition: Some(message.partition), key, bytes };
            if code == RDKafkaErrorCode::NoError {
                context.unplaced(at, seq);
                continue;
            }
            context.refused(fatal_error(self.client.native_ptr()), code, at, seq);
        }
    }

    /// # Safety
    /// `event` must be a live error event.
    unsafe fn complaint(&self, event: *mut sys::rd_kafka_event_t) {
        // SAFETY: the text lives as long as the event.
        let (code, text) = unsafe {
            let text = sys::rd_kafka_event_error_string(event);
            (RDKafkaErrorCode::from(sys::rd_kafka_event_error(event)), CStr::from_ptr(text).to_string_lossy())
        };
        self.client.context().error(KafkaError::Global(code), text.trim());
    }

    /// # Safety
    /// `event` must be a live log event.
    unsafe fn log_line(&self, event: *mut sys::rd_kafka_event_t) {
        let (mut facility, mut text, mut level) = (ptr::null(), ptr::null(), 0);
        // SAFETY: the texts live as long as the event and are set on success only.
        unsafe {
            if sys::rd_kafka_event_log(event, &mut facility, &mut text, &mut level) == 0 {
                let (facility, text) =
                    (CStr::from_ptr(facility).to_string_lossy(), CStr::from_ptr(text).to_string_lossy());
                self.client.context().log(log_level(level), facility.trim(), text.trim());
            }
        }
    }
}

/// Tells the producer if the polling thread ends by a panic: nobody else would.
struct Unwound<'a>(&'a Link);

impl Drop for Unwound<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let text = "the thread that serves Kafka's delivery reports broke off";
            self.0.client.context().flow.give_up(Error::new(ErrorKind::Internal, Phase::Deliver, text));
        }
    }
}

fn log_level(level: i32) -> RDKafkaLogLevel {
    match level {
        ..=3 => RDKafkaLogLevel::Error,
        4 => RDKafkaLogLevel::Warning,
        5 => RDKafkaLogLevel::Notice,
        6 => RDKafkaLogLevel::Info,
        _ => RDKafkaLogLevel::Debug,
    }
}

fn purge(native: *mut RDKafka) {
    let flags = sys::RD_KAFKA_PURGE_F_QUEUE | sys::RD_KAFKA_PURGE_F_INFLIGHT | sys::RD_KAFKA_PURGE_F_NON_BLOCKING;
    // SAFETY: the client lives. With these flags on a producer the call cannot fail.
    unsafe { sys::rd_kafka_purge(native, flags) };
}

/// Sockets to brokers.
#[cfg(target_os = "linux")]
mod socket {
    use std::ffi::{c_int, c_uint, c_void};

    use crate::reports::SinkContext;

    /// librdkafka's socket callback.
    ///
    /// # Safety
    /// `opaque` is the context that the client was made with, or null.
    pub(super) unsafe extern "C" fn open(domain: c_int, kind: c_int, protocol: c_int, opaque: *mut c_void) -> c_int {
        // SAFETY: plain system calls; the context outlives the client.
        unsafe {
            let socket = libc::socket(domain, kind | libc::SOCK_CLOEXEC, protocol);
            if socket < 0 {
                return socket;
            }
            let linger = libc::linger { l_onoff: 1, l_linger: 0 };
            set(socket, libc::SOL_SOCKET, libc::SO_LINGER, &linger);
            if let Some(context) = opaque.cast::<SinkContext>().as_ref() {
                let millis = c_uint::try_from(context.unconfirmed.as_millis()).unwrap_or(c_uint::MAX);
                set(socket, libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT, &millis);
            }
            socket
        }
    }

    /// A socket without the option is better than none.
    unsafe fn set<T>(socket: c_int, level: c_int, option: c_int, value: &T) {
        // SAFETY: pointer and length describe `value`.
        unsafe {
            libc::setsockopt(
                socket,
                level,
                option,
                std::ptr::from_ref(value).cast(),
                size_of::<T>() as libc::socklen_t,
            );
        }
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

#[cfg(all(test, target_os = "linux"))]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;
    use crate::flow::Flow;
    use crate::flow::tests::Heard;
    use crate::reports::Reports;
    use crate::trouble::Trouble;

    fn option<T: Default>(socket: i32, level: i32, name: i32) -> T {
        let mut value = T::default();
        let mut len = size_of::<T>() as libc::socklen_t;
        // SAFETY: pointer and length describe `value`.
        let code = unsafe { libc::getsockopt(socket, level, name, ptr::from_mut(&mut value).cast(), &mut len) };
        assert_eq!(code, 0);
        value
    }

    #[test]
    fn a_connection_gives_up_what_nobody_confirms() {
        let context = SinkContext {
            name: "x".to_owned(),
            flow: Arc::new(Flow::default()),
            acks: Arc::new(Heard::default()),
            reports: Reports::FailuresOnly,
            idempotent: true,
            floor: 0,
            batch_size: 1,
            unconfirmed: Duration::from_secs(10),
            trouble: Trouble::default(),
        };
        // SAFETY: the context outlives the call.
        let socket = unsafe {
            socket::open(libc::AF_INET, libc::SOCK_STREAM, libc::IPPROTO_TCP, ptr::from_ref(&context).cast_mut().cast())
        };
        assert!(socket >= 0);
        assert_eq!(option::<u32>(socket, libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT), 10_000);
        assert_eq!(option::<[i32; 2]>(socket, libc::SOL_SOCKET, libc::SO_LINGER), [1, 0]);
        // SAFETY: ours.
        unsafe { libc::close(socket) };
    }
}

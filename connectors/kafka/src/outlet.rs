//! Handing records to the client, below the safe API.
//!
//! rdkafka's own call allocates a name per record and looks the topic up in a list; here a record
//! costs librdkafka's own entry for it, with a copy of the key, and nothing else. Invariants: a topic
//! handle keeps the client alive and is released before it; a record's opaque is its sequence number;
//! headers are handed over on success and freed here on failure.
//!
//! It does not: decide when to send, or count what is on its way.

use std::collections::HashMap;
use std::ffi::{CString, c_void};
use std::ptr;
use std::sync::Arc;

use rdkafka::error::RDKafkaErrorCode;
use rdkafka::types::RDKafkaTopic;
use rdkafka_sys as sys;
use thalweg_core::delivery::{EncodedHeaders, Message};

use crate::client::Client;

// A sequence number travels in a pointer.
const _: () = assert!(usize::BITS >= 64);

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
        let native = unsafe { sys::rd_kafka_topic_new(client.native(), name.as_ptr(), ptr::null_mut()) };
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
    topics: HashMap<Arc<str>, TopicHandle>,
    /// Topic of the previous record, found without hashing.
    recent: Option<(Arc<str>, *mut RDKafkaTopic)>,
    client: Arc<Client>,
}

// SAFETY: the pointer belongs to a handle in `topics`, which is never removed.
unsafe impl Send for Outlet {}

impl Outlet {
    pub(crate) fn new(client: Arc<Client>) -> Self {
        Self { topics: HashMap::new(), recent: None, client }
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

    /// Queues the record. Never blocks. `now_ms` (since 1970) stands for a timestamp it does not have.
    ///
    /// # Safety
    /// On success the client reads the value until it has let go of the record: until the event with
    /// its report is destroyed, or the client is closed. It has to stand still as long.
    pub(crate) unsafe fn produce(
        &mut self,
        seq: u64,
        message: &Message<'_>,
        now_ms: i64,
    ) -> Result<(), RDKafkaErrorCode> {
        let topic = self.topic(message.topic)?;
        let headers = Headers::new(message.headers);
        let (key, key_len) = parts(message.key);
        let (value, value_len) = parts(message.value);
        // SAFETY: every argument has the type its tag asks for, and the list is terminated. The key is
        // borrowed for the call only (copied), the value as the caller promises. The topic belongs to
        // this client.
        let code: RDKafkaErrorCode = unsafe {
            sys::rd_kafka_producev(
                self.client.native(),
                sys::rd_kafka_vtype_t::RD_KAFKA_VTYPE_RKT,
                topic,
                sys::rd_kafka_vtype_t::RD_KAFKA_VTYPE_PARTITION,
                message.partition.unwrap_or(-1),
                sys::rd_kafka_vtype_t::RD_KAFKA_VTYPE_VALUE,
                value,
                value_len,
                sys::rd_kafka_vtype_t::RD_KAFKA_VTYPE_KEY,
                key,
                key_len,
                sys::rd_kafka_vtype_t::RD_KAFKA_VTYPE_OPAQUE,
                seq as usize as *mut c_void,
                sys::rd_kafka_vtype_t::RD_KAFKA_VTYPE_TIMESTAMP,
                message.timestamp.unwrap_or(now_ms),
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

fn parts(bytes: Option<&[u8]>) -> (*const c_void, usize) {
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

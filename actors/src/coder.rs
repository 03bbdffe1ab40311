//! Records become messages: the task's transforms and converters, and what follows when one fails.
//!
//! Buffers are reused, so a message costs no allocation here. It does not: send, wait, or know
//! positions.

use std::hash::{BuildHasher, RandomState};
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use thalweg_config::Properties;
use thalweg_config::connector::FRAMEWORK;
use thalweg_core::Error;
use thalweg_core::convert::{Converters, Written};
use thalweg_core::delivery::{EncodedHeaders, Message};
use thalweg_core::record::{Datum, Headers, Record};
use thalweg_core::tolerance::{Attempt, ErrorCounters, Stage, Tolerance, Verdict};
use thalweg_core::transform::Chain;

pub(crate) struct Coder {
    chain: Chain,
    converters: Converters,
    tolerance: Tolerance,
    leaves_errors_out: bool,
    /// Key and value of the present message, one behind the other.
    buffer: Vec<u8>,
    headers: EncodedHeaders,
    random: RandomState,
}

/// Where the parts of the present message are in the buffer.
pub(crate) struct Encoded {
    key: Option<Range<usize>>,
    value: Option<Range<usize>>,
}

impl Encoded {
    /// Bytes of key and value.
    pub(crate) fn size(&self) -> usize {
        self.key.as_ref().map_or(0, Range::len) + self.value.as_ref().map_or(0, Range::len)
    }
}

/// A record that could not be transformed, converted or sent.
pub(crate) struct Fault {
    stage: Stage,
    class: &'static str,
    pub error: Error,
}

impl Fault {
    pub(crate) fn refused_by_client(error: Error) -> Self {
        Self { stage: Stage::KafkaProduce, class: "org.apache.kafka.clients.producer.KafkaProducer", error }
    }
}

/// Free for a vector that starts larger than a usual message.
const KEPT_BYTES: usize = 4 * 1024 * 1024;

impl Coder {
    /// References resolved in both.
    pub(crate) fn new(
        config: &Properties,
        worker: &Properties,
        (connector, task): (&str, u32),
        counters: Arc<ErrorCounters>,
    ) -> Result<Self, Error> {
        let settings = FRAMEWORK.validate(config).settings;
        Ok(Self {
            chain: Chain::from_config(config)?,
            converters: Converters::from_config(config, worker)?,
            leaves_errors_out: settings.text_or_empty("errors.tolerance") == "all",
            tolerance: Tolerance::from_settings(&settings, connector, task, counters),
            buffer: Vec::new(),
            headers: EncodedHeaders::default(),
            random: RandomState::new(),
        })
    }

    /// `errors.tolerance=all`.
    pub(crate) fn leaves_errors_out(&self) -> bool {
        self.leaves_errors_out
    }

    pub(crate) fn has_transforms(&self) -> bool {
        !self.chain.is_empty()
    }

    /// Appends what becomes of the record; on an error `out` is as it was.
    pub(crate) fn transform(&mut self, record: Record, out: &mut Vec<Record>) -> Result<(), Fault> {
        self.chain.apply(record, out).map_err(|failed| Fault {
            stage: Stage::Transformation,
            class: failed.class,
            error: failed.error,
        })
    }

    /// Encodes into the buffer, over the message before.
    pub(crate) fn encode(&mut self, record: &Record) -> Result<Encoded, Fault> {
        self.buffer.clear();
        self.buffer.shrink_to(KEPT_BYTES);
        let Converters { key, value, headers } = &mut self.converters;
        let fault = |stage, class| move |error| Fault { stage, class, error };
        let encoded = headers.encode(&record.headers).cloned();
        self.headers = encoded.map_err(fault(Stage::HeaderConverter, headers.class()))?;
        let written = key.convert_datum(&record.key, &mut self.buffer);
        let written = written.map_err(fault(Stage::KeyConverter, key.class()))?;
        let key_end = self.buffer.len();
        let key_range = (written == Written::Bytes).then_some(0..key_end);
        let written = value.convert_datum(&record.value, &mut self.buffer);
        let written = written.map_err(fault(Stage::ValueConverter, value.class()))?;
        let value_range = (written == Written::Bytes).then_some(key_end..self.buffer.len());
        Ok(Encoded { key: key_range, value: value_range })
    }

    /// The message that was encoded last.
    pub(crate) fn message<'a>(&'a self, record: &'a Record, encoded: &Encoded) -> Message<'a> {
        let part = |range: &Option<Range<usize>>| range.clone().and_then(|range| self.buffer.get(range));
        Message {
            topic: &record.topic,
            partition: record.partition,
            key: part(&encoded.key),
            value: part(&encoded.value),
            headers: &self.headers,
            timestamp: record.timestamp,
        }
    }

    /// What follows from a fault. `attempt` is the operation's, made at its first fault.
    pub(crate) fn judge(&self, attempt: &mut Option<Attempt>, fault: Fault, record: &Record) -> Verdict {
        let now = Instant::now();
        let attempt = attempt.get_or_insert(Attempt::new(now));
        let random = (self.random.hash_one(now) >> 11) as f64 / (1u64 << 53) as f64;
        self.tolerance.judge(attempt, (fault.stage, fault.class), fault.error, record, now, random)
    }
}

/// What of a record is needed to report on it when the record itself is used up.
pub(crate) fn coordinates(record: &Record) -> Record {
    Record {
        topic: record.topic.clone(),
        partition: record.partition,
        key: Datum::none(),
        value: Datum::none(),
        headers: Headers::default(),
        timestamp: record.timestamp,
        position: record.position.clone(),
    }
}

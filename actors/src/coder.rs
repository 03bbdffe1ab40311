//! Records become messages: the task's format, transforms and converters, and what follows when one fails.
//!
//! Buffers are reused, so a message costs no allocation here. It waits only in [`Coder::prepare`], for what
//! a converter needs from elsewhere. It does not: send, or know positions.

use std::hash::{BuildHasher, RandomState};
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use thalweg_config::Properties;
use thalweg_config::connector::FRAMEWORK;
use thalweg_core::convert::{Converter, Converters, Written};
use thalweg_core::delivery::{EncodedHeaders, Message};
use thalweg_core::position::PositionCodec;
use thalweg_core::record::Record;
use thalweg_core::repstance::{self, Repstance};
use thalweg_core::tolerance::{Attempt, ErrorCounters, Stage, Tolerance, Verdict};
use thalweg_core::transform::{Chain, Fate, TransformClasses};
use thalweg_core::{Error, ErrorKind, Phase};

use crate::dead_letter::{DeadLetters, Reason};

pub(crate) struct Coder {
    dead_letters: Option<DeadLetters>,
    format: Option<Repstance>,
    chain: Chain,
    converters: Converters,
    tolerance: Tolerance,
    leaves_errors_out: bool,
    /// Key and value of the present message, one behind the other.
    buffer: Vec<u8>,
    headers: EncodedHeaders,
    /// What the key converter wrote of the present message.
    key: Option<Range<usize>>,
    /// Which converter has to be prepared, and how often that was done for the present message.
    waiting: Option<Part>,
    prepared: u8,
    random: RandomState,
}

/// Part of a message with a converter of its own.
#[derive(Debug, Clone, Copy)]
enum Part {
    Key,
    Value,
}

/// Once for the key and once for the value; more means that a converter never has enough.
const MOST_PREPARED: u8 = 4;

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
        classes: &TransformClasses,
        (connector, task): (&str, u32),
        counters: Arc<ErrorCounters>,
    ) -> Result<Self, Error> {
        let settings = FRAMEWORK.validate(config).settings;
        if let Some(error) = repstance::check(config).error() {
            return Err(error);
        }
        Ok(Self {
            format: Repstance::from_config(config),
            chain: Chain::from_config(config, classes)?,
            converters: Converters::from_config(&repstance::with_converters(config), worker)?,
            dead_letters: DeadLetters::from_settings(&settings),
            leaves_errors_out: settings.text_or_empty("errors.tolerance") == "all",
            tolerance: Tolerance::from_settings(&settings, connector, task, counters),
            buffer: Vec::new(),
            headers: EncodedHeaders::default(),
            key: None,
            waiting: None,
            prepared: 0,
            random: RandomState::new(),
        })
    }

    /// `errors.tolerance=all`.
    pub(crate) fn leaves_errors_out(&self) -> bool {
        self.leaves_errors_out
    }

    /// Where records go that are left out.
    pub(crate) fn dead_letters(&self) -> Option<&DeadLetters> {
        self.dead_letters.as_ref()
    }

    /// Why the present record is left out, if anybody is to be told. `message` is the fault's, without
    /// secrets.
    pub(crate) fn reason(&self, fault: &Fault, message: impl FnOnce() -> String) -> Option<Reason> {
        self.dead_letters.as_ref()?;
        let mut reason = Reason::new(fault.stage, fault.class, &fault.error, message());
        if matches!(fault.stage, Stage::ValueConverter | Stage::KafkaProduce) {
            reason.key = self.key.clone().and_then(|key| self.buffer.get(key)).map(<[u8]>::to_vec);
        }
        Some(reason)
    }

    /// Whether records get another format before anything else.
    pub(crate) fn has_format(&self) -> bool {
        self.format.is_some()
    }

    /// Whether the format waits with a record for the one behind it.
    pub(crate) fn holds_back(&self) -> bool {
        self.format.as_ref().is_some_and(Repstance::holds_back)
    }

    /// Appends the messages that the format makes of a record, behind those that it held back. They are to
    /// be sent even after an error.
    pub(crate) fn format(
        &mut self,
        codec: &dyn PositionCodec,
        record: &Record,
        out: &mut Vec<Record>,
    ) -> Result<(), Fault> {
        let Some(format) = &mut self.format else { return Ok(()) };
        let made = format.apply(codec, record, out);
        made.map_err(|error| Fault { stage: Stage::Transformation, class: "thalweg.format=repstance", error })
    }

    /// What the format held back for a record that did not come.
    pub(crate) fn end_of_batch(&mut self) -> Vec<Record> {
        self.format.as_mut().map(Repstance::end_of_batch).unwrap_or_default()
    }

    pub(crate) fn has_transforms(&self) -> bool {
        !self.chain.is_empty()
    }

    /// Runs the record through the transforms. After an error only its coordinates are of use, which
    /// are those with which it came.
    pub(crate) fn transform(&mut self, record: &mut Record) -> Result<Fate, Fault> {
        let (topic, partition, timestamp) = (record.topic.clone(), record.partition, record.timestamp);
        self.chain.apply(record).map_err(|failed| {
            (record.topic, record.partition, record.timestamp) = (topic, partition, timestamp);
            Fault { stage: Stage::Transformation, class: failed.class, error: failed.error }
        })
    }

    /// Encodes into the buffer, over the message before. `None`: [`Coder::prepare`] has to be awaited
    /// first.
    pub(crate) fn encode(&mut self, record: &Record) -> Result<Option<Encoded>, Fault> {
        self.buffer.clear();
        self.key = None;
        self.buffer.shrink_to(KEPT_BYTES);
        let Converters { key, value, headers } = &mut self.converters;
        let fault = |stage, class| move |error| Fault { stage, class, error };
        let encoded = headers.encode(&record.topic, &record.headers).cloned();
        self.headers = encoded.map_err(fault(Stage::HeaderConverter, headers.class()))?;
        let written = key.convert_datum(&record.topic, &record.key, &mut self.buffer);
        let written = written.map_err(fault(Stage::KeyConverter, key.class()))?;
        if written == Written::Waiting {
            self.waiting = Some(Part::Key);
            return Ok(None);
        }
        let key_end = self.buffer.len();
        self.key = (written == Written::Bytes).then_some(0..key_end);
        let written = value.convert_datum(&record.topic, &record.value, &mut self.buffer);
        let written = written.map_err(fault(Stage::ValueConverter, value.class()))?;
        if written == Written::Waiting {
            self.waiting = Some(Part::Value);
            return Ok(None);
        }
        self.prepared = 0;
        let value_range = (written == Written::Bytes).then_some(key_end..self.buffer.len());
        Ok(Some(Encoded { key: self.key.clone(), value: value_range }))
    }

    /// Lets the converter that could not write its part get what it needs. Ends by itself after the
    /// converter's time limits; may be given up at any time.
    pub(crate) async fn prepare(&mut self) -> Result<(), Fault> {
        let Some(part) = self.waiting.take() else { return Ok(()) };
        let (stage, converter): (_, &mut dyn Converter) = match part {
            Part::Key => (Stage::KeyConverter, &mut *self.converters.key),
            Part::Value => (Stage::ValueConverter, &mut *self.converters.value),
        };
        let class = converter.class();
        let prepared = match converter.prepare().await {
            Ok(()) if self.prepared >= MOST_PREPARED => {
                let text = format!("{class} asks for its preparation again and again");
                Err(Error::new(ErrorKind::Internal, Phase::Convert, text))
            }
            prepared => prepared,
        };
        self.prepared += u8::from(prepared.is_ok());
        prepared.map_err(|error| {
            self.prepared = 0;
            Fault { stage, class, error }
        })
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

//! Producer properties: our defaults, the bounds that correctness needs, and what the delivery mode
//! forces.
//!
//! Acknowledgements are always asked of all in-sync replicas unless the user gives that up by name.
//! A finite delivery timeout is part of fencing in `plain` mode: a new owner waits that long before
//! its first record, so a longer one is cut.

use std::time::Duration;

use thalweg_config::Properties;
use thalweg_core::delivery::{DeliveryMode, ProducerIdentity};

use super::{Build, Given, ProducerLimits};

/// In `plain` mode nothing is sent later than this after it was handed over.
pub const PLAIN_DELIVERY_TIMEOUT: Duration = Duration::from_secs(10);
/// In `fenced` mode a partition may be without a leader for this long before the task restarts.
const FENCED_DELIVERY_TIMEOUT: Duration = Duration::from_secs(120);
/// As in Kafka's producer.
const MAX_REQUEST: u64 = 1_048_576;
/// A request of a full batch stays below what brokers take.
const BATCH_SIZE: u64 = 1_000_000;
const BUFFER_MESSAGES: u64 = 100_000;
/// librdkafka's bounds for `message.max.bytes`.
const REQUEST_BOUNDS: (u64, u64) = (1_000, 1_000_000_000);

pub(super) fn default_limits() -> ProducerLimits {
    ProducerLimits {
        max_request: MAX_REQUEST,
        buffer_bytes: None,
        buffer_messages: BUFFER_MESSAGES,
        batch_size: BATCH_SIZE,
        transaction_timeout: FENCED_DELIVERY_TIMEOUT,
        request_timeout: PLAIN_DELIVERY_TIMEOUT,
        tolerates_refusal: false,
    }
}

/// Name under which the broker fences the task's former owners.
pub fn transactional_id(who: &ProducerIdentity) -> String {
    format!("{}-{}-{}", who.group, who.connector, who.task)
}

impl Build {
    pub(super) fn producer(&mut self, mode: DeliveryMode, connector: &Properties, who: &ProducerIdentity) {
        self.put_default("linger.ms", 1);
        self.put_default("batch.size", BATCH_SIZE);
        self.put_default("batch.num.messages", 100_000);
        self.limits.batch_size = self.out.get("batch.size").and_then(|v| v.parse().ok()).unwrap_or(BATCH_SIZE);
        self.out.insert("partitioner".to_owned(), "murmur2_random".to_owned());
        self.compression();
        self.sizes();
        self.safety(mode, connector);
        self.timeouts(mode);
        if mode == DeliveryMode::Fenced {
            self.out.insert("transactional.id".to_owned(), transactional_id(who));
        }
        if let Some(given) = self.given.remove("partitioner.class")
            && !given.value.is_empty()
            && !given.value.ends_with(".DefaultPartitioner")
        {
            let origin = given.origin;
            self.warn(format!(
                "{origin} is ignored: records with a key are partitioned as Kafka's default partitioner does"
            ));
        }
    }

    fn compression(&mut self) {
        let codec = self.given.remove("compression.type");
        let name = codec.as_ref().map(|c| c.value.to_ascii_lowercase()).unwrap_or_else(|| "none".to_owned());
        let origin = codec.map(|c| c.origin);
        let leveled = match name.as_str() {
            "gzip" => "compression.gzip.level",
            "lz4" => "compression.lz4.level",
            "zstd" => "compression.zstd.level",
            _ => "compression.level",
        };
        let level = self.given.remove(leveled).or_else(|| self.given.remove("compression.level"));
        if let Some(level) = level
            && name != "none"
            && let Some(number) = self.number(&level)
        {
            // The scale of librdkafka ends at 12; zstd's lowest levels have no counterpart.
            self.put("compression.level", number.clamp(-1, 12).to_string(), &level.origin);
        }
        match origin {
            Some(origin) => self.put("compression.type", name, &origin),
            None => self.put_default("compression.type", name),
        }
    }

    fn sizes(&mut self) {
        if let Some(given) = self.given.remove("max.request.size")
            && let Some(number) = self.number(&given)
        {
            let bytes = u64::try_from(number).unwrap_or(0);
            self.limits.max_request = bytes.clamp(REQUEST_BOUNDS.0, REQUEST_BOUNDS.1);
            if self.limits.max_request != bytes {
                let origin = given.origin;
                self.warn(format!("{origin} was adjusted to {} bytes", self.limits.max_request));
            }
        }
        self.out.insert("message.max.bytes".to_owned(), self.limits.max_request.to_string());
        let kbytes = self.given.remove("queue.buffering.max.kbytes").and_then(|g| self.positive(&g));
        let bytes = self.given.remove("buffer.memory").and_then(|g| self.positive(&g));
        self.limits.buffer_bytes = kbytes.map(|k| k.saturating_mul(1024)).or(bytes);
        if let Some(given) = self.given.remove("queue.buffering.max.messages")
            && let Some(number) = self.positive(&given)
        {
            self.limits.buffer_messages = number;
        }
        // The producer keeps its own, exact account. librdkafka's would refuse records a moment
        // longer than needed: it frees them after it has reported them, and nothing reports that.
        self.out.insert("queue.buffering.max.kbytes".to_owned(), i32::MAX.to_string());
        self.out.insert("queue.buffering.max.messages".to_owned(), "0".to_owned());
    }

    fn safety(&mut self, mode: DeliveryMode, connector: &Properties) {
        let acks = self.given.remove("acks");
        let all = acks.as_ref().is_none_or(|a| matches!(a.value.to_ascii_lowercase().as_str(), "all" | "-1"));
        let idempotence = self.given.remove("enable.idempotence");
        let mut idempotent = !idempotence.as_ref().is_some_and(|i| i.value.eq_ignore_ascii_case("false"));
        match mode {
            DeliveryMode::Fenced => {
                for given in [(!all).then_some(acks.as_ref()), (!idempotent).then_some(idempotence.as_ref())] {
                    if let Some(given) = given.flatten() {
                        self.warn(format!("{} is ignored: transactions need acks=all and idempotence", given.origin));
                    }
                }
                idempotent = true;
                self.out.insert("acks".to_owned(), "all".to_owned());
            }
            DeliveryMode::Plain => match acks {
                Some(given) if !all => {
                    if idempotence.is_none() {
                        idempotent = false;
                    }
                    self.warn(format!(
                        "{} gives up the guarantee that an acknowledged record is not lost",
                        given.origin
                    ));
                    self.put("acks", given.value, &given.origin);
                    if idempotent {
                        self.problem(&given.origin, "enable.idempotence=true needs acks=all");
                    }
                }
                _ => {
                    self.out.insert("acks".to_owned(), "all".to_owned());
                }
            },
        }
        self.out.insert("enable.idempotence".to_owned(), idempotent.to_string());
        self.limits.tolerates_refusal = mode == DeliveryMode::Plain
            && connector.get("errors.tolerance").is_some_and(|t| t.trim().eq_ignore_ascii_case("all"));
        // A gap must never be closed by later records, unless the user wants refused ones left out.
        if idempotent && !self.limits.tolerates_refusal {
            self.out.insert("enable.gapless.guarantee".to_owned(), "true".to_owned());
        }
        let most = if idempotent { 5 } else { 1_000_000 };
        let in_flight = match self.given.remove("max.in.flight.requests.per.connection") {
            Some(given) => match self.number(&given) {
                Some(number) if number > most => {
                    self.warn(format!("{} was lowered to {most}: more would lose the order of records", given.origin));
                    most
                }
                Some(number) => number.max(1),
                None => return,
            },
            // Without idempotence a repeated request may overtake, so there must be only one.
            None if idempotent => most,
            None => 1,
        };
        self.out.insert("max.in.flight.requests.per.connection".to_owned(), in_flight.to_string());
    }

    fn timeouts(&mut self, mode: DeliveryMode) {
        let asked = self.given.remove("delivery.timeout.ms").and_then(|given| {
            let number = self.positive(&given)?;
            Some((Duration::from_millis(number), given.origin))
        });
        let transaction = self.given.remove("transaction.timeout.ms").and_then(|g| self.positive(&g));
        if let Some(ms) = transaction {
            self.limits.transaction_timeout = Duration::from_millis(ms.clamp(1_000, i32::MAX as u64));
        }
        let most = match mode {
            DeliveryMode::Plain => PLAIN_DELIVERY_TIMEOUT,
            DeliveryMode::Fenced => self.limits.transaction_timeout,
        };
        let timeout = match asked {
            Some((wanted, ref origin)) if wanted > most => {
                let ms = most.as_millis();
                self.warn(match mode {
                    DeliveryMode::Plain => format!(
                        "{origin} was lowered to {ms} ms: a new owner of a lost task waits that long before it sends; the task itself retries for ever"
                    ),
                    DeliveryMode::Fenced => format!("{origin} was lowered to {ms} ms, the time limit of a transaction"),
                });
                most
            }
            Some((wanted, _)) => wanted,
            None if mode == DeliveryMode::Plain => PLAIN_DELIVERY_TIMEOUT,
            None => FENCED_DELIVERY_TIMEOUT.min(most),
        };
        let linger = self.out.get("linger.ms").and_then(|v| v.parse::<f64>().ok()).unwrap_or(0.0);
        if timeout.as_secs_f64() * 1000.0 <= linger {
            let origin = self.origins.get("linger.ms").or(asked.as_ref().map(|(_, o)| o)).cloned();
            self.problem(&origin.unwrap_or_default(), "linger.ms must be shorter than delivery.timeout.ms");
        }
        self.out.insert("message.timeout.ms".to_owned(), timeout.as_millis().to_string());
        let request = self.out.get("socket.timeout.ms").and_then(|v| v.parse::<u64>().ok()).unwrap_or(30_000);
        let request = Duration::from_millis(request).min(timeout).as_millis().max(10);
        self.limits.request_timeout = Duration::from_millis(u64::try_from(request).unwrap_or(u64::MAX));
        self.out.insert("socket.timeout.ms".to_owned(), request.to_string());
        if mode == DeliveryMode::Fenced {
            self.out
                .insert("transaction.timeout.ms".to_owned(), self.limits.transaction_timeout.as_millis().to_string());
        }
    }

    fn positive(&mut self, given: &Given) -> Option<u64> {
        match self.number(given)? {
            number if number > 0 => u64::try_from(number).ok(),
            _ => {
                self.problem(&given.origin, "must be greater than 0");
                None
            }
        }
    }
}

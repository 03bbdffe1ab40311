//! What follows when a single record cannot be transformed or converted: try again, leave it out, or
//! stop (`errors.*` of the connector).
//!
//! Pure decisions and counters; the encoder does the waiting and, for a record that is left out,
//! enters its position as done. Nothing is left out in silence: it is counted, and logged if
//! `errors.log.enable` says so. Values of records are never logged.
//!
//! It does not see errors of the source before a record exists; connectors have their own switches.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use thalweg_config::{Properties, Settings};

use crate::error::{Error, ErrorKind, Phase};
use crate::record::Record;

/// Where a record was when it failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stage {
    Transformation,
    KeyConverter,
    ValueConverter,
    HeaderConverter,
    /// Refused by the client before it was sent (too large).
    KafkaProduce,
}

impl Stage {
    /// Kafka Connect's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Transformation => "TRANSFORMATION",
            Self::KeyConverter => "KEY_CONVERTER",
            Self::ValueConverter => "VALUE_CONVERTER",
            Self::HeaderConverter => "HEADER_CONVERTER",
            Self::KafkaProduce => "KAFKA_PRODUCE",
        }
    }
}

/// Counters of one task, under the names of Kafka Connect's task-error metrics.
#[derive(Debug, Default)]
pub struct ErrorCounters {
    pub total_record_failures: AtomicU64,
    pub total_record_errors: AtomicU64,
    pub total_records_skipped: AtomicU64,
    pub total_retries: AtomicU64,
    pub total_errors_logged: AtomicU64,
    /// Dead letters handed to the producer.
    pub deadletterqueue_produce_requests: AtomicU64,
    /// Of them, those that could not be written as they were.
    pub deadletterqueue_produce_failures: AtomicU64,
    /// Milliseconds since the epoch; 0 = none yet.
    pub last_error_timestamp: AtomicI64,
}

/// What to do with the record.
#[derive(Debug)]
pub enum Verdict {
    /// Wait this long (a stop interrupts), then try the same operation again.
    Retry(Duration),
    /// Go on without the record.
    Skip,
    /// Stop the task with this error.
    Fail(Error),
}

/// One operation on one record, from its first failure on.
#[derive(Debug, Clone, Copy)]
pub struct Attempt {
    started: Instant,
    failures: u32,
}

impl Attempt {
    /// `started` is when the operation was tried first.
    pub const fn new(started: Instant) -> Self {
        Self { started, failures: 0 }
    }
}

/// The rules in force.
#[derive(Debug)]
pub struct Tolerance {
    /// `<connector>-<task>`.
    task: String,
    skip: bool,
    /// `None`: without end.
    retry_for: Option<Duration>,
    max_delay: Duration,
    log: bool,
    log_coordinates: bool,
    counters: Arc<ErrorCounters>,
}

const FIRST_DELAY: Duration = Duration::from_millis(300);

impl Tolerance {
    /// `settings` are those of the framework table (`thalweg_config::connector::FRAMEWORK`).
    pub fn from_settings(settings: &Settings, connector: &str, task: u32, counters: Arc<ErrorCounters>) -> Self {
        let timeout = settings.int("errors.retry.timeout");
        Self {
            task: format!("{connector}-{task}"),
            skip: settings.text_or_empty("errors.tolerance") == "all",
            retry_for: u64::try_from(timeout).ok().map(Duration::from_millis),
            // Kafka Connect takes any number; nothing is tried again without a pause.
            max_delay: settings.millis("errors.retry.delay.max.ms").max(Duration::from_millis(1)),
            log: settings.bool("errors.log.enable"),
            log_coordinates: settings.bool("errors.log.include.messages"),
            counters,
        }
    }

    /// What is doubtful about the options of a configuration.
    pub fn warnings(config: &Properties) -> Vec<String> {
        const TOPIC: &str = "errors.deadletterqueue.topic.name";
        let given = |name: &str| config.get(name).map(str::trim).filter(|text| !text.is_empty());
        let tolerated = given("errors.tolerance").is_some_and(|text| text.eq_ignore_ascii_case("all"));
        match given(TOPIC) {
            Some(_) if !tolerated => vec![format!("{TOPIC} is without effect: it needs errors.tolerance=all")],
            _ => Vec::new(),
        }
    }

    pub fn counters(&self) -> &Arc<ErrorCounters> {
        &self.counters
    }

    /// Judges a failure. `class` is the converter or transform; `random` is uniform in `0.0..1.0` and
    /// spreads delays that would be longer than the limit.
    pub fn judge(
        &self,
        attempt: &mut Attempt,
        at: (Stage, &str),
        error: Error,
        record: &Record,
        now: Instant,
        random: f64,
    ) -> Verdict {
        attempt.failures = attempt.failures.saturating_add(1);
        count(&self.counters.total_record_failures);
        if error.is_retriable()
            && let Some(delay) = self.delay(attempt, now, random)
        {
            count(&self.counters.total_retries);
            return Verdict::Retry(delay);
        }
        count(&self.counters.total_record_errors);
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.counters.last_error_timestamp.store(wall.as_millis() as i64, Ordering::Relaxed);
        self.report(at, &error, record);
        if self.skip && concerns_record(&error) {
            count(&self.counters.total_records_skipped);
            return Verdict::Skip;
        }
        Verdict::Fail(exceeded(at, error, record))
    }

    /// Time to the next attempt; `None` when there is none.
    fn delay(&self, attempt: &Attempt, now: Instant, random: f64) -> Option<Duration> {
        let left = match self.retry_for {
            None => Duration::MAX,
            Some(limit) => {
                let left = limit.saturating_sub(now.saturating_duration_since(attempt.started));
                if left.is_zero() {
                    return None;
                }
                left
            }
        };
        let doubled = FIRST_DELAY.checked_mul(1u32.checked_shl(attempt.failures - 1).unwrap_or(u32::MAX));
        let delay = match doubled {
            Some(delay) if delay <= self.max_delay => delay,
            _ => self.max_delay.mul_f64(random.clamp(0.0, 1.0)),
        };
        Some(delay.min(left))
    }

    fn report(&self, (stage, class): (Stage, &str), error: &Error, record: &Record) {
        if !self.log {
            return;
        }
        count(&self.counters.total_errors_logged);
        let (task, stage) = (&*self.task, stage.name());
        let line = log_line(task, stage, class);
        if self.log_coordinates {
            let (topic, partition, timestamp) = (&*record.topic, record.partition, record.timestamp);
            tracing::error!(task, stage, class, topic, partition, timestamp, %error, "{line}");
        } else {
            tracing::error!(task, stage, class, %error, "{line}");
        }
    }
}

/// Kafka Connect's line, because people look for it; everything else is beside it in fields.
fn log_line(task: &str, stage: &str, class: &str) -> String {
    format!("Error encountered in task {task}. Executing stage '{stage}' with class '{class}'.")
}

/// Whether leaving the record out would help. A converter that cannot reach its schema registry fails for
/// every record alike: leaving them out would lose all changes of an outage.
fn concerns_record(error: &Error) -> bool {
    use ErrorKind as K;
    let elsewhere = matches!(error.kind, K::Connect | K::Timeout | K::Auth | K::Permission | K::Tls | K::Config);
    !(elsewhere && error.phase == Phase::Convert)
}

/// The error that stops the task: Kafka Connect's first line, the failure itself as its cause.
fn exceeded((stage, class): (Stage, &str), error: Error, record: &Record) -> Error {
    let place = format!("stage {} with class {class}, record for topic {}", stage.name(), record.topic);
    let advice = error.advice().into_owned();
    let mut causes = vec![format!("{} ({place})", error.message)];
    causes.extend(error.causes);
    Error {
        kind: error.kind,
        phase: error.phase,
        message: "Tolerance exceeded in error handler".to_owned(),
        advice: Some(advice),
        causes,
    }
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use proptest::prelude::*;
    use thalweg_config::connector::FRAMEWORK;

    use super::*;
    use crate::error::Policy;
    use crate::position::Position;
    use crate::record::{Datum, Headers};

    const AT: (Stage, &str) = (Stage::ValueConverter, "org.example.Converter");

    #[test]
    fn a_tolerated_error_is_logged_with_the_line_of_kafka_connect() {
        assert_eq!(
            log_line("c-0", Stage::ValueConverter.name(), "org.example.Converter"),
            "Error encountered in task c-0. Executing stage 'VALUE_CONVERTER' with class 'org.example.Converter'."
        );
    }

    #[test]
    fn nothing_is_tried_again_without_a_pause() {
        for most in ["0", "-5"] {
            assert_eq!(tolerance([("errors.retry.delay.max.ms", most)]).max_delay, Duration::from_millis(1));
        }
    }

    fn tolerance<const N: usize>(pairs: [(&str, &str); N]) -> Tolerance {
        let mut config = Properties::from(pairs);
        config.set("name", "c");
        config.set("connector.class", "x");
        let validation = FRAMEWORK.validate(&config);
        assert!(validation.is_valid(), "{:?}", validation.messages());
        Tolerance::from_settings(&validation.settings, "c", 0, Arc::default())
    }

    fn record() -> Record {
        Record {
            topic: "t".into(),
            partition: None,
            key: Datum::none(),
            value: Datum::none(),
            headers: Headers::default(),
            timestamp: None,
            position: Position::default(),
        }
    }

    fn invalid() -> Error {
        Error::new(ErrorKind::ValueInvalid, Phase::Convert, "not a number (field a)")
    }

    #[test]
    fn a_topic_for_dead_letters_needs_tolerance() {
        let topic = ("errors.deadletterqueue.topic.name", "dead");
        assert!(Tolerance::warnings(&Properties::from([topic]))[0].contains("errors.tolerance=all"));
        assert!(Tolerance::warnings(&Properties::from([topic, ("errors.tolerance", "all")])).is_empty());
        assert!(Tolerance::warnings(&Properties::new()).is_empty());
    }

    fn retriable() -> Error {
        Error::new(ErrorKind::Timeout, Phase::Convert, "registry is slow")
    }

    fn counts(tolerance: &Tolerance) -> [u64; 5] {
        let c = tolerance.counters();
        [
            &c.total_record_failures,
            &c.total_record_errors,
            &c.total_records_skipped,
            &c.total_retries,
            &c.total_errors_logged,
        ]
        .map(|counter| counter.load(Ordering::Relaxed))
    }

    #[test]
    fn by_default_the_first_failure_stops_the_task() {
        let tolerance = tolerance([]);
        let now = Instant::now();
        let verdict = tolerance.judge(&mut Attempt::new(now), AT, invalid(), &record(), now, 0.5);
        let Verdict::Fail(error) = verdict else { panic!("{verdict:?}") };
        assert_eq!(error.policy(), Policy::NeedsUser);
        assert_eq!(
            error.trace(),
            "org.apache.kafka.connect.errors.DataException: Tolerance exceeded in error handler\n\
             advice: correct the value or the converter, or set errors.tolerance=all to leave such records out\n\
             Caused by: not a number (field a) (stage VALUE_CONVERTER with class org.example.Converter, record for topic t)"
        );
        assert_eq!(counts(&tolerance), [1, 1, 0, 0, 0]);
        assert!(tolerance.counters().last_error_timestamp.load(Ordering::Relaxed) > 0);
        let verdict = tolerance.judge(&mut Attempt::new(now), AT, retriable(), &record(), now, 0.5);
        assert!(matches!(verdict, Verdict::Fail(_)), "no retry without errors.retry.timeout");
    }

    #[test]
    fn tolerated_errors_are_counted_and_logged() {
        let tolerance = tolerance([
            ("errors.tolerance", "all"),
            ("errors.log.enable", "true"),
            ("errors.log.include.messages", "true"),
        ]);
        let now = Instant::now();
        for stage in [Stage::Transformation, Stage::KeyConverter, Stage::HeaderConverter] {
            let verdict = tolerance.judge(&mut Attempt::new(now), (stage, "x"), invalid(), &record(), now, 0.0);
            assert!(matches!(verdict, Verdict::Skip));
        }
        assert_eq!(counts(&tolerance), [3, 3, 3, 0, 3]);
        let verdict = tolerance.judge(&mut Attempt::new(now), AT, retriable(), &record(), now, 0.0);
        let Verdict::Fail(error) = verdict else { panic!("an outage is no reason to leave records out: {verdict:?}") };
        assert!(error.is_retriable());
    }

    #[test]
    fn retriable_errors_are_tried_again_until_the_deadline() {
        let tolerance = tolerance([("errors.retry.timeout", "1000"), ("errors.retry.delay.max.ms", "60000")]);
        let start = Instant::now();
        let mut attempt = Attempt::new(start);
        let mut at = start;
        let mut delays = Vec::new();
        let failed = loop {
            match tolerance.judge(&mut attempt, AT, retriable(), &record(), at, 0.5) {
                Verdict::Retry(delay) => {
                    delays.push(delay.as_millis());
                    at += delay;
                }
                other => break other,
            }
        };
        assert_eq!(delays, [300, 600, 100], "doubled, and never past the deadline");
        assert!(matches!(failed, Verdict::Fail(_)));
        assert_eq!(counts(&tolerance), [4, 1, 0, 3, 0]);
        let now = Instant::now();
        let verdict = tolerance.judge(&mut Attempt::new(now), AT, invalid(), &record(), now, 0.5);
        assert!(matches!(verdict, Verdict::Fail(_)), "what is not retriable is not tried again");
    }

    proptest! {
        #[test]
        fn delays_stay_within_their_limits(
            failures in 1u32..200, max_ms in 1u64..100_000, random in 0.0f64..1.0, left_ms in prop::option::of(1u64..50_000),
        ) {
            let mut rules = tolerance([]);
            rules.max_delay = Duration::from_millis(max_ms);
            rules.retry_for = left_ms.map(Duration::from_millis);
            let now = Instant::now();
            let delay = rules.delay(&Attempt { started: now, failures }, now, random).unwrap();
            prop_assert!(delay <= rules.max_delay);
            prop_assert!(left_ms.is_none_or(|left| delay <= Duration::from_millis(left)));
        }
    }
}

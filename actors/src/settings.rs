//! The framework options that the runtime itself obeys, taken from a unit's configuration.
//!
//! Values were checked when the configuration came in over REST; one that cannot be read all the
//! same (it was a reference then) is a configuration error that names the property.

use std::time::Duration;

use thalweg_config::Properties;
use thalweg_core::Error;
use thalweg_core::queue::Limits;

use crate::backoff::BackoffPolicy;

/// What the node lends to all units.
#[derive(Debug, Clone)]
pub struct NodeOptions {
    /// Longest time between two commits of a moving position (250 ms, and at most
    /// `offset.flush.interval.ms`).
    pub commit_interval: Duration,
    /// The same for a position that moves although nothing was captured (`offset.flush.interval.ms`).
    pub quiet_commit_interval: Duration,
    /// How long outstanding acknowledgements are waited for (`offset.flush.timeout.ms`).
    pub flush_timeout: Duration,
    /// How long a unit may take to drain (`task.shutdown.graceful.timeout.ms`).
    pub stop_timeout: Duration,
    /// How often actors look after their children and at progress.
    pub heartbeat: Duration,
    /// The worker's configuration, references resolved: converters for connectors that name none.
    pub worker: Properties,
}

impl Default for NodeOptions {
    fn default() -> Self {
        Self {
            commit_interval: Duration::from_millis(250),
            quiet_commit_interval: Duration::from_secs(10),
            flush_timeout: Duration::from_secs(5),
            stop_timeout: Duration::from_secs(10),
            heartbeat: Duration::from_millis(500),
            worker: Properties::new(),
        }
    }
}

/// Framework options of one connector or task.
#[derive(Debug, Clone)]
pub(crate) struct UnitSettings {
    pub backoff: BackoffPolicy,
    pub queue: Limits,
    /// How long a source may take to release its connections.
    pub close_timeout: Duration,
    /// Silence after which a running partition is taken for stuck; zero = never.
    pub progress_timeout: Duration,
    pub tasks_max: usize,
    pub tasks_max_enforce: bool,
}

/// Bytes in a partition's queue where `max.queue.size.in.bytes` sets no limit: memory stays bounded.
const QUEUE_BYTES: usize = 32 * 1024 * 1024;

impl UnitSettings {
    pub(crate) fn read(config: &Properties) -> Result<Self, Error> {
        let millis = |name, default: u64| Ok(Duration::from_millis(unsigned(config, name)?.unwrap_or(default)));
        let backoff = BackoffPolicy {
            base: millis("errors.retry.delay.initial.ms", 500)?,
            // Any number is taken; nothing is tried again without a pause.
            cap: Duration::from_millis(
                signed(config, "errors.retry.delay.max.ms")?.map_or(60_000, |ms| u64::try_from(ms).unwrap_or(0).max(1)),
            ),
            fixed: unsigned(config, "retriable.restart.connector.wait.ms")?.map(Duration::from_millis),
            max_retries: match signed(config, "errors.max.retries")? {
                None | Some(..=-1) => None,
                Some(n) => Some(u32::try_from(n).unwrap_or(u32::MAX)),
            },
        };
        let records = unsigned(config, "max.queue.size")?.map_or(8192, as_usize).max(1);
        let bytes = unsigned(config, "max.queue.size.in.bytes")?.map_or(0, as_usize);
        Ok(Self {
            backoff,
            queue: Limits { records, bytes: if bytes == 0 { QUEUE_BYTES } else { bytes } },
            close_timeout: millis("executor.shutdown.timeout.ms", 4_000)?,
            progress_timeout: millis("thalweg.progress.timeout.ms", 300_000)?,
            tasks_max: unsigned(config, "tasks.max")?.map_or(1, as_usize).max(1),
            tasks_max_enforce: config.get("tasks.max.enforce").is_none_or(|v| !v.trim().eq_ignore_ascii_case("false")),
        })
    }
}

fn as_usize(value: u64) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX)
}

fn signed(config: &Properties, name: &'static str) -> Result<Option<i64>, Error> {
    let Some(text) = config.get(name) else { return Ok(None) };
    match text.trim().parse() {
        Ok(value) => Ok(Some(value)),
        Err(_) => Err(Error::config(format!("The '{name}' value is invalid: a whole number is needed"))),
    }
}

fn unsigned(config: &Properties, name: &'static str) -> Result<Option<u64>, Error> {
    match signed(config, name)? {
        None => Ok(None),
        Some(value) => u64::try_from(value)
            .map(Some)
            .map_err(|_| Error::config(format!("The '{name}' value is invalid: it must not be negative"))),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    #[test]
    fn retry_options_are_honoured() {
        let read = |pairs: &[(&str, &str)]| {
            let config = pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
            UnitSettings::read(&config)
        };
        assert_eq!(read(&[]).unwrap().backoff, BackoffPolicy::default());
        for (text, expected) in [("-1", None), ("0", Some(0)), ("3", Some(3))] {
            assert_eq!(read(&[("errors.max.retries", text)]).unwrap().backoff.max_retries, expected);
        }
        let set = read(&[
            ("errors.retry.delay.initial.ms", "300"),
            ("errors.retry.delay.max.ms", "10000"),
            ("retriable.restart.connector.wait.ms", "700"),
        ]);
        let expected = BackoffPolicy {
            base: Duration::from_millis(300),
            cap: Duration::from_secs(10),
            fixed: Some(Duration::from_millis(700)),
            max_retries: None,
        };
        assert_eq!(set.unwrap().backoff, expected);
        for most in ["0", "-5"] {
            let cap = read(&[("errors.retry.delay.max.ms", most)]).unwrap().backoff.cap;
            assert_eq!(cap, Duration::from_millis(1), "any number is taken");
        }
        let error = read(&[("max.queue.size", "many")]).unwrap_err();
        assert_eq!(error.message, "The 'max.queue.size' value is invalid: a whole number is needed");
    }

    #[test]
    fn the_queue_is_bounded_in_bytes_whatever_the_configuration() {
        let off = UnitSettings::read(&Properties::from([("max.queue.size.in.bytes", "0")])).unwrap();
        assert_eq!(off.queue, Limits { records: 8192, bytes: QUEUE_BYTES });
        let set = UnitSettings::read(&Properties::from([("max.queue.size.in.bytes", "1000")])).unwrap();
        assert_eq!(set.queue.bytes, 1000);
    }
}

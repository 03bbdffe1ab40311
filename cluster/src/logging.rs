//! The process's log: format, and levels that change while it runs.
//!
//! Loggers have the names that users know from Kafka Connect (`io.debezium.connector.mongodb`,
//! `org.apache.kafka.connect`) or the targets of this build (`thalweg_mongodb`); the root logger is
//! `root`. A level holds for everything below it until a more precise one says otherwise.
//!
//! It does not write anything itself.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry, fmt, reload};

use crate::raft::command::LogLevel;
use crate::raft::state::Logger;

pub const ROOT: &str = "root";

/// Names under which users know parts of this build, most precise first.
const FAMILIAR: &[(&str, &[&str])] = &[
    ("io.debezium.connector.mongodb", &["thalweg_mongodb"]),
    ("io.debezium.connector.sqlserver", &["thalweg_sqlserver"]),
    ("io.debezium", &["thalweg_mongodb", "thalweg_sqlserver", "thalweg_core"]),
    ("org.apache.kafka.connect.runtime.rest", &["thalweg_cluster::rest", "thalweg_cluster::api"]),
    ("org.apache.kafka.connect", &["thalweg_cluster", "thalweg_actors", "thalweg_core"]),
    ("org.apache.kafka.clients", &["thalweg_kafka", "rdkafka"]),
    ("org.apache.kafka", &["thalweg_kafka", "rdkafka", "thalweg_cluster", "thalweg_actors"]),
    ("com.microsoft.sqlserver", &["tiberius"]),
    ("com.mongodb", &["mongodb"]),
    ("org.mongodb.driver", &["mongodb"]),
];

/// Targets that are too talkative at the level of everything else.
const QUIET: &[(&str, LevelFilter)] = &[
    ("openraft", LevelFilter::ERROR),
    ("mongodb", LevelFilter::WARN),
    ("rdkafka", LevelFilter::WARN),
    ("hyper", LevelFilter::WARN),
    ("rustls", LevelFilter::WARN),
    // It tells of each failure that its caller gets, also of those that are expected.
    ("tiberius", LevelFilter::OFF),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Level {
    pub level: LogLevel,
    /// Milliseconds since the epoch; `None` since the start.
    pub modified_ms: Option<u64>,
}

impl Level {
    pub fn to_json(self) -> Value {
        json!({"level": level_name(self.level), "last_modified": self.modified_ms})
    }
}

type Apply = dyn Fn(Targets) + Send + Sync;

/// Handle to the levels of this process.
#[derive(Clone)]
pub struct Loggers {
    levels: Arc<Mutex<BTreeMap<String, Level>>>,
    apply: Arc<Apply>,
}

impl Loggers {
    /// Starts the process's log on standard error. Called once by the binary.
    pub fn install(json: bool, level: LogLevel) -> Self {
        let (filter, handle) = reload::Layer::<_, Registry>::new(Targets::new());
        let output: Box<dyn Layer<_> + Send + Sync> = if json {
            fmt::layer().json().flatten_event(true).with_writer(std::io::stderr).boxed()
        } else {
            fmt::layer().with_writer(std::io::stderr).with_ansi(false).boxed()
        };
        // A second call (tests) keeps the first log.
        let _ = tracing_subscriber::registry().with(output.with_filter(filter)).try_init();
        let loggers = Self::with(level, move |targets| {
            let _ = handle.reload(targets);
        });
        loggers.refresh();
        loggers
    }

    /// Levels that nobody listens to.
    pub fn detached(level: LogLevel) -> Self {
        Self::with(level, |_| {})
    }

    fn with(level: LogLevel, apply: impl Fn(Targets) + Send + Sync + 'static) -> Self {
        let root = Level { level, modified_ms: None };
        Self { levels: Arc::new(Mutex::new(BTreeMap::from([(ROOT.to_owned(), root)]))), apply: Arc::new(apply) }
    }

    /// Loggers with a level of their own, sorted.
    pub fn explicit(&self) -> BTreeMap<String, Level> {
        self.levels.lock().clone()
    }

    /// Level that holds for a logger that exists: one with a level of its own, a part of this build,
    /// or something below either.
    pub fn effective(&self, name: &str) -> Option<Level> {
        let name = canonical(name);
        let levels = self.levels.lock();
        if let Some(level) = levels.get(name) {
            return Some(*level);
        }
        let inherited = ancestors(name).find_map(|a| levels.get(a).copied());
        let known = FAMILIAR.iter().any(|(familiar, targets)| *familiar == name || targets.contains(&name));
        match inherited {
            Some(level) => Some(level),
            None if known => levels.get(ROOT).map(|root| Level { modified_ms: None, ..*root }),
            None => None,
        }
    }

    /// Sets the level of a logger and of those below it that have one, which for the root logger are all.
    /// Gives the sorted names of those whose level is another one now.
    pub fn set(&self, name: &str, level: LogLevel, now_ms: u64) -> Vec<String> {
        let name = canonical(name);
        let mut changed = Vec::new();
        {
            let mut levels = self.levels.lock();
            let held = |name: &str| levels.get(name).map(|held| held.level);
            let before = held(name).or_else(|| ancestors(name).find_map(held)).or_else(|| held(ROOT));
            let inherited = Level { level: before.unwrap_or(level), modified_ms: None };
            levels.entry(name.to_owned()).or_insert(inherited);
            for (other, held) in levels.iter_mut() {
                let concerned = name == ROOT || other == name || ancestors(other).any(|a| a == name);
                if concerned && held.level != level {
                    *held = Level { level, modified_ms: Some(now_ms) };
                    changed.push(other.clone());
                }
            }
        }
        self.refresh();
        changed
    }

    /// Takes over the cluster's levels, once per change of theirs and in the order of the changes: one of a
    /// logger is one of those below it that were set before.
    pub fn follow(&self, cluster: &BTreeMap<String, Logger>, seen: &mut BTreeMap<String, Logger>) {
        let mut fresh: Vec<_> = cluster.iter().filter(|(name, logger)| seen.get(*name) != Some(*logger)).collect();
        fresh.sort_by_key(|(_, logger)| logger.modified_ms);
        for (name, logger) in fresh {
            self.set(name, logger.level, logger.modified_ms);
        }
        seen.clone_from(cluster);
    }

    fn refresh(&self) {
        let levels = self.levels.lock();
        let mut targets = Targets::new();
        for (target, quiet) in QUIET {
            let root = levels.get(ROOT).map_or(LevelFilter::INFO, |l| filter(l.level));
            targets = targets.with_target(*target, root.min(*quiet));
        }
        for (name, entry) in levels.iter() {
            if name == ROOT {
                targets = targets.with_default(filter(entry.level));
                continue;
            }
            match FAMILIAR.iter().find(|(familiar, _)| familiar == name) {
                Some((_, own)) => {
                    for target in *own {
                        targets = targets.with_target(*target, filter(entry.level));
                    }
                }
                None => targets = targets.with_target(name.replace('.', "::"), filter(entry.level)),
            }
        }
        drop(levels);
        (self.apply)(targets);
    }
}

/// The root logger is known by its name in any case.
pub(crate) fn canonical(name: &str) -> &str {
    if name.eq_ignore_ascii_case(ROOT) { ROOT } else { name }
}

/// `a.b.c` lies below `a.b` and `a`.
fn ancestors(name: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(name), |n| n.rfind(['.', ':']).map(|at| n[..at].trim_end_matches(':'))).skip(1)
}

fn filter(level: LogLevel) -> LevelFilter {
    match level {
        LogLevel::Off => LevelFilter::OFF,
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    }
}

/// Log4j's spelling.
pub fn level_name(level: LogLevel) -> &'static str {
    match level {
        LogLevel::Off => "OFF",
        LogLevel::Error => "ERROR",
        LogLevel::Warn => "WARN",
        LogLevel::Info => "INFO",
        LogLevel::Debug => "DEBUG",
        LogLevel::Trace => "TRACE",
    }
}

/// Reads a Log4j level, in any case; FATAL is ERROR here.
pub fn parse_level(text: &str) -> Option<LogLevel> {
    Some(match text.to_ascii_uppercase().as_str() {
        "OFF" => LogLevel::Off,
        "FATAL" | "ERROR" => LogLevel::Error,
        "WARN" => LogLevel::Warn,
        "INFO" => LogLevel::Info,
        "DEBUG" => LogLevel::Debug,
        "TRACE" | "ALL" => LogLevel::Trace,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_inherited_until_a_more_precise_one() {
        let loggers = Loggers::detached(LogLevel::Info);
        assert_eq!(loggers.effective("no.such.logger"), None);
        assert_eq!(loggers.effective("io.debezium").map(|l| l.level), Some(LogLevel::Info));
        assert_eq!(loggers.set("a.b", LogLevel::Debug, 5), ["a.b"]);
        assert_eq!(loggers.effective("a.b.c"), Some(Level { level: LogLevel::Debug, modified_ms: Some(5) }));
        assert_eq!(loggers.set("a", LogLevel::Warn, 6), ["a", "a.b"]);
        assert_eq!(loggers.effective("a.b.c").map(|l| l.level), Some(LogLevel::Warn));
        assert_eq!(loggers.explicit().len(), 3);
        assert_eq!(loggers.set("a.b", LogLevel::Warn, 7), [""; 0], "nothing is another one");
        assert_eq!(loggers.effective("a.b"), Some(Level { level: LogLevel::Warn, modified_ms: Some(6) }));
    }

    #[test]
    fn everything_is_below_the_root() {
        let loggers = Loggers::detached(LogLevel::Info);
        loggers.set("b", LogLevel::Debug, 1);
        loggers.set("a.x", LogLevel::Trace, 2);
        assert_eq!(loggers.set("ROOT", LogLevel::Warn, 3), ["a.x", "b", "root"]);
        let all = loggers.explicit();
        assert!(all.len() == 3 && all.values().all(|l| *l == Level { level: LogLevel::Warn, modified_ms: Some(3) }));
        assert_eq!(loggers.effective("Root").map(|l| l.level), Some(LogLevel::Warn));
    }

    #[test]
    fn the_cluster_s_levels_are_taken_in_the_order_in_which_they_were_set() {
        let logger = |level, modified_ms| Logger { level, modified_ms };
        for (of_root, of_one, expected) in [(1, 2, LogLevel::Debug), (2, 1, LogLevel::Warn)] {
            let cluster = BTreeMap::from([
                ("a".to_owned(), logger(LogLevel::Debug, of_one)),
                (ROOT.to_owned(), logger(LogLevel::Warn, of_root)),
            ]);
            let loggers = Loggers::detached(LogLevel::Info);
            loggers.follow(&cluster, &mut BTreeMap::new());
            assert_eq!(loggers.effective("a").map(|l| l.level), Some(expected));
        }
    }

    #[test]
    fn the_cluster_s_levels_are_taken_once_per_change() {
        let loggers = Loggers::detached(LogLevel::Info);
        let mut seen = BTreeMap::new();
        let cluster = BTreeMap::from([("x".to_owned(), Logger { level: LogLevel::Debug, modified_ms: 1 })]);
        loggers.follow(&cluster, &mut seen);
        loggers.set("x", LogLevel::Error, 2);
        loggers.follow(&cluster, &mut seen);
        assert_eq!(loggers.effective("x").map(|l| l.level), Some(LogLevel::Error));
    }
}

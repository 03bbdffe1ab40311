//! What arrives, and the silence when a node dies: how long, what is missing, what came twice.

use std::collections::HashSet;
use std::fmt;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use serde_json::Value;
use thalweg_kafka::Followed;

/// Events after a silence before it is called over: repeated ones may come first.
const SETTLED: usize = 10;

/// An event as the demo prints it.
pub(super) struct Event {
    op: String,
    key: String,
    seq: Option<i64>,
    status: String,
    offset: i64,
    /// From the change at the source to the append in the topic.
    delay_ms: Option<i64>,
    repeated: bool,
}

impl Event {
    pub fn line(&self, owner: Option<u64>) -> String {
        let seq = self.seq.map_or_else(String::new, |s| format!("change {s:>6}"));
        let delay = self.delay_ms.map_or_else(String::new, |d| format!("{d:>4} ms"));
        let owner = owner.map_or_else(String::new, |o| format!("node {o}"));
        let repeated = if self.repeated { "  (again)" } else { "" };
        format!(
            "  offset {:>6}  {}  id {:<3} {seq:<14} {:<10} {delay}  {owner}{repeated}",
            self.offset, self.op, self.key, self.status
        )
    }
}

struct Silence {
    node: u64,
    /// Last event before the death was noticed.
    last: Instant,
    over: Option<(Instant, usize)>,
    repeated: usize,
    longest: Duration,
}

/// Result of one death.
pub(super) struct Report {
    node: u64,
    gap: Duration,
    lost: usize,
    repeated: usize,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "node {} died: {:.2} s without an event, {} lost, {} repeated",
            self.node,
            self.gap.as_secs_f64(),
            self.lost,
            self.repeated
        )
    }
}

#[derive(Default)]
pub(super) struct Gaps {
    seen: HashSet<i64>,
    newest: i64,
    last: Option<Instant>,
    silence: Option<Silence>,
    lost: usize,
    reports: usize,
}

impl Gaps {
    /// Takes a record in; `None` for a tombstone.
    pub fn arrived(&mut self, record: &Followed) -> Option<Event> {
        let value: Value = serde_json::from_slice(record.value.as_deref()?).ok()?;
        let inner = |field: &str| value[field].as_str().and_then(|t| serde_json::from_str::<Value>(t).ok());
        let changed = value["updateDescription"]["updatedFields"].as_str().and_then(|t| serde_json::from_str(t).ok());
        let document: Value = changed.or_else(|| inner("after")).unwrap_or(Value::Null);
        let seq = number(&document["seq"]).filter(|s| *s > 0);
        let now = Instant::now();
        let repeated = seq.is_some_and(|s| !self.seen.insert(s));
        if let Some(silence) = &mut self.silence {
            silence.longest = silence.longest.max(now - self.last.unwrap_or(silence.last));
            silence.repeated += usize::from(repeated);
            silence.over = Some((silence.over.map_or(now, |o| o.0), silence.over.map_or(1, |o| o.1 + 1)));
        }
        self.newest = self.newest.max(seq.unwrap_or(0));
        self.last = Some(now);
        let key = record.key.as_deref().and_then(|k| serde_json::from_slice::<Value>(k).ok());
        let delay_ms = record.timestamp.zip(value["source"]["wallTime"].as_i64()).map(|(t, w)| (t - w).max(0));
        Some(Event {
            op: value["op"].as_str().unwrap_or("?").to_owned(),
            key: key.as_ref().and_then(|k| k["id"].as_str()).unwrap_or("?").to_owned(),
            seq,
            status: document["status"].as_str().unwrap_or_default().to_owned(),
            offset: record.offset,
            delay_ms,
            repeated,
        })
    }

    pub fn node_died(&mut self, node: u64) {
        let last = self.last.unwrap_or_else(Instant::now);
        self.silence = Some(Silence { node, last, over: None, repeated: 0, longest: Duration::ZERO });
    }

    /// The report of a silence that is over.
    pub fn finished(&mut self) -> Option<Report> {
        let settled = matches!(&self.silence, Some(Silence { over: Some((_, events)), .. }) if *events >= SETTLED);
        let silence = if settled { self.silence.take()? } else { return None };
        self.reports += 1;
        // The writer counts without holes.
        self.lost = (1..=self.newest).filter(|s| !self.seen.contains(s)).count();
        Some(Report { node: silence.node, gap: silence.longest, lost: self.lost, repeated: silence.repeated })
    }

    /// For `--kill`: whether events came back and none is missing.
    pub fn verdict(&self) -> Result<()> {
        if self.reports == 0 {
            bail!("no event arrived after the owner was killed");
        }
        if self.lost > 0 {
            bail!("{} changes are missing", self.lost);
        }
        Ok(())
    }
}

fn number(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| value["$numberLong"].as_str()?.parse().ok())
}

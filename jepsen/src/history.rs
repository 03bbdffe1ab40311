//! What happened, in order: every operation is invoked and then `ok`, `fail` (surely not applied) or
//! `info` (unknown). Written as JSON lines and as EDN in jepsen's original operation format, so
//! that its checkers can re-read a run.

use std::fmt::Write as _;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use anyhow::Result;
use parking_lot::Mutex;
use serde::Serialize;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum OpType {
    Invoke,
    Ok,
    Fail,
    Info,
}

impl OpType {
    fn name(self) -> &'static str {
        match self {
            Self::Invoke => "invoke",
            Self::Ok => "ok",
            Self::Fail => "fail",
            Self::Info => "info",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "f")]
pub enum Function {
    /// Document `key` of `collection` gets version `version`.
    Write { collection: String, key: i64, version: i64 },
    /// Document `key` is deleted; `version` counts on over deletes.
    Delete { collection: String, key: i64, version: i64 },
    /// An incremental snapshot of `collection` is asked for by the signal `id`, or has ended.
    Snapshot { collection: String, id: String },
    /// The nemesis does or ends something.
    Fault { kind: String, target: String },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Op {
    pub index: usize,
    /// Milliseconds since the start of the run.
    pub time: u64,
    pub process: String,
    #[serde(rename = "type")]
    pub kind: OpType,
    #[serde(flatten)]
    pub function: Function,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl Op {
    fn edn(&self) -> String {
        let mut text =
            format!("{{:index {}, :time {}, :type :{}, ", self.index, self.time * 1_000_000, self.kind.name());
        let _ = match &self.function {
            Function::Write { collection, key, version } => {
                write!(text, ":process \"{}\", :f :write, :value [\"{collection}\" {key} {version}]", self.process)
            }
            Function::Delete { collection, key, version } => {
                write!(text, ":process \"{}\", :f :delete, :value [\"{collection}\" {key} {version}]", self.process)
            }
            Function::Snapshot { collection, id } => {
                write!(text, ":process \"{}\", :f :snapshot, :value [\"{collection}\" \"{id}\"]", self.process)
            }
            Function::Fault { kind, target } => {
                write!(text, ":process :nemesis, :f :{kind}, :value {:?}", target)
            }
        };
        if let Some(error) = &self.error {
            let _ = write!(text, ", :error {error:?}");
        }
        text.push('}');
        text
    }
}

/// Shared, append-only.
#[derive(Clone)]
pub struct History {
    start: Instant,
    /// Wall clock at `start`, to compare with append times of Kafka.
    pub start_ms: i64,
    ops: Arc<Mutex<Vec<Op>>>,
}

impl Default for History {
    fn default() -> Self {
        let since_epoch = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Self { start: Instant::now(), start_ms: since_epoch.as_millis() as i64, ops: Arc::default() }
    }
}

impl History {
    pub fn now(&self) -> u64 {
        self.start.elapsed().as_millis() as u64
    }

    pub fn record(&self, process: &str, kind: OpType, function: Function, error: Option<String>) {
        let mut ops = self.ops.lock();
        let (index, time) = (ops.len(), self.now());
        ops.push(Op { index, time, process: process.to_owned(), kind, function, error });
    }

    pub fn ops(&self) -> Vec<Op> {
        self.ops.lock().clone()
    }

    /// Writes `history.jsonl` and `history.edn`.
    pub fn save(&self, folder: &Path) -> Result<()> {
        let mut json = BufWriter::new(std::fs::File::create(folder.join("history.jsonl"))?);
        let mut edn = BufWriter::new(std::fs::File::create(folder.join("history.edn"))?);
        for op in self.ops.lock().iter() {
            writeln!(json, "{}", serde_json::to_string(op)?)?;
            writeln!(edn, "{}", op.edn())?;
        }
        json.flush()?;
        edn.flush()?;
        Ok(())
    }
}

//! A run on disk: `summary.json` with figures, `timeline.svg` with the picture, what was seen as JSON
//! lines (`topic-N.jsonl`, `offsets.jsonl`, `epochs.jsonl`). Of a run that is not valid also what the
//! topics hold without being committed, and the changes as the source's log has them
//! (`uncommitted-N.jsonl`, `oplog-N.jsonl`).
//!
//! The folder of a run that was not valid is never written over: it is renamed.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write as _;
use std::io::{BufWriter, Write as _};
use std::path::Path;

use anyhow::{Context, Result};
use serde::Serialize;
use serde_json::{Value, json};

use crate::check::{Evidence, Finding, Verdict, verdict};
use crate::history::{History, OpType};
use crate::nemesis::Injected;
use crate::observe::{SeenEvent, SeenMessage};
use crate::run::RunOptions;

pub fn write(
    options: &RunOptions,
    history: &History,
    evidence: &Evidence,
    findings: &[Finding],
    injected: &[Injected],
) -> Result<Value> {
    let (mut ok, mut fail, mut info) = (0, 0, 0);
    for op in &evidence.ops {
        match op.kind {
            OpType::Ok => ok += 1,
            OpType::Fail => fail += 1,
            OpType::Info => info += 1,
            OpType::Invoke => {}
        }
    }
    let messages: usize = evidence.topics.iter().map(Vec::len).sum();
    let repeated: usize = evidence.topics.iter().map(|t| repeated(t)).sum();
    let faults: Vec<Value> = injected
        .iter()
        .map(|i| {
            json!({
                "fault": i.fault.name(),
                "target": i.target,
                "at_s": i.from as f64 / 1e3,
                "lasted_s": (i.healed - i.from) as f64 / 1e3,
                "converged_after_s": i.converged.saturating_sub(i.healed) as f64 / 1e3,
                "longest_gap_s": longest_gap(history, evidence, i),
            })
        })
        .collect();
    let mut by_kind = BTreeMap::<&str, Vec<f64>>::new();
    for i in injected {
        by_kind.entry(i.fault.name()).or_default().push(longest_gap(history, evidence, i));
    }
    let by_kind: BTreeMap<&str, Value> = by_kind
        .into_iter()
        .map(|(kind, gaps)| {
            let worst = gaps.iter().copied().fold(0.0, f64::max);
            (kind, json!({"count": gaps.len(), "longest_gap_s": worst}))
        })
        .collect();
    let summary = json!({
        "verdict": verdict(findings),
        "scenario": options.lab.scenario,
        "delivery": options.lab.delivery,
        "seed": options.seed,
        "time_s": history.now() as f64 / 1e3,
        "operations": {"ok": ok, "fail": fail, "unknown": info},
        "messages": messages,
        "repeated": repeated,
        "checkers": findings,
        "by_fault": by_kind,
        "faults": faults,
    });
    std::fs::write(options.folder.join("summary.json"), serde_json::to_string_pretty(&summary)?)?;
    std::fs::write(options.folder.join("timeline.svg"), timeline(history, evidence, injected))?;
    for (number, messages) in evidence.topics.iter().enumerate() {
        lines(&options.folder, &format!("topic-{number}"), messages)?;
    }
    lines(&options.folder, "offsets", &evidence.offsets)?;
    lines(&options.folder, "epochs", &evidence.epochs)?;
    history_note(options)?;
    Ok(summary)
}

/// Writes `name.jsonl`.
pub fn lines(folder: &Path, name: &str, rows: &[impl Serialize]) -> Result<()> {
    let mut out = BufWriter::new(std::fs::File::create(folder.join(format!("{name}.jsonl")))?);
    for row in rows {
        serde_json::to_writer(&mut out, row)?;
        out.write_all(b"\n")?;
    }
    Ok(out.flush()?)
}

/// Makes the folder of a run, empty. One that is there is evidence unless its run was valid.
pub fn clear(folder: &Path) -> Result<()> {
    if folder.exists() {
        let summary = std::fs::read_to_string(folder.join("summary.json")).unwrap_or_default();
        let summary: Value = serde_json::from_str(&summary).unwrap_or_default();
        if summary["verdict"] == json!(Verdict::Valid) {
            std::fs::remove_dir_all(folder)?;
        } else {
            let kept = (1..).map(|n| folder.with_added_extension(format!("kept-{n}"))).find(|kept| !kept.exists());
            std::fs::rename(folder, kept.context("there is a number that is free")?)?;
        }
    }
    Ok(std::fs::create_dir_all(folder)?)
}

/// How to run the same again.
fn history_note(options: &RunOptions) -> Result<()> {
    let faults: Vec<&str> = options.faults.iter().map(|f| f.name()).collect();
    let mut text = format!(
        "thalweg-jepsen --scenario {} --time {}s --seed {} --pace-ms {} --delivery {} --faults {}",
        options.lab.scenario.name(),
        options.time.as_secs(),
        options.seed,
        options.pace.as_millis(),
        options.lab.delivery,
        faults.join(",")
    );
    for (option, pairs) in [("env", &options.lab.environment), ("connector", &options.lab.connector)] {
        for (name, value) in pairs {
            let _ = write!(text, " --{option} '{name}={value}'");
        }
    }
    if let Some(binary) = &options.lab.binary {
        let _ = write!(text, " --binary {}", binary.display());
    }
    std::fs::write(options.folder.join("command.txt"), text + "\n")?;
    Ok(())
}

/// Messages beyond the first of a version.
fn repeated(messages: &[SeenMessage]) -> usize {
    let mut seen = HashSet::new();
    messages
        .iter()
        .filter(|m| match m.event {
            SeenEvent::Version(_) | SeenEvent::Read(_) => !seen.insert((m.key, m.event)),
            _ => false,
        })
        .count()
}

/// Longest time without a message in any topic around a fault, in seconds.
fn longest_gap(history: &History, evidence: &Evidence, fault: &Injected) -> f64 {
    let from = history.start_ms + fault.from as i64 - 2_000;
    let to = history.start_ms + fault.converged as i64 + 2_000;
    let mut worst = 0;
    for messages in &evidence.topics {
        let times: Vec<i64> = messages.iter().map(|m| m.appended).filter(|t| (from..=to).contains(t)).collect();
        worst = times.windows(2).map(|w| w[1] - w[0]).chain([worst]).max().unwrap_or(worst);
    }
    worst as f64 / 1e3
}

/// One row a topic with messages per quarter second, and a bar per fault.
fn timeline(history: &History, evidence: &Evidence, injected: &[Injected]) -> String {
    const ROW: u64 = 90;
    const STEP_MS: u64 = 250;
    const TOP: u64 = 30;
    let end = history.now().max(1);
    let x = |ms: u64| ms / 50;
    let (width, height) = (x(end) + 20, TOP + ROW * evidence.topics.len() as u64 + 30);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" font-family=\"sans-serif\" font-size=\"10\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    for fault in injected {
        let (from, healed) = (x(fault.from), x(fault.healed).max(x(fault.from) + 1));
        let converged = x(fault.converged).max(healed);
        let _ = writeln!(
            svg,
            "<rect x=\"{from}\" y=\"{TOP}\" width=\"{}\" height=\"{}\" fill=\"#f4b6b6\"/>\
             <rect x=\"{healed}\" y=\"{TOP}\" width=\"{}\" height=\"{}\" fill=\"#fbe3b5\"/>\
             <text x=\"{from}\" y=\"{}\">{} {}</text>",
            healed - from,
            height - TOP - 30,
            converged - healed,
            height - TOP - 30,
            TOP - 6,
            fault.fault.name(),
            fault.target,
        );
    }
    for (row, messages) in evidence.topics.iter().enumerate() {
        let mut counts = BTreeMap::<u64, u64>::new();
        for message in messages {
            let at = (message.appended - history.start_ms).max(0) as u64;
            *counts.entry(at / STEP_MS).or_default() += 1;
        }
        let most = counts.values().copied().max().unwrap_or(1).max(1);
        let base = TOP + ROW * (row as u64 + 1) - 5;
        let _ = writeln!(svg, "<text x=\"2\" y=\"{}\">topic {row}</text>", base - ROW + 20);
        for (step, count) in counts {
            let bar = (count * (ROW - 25) / most).max(1);
            let _ = writeln!(
                svg,
                "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{bar}\" fill=\"#3b6ea5\"/>",
                x(step * STEP_MS),
                base - bar,
                x(STEP_MS)
            );
        }
    }
    for second in (0..end / 1_000).step_by(10) {
        let _ = writeln!(svg, "<text x=\"{}\" y=\"{}\">{second} s</text>", x(second * 1_000), height - 8);
    }
    svg.push_str("</svg>\n");
    svg
}

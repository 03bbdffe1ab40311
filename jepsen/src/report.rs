//! A run on disk: `summary.json` with figures, `timeline.svg` with the picture, what was seen as JSON
//! lines (`topic-N.jsonl`, `offsets.jsonl`, `epochs.jsonl`).

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write as _;
use std::io::{BufWriter, Write as _};

use anyhow::Result;
use serde::Serialize;
use serde_json::{Value, json};

use crate::check::{Evidence, Finding, verdict};
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
                "converged_after_s": i.converged.map(|c| (c - i.healed) as f64 / 1e3),
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
        lines(options, &format!("topic-{number}"), messages)?;
    }
    lines(options, "offsets", &evidence.offsets)?;
    lines(options, "epochs", &evidence.epochs)?;
    history_note(options)?;
    Ok(summary)
}

fn lines(options: &RunOptions, name: &str, rows: &[impl Serialize]) -> Result<()> {
    let mut out = BufWriter::new(std::fs::File::create(options.folder.join(format!("{name}.jsonl")))?);
    for row in rows {
        serde_json::to_writer(&mut out, row)?;
        out.write_all(b"\n")?;
    }
    Ok(out.flush()?)
}

/// How to run the same again.
fn history_note(options: &RunOptions) -> Result<()> {
    let faults: Vec<&str> = options.faults.iter().map(|f| f.name()).collect();
    let text = format!(
        "thalweg-jepsen --scenario {} --time {}s --seed {} --delivery {} --faults {}\n",
        options.lab.scenario.name(),
        options.time.as_secs(),
        options.seed,
        options.lab.delivery,
        faults.join(",")
    );
    std::fs::write(options.folder.join("command.txt"), text)?;
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
    let to = history.start_ms + fault.converged.unwrap_or(fault.healed) as i64 + 2_000;
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
        let converged = x(fault.converged.unwrap_or(fault.healed)).max(healed);
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

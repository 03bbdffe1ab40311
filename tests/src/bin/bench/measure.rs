//! Processor time and memory of processes, quantiles, and the file of results.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use serde_json::Value;

pub struct Results(File);

impl Results {
    pub fn open(path: &Path) -> Result<Self> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        Ok(Self(File::options().create(true).append(true).open(path)?))
    }

    /// Prints a result and keeps it.
    pub fn add(&mut self, mut result: Value) -> Result<()> {
        result["at"] = (now_ms() / 1_000).into();
        println!("{result}");
        writeln!(self.0, "{result}")?;
        Ok(())
    }
}

pub fn now_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as i64
}

/// User and system time of a process so far, in seconds.
pub fn cpu_seconds(process: u32) -> Result<f64> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat"))?;
    let fields: Vec<&str> = stat.rsplit(')').next().context("stat")?.split_whitespace().collect();
    let ticks: u64 = fields[11].parse::<u64>()? + fields[12].parse::<u64>()?;
    Ok(ticks as f64 / 100.0)
}

/// A line of `/proc/N/status` in MiB: `VmHWM`, `VmRSS`.
pub fn memory_mib(process: u32, line: &str) -> Result<f64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let value = status.lines().find_map(|l| l.strip_prefix(line)?.strip_prefix(':')).context("no such line")?;
    let kib: f64 = value.trim().trim_end_matches(" kB").parse()?;
    Ok((kib / 102.4).round() / 10.0)
}

/// `VmHWM` counts from now on.
pub fn reset_peak(process: u32) -> Result<()> {
    Ok(std::fs::write(format!("/proc/{process}/clear_refs"), "5")?)
}

pub fn threads(process: u32) -> usize {
    std::fs::read_dir(format!("/proc/{process}/task")).map_or(0, Iterator::count)
}

/// Quantile of sorted values.
pub fn quantile(sorted: &[f64], q: f64) -> f64 {
    if sorted.is_empty() {
        return f64::NAN;
    }
    sorted[((sorted.len() - 1) as f64 * q).round() as usize]
}

/// Median of sorted values; between the two in the middle if their number is even.
pub fn median(sorted: &[f64]) -> f64 {
    let (low, high) = (sorted.len().saturating_sub(1) / 2, sorted.len() / 2);
    match (sorted.get(low), sorted.get(high)) {
        (Some(low), Some(high)) => (low + high) / 2.0,
        _ => f64::NAN,
    }
}

pub fn rounded(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

//! What openraft counts with, at one resolution.
//!
//! The published crate of this name makes tables for sixteen resolutions when the first value is
//! counted, and keeps them: 26 MB in every process, of which openraft uses 2 KB. This one has the part
//! of its interface that openraft calls. `[patch.crates-io]` of the workspace puts it in its place; it
//! goes as soon as the published one makes only the tables that are used.
//!
//! Invariant: a value lies in a bucket that begins at most a quarter below it.
//!
//! It does not: merge, keep slots of time, or export anything.

use std::fmt;
use std::marker::PhantomData;

/// Buckets of one power of two.
const PARTS: usize = 4;
/// Values below are their own bucket; every power of two above has [`PARTS`].
const BUCKETS: usize = (64 - 1) * PARTS;

/// Counts of values, by size. `T` is a label of the published interface.
pub struct Histogram<T = ()> {
    counts: Vec<u64>,
    label: PhantomData<T>,
}

impl<T> Histogram<T> {
    pub fn new() -> Self {
        Self { counts: vec![0; BUCKETS], label: PhantomData }
    }

    pub fn record(&mut self, value: u64) {
        self.record_n(value, 1);
    }

    /// Counts a value `count` times.
    pub fn record_n(&mut self, value: u64, count: u64) {
        if let Some(bucket) = self.counts.get_mut(bucket(value)) {
            *bucket = bucket.saturating_add(count);
        }
    }

    /// Number of values.
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Lower end of the bucket in which the part `at` (0 to 1) of all values ends; 0 without values.
    pub fn percentile(&self, at: f64) -> u64 {
        let wanted = ((self.total() as f64 * at).ceil() as u64).max(1);
        let mut seen = 0;
        let reached = self.counts.iter().position(|count| {
            seen += count;
            seen >= wanted
        });
        reached.map_or(0, lower_end)
    }

    pub fn percentile_stats(&self) -> PercentileStats {
        PercentileStats {
            samples: self.total(),
            p0_1: self.percentile(0.001),
            p1: self.percentile(0.01),
            p5: self.percentile(0.05),
            p10: self.percentile(0.1),
            p50: self.percentile(0.5),
            p90: self.percentile(0.9),
            p99: self.percentile(0.99),
            p99_9: self.percentile(0.999),
        }
    }
}

fn bucket(value: u64) -> usize {
    let value_bits = (u64::BITS - value.leading_zeros()) as usize;
    // The first bit of a value and the two behind it name its bucket.
    let Some(shift) = value_bits.checked_sub(3) else { return value as usize };
    shift * PARTS + (value >> shift) as usize
}

fn lower_end(bucket: usize) -> u64 {
    if bucket < 2 * PARTS {
        return bucket as u64;
    }
    let (shift, part) = (bucket / PARTS - 1, bucket % PARTS);
    ((PARTS + part) as u64) << shift
}

impl<T> Default for Histogram<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Clone for Histogram<T> {
    fn clone(&self) -> Self {
        Self { counts: self.counts.clone(), label: PhantomData }
    }
}

impl<T> PartialEq for Histogram<T> {
    fn eq(&self, other: &Self) -> bool {
        self.counts == other.counts
    }
}

impl<T> Eq for Histogram<T> {}

impl<T> fmt::Debug for Histogram<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Histogram({})", self.percentile_stats())
    }
}

/// Where the values of a histogram lie: the lower ends of the buckets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PercentileStats {
    /// Number of values.
    pub samples: u64,
    pub p0_1: u64,
    pub p1: u64,
    pub p5: u64,
    pub p10: u64,
    pub p50: u64,
    pub p90: u64,
    pub p99: u64,
    pub p99_9: u64,
}

impl fmt::Display for PercentileStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { samples, p50, p90, p99, p99_9, .. } = self;
        write!(f, "{samples} values, p50 {p50}, p90 {p90}, p99 {p99}, p99.9 {p99_9}")
    }
}

/// Histograms one below the other, as text.
#[derive(Debug, Clone, Default)]
pub struct AsciiChart(Vec<(String, PercentileStats)>);

impl AsciiChart {
    pub fn new() -> Self {
        Self::default()
    }

    #[must_use]
    #[allow(clippy::should_implement_trait, reason = "the published name")]
    pub fn add(mut self, name: impl Into<String>, histogram: Histogram) -> Self {
        self.0.push((name.into(), histogram.percentile_stats()));
        self
    }
}

impl fmt::Display for AsciiChart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|(name, stats)| writeln!(f, "{name}: {stats}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_follow_each_other_and_hold_their_values() {
        for at in 0..BUCKETS {
            assert_eq!(bucket(lower_end(at)), at);
            assert!(at == 0 || lower_end(at) > lower_end(at - 1));
        }
        for value in [0, 1, 7, 8, 9, 10, 1_000, 123_456_789, u64::MAX / 3, u64::MAX] {
            let low = lower_end(bucket(value));
            assert!(low <= value && value - low <= value / 4, "{value} is in the bucket at {low}");
        }
    }

    #[test]
    fn percentiles_are_those_of_the_values() {
        let mut histogram: Histogram = Histogram::new();
        assert_eq!(histogram.percentile_stats().p99, 0);
        (1..=7).for_each(|value| histogram.record(value));
        histogram.record_n(1_024, 93);
        let stats = histogram.percentile_stats();
        assert_eq!((stats.samples, stats.p1, stats.p5, stats.p10, stats.p99), (100, 1, 5, 1_024, 1_024));
        assert!(AsciiChart::new().add("a", histogram).to_string().contains("a: 100 values"));
    }
}

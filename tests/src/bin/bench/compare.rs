//! Two or more ways of doing the same work, by turns in one run: the machine's speed changes within
//! minutes, the ratio of neighbours does not.
//!
//! The first side is what the others are compared with. Topics are there before, so that making them
//! is no part of the comparison. Sides with the same documents share them, and their backlog.

use anyhow::{Context, Result};
use clap::ValueEnum;
use serde_json::json;

use crate::arrivals::Arrivals;
use crate::lab::{Lab, LabOptions};
use crate::load::{Backlog, Shape, fill};
use crate::measure::{Results, median, quantile, rounded};
use crate::throughput::{Run, catch_up, copy, position};

/// What is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Case {
    /// 1,000 collections against one with as many documents.
    Collections,
    /// JSON with schemas, and Avro, against JSON without schemas.
    Formats,
    /// A chain of two transforms against none.
    Transforms,
    /// A snapshot of one collection in four ranges against one.
    Ranges,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Work {
    Snapshot,
    Drain,
}

impl Work {
    fn name(self) -> &'static str {
        match self {
            Self::Snapshot => "snapshot",
            Self::Drain => "drain",
        }
    }
}

impl std::fmt::Display for Work {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

struct Side {
    name: &'static str,
    shape: Shape,
    settings: Vec<(String, String)>,
}

/// Both transforms work on every message: the first takes the envelope apart, the second builds a new row.
const CHAIN: [(&str, &str); 5] = [
    ("transforms", "state,fields"),
    ("transforms.state.type", "io.debezium.connector.mongodb.transforms.ExtractNewDocumentState"),
    ("transforms.state.delete.tombstone.handling.mode", "rewrite-with-tombstone"),
    ("transforms.fields.type", "org.apache.kafka.connect.transforms.ReplaceField$Value"),
    ("transforms.fields.renames", "status:state"),
];

impl Case {
    fn name(self) -> &'static str {
        match self {
            Self::Collections => "collections",
            Self::Formats => "formats",
            Self::Transforms => "transforms",
            Self::Ranges => "ranges",
        }
    }

    /// The least part of the first side's rate that the others are to reach, if there is one.
    fn target(self) -> Option<f64> {
        match self {
            Self::Collections => Some(0.9),
            Self::Transforms => Some(0.75),
            Self::Formats | Self::Ranges => None,
        }
    }

    async fn sides(self, lab: &mut Lab, bytes: usize) -> Result<Vec<Side>> {
        let side = |name, settings: &[(&str, &str)]| {
            let settings = settings.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
            Side { name, shape: Shape::of(bytes), settings }
        };
        Ok(match self {
            Self::Collections => {
                let many = Side { shape: Shape { bytes, collections: 1_000 }, ..side("thousand", &[]) };
                vec![side("one", &[]), many]
            }
            Self::Formats => {
                let schemas = [("key.converter.schemas.enable", "true"), ("value.converter.schemas.enable", "true")];
                let avro = Side { settings: lab.avro().await?, ..side("avro", &[]) };
                vec![side("json", &[]), side("schemas", &schemas), avro]
            }
            Self::Transforms => vec![side("none", &[]), side("two", &CHAIN)],
            Self::Ranges => {
                vec![side("one", &[("snapshot.max.threads", "1")]), side("four", &[("snapshot.max.threads", "4")])]
            }
        })
    }
}

/// A comparison under way.
struct Comparison<'a> {
    case: Case,
    work: Work,
    options: &'a LabOptions,
    sides: &'a [Side],
    /// By side, one run a round.
    runs: Vec<Vec<Run>>,
}

pub async fn run(
    options: &LabOptions,
    case: Case,
    works: &[Work],
    (bytes, events): (usize, usize),
    rounds: usize,
    results: &mut Results,
) -> Result<()> {
    let mut lab = Lab::start(options, 1).await?;
    let sides = case.sides(&mut lab, bytes).await?;
    // Only snapshots are read in ranges.
    for work in works.iter().copied().filter(|work| case != Case::Ranges || *work == Work::Snapshot) {
        let runs = sides.iter().map(|_| Vec::new()).collect();
        let mut comparison = Comparison { case, work, options, sides: &sides, runs };
        for side in &sides {
            lab.make_topics(&comparison.topics(side)).await?;
        }
        match work {
            Work::Snapshot => comparison.snapshots(&mut lab, events, rounds, results).await?,
            Work::Drain => comparison.drains(&mut lab, events, rounds, results).await?,
        }
        comparison.judge(results)?;
    }
    Ok(())
}

impl Comparison<'_> {
    /// One database for each work: what a snapshot reads does not grow by backlogs.
    fn database(&self, shape: Shape) -> String {
        format!("{}_{}", self.work.name(), shape.database())
    }

    /// Without signs that a name in an Avro schema cannot have.
    fn prefix(&self, side: &Side) -> String {
        format!("{}_{}_{}", self.work.name(), self.case.name(), side.name)
    }

    fn topics(&self, side: &Side) -> Vec<String> {
        side.shape.topics(&self.prefix(side), &self.database(side.shape))
    }

    fn connector(&self, lab: &Lab, side: &Side, mode: &str) -> serde_json::Value {
        let mut more = vec![("snapshot.mode", mode)];
        more.extend(side.settings.iter().map(|(k, v)| (k.as_str(), v.as_str())));
        lab.connector(&self.prefix(side), &self.database(side.shape), &more)
    }

    async fn arrivals(&self, lab: &Lab, side: &Side) -> Result<Arrivals> {
        Arrivals::from_here(lab.broker.bootstrap(), self.topics(side)).await
    }

    /// Sides in the order of a round: the other way round in every other one.
    fn turns(&self, round: usize) -> Vec<usize> {
        let forward = 0..self.sides.len();
        if round.is_multiple_of(2) { forward.collect() } else { forward.rev().collect() }
    }

    fn shapes(&self) -> Vec<Shape> {
        let mut shapes: Vec<Shape> = Vec::new();
        for side in self.sides {
            if !shapes.contains(&side.shape) {
                shapes.push(side.shape);
            }
        }
        shapes
    }

    async fn snapshots(&mut self, lab: &mut Lab, documents: usize, rounds: usize, results: &mut Results) -> Result<()> {
        for shape in self.shapes() {
            fill(lab, &self.database(shape), shape, documents).await?;
        }
        for round in 0..rounds {
            for at in self.turns(round) {
                let side = &self.sides[at];
                let name = format!("{}-{round}", self.prefix(side));
                let config = self.connector(lab, side, "initial_only");
                let arrivals = self.arrivals(lab, side).await?;
                let run = copy(lab, &name, config, documents, arrivals).await?;
                self.note(lab, at, round, run, results)?;
            }
        }
        Ok(())
    }

    async fn drains(&mut self, lab: &mut Lab, changes: usize, rounds: usize, results: &mut Results) -> Result<()> {
        let mut shapes: Vec<(Shape, Backlog)> = self.shapes().into_iter().map(|s| (s, Backlog::default())).collect();
        for round in 0..rounds {
            // A backlog is drained before the next one is written, or the later one would be behind both.
            for (shape, backlog) in &mut shapes {
                let turns: Vec<usize> =
                    self.turns(round).into_iter().filter(|at| self.sides[*at].shape == *shape).collect();
                let name = |at: usize| format!("{}-{round}", self.prefix(&self.sides[at]));
                for at in &turns {
                    position(lab, &name(*at), self.connector(lab, &self.sides[*at], "no_data")).await?;
                }
                let counts = backlog.write(lab, &self.database(*shape), *shape, changes).await?;
                for at in turns {
                    let name = format!("{}-{round}", self.prefix(&self.sides[at]));
                    let arrivals = self.arrivals(lab, &self.sides[at]).await?;
                    let run = catch_up(lab, &name, counts, arrivals).await?;
                    self.note(lab, at, round, run, results)?;
                }
            }
            shapes.reverse();
        }
        Ok(())
    }

    fn note(&mut self, lab: &mut Lab, at: usize, round: usize, run: Run, results: &mut Results) -> Result<()> {
        let side = &self.sides[at];
        let mut line = run.line(self.work.name(), self.options, side.shape, round, lab.process()?)?;
        line["case"] = json!(self.case.name());
        line["side"] = json!(side.name);
        results.add(line)?;
        self.runs[at].push(run);
        Ok(())
    }

    /// Ratios within a round, side by side.
    fn judge(&self, results: &mut Results) -> Result<()> {
        let (base, others) = self.runs.split_first().context("no sides")?;
        for (side, runs) in self.sides[1..].iter().zip(others) {
            let ratios = |of: fn(&Run) -> f64| {
                let mut ratios: Vec<f64> = runs.iter().zip(base).map(|(run, base)| of(run) / of(base)).collect();
                ratios.sort_by(f64::total_cmp);
                ratios
            };
            let (rates, cpu) = (ratios(Run::rate), ratios(Run::per_cpu_second));
            let ratio = median(&rates);
            let mut line = json!({
                "bench": "compare",
                "case": self.case.name(),
                "work": self.work.name(),
                "delivery": self.options.delivery,
                "side": side.name,
                "against": self.sides[0].name,
                "bytes": side.shape.bytes,
                "rounds": rates.len(),
                "ratio_p50": rounded(ratio),
                "ratio_min": rounded(quantile(&rates, 0.0)),
                "ratio_max": rounded(quantile(&rates, 1.0)),
                "cpu_ratio_p50": rounded(median(&cpu)),
            });
            if let Some(least) = self.case.target() {
                line["target"] = json!(format!("ratio_p50 >= {least}"));
                line["met"] = json!(ratio >= least);
            }
            results.add(line)?;
        }
        Ok(())
    }
}

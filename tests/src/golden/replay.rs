//! Replays recordings, several at a time: each has names of its own, so they do not disturb each other.

use std::sync::Arc;
use std::time::Instant;

use futures::{StreamExt, stream};
use thalweg_services::Rest;

use super::compare::compare;
use super::recording::Recording;
use super::run::Run;
use super::verdict::Verdict;

/// Where a run finds the services and the product.
pub struct Surroundings {
    /// Of a MongoDB replica set.
    pub uri: String,
    /// Of a Kafka broker that creates topics and takes messages of 20 MB.
    pub bootstrap: String,
    pub rest: Rest,
}

/// One verdict for each recording, by name; so many run at the same time.
pub async fn replay(recordings: Vec<Recording>, surroundings: Arc<Surroundings>, at_once: usize) -> Vec<Verdict> {
    let verdicts = recordings.into_iter().map(|recording| {
        let surroundings = surroundings.clone();
        async move { one(&recording, &surroundings).await }
    });
    let mut verdicts: Vec<Verdict> = stream::iter(verdicts).buffer_unordered(at_once).collect().await;
    verdicts.sort_by(|a, b| a.recording.cmp(&b.recording));
    verdicts
}

async fn one(recording: &Recording, surroundings: &Surroundings) -> Verdict {
    let started = Instant::now();
    let mut run = match Run::new(&recording.scenario, surroundings).await {
        Ok(run) => run,
        Err(error) => return Verdict::broken(recording, &error),
    };
    let outcome = run.perform().await;
    let cleaned = run.clean_up().await;
    let judged = outcome.and_then(|got| {
        let differences = compare(recording, &got)?;
        Ok(Verdict::new(recording, &got, differences))
    });
    let mut verdict = judged.unwrap_or_else(|error| Verdict::broken(recording, &error));
    verdict.notes = std::mem::take(&mut run.notes);
    if let Err(error) = cleaned {
        verdict.notes.push(format!("cleaning up: {error:#}"));
    }
    verdict.took = started.elapsed();
    verdict
}

//! What Debezium's connector answered and emitted is what the product answers and emits, except for what
//! is listed as different on purpose.
//!
//! `THALWEG_GOLDEN` restricts it to recordings whose names contain one of the given words.

use std::sync::Arc;

use anyhow::{Result, ensure};
use thalweg_tests::golden::{Surroundings, load, replay};
use thalweg_tests::{Broker, BrokerOptions, Cluster, MemberOptions, ReplicaSet};

/// Most of a replay is waiting.
const AT_ONCE: usize = 6;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn recordings_are_reproduced() -> Result<()> {
    let words = std::env::var("THALWEG_GOLDEN").unwrap_or_default();
    let chosen = |name: &str| words.is_empty() || words.split(',').any(|word| name.contains(word));
    let recordings: Vec<_> = load()?.into_iter().filter(|r| chosen(&r.scenario.name)).collect();
    ensure!(!recordings.is_empty(), "THALWEG_GOLDEN={words} names no recording");

    let settings = [("message.max.bytes", "20000000"), ("log.index.size.max.bytes", "65536")];
    let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    let broker = Broker::with(BrokerOptions { settings, ..Default::default() }).await?;
    // Documents of 16 MB are written; what is still to be read must not leave the oplog.
    let options = MemberOptions { oplog_mb: 990, ..Default::default() };
    let set = ReplicaSet::start("rs0", 1, &options).await?;
    let cluster = Cluster::start(1, &broker.bootstrap(), &[]).await?;

    let surroundings = Surroundings { uri: set.uri(), bootstrap: broker.bootstrap(), rest: cluster.rest()? };
    let verdicts = replay(recordings, Arc::new(surroundings), AT_ONCE).await;
    for verdict in &verdicts {
        println!("{verdict}");
    }
    let faults: Vec<String> = verdicts.iter().filter(|v| !v.is_reproduced()).map(ToString::to_string).collect();
    ensure!(faults.is_empty(), "{} of {} recordings:\n{}", faults.len(), verdicts.len(), faults.join("\n"));
    Ok(())
}

//! Snapshots that several tasks share (`thalweg.snapshot.spread`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use anyhow::{Result, bail};
use bson::{Document, doc};
use futures::FutureExt;
use futures::future::select_all;
use serde_json::Value as Json;
use thalweg_config::Properties;
use thalweg_core::progress::PartitionProgress;

use crate::fixture::run::{Offsets, Run, Seen, tasks};
use crate::fixture::{Bed, PATIENCE, bed};

const LARGE: i32 = 30_000;
const SMALL: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

/// A collection that is read in ranges, and some that are not.
async fn filled(name: &str) -> Result<Bed> {
    let bed = bed(name).await?;
    bed.db.collection::<Document>("large").insert_many((0..LARGE).map(|i| doc! {"_id": i, "v": 0})).await?;
    for small in SMALL {
        bed.db.collection::<Document>(small).insert_many((0..10).map(|i| doc! {"_id": i, "v": 0})).await?;
    }
    Ok(bed)
}

fn spread(bed: &Bed, more: &[(&str, &str)]) -> Properties {
    let mut all = vec![("thalweg.snapshot.spread", "true"), ("snapshot.fetch.size", "500")];
    all.extend(more);
    bed.config(&all)
}

async fn started(config: &Properties, count: usize, offsets: &Arc<Offsets>) -> Result<Vec<Run>> {
    let mut runs = Vec::new();
    for task in tasks(config, count).await? {
        runs.push(Run::open(&*task, &task.partitions()[0], offsets).await?);
    }
    assert_eq!(runs.len(), count);
    Ok(runs)
}

/// The next record of any of them, and whose it is.
async fn any(runs: &mut [Run]) -> Result<(usize, Seen)> {
    let (seen, task, _) = select_all(runs.iter_mut().map(|run| run.record().boxed())).await;
    Ok((task, seen?))
}

async fn stop(runs: Vec<Run>) -> Result<()> {
    for run in runs {
        run.stop().await?;
    }
    Ok(())
}

/// Topic and `_id`.
fn name(seen: &Seen) -> (String, String) {
    (seen.topic.clone(), seen.id())
}

fn all_names(bed: &Bed) -> BTreeSet<(String, String)> {
    let of = |collection: &str, count: i32| {
        let topic = format!("t.{}.{collection}", bed.db.name());
        (0..count).map(move |id| (topic.clone(), id.to_string())).collect::<Vec<_>>()
    };
    SMALL.iter().flat_map(|small| of(small, 10)).chain(of("large", LARGE)).collect()
}

#[tokio::test]
async fn tasks_share_a_snapshot_and_the_first_streams() -> Result<()> {
    let bed = filled("spread_shared").await?;
    let offsets = Offsets::new();
    let mut runs = started(&spread(&bed, &[]), 3, &offsets).await?;
    let mut read = Vec::new();
    while read.last().is_none_or(|(_, seen): &(usize, Seen)| seen.snapshot() != "last") {
        read.push(any(&mut runs).await?);
    }
    let names: BTreeSet<_> = read.iter().map(|(_, seen)| name(seen)).collect();
    assert_eq!((names == all_names(&bed), read.len()), (true, LARGE as usize + 60), "everything, and once");
    assert_eq!(read.last().unwrap().0, 0, "the last record of all is the first task's");
    assert!(read.iter().all(|(_, seen)| seen.op() == "r"));
    for task in 0..3 {
        let of = |topic: &str| read.iter().filter(|(t, seen)| *t == task && seen.topic.ends_with(topic)).count();
        assert!(of(".large") > 3_000, "task {task} read {} of the large collection", of(".large"));
    }
    let small: BTreeMap<&str, BTreeSet<usize>> =
        read.iter().fold(BTreeMap::new(), |mut readers: BTreeMap<&str, BTreeSet<usize>>, (task, seen)| {
            readers.entry(&seen.topic).or_default().insert(*task);
            readers
        });
    assert!(small.iter().all(|(topic, readers)| topic.ends_with(".large") || readers.len() == 1), "{small:?}");

    bed.db.collection::<Document>("a").insert_one(doc! {"_id": 99}).await?;
    let (task, seen) = any(&mut runs).await?;
    assert_eq!((task, seen.op(), seen.id().as_str()), (0, "c", "99"));
    assert!(seen.offset.get("initsync").is_none() && seen.offset.get("thalweg_snapshot").is_none(), "{}", seen.offset);
    stop(runs).await?;

    // A start with everything done reads nothing again.
    let mut runs = started(&spread(&bed, &[]), 3, &offsets).await?;
    bed.db.collection::<Document>("a").insert_one(doc! {"_id": 100}).await?;
    let (task, seen) = any(&mut runs).await?;
    assert_eq!((task, seen.op(), seen.id().as_str()), (0, "c", "100"));
    stop(runs).await
}

/// Until the pump has nothing more to do than to wait.
async fn resting(progress: &PartitionProgress) -> Result<()> {
    thalweg_services::until("the task waits", PATIENCE, || async { Ok(progress.is_resting().then_some(())) }).await
}

/// A row that another task reads late is older than a change of it: the change comes behind it.
#[tokio::test]
async fn changes_wait_for_the_rows_of_all_tasks() -> Result<()> {
    let bed = filled("spread_waits").await?;
    let offsets = Offsets::new();
    let config = spread(&bed, &[]);
    let mut runs = started(&config, 2, &offsets).await?;
    let second = runs.pop().unwrap();
    second.stop().await?;
    let mut read = Vec::new();
    let progress = runs[0].progress.clone();
    loop {
        tokio::select! {
            biased;
            seen = runs[0].record() => read.push(seen?),
            // Not the pause before its begin.
            rests = resting(&progress), if read.len() > 5_000 => {
                rests?;
                break;
            }
        }
    }
    assert!(read.len() < LARGE as usize && read.iter().all(|seen| seen.snapshot() == "true"));
    bed.db.collection::<Document>("large").update_many(doc! {}, doc! {"$set": {"v": 1}}).await?;
    runs.extend(started(&config, 2, &offsets).await?.pop());
    let mut values: BTreeMap<String, Json> = BTreeMap::new();
    let mut see = |seen: &Seen| {
        if seen.topic.ends_with(".large") {
            values.insert(seen.id(), seen.after()["v"].clone());
        }
    };
    read.iter().for_each(&mut see);
    let mut updates = 0;
    while updates < LARGE {
        let (_, seen) = any(&mut runs).await?;
        updates += i32::from(seen.op() == "u");
        if seen.op() == "r" && updates > 0 {
            bail!("a row of the snapshot behind a change");
        }
        see(&seen);
    }
    assert!(values.len() == LARGE as usize && values.values().all(|v| *v == 1));
    stop(runs).await
}

#[tokio::test]
async fn the_number_of_tasks_may_change_on_the_way() -> Result<()> {
    let bed = filled("spread_changes").await?;
    let offsets = Offsets::new();
    let mut names = BTreeMap::new();
    let mut interrupted = 0;
    let phases = [(3, 6_000), (2, 4_000), (2, 3_000), (1, 5_000), (4, usize::MAX)];
    for (count, most) in phases {
        let off = [("thalweg.snapshot.spread", if count == 1 { "false" } else { "true" })];
        let config = spread(&bed, &off);
        let mut runs = started(&config, count, &offsets).await?;
        for _ in 0..most {
            let (_, seen) = any(&mut runs).await?;
            *names.entry(name(&seen)).or_insert(0_usize) += 1;
            if seen.snapshot() == "last" {
                break;
            }
        }
        interrupted += count;
        stop(runs).await?;
    }
    assert_eq!(names.keys().cloned().collect::<BTreeSet<_>>(), all_names(&bed));
    let repeated: usize = names.values().map(|times| times - 1).sum();
    // One answer of each reader, and the one behind it whose last document waited for its mark; and small
    // collections, which are read as a whole.
    assert!(repeated <= interrupted * (2 * 500 + 60), "{repeated} documents were repeated");
    Ok(())
}

/// The plan is for another choice of documents: tasks do not mix them.
#[tokio::test]
async fn what_is_read_may_change_on_the_way() -> Result<()> {
    let bed = filled("spread_filters").await?;
    let offsets = Offsets::new();
    let mut runs = started(&spread(&bed, &[]), 2, &offsets).await?;
    for _ in 0..8_000 {
        any(&mut runs).await?;
    }
    stop(runs).await?;
    let overrides = [
        ("snapshot.collection.filter.overrides", "spread_filters.large"),
        ("snapshot.collection.filter.overrides.spread_filters.large", "{_id: {$gte: 100}}"),
    ];
    let mut runs = started(&spread(&bed, &overrides), 2, &offsets).await?;
    let mut names = BTreeSet::new();
    let mut last = String::new();
    while last != "last" {
        let (_, seen) = any(&mut runs).await?;
        last = seen.snapshot().to_owned();
        names.extend(seen.topic.ends_with(".large").then(|| seen.id().parse::<i32>().unwrap()));
    }
    assert!(names == (100..LARGE).collect(), "all that the new filter lets through: {}", names.len());
    stop(runs).await
}

#[tokio::test]
async fn more_tasks_are_planned_only_where_they_have_something_to_do() -> Result<()> {
    let bed = bed("spread_plan").await?;
    for (more, expected) in [
        (&[][..], 3),
        (&[("thalweg.snapshot.spread", "false")][..], 1),
        (&[("snapshot.mode", "no_data")][..], 1),
        (&[("snapshot.mode", "when_needed")][..], 3),
    ] {
        assert_eq!(tasks(&spread(&bed, more), 3).await?.len(), expected, "{more:?}");
    }
    Ok(())
}

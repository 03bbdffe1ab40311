//! One run from start to verdict.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use bson::{Document, doc};
use futures::TryStreamExt;
use parking_lot::Mutex;
use rdkafka::ClientConfig;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::asker::{Asked, Asker, Way};
use crate::check::copied::Copying;
use crate::check::undisturbed::ShardChange;
use crate::check::{Evidence, Finding, Verdict, check, verdict};
use crate::history::History;
use crate::lab::{GUEST, Lab, LabOptions, SHARD_KEYS};
use crate::nemesis::{Injected, Nemesis};
use crate::observe::{
    ClusterTime, SeenEpoch, any, positions, read_topic, read_uncommitted, watch_epochs, watch_notices, watch_offsets,
};
use crate::report;
use crate::scenario::{COPY_ANSWER, COPY_READERS, Scenario};
use crate::schedule::{Fault, Schedule};
use crate::writer::{Writer, orders_of};

/// Written last to every collection (of a shard: this and its number): a topic is complete when it has
/// these keys.
const END_KEY: i64 = 1_000_000_000;
/// Longest wait for all tasks to run again after a fault was healed.
const CONVERGES: Duration = Duration::from_secs(90);
/// Undisturbed time after a fault, so that its effects are not mixed with the next one's.
const CALM: Duration = Duration::from_secs(3);
/// Between two faults during an initial snapshot at most, in milliseconds: at random places of it.
const PLACES_MS: usize = 3_000;
/// Longest wait until every shard is read again after a change of the set.
const READS_AGAIN: Duration = Duration::from_secs(30);
/// Longest wait for the end of initial snapshots once nothing disturbs them.
const COPIES: Duration = Duration::from_secs(120);
/// What was delivered within so many milliseconds before a fault may not have been stored: commits of
/// transactions and of positions, and the time that they take.
const UNSTORED_MS: i64 = 600;

#[derive(Debug, Clone)]
pub struct RunOptions {
    pub lab: LabOptions,
    pub time: Duration,
    pub seed: u64,
    pub faults: Vec<Fault>,
    /// Pause of each writer between two writes.
    pub pace: Duration,
    /// Evidence goes here.
    pub folder: PathBuf,
}

#[derive(Debug)]
pub struct Outcome {
    pub verdict: Verdict,
    pub findings: Vec<Finding>,
    pub injected: Vec<Injected>,
    pub summary: serde_json::Value,
}

/// Runs everything. An error is a failure of the harness: there is no verdict then.
pub async fn run(options: &RunOptions) -> Result<Outcome> {
    report::clear(&options.folder)?;
    let mut lab = Lab::start(&options.lab).await.context("starting the lab")?;
    let outcome = drive(options, &mut lab).await;
    for node in &lab.cluster.nodes {
        std::fs::write(options.folder.join(format!("node-{}.log", node.id)), node.log())?;
    }
    outcome
}

async fn drive(options: &RunOptions, lab: &mut Lab) -> Result<Outcome> {
    let scenario = lab.scenario;
    let history = History::default();
    let (stop, stop_asking) = (CancellationToken::new(), CancellationToken::new());
    // Also of a run that fails nothing goes on.
    let _ends = (stop.clone().drop_guard(), stop_asking.clone().drop_guard());
    let tasks = TaskTracker::new();
    let (seen, epochs) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(Vec::new())));
    for node in &lab.cluster.nodes {
        let (history, seen, stop) = (history.clone(), seen.clone(), stop.clone());
        tasks.spawn(watch_offsets(node.id, node.rest(), lab.connectors(), history, seen, stop));
    }
    let rests = lab.cluster.nodes.iter().map(|n| n.rest()).collect();
    tasks.spawn(watch_epochs(rests, history.clone(), epochs.clone(), stop.clone()));
    lab.fill().await.context("filling the collections")?;
    // Where it begins with a snapshot, the writers write before and meanwhile; otherwise what they write
    // before the stream begins would rightly be missing.
    let begins_with_snapshot = scenario.begins_with_snapshot();
    if scenario == Scenario::Initial {
        lab.slow_source(true);
    }
    if !begins_with_snapshot {
        lab.create_connectors().await.context("creating the connectors")?;
    }
    for writer in writers(options, lab) {
        let set = lab.sets().nth(writer.1).context("no such shard")?;
        tasks.spawn(writer.0.run(lab.client(set).await?, history.clone(), stop.clone()));
    }
    if begins_with_snapshot {
        lab.create_connectors().await.context("creating the connectors")?;
    }
    let (mut askers, mut watchers) = (JoinSet::new(), JoinSet::new());
    if scenario.asks() {
        for connector in 0..lab.connectors() {
            let asker = asker(options, lab, connector, &history, &mut watchers, &stop).await?;
            askers.spawn(asker.run(stop_asking.clone()));
        }
    }
    let injected = disturb(options, lab, &history).await;
    stop_asking.cancel();
    let asked = askers.join_all().await;
    let copied = match scenario {
        Scenario::Initial => copies_end(lab, &history).await,
        _ => Vec::new(),
    };
    lab.slow_source(false);
    stop.cancel();
    tasks.close();
    tasks.wait().await;
    let watched = watchers.join_all().await;
    // What broke first is the cause of the rest.
    let injected = injected?;
    let asked: Vec<Vec<Asked>> = asked.into_iter().collect::<Result<_>>().context("asking for snapshots")?;
    let asked = asked.into_iter().flatten().collect();
    watched.into_iter().collect::<Result<()>>().context("reading notifications")?;

    let ends = write_ends(lab).await?;
    let (mut topics, mut source) = (Vec::new(), Vec::new());
    for connector in 0..lab.connectors() {
        let read = read_topic(&lab.broker.bootstrap(), connector, ends.clone()).await;
        let status = lab.cluster.rest()?.get(&format!("/connectors/{}/status", Lab::connector(connector))).await;
        topics.push(read.with_context(|| format!("reading the topic of connector {connector}; status {status:?}"))?);
        let mut held = BTreeMap::new();
        for collection in lab.collections(connector).await? {
            let mut cursor = collection.find(doc! {}).await?;
            while let Some(document) = cursor.try_next().await? {
                held.insert(document.get_i64("_id")?, document.get_i64("v")?);
            }
        }
        source.push(held);
    }
    let epochs = epochs.lock().clone();
    let evidence = Evidence {
        scenario,
        start_ms: history.start_ms,
        ops: history.ops(),
        topics,
        source,
        offsets: seen.lock().clone(),
        filled: (0..lab.connectors()).map(|_| filled(lab)).collect(),
        asked,
        copies: copies(&copied, &injected, &epochs, history.start_ms),
        changes: changes(&injected),
        epochs,
    };
    let findings = check(&evidence, Lab::database);
    history.save(&options.folder)?;
    let summary = report::write(options, &history, &evidence, &findings, &injected)?;
    if verdict(&findings) != Verdict::Valid {
        for (connector, committed) in evidence.topics.iter().enumerate() {
            let last = committed.last().map_or(-1, |m| m.offset);
            let rows = read_uncommitted(&lab.broker.bootstrap(), connector, last).await?;
            report::lines(&options.folder, &format!("uncommitted-{connector}"), &rows)?;
            let rows = logged(lab, connector).await?;
            report::lines(&options.folder, &format!("oplog-{connector}"), &rows)?;
        }
    }
    Ok(Outcome { verdict: verdict(&findings), findings, injected, summary })
}

/// Six writers and the number of the replica set of each.
fn writers(options: &RunOptions, lab: &Lab) -> Vec<(Writer, usize)> {
    let rows = lab.scenario.rows();
    // Documents that were there, evenly over the collection, and new ones behind them.
    let spread = |first: i64, half: i64, old: i64| {
        let old = (0..old).map(move |i| first + i * rows / old + half);
        old.chain((0..10).map(move |i| first + rows + 1_000 * (half + 1) + i)).collect::<Vec<_>>()
    };
    let writer = |number: usize, connector: usize, keys, gate| Writer {
        name: format!("writer-{number}"),
        connector,
        keys,
        gate,
        pace: options.pace,
        seed: options.seed.wrapping_add(number as u64),
    };
    (0..6)
        .map(|number| {
            let (part, half) = (number % 3, (number / 3) as i64);
            match (&lab.sharded, lab.scenario) {
                (Some(sharded), _) => {
                    let gate = (part == GUEST).then(|| sharded.guest.clone());
                    (writer(number, 0, spread(part as i64 * SHARD_KEYS, half, 10), gate), part)
                }
                (None, Scenario::Stream) => {
                    let first = number as i64 * 1_000;
                    (writer(number, part, (first..first + 10).collect(), None), 0)
                }
                (None, _) => (writer(number, part, spread(0, half, 40), None), 0),
            }
        })
        .collect()
}

/// Keys that had version 0 before there was a connector.
fn filled(lab: &Lab) -> Vec<std::ops::Range<i64>> {
    let firsts = (0..lab.sets().count() as i64).map(|shard| shard * SHARD_KEYS);
    firsts.map(|first| first..first + lab.scenario.rows()).collect()
}

async fn asker(
    options: &RunOptions,
    lab: &Lab,
    connector: usize,
    history: &History,
    watchers: &mut JoinSet<Result<()>>,
    stop: &CancellationToken,
) -> Result<Asker> {
    let bootstrap = lab.broker.bootstrap();
    let way = match lab.scenario {
        Scenario::IncrementalKafka => {
            Way::Topic(ClientConfig::new().set("bootstrap.servers", &bootstrap).set("acks", "all").create()?)
        }
        _ => {
            let orders = orders_of(&lab.client(&lab.set).await?, connector);
            let options =
                mongodb::options::CollectionOptions::builder().write_concern(orders.write_concern().cloned()).build();
            Way::Collection(
                orders.client().database(&Lab::database(connector)).collection_with_options("signals", options),
            )
        }
    };
    let notices = Arc::new(Mutex::new(BTreeMap::new()));
    let (ends, topic, stop) = (notices.clone(), format!("{}.notices", Lab::connector(connector)), stop.clone());
    watchers.spawn_blocking(move || watch_notices(&bootstrap, &topic, &ends, &stop));
    Ok(Asker {
        connector,
        way,
        rests: lab.cluster.nodes.iter().map(|n| n.rest()).collect(),
        notices,
        history: history.clone(),
        seed: options.seed.wrapping_add(100 + connector as u64),
    })
}

/// Changes of a connector's collection as the sources log them, in their order.
async fn logged(lab: &Lab, connector: usize) -> Result<Vec<Document>> {
    let mut entries = Vec::new();
    for set in lab.sets() {
        let log = set.client().await?.database("local").collection::<Document>("oplog.rs");
        let mut cursor = log.find(doc! {"ns": format!("{}.orders", Lab::database(connector))}).await?;
        while let Some(entry) = cursor.try_next().await? {
            entries.push(entry);
        }
    }
    Ok(entries)
}

/// Writes the last documents; returns their keys.
async fn write_ends(lab: &Lab) -> Result<BTreeSet<i64>> {
    let guest_is_away = match &lab.sharded {
        Some(sharded) => !*sharded.guest.read().await,
        None => false,
    };
    let mut ends = BTreeSet::new();
    for connector in 0..lab.connectors() {
        for (shard, collection) in lab.collections(connector).await?.iter().enumerate() {
            if shard == GUEST && guest_is_away {
                continue;
            }
            let key = END_KEY + shard as i64;
            collection.insert_one(doc! {"_id": key, "v": 1_i64}).await?;
            ends.insert(key);
        }
    }
    Ok(ends)
}

/// When the initial snapshot of each connector was seen to have ended, milliseconds since the epoch.
async fn copies_end(lab: &Lab, history: &History) -> Vec<Option<i64>> {
    let rests: Vec<_> = lab.cluster.nodes.iter().map(|n| n.rest()).collect();
    let mut ends = Vec::new();
    for connector in 0..lab.connectors() {
        let path = format!("/connectors/{}/offsets", Lab::connector(connector));
        let end = thalweg_services::until("the snapshot has ended", COPIES, || async {
            let position = any(&rests, &path).await.and_then(|body| positions(&body).next());
            Ok(position.filter(|p| !p.copying).map(|_| history.start_ms + history.now() as i64))
        });
        ends.push(end.await.ok());
    }
    ends
}

/// Whether every initial snapshot has ended.
async fn all_copied(lab: &Lab) -> Result<bool> {
    let rest = lab.cluster.rest()?;
    for connector in 0..lab.connectors() {
        let body = rest.get(&format!("/connectors/{}/offsets", Lab::connector(connector))).await?.1;
        if positions(&body).next().is_none_or(|p| p.copying) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Initial snapshots with what interrupted them.
fn copies(ends: &[Option<i64>], injected: &[Injected], epochs: &[SeenEpoch], start_ms: i64) -> Vec<Copying> {
    let copying = |(connector, ended): (usize, &Option<i64>)| {
        let before_end = |time: u64| ended.is_none_or(|end| start_ms + (time as i64) < end);
        // A planned move stores everything before.
        let hits = injected.iter().filter(|i| i.hit.contains(&connector) && i.fault != Fault::Restart);
        let unstored = hits.filter(|i| before_end(i.from)).map(|i| {
            let from = start_ms + i.from as i64;
            let silent = matches!(
                i.fault,
                Fault::KillOwner | Fault::KillLeader | Fault::KillAll | Fault::PauseLong | Fault::PauseShort
            );
            (from - UNSTORED_MS, if silent { from + UNSTORED_MS / 3 } else { start_ms + i.healed as i64 })
        });
        let owners = epochs.iter().filter(|e| e.connector == connector && before_end(e.time)).count();
        Copying {
            connector,
            ended: *ended,
            moves: owners.saturating_sub(1),
            unstored: unstored.collect(),
            chunk: (COPY_READERS * COPY_ANSWER) as usize,
        }
    };
    ends.iter().enumerate().map(copying).collect()
}

fn changes(injected: &[Injected]) -> Vec<ShardChange> {
    let change = |i: &Injected| {
        Some(ShardChange { from: i.from, settled: i.converged, came: i.shard?, alone: i.fault == Fault::Reshard })
    };
    injected.iter().filter_map(change).collect()
}

/// Faults until the time is up; during initial snapshots also until they have ended.
async fn disturb(options: &RunOptions, lab: &mut Lab, history: &History) -> Result<Vec<Injected>> {
    let mut schedule = Schedule::new(options.faults.clone(), options.seed);
    let mut injected = Vec::new();
    let end = Instant::now() + options.time;
    let initial = lab.scenario == Scenario::Initial;
    pause(initial, &mut schedule).await;
    while Instant::now() < end && !(initial && all_copied(lab).await?) {
        let Some(fault) = schedule.next_fault() else {
            break;
        };
        injected.push(inject(lab, history, fault, &mut schedule).await?);
        pause(initial, &mut schedule).await;
    }
    // A shard that never came would be one that nobody need read.
    if lab.sharded.is_some() && !injected.iter().any(|i| i.shard.is_some()) {
        injected.push(inject(lab, history, Fault::Reshard, &mut schedule).await?);
        pause(initial, &mut schedule).await;
    }
    Ok(injected)
}

async fn pause(initial: bool, schedule: &mut Schedule) {
    let pause = if initial { Duration::from_millis(schedule.pick(PLACES_MS) as u64) } else { CALM };
    tokio::time::sleep(pause).await;
}

async fn inject(lab: &mut Lab, history: &History, fault: Fault, schedule: &mut Schedule) -> Result<Injected> {
    let before = shard_positions(lab).await;
    let mut nemesis = Nemesis { lab: &mut *lab, history: history.clone() };
    let mut done = nemesis.inject(fault, schedule).await?;
    converge(lab).await.with_context(|| format!("after {} of {}", fault.name(), done.target))?;
    if done.shard.is_some() {
        // RUNNING is not reading. A checker decides whether it came too late or never.
        let moves = thalweg_services::until("every shard is read again", READS_AGAIN, || async {
            let now = shard_positions(lab).await;
            Ok(before.iter().all(|(shard, at)| now.get(shard).is_some_and(|now| now > at)).then_some(()))
        });
        let _ = moves.await;
    }
    done.converged = history.now();
    println!(
        "{:>7.1} s  {:<15} {:<10} healed after {:.1} s, all tasks running {:.1} s later",
        done.from as f64 / 1e3,
        fault.name(),
        done.target,
        (done.healed - done.from) as f64 / 1e3,
        (history.now() - done.healed) as f64 / 1e3,
    );
    Ok(done)
}

/// Newest stored positions of the shards that stay.
async fn shard_positions(lab: &Lab) -> BTreeMap<String, ClusterTime> {
    let mut newest = BTreeMap::new();
    let path = format!("/connectors/{}/offsets", Lab::connector(0));
    for node in lab.cluster.nodes.iter().filter(|n| n.is_running()) {
        for position in any(&[node.rest()], &path).await.iter().flat_map(positions) {
            if position.partition != Lab::guest() {
                let at = newest.entry(position.partition).or_insert(position.at);
                *at = position.at.max(*at);
            }
        }
    }
    newest
}

async fn converge(lab: &Lab) -> Result<()> {
    let rest = lab.cluster.rest()?;
    let wanted = lab.tasks().await;
    thalweg_services::until("all tasks run", CONVERGES, || async {
        for connector in 0..lab.connectors() {
            let status = rest.get(&format!("/connectors/{}/status", Lab::connector(connector))).await?.1;
            let tasks = status["tasks"].as_array().cloned().unwrap_or_default();
            let workers: BTreeSet<&str> = tasks.iter().filter_map(|t| t["worker_id"].as_str()).collect();
            // What is left to balance would be taken for the work of the next change.
            let uneven = lab.sharded.is_some() && workers.len() < tasks.len();
            if tasks.len() != wanted || tasks.iter().any(|t| t["state"] != "RUNNING") || uneven {
                anyhow::bail!("status of {} is {status}", Lab::connector(connector));
            }
        }
        Ok(Some(()))
    })
    .await
}

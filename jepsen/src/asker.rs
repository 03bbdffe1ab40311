//! Asks for incremental snapshots of one connector's collection, one after the other, and waits for the
//! end of each: the notification says so, or the stored position does.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use bson::{Document, doc};
use mongodb::Collection;
use parking_lot::Mutex;
use rdkafka::producer::{FutureProducer, FutureRecord};
use serde_json::json;
use thalweg_services::{Rest, until};
use tokio_util::sync::CancellationToken;

use crate::history::{Function, History, OpType};
use crate::lab::Lab;
use crate::observe::{ClusterTime, any, positions};

/// Longest wait until a signal is taken by the database or the broker, faults included.
const SENT: Duration = Duration::from_secs(60);
/// Longest wait for the end of a snapshot, faults included.
const ENDS: Duration = Duration::from_secs(120);
/// Between two looks.
const LOOK: Duration = Duration::from_millis(100);
/// Longest pause between a snapshot's end and the next signal, in milliseconds.
const PAUSE_MS: u64 = 1_500;

/// One signal and what became of it; times in milliseconds since the start of the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    pub connector: usize,
    pub id: String,
    /// Just before it was sent.
    pub sent: u64,
    /// `None`: not within [`ENDS`].
    pub ended: Option<u64>,
    pub aborted: bool,
}

/// Which way signals go.
pub enum Way {
    Collection(Collection<Document>),
    Topic(FutureProducer),
}

pub struct Asker {
    pub connector: usize,
    pub way: Way,
    pub rests: Vec<Rest>,
    /// Ends by signal, from the topic of notifications.
    pub notices: Arc<Mutex<BTreeMap<String, String>>>,
    pub history: History,
    pub seed: u64,
}

impl Asker {
    /// Until told to stop; the snapshot that is under way then is awaited. One that does not end is the
    /// last one. Errors: a signal could not be sent.
    pub async fn run(self, stop: CancellationToken) -> Result<Vec<Asked>> {
        let mut random = fastrand::Rng::with_seed(self.seed);
        let mut all = Vec::new();
        while !stop.is_cancelled() {
            let id = format!("ask-{}-{}", self.connector, all.len());
            let function = Function::Snapshot { collection: Lab::database(self.connector), id: id.clone() };
            let process = format!("asker-{}", self.connector);
            self.history.record(&process, OpType::Invoke, function.clone(), None);
            let sent = self.history.now();
            let time = self.send(&id).await.with_context(|| format!("sending signal {id}"))?;
            let end = self.end(&id, time).await;
            let (kind, error) = match &end {
                Some(end) if end != "ABORTED" => (OpType::Ok, None),
                Some(_) => (OpType::Fail, Some("given up".to_owned())),
                None => (OpType::Info, Some("no end".to_owned())),
            };
            self.history.record(&process, kind, function, error);
            let ended = end.is_some().then(|| self.history.now());
            let aborted = end.as_deref() == Some("ABORTED");
            all.push(Asked { connector: self.connector, id, sent, ended, aborted });
            if ended.is_none() {
                break;
            }
            tokio::select! {
                () = stop.cancelled() => {}
                () = tokio::time::sleep(Duration::from_millis(random.u64(0..PAUSE_MS))) => {}
            }
        }
        Ok(all)
    }

    /// Returns a time of the source at which the signal was there, if it went through the source.
    async fn send(&self, id: &str) -> Result<Option<ClusterTime>> {
        let names = [format!("{}.orders", Lab::database(self.connector))];
        match &self.way {
            Way::Collection(signals) => {
                let data = doc! {"data-collections": &names, "type": "incremental"};
                let signal = doc! {"_id": id, "type": "execute-snapshot", "data": data};
                until("the signal is in the collection", SENT, || async {
                    // By name and not as an insert: an attempt without an answer may have been one.
                    signals.replace_one(doc! {"_id": id}, signal.clone()).upsert(true).await?;
                    let pong = signals.client().database("admin").run_command(doc! {"ping": 1}).await?;
                    let time = pong.get_timestamp("operationTime")?;
                    Ok(Some(Some((time.time, time.increment))))
                })
                .await
            }
            Way::Topic(producer) => {
                let data = json!({"data-collections": names, "type": "incremental"});
                let value = json!({"id": id, "type": "execute-snapshot", "data": data}).to_string();
                let prefix = Lab::connector(self.connector);
                let topic = format!("{prefix}-signal");
                let record = FutureRecord::to(&topic).key(&prefix).payload(&value).partition(0);
                producer.send(record, SENT).await.map_err(|(error, _)| anyhow!(error))?;
                Ok(None)
            }
        }
    }

    /// How the snapshot ended.
    async fn end(&self, id: &str, sent: Option<ClusterTime>) -> Option<String> {
        let path = format!("/connectors/{}/offsets", Lab::connector(self.connector));
        let mut begun = false;
        let end = tokio::time::Instant::now() + ENDS;
        while tokio::time::Instant::now() < end {
            let notice = self.notices.lock().get(id).cloned();
            if notice.is_some() {
                return notice;
            }
            if let Some(body) = any(&self.rests, &path).await
                && let Some(position) = positions(&body).next()
            {
                begun |= position.asked.as_deref() == Some(id) || sent.is_some_and(|sent| position.at >= sent);
                if begun && position.asked.is_none() {
                    return Some("no longer in the position".to_owned());
                }
            }
            tokio::time::sleep(LOOK).await;
        }
        None
    }
}

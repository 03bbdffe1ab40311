//! Writers: each owns its documents and raises a version counter in them, so that versions of one
//! document are written one after the other and their order is known.
//!
//! A write that failed without an answer is `info`: it may be in the database or not. It is never
//! repeated; the next write takes the next version.

use std::sync::Arc;
use std::time::Duration;

use bson::{Document, doc};
use mongodb::error::ErrorKind;
use mongodb::options::{Acknowledgment, WriteConcern};
use mongodb::{Client, Collection};
use tokio::sync::RwLock;
use tokio_util::sync::CancellationToken;

use crate::history::{Function, History, OpType};
use crate::lab::Lab;

/// One operation in so many deletes its document.
const DELETE_ONE_IN: u32 = 20;
/// Longest wait for an answer of the database.
const ANSWER: Duration = Duration::from_secs(8);

pub struct Writer {
    pub name: String,
    pub connector: usize,
    /// Its documents; those that are there already have version 0.
    pub keys: Vec<i64>,
    /// It writes only while this is true; who changes it waits for the write that is under way.
    pub gate: Option<Arc<RwLock<bool>>>,
    /// Pause between two writes.
    pub pace: Duration,
    pub seed: u64,
}

impl Writer {
    pub async fn run(self, client: Client, history: History, stop: CancellationToken) {
        let collection = orders_of(&client, self.connector);
        let name = Lab::database(self.connector);
        let mut random = fastrand::Rng::with_seed(self.seed);
        let mut versions = vec![0_i64; self.keys.len()];
        let mut pace = tokio::time::interval(self.pace);
        pace.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                _ = pace.tick() => {}
            }
            let open = match &self.gate {
                None => None,
                Some(gate) => Some(gate.read().await),
            };
            if open.as_ref().is_some_and(|open| !**open) {
                continue;
            }
            let at = random.usize(0..versions.len());
            versions[at] += 1;
            let (key, version) = (self.keys[at], versions[at]);
            let delete = random.u32(0..DELETE_ONE_IN) == 0;
            let function = if delete {
                Function::Delete { collection: name.clone(), key, version }
            } else {
                Function::Write { collection: name.clone(), key, version }
            };
            history.record(&self.name, OpType::Invoke, function.clone(), None);
            let work = async {
                if delete {
                    collection.delete_one(doc! {"_id": key}).await.map(|r| r.deleted_count > 0)
                } else {
                    let change = doc! {"$set": {"v": version, "by": &self.name}};
                    collection.update_one(doc! {"_id": key}, change).upsert(true).await.map(|_| true)
                }
            };
            let (kind, error) = match tokio::time::timeout(ANSWER, work).await {
                Ok(Ok(true)) => (OpType::Ok, None),
                // Nothing was there to delete: no change, so no event.
                Ok(Ok(false)) => (OpType::Fail, Some("nothing to delete".to_owned())),
                Ok(Err(e)) if surely_not_applied(&e) => (OpType::Fail, Some(e.to_string())),
                Ok(Err(e)) => (OpType::Info, Some(e.to_string())),
                Err(_) => (OpType::Info, Some("no answer".to_owned())),
            };
            history.record(&self.name, kind, function, error);
        }
    }
}

/// The collection with write concern majority: an acknowledged write survives any election.
pub fn orders_of(client: &Client, connector: usize) -> Collection<Document> {
    let concern = WriteConcern::builder().w(Acknowledgment::Majority).journal(true).build();
    let options = mongodb::options::CollectionOptions::builder().write_concern(concern).build();
    client.database(&Lab::database(connector)).collection_with_options("orders", options)
}

fn surely_not_applied(error: &mongodb::error::Error) -> bool {
    matches!(*error.kind, ErrorKind::ServerSelection { .. })
}

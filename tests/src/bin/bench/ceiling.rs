//! The limit of the machine: raw batches without decoding, piped into an idempotent producer, on the
//! processor that the node has otherwise.

use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result};
use futures::StreamExt;
use mongodb::bson::{Document, doc};
use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;
use rdkafka::ClientConfig;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};

use crate::lab::Lab;

/// What the pipe reads.
#[derive(Clone)]
pub enum Reading {
    Scan,
    /// A change stream from a token on.
    Stream(Document),
}

/// Pipes `events` raw documents into a topic; events a second.
pub async fn pipe(
    lab: &Lab,
    database: &str,
    topic: &str,
    events: usize,
    reading: Reading,
    compression: &str,
) -> Result<f64> {
    let (uri, bootstrap) = (lab.set.uri(), lab.broker.bootstrap());
    let (database, topic, compression) = (database.to_owned(), topic.to_owned(), compression.to_owned());
    // A thread of its own with a runtime of its own, so that everything is on one processor.
    let work = std::thread::spawn(move || -> Result<f64> {
        let mut set = CpuSet::new();
        set.set(1)?;
        sched_setaffinity(Pid::from_raw(0), &set)?;
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        runtime.block_on(run(&uri, &bootstrap, &database, &topic, events, reading, &compression))
    });
    tokio::task::spawn_blocking(move || work.join()).await?.map_err(|_| anyhow::anyhow!("the pipe panicked"))?
}

async fn run(
    uri: &str,
    bootstrap: &str,
    database: &str,
    topic: &str,
    events: usize,
    reading: Reading,
    compression: &str,
) -> Result<f64> {
    let client = mongodb::Client::with_uri_str(uri).await?;
    let database = client.database(database);
    let producer: Arc<BaseProducer> = Arc::new(
        ClientConfig::new()
            .set("bootstrap.servers", bootstrap)
            .set("enable.idempotence", "true")
            .set("linger.ms", "5")
            .set("batch.size", "1000000")
            .set("queue.buffering.max.kbytes", "65536")
            .set("compression.type", compression)
            .create()?,
    );
    let start = Instant::now();
    let mut sent = 0;
    let mut cursor = match reading {
        Reading::Scan => database.collection::<Document>("c").find(doc! {}).batch().await?,
        Reading::Stream(token) => {
            let stage = doc! {"$changeStream": {"resumeAfter": token, "fullDocument": "updateLookup"}};
            let pipeline = [stage, doc! {"$match": {"operationType": {"$in": ["insert", "update", "delete"]}}}];
            database.aggregate(pipeline).batch().await?
        }
    };
    while sent < events {
        let batch = cursor.next().await.context("the cursor ended")??;
        for item in batch.doc_slices()? {
            let document = item?.as_document().context("not a document")?.as_bytes().to_vec();
            let mut record: BaseRecord<'_, [u8], [u8]> = BaseRecord::to(topic).key(&b"key"[..]).payload(&document[..]);
            loop {
                match producer.send(record) {
                    Ok(()) => break,
                    Err((KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull), back)) => {
                        record = back;
                        producer.poll(std::time::Duration::from_millis(1));
                    }
                    Err((e, _)) => return Err(e.into()),
                }
            }
            sent += 1;
        }
        producer.poll(std::time::Duration::ZERO);
    }
    producer.flush(std::time::Duration::from_secs(60))?;
    Ok(sent as f64 / start.elapsed().as_secs_f64())
}

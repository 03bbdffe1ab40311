//! A task: the partitions it reads, and a reader for each.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use thalweg_config::Secret;
use thalweg_core::notification::Notifier;
use thalweg_core::position::SourcePartition;
use thalweg_core::signal::Channels;
use thalweg_core::source::{PartitionContext, PartitionReader, SourceTask, TaskSpec};
use thalweg_core::{Error, ErrorKind, Phase};
use tokio::sync::{Mutex, mpsc};

use crate::ad_hoc::{AdHoc, BLOCKING_AHEAD};
use crate::chunks::Chunks;
use crate::filter::NamespaceFilter;
use crate::offsets::{self, StoredOffsets};
use crate::options::{CaptureScope, MongoConfig};
use crate::plan::{self, Portion, Share};
use crate::pump::{Part, Pump};
use crate::reader::MongoReader;
use crate::reply::Budget;
use crate::shard::Shard;

/// Replies fetched ahead, besides the one that the pump has in its hands.
const REPLIES_AHEAD: usize = 1;

/// Bytes of replies per partition after which nothing more is fetched ahead. A reply has up to
/// 16 MB, and takes twice its size while the driver receives it.
const BYTES_AHEAD: usize = 24 << 20;

pub(crate) struct MongoTask {
    config: Arc<MongoConfig>,
    filter: Arc<NamespaceFilter>,
    share: Share,
    spec: TaskSpec,
}

impl MongoTask {
    pub(crate) fn new(spec: TaskSpec) -> Result<Self, Error> {
        let mut config = MongoConfig::parse(&spec.config)?;
        let filter = NamespaceFilter::new(&config.filters)?;
        let share = plan::share(&spec.config).map_err(|why| {
            let text = format!("what the task is to read cannot be told from its configuration: {why}");
            Error::new(ErrorKind::Internal, Phase::Start, text)
        })?;
        if matches!(share, Share::WholeCluster(portion) if !portion.is_first()) {
            // The first portion speaks for all.
            config.notifier = Notifier::default();
            config.heartbeat_interval = Duration::ZERO;
        }
        Ok(Self { config: Arc::new(config), filter: Arc::new(filter), share, spec })
    }

    fn partition_of(&self, shard: &Shard) -> SourcePartition {
        offsets::of_shard(&self.config.topic_prefix, &shard.name)
    }

    fn portion(&self, portion: Portion) -> SourcePartition {
        match portion.number {
            0 => offsets::whole(&self.config.topic_prefix),
            number => offsets::of_portion(&self.config.topic_prefix, number),
        }
    }

    /// What the partition is, and its connection string.
    fn part(&self, partition: &SourcePartition) -> Result<(Part, Secret), Error> {
        let connection = &self.config.connection;
        match &self.share {
            Share::WholeCluster(portion) if *partition == self.portion(*portion) => {
                return Ok((Part::WholeCluster(*portion), connection.string.clone()));
            }
            Share::WholeCluster(_) => {}
            Share::Shards(shards) => {
                if let Some(shard) = shards.iter().find(|s| *partition == self.partition_of(s)) {
                    let params = connection.shard_params.as_deref().unwrap_or_default();
                    let uri = shard.uri(connection.string.reveal(), params, connection.user.is_some());
                    return Ok((Part::Shard(shard.name.clone()), Secret::new(uri)));
                }
            }
        }
        Err(Error::new(ErrorKind::Internal, Phase::Start, format!("{partition:?} is not a partition of this task")))
    }

    /// What reads chunks of incremental snapshots, or why there can be none.
    fn chunks(&self, part: &Part, uri: &Secret) -> Result<Arc<Chunks>, &'static str> {
        let Some(signals) = &self.config.filters.signals else {
            return Err("signal.data.collection is not set; watermarks are written there");
        };
        if !self.config.snapshot.mode.streams() {
            return Err("with this snapshot.mode nothing is streamed; use a blocking snapshot");
        }
        if matches!(part, Part::Shard(_)) {
            return Err("each shard has a stream of its own; use mongodb.connection.mode=sharded");
        }
        if matches!(self.config.capture.scope, CaptureScope::Collection(_)) {
            return Err("with capture.scope=collection the signal collection is not in the stream");
        }
        if matches!(&self.config.capture.scope, CaptureScope::Database(db) if *db != signals.db) {
            return Err("with capture.scope=database the signal collection has to be in that database");
        }
        let (config, filter) = (self.config.clone(), self.filter.clone());
        Ok(Arc::new(Chunks::new(config, filter, uri.clone(), signals.clone())))
    }
}

#[async_trait]
impl SourceTask for MongoTask {
    fn partitions(&self) -> Vec<SourcePartition> {
        match &self.share {
            Share::WholeCluster(portion) => vec![self.portion(*portion)],
            Share::Shards(shards) => shards.iter().map(|s| self.partition_of(s)).collect(),
        }
    }

    fn channels(&self) -> Option<Channels> {
        Some(self.config.signals.channels.clone())
    }

    fn follows_signals(&self) -> bool {
        !matches!(self.share, Share::WholeCluster(portion) if !portion.is_first())
    }

    fn shares_signals(&self) -> bool {
        // Another shard may come at any time.
        matches!(self.share, Share::Shards(_))
    }

    async fn open(
        &self,
        partition: &SourcePartition,
        context: PartitionContext,
    ) -> Result<Box<dyn PartitionReader>, Error> {
        let (part, uri) = self.part(partition)?;
        let (out, feed) = mpsc::channel(REPLIES_AHEAD);
        let (asks, blocking) = mpsc::channel(BLOCKING_AHEAD);
        let ad_hoc = AdHoc::new(
            &self.config,
            self.chunks(&part, &uri),
            asks,
            context.signals.clone(),
            context.progress.incremental.clone(),
        )
        .sharing(self.shares_signals());
        let pump = Pump {
            config: self.config.clone(),
            filter: self.filter.clone(),
            uri,
            part: part.clone(),
            offsets: StoredOffsets {
                reader: context.offsets.clone(),
                prefix: self.config.topic_prefix.clone(),
                may_invalidate: self.config.allow_offset_invalidation,
            },
            progress: context.progress.clone(),
            budget: Budget::new(BYTES_AHEAD),
            out,
            blocking: Mutex::new(blocking),
        };
        let reader = MongoReader::start(&self.config, &self.filter, &self.spec, &part, (pump, feed, ad_hoc), &context);
        Ok(Box::new(reader))
    }
}

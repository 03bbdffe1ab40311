//! Which stored offset a partition starts from: its own, or one that an older release or another
//! connection mode left behind.

use std::sync::Arc;

use thalweg_core::Error;
use thalweg_core::position::{self, OffsetReader, SourcePartition};
use tracing::{info, warn};

use crate::position::{MongoCodec, MongoPosition};
use crate::shard::Shard;

/// Replica set name under which releases up to 2.5 stored the offset of a sharded cluster.
const OLD_CLUSTER: &str = "cluster";

/// The stored offsets of one connector.
pub(crate) struct StoredOffsets {
    pub(crate) reader: Arc<dyn OffsetReader>,
    pub(crate) prefix: Arc<str>,
    /// `internal.mongodb.allow.offset.invalidation`.
    pub(crate) may_invalidate: bool,
}

/// The partition that is the whole cluster.
pub(crate) fn whole(prefix: &str) -> SourcePartition {
    SourcePartition::new([("server_id", prefix)])
}

/// The partition that is one shard.
pub(crate) fn of_shard(prefix: &str, replica_set: &str) -> SourcePartition {
    SourcePartition::new([("server_id", prefix), ("rs", replica_set)])
}

impl StoredOffsets {
    /// For one stream over the whole cluster; `replica_set` as the connection string names it.
    pub(crate) fn of_whole(&self, replica_set: Option<&str>) -> Result<Option<MongoPosition>, Error> {
        if let Some(position) = self.read(&whole(&self.prefix))? {
            return Ok(Some(position));
        }
        let older = of_shard(&self.prefix, replica_set.unwrap_or(OLD_CLUSTER));
        let position = self.read(&older)?;
        if position.is_some() {
            warn!(partition = ?older, "found compatible offset from previous version");
        }
        Ok(position)
    }

    /// For a cluster that was read shard by shard so far. All or nothing: with an offset missing,
    /// what happened on that shard is unknown.
    pub(crate) fn of_all_shards(&self, shards: &[Shard]) -> Result<Option<MongoPosition>, Error> {
        let mut positions = Vec::new();
        for shard in shards {
            let by_id = self.read(&of_shard(&self.prefix, &shard.id))?;
            let found = match by_id {
                None => self.read(&of_shard(&self.prefix, &shard.name))?,
                found => found,
            };
            positions.extend(found);
        }
        if positions.is_empty() || positions.len() < shards.len() {
            return Ok(None);
        }
        if !self.may_invalidate {
            return Err(Error::config(
                "Offsets from previous version are invalid, either manually delete them or set \
                 'internal.mongodb.allow.offset.invalidation=true' to allow streaming to resume from the oldest shard \
                 specific offset",
            ));
        }
        let oldest = positions.into_iter().min_by_key(|p| p.time().map(|t| (t.time, t.increment)));
        warn!(shards = shards.len(), "going on from the oldest offset of the shards");
        Ok(oldest)
    }

    /// For one shard of `of`.
    pub(crate) fn of_one_shard(&self, replica_set: &str, of: usize) -> Result<Option<MongoPosition>, Error> {
        if let Some(position) = self.read(&of_shard(&self.prefix, replica_set))? {
            return Ok(Some(position));
        }
        let Some(of_whole) = self.read(&whole(&self.prefix))? else { return Ok(None) };
        if of == 1 {
            return Ok(Some(of_whole));
        }
        if !self.may_invalidate {
            info!(
                replica_set,
                "the offset of the whole cluster is not used for a shard \
                 (internal.mongodb.allow.offset.invalidation=false)"
            );
            return Ok(None);
        }
        // A token of the router is none of the shard's; its time is valid everywhere.
        Ok(of_whole.time().map(MongoPosition::at))
    }

    fn read(&self, partition: &SourcePartition) -> Result<Option<MongoPosition>, Error> {
        let stored = position::stored(&MongoCodec, &*self.reader, partition)?;
        Ok(stored.and_then(|position| MongoPosition::decode(&position)))
    }
}

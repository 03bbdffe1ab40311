//! Which stored offset a partition starts from: its own, or one that an older release or another
//! connection mode left behind.

use std::sync::Arc;

use thalweg_core::Error;
use thalweg_core::position::{self, OffsetReader, SourcePartition};
use thalweg_core::snapshot::Copied;
use tracing::{info, warn};

use crate::position::{MongoCodec, MongoPosition};
use crate::shard::Shard;

/// Replica set name under which releases up to 2.5 stored the offset of a sharded cluster.
const OLD_CLUSTER: &str = "cluster";

/// A position that is stored.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) position: MongoPosition,
    /// Under the partition's own name: whoever takes over finds it there.
    pub(crate) own: bool,
}

impl Found {
    fn own(position: MongoPosition) -> Self {
        Self { position, own: true }
    }

    fn of_another(position: MongoPosition) -> Self {
        Self { position, own: false }
    }
}

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

/// A portion of the snapshot of the whole cluster, beyond the first.
pub(crate) fn of_portion(prefix: &str, number: usize) -> SourcePartition {
    SourcePartition::new([("server_id", prefix), ("snapshot_portion", &number.to_string())])
}

impl StoredOffsets {
    /// How far a portion of the snapshot has come; `None`: nothing usable is stored. The first portion's
    /// is that of the whole cluster.
    pub(crate) fn portion(&self, number: usize) -> Result<Option<(MongoPosition, Copied)>, Error> {
        let partition = if number == 0 { whole(&self.prefix) } else { of_portion(&self.prefix, number) };
        let Some(position) = self.read(&partition)?.filter(MongoPosition::is_unfinished) else { return Ok(None) };
        Ok(position.copied().and_then(Result::ok).map(|copied| (position, copied)))
    }

    /// For one stream over the whole cluster; `replica_set` as the connection string names it.
    pub(crate) fn of_whole(&self, replica_set: Option<&str>) -> Result<Option<Found>, Error> {
        if let Some(position) = self.read(&whole(&self.prefix))? {
            return Ok(Some(Found::own(position)));
        }
        let older = of_shard(&self.prefix, replica_set.unwrap_or(OLD_CLUSTER));
        let position = self.read(&older)?;
        if position.is_some() {
            warn!(partition = ?older, "found compatible offset from previous version");
        }
        Ok(position.map(Found::of_another))
    }

    /// For a cluster that was read shard by shard so far. All or nothing: with an offset missing,
    /// what happened on that shard is unknown.
    pub(crate) fn of_all_shards(&self, shards: &[Shard]) -> Result<Option<Found>, Error> {
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
        Ok(oldest.map(Found::of_another))
    }

    /// For one shard. `is_only` says whether the cluster has no other: it is asked only if that decides.
    pub(crate) async fn of_one_shard(
        &self,
        replica_set: &str,
        is_only: impl Future<Output = Result<bool, Error>>,
    ) -> Result<Option<Found>, Error> {
        if let Some(position) = self.read(&of_shard(&self.prefix, replica_set))? {
            return Ok(Some(Found::own(position)));
        }
        let Some(of_whole) = self.read(&whole(&self.prefix))? else { return Ok(None) };
        if is_only.await? {
            return Ok(Some(Found::of_another(of_whole)));
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
        Ok(of_whole.time().map(MongoPosition::at).map(Found::of_another))
    }

    fn read(&self, partition: &SourcePartition) -> Result<Option<MongoPosition>, Error> {
        let stored = position::stored(&MongoCodec, &*self.reader, partition)?;
        Ok(stored.and_then(|position| MongoPosition::decode(&position)))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::collections::BTreeMap;

    use serde_json::{Value as Json, json};
    use thalweg_core::position::OffsetMap;
    use thalweg_core::{ErrorKind, Policy};

    use super::*;

    struct Offsets(BTreeMap<String, OffsetMap>);

    impl OffsetReader for Offsets {
        fn offset(&self, partition: &SourcePartition) -> Option<OffsetMap> {
            self.0.get(&**partition.canonical()).cloned()
        }
    }

    fn stored(may_invalidate: bool, offsets: &[(SourcePartition, Json)]) -> StoredOffsets {
        let entry = |(p, o): &(SourcePartition, Json)| (p.canonical().to_string(), o.as_object().unwrap().clone());
        let reader = Arc::new(Offsets(offsets.iter().map(entry).collect()));
        StoredOffsets { reader, prefix: "p".into(), may_invalidate }
    }

    fn at(sec: i32) -> Json {
        json!({"sec": sec, "ord": 1})
    }

    fn shard(id: &str, name: &str) -> Shard {
        Shard { name: name.into(), id: id.into(), hosts: "h:1".into() }
    }

    fn sec(found: Result<Option<Found>, Error>) -> Option<i32> {
        found.unwrap().map(|f| f.position.sec)
    }

    #[test]
    fn the_whole_cluster_by_its_own_name_then_by_older_ones() {
        let own = (whole("p"), at(1));
        let named = (of_shard("p", "rs0"), at(2));
        let cluster = (of_shard("p", "cluster"), at(3));
        let all = stored(false, &[own, named.clone(), cluster.clone()]);
        assert_eq!(sec(all.of_whole(Some("rs0"))), Some(1));
        let older = stored(false, &[named, cluster]);
        assert_eq!(sec(older.of_whole(Some("rs0"))), Some(2));
        assert_eq!(sec(older.of_whole(None)), Some(3));
        let is_own = |stored: &StoredOffsets| stored.of_whole(Some("rs0")).unwrap().unwrap().own;
        assert!(is_own(&all) && !is_own(&older));
        assert_eq!(sec(older.of_whole(Some("rs1"))), None);
    }

    #[test]
    fn mgo_27_offsets_of_all_shards_or_none() {
        let shards = [shard("s1", "rsA"), shard("s2", "rsB")];
        let both = [(of_shard("p", "s1"), at(7)), (of_shard("p", "rsB"), at(5))];
        assert_eq!(sec(stored(true, &both).of_all_shards(&shards)), Some(5), "the oldest");
        let refused = stored(false, &both).of_all_shards(&shards).unwrap_err();
        assert_eq!((refused.kind, refused.policy()), (ErrorKind::Config, Policy::NeedsUser));
        assert!(refused.message.contains("internal.mongodb.allow.offset.invalidation=true"));
        for may_invalidate in [true, false] {
            assert_eq!(sec(stored(may_invalidate, &both[..1]).of_all_shards(&shards)), None);
            assert_eq!(sec(stored(may_invalidate, &[]).of_all_shards(&[])), None);
        }
    }

    #[tokio::test]
    async fn one_shard_by_its_own_name_then_from_the_whole() {
        let token = "826B0C5F11000000062B0229296E04";
        let of_whole = (whole("p"), json!({"sec": -1, "ord": -1, "resume_token": token}));
        let own = (of_shard("p", "rsA"), at(9));
        let unasked = async || panic!("nobody need know");
        assert_eq!(sec(stored(false, &[of_whole.clone(), own]).of_one_shard("rsA", unasked()).await), Some(9));
        assert_eq!(sec(stored(false, &[]).of_one_shard("rsA", unasked()).await), None);
        let of_whole = std::slice::from_ref(&of_whole);
        // The only shard sees what the router sees.
        let found = stored(false, of_whole).of_one_shard("rsA", async { Ok(true) }).await.unwrap().unwrap();
        assert!(found.position.token.is_some() && !found.own);
        assert_eq!(sec(stored(false, of_whole).of_one_shard("rsA", async { Ok(false) }).await), None);
        let found = stored(true, of_whole).of_one_shard("rsA", async { Ok(false) }).await.unwrap().unwrap();
        assert_eq!(
            (found.position.sec, found.position.token, found.own),
            (1_795_972_881, None, false),
            "the time of the token"
        );
        // Who cannot be asked decides nothing.
        let silent = async { Err(Error::new(ErrorKind::Connect, thalweg_core::Phase::Start, "no router")) };
        assert_eq!(stored(true, of_whole).of_one_shard("rsA", silent).await.unwrap_err().kind, ErrorKind::Connect);
    }

    #[test]
    fn what_cannot_be_read_is_not_taken_for_nothing() {
        let odd = stored(false, &[(whole("p"), json!({"sec": "abc"}))]);
        let error = odd.of_whole(None).unwrap_err();
        assert_eq!((error.kind, error.policy()), (ErrorKind::Codec, Policy::NeedsUser));
    }
}

//! Which task reads what.
//!
//! One task reads the whole cluster, unless the shards of a sharded cluster are read directly
//! (`mongodb.connection.mode=replica_set`): then they are spread over `tasks.max` tasks. The result
//! depends on nothing but the input. Task configurations hold host names, never credentials beyond
//! those the connector's configuration already has.

use serde::{Deserialize, Serialize};
use thalweg_config::Properties;

use crate::shard::Shard;

/// The task's shards as JSON; absent: the whole cluster.
const SHARDS: &str = "internal.mongodb.task.shards";

/// The form in which [`SHARDS`] holds them.
#[derive(Serialize, Deserialize)]
struct Stored {
    /// Shards of the whole cluster.
    of: usize,
    shards: Vec<StoredShard>,
}

#[derive(Serialize, Deserialize)]
struct StoredShard {
    rs: String,
    id: String,
    hosts: String,
}

/// What a task reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Share {
    WholeCluster,
    /// These of `of` shards.
    Shards {
        shards: Vec<Shard>,
        of: usize,
    },
}

/// Contiguous groups in the order of the names; the first ones are one larger if it does not come
/// out even. No shards: no groups.
pub(crate) fn distribute(mut shards: Vec<Shard>, max: usize) -> Vec<Vec<Shard>> {
    shards.sort();
    shards.dedup_by(|a, b| a.name == b.name);
    let groups = shards.len().min(max.max(1));
    let mut rest = shards.into_iter();
    let total = rest.len();
    (0..groups)
        .map(|group| {
            let size = total / groups + usize::from(group < total % groups);
            rest.by_ref().take(size).collect()
        })
        .collect()
}

/// The only task, for the whole cluster.
pub(crate) fn whole_cluster(config: &Properties) -> Vec<Properties> {
    let mut task = config.clone();
    task.remove(SHARDS);
    vec![task]
}

/// One task per group of shards.
pub(crate) fn by_shard(config: &Properties, groups: &[Vec<Shard>]) -> Result<Vec<Properties>, serde_json::Error> {
    let of = groups.iter().map(Vec::len).sum();
    let stored = |s: &Shard| StoredShard { rs: s.name.to_string(), id: s.id.to_string(), hosts: s.hosts.to_string() };
    groups
        .iter()
        .map(|group| {
            let mut task = config.clone();
            let share = Stored { of, shards: group.iter().map(stored).collect() };
            task.set(SHARDS, serde_json::to_string(&share)?);
            Ok(task)
        })
        .collect()
}

/// What the task with this configuration reads.
pub(crate) fn share(task: &Properties) -> Result<Share, serde_json::Error> {
    let Some(text) = task.get(SHARDS) else { return Ok(Share::WholeCluster) };
    let stored: Stored = serde_json::from_str(text)?;
    let shard = |s: StoredShard| Shard { name: s.rs.into(), id: s.id.into(), hosts: s.hosts.into() };
    Ok(Share::Shards { shards: stored.shards.into_iter().map(shard).collect(), of: stored.of })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    fn shards(names: &str) -> Vec<Shard> {
        names
            .chars()
            .map(|c| Shard { name: c.to_string().into(), id: format!("{c}0").into(), hosts: format!("{c}:1").into() })
            .collect()
    }

    fn names(groups: &[Vec<Shard>]) -> Vec<String> {
        groups.iter().map(|g| g.iter().map(|s| &*s.name).collect()).collect()
    }

    #[test]
    fn groups_are_contiguous_and_even() {
        assert_eq!(names(&distribute(shards("edcba"), 2)), ["abc", "de"]);
        assert_eq!(names(&distribute(shards("abcde"), 3)), ["ab", "cd", "e"]);
        assert_eq!(names(&distribute(shards("abc"), 8)), ["a", "b", "c"]);
        assert_eq!(names(&distribute(shards("abc"), 1)), ["abc"]);
        assert!(distribute(Vec::new(), 4).is_empty());
    }

    #[test]
    fn tasks_carry_hosts_and_no_more() {
        let config = Properties::from([("mongodb.connection.string", "mongodb://r/")]);
        let tasks = by_shard(&config, &distribute(shards("ab"), 2)).unwrap();
        assert_eq!(tasks.len(), 2);
        assert_eq!(tasks[1].get(SHARDS), Some(r#"{"of":2,"shards":[{"rs":"b","id":"b0","hosts":"b:1"}]}"#));
        assert_eq!(share(&tasks[1]).unwrap(), Share::Shards { shards: shards("b"), of: 2 });
        let whole = whole_cluster(&tasks[1]);
        assert_eq!(whole.len(), 1);
        assert_eq!(share(&whole[0]).unwrap(), Share::WholeCluster);
        assert_eq!(whole[0], config, "a task of a whole cluster has the connector's properties and no others");
    }

    proptest! {
        #[test]
        fn every_shard_is_in_exactly_one_group(names in proptest::collection::btree_set("[a-z]{1,6}", 0..40), max in 1_usize..12) {
            let shards: Vec<Shard> =
                names.iter().map(|n| Shard { name: n.as_str().into(), id: "s".into(), hosts: "h:1".into() }).collect();
            let groups = distribute(shards.clone(), max);
            prop_assert_eq!(groups.len(), shards.len().min(max));
            let sizes: Vec<usize> = groups.iter().map(Vec::len).collect();
            if let (Some(most), Some(least)) = (sizes.iter().max(), sizes.iter().min()) {
                prop_assert!(most - least <= 1);
            }
            prop_assert_eq!(groups.concat(), shards);
        }
    }
}

//! Which task reads what.
//!
//! One task reads the whole cluster, unless the shards of a sharded cluster are read directly
//! (`mongodb.connection.mode=replica_set`): then they are spread over `tasks.max` tasks. On demand
//! (`thalweg.snapshot.spread`) further tasks help the one of the whole cluster with snapshots. The result
//! depends on nothing but the input. Task configurations hold host names, never credentials beyond
//! those the connector's configuration already has.

use serde::{Deserialize, Serialize};
use thalweg_config::Properties;

use crate::options::MongoConfig;
use crate::shard::Shard;

/// The task's shards as JSON; absent: the whole cluster.
const SHARDS: &str = "internal.mongodb.task.shards";

/// The task's portion of snapshots, as `<number>/<portions>`; absent: the only one.
const PORTION: &str = "internal.mongodb.task.portion";

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
    WholeCluster(Portion),
    /// These of `of` shards.
    Shards {
        shards: Vec<Shard>,
        of: usize,
    },
}

/// Which part of a snapshot a task reads. The first one, number 0, also streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Portion {
    pub(crate) number: usize,
    pub(crate) of: usize,
}

impl Portion {
    /// Nobody helps.
    pub(crate) const ALL: Self = Self { number: 0, of: 1 };

    pub(crate) fn is_first(self) -> bool {
        self.number == 0
    }

    fn parse(text: &str) -> Option<Self> {
        let (number, of) = text.split_once('/')?;
        let portion = Self { number: number.parse().ok()?, of: of.parse().ok()? };
        (portion.number < portion.of).then_some(portion)
    }
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

/// Over how many of at most `max` tasks the snapshots of a whole cluster are spread.
pub(crate) fn portions(config: &MongoConfig, max: usize) -> usize {
    let spreads = config.snapshot.spreads && config.snapshot.resumes && config.snapshot.mode.may_read();
    if spreads { max.max(1) } else { 1 }
}

/// The task for the whole cluster, and those that help it with snapshots.
pub(crate) fn whole_cluster(config: &Properties, portions: usize) -> Vec<Properties> {
    let mut task = config.clone();
    task.remove(SHARDS);
    task.remove(PORTION);
    if portions <= 1 {
        return vec![task];
    }
    let portion = |number| {
        let mut task = task.clone();
        task.set(PORTION, format!("{number}/{portions}"));
        task
    };
    (0..portions).map(portion).collect()
}

/// One task per group of shards.
pub(crate) fn by_shard(config: &Properties, groups: &[Vec<Shard>]) -> Result<Vec<Properties>, serde_json::Error> {
    let of = groups.iter().map(Vec::len).sum();
    let stored = |s: &Shard| StoredShard { rs: s.name.to_string(), id: s.id.to_string(), hosts: s.hosts.to_string() };
    groups
        .iter()
        .map(|group| {
            let mut task = config.clone();
            task.remove(PORTION);
            let share = Stored { of, shards: group.iter().map(stored).collect() };
            task.set(SHARDS, serde_json::to_string(&share)?);
            Ok(task)
        })
        .collect()
}

/// What the task with this configuration reads. Errors: what is wrong with it.
pub(crate) fn share(task: &Properties) -> Result<Share, String> {
    let Some(text) = task.get(SHARDS) else {
        let portion = task.get(PORTION).map(|text| Portion::parse(text).ok_or(format!("{PORTION} is '{text}'")));
        return Ok(Share::WholeCluster(portion.transpose()?.unwrap_or(Portion::ALL)));
    };
    let stored: Stored = serde_json::from_str(text).map_err(|e| format!("{SHARDS}: {e}"))?;
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
        let whole = whole_cluster(&tasks[1], 1);
        assert_eq!(whole.len(), 1);
        assert_eq!(share(&whole[0]).unwrap(), Share::WholeCluster(Portion::ALL));
        assert_eq!(whole[0], config, "a task of a whole cluster has the connector's properties and no others");
    }

    #[test]
    fn portions_of_snapshots() {
        let config = Properties::from([("mongodb.connection.string", "mongodb://r/")]);
        let tasks = whole_cluster(&config, 3);
        let portions: Vec<Share> = tasks.iter().map(|task| share(task).unwrap()).collect();
        assert_eq!(portions, [0, 1, 2].map(|number| Share::WholeCluster(Portion { number, of: 3 })));
        assert_eq!(whole_cluster(&tasks[2], 1), std::slice::from_ref(&config));
        for odd in ["", "1", "3/3", "-1/2", "a/b"] {
            let mut task = config.clone();
            task.set(PORTION, odd);
            assert!(share(&task).unwrap_err().contains("internal.mongodb.task.portion"), "{odd}");
        }
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

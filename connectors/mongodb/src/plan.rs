//! Which task reads what.
//!
//! One task reads the whole cluster, unless the shards of a sharded cluster are read directly
//! (`mongodb.connection.mode=replica_set`): then they are spread over `tasks.max` tasks, and each shard
//! stays with its task for as long as it is listed. On demand (`thalweg.snapshot.spread`) further tasks
//! help the one of the whole cluster with snapshots. The result depends on nothing but the input. Task
//! configurations hold host names, never credentials beyond those the connector's configuration already
//! has; what they say of a shard depends on no other shard, so that one that comes or goes changes no
//! task but its own.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use thalweg_config::Properties;

use crate::options::MongoConfig;
use crate::shard::Shard;

/// The task's shards as JSON; absent: the whole cluster.
const SHARDS: &str = "internal.mongodb.task.shards";

/// The task's portion of snapshots, as `<number>/<portions>`; absent: the only one.
const PORTION: &str = "internal.mongodb.task.portion";

/// The form in which [`SHARDS`] holds each of them.
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
    Shards(Vec<Shard>),
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

/// Shards by task. `present` are the configurations of the tasks that there are; none, others than those
/// of shards, or more than `max`: contiguous groups in the order of the names, the first ones one larger
/// if it does not come out even. Otherwise every shard stays where it is, and those that came go one by
/// one, in the order of their names, to a task without shards, a new one, or that with the fewest, the
/// first of these. A task whose shards have gone keeps its number without any, so that no other has to
/// move; behind the last one with shards there is none. No shards: no tasks.
pub(crate) fn distribute(present: &[Properties], mut shards: Vec<Shard>, max: usize) -> Vec<Vec<Shard>> {
    let max = max.max(1);
    shards.sort();
    shards.dedup_by(|a, b| a.name == b.name);
    let mut groups = match groups(present) {
        Some(former) if former.len() <= max => {
            let mut listed: BTreeMap<Arc<str>, Shard> = shards.into_iter().map(|s| (s.name.clone(), s)).collect();
            let stay = |names: Vec<Arc<str>>| names.iter().filter_map(|name| listed.remove(name)).collect();
            let mut groups: Vec<Vec<Shard>> = former.into_iter().map(stay).collect();
            for shard in listed.into_values() {
                join(&mut groups, shard, max);
            }
            groups
        }
        _ => spread(shards, max),
    };
    while groups.pop_if(|group| group.is_empty()).is_some() {}
    groups
}

/// Names of the shards of each task; `None`: there are no tasks of shards.
fn groups(tasks: &[Properties]) -> Option<Vec<Vec<Arc<str>>>> {
    let names = |task| match share(task) {
        Ok(Share::Shards(shards)) => Some(shards.into_iter().map(|shard| shard.name).collect()),
        _ => None,
    };
    (!tasks.is_empty()).then(|| tasks.iter().map(names).collect()).flatten()
}

/// Adds a shard that came.
fn join(groups: &mut Vec<Vec<Shard>>, shard: Shard, max: usize) {
    if groups.len() < max && !groups.iter().any(Vec::is_empty) {
        groups.push(Vec::new());
    }
    // The first of several.
    if let Some(group) = groups.iter_mut().min_by_key(|group| group.len()) {
        group.push(shard);
        group.sort();
    }
}

fn spread(shards: Vec<Shard>, max: usize) -> Vec<Vec<Shard>> {
    let groups = shards.len().min(max);
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
    let stored = |s: &Shard| StoredShard { rs: s.name.to_string(), id: s.id.to_string(), hosts: s.hosts.to_string() };
    groups
        .iter()
        .map(|group| {
            let mut task = config.clone();
            task.remove(PORTION);
            let shards: Vec<StoredShard> = group.iter().map(stored).collect();
            task.set(SHARDS, serde_json::to_string(&shards)?);
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
    let stored: Vec<StoredShard> = serde_json::from_str(text).map_err(|e| format!("{SHARDS}: {e}"))?;
    let shard = |s: StoredShard| Shard { name: s.rs.into(), id: s.id.into(), hosts: s.hosts.into() };
    Ok(Share::Shards(stored.into_iter().map(shard).collect()))
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
        assert_eq!(names(&distribute(&[], shards("edcba"), 2)), ["abc", "de"]);
        assert_eq!(names(&distribute(&[], shards("abcde"), 3)), ["ab", "cd", "e"]);
        assert_eq!(names(&distribute(&[], shards("abc"), 8)), ["a", "b", "c"]);
        assert_eq!(names(&distribute(&[], shards("abc"), 1)), ["abc"]);
        assert!(distribute(&[], Vec::new(), 4).is_empty());
    }

    fn config() -> Properties {
        Properties::from([("mongodb.connection.string", "mongodb://r/")])
    }

    /// Configurations of tasks with these shards, one letter each.
    fn tasks(groups: &str) -> Vec<Properties> {
        let groups: Vec<Vec<Shard>> = groups.split('|').map(shards).collect();
        by_shard(&config(), &groups).unwrap()
    }

    #[test]
    fn shards_stay_with_their_tasks() {
        for (present, listed, max, expected) in [
            // One that comes gets a task of its own,
            ("a|c", "abc", 3, "a|c|b"),
            // and that task is the only one that goes with it.
            ("a|c|b", "ac", 3, "a|c"),
            // A task in the middle keeps its number, and is the first to get another shard.
            ("a|b|c", "ac", 3, "a||c"),
            ("a||c", "acd", 4, "a|d|c"),
            ("a||c", "acde", 4, "a|d|c|e"),
            // Tasks without shards behind the last one are none.
            ("a|b|c", "a", 3, "a"),
            ("a|b|c", "", 3, ""),
            // With fewer tasks than shards: the one with the fewest, and the first of several.
            ("ab|cd|e", "abcdef", 3, "ab|cd|ef"),
            ("ac|e", "aceb", 2, "ac|be"),
            ("ac|be", "abcef", 2, "acf|be"),
            ("ab|cd", "ab", 2, "ab"),
            // In place of one that goes another comes.
            ("a|b", "ac", 2, "a|c"),
            // With more tasks than may be, everything is spread anew.
            ("a|b|c", "abcd", 2, "ab|cd"),
        ] {
            let groups = distribute(&tasks(present), shards(listed), max);
            assert_eq!(names(&groups).join("|"), expected, "{present} and {listed}");
        }
        let others = whole_cluster(&config(), 2);
        assert_eq!(names(&distribute(&others, shards("ab"), 2)), ["a", "b"], "those of the whole cluster");
    }

    #[test]
    fn other_hosts_of_a_shard_change_its_task_only() {
        let before = tasks("a|b");
        let mut listed = shards("abc");
        listed[1].hosts = "elsewhere:1".into();
        let after = by_shard(&config(), &distribute(&before, listed, 3)).unwrap();
        assert_eq!((&after[0], after.len()), (&before[0], 3));
        assert!(after[1].get(SHARDS).unwrap().contains("elsewhere:1"));
    }

    #[test]
    fn tasks_carry_hosts_and_no_more() {
        let config = config();
        let tasks = by_shard(&config, &distribute(&[], shards("ab"), 2)).unwrap();
        assert_eq!(tasks.len(), 2);
        assert_eq!(tasks[1].get(SHARDS), Some(r#"[{"rs":"b","id":"b0","hosts":"b:1"}]"#));
        assert_eq!(share(&tasks[1]).unwrap(), Share::Shards(shards("b")));
        let whole = whole_cluster(&tasks[1], 1);
        assert_eq!(whole.len(), 1);
        assert_eq!(share(&whole[0]).unwrap(), Share::WholeCluster(Portion::ALL));
        assert_eq!(whole[0], config, "a task of a whole cluster has the connector's properties and no others");
    }

    #[test]
    fn portions_of_snapshots() {
        let config = config();
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
            let groups = distribute(&[], shards.clone(), max);
            prop_assert_eq!(groups.len(), shards.len().min(max));
            let sizes: Vec<usize> = groups.iter().map(Vec::len).collect();
            if let (Some(most), Some(least)) = (sizes.iter().max(), sizes.iter().min()) {
                prop_assert!(most - least <= 1);
            }
            prop_assert_eq!(groups.concat(), shards);
        }

        /// Whatever comes and goes: every listed shard is in one task, there are no more tasks than allowed, and
        /// a task whose shards stay, and which gets no other, has the configuration that it had.
        #[test]
        fn lists_of_shards_follow_each_other(
            lists in proptest::collection::vec(proptest::collection::btree_set("[a-h]", 0..9), 1..12),
            max in 1_usize..6,
        ) {
            let mut present = Vec::new();
            for list in lists {
                let listed = shards(&list.iter().map(String::as_str).collect::<String>());
                let groups = distribute(&present, listed.clone(), max);
                let mut all = groups.concat();
                all.sort();
                prop_assert_eq!(&all, &listed);
                prop_assert!(groups.len() <= max && groups.last().is_none_or(|last| !last.is_empty()));
                let after = by_shard(&config(), &groups).unwrap();
                for (number, (before, group)) in present.iter().zip(&groups).enumerate() {
                    let Ok(Share::Shards(before)) = share(before) else { unreachable!() };
                    let stay: Vec<Shard> = before.iter().filter(|s| listed.contains(s)).cloned().collect();
                    prop_assert!(stay.iter().all(|shard| group.contains(shard)), "{:?} moved", stay);
                    if stay == before && *group == stay {
                        prop_assert_eq!(&after[number], &present[number]);
                    }
                    // Where there is room, nobody has to share.
                    prop_assert!(*group == stay || groups.len() == max || stay.is_empty());
                }
                present = after;
            }
        }
    }
}

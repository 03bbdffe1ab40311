//! Who should vote: a pure function.
//!
//! Invariants (property tests below): one, three or five voters as far as fit members allow, never
//! more than five; a voter that is there never loses its vote; one that is gone for long, or whose
//! address another node has, gives it to a fit learner; nothing changes without a reason; applied
//! again and again it comes to rest.

use std::collections::{BTreeMap, BTreeSet};

use crate::raft::NodeId;

pub const MOST_VOTERS: usize = 5;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Health {
    /// There, and its log is close to the leader's.
    Fit,
    /// There, but behind; or away for a short time.
    Waiting,
    /// Away for so long that it should be replaced.
    Lost,
    /// Another node answers at its address: it never comes back.
    Replaced,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate {
    pub voter: bool,
    pub health: Health,
}

/// The voters there should be, if they are not those there are.
pub fn plan(members: &BTreeMap<NodeId, Candidate>) -> Option<BTreeSet<NodeId>> {
    let with = |voter: bool, health: &[Health]| -> Vec<NodeId> {
        let fits = members.iter().filter(|(_, m)| m.voter == voter && health.contains(&m.health));
        fits.map(|(node, _)| *node).collect()
    };
    let mut voters: BTreeSet<NodeId> = members.iter().filter(|(_, m)| m.voter).map(|(node, _)| *node).collect();
    let mut spare = with(false, &[Health::Fit]).into_iter();

    // Lost votes are worth most: one of three lost is one away from standing still.
    let mut lost = with(true, &[Health::Replaced]);
    lost.extend(with(true, &[Health::Lost]));
    if let Some(lost) = lost.first()
        && let Some(fresh) = spare.next()
    {
        voters.remove(lost);
        voters.insert(fresh);
        return Some(voters);
    }
    // An even number tolerates no more losses than the odd one below it, and two tolerate fewer.
    let next = voters.len() + 1 + (voters.len() % 2);
    let next = next.clamp(1, MOST_VOTERS);
    let missing = next.saturating_sub(voters.len());
    let fresh: Vec<NodeId> = spare.take(missing).collect();
    if missing == 0 || fresh.len() < missing {
        return None;
    }
    voters.extend(fresh);
    Some(voters)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use proptest::prelude::*;

    use super::*;

    fn members(voters: &[(NodeId, Health)], learners: &[(NodeId, Health)]) -> BTreeMap<NodeId, Candidate> {
        let all = voters.iter().map(|v| (true, v)).chain(learners.iter().map(|l| (false, l)));
        all.map(|(voter, (node, health))| (*node, Candidate { voter, health: *health })).collect()
    }

    fn set(nodes: &[NodeId]) -> Option<BTreeSet<NodeId>> {
        Some(nodes.iter().copied().collect())
    }

    use Health::{Fit, Lost, Replaced, Waiting};

    #[test]
    fn groups_grow_in_odd_steps() {
        assert_eq!(plan(&members(&[(1, Fit)], &[])), None);
        assert_eq!(plan(&members(&[(1, Fit)], &[(2, Fit)])), None, "two voters tolerate less than one");
        assert_eq!(plan(&members(&[(1, Fit)], &[(2, Fit), (3, Fit)])), set(&[1, 2, 3]));
        assert_eq!(plan(&members(&[(1, Fit)], &[(2, Fit), (3, Waiting)])), None);
        assert_eq!(plan(&members(&[(1, Fit), (2, Fit)], &[(3, Fit)])), set(&[1, 2, 3]));
        assert_eq!(plan(&members(&[(1, Fit), (2, Fit), (3, Fit)], &[(4, Fit)])), None);
        assert_eq!(
            plan(&members(&[(1, Fit), (2, Fit), (3, Fit)], &[(4, Fit), (5, Fit), (6, Fit)])),
            set(&[1, 2, 3, 4, 5])
        );
        assert_eq!(plan(&members(&[(1, Fit), (2, Fit), (3, Fit), (4, Fit), (5, Fit)], &[(6, Fit), (7, Fit)])), None);
    }

    #[test]
    fn lost_voters_are_replaced_when_somebody_is_fit() {
        let three = [(1, Fit), (2, Lost), (3, Fit)];
        assert_eq!(plan(&members(&three, &[])), None);
        assert_eq!(plan(&members(&three, &[(4, Waiting)])), None);
        assert_eq!(plan(&members(&three, &[(4, Fit)])), set(&[1, 3, 4]));
        // The one that never comes back first.
        assert_eq!(plan(&members(&[(1, Lost), (2, Fit), (3, Replaced)], &[(4, Fit)])), set(&[1, 2, 4]));
        assert_eq!(plan(&members(&[(1, Fit), (2, Waiting), (3, Fit)], &[(4, Fit)])), None);
    }

    fn any_members() -> impl Strategy<Value = BTreeMap<NodeId, Candidate>> {
        let health = prop_oneof![Just(Fit), Just(Waiting), Just(Lost), Just(Replaced)];
        prop::collection::btree_map(0u64..12, (any::<bool>(), health), 1..10).prop_map(|all| {
            let mut voters = 0;
            let limit = |(node, (voter, health)): (NodeId, (bool, Health))| {
                let voter = voter && voters < MOST_VOTERS;
                voters += usize::from(voter);
                (node, Candidate { voter, health })
            };
            all.into_iter().map(limit).collect()
        })
    }

    proptest! {
        #[test]
        fn comes_to_rest_and_harms_nobody(start in any_members()) {
            let mut now = start;
            for step in 0..10 {
                let Some(next) = plan(&now) else { return Ok(()) };
                prop_assert!(step < 9, "it never rests: {now:?}");
                prop_assert!(next.len() <= MOST_VOTERS && next.iter().all(|n| now.contains_key(n)));
                for (node, member) in &now {
                    let stays = next.contains(node);
                    let may_go = matches!(member.health, Health::Lost | Health::Replaced);
                    prop_assert!(!member.voter || stays || may_go, "{node} was there");
                    prop_assert!(member.voter || !stays || member.health == Health::Fit, "{node} was not fit");
                }
                let alive = |set: &BTreeSet<NodeId>| {
                    set.iter().filter(|n| matches!(now[*n].health, Health::Fit | Health::Waiting)).count()
                };
                let before: BTreeSet<NodeId> = now.iter().filter(|(_, m)| m.voter).map(|(n, _)| *n).collect();
                if 2 * alive(&before) > before.len() {
                    prop_assert!(2 * alive(&next) > next.len(), "a majority was there and is not any more");
                }
                for (node, member) in &mut now {
                    member.voter = next.contains(node);
                }
            }
        }
    }
}

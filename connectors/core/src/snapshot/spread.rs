//! A first snapshot that several tasks share.
//!
//! The first task (portion 0) makes the plan: it divides large collections into ranges, gives each range
//! to a portion, and stores that beside the position at which the snapshot began. Collections that are in
//! no plan are read as a whole, by the portion that their name falls to. Every task keeps how far it has
//! come in an offset of its own, and marks it complete at its end. Only when all portions of the same
//! plan are complete, which is after their rows were acknowledged, may the first task stream: so no row
//! of the snapshot comes behind a change of it. Nothing here reads an offset or a row.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};
use sha2::{Digest, Sha256};

use super::{Copied, Range};

/// Which plan a state belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spread {
    /// Drawn for each plan.
    pub id: String,
    /// Tasks that read, the first one included.
    pub portions: usize,
    /// Tells what was to be read from any other choice: tasks that were configured otherwise have no part.
    pub choice: String,
}

impl Spread {
    pub fn new(portions: usize, choice: String) -> Self {
        Self { id: uuid::Uuid::new_v4().to_string(), portions, choice }
    }

    pub(super) fn write(&self) -> Json {
        json!({"id": self.id, "portions": self.portions, "choice": self.choice})
    }

    pub(super) fn read(json: &Json) -> Result<Self, String> {
        let text = |name: &str| json.get(name).and_then(Json::as_str).map(str::to_owned);
        let portions = json.get("portions").and_then(Json::as_u64).and_then(|n| usize::try_from(n).ok());
        Ok(Self {
            id: text("id").ok_or("'spread' has no id")?,
            portions: portions.ok_or("'spread' has no number of portions")?,
            choice: text("choice").ok_or("'spread' has no choice")?,
        })
    }
}

/// The portion that reads a collection of which the plan says nothing. The same on every node and in
/// every release.
pub fn portion_of(collection: &str, portions: usize) -> usize {
    let hash = Sha256::digest(collection);
    let number = hash.iter().take(8).fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
    usize::try_from(number % portions.max(1) as u64).unwrap_or(0)
}

impl Copied {
    pub fn spread(&self) -> Option<&Spread> {
        self.spread.as_ref()
    }

    /// A new plan: what is left of each range goes to the portions by turns.
    pub fn spread_over(&mut self, spread: Spread) {
        for (n, range) in self.open.values_mut().flat_map(|ranges| ranges.values_mut()).enumerate() {
            range.portion = n % spread.portions.max(1);
        }
        self.spread = Some(spread);
    }

    /// One task reads what is left.
    pub fn unspread(&mut self) {
        self.spread = None;
        for range in self.open.values_mut().flat_map(|ranges| ranges.values_mut()) {
            range.portion = 0;
        }
    }

    /// What a task other than the first begins with.
    pub fn portion(&self, portion: usize) -> Self {
        let own = |ranges: &BTreeMap<usize, Range>| -> BTreeMap<usize, Range> {
            ranges.iter().filter(|(_, range)| range.portion == portion).map(|(n, range)| (*n, range.clone())).collect()
        };
        let open = self.open.iter().map(|(name, ranges)| (name.clone(), own(ranges)));
        Self {
            open: open.filter(|(_, ranges)| !ranges.is_empty()).collect(),
            spread: self.spread.clone(),
            filters: self.filters.clone(),
            ..Self::default()
        }
    }

    /// Whether the plan says who reads the collection, or that it is done.
    pub fn plans(&self, collection: &str) -> bool {
        self.open.contains_key(collection) || self.done.contains(collection)
    }

    /// Takes over how far another portion of the same plan has come.
    pub fn take_over(&mut self, portion: usize, other: &Self) {
        self.done.extend(other.done.iter().cloned());
        self.filters.extend(other.filters.iter().map(|(name, filter)| (name.clone(), filter.clone())));
        for (name, ranges) in &mut self.open {
            ranges.retain(|_, range| {
                if range.portion != portion {
                    return true;
                }
                // Reading moves only the begin of a range.
                let left = other.open.get(name).into_iter().flatten().find(|(_, left)| left.until == range.until);
                if let Some((_, left)) = left {
                    (range.from, range.behind) = (left.from.clone(), left.behind);
                }
                left.is_some()
            });
        }
        let over: Vec<String> = self.open.iter().filter(|(_, left)| left.is_empty()).map(|(n, _)| n.clone()).collect();
        for name in over {
            self.open.remove(&name);
            self.done.insert(name);
        }
    }

    /// Nothing is left of this portion.
    pub fn complete(&mut self) {
        self.open.clear();
        self.complete = true;
    }

    /// Whether it is all of a portion of this plan.
    pub fn completes(&self, spread: &Spread) -> bool {
        self.complete && self.spread.as_ref() == Some(spread)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::collections::BTreeSet;

    use bytes::Bytes;
    use proptest::prelude::*;

    use super::super::copied::Advance;
    use super::super::state::tests::Plain;
    use super::*;

    fn key(n: usize) -> Bytes {
        format!("{n:03}").into()
    }

    /// Ranges of ten rows.
    fn ranges(count: usize) -> Vec<Range> {
        (0..count)
            .map(|n| Range {
                from: (n > 0).then(|| key(n * 10)),
                until: (n + 1 < count).then(|| key((n + 1) * 10)),
                ..Range::default()
            })
            .collect()
    }

    fn stored(copied: &Copied) -> Copied {
        Copied::from_text(&copied.to_text(&Plain).unwrap(), &Plain).unwrap()
    }

    fn plan(id: &str, portions: usize) -> Spread {
        Spread { id: id.to_owned(), portions, choice: "c".to_owned() }
    }

    #[test]
    fn names_fall_to_the_same_portion_for_ever() {
        let of = |name| portion_of(name, 3);
        assert_eq!([of("shop.orders"), of("shop.customers"), of("shop.items"), of("a.b")], [0, 1, 2, 0]);
        assert_eq!((portion_of("a.b", 1), portion_of("a.b", 0)), (0, 0));
    }

    #[test]
    fn a_plan_and_its_portions() {
        let mut whole = Copied::default();
        whole.divide("d.a", ranges(3));
        whole.divide("d.b", ranges(1));
        whole.spread_over(plan("x", 2));
        let text = r#"{"done":[],"open":{"d.a":[[null,"k:010",false],["k:010","k:020",false,1],["k:020",null,false]],"d.b":[[null,null,false,1]]},"filters":{},"spread":{"id":"x","portions":2,"choice":"c"}}"#;
        assert_eq!(whole.to_text(&Plain).unwrap(), text);
        assert_eq!(stored(&whole), whole);
        let mut second = stored(&whole.portion(1));
        assert!(whole.plans("d.a") && !whole.plans("d.c") && second.ranges("d.a").unwrap().len() == 1);
        second.apply(Advance::CollectionDone { collection: "d.c".into() });
        let mut third = second.clone();
        third.apply(Advance::RangeDone { collection: "d.b".into(), range: 0 });
        third.apply(Advance::CollectionDone { collection: "d.b".into() });
        let mut taken = whole.clone();
        taken.take_over(1, &stored(&third));
        assert!(taken.is_done("d.b") && !third.is_done("d.b") && !taken.is_done("d.a"), "others may have ranges of it");
        second.apply(Advance::To { collection: "d.a".into(), range: 0, key: key(15) });
        // The first has read its own ranges of `d.a`, others are open.
        for range in [0, 2] {
            whole.apply(Advance::RangeDone { collection: "d.a".into(), range });
        }
        whole.apply(Advance::CollectionDone { collection: "d.a".into() });
        assert!(!whole.is_done("d.a") && whole.plans("d.a"));
        assert!(!second.completes(&plan("x", 2)));
        let mut anew = whole.clone();
        anew.take_over(1, &second);
        anew.unspread();
        let text = r#"{"done":["d.c"],"open":{"d.a":[["k:015","k:020",true]],"d.b":[[null,null,false]]},"filters":{}}"#;
        assert_eq!(anew.to_text(&Plain).unwrap(), text);
        second.complete();
        let second = stored(&second);
        assert!(second.completes(&plan("x", 2)) && !second.completes(&plan("y", 2)));
        whole.take_over(1, &second);
        assert!(["d.a", "d.b", "d.c"].iter().all(|name| whole.is_done(name)), "{whole:?}");
    }

    proptest! {
        /// However often the number of tasks changes on the way: every row is read by one portion of the
        /// last plan, or was read before.
        #[test]
        fn no_row_is_left_out(counts in prop::collection::vec(1..5_usize, 1..4), plans in prop::collection::vec((1..5_usize, prop::collection::vec((0..4_usize, 0..4_usize, 0..11_usize), 0..6)), 1..4)) {
            let mut whole = Copied::default();
            for (n, count) in counts.iter().enumerate() {
                whole.divide(&format!("d.{n}"), ranges(*count));
            }
            let mut read: BTreeSet<(String, Bytes)> = BTreeSet::new();
            let rows = |name: &str, range: &Range, read: &mut BTreeSet<(String, Bytes)>, most: usize| {
                let count = counts[name[2..].parse::<usize>().unwrap()] * 10;
                let inside = |k: &Bytes| range.from.as_ref().is_none_or(|from| if range.behind { k > from } else { k >= from })
                    && range.until.as_ref().is_none_or(|until| k < until);
                let keys: Vec<Bytes> = (0..count).map(key).filter(inside).take(most).collect();
                read.extend(keys.iter().map(|k| (name.to_owned(), k.clone())));
                keys.last().cloned()
            };
            for (number, (portions, steps)) in plans.iter().enumerate() {
                whole.spread_over(plan(&number.to_string(), *portions));
                let mut own: Vec<Copied> = (0..*portions).map(|p| whole.portion(p)).collect();
                for (portion, collection, most) in steps {
                    let portion = portion % portions;
                    let copied = &mut own[portion];
                    let name = format!("d.{}", collection % counts.len());
                    let Some((n, range)) = copied.ranges(&name).and_then(|r| r.first_key_value()).map(|(n, r)| (*n, r.clone())) else { continue };
                    match rows(&name, &range, &mut read, *most) {
                        Some(key) => copied.apply(Advance::To { collection: name, range: n, key }),
                        None if *most > 0 => {
                            copied.apply(Advance::RangeDone { collection: name.clone(), range: n });
                            if copied.ranges(&name).is_none_or(BTreeMap::is_empty) {
                                copied.apply(Advance::CollectionDone { collection: name });
                            }
                        }
                        None => {}
                    }
                }
                for (portion, copied) in own.iter().enumerate() {
                    whole.take_over(portion, &stored(copied));
                }
                whole = stored(&whole);
            }
            for n in 0..counts.len() {
                let name = format!("d.{n}");
                for range in whole.ranges(&name).into_iter().flatten().map(|(_, r)| r) {
                    rows(&name, range, &mut read, usize::MAX);
                }
            }
            prop_assert_eq!(read.len(), counts.iter().sum::<usize>() * 10);
        }
    }
}

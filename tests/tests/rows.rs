//! A collection of numbered rows that change, and a consumer of their topic that believes what came last.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result};
use bson::{Document, doc};
use mongodb::Collection;
use serde_json::Value;
use thalweg_tests::Topic;

/// One row in so many changes.
const STEP: usize = 97;

pub(crate) struct Rows {
    collection: Collection<Document>,
    count: i32,
    seen: BTreeMap<String, Value>,
    /// Records of a snapshot.
    pub(crate) reads: i32,
    /// Those of the first row.
    pub(crate) begins: i32,
    /// All others.
    changes: i32,
}

impl Rows {
    pub(crate) async fn fill(collection: Collection<Document>, count: i32) -> Result<Self> {
        collection.insert_many((0..count).map(|i| doc! {"_id": i, "n": 0})).await?;
        Ok(Self { collection, count, seen: BTreeMap::new(), reads: 0, begins: 0, changes: 0 })
    }

    /// Updates, and an insert behind them.
    pub(crate) async fn change(&self) -> Result<()> {
        for i in (0..self.count).step_by(STEP) {
            self.collection.update_one(doc! {"_id": i}, doc! {"$set": {"n": 1}}).await?;
        }
        self.collection.insert_one(doc! {"_id": self.count, "n": 2}).await?;
        Ok(())
    }

    pub(crate) async fn read_until(&mut self, topic: &Topic, enough: impl Fn(&Self) -> bool) -> Result<()> {
        let reading = topic.until(Duration::from_secs(60), |record| {
            let value = record.value_json();
            *(if value["op"] == "r" { &mut self.reads } else { &mut self.changes }) += 1;
            let after = serde_json::from_str(value["after"].as_str().unwrap_or("null")).unwrap_or(Value::Null);
            self.begins += i32::from(value["op"] == "r" && after["_id"] == 0);
            self.seen.insert(record.key.unwrap_or_default(), after);
            enough(self)
        });
        reading.await
    }

    /// Every row has come, and every change.
    pub(crate) fn are_all(&self) -> bool {
        let count = self.count as usize;
        self.seen.len() == count + 1 && self.changes as usize > count.div_ceil(STEP)
    }

    /// The consumer has what is in the collection after [`Rows::change`].
    pub(crate) fn check(&self) -> Result<()> {
        for (key, row) in &self.seen {
            let id = row["_id"].as_i64().context(key.clone())?;
            let n = if id == i64::from(self.count) { 2 } else { i64::from(id % STEP as i64 == 0) };
            assert_eq!(row["n"], n, "{key}");
        }
        Ok(())
    }
}

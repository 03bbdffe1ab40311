//! What is written to the database: orders of a chosen size, in one collection or spread over many.

use anyhow::Result;
use mongodb::bson::{Document, doc};

use crate::lab::Lab;

/// Size of an order unless another one is asked for.
pub const USUAL_BYTES: usize = 480;

/// Bytes of an order with two lines in BSON, and of each further line.
const TWO_LINES: usize = 388;
const LINE: usize = 58;
/// Changes of one collection that follow each other in a backlog.
const IN_A_ROW: usize = 100;

/// What the documents of a database are like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// BSON of one document, within a tenth.
    pub bytes: usize,
    /// The documents are spread over so many.
    pub collections: usize,
}

impl Shape {
    pub fn of(bytes: usize) -> Self {
        Self { bytes, collections: 1 }
    }

    pub fn database(self) -> String {
        format!("orders{}x{}", self.bytes, self.collections)
    }

    fn collection(self, number: usize) -> String {
        if self.collections == 1 { "c".to_owned() } else { format!("c{number}") }
    }

    pub fn topics(self, prefix: &str, database: &str) -> Vec<String> {
        (0..self.collections).map(|n| format!("{prefix}.{database}.{}", self.collection(n))).collect()
    }

    /// `usual` documents, or as many as make a gigabyte: the disk has to hold them several times.
    pub fn count(self, usual: usize) -> usize {
        usual.min(1_000_000_000 / self.bytes.max(1))
    }
}

/// An order of about `bytes` bytes of BSON: with more lines the larger it is.
pub fn document(id: usize, bytes: usize) -> Document {
    let mut order = doc! {"_id": id as i64, "number": format!("ORD-{id:010}")};
    let line = |n: usize| {
        let sku = format!("SKU-{:06}", (id + n * 7_919) % 999_983);
        doc! {"sku": sku, "quantity": ((id + n) % 9) as i32 + 1, "price": 12.5 + ((id + n) % 100) as f64}
    };
    let large = bytes >= USUAL_BYTES;
    if large {
        order.insert(
            "customer",
            doc! {"id": (id % 10_007) as i32, "name": format!("Customer number {}", id % 10_007), "vip": id.is_multiple_of(7)},
        );
        let lines: Vec<Document> = (0..2 + (bytes - TWO_LINES) / LINE).map(line).collect();
        order.insert("lines", lines);
    }
    order.insert("status", "new");
    order.insert("created", mongodb::bson::DateTime::from_millis(1_700_000_000_000 + id as i64));
    let note = "a note that is long enough to bring this document to the size that the benchmark is about, and a bit";
    order.insert("note", if large { note } else { &note[..note.len().min(bytes.saturating_sub(102))] });
    order.insert("seq", id as i64);
    order
}

/// Inserts documents in large batches, each collection's behind those of the one before.
pub async fn fill(lab: &Lab, database: &str, shape: Shape, documents: usize) -> Result<()> {
    let database = lab.set.client().await?.database(database);
    let batch = (5_000_000 / shape.bytes.max(1)).clamp(1, 10_000);
    for number in 0..shape.collections {
        let collection = database.collection::<Document>(&shape.collection(number));
        let mut next = documents * number / shape.collections;
        let end = documents * (number + 1) / shape.collections;
        while next < end {
            let until = end.min(next + batch);
            collection.insert_many((next..until).map(|id| document(id, shape.bytes))).await?;
            next = until;
        }
    }
    Ok(())
}

/// A backlog that grows: 60 % inserts, 30 % updates, 10 % deletes, a few of each in one collection
/// after the other.
#[derive(Default)]
pub struct Backlog {
    next: usize,
    turn: usize,
}

impl Backlog {
    /// At least so many changes; the number there is, and that of the messages that come of them.
    pub async fn write(&mut self, lab: &Lab, database: &str, shape: Shape, changes: usize) -> Result<(usize, usize)> {
        let database = lab.set.client().await?.database(database);
        let (mut done, mut messages) = (0, 0);
        while done < changes {
            let row = IN_A_ROW.min(changes - done);
            let (inserts, deletes) = ((row * 6 / 10).max(1), row / 10);
            let updates = (row - deletes).saturating_sub(inserts).min(inserts);
            let collection = database.collection::<Document>(&shape.collection(self.turn % shape.collections));
            let ids = |count: usize| (self.next..self.next + count).map(|id| id as i64).collect::<Vec<_>>();
            collection.insert_many((self.next..self.next + inserts).map(|id| document(id, shape.bytes))).await?;
            let paid = doc! {"$set": {"status": "paid"}};
            let updated = collection.update_many(doc! {"_id": {"$in": ids(updates)}}, paid).await?;
            let deleted = collection.delete_many(doc! {"_id": {"$in": ids(deletes)}}).await?;
            let events = inserts + updated.modified_count as usize + deleted.deleted_count as usize;
            messages += events + deleted.deleted_count as usize;
            done += events;
            self.next += inserts;
            self.turn += 1;
        }
        Ok((done, messages))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_have_the_size_that_is_asked_for() {
        for bytes in [200, USUAL_BYTES, 1_000, 3_600, 20_000] {
            for id in [0, 77_777, 999_999] {
                let size = mongodb::bson::serialize_to_vec(&document(id, bytes)).map_or(0, |b| b.len());
                assert!(size.abs_diff(bytes) * 10 <= bytes, "{size} instead of {bytes}");
            }
        }
    }
}

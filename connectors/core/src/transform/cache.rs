//! What was made of the schemas that were seen last.
//!
//! Sources share a schema among its records, so it is found by its address; the same content at
//! another address gets the same result, so that what comes behind finds its own caches. A schema is
//! held while it is in here: its address cannot become another one's.

use std::sync::Arc;

use crate::error::Result;
use crate::record::Schema;

/// Schemas kept. Kafka Connect keeps 16, fewer than many a source has tables.
const KEPT: usize = 256;

/// `T` is cheap to clone.
pub struct SchemaCache<T> {
    /// Last used first.
    known: Vec<(Arc<Schema>, T)>,
}

impl<T> Default for SchemaCache<T> {
    fn default() -> Self {
        Self { known: Vec::new() }
    }
}

impl<T: Clone> SchemaCache<T> {
    /// What was made of the very `schema`, if that is kept.
    pub(super) fn known(&self, schema: &Arc<Schema>) -> Option<T> {
        self.known.iter().find(|(known, _)| Arc::ptr_eq(known, schema)).map(|(_, made)| made.clone())
    }

    /// What was made of `schema`. A failure is not kept.
    pub fn get(&mut self, schema: &Arc<Schema>, make: impl FnOnce(&Arc<Schema>) -> Result<T>) -> Result<T> {
        let at = match self.known.iter().position(|(known, _)| Arc::ptr_eq(known, schema)) {
            Some(at) => at,
            None => {
                let made = match self.known.iter().find(|(known, _)| known == schema) {
                    Some((_, made)) => made.clone(),
                    None => make(schema)?,
                };
                self.known.truncate(KEPT - 1);
                self.known.push((schema.clone(), made));
                self.known.len() - 1
            }
        };
        self.known[..=at].rotate_right(1);
        Ok(self.known[0].1.clone())
    }
}

/// Schemas that are made anew for each record: equal ones become one, so that what comes behind finds its
/// caches.
#[derive(Default)]
pub struct SchemaPool {
    /// Last used first.
    known: Vec<Arc<Schema>>,
}

impl SchemaPool {
    /// The schema for which this holds, if it is known: it need not be made then.
    pub fn find(&mut self, fits: impl Fn(&Schema) -> bool) -> Option<Arc<Schema>> {
        let at = self.known.iter().position(|known| fits(known))?;
        Some(self.used(at))
    }

    pub fn shared(&mut self, schema: Schema) -> Arc<Schema> {
        let at = self.known.iter().position(|known| **known == schema).unwrap_or_else(|| {
            self.known.truncate(KEPT - 1);
            self.known.push(Arc::new(schema));
            self.known.len() - 1
        });
        self.used(at)
    }

    fn used(&mut self, at: usize) -> Arc<Schema> {
        self.known[..=at].rotate_right(1);
        self.known[0].clone()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use crate::transform::fault::invalid;

    #[test]
    fn found_by_address_then_by_content_and_bounded() {
        let mut cache: SchemaCache<Arc<Schema>> = SchemaCache::default();
        let copy = |schema: &Arc<Schema>| Ok(Arc::new(Schema::clone(schema)));
        let first = Arc::new(Schema::record([("a", Schema::int32())]));
        let made = cache.get(&first, copy).unwrap();
        assert!(Arc::ptr_eq(&made, &cache.get(&first, |_| panic!("kept")).unwrap()));
        let equal = Arc::new(Schema::clone(&first));
        assert!(Arc::ptr_eq(&made, &cache.get(&equal, |_| panic!("equal")).unwrap()));
        for n in 0..600 {
            cache.get(&Arc::new(Schema::int32().versioned(n)), copy).unwrap();
            assert!(cache.known.len() <= KEPT);
            cache.get(&first, |_| panic!("used all the time")).unwrap();
        }
        assert!(cache.get(&Arc::new(Schema::string()), |_| Err(invalid("no"))).is_err());
        assert!(cache.get(&Arc::new(Schema::string()), copy).is_ok());
    }
    #[test]
    fn equal_schemas_are_one() {
        let mut pool = SchemaPool::default();
        let first = pool.shared(Schema::int32().named("a"));
        for n in 0..600 {
            pool.shared(Schema::int32().versioned(n));
            assert!(Arc::ptr_eq(&first, &pool.shared(Schema::int32().named("a"))));
            assert!(pool.known.len() <= KEPT);
        }
    }
}

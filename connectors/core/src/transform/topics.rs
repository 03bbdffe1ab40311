//! What was made of the topics that were seen: a source has few topics and many records, so an
//! expression is not run for each record.

use std::collections::HashMap;
use std::sync::Arc;

use crate::error::Result;

/// Topics kept; then it starts anew.
const KEPT: usize = 1_000;

pub(super) struct TopicCache<T> {
    known: HashMap<Arc<str>, T>,
}

impl<T> Default for TopicCache<T> {
    fn default() -> Self {
        Self { known: HashMap::new() }
    }
}

impl<T: Clone> TopicCache<T> {
    pub(super) fn get(&mut self, topic: &str, make: impl FnOnce(&str) -> Result<T>) -> Result<T> {
        if let Some(known) = self.known.get(topic) {
            return Ok(known.clone());
        }
        let made = make(topic)?;
        if self.known.len() >= KEPT {
            self.known.clear();
        }
        self.known.insert(topic.into(), made.clone());
        Ok(made)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn kept_and_bounded() {
        let mut cache = TopicCache::default();
        let topic = "t";
        assert_eq!(cache.get(topic, |t| Ok(t.len())).unwrap(), 1);
        assert_eq!(cache.get(topic, |_| panic!("kept")).unwrap(), 1);
        for n in 0..3 * KEPT {
            cache.get(&n.to_string(), |t| Ok(t.len())).unwrap();
            assert!(cache.known.len() <= KEPT);
        }
    }
}

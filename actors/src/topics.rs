//! Topics a task sends to: each is prepared once, and told to the cluster as used.
//!
//! The present topic is recognised by pointer, so records of one collection in a row cost nothing.
//! A use is told again now and then, because the list of used topics may be reset over REST.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::port::ClusterPort;

const TELL_EVERY: Duration = Duration::from_secs(10);

pub(crate) struct Topics {
    connector: Arc<str>,
    port: Arc<dyn ClusterPort>,
    /// Prepared topics, and when their use was last told.
    known: HashMap<Arc<str>, Instant>,
    present: Option<Arc<str>>,
    now: Instant,
}

impl Topics {
    pub(crate) fn new(connector: Arc<str>, port: Arc<dyn ClusterPort>) -> Self {
        Self { connector, port, known: HashMap::new(), present: None, now: Instant::now() }
    }
    /// Once per batch: the only look at the clock.
    pub(crate) fn next_batch(&mut self) {
        self.present = None;
        self.now = Instant::now();
    }
    /// Whether the topic was prepared before.
    pub(crate) fn is_ready(&mut self, topic: &Arc<str>) -> bool {
        if self.present.as_ref().is_some_and(|present| Arc::ptr_eq(present, topic)) {
            return true;
        }
        let Some(told) = self.known.get_mut(topic) else { return false };
        if self.now.saturating_duration_since(*told) >= TELL_EVERY {
            *told = self.now;
            self.port.topic_used(&self.connector, topic);
        }
        self.present = Some(topic.clone());
        true
    }
    pub(crate) fn prepared(&mut self, topic: &Arc<str>) {
        self.known.insert(topic.clone(), self.now);
        self.present = Some(topic.clone());
        self.port.topic_used(&self.connector, topic);
    }
}

//! What is doubtful about stored configurations: found once per revision, shown in the status.
//!
//! The node that took a configuration remembers all that its check said, the live source's part
//! included, and tells the others when they are asked for a status; every node finds out by itself
//! what the options alone say. Invariant: a configuration is checked on no thread that answers
//! requests, and never under the lock of the state.
//!
//! It does not: outlive the process, or ask a source again; what a source said is as old as the
//! configuration.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use thalweg_config::Properties;

use super::Api;
use crate::raft::Name;

/// What this node knows, by connector.
#[derive(Default)]
pub struct Warnings(Mutex<BTreeMap<Name, Known>>);

struct Known {
    revision: u64,
    texts: Arc<[String]>,
}

impl Api {
    /// Remembers all that was found when the configuration `revision` was taken.
    pub(super) fn remember_warnings(&self, name: &str, revision: u64, texts: Vec<String>) {
        self.learn(name, revision, texts.into(), |known| known <= revision);
    }

    /// What this node knows already about the configuration `revision`.
    pub(super) fn known_warnings(&self, name: &str, revision: u64) -> Option<Arc<[String]>> {
        let all = self.warnings.0.lock();
        all.get(name).filter(|known| known.revision == revision).map(|known| known.texts.clone())
    }

    /// The same, and finds out what its options alone say if nothing is known.
    pub(super) async fn warnings_of(&self, name: &str, revision: u64, config: &Properties) -> Arc<[String]> {
        if let Some(known) = self.known_warnings(name, revision) {
            return known;
        }
        let checked = match self.check_options(config).await {
            Ok(checked) => checked,
            // Not kept: the next look may succeed.
            Err(error) => return [format!("the configuration cannot be checked: {}", error.message)].into(),
        };
        let texts: Arc<[String]> = checked.warnings().into();
        // All that was found when it was taken may have come in between.
        self.learn(name, revision, texts.clone(), |known| known < revision);
        self.known_warnings(name, revision).unwrap_or(texts)
    }

    fn learn(&self, name: &str, revision: u64, texts: Arc<[String]>, replaces: impl FnOnce(u64) -> bool) {
        let state = self.view.read();
        let mut all = self.warnings.0.lock();
        all.retain(|known, _| state.connectors.contains_key(known));
        if all.get(name).is_none_or(|known| replaces(known.revision)) {
            all.insert(name.into(), Known { revision, texts });
        }
    }
}

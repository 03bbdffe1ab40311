//! Who belongs to the group: forming it once, joining, leaving, replacing, and who may vote.
//!
//! Files: `form` is a node without data that forms a group with its seeds or finds one to join; `join`
//! is the leader's side of joining and leaving; `voters` decides, purely, who should vote; `lead`
//! makes it so while this node leads; `remain` is a node with data that makes sure it is still wanted.
//!
//! Why a group forms once: only the seed with the lowest address forms it, only while every seed
//! answers and holds no entry and no snapshot, and each of them gives its word for this one cluster
//! first ([`Consensus::adopt`]). A seed that holds no entry has never helped to commit one, so
//! nothing that was agreed on can be forgotten: a group of which one seed remembers anything is
//! joined, not formed again, and one that no seed remembers has never agreed on anything.
//!
//! Why a wiped disk is safe: the id of a node is drawn with its file, so a node that comes back empty
//! is a new node at an old address. The living group takes it in as a learner and lets it replace the
//! voter whose address it has.
//!
//! It does not: place units, or end nodes.

mod form;
mod join;
mod lead;
mod remain;
pub mod voters;

use std::sync::Arc;

use parking_lot::Mutex;

pub(crate) use lead::lead;

use crate::consensus::{Consensus, Formation};

/// What a node knows about its own coming and going.
#[derive(Default)]
pub struct Membership {
    /// One change of the membership at a time.
    changing: tokio::sync::Mutex<()>,
    waiting: Mutex<Option<String>>,
}

impl Membership {
    /// What a node that is in no group yet waits for, in words for an operator.
    pub fn waiting(&self) -> Option<String> {
        self.waiting.lock().clone()
    }

    fn wait_for(&self, why: impl Into<String>) {
        let why = why.into();
        let mut waiting = self.waiting.lock();
        if waiting.as_ref() != Some(&why) {
            tracing::warn!(why, "this node is not in a group yet");
            *waiting = Some(why);
        }
    }

    fn arrived(&self) {
        *self.waiting.lock() = None;
    }
}

/// Brings this node into its group and sees to it that it stays there.
pub(crate) async fn take_part(consensus: Arc<Consensus>) {
    if consensus.store.is_pristine() {
        match &consensus.settings.formation {
            Formation::Alone => form::alone(&consensus).await,
            Formation::Found { seeds } => form::with_seeds(&consensus, seeds, true).await,
            Formation::Join { seeds } => form::with_seeds(&consensus, seeds, false).await,
        }
    }
    consensus.membership.arrived();
    remain::remain(&consensus).await;
}

//! Leases: who may run anything at all.
//!
//! Files in the order in which a lease lives: `clock` is the time both sides count in; `terms` are
//! the lengths they agree on; `guard` is the node's side, `keeper` asks for the lease again and
//! again; `table` is the leader's side.
//!
//! Invariant (L1 to L5): if both clocks run within the assumed rate error, the
//! leader never takes a lease for ended while the node still takes it for held. The node counts from
//! *sending* the heartbeat and shorter, the leader from *answering* it and longer.
//!
//! It does not: confirm leadership before a grant (the caller of [`LeaseTable::grant`] has made a
//! quorum round that began after the heartbeat arrived), or decide what follows from a lost lease.

pub mod clock;
pub mod guard;
pub mod keeper;
pub mod table;
pub mod terms;

pub use clock::{BootInstant, Clock, SystemClock};
pub use guard::LeaseGuard;
pub use keeper::{LeaseKeeper, LeaseLink};
pub use table::{Grant, LeaseTable};
pub use terms::{LeaseTerms, TermsError};

#[cfg(test)]
mod tests;

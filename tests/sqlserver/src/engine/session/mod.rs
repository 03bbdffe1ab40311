//! A session: what others may see of it, and its transaction.

pub(crate) mod state;
pub(crate) mod transaction;

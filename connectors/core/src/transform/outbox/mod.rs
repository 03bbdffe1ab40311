//! The outbox pattern: rows that an application inserts become messages of its own making.
//!
//! `names` are the options as each kind of source calls them, `placement` where further fields go,
//! `router` makes the message of a row, `payload` takes JSON text apart, `event_router` is the transform
//! for tables. Connectors whose events hold no rows make a row first and use the router.

mod event_router;
mod names;
mod payload;
mod placement;
mod router;

pub(super) use event_router::{EventRouter, OPTIONS};
pub use names::{OPTION_COUNT, OutboxNames, check, options};
pub use router::OutboxRouter;

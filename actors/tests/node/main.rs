//! The node's actors and data tasks against scripted doubles of their seams.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, unreachable_pub)]

mod connector;
mod dead;
mod delivery;
mod faults;
mod format;
mod lease;
mod lifecycle;
mod poison;
mod resume;
mod schemas;
mod support;

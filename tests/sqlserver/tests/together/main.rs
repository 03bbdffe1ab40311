//! The whole server over TCP, with the client that the connector uses.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod capture;
mod catalogue;
mod requests;
mod server;
mod sessions;
mod types;

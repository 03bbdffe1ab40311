//! Calls between the nodes of a cluster.
//!
//! Files in the order in which a call passes through them: [`message`] says what can be asked and
//! answered; [`transport`] is the trait that everything else sees; [`tcp`] (with [`tls`]) sends,
//! [`admission`] decides who may speak, [`server`] receives, [`frame`] is what travels. [`presence`]
//! watches who is there. [`memory`] and [`faulty`] are the transports of simulated clusters.
//!
//! Invariants: every call has a deadline and a bounded size; a caller learns whether a call that
//! failed can have had an effect; a node never talks to another one than the one it addressed.
//!
//! It does not: decide anything about leadership, membership or leases.

pub mod admission;
pub mod faulty;
pub mod frame;
pub mod memory;
pub mod message;
pub mod presence;
pub mod server;
pub mod tcp;
pub mod tls;
pub mod transport;

pub use message::{Failure, Request, Response};
pub use presence::{PeerEvent, Presence};
pub use transport::{Caller, Destination, Handler, Lane, Local, RpcError, Transport};

//! TDS 7.4 and 8.0 between sockets and sessions.
//!
//! In the order of the data: [`server`] listens; `connection` is one client's, from `establish` (pre-login,
//! TLS, LOGIN7) on; `packet` puts its messages together, `request` reads them (`parameter`, `scalar`), the
//! session runs them and `answer` turns what it says into tokens (`token`, `value`, `type_info`) and packets.
//! [`faults`] spoils what goes out; [`browser`] is the service that finds instances.
//!
//! The protocol is that of [MS-TDS]; its sections are cited by title. Several results at a time (MARS), bulk
//! load, table-valued and encrypted parameters, Windows and federated logins are declined as a server
//! without them does.

mod answer;
#[cfg(test)]
mod bad_input;
pub mod browser;
mod bytes;
mod collation;
mod connection;
mod decimal;
mod establish;
pub mod faults;
mod handshake;
mod login;
mod packet;
mod parameter;
mod plp;
mod prelogin;
mod request;
mod scalar;
pub mod server;
mod temporal;
mod tls;
mod token;
mod type_info;
mod value;
mod variant;
mod welcome;

pub use prelogin::Encryption;
pub use tls::Certificate;

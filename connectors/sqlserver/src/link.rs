//! A connection to the server that is made anew when it is lost.
//!
//! One statement runs at a time. What is read outside of a transaction may be asked for again: a connection that
//! turns out to be dead is replaced, once, and the statement repeated, so that a closed socket between two looks
//! for changes costs nobody a restart. [`SqlLink::rows`] does so by itself, [`SqlLink::page`] leaves it to its
//! caller. A server that stays away is the caller's matter, too.
//!
//! Cancel-safe: a connection whose answer was not read to its end is thrown away, because the client cannot
//! find its place in the answer again: servers acknowledge a cancellation in a message of its own, which the
//! client takes for a fault.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use futures::TryStreamExt;
use thalweg_core::pkcs12::{self, Purpose};
use tiberius::error::{Error as ClientError, IoErrorKind};
use tiberius::{AuthMethod, Client, ColumnData, EncryptionLevel, QueryItem, Row, SqlBrowser, ToSql};
use tokio::net::TcpStream;
use tokio_util::compat::{Compat, TokioAsyncWriteCompatExt};

use crate::errors::{Class, Fault};
use crate::lsn::Lsn;
use crate::options::{ConnectionConfig, Encryption, Trust};

/// How often the server may send us on to another address.
const HOPS: usize = 5;
const PORT: u16 = 1433;

/// A value for a statement, as `@P1` and so on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Parameter {
    Lsn(Lsn),
    Int(i32),
    Text(String),
}

impl ToSql for Parameter {
    fn to_sql(&self) -> ColumnData<'_> {
        match self {
            Self::Lsn(lsn) => ColumnData::Binary(Some(Cow::Borrowed(lsn.as_bytes()))),
            Self::Int(number) => ColumnData::I32(Some(*number)),
            Self::Text(text) => ColumnData::String(Some(Cow::Borrowed(text))),
        }
    }
}

impl From<Lsn> for Parameter {
    fn from(lsn: Lsn) -> Self {
        Self::Lsn(lsn)
    }
}

impl From<&str> for Parameter {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<i32> for Parameter {
    fn from(number: i32) -> Self {
        Self::Int(number)
    }
}

type Session = Client<Compat<TcpStream>>;

pub struct SqlLink {
    config: Arc<ConnectionConfig>,
    /// To begin in; `None`: the user's own.
    database: Option<String>,
    session: Option<Session>,
}

impl SqlLink {
    /// Nothing is connected yet.
    pub fn new(config: Arc<ConnectionConfig>, database: Option<&str>) -> Self {
        Self { config, database: database.map(str::to_owned), session: None }
    }

    /// The server, for messages.
    pub fn describe(&self) -> String {
        let ConnectionConfig { host, port, instance, .. } = &*self.config;
        match (port, instance) {
            (None, Some(instance)) => format!(r"server {host}\{instance}"),
            (port, _) => format!("server {host}:{}", port.unwrap_or(PORT)),
        }
    }

    /// All rows of the first result of a statement that reads.
    ///
    /// # Errors
    /// The server refuses it, takes too long, or cannot be reached.
    pub async fn rows(&mut self, statement: &str, parameters: &[Parameter]) -> Result<Vec<Row>, Fault> {
        let was_connected = self.session.is_some();
        let mut rows = Vec::new();
        match self.all(statement, parameters, &mut rows).await {
            // A connection that had worked before is gone.
            Err(fault) if was_connected && fault.class() == Class::Connect => {
                tracing::info!(server = self.describe(), error = %fault, "a lost connection is replaced");
                rows.clear();
                self.all(statement, parameters, &mut rows).await?;
            }
            result => result?,
        }
        Ok(rows)
    }

    async fn all(&mut self, statement: &str, parameters: &[Parameter], rows: &mut Vec<Row>) -> Result<(), Fault> {
        let keep = |row| {
            rows.push(row);
            Ok(true)
        };
        self.page(statement, parameters, keep).await
    }

    /// Hands over the rows of the first result of a statement that reads, until `take` has enough (false): the
    /// rest then stays on the server, and the next statement has a new connection. One try, on the connection
    /// that there is or on a new one: whoever took rows knows what to ask for again.
    ///
    /// # Errors
    /// As [`SqlLink::rows`], and those of `take`.
    pub async fn page(
        &mut self,
        statement: &str,
        parameters: &[Parameter],
        mut take: impl FnMut(Row) -> Result<bool, Fault> + Send,
    ) -> Result<(), Fault> {
        // Taken out until the answer is read to its end: see the header.
        let mut session = match self.session.take() {
            Some(session) => session,
            None => self.connect().await?,
        };
        let work = run(&mut session, statement, parameters, &mut take);
        let result = match self.config.query_timeout {
            Some(limit) => tokio::time::timeout(limit, work).await.unwrap_or(Err(Fault::Statement(limit))),
            None => work.await,
        };
        let is_usable = match &result {
            Ok(is_read) => *is_read,
            Err(fault) => fault.leaves_connection(),
        };
        self.session = is_usable.then_some(session);
        result.map(drop)
    }

    async fn connect(&self) -> Result<Session, Fault> {
        match self.config.login_timeout {
            Some(limit) => {
                let connected = tokio::time::timeout(limit, connect(&self.config, self.database.as_deref())).await;
                connected.unwrap_or(Err(Fault::Login(limit)))
            }
            None => connect(&self.config, self.database.as_deref()).await,
        }
    }

    /// Ends the session; gives up after `deadline`.
    pub async fn close(mut self, deadline: Duration) {
        if let Some(session) = self.session.take() {
            let _ = tokio::time::timeout(deadline, session.close()).await;
        }
    }
}

/// False: `take` had enough before the end of the answer.
async fn run(
    session: &mut Session,
    statement: &str,
    parameters: &[Parameter],
    take: &mut (dyn FnMut(Row) -> Result<bool, Fault> + Send),
) -> Result<bool, Fault> {
    let refs: Vec<&dyn ToSql> = parameters.iter().map(|parameter| parameter as &dyn ToSql).collect();
    let mut answer = match refs.is_empty() {
        true => session.simple_query(statement).await?,
        false => session.query(statement, &refs).await?,
    };
    while let Some(item) = answer.try_next().await? {
        let QueryItem::Row(row) = item else { continue };
        if row.result_index() == 0 && !take(row)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Follows the server to wherever it sends us.
async fn connect(config: &ConnectionConfig, database: Option<&str>) -> Result<Session, Fault> {
    let authorities = authorities(&config.trust).await?;
    let (mut host, mut port) = (config.host.clone(), config.port);
    let mut instance = config.instance.as_deref().filter(|_| port.is_none());
    for _ in 0..=HOPS {
        let mut client = client(config, authorities.as_deref());
        client.host(&host);
        match instance {
            Some(name) => client.instance_name(name),
            None => client.port(port.unwrap_or(PORT)),
        }
        if let Some(database) = database {
            client.database(database);
        }
        let tcp = TcpStream::connect_named(&client).await?;
        match Client::connect(client, tcp.compat_write()).await {
            Ok(session) => return Ok(session),
            Err(ClientError::Routing { host: next, port: next_port }) => {
                tracing::info!(host = next, port = next_port, "the server sends us to another address");
                (host, port, instance) = (next, Some(next_port), None);
            }
            Err(error) => return Err(error.into()),
        }
    }
    Err(Fault::Routing)
}

/// All but the address and the database.
fn client(config: &ConnectionConfig, authorities: Option<&[u8]>) -> tiberius::Config {
    let mut client = tiberius::Config::new();
    let password = config.password.as_ref().map_or("", |password| password.reveal());
    client.authentication(AuthMethod::sql_server(&config.user, password));
    client.encryption(match config.encryption {
        Encryption::Login => EncryptionLevel::Off,
        Encryption::Full => EncryptionLevel::Required,
        Encryption::Strict => EncryptionLevel::Strict,
    });
    match (&config.trust, authorities) {
        (Trust::All, _) => client.trust_cert(),
        (_, Some(pem)) => client.trust_cert_ca_bundle(pem),
        (_, None) => {}
    }
    if let Some(name) = &config.host_in_certificate {
        client.hostname_in_certificate(name);
    }
    if let Some(name) = &config.workstation {
        client.client_name(name);
    }
    client.application_name(&config.application);
    client.readonly(config.read_only);
    client.multi_subnet_failover(config.multi_subnet_failover);
    client.packet_size(config.packet_size);
    // Both limits are ours: those of the client stop in other places.
    client.handshake_timeout(None);
    client.command_timeout(None);
    // Half of a surrogate pair is a legal value of nvarchar.
    client.lossy_utf16_decoding(true);
    client
}

/// Certificates to trust besides those of the system, in PEM.
async fn authorities(trust: &Trust) -> Result<Option<Vec<u8>>, Fault> {
    let trust = trust.clone();
    let read = tokio::task::spawn_blocking(move || match &trust {
        Trust::All | Trust::System => Ok(None),
        Trust::Pem(path) => std::fs::read(path)
            .map(Some)
            .map_err(|e| format!("driver.serverCertificate or driver.trustStore {path} cannot be read: {e}")),
        Trust::Pkcs12 { path, password } => {
            let unusable = |why: String| format!("driver.trustStore {path} cannot be used: {why}");
            let data = std::fs::read(path).map_err(|e| unusable(e.to_string()))?;
            let password = password.as_ref().map_or("", |password| password.reveal());
            let pem = pkcs12::pem(&data, password, Purpose::Authorities).map_err(|e| unusable(e.to_string()))?;
            Ok(Some(pem.into_bytes()))
        }
    });
    let broken = |e: tokio::task::JoinError| ClientError::Io { kind: IoErrorKind::Other, message: e.to_string() };
    read.await.map_err(broken)?.map_err(Fault::TrustStore)
}

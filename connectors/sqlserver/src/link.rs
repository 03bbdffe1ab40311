//! A connection to the server that is made anew when it is lost.
//!
//! One statement runs at a time. What is read outside of a transaction may be asked for again: a connection that
//! turns out to be dead is replaced, once, and the statement repeated, so that a closed socket between two looks
//! for changes costs nobody a restart. [`SqlLink::rows`] does so by itself, [`SqlLink::ask`] leaves it to its
//! caller. Inside of a transaction nothing is repeated: it is gone with its connection. A server that stays away is
//! the caller's matter, too.
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
use tiberius::{AuthMethod, Client, ColumnData, EncryptionLevel, QueryItem, QueryStream, Row, SqlBrowser, ToSql};
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
    /// The last answer was read to its end: see the header.
    is_clean: bool,
    in_transaction: bool,
}

impl SqlLink {
    /// Nothing is connected yet.
    pub fn new(config: Arc<ConnectionConfig>, database: Option<&str>) -> Self {
        Self { config, database: database.map(str::to_owned), session: None, is_clean: true, in_transaction: false }
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
        let may_repeat = self.session.is_some() && !self.in_transaction;
        match self.all(statement, parameters).await {
            // A connection that had worked before is gone.
            Err(fault) if may_repeat && fault.class() == Class::Connect => {
                tracing::info!(server = self.describe(), error = %fault, "a lost connection is replaced");
                self.all(statement, parameters).await
            }
            result => result,
        }
    }

    async fn all(&mut self, statement: &str, parameters: &[Parameter]) -> Result<Vec<Row>, Fault> {
        let mut answer = self.ask(statement, parameters).await?;
        let mut rows = Vec::new();
        while let Some(row) = answer.next().await? {
            rows.push(row);
        }
        Ok(rows)
    }

    /// Runs a statement whose rows come one by one. One try, on the connection that there is or on a new one:
    /// whoever took rows knows what to ask for again. In a transaction only on its own connection.
    ///
    /// # Errors
    /// As [`SqlLink::rows`].
    pub async fn ask(&mut self, statement: &str, parameters: &[Parameter]) -> Result<Answer<'_>, Fault> {
        if !self.is_clean {
            self.session = None;
        }
        if self.session.is_none() {
            if self.in_transaction {
                return Err(Fault::Transaction);
            }
            self.session = Some(self.connect().await?);
        }
        self.is_clean = false;
        let limit = self.config.query_timeout;
        let Self { session: Some(session), is_clean, .. } = self else { return Err(Fault::Transaction) };
        let refs: Vec<&dyn ToSql> = parameters.iter().map(|parameter| parameter as &dyn ToSql).collect();
        let asked = async {
            match refs.is_empty() {
                true => session.simple_query(statement).await,
                false => session.query(statement, &refs).await,
            }
        };
        match limited(limit, asked).await {
            Ok(items) => Ok(Answer { items, is_clean, limit }),
            Err(fault) => {
                *is_clean = fault.leaves_connection();
                Err(fault)
            }
        }
    }

    /// Runs statements that give no rows.
    ///
    /// # Errors
    /// As [`SqlLink::ask`]; also for a failure of a statement behind the first one.
    pub async fn run(&mut self, statements: &str) -> Result<(), Fault> {
        self.all(statements, &[]).await.map(drop)
    }

    /// Begins a transaction with `statements`. Until [`SqlLink::end`] nothing runs on another connection.
    ///
    /// # Errors
    /// As [`SqlLink::run`]; no transaction is open then.
    pub async fn begin(&mut self, statements: &str) -> Result<(), Fault> {
        // What a session had set is not to count in this one.
        self.session = None;
        self.is_clean = true;
        self.run(statements).await?;
        self.in_transaction = true;
        Ok(())
    }

    /// Ends the transaction with `statements`, and its connection with it: settings of the session go too.
    ///
    /// # Errors
    /// As [`SqlLink::run`]; the transaction is over in any case.
    pub async fn end(&mut self, statements: &str) -> Result<(), Fault> {
        let ended = self.run(statements).await;
        self.in_transaction = false;
        self.is_clean = false;
        ended
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

/// The rows of the first result, as they come. Dropped before its end, an answer costs its connection.
pub struct Answer<'l> {
    items: QueryStream<'l>,
    is_clean: &'l mut bool,
    limit: Option<Duration>,
}

impl Answer<'_> {
    /// The next row; `None` behind the last. The server may take `database.query.timeout.ms` for each.
    ///
    /// # Errors
    /// As [`SqlLink::rows`]; nothing follows then.
    pub async fn next(&mut self) -> Result<Option<Row>, Fault> {
        loop {
            match limited(self.limit, self.items.try_next()).await {
                Ok(Some(QueryItem::Row(row))) if row.result_index() == 0 => return Ok(Some(row)),
                Ok(Some(_)) => {}
                Ok(None) => {
                    *self.is_clean = true;
                    return Ok(None);
                }
                Err(fault) => {
                    *self.is_clean = fault.leaves_connection();
                    return Err(fault);
                }
            }
        }
    }
}

async fn limited<T>(limit: Option<Duration>, work: impl Future<Output = Result<T, ClientError>>) -> Result<T, Fault> {
    match limit {
        Some(limit) => Ok(tokio::time::timeout(limit, work).await.map_err(|_| Fault::Statement(limit))??),
        None => Ok(work.await?),
    }
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

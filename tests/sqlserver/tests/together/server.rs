//! An engine behind a listener, and clients of it.

use std::sync::Arc;
use std::time::Duration;

use thalweg_sqlserver_emulator::engine::{Capturing, Emulator, Setup};
use thalweg_sqlserver_emulator::wire::server::{Options, TdsServer};
use tiberius::error::Error;
use tiberius::{AuthMethod, Config, EncryptionLevel, Row, ToSql};
use tokio::net::TcpStream;
use tokio_util::compat::{Compat, TokioAsyncWriteCompatExt};

const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct Running {
    pub(crate) engine: Arc<Emulator>,
    pub(crate) tds: TdsServer,
}

pub(crate) struct Client(pub(crate) tiberius::Client<Compat<TcpStream>>);

/// A server with the database `shop`, where the test captures.
pub(crate) async fn shop() -> Running {
    let setup = Setup { capturing: Capturing::Test, ..Setup::default() };
    let engine = tokio::task::spawn_blocking(move || Emulator::start(&setup).unwrap()).await.unwrap();
    let engine = Arc::new(engine);
    let tds = TdsServer::start(engine.clone(), Options::default()).await.unwrap();
    let running = Running { engine, tds };
    running.client("master").await.run("CREATE DATABASE shop").await;
    running
}

impl Running {
    pub(crate) fn config(&self, user: &str, password: &str, database: &str) -> Config {
        let mut config = Config::new();
        config.host("localhost");
        config.port(self.tds.address().port());
        config.authentication(AuthMethod::sql_server(user, password));
        config.encryption(EncryptionLevel::Required);
        config.trust_cert_ca_bundle(self.tds.certificate().as_bytes().to_vec());
        config.database(database);
        config
    }

    pub(crate) async fn connect(&self, user: &str, password: &str, database: &str) -> Result<Client, Error> {
        let tcp = TcpStream::connect(self.tds.address()).await.unwrap();
        tcp.set_nodelay(true).unwrap();
        let config = self.config(user, password, database);
        tiberius::Client::connect(config, tcp.compat_write()).await.map(Client)
    }

    pub(crate) async fn client(&self, database: &str) -> Client {
        self.connect("sa", "Password!1", database).await.unwrap()
    }

    /// One scan of the capture job.
    pub(crate) async fn capture(&self) -> u64 {
        let engine = self.engine.clone();
        tokio::task::spawn_blocking(move || engine.capture("shop", 500).unwrap()).await.unwrap()
    }

    /// Returns when a session waits for a lock.
    pub(crate) async fn until_waiting(&self, session: u16) {
        let waits = || std::future::ready(Ok(self.engine.waits(session).then_some(())));
        thalweg_services::until("a session waits for a lock", PATIENCE, waits).await.unwrap();
    }
}

impl Client {
    /// Rows of the last result.
    pub(crate) async fn rows(&mut self, text: &str) -> Vec<Row> {
        self.try_rows(text).await.unwrap_or_else(|e| panic!("{text}: {e}"))
    }

    pub(crate) async fn try_rows(&mut self, text: &str) -> Result<Vec<Row>, Error> {
        Ok(self.0.simple_query(text).await?.into_results().await?.pop().unwrap_or_default())
    }

    pub(crate) async fn run(&mut self, text: &str) {
        self.rows(text).await;
    }

    /// Rows of a text with parameters `@P1`, `@P2`, …
    pub(crate) async fn query(&mut self, text: &str, parameters: &[&dyn ToSql]) -> Vec<Row> {
        let stream = self.0.query(text, parameters).await.unwrap_or_else(|e| panic!("{text}: {e}"));
        stream.into_first_result().await.unwrap_or_else(|e| panic!("{text}: {e}"))
    }

    pub(crate) async fn int(&mut self, text: &str) -> i32 {
        self.rows(text).await[0].get(0).unwrap()
    }

    pub(crate) async fn error(&mut self, text: &str) -> tiberius::error::TokenError {
        match self.try_rows(text).await {
            Err(Error::Server(error)) => error,
            other => panic!("{text}: {other:?}"),
        }
    }

    pub(crate) async fn session(&mut self) -> u16 {
        let session: i16 = self.rows("SELECT @@SPID").await[0].get(0).unwrap();
        u16::try_from(session).unwrap()
    }
}

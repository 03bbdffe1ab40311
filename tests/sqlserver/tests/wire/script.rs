//! Sessions that answer as a test says, and note what they are asked; and clients of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};

use thalweg_sqlserver_emulator::session::{
    Answers, Cancelled, Change, Column, Greeting, Login, Message, Request, Server, Session,
};
use thalweg_sqlserver_emulator::types::SqlType;
use thalweg_sqlserver_emulator::value::SqlValue;
use thalweg_sqlserver_emulator::wire::server::{Options, TdsServer};
use tiberius::{AuthMethod, Client, Config, EncryptionLevel};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio_util::compat::{Compat, TokioAsyncWriteCompatExt};

type Answer = dyn Fn(&Request, &mut dyn Answers) -> Result<(), Cancelled> + Send + Sync;

/// What sessions were asked and what became of it.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) logins: Vec<Login>,
    pub(crate) requests: Vec<Request>,
    /// Of the requests that are answered, in order.
    pub(crate) outcomes: Vec<Result<(), Cancelled>>,
    pub(crate) resets: usize,
    pub(crate) ended: usize,
    /// Sessions are to end.
    pub(crate) killed: bool,
}

pub(crate) struct Script {
    answer: Box<Answer>,
    pub(crate) seen: watch::Sender<Seen>,
    next_session: AtomicU16,
    next_transaction: AtomicU64,
}

impl Script {
    /// Returns when what was seen fulfils a condition.
    pub(crate) async fn until(&self, condition: impl FnMut(&Seen) -> bool) {
        self.seen.subscribe().wait_for(condition).await.unwrap();
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.seen.borrow().requests.clone()
    }
}

/// A server whose sessions answer batches and procedures with `answer`; transactions begin and end.
pub(crate) async fn start(
    options: Options,
    answer: impl Fn(&Request, &mut dyn Answers) -> Result<(), Cancelled> + Send + Sync + 'static,
) -> (Arc<Script>, TdsServer) {
    let script = Arc::new(Script {
        answer: Box::new(answer),
        seen: watch::Sender::default(),
        next_session: AtomicU16::new(51),
        next_transaction: AtomicU64::new(0x1_0000_0001),
    });
    let server = TdsServer::start(Arc::new(Scripted(script.clone())), options).await.unwrap();
    (script, server)
}

struct Scripted(Arc<Script>);

impl Server for Scripted {
    fn login(&self, login: &Login) -> Result<(Box<dyn Session>, Greeting), Message> {
        self.0.seen.send_modify(|seen| seen.logins.push(login.clone()));
        if (login.user.as_str(), login.password.as_str()) != ("sa", "sécret&1") {
            return Err(error(18456, 14, &format!("Login failed for user '{}'.", login.user)));
        }
        let database = if login.database.is_empty() { "master" } else { &login.database };
        let session = ScriptedSession {
            script: self.0.clone(),
            id: self.0.next_session.fetch_add(1, Ordering::Relaxed),
            transaction: None,
        };
        let greeting =
            Greeting { database: database.into(), program: "Microsoft SQL Server".into(), version: (16, 0, 1000) };
        Ok((Box::new(session), greeting))
    }
}

struct ScriptedSession {
    script: Arc<Script>,
    id: u16,
    transaction: Option<u64>,
}

impl ScriptedSession {
    fn answer(&mut self, request: &Request, answers: &mut dyn Answers) -> Result<(), Cancelled> {
        match request {
            Request::Batch(_) | Request::Procedure { .. } => return (self.script.answer)(request, answers),
            Request::Begin { .. } => {
                let transaction = self.script.next_transaction.fetch_add(1, Ordering::Relaxed);
                self.transaction = Some(transaction);
                answers.change(&Change::Begun(transaction))?;
            }
            Request::Commit { .. } => {
                if let Some(transaction) = self.transaction.take() {
                    answers.change(&Change::Committed(transaction))?;
                }
            }
            Request::Rollback { .. } => {
                if let Some(transaction) = self.transaction.take() {
                    answers.change(&Change::RolledBack(transaction))?;
                }
            }
            Request::Save { .. } => {}
        }
        answers.done(None)
    }
}

impl Session for ScriptedSession {
    fn id(&self) -> u16 {
        self.id
    }

    fn run(&mut self, request: Request, answers: &mut dyn Answers) -> Result<(), Cancelled> {
        self.script.seen.send_modify(|seen| seen.requests.push(request.clone()));
        let outcome = self.answer(&request, answers);
        self.script.seen.send_modify(|seen| seen.outcomes.push(outcome));
        outcome
    }

    fn reset(&mut self) {
        self.transaction = None;
        self.script.seen.send_modify(|seen| seen.resets += 1);
    }

    fn killed(&self) -> bool {
        self.script.seen.borrow().killed
    }
}

impl Drop for ScriptedSession {
    fn drop(&mut self) {
        self.script.seen.send_modify(|seen| seen.ended += 1);
    }
}

pub(crate) fn error(number: u32, class: u8, text: &str) -> Message {
    Message { number, state: 1, class, text: text.into(), procedure: String::new(), line: 1 }
}

pub(crate) fn column(name: &str, kind: SqlType, nullable: bool) -> Column {
    Column { name: name.into(), kind, nullable, identity: false, computed: false }
}

/// Answers every request with one row of one number.
pub(crate) fn one(_: &Request, answers: &mut dyn Answers) -> Result<(), Cancelled> {
    answers.columns(&[column("n", SqlType::Int, false)])?;
    answers.row(&[SqlValue::Int(1)])?;
    answers.done(Some(1))
}

/// Rows without an end.
pub(crate) fn endless(_: &Request, answers: &mut dyn Answers) -> Result<(), Cancelled> {
    answers.columns(&[column("n", SqlType::BigInt, false)])?;
    for number in 0.. {
        answers.row(&[SqlValue::Int(number)])?;
    }
    Ok(())
}

pub(crate) type SqlClient = Client<Compat<TcpStream>>;

/// How a client of the server is set up, unless a test changes it.
pub(crate) fn config(server: &TdsServer) -> Config {
    let mut config = Config::new();
    config.host("localhost");
    config.port(server.address().port());
    config.authentication(AuthMethod::sql_server("sa", "sécret&1"));
    config.encryption(EncryptionLevel::Required);
    config.trust_cert_ca_bundle(server.certificate().as_bytes().to_vec());
    config
}

pub(crate) async fn connect(config: Config, port: u16) -> tiberius::Result<SqlClient> {
    let tcp = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    tcp.set_nodelay(true).unwrap();
    Client::connect(config, tcp.compat_write()).await
}

pub(crate) async fn client(server: &TdsServer) -> SqlClient {
    connect(config(server), server.address().port()).await.unwrap()
}

/// Whether the client's connection works: it is asked for its number.
pub(crate) async fn works(client: &mut SqlClient) -> bool {
    let row = match client.simple_query("SELECT 1").await {
        Ok(stream) => stream.into_row().await,
        Err(error) => Err(error),
    };
    matches!(row, Ok(Some(row)) if row.get::<i32, _>(0) == Some(1))
}

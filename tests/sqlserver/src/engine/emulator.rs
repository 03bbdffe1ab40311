//! The server: logins, and what tests do to it from outside.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::bind::open;
use super::catalogue::{DEFAULT_COLLATION, Database};
use super::cdc::job::Jobs;
use super::fault::{Fault, SqlError};
use super::kinds::text::same_name;
use super::log::Lsn;
use super::run::Runner;
use super::session::state::SessionState;
use super::shared::Engine;
use super::world::Login as Known;
use crate::session::{Answers, Greeting, Login, Message, Server, Session};
use crate::value::SqlValue;

/// Who captures changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Capturing {
    /// The capture job, at its polling interval, while the agent runs.
    Job,
    /// The test, by [`Emulator::capture`].
    Test,
}

/// How a server is set up.
#[derive(Debug, Clone)]
pub struct Setup {
    /// Minutes east of UTC of the server's clock.
    pub utc_offset: i16,
    pub server_name: String,
    /// Name and password of the login that may do everything.
    pub administrator: (String, String),
    pub capturing: Capturing,
    /// SQL Server Agent runs from the start.
    pub agent: bool,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            utc_offset: 0,
            server_name: "emulator".into(),
            administrator: ("sa".into(), "Password!1".into()),
            capturing: Capturing::Job,
            agent: true,
        }
    }
}

/// A running server. Dropping it ends every session.
pub struct Emulator {
    engine: Arc<Engine>,
    capture: Arc<Mutex<Runner>>,
    job: Option<JoinHandle<()>>,
}

impl Emulator {
    /// Errors: no temporary folder.
    pub fn start(setup: &Setup) -> anyhow::Result<Self> {
        let engine = Arc::new(Engine::new(setup.utc_offset, &setup.server_name, Jobs::default())?);
        engine.jobs.set_agent(setup.agent);
        engine.change_world(|w| {
            for (at, name) in ["master", "tempdb", "model", "msdb"].into_iter().enumerate() {
                w.put(Arc::new(Database::new(at as i32 + 1, name, DEFAULT_COLLATION, SqlValue::Null)));
            }
            let (name, password) = setup.administrator.clone();
            w.logins.push(Known { name, password, sysadmin: true, granted: Vec::new() });
        });
        let login = Login {
            user: setup.administrator.0.clone(),
            application: "SQLAgent - TSQL JobStep".into(),
            ..Login::default()
        };
        let state = Arc::new(SessionState::new(30, login, 1, engine.local_now()));
        let runner = Runner::new(&engine, state).map_err(|e| anyhow::anyhow!(e.text))?;
        let capture = Arc::new(Mutex::new(runner));
        let job = (setup.capturing == Capturing::Job).then(|| {
            let (engine, capture) = (engine.clone(), capture.clone());
            std::thread::spawn(move || poll(&engine, &capture))
        });
        Ok(Self { engine, capture, job })
    }

    /// Captures at most so many transactions of a database, as one scan of the capture job would. The result is
    /// how many had changes. Errors name what went wrong.
    pub fn capture(&self, database: &str, transactions: u32) -> anyhow::Result<u64> {
        let found = self.engine.world().database(database);
        let database = found.ok_or_else(|| anyhow::anyhow!("there is no database {database}: create it first"))?;
        let mut runner = self.capture.lock().unwrap_or_else(PoisonError::into_inner);
        runner.scan(database.id, transactions, &mut Silence).map_err(|e| failed(&e))
    }

    /// Deletes captured changes below a number and lets every instance of the database begin there.
    pub fn cleanup(&self, database: &str, below: [u8; 10]) -> anyhow::Result<()> {
        let found = self.engine.world().database(database);
        let database = found.ok_or_else(|| anyhow::anyhow!("there is no database {database}: create it first"))?;
        let mut runner = self.capture.lock().unwrap_or_else(PoisonError::into_inner);
        runner.clean(database.id, None, Lsn(below), &mut Silence).map_err(|e| failed(&e))
    }

    /// Lets the log of a database go on without changes: `cdc.lsn_time_mapping` gets a row whose `tran_id` is
    /// 0x00, as the capture process writes it on an idle database.
    pub fn idle(&self, database: &str) -> anyhow::Result<()> {
        let found = self.engine.world().database(database);
        let database = found.ok_or_else(|| anyhow::anyhow!("there is no database {database}: create it first"))?;
        let mut runner = self.capture.lock().unwrap_or_else(PoisonError::into_inner);
        runner.mark_idle(database.id, &mut Silence).map_err(|e| failed(&e))
    }

    /// Starts or stops SQL Server Agent.
    pub fn set_agent(&self, running: bool) {
        self.engine.jobs.set_agent(running);
    }

    /// Ends a session, as `KILL` does.
    pub fn kill(&self, session: u16) -> bool {
        let found = self.engine.session_by_id(session);
        if let Some(session) = &found {
            session.kill();
            self.engine.locks.wake();
        }
        found.is_some()
    }

    /// Ids of the sessions of clients.
    pub fn sessions(&self) -> Vec<u16> {
        self.engine.sessions.lock().unwrap_or_else(PoisonError::into_inner).keys().copied().collect()
    }

    /// Whether a session waits for a lock.
    pub fn waits(&self, session: u16) -> bool {
        self.engine.locks.blocker(session).is_some()
    }

    /// Number of transactions that have not ended.
    pub fn open_transactions(&self) -> usize {
        self.engine.locks.moment(0).1.len()
    }
}

fn failed(fault: &Fault) -> anyhow::Error {
    match fault {
        Fault::Error(error) => anyhow::anyhow!("error {}: {}", error.number, error.text),
        other => anyhow::anyhow!("the scan was ended: {other:?}"),
    }
}

/// The capture job of every database, one after the other.
fn poll(engine: &Arc<Engine>, capture: &Mutex<Runner>) {
    let mut due = std::collections::HashMap::<i32, Instant>::new();
    while !engine.stopped.load(Ordering::SeqCst) {
        std::thread::park_timeout(Duration::from_millis(50));
        if !engine.jobs.agent() {
            continue;
        }
        for database in engine.world().databases.iter().filter(|d| d.cdc.is_some()) {
            let now = Instant::now();
            if due.get(&database.id).is_some_and(|d| *d > now) {
                continue;
            }
            let settings = engine.jobs.settings(database.id);
            let mut runner = capture.lock().unwrap_or_else(PoisonError::into_inner);
            // As many scans as it takes, up to the limit, then a pause.
            for _ in 0..settings.scans.max(1) {
                let most = u32::try_from(settings.transactions).unwrap_or(500);
                match runner.scan(database.id, most, &mut Silence) {
                    Ok(0) => break,
                    Ok(_) => {}
                    Err(fault) => {
                        tracing::warn!("capture of database {}: {fault:?}", database.name);
                        break;
                    }
                }
            }
            due.insert(database.id, now + Duration::from_secs(u64::try_from(settings.polling).unwrap_or(0)));
        }
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        self.engine.stopped.store(true, Ordering::SeqCst);
        self.engine.locks.wake();
        if let Some(job) = self.job.take() {
            job.thread().unpark();
            let _ = job.join();
        }
    }
}

impl Server for Emulator {
    fn login(&self, login: &Login) -> Result<(Box<dyn Session>, Greeting), Message> {
        let message = |error: SqlError| Message {
            number: error.number,
            state: error.state,
            class: error.class,
            text: error.text,
            procedure: String::new(),
            line: 1,
        };
        let world = self.engine.world();
        let refused = || SqlError::new(18456, format!("Login failed for user '{}'.", login.user)).class(14);
        let known = world.logins.iter().find(|l| same_name(&l.name, &login.user) && l.password == login.password);
        if known.is_none() {
            return Err(message(refused()));
        }
        let wanted = if login.database.is_empty() { "master" } else { &login.database };
        let cannot = |text: String| message(SqlError::new(4060, text).class(11));
        let text = || format!("Cannot open database \"{wanted}\" requested by the login. The login failed.");
        let database = world.database(wanted).ok_or_else(|| cannot(text()))?;
        open(&world, &database, &login.user).map_err(|_| cannot(text()))?;
        let since = self.engine.local_now();
        let state =
            self.engine.session(|id| SessionState::new(id, login.clone(), database.id, since)).map_err(message)?;
        let runner = Runner::new(&self.engine, state).map_err(message)?;
        let greeting = Greeting {
            database: database.name.clone(),
            program: "Microsoft SQL Server".into(),
            version: self.engine.version(),
        };
        Ok((Box::new(runner), greeting))
    }
}

/// Nobody listens.
struct Silence;

impl Answers for Silence {}

//! A connected client, and how long it goes on trying.
//!
//! Every failed operation is judged here and nowhere else: errors that pass are waited out, with the
//! delays of [`Outage`]; a position that the server no longer holds goes back to the caller, which
//! knows what its snapshot mode makes of it; everything else ends the run.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use mongodb::Client;
use thalweg_core::envelope::SourceTime;
use thalweg_core::progress::PartitionProgress;
use thalweg_core::{Error, ErrorKind, Phase};
use tracing::warn;

use crate::connect;
use crate::errors::{self, Class};
use crate::failure::Failure;
use crate::options::MongoConfig;
use crate::outage::Outage;
use crate::reply::Budget;
use crate::stream::{ChangeStream, StartAt, StreamSettings};

/// Longest wait for the server when the client is closed.
const FAREWELL: Duration = Duration::from_secs(2);

/// Why an operation does not go on.
#[derive(Debug)]
pub(crate) enum Ended {
    /// The server no longer holds the position.
    Lost(Error),
    Final(Error),
}

impl From<Error> for Ended {
    fn from(error: Error) -> Self {
        Self::Final(error)
    }
}

impl From<Ended> for Error {
    /// For operations that know no position.
    fn from(ended: Ended) -> Self {
        match ended {
            Ended::Lost(error) | Ended::Final(error) => error,
        }
    }
}

pub(crate) struct Link {
    pub(crate) client: Client,
    outage: Outage,
    progress: Arc<PartitionProgress>,
}

impl Link {
    /// Builds the client; names that DNS does not know are asked for again. No server is contacted.
    pub(crate) async fn new(config: &MongoConfig, uri: &str, progress: &Arc<PartitionProgress>) -> Result<Self, Error> {
        let mut outage = Outage::new(&config.connection);
        let client = loop {
            let readers = config.snapshot.threads;
            match connect::client(&config.connection, uri, readers, Some(progress.clone())).await {
                Ok(client) => break client,
                Err(error) => wait_out(&mut outage, progress, &error, Phase::Start).await?,
            }
        };
        Ok(Self { client, outage, progress: progress.clone() })
    }

    /// Ends cursors, sessions and connections. A server that does not answer is left alone.
    pub(crate) async fn close(self) {
        if tokio::time::timeout(FAREWELL, self.client.clone().shutdown()).await.is_err() {
            self.client.shutdown().immediate(true).await;
        }
    }

    /// The server did what was asked of it: an outage is over.
    pub(crate) fn answered(&mut self) {
        self.outage.over();
        self.contact();
    }

    fn contact(&self) {
        self.progress.end_absence();
        self.progress.last_contact_ms.store(SourceTime::now().ms, Ordering::Relaxed);
    }

    /// Returns when the operation is worth another try.
    pub(crate) async fn wait_out(&mut self, error: &mongodb::error::Error, phase: Phase) -> Result<(), Ended> {
        wait_out(&mut self.outage, &self.progress, error, phase).await
    }

    /// Repeats an operation until the server answers it.
    pub(crate) async fn insist<T, F>(&mut self, phase: Phase, operation: impl Fn(Client) -> F) -> Result<T, Ended>
    where
        F: Future<Output = Result<T, Failure>>,
    {
        loop {
            match operation(self.client.clone()).await {
                Ok(value) => {
                    self.answered();
                    return Ok(value);
                }
                Err(Failure::Final(error)) => return Err(error.into()),
                Err(Failure::Server(error)) => self.wait_out(&error, phase).await?,
            }
        }
    }

    /// Opens a change stream. Tokens of invalidating events are recognised by the server if not by
    /// their text: `start` is corrected then.
    pub(crate) async fn open(
        &mut self,
        settings: &StreamSettings,
        start: &mut StartAt,
        images: bool,
        budget: &Arc<Budget>,
        phase: Phase,
    ) -> Result<ChangeStream, Ended> {
        loop {
            match ChangeStream::open(&self.client, settings, start, images, budget).await {
                // Opening alone proves little: a stream may fail with its next answer, again and again.
                Ok(stream) => {
                    self.contact();
                    return Ok(stream);
                }
                Err(error) if errors::class(&error) == Class::FromInvalidate => {
                    match std::mem::replace(start, StartAt::Now) {
                        StartAt::After(token) => *start = StartAt::AfterInvalidate(token),
                        other => {
                            *start = other;
                            return Err(Ended::Lost(errors::error(&error, phase)));
                        }
                    }
                }
                Err(error) => self.wait_out(&error, phase).await?,
            }
        }
    }
}

async fn wait_out(
    outage: &mut Outage,
    progress: &PartitionProgress,
    error: &mongodb::error::Error,
    phase: Phase,
) -> Result<(), Ended> {
    let class = errors::class(error);
    if class != Class::Permission {
        PartitionProgress::count(&progress.disconnects, 1);
    }
    match class {
        Class::Connect | Class::Resume => {}
        Class::Lost => return Err(Ended::Lost(errors::error(error, phase))),
        _ => return Err(Ended::Final(errors::error(error, phase))),
    }
    let said = errors::text(error);
    let Some(delay) = outage.failed() else {
        let message = format!("Unable to connect to MongoDB after {} attempts", outage.attempts());
        let mut error = Error::new(ErrorKind::SourceRefused, phase, message)
            .advise("check that the servers run and can be reached from this node, then restart the task");
        error.causes.push(said);
        return Err(error.into());
    };
    // A stream that worked until now is opened again at once: most elections are over by then.
    let delay = if outage.attempts() == 1 && phase == Phase::Stream { Duration::ZERO } else { delay };
    progress.source_away(outage.attempts(), &said);
    warn!(
        error = said,
        attempt = outage.attempts(),
        delay_ms = delay.as_millis(),
        "the server did not answer, trying again"
    );
    progress.rest(delay).await;
    Ok(())
}

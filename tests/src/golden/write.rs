//! The writes of a scenario, as commands of the database: what is sent is exactly what the scenario says.

use anyhow::{Context, Result, bail};
use bson::{Document, RawDocumentBuf, doc, rawdoc};
use mongodb::options::ClientOptions;
use mongodb::{Client, ClientSession};
use serde_json::Value;
use tokio::sync::Mutex;

use super::document::{bson, document};
use super::names::Names;
use super::recording::Step;

pub(super) struct Writer {
    client: Client,
    session: Mutex<Option<ClientSession>>,
    names: Names,
}

impl Writer {
    pub(super) async fn new(uri: &str, names: Names) -> Result<Self> {
        let mut options = ClientOptions::parse(uri).await?;
        // Recorded without: a write that may be retried leaves its session in the change.
        options.retry_writes = Some(false);
        Ok(Self { client: Client::with_options(options)?, session: Mutex::default(), names })
    }

    /// Does the step; false if it is no write.
    pub(super) async fn write(&self, step: &Step) -> Result<bool> {
        let Step::Transaction { transaction, abort } = step else { return self.one(step, None).await };
        // Recorded in one session, which the client had used before: its id is in the changes.
        let mut kept = self.session.lock().await;
        let session = match &mut *kept {
            Some(session) => session,
            None => kept.insert(self.client.start_session().await?),
        };
        session.start_transaction().await?;
        for step in transaction {
            if !self.one(step, Some(session)).await? {
                bail!("a transaction has a step that is no write: {step:?}");
            }
        }
        match abort {
            true => session.abort_transaction().await?,
            false => session.commit_transaction().await?,
        }
        Ok(true)
    }

    async fn one(&self, step: &Step, mut session: Option<&mut ClientSession>) -> Result<bool> {
        match step {
            Step::Insert { insert, docs, db } => {
                // One by one, as recorded: each is a transaction of its own.
                for content in docs {
                    let documents = [document(&self.names.fill_all(content))?];
                    let command = rawdoc! {"insert": self.names.fill(insert), "documents": documents.into_iter().collect::<bson::RawArrayBuf>()};
                    self.send(db.as_deref(), command, session.as_deref_mut()).await?;
                }
            }
            Step::Update { update, filter, change } => self.update(update, filter, change, session).await?,
            Step::Replace { replace, filter, doc } => self.update(replace, filter, doc, session).await?,
            Step::Delete { delete, filter, many } => {
                let limit = i32::from(!many);
                let deletes = vec![doc! {"q": self.bson(filter)?, "limit": limit}];
                let command = doc! {"delete": self.names.fill(delete), "deletes": deletes};
                self.send(None, RawDocumentBuf::try_from(&command)?, session).await?;
            }
            Step::Command { command, db } => {
                self.send(db.as_deref(), document(&self.names.fill_all(command))?, session).await?;
            }
            Step::DropDatabase { drop_database } => self.drop_database(drop_database).await?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Changes, or replaces with, `content`.
    async fn update(
        &self,
        collection: &str,
        filter: &Value,
        content: &Value,
        session: Option<&mut ClientSession>,
    ) -> Result<()> {
        let updates = vec![doc! {"q": self.bson(filter)?, "u": self.bson(content)?}];
        let command = doc! {"update": self.names.fill(collection), "updates": updates};
        self.send(None, RawDocumentBuf::try_from(&command)?, session).await
    }

    fn bson(&self, value: &Value) -> Result<bson::Bson> {
        bson(&self.names.fill_all(value))
    }

    async fn send(&self, db: Option<&str>, command: RawDocumentBuf, session: Option<&mut ClientSession>) -> Result<()> {
        let database = self.client.database(&self.names.fill(db.unwrap_or("${db}")));
        let what = command.iter().next().and_then(|first| Some(format!("{:?}", first.ok()?))).unwrap_or_default();
        let run = database.run_raw_command(command);
        let answer = match session {
            Some(session) => run.session(session).await,
            None => run.await,
        };
        let answer: Document = answer.with_context(|| what.clone())?;
        match answer.get_array("writeErrors") {
            Ok(errors) => bail!("{what}: {errors:?}"),
            Err(_) => Ok(()),
        }
    }

    /// `{"_id": number}` into a collection of `${db}`.
    pub(super) async fn probe(&self, collection: &str, number: i64) -> Result<()> {
        let command = doc! {"insert": collection, "documents": [{"_id": number}]};
        self.send(None, RawDocumentBuf::try_from(&command)?, None).await
    }

    pub(super) async fn drop_database(&self, name: &str) -> Result<()> {
        Ok(self.client.database(&self.names.fill(name)).drop().await?)
    }
}

//! A task: its databases, each a partition, and a reader for each.

use std::sync::Arc;

use async_trait::async_trait;
use thalweg_core::position::SourcePartition;
use thalweg_core::relational::table_filter::TableFilter;
use thalweg_core::source::{PartitionContext, PartitionReader, SourceTask, TaskSpec};
use thalweg_core::{Error, ErrorKind, Phase};
use tokio::sync::mpsc;

use crate::offsets::{self, StoredOffsets};
use crate::options::SqlServerConfig;
use crate::plan;
use crate::pump::{Outlet, Pump};
use crate::reader::SqlServerReader;
use crate::recorder::Recorder;

/// Loads fetched ahead, besides the one that the pump has in its hands.
const LOADS_AHEAD: usize = 2;

pub(crate) struct SqlServerTask {
    config: Arc<SqlServerConfig>,
    filter: Arc<TableFilter>,
    /// The connector has one database.
    is_only: bool,
    spec: TaskSpec,
}

impl SqlServerTask {
    /// # Errors
    /// A configuration that is not valid.
    pub(crate) fn new(spec: TaskSpec) -> Result<Self, Error> {
        let config = SqlServerConfig::parse(&spec.config)?;
        let filter = Arc::new(config.tables.filter()?);
        let is_only = plan::databases_in_all(&spec.config).unwrap_or(config.databases.len()) == 1;
        Ok(Self { config: Arc::new(config), filter, is_only, spec })
    }

    fn partition(&self, database: &str) -> SourcePartition {
        offsets::partition(self.config.layout, &self.config.topic_prefix, database)
    }
}

#[async_trait]
impl SourceTask for SqlServerTask {
    fn partitions(&self) -> Vec<SourcePartition> {
        self.config.databases.iter().map(|database| self.partition(database)).collect()
    }

    async fn open(
        &self,
        partition: &SourcePartition,
        context: PartitionContext,
    ) -> Result<Box<dyn PartitionReader>, Error> {
        let database = self.config.databases.iter().find(|database| self.partition(database) == *partition);
        let Some(database) = database else {
            let text = format!("{partition:?} is not a partition of this task");
            return Err(Error::new(ErrorKind::Internal, Phase::Start, text));
        };
        let (sender, feed) = mpsc::channel(LOADS_AHEAD);
        let pump = Pump {
            config: self.config.clone(),
            filter: self.filter.clone(),
            database: database.clone(),
            partition: partition.clone(),
            offsets: StoredOffsets {
                reader: context.offsets.clone(),
                prefix: self.config.topic_prefix.clone(),
                layout: self.config.layout,
                is_only: self.is_only,
            },
            histories: context.histories.clone(),
            out: Outlet { sender, progress: context.progress.clone() },
        };
        let recorder = Recorder::new(&self.config, self.filter.clone(), self.spec.task, &self.spec.run_id)?;
        Ok(Box::new(SqlServerReader::start(&self.config, recorder, (pump, feed), &context)))
    }
}

//! What a database says of itself: its log, its capture instances, the structure of its tables.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use thalweg_core::envelope::SourceTime;
use thalweg_core::relational::cell::Cell;
use thalweg_core::relational::column::Column;
use thalweg_core::relational::table::Table;
use thalweg_core::relational::table_id::TableId;
use tiberius::{FromSql, Row};

use crate::errors::Fault;
use crate::instance::{CaptureInstance, Captured};
use crate::link::{Parameter, SqlLink};
use crate::lsn::Lsn;
use crate::select;
use crate::statement::{self, Statements, only};
use crate::types::{self, Described, columns};

/// Pause of the capture job where it cannot be asked for.
const CAPTURE_INTERVAL: Duration = Duration::from_secs(5);

/// A value that must be there.
fn get<'a, T: FromSql<'a>>(row: &'a Row, at: usize) -> Result<T, Fault> {
    opt(row, at)?.ok_or_else(|| Fault::Answer(format!("a catalogue view has null in column {}", at + 1)))
}

fn opt<'a, T: FromSql<'a>>(row: &'a Row, at: usize) -> Result<Option<T>, Fault> {
    if at >= row.len() {
        return Err(Fault::Answer(format!("an answer has {} columns where {} are expected", row.len(), at + 1)));
    }
    Ok(row.try_get(at)?)
}

fn lsn(row: &Row, at: usize) -> Result<Option<Lsn>, Fault> {
    let Some(bytes) = opt::<&[u8]>(row, at)? else { return Ok(None) };
    let number = Lsn::from_slice(bytes).map(Some);
    number.ok_or_else(|| Fault::Answer(format!("{} bytes came for a log sequence number of 10", bytes.len())))
}

/// Any integer type.
fn int(row: &Row, at: usize) -> Result<i64, Fault> {
    use tiberius::ColumnData as D;
    if at >= row.len() {
        return Err(Fault::Answer(format!("an answer has {} columns where {} are expected", row.len(), at + 1)));
    }
    match row.get_column_data(at)? {
        D::U8(Some(n)) => Ok((*n).into()),
        D::I16(Some(n)) => Ok((*n).into()),
        D::I32(Some(n)) => Ok((*n).into()),
        D::I64(Some(n)) => Ok(*n),
        D::Bit(Some(n)) => Ok((*n).into()),
        _ => Err(Fault::Answer(format!("a catalogue view has no number in column {}", at + 1))),
    }
}

fn small<T: TryFrom<i64>>(row: &Row, at: usize) -> Result<T, Fault> {
    T::try_from(int(row, at)?).map_err(|_| Fault::Answer(format!("the number in column {} is out of range", at + 1)))
}

/// The server's spelling of a database's name.
///
/// # Errors
/// No database or several have it.
pub async fn database_name(link: &mut SqlLink, name: &str) -> Result<String, Fault> {
    let rows = link.rows(statement::DATABASE, &[name.into()]).await?;
    let row = only(rows, "a database").map_err(|_| {
        Fault::Answer(format!(
            "Could not retrieve exactly one database name for '{name}'. The database may not exist or the name matched \
             more than one entry."
        ))
    })?;
    get::<&str>(&row, 0).map(str::to_owned)
}

/// A table of users', and its object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    pub id: TableId,
    pub object: i32,
}

/// Questions about one database.
#[derive(Debug, Clone)]
pub struct Catalogue {
    pub database: Arc<str>,
    pub statements: Statements,
}

impl Catalogue {
    /// `database` as the server spells it.
    pub fn new(database: &str) -> Self {
        Self { database: database.into(), statements: Statements::of(database) }
    }

    async fn number(
        &self,
        link: &mut SqlLink,
        statement: &str,
        parameters: &[Parameter],
    ) -> Result<Option<Lsn>, Fault> {
        lsn(&only(link.rows(statement, parameters).await?, "a number")?, 0)
    }

    /// The newest number that was captured; `None`: nothing was yet.
    ///
    /// # Errors
    /// Those of the link, as for all functions here.
    pub async fn max_lsn(&self, link: &mut SqlLink) -> Result<Option<Lsn>, Fault> {
        self.number(link, &self.statements.max_lsn(), &[]).await
    }

    /// Where a window ends that begins at `from` and has at most so many transactions.
    pub async fn window_end(
        &self,
        link: &mut SqlLink,
        from: Option<Lsn>,
        transactions: Option<u32>,
    ) -> Result<Option<Lsn>, Fault> {
        let parameters: Vec<Parameter> =
            from.filter(|_| transactions.is_some()).map(Parameter::Lsn).into_iter().collect();
        let statement = match transactions {
            None => self.statements.last_transaction(),
            Some(count) => self.statements.last_of(count, from.is_some()),
        };
        self.number(link, &statement, &parameters).await
    }

    /// The oldest number from which changes are kept.
    pub async fn oldest(&self, link: &mut SqlLink) -> Result<Option<Lsn>, Fault> {
        self.number(link, &self.statements.oldest(), &[]).await
    }

    /// Whether capture instances begin in a window.
    pub async fn has_new_instances(&self, link: &mut SqlLink, from: Lsn, to: Lsn) -> Result<bool, Fault> {
        let rows = link.rows(&self.statements.new_instances(), &[from.into(), to.into()]).await?;
        Ok(int(&only(rows, "a count")?, 0)? > 0)
    }

    /// All capture instances that have begun by `to`; none of them stops yet.
    pub async fn instances(&self, link: &mut SqlLink, to: Lsn) -> Result<Vec<CaptureInstance>, Fault> {
        let rows = link.rows(&self.statements.instances(), &[to.into()]).await?;
        let mut captured = self.captured(link).await?;
        let commands = link.rows(&self.statements.with_commands(), &[]).await?;
        let commands: Result<BTreeSet<i32>, Fault> = commands.iter().map(|row| get::<i32>(row, 0)).collect();
        let commands = commands?;
        let mut instances = Vec::new();
        for row in &rows {
            let name: &str = get(row, 2)?;
            // Names are null where the user may not see the table, or it is gone.
            let (Some(schema), Some(table)) = (opt::<&str>(row, 0)?, opt::<&str>(row, 1)?) else {
                tracing::warn!(database = %self.database, capture_instance = name, "the table of a capture instance is gone, or the user may not see it");
                continue;
            };
            let object = get(row, 3)?;
            let Some(start) = lsn(row, 4)? else { continue };
            instances.push(CaptureInstance {
                table: TableId::new(Some(&self.database), Some(schema), table),
                source_object: get(row, 5)?,
                name: name.into(),
                object,
                start,
                stop: None,
                columns: captured.remove(&object).unwrap_or_default(),
                has_commands: commands.contains(&object),
            });
        }
        Ok(instances)
    }

    /// By change table.
    async fn captured(&self, link: &mut SqlLink) -> Result<BTreeMap<i32, Vec<Captured>>, Fault> {
        let mut all: BTreeMap<i32, Vec<Captured>> = BTreeMap::new();
        for row in &link.rows(&self.statements.captured_columns(), &[]).await? {
            let declared: &str = get(row, 3)?;
            let column = Described {
                name: get::<&str>(row, 1)?.to_owned(),
                id: small(row, 2)?,
                declared: declared.to_owned(),
                base: opt::<&str>(row, 4)?.unwrap_or(declared).to_owned(),
                max_length: small(row, 5)?,
                precision: small(row, 6)?,
                scale: small(row, 7)?,
                nullable: true,
                identity: false,
                computed: opt::<bool>(row, 8)?.unwrap_or(false),
                default: None,
            };
            all.entry(get(row, 0)?).or_default().push(Captured { ordinal: small(row, 2)?, column });
        }
        Ok(all)
    }

    /// Tables that users made, by name.
    pub async fn tables(&self, link: &mut SqlLink) -> Result<Vec<Listed>, Fault> {
        let mut tables = Vec::new();
        for row in &link.rows(&self.statements.tables(), &[]).await? {
            let id = TableId::new(Some(&self.database), Some(get(row, 0)?), get(row, 1)?);
            tables.push(Listed { id, object: get(row, 2)? });
        }
        Ok(tables)
    }

    /// Tables of which changes are captured.
    pub async fn enabled_objects(&self, link: &mut SqlLink) -> Result<BTreeSet<i32>, Fault> {
        let rows = link.rows(&self.statements.enabled_objects(), &[]).await?;
        rows.iter().map(|row| get(row, 0)).collect()
    }

    /// # Errors
    /// The user may not read what was captured, or nothing is.
    pub async fn has_access(&self, link: &mut SqlLink) -> Result<(), Fault> {
        if link.rows(&self.statements.help(), &[]).await?.is_empty() {
            // Nothing that the user may see: then the catalogue itself has to be readable.
            self.enabled_objects(link).await?;
        }
        Ok(())
    }

    /// How many rows a table has.
    pub async fn count(&self, link: &mut SqlLink, table: &TableId) -> Result<u64, Fault> {
        small(&only(link.rows(&select::count(table), &[]).await?, "a count")?, 0)
    }

    /// The server's clock; ours if it cannot be read.
    pub async fn now(&self, link: &mut SqlLink) -> Result<SourceTime, Fault> {
        let row = only(link.rows(select::NOW, &[]).await?, "a time")?;
        let cell = row.into_iter().next().map_or(Ok(Cell::Null), types::cell).map_err(Fault::Answer)?;
        Ok(types::instant(&cell).unwrap_or_else(SourceTime::now))
    }

    /// The structure of a table, with those of its columns that `keeps` names. `None`: the table is gone.
    pub async fn table(
        &self,
        link: &mut SqlLink,
        id: &TableId,
        object: i32,
        keeps: impl Fn(&str) -> bool,
    ) -> Result<Option<Table>, Fault> {
        let mut described = Vec::new();
        for row in &link.rows(&self.statements.columns(), &[object.into()]).await? {
            let declared: &str = get(row, 2)?;
            described.push(Described {
                name: get::<&str>(row, 0)?.to_owned(),
                id: get(row, 1)?,
                declared: declared.to_owned(),
                base: opt::<&str>(row, 3)?.unwrap_or(declared).to_owned(),
                max_length: small(row, 4)?,
                precision: small(row, 5)?,
                scale: small(row, 6)?,
                nullable: opt::<bool>(row, 7)?.unwrap_or(true),
                identity: opt::<bool>(row, 8)?.unwrap_or(false),
                computed: opt::<bool>(row, 9)?.unwrap_or(false),
                default: opt::<&str>(row, 10)?.map(str::to_owned),
            });
        }
        if described.is_empty() {
            return Ok(None);
        }
        described.retain(|column| keeps(&column.name));
        let columns: Vec<Column> = columns(&described);
        let mut key = self.key(link, object).await?;
        let before = key.len();
        key.retain(|name| columns.iter().any(|column| column.name == *name));
        if key.len() < before {
            tracing::warn!(table = %id, "columns of the key are not captured: the rest of it may not be unique");
        }
        Table::new(id.clone(), columns, key).map(Some).map_err(Fault::Answer)
    }

    /// The primary key, or else the first unique index.
    async fn key(&self, link: &mut SqlLink, object: i32) -> Result<Vec<Arc<str>>, Fault> {
        let rows = link.rows(&self.statements.keys(), &[object.into()]).await?;
        let Some(first) = rows.first().map(|row| int(row, 0)).transpose()? else { return Ok(Vec::new()) };
        let mut key = Vec::new();
        for row in &rows {
            if int(row, 0)? == first {
                key.push(get::<&str>(row, 2)?.into());
            }
        }
        Ok(key)
    }

    /// Whether SQL Server Agent runs; `custom`: the user's statement.
    pub async fn agent_runs(&self, link: &mut SqlLink, custom: Option<&str>) -> Result<bool, Fault> {
        let rows = link.rows(&self.statements.agent(custom), &[]).await?;
        Ok(int(&only(rows, "the state of SQL Server Agent")?, 0)? != 0)
    }

    /// Pause of the capture job. Where nobody may ask for it, it is taken for five seconds.
    pub async fn capture_interval(&self, link: &mut SqlLink) -> Duration {
        let seconds = match link.rows(&self.statements.jobs(), &[]).await {
            Ok(rows) => rows.iter().find_map(|row| {
                let is_capture = row.try_get::<&str, _>("job_type").ok().flatten() == Some("capture");
                let at = row.columns().iter().position(|column| column.name() == "pollinginterval")?;
                is_capture.then(|| int(row, at).ok())?
            }),
            Err(error) => {
                tracing::warn!(database = %self.database, %error, "the pause of the capture job cannot be read; 5 s are assumed");
                None
            }
        };
        let seconds = seconds.and_then(|seconds| u64::try_from(seconds).ok()).filter(|seconds| *seconds > 0);
        seconds.map_or(CAPTURE_INTERVAL, Duration::from_secs)
    }

    /// Whether the newest scan of the log found nothing, so that whatever transaction was read is complete.
    pub async fn scan_is_idle(&self, link: &mut SqlLink) -> Result<bool, Fault> {
        let rows = link.rows(&self.statements.last_scan(), &[]).await?;
        let Some(row) = rows.first() else { return Ok(false) };
        let text = opt::<&str>(row, 0)?.unwrap_or_default();
        Ok(Lsn::parse(text.trim_end_matches(['\0', ' '])) == Some(Lsn::ZERO))
    }
}

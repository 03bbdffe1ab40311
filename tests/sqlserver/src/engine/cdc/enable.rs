//! Enabling and disabling databases and tables.
//!
//! Follows "sys.sp_cdc_enable_db", "sys.sp_cdc_enable_table", "sys.sp_cdc_disable_table",
//! "sys.sp_cdc_disable_db".

use std::sync::Arc;

use super::capture::{Capture, Captured};
use crate::engine::catalogue::{CdcState, Column, Database, DdlEntry, Schema, Table, User};
use crate::engine::fault::{Outcome, SqlError};
use crate::engine::kinds::kind::varbinary;
use crate::engine::kinds::text::same_name;
use crate::engine::run::{Frame, Runner};
use crate::session::Answers;
use crate::types::SqlType;

/// What `sys.sp_cdc_enable_table` is asked for.
#[derive(Debug, Default)]
pub(crate) struct Wanted {
    pub(crate) schema: String,
    pub(crate) table: String,
    pub(crate) instance: Option<String>,
    pub(crate) net_changes: Option<bool>,
    pub(crate) role: Option<String>,
    pub(crate) index: Option<String>,
    /// Empty: all.
    pub(crate) columns: Vec<String>,
}

impl Runner {
    pub(crate) fn enable_database(&mut self, answers: &mut dyn Answers) -> Outcome<()> {
        let database = self.usable()?;
        if database.id <= 4 {
            return Err(SqlError::new(
                22902,
                format!(
                    "Caller is not authorized to initiate the requested action. Database '{}' is a system database.",
                    database.name
                ),
            )
            .into());
        }
        self.in_transaction(answers, |runner, answers| {
            runner.change(database.id, answers, |runner, database| {
                if database.cdc.is_some() {
                    return Ok(());
                }
                let id = database.schemas.iter().map(|s| s.id).max().unwrap_or(4) + 1;
                database.schemas.push(Schema { id, name: "cdc".into() });
                database.users.push(User { name: "cdc".into(), login: None, roles: vec!["db_owner".into()] });
                let columns = [
                    ("start_lsn", SqlType::Binary(10)),
                    ("tran_begin_time", SqlType::DateTime),
                    ("tran_end_time", SqlType::DateTime),
                    ("tran_id", varbinary(10)),
                    ("tran_begin_lsn", SqlType::Binary(10)),
                ];
                let mapping = runner.system_table(database, "lsn_time_mapping", &columns)?;
                runner.db.execute_batch(&format!("CREATE INDEX i{0}_1 ON o{0} (c1)", mapping.id))?;
                database.cdc = Some(CdcState { captures: Vec::new(), history: Vec::new(), time_mapping: mapping.id });
                database.tables.insert(mapping.id, Arc::new(mapping));
                Ok(())
            })
        })
    }

    pub(crate) fn disable_database(&mut self, answers: &mut dyn Answers) -> Outcome<()> {
        let database = self.usable()?;
        self.in_transaction(answers, |runner, answers| {
            runner.change(database.id, answers, |_, database| {
                database.cdc = None;
                database.tables.retain(|_, t| !(t.shipped && same_name(&t.schema, "cdc")));
                database.schemas.retain(|s| s.name != "cdc");
                database.users.retain(|u| u.name != "cdc");
                Ok(())
            })
        })
    }

    fn system_table(&self, database: &Database, name: &str, columns: &[(&str, SqlType)]) -> Outcome<Table> {
        let columns: Vec<Column> = columns
            .iter()
            .enumerate()
            .map(|(n, (name, kind))| Column::plain(n as i32 + 1, name, kind.clone(), &database.collation))
            .collect();
        let table = Table {
            id: self.engine.object_id(),
            schema: "cdc".into(),
            name: name.into(),
            next_column: columns.len() as i32 + 1,
            columns,
            indexes: Vec::new(),
            foreign_keys: Vec::new(),
            checks: Vec::new(),
            shipped: true,
            created: self.engine.local_now(),
            period: None,
            history: None,
            is_history: false,
        };
        self.make(&table)?;
        Ok(table)
    }

    /// Errors: 22901, 22931, 22926, 22962, 22928, 22939.
    pub(crate) fn enable_table(&mut self, wanted: &Wanted, answers: &mut dyn Answers) -> Outcome<()> {
        let database = self.usable()?;
        self.in_transaction(answers, |runner, answers| {
            runner.change(database.id, answers, |runner, database| {
                let capture = runner.new_capture(database, wanted)?;
                if let Some(cdc) = &mut database.cdc {
                    cdc.captures.push(Arc::new(capture));
                }
                Ok(())
            })
        })
    }

    fn new_capture(&self, database: &mut Database, wanted: &Wanted) -> Outcome<Capture> {
        if database.cdc.is_none() {
            return Err(not_enabled(&database.name).into());
        }
        let Some(table) = database.table(&wanted.schema, &wanted.table).cloned() else {
            let text = format!(
                "Source table '{}.{}' does not exist in the current database. Ensure that the correct database context is set. Specify a valid schema and table name for the database.",
                wanted.schema, wanted.table
            );
            return Err(SqlError::new(22931, text).into());
        };
        let name = wanted.instance.clone().unwrap_or_else(|| format!("{}_{}", table.schema, table.name));
        if database.captures().iter().any(|c| same_name(&c.name, &name)) {
            let text = format!(
                "Could not create a capture instance because the capture instance name '{name}' already exists in the current database. Specify an explicit unique name for the parameter @capture_instance."
            );
            return Err(SqlError::new(22926, text).into());
        }
        if database.captures_of(table.id).count() >= 2 {
            let text = format!(
                "Two capture instances already exist for source table '{}.{}'. A table can have at most two capture instances. If the current tracking options are not appropriate, disable change tracking for the obsolete instance by using sys.sp_cdc_disable_table and retry the operation.",
                table.schema, table.name
            );
            return Err(SqlError::new(22962, text).into());
        }
        let index = match &wanted.index {
            Some(index) => table.indexes.iter().find(|i| i.unique && same_name(&i.name, index)),
            None => table.primary_key(),
        };
        // Without the parameter net changes are supported where there is a key.
        let net_changes = wanted.net_changes.unwrap_or(index.is_some());
        if net_changes && index.is_none() {
            let text = "The parameter @supports_net_changes is set to 1, but the source table does not have a primary key defined and no alternate unique index has been specified.";
            return Err(SqlError::new(22939, text).into());
        }
        let mut columns = Vec::new();
        for name in &wanted.columns {
            if table.column(name).is_none() {
                let text = format!(
                    "Could not create a capture instance because the column '{name}' specified in the parameter @captured_column_list is not a column of the source table '{}.{}'.",
                    table.schema, table.name
                );
                return Err(SqlError::new(22928, text).into());
            }
        }
        for column in &table.columns {
            if wanted.columns.is_empty() || wanted.columns.iter().any(|n| same_name(n, &column.name)) {
                columns.push(Captured {
                    id: column.id,
                    name: column.name.clone(),
                    kind: column.kind.clone(),
                    computed: column.computed.is_some(),
                });
            }
        }
        let binary = SqlType::Binary(10);
        let mut kept = vec![
            ("__$start_lsn", binary.clone()),
            ("__$end_lsn", binary.clone()),
            ("__$seqval", binary),
            ("__$operation", SqlType::Int),
            ("__$update_mask", varbinary(128)),
        ];
        // A row version of the source is eight bytes like any others in the change table.
        let kind = |c: &Captured| if c.kind == SqlType::RowVersion { SqlType::Binary(8) } else { c.kind.clone() };
        kept.extend(columns.iter().map(|c| (c.name.as_str(), kind(c))));
        kept.push(("__$command_id", SqlType::Int));
        let made = self.system_table(database, &format!("{name}_CT"), &kept)?;
        let last = kept.len();
        self.db.execute_batch(&format!("CREATE INDEX i{0}_1 ON o{0} (c1, c{last}, c3, c4)", made.id))?;
        let capture = Capture {
            name,
            source: table.id,
            object: made.id,
            columns,
            key: index.map_or(Vec::new(), |i| i.key.iter().map(|(id, _)| *id).collect()),
            index_name: index.map(|i| i.name.clone()),
            start_lsn: self.engine.log.next(),
            net_changes,
            role: wanted.role.clone(),
            created: self.engine.local_now(),
        };
        database.tables.insert(made.id, Arc::new(made));
        Ok(capture)
    }

    /// `all` drops every instance of the table. Error 22960 if there is none of the name.
    pub(crate) fn disable_table(
        &mut self,
        schema: &str,
        table: &str,
        instance: &str,
        answers: &mut dyn Answers,
    ) -> Outcome<()> {
        let database = self.usable()?;
        if database.cdc.is_none() {
            return Err(not_enabled(&database.name).into());
        }
        let source = database.table(schema, table).map(|t| t.id);
        let all = same_name(instance, "all");
        let chosen = |c: &Capture| Some(c.source) == source && (all || same_name(&c.name, instance));
        let objects: Vec<i32> = database.captures().iter().filter(|c| chosen(c)).map(|c| c.object).collect();
        if objects.is_empty() {
            let text = format!(
                "Change data capture instance '{instance}' has not been enabled for the source table '{schema}.{table}'. Use sys.sp_cdc_help_change_data_capture to verify the capture instance name and retry the operation."
            );
            return Err(SqlError::new(22960, text).into());
        }
        self.in_transaction(answers, |runner, answers| {
            for object in &objects {
                let target = crate::engine::locks::Target::Table(*object);
                runner
                    .engine
                    .locks
                    .take(target, crate::engine::locks::Mode::Exclusive, runner.asker(), &|| runner.stopped(answers))?;
            }
            runner.change(database.id, answers, |_, database| {
                if let Some(cdc) = &mut database.cdc {
                    cdc.captures.retain(|c| !objects.contains(&c.object));
                }
                database.tables.retain(|id, _| !objects.contains(id));
                Ok(())
            })
        })
    }

    /// The source table is dropped, and its instances with it.
    pub(crate) fn drop_captures(&self, database: &mut Database, source: i32) {
        let objects: Vec<i32> = database.captures_of(source).map(|c| c.object).collect();
        if let Some(cdc) = &mut database.cdc {
            cdc.captures.retain(|c| c.source != source);
        }
        database.tables.retain(|id, _| !objects.contains(id));
    }

    /// For `cdc.ddl_history`.
    pub(crate) fn remember_ddl(&self, database: &mut Database, source: i32, command: &str) {
        let objects: Vec<i32> = database.captures_of(source).map(|c| c.object).collect();
        let (lsn, time) = (self.engine.log.next().0, self.engine.local_now());
        if let Some(cdc) = &mut database.cdc {
            for object in objects {
                cdc.history.push(DdlEntry { source, object, command: command.to_owned(), lsn, time: time.clone() });
            }
        }
    }

    /// A captured column has a new type: the change tables get it too.
    pub(crate) fn alter_captured(
        &self,
        database: &mut Database,
        source: &Table,
        old: &Column,
        new: &Column,
        frame: &Frame,
    ) -> Outcome<()> {
        let Some(cdc) = &mut database.cdc else { return Ok(()) };
        for capture in cdc.captures.iter_mut().filter(|c| c.source == source.id) {
            let Some(at) = capture.columns.iter().position(|c| c.id == old.id) else { continue };
            let mut changed = (**capture).clone();
            changed.columns[at].kind = new.kind.clone();
            if let Some(table) = database.tables.get(&capture.object).cloned() {
                let mut table = (*table).clone();
                let before = table.columns[at + 5].clone();
                let after = Column { kind: new.kind.clone(), collation: new.collation.clone(), ..before.clone() };
                self.convert_column(&table, &before, &after, frame)?;
                table.columns[at + 5] = after;
                database.tables.insert(table.id, Arc::new(table));
            }
            *capture = Arc::new(changed);
        }
        Ok(())
    }
}

pub(crate) fn not_enabled(database: &str) -> SqlError {
    let text = format!(
        "The database '{database}' is not enabled for Change Data Capture. Ensure that the correct database context is set and retry the operation. To report on the databases enabled for Change Data Capture, query the is_cdc_enabled column in the sys.databases catalog view."
    );
    SqlError::new(22901, text)
}

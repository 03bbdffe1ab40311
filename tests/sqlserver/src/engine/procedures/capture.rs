//! Procedures of change data capture.

use super::Given;
use crate::engine::cdc::enable::{Wanted, not_enabled};
use crate::engine::fault::{Outcome, SqlError};
use crate::engine::kinds::kind::{SYSNAME, nvarchar};
use crate::engine::kinds::text::same_name;
use crate::engine::log::Lsn;
use crate::engine::run::Runner;
use crate::session::Answers;
use crate::types::{Length, SqlType};
use crate::value::SqlValue;

impl Runner {
    pub(super) fn capture_procedure(
        &mut self,
        name: &str,
        given: &Given,
        answers: &mut dyn Answers,
    ) -> Outcome<Option<i32>> {
        match name {
            "sp_cdc_enable_db" => self.enable_database(answers)?,
            "sp_cdc_disable_db" => self.disable_database(answers)?,
            "sp_cdc_enable_table" => {
                let list = given.text("captured_column_list", 6).unwrap_or_default();
                let columns =
                    list.split(',').map(|c| c.trim().trim_matches(['[', ']']).to_owned()).filter(|c| !c.is_empty());
                let wanted = Wanted {
                    schema: given.text("source_schema", 0).unwrap_or_default(),
                    table: given.text("source_name", 1).unwrap_or_default(),
                    role: given.text("role_name", 2),
                    instance: given.text("capture_instance", 3),
                    net_changes: given.int("supports_net_changes", 4).map(|n| n != 0),
                    index: given.text("index_name", 5),
                    columns: columns.collect(),
                };
                self.enable_table(&wanted, answers)?;
            }
            "sp_cdc_disable_table" => {
                let (schema, table) = (
                    given.text("source_schema", 0).unwrap_or_default(),
                    given.text("source_name", 1).unwrap_or_default(),
                );
                let instance = given.text("capture_instance", 2).unwrap_or_else(|| "all".into());
                self.disable_table(&schema, &table, &instance, answers)?;
            }
            "sp_cdc_help_change_data_capture" => self.help_capture(given, answers)?,
            "sp_cdc_help_jobs" => self.help_jobs(answers)?,
            "sp_cdc_get_captured_columns" => self.captured_columns(given, answers)?,
            "sp_cdc_change_job" => {
                let database = self.usable()?;
                self.engine.jobs.change_settings(database.id, |s| {
                    s.transactions = given.int("maxtrans", 1).unwrap_or(s.transactions);
                    s.scans = given.int("maxscans", 2).unwrap_or(s.scans);
                    s.polling = given.int("pollinginterval", 4).unwrap_or(s.polling);
                    s.retention = given.int("retention", 5).unwrap_or(s.retention);
                    s.threshold = given.int("threshold", 6).unwrap_or(s.threshold);
                });
            }
            // The jobs are always there; starting and stopping is the agent's.
            "sp_cdc_start_job" | "sp_cdc_add_job" => self.engine.jobs.set_agent(true),
            "sp_cdc_stop_job" | "sp_cdc_drop_job" => self.engine.jobs.set_agent(false),
            "sp_cdc_cleanup_change_table" => {
                let database = self.usable()?;
                let instance = given.text("capture_instance", 0);
                let mark = match given.get("low_water_mark", 1) {
                    Some(SqlValue::Bytes(bytes)) => Lsn::from_bytes(bytes),
                    _ => None,
                };
                if let Some(mark) = mark {
                    self.clean(database.id, instance.as_deref(), mark, answers)?;
                }
            }
            _ => return Ok(None),
        }
        Ok(Some(0))
    }

    /// "sys.sp_cdc_help_change_data_capture": a row for each instance.
    fn help_capture(&mut self, given: &Given, answers: &mut dyn Answers) -> Outcome<()> {
        let database = self.usable()?;
        if database.cdc.is_none() {
            return Err(not_enabled(&database.name).into());
        }
        let table = given.text("source_name", 1);
        let long = || SqlType::NVarChar(Length::Max);
        let rows = database.captures().iter().filter_map(|c| {
            let source = database.tables.get(&c.source)?;
            if table.as_ref().is_some_and(|t| !same_name(t, &source.name)) {
                return None;
            }
            let names = |names: Vec<String>| {
                SqlValue::Text(names.iter().map(|n| format!("[{n}]")).collect::<Vec<_>>().join(", "))
            };
            let text = |t: &str| SqlValue::Text(t.to_owned());
            Some(vec![
                text(&source.schema),
                text(&source.name),
                text(&c.name),
                SqlValue::Int(c.object.into()),
                SqlValue::Int(c.source.into()),
                SqlValue::Bytes(c.start_lsn.0.to_vec()),
                SqlValue::Null,
                SqlValue::Bit(c.net_changes),
                SqlValue::Null,
                c.role.as_deref().map_or(SqlValue::Null, text),
                c.index_name.as_deref().map_or(SqlValue::Null, text),
                SqlValue::Null,
                c.created.clone(),
                names(c.key_names().collect()),
                names(c.columns.iter().map(|k| k.name.clone()).collect()),
            ])
        });
        let columns = [
            ("source_schema", SYSNAME),
            ("source_table", SYSNAME),
            ("capture_instance", SYSNAME),
            ("object_id", SqlType::Int),
            ("source_object_id", SqlType::Int),
            ("start_lsn", SqlType::Binary(10)),
            ("end_lsn", SqlType::Binary(10)),
            ("supports_net_changes", SqlType::Bit),
            ("has_drop_pending", SqlType::Bit),
            ("role_name", SYSNAME),
            ("index_name", SYSNAME),
            ("filegroup_name", SYSNAME),
            ("create_date", SqlType::DateTime),
            ("index_column_list", long()),
            ("captured_column_list", long()),
        ];
        let rows = rows.collect();
        self.result(&columns, rows, answers)
    }

    fn help_jobs(&mut self, answers: &mut dyn Answers) -> Outcome<()> {
        let database = self.usable()?;
        if database.cdc.is_none() {
            return Err(not_enabled(&database.name).into());
        }
        let settings = self.engine.jobs.settings(database.id);
        let row = |kind: &str, numbers: [i64; 5]| {
            let id = SqlValue::Uuid([0; 16]);
            let name = SqlValue::Text(format!("cdc.{}_{kind}", database.name));
            let mut row = vec![id, SqlValue::Text(kind.into()), name];
            row.extend([SqlValue::Int(numbers[0]), SqlValue::Int(numbers[1]), SqlValue::Bit(kind == "capture")]);
            row.extend([SqlValue::Int(numbers[2]), SqlValue::Int(numbers[3]), SqlValue::Int(numbers[4])]);
            row
        };
        let columns = [
            ("job_id", SqlType::UniqueIdentifier),
            ("job_type", nvarchar(20)),
            ("job_name", SYSNAME),
            ("maxtrans", SqlType::Int),
            ("maxscans", SqlType::Int),
            ("continuous", SqlType::Bit),
            ("pollinginterval", SqlType::BigInt),
            ("retention", SqlType::BigInt),
            ("threshold", SqlType::BigInt),
        ];
        let rows = vec![
            row("capture", [settings.transactions, settings.scans, settings.polling, 0, 0]),
            row("cleanup", [0, 0, 0, settings.retention, settings.threshold]),
        ];
        self.result(&columns, rows, answers)
    }

    fn captured_columns(&mut self, given: &Given, answers: &mut dyn Answers) -> Outcome<()> {
        let database = self.usable()?;
        let name = given.text("capture_instance", 0).unwrap_or_default();
        let Some(capture) = database.captures().iter().find(|c| same_name(&c.name, &name)).cloned() else {
            return Err(
                SqlError::new(22960, format!("Change data capture instance '{name}' has not been enabled.")).into()
            );
        };
        let rows = capture.columns.iter().enumerate().map(|(n, c)| {
            vec![
                SqlValue::Text(c.name.clone()),
                SqlValue::Int(n as i64 + 1),
                SqlValue::Text(c.kind.name().into()),
                SqlValue::Bit(c.computed),
            ]
        });
        let columns = [
            ("column_name", SYSNAME),
            ("column_ordinal", SqlType::Int),
            ("data_type", SYSNAME),
            ("is_computed", SqlType::Bit),
        ];
        self.result(&columns, rows.collect(), answers)
    }
}

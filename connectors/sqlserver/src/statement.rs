//! The texts of the statements. Names go through [`quoted`], values are parameters, but for the database's name
//! where it is an argument.
//!
//! All objects are named in full, with the database, and system objects in lower case: where a database's
//! collation tells case apart, that is how they are spelt.

use thalweg_core::relational::event::SkippedOperations;

use crate::errors::Fault;
use crate::options::QueryMode;

/// A name in brackets, with those that close doubled ("Database identifiers").
pub fn quoted(name: &str) -> String {
    format!("[{}]", name.replace(']', "]]"))
}

/// A text in quotes.
fn text(value: &str) -> String {
    format!("N'{}'", value.replace('\'', "''"))
}

/// The server's spelling of a database's name (`@P1`).
pub const DATABASE: &str = "SELECT name FROM sys.databases WHERE name = @P1";

/// Statements about one database.
#[derive(Debug, Clone)]
pub struct Statements {
    /// In brackets.
    db: String,
    /// In quotes.
    name: String,
}

impl Statements {
    pub fn of(database: &str) -> Self {
        Self { db: quoted(database), name: text(database) }
    }

    /// In brackets.
    pub(crate) fn db(&self) -> &str {
        &self.db
    }

    /// The newest number that was captured; null before the first.
    pub fn max_lsn(&self) -> String {
        format!("SELECT {}.sys.fn_cdc_get_max_lsn()", self.db)
    }

    /// The newest transaction with changes. Rows whose `tran_id` is 0x00 tell of scans that found nothing.
    pub fn last_transaction(&self) -> String {
        format!("SELECT MAX(start_lsn) FROM {}.cdc.lsn_time_mapping WHERE tran_id <> 0x00", self.db)
    }

    /// The last of the first transactions; `from` (`@P1`), if there is one, is counted among them.
    pub fn last_of(&self, transactions: u32, from: bool) -> String {
        let (filter, count) =
            if from { (" AND start_lsn >= @P1", u64::from(transactions) + 1) } else { ("", transactions.into()) };
        format!(
            "SELECT MAX(start_lsn) FROM (SELECT TOP ({count}) start_lsn FROM {}.cdc.lsn_time_mapping WHERE tran_id <> \
             0x00{filter} ORDER BY start_lsn) AS first_ones",
            self.db
        )
    }

    /// The oldest number from which some capture instance has changes.
    pub fn oldest(&self) -> String {
        format!("SELECT MIN(start_lsn) FROM {}.cdc.change_tables", self.db)
    }

    /// Rows of `cdc.change_tables` that a window (`@P1` to `@P2`) brought.
    pub fn new_instances(&self) -> String {
        format!("SELECT COUNT(*) FROM {}.cdc.change_tables WHERE start_lsn BETWEEN @P1 AND @P2", self.db)
    }

    /// Capture instances that have begun by `@P1`; of those that begin together the newest.
    pub fn instances(&self) -> String {
        format!(
            "SELECT OBJECT_SCHEMA_NAME(source_object_id, DB_ID({name})), OBJECT_NAME(source_object_id, DB_ID({name})), \
             capture_instance, object_id, start_lsn, source_object_id FROM (SELECT source_object_id, capture_instance, \
             object_id, start_lsn, ROW_NUMBER() OVER (PARTITION BY source_object_id, start_lsn ORDER BY create_date \
             DESC) AS age FROM {db}.cdc.change_tables WHERE start_lsn <= @P1) AS numbered WHERE age = 1 ORDER BY \
             source_object_id, start_lsn",
            db = self.db,
            name = self.name
        )
    }

    /// Columns of all change tables as they were captured.
    pub fn captured_columns(&self) -> String {
        format!(
            "SELECT cc.object_id, cc.column_name, cc.column_ordinal, t.name, b.name, c.max_length, c.precision, c.scale, \
             cc.is_computed FROM {db}.cdc.captured_columns AS cc JOIN {db}.sys.columns AS c ON c.object_id = \
             cc.object_id AND c.name = cc.column_name JOIN {db}.sys.types AS t ON t.user_type_id = c.user_type_id LEFT \
             JOIN {db}.sys.types AS b ON b.user_type_id = t.system_type_id ORDER BY cc.object_id, cc.column_ordinal",
            db = self.db
        )
    }

    /// Change tables that say which statement of its transaction a change is of.
    pub fn with_commands(&self) -> String {
        format!("SELECT object_id FROM {}.sys.columns WHERE name = N'__$command_id'", self.db)
    }

    /// Columns of a table (`@P1`).
    pub fn columns(&self) -> String {
        format!(
            "SELECT c.name, c.column_id, t.name, b.name, c.max_length, c.precision, c.scale, c.is_nullable, \
             c.is_identity, c.is_computed, d.definition FROM {db}.sys.columns AS c JOIN {db}.sys.types AS t ON \
             t.user_type_id = c.user_type_id LEFT JOIN {db}.sys.types AS b ON b.user_type_id = t.system_type_id LEFT \
             JOIN {db}.sys.default_constraints AS d ON d.object_id = c.default_object_id WHERE c.object_id = @P1 ORDER \
             BY c.column_id",
            db = self.db
        )
    }

    /// Columns of unique indexes of a table (`@P1`): those of the primary key first, then by kind and name.
    pub fn keys(&self) -> String {
        format!(
            "SELECT i.index_id, i.is_primary_key, c.name FROM {db}.sys.indexes AS i JOIN {db}.sys.index_columns AS ic \
             ON ic.object_id = i.object_id AND ic.index_id = i.index_id JOIN {db}.sys.columns AS c ON c.object_id = \
             ic.object_id AND c.column_id = ic.column_id WHERE i.object_id = @P1 AND i.is_unique = 1 AND i.has_filter = \
             0 AND i.name IS NOT NULL AND ic.key_ordinal > 0 ORDER BY i.is_primary_key DESC, i.type, i.name, \
             ic.key_ordinal",
            db = self.db
        )
    }

    /// Which of the change tables have rows from `@P1` on and up to `@P2`. Each is named by its place in the list.
    pub fn moved(&self, instances: &[&str]) -> String {
        let one = |(at, instance): (usize, &&str)| {
            format!(
                "SELECT {at} AS n WHERE EXISTS (SELECT 1 FROM {} WHERE __$start_lsn >= @P1 AND __$start_lsn <= @P2)",
                self.change_table(instance)
            )
        };
        instances.iter().enumerate().map(one).collect::<Vec<_>>().join(" UNION ALL ")
    }

    fn change_table(&self, instance: &str) -> String {
        format!("{}.cdc.{}", self.db, quoted(&format!("{instance}_CT")))
    }

    /// Whether SQL Server Agent runs: one value. `custom`: the user's statement.
    pub fn agent(&self, custom: Option<&str>) -> String {
        match custom {
            Some(statement) => statement.replace("#db", &self.db),
            None => format!(
                "SELECT CASE WHEN [status] = 4 THEN 1 ELSE 0 END FROM {}.sys.dm_server_services WHERE servicename LIKE \
                 N'SQL Server Agent (%'",
                self.db
            ),
        }
    }

    /// Capture instances that the user may read.
    pub fn help(&self) -> String {
        format!("EXEC {}.sys.sp_cdc_help_change_data_capture", self.db)
    }

    /// Tables that are captured, by object.
    pub fn enabled_objects(&self) -> String {
        format!("SELECT DISTINCT source_object_id FROM {}.cdc.change_tables", self.db)
    }

    pub fn jobs(&self) -> String {
        format!("EXEC {}.sys.sp_cdc_help_jobs", self.db)
    }

    /// Where the newest scan of the log began; all zeros if it found nothing.
    pub fn last_scan(&self) -> String {
        format!("SELECT TOP (1) start_lsn FROM {}.sys.dm_cdc_log_scan_sessions ORDER BY session_id DESC", self.db)
    }
}

/// Where a page of changes begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Begin {
    /// At the first change of a commit (`@P2`).
    Commit,
    /// Behind a change: its commit (`@P2`), its place in that (`@P3`), its operation (`@P4`), and the number of
    /// its statement (`@P5`), if the table has those and there is one.
    Behind { has_command: bool },
}

/// What a page of changes is read from.
#[derive(Debug, Clone)]
pub struct ChangeQuery {
    source: String,
    time: String,
    time_join: String,
    columns: String,
    /// Changes are told apart by the number of their statement too.
    commands: bool,
    skipped: String,
}

/// Columns in front of those that are captured.
pub const LEADING: usize = 4;

impl ChangeQuery {
    /// `columns`: expressions that read what was captured. `commands`: the table has `__$command_id`.
    pub fn new(
        statements: &Statements,
        instance: &str,
        columns: &[String],
        mode: QueryMode,
        commands: bool,
        skipped: SkippedOperations,
    ) -> Self {
        let db = &statements.db;
        let offset = "DATEPART(TZOFFSET, SYSDATETIMEOFFSET())";
        let (source, time, time_join) = match mode {
            QueryMode::Direct => (
                statements.change_table(instance),
                format!("TODATETIMEOFFSET(ltm.tran_begin_time, {offset})"),
                format!(" LEFT JOIN {db}.cdc.lsn_time_mapping AS ltm ON ltm.start_lsn = c.__$start_lsn"),
            ),
            QueryMode::Function => (
                format!(
                    "{db}.cdc.{}(@P2, @P1, N'all update old')",
                    quoted(&format!("fn_cdc_get_all_changes_{instance}"))
                ),
                format!("TODATETIMEOFFSET({db}.sys.fn_cdc_map_lsn_to_time(c.__$start_lsn), {offset})"),
                String::new(),
            ),
        };
        let codes = [(skipped.delete, "1"), (skipped.create, "2"), (skipped.update, "3, 4")];
        let codes: Vec<&str> = codes.into_iter().filter(|(skips, _)| *skips).map(|(_, code)| code).collect();
        let skipped =
            if codes.is_empty() { String::new() } else { format!(" AND c.__$operation NOT IN ({})", codes.join(", ")) };
        Self {
            source,
            time,
            time_join,
            columns: columns.iter().map(|column| format!("{column}, ")).collect(),
            commands: commands && mode == QueryMode::Direct,
            skipped,
        }
    }

    pub const fn has_commands(&self) -> bool {
        self.commands
    }

    /// At most so many changes up to a commit (`@P1`), and those that nothing tells from the last of them.
    pub fn page(&self, rows: usize, begin: Begin) -> String {
        let (command, command_order) =
            if self.commands { (", c.__$command_id", "c.__$command_id, ") } else { ("", "") };
        let Self { source, time, time_join, columns, skipped, .. } = self;
        let place = "(c.__$seqval > @P3 OR (c.__$seqval = @P3 AND c.__$operation > @P4))";
        let behind = match begin {
            Begin::Commit => "c.__$start_lsn >= @P2".to_owned(),
            Begin::Behind { has_command } => {
                let same_commit = match (self.commands, has_command) {
                    (false, _) => place.to_owned(),
                    (true, true) => {
                        format!("(c.__$command_id > @P5 OR (c.__$command_id = @P5 AND {place}))")
                    }
                    // Null stands in front of all numbers.
                    (true, false) => {
                        format!("(c.__$command_id IS NOT NULL OR (c.__$command_id IS NULL AND {place}))")
                    }
                };
                format!("(c.__$start_lsn > @P2 OR (c.__$start_lsn = @P2 AND {same_commit}))")
            }
        };
        format!(
            "SELECT TOP ({rows}) WITH TIES c.__$start_lsn, c.__$seqval, c.__$operation, c.__$update_mask, \
             {columns}{time}{command} FROM {source} AS c{time_join} WHERE c.__$start_lsn <= @P1 AND {behind}{skipped} \
             ORDER BY c.__$start_lsn, {command_order}c.__$seqval, c.__$operation"
        )
    }
}

/// The answer to a statement that gives one row.
///
/// # Errors
/// There is none, or there are several.
pub fn only<T>(rows: Vec<T>, what: &str) -> Result<T, Fault> {
    let count = rows.len();
    let mut rows = rows.into_iter();
    match (rows.next(), count) {
        (Some(row), 1) => Ok(row),
        _ => Err(Fault::Answer(format!("{count} rows came where {what} is one"))),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn sql_02_closing_brackets_and_quotes_are_doubled() {
        assert_eq!(quoted("ops ['a']"), "[ops ['a']]]");
        let statements = Statements::of("o'[d]");
        assert_eq!(statements.max_lsn(), "SELECT [o'[d]]].sys.fn_cdc_get_max_lsn()");
        assert!(statements.instances().contains("DB_ID(N'o''[d]')"));
        assert_eq!(statements.agent(Some("SELECT 1 FROM #db.sys.x")), "SELECT 1 FROM [o'[d]]].sys.x");
    }

    #[test]
    fn sql_22_skipped_operations_are_left_to_the_server() {
        let query = |items: &[&str]| {
            let items: Vec<String> = items.iter().map(|item| (*item).to_owned()).collect();
            let skipped = SkippedOperations::new(&items);
            ChangeQuery::new(&Statements::of("d"), "dbo_t", &[], QueryMode::Direct, true, skipped)
                .page(1, Begin::Commit)
        };
        assert!(query(&["u", "d"]).contains("c.__$operation NOT IN (1, 3, 4)"));
        assert!(query(&["c"]).contains("c.__$operation NOT IN (2)"));
        assert!(!query(&["t", "none"]).contains("NOT IN"));
    }

    #[test]
    fn one_row_is_one_row() {
        assert_eq!(only(vec![7], "a name").unwrap(), 7);
        for rows in [vec![], vec![1, 2]] {
            assert!(only(rows, "a name").is_err());
        }
    }
}

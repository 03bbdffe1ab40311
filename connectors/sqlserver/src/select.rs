//! The statements of snapshots: which tables there are, locks, and the rows of tables.

use thalweg_core::relational::column::{Column, jdbc};
use thalweg_core::relational::table::Table;
use thalweg_core::relational::table_id::TableId;

use crate::options::Isolation;
use crate::statement::{Statements, quoted};

/// The savepoint behind which tables are locked.
const SAVEPOINT: &str = "dbz_schema_snapshot";

/// When a table is read.
pub const NOW: &str = "SELECT SYSDATETIMEOFFSET()";

impl Statements {
    /// Tables that users made: schema, name, object. Those that belong to the server are left out.
    pub fn tables(&self) -> String {
        format!(
            "SELECT s.name, t.name, t.object_id FROM {db}.sys.tables AS t JOIN {db}.sys.schemas AS s ON s.schema_id = \
             t.schema_id WHERE t.is_ms_shipped = 0 ORDER BY s.name, t.name",
            db = self.db()
        )
    }
}

/// A table by its whole name.
pub fn table_name(id: &TableId) -> String {
    let parts = [id.catalog(), id.schema(), Some(id.table())];
    parts.into_iter().flatten().map(quoted).collect::<Vec<_>>().join(".")
}

/// Begins the transaction of a snapshot. `lock_timeout_ms`: -1 waits for ever.
pub fn begin(isolation: Isolation, lock_timeout_ms: i64) -> String {
    let (level, savepoint) = match isolation {
        Isolation::Exclusive | Isolation::RepeatableRead => {
            ("REPEATABLE READ", format!(" SAVE TRANSACTION {SAVEPOINT};"))
        }
        Isolation::ReadCommitted => ("READ COMMITTED", String::new()),
        Isolation::ReadUncommitted => ("READ UNCOMMITTED", String::new()),
        Isolation::Snapshot => ("SNAPSHOT", String::new()),
    };
    format!(
        "SET LOCK_TIMEOUT {}; SET TRANSACTION ISOLATION LEVEL {level}; BEGIN TRANSACTION;{savepoint}",
        lock_timeout_ms.max(-1)
    )
}

/// Locks a table until the transaction ends or is rolled back to its savepoint.
pub fn lock(id: &TableId) -> String {
    format!("SELECT TOP (0) * FROM {} WITH (TABLOCKX)", table_name(id))
}

/// Lets the locks go that structures were read under.
pub const RELEASE: &str = "ROLLBACK TRANSACTION dbz_schema_snapshot";

/// How many rows a table has.
pub fn count(id: &TableId) -> String {
    format!("SELECT COUNT_BIG(*) FROM {}", table_name(id))
}

/// The rows of a table. `expressions`: of the columns that are read.
pub fn rows(id: &TableId, expressions: &[String]) -> String {
    format!("SELECT {} FROM {}", expressions.join(", "), table_name(id))
}

/// The user's statement. All columns become those that are read.
pub fn overridden(statement: &str, expressions: &[String]) -> String {
    let trimmed = statement.trim_start();
    let all = |text: &str| -> Option<String> {
        let rest = text.get(6..).filter(|_| text.get(..6).is_some_and(|word| word.eq_ignore_ascii_case("select")))?;
        let rest = rest.strip_prefix(|c: char| c.is_whitespace())?.trim_start().strip_prefix('*')?;
        let from = rest.trim_start();
        let is_from = from.get(..4).is_some_and(|word| word.eq_ignore_ascii_case("from"));
        is_from.then(|| format!("SELECT {} {from}", expressions.join(", ")))
    };
    all(trimmed).unwrap_or_else(|| trimmed.to_owned())
}

/// Expressions that read the columns of a table whose place in `kept` is true.
pub fn expressions(table: &Table, kept: &[bool]) -> Vec<String> {
    let columns = table.columns().iter().zip(kept).filter(|(_, kept)| **kept);
    columns.map(|(column, _)| expression(column)).collect()
}

/// Money, which a column may also have under another name, comes as a double otherwise.
fn expression(column: &Column) -> String {
    let name = quoted(&column.name);
    match (column.length, column.scale) {
        (Some(length), Some(scale))
            if column.jdbc_type == jdbc::DECIMAL && !column.type_name.starts_with("decimal") =>
        {
            format!("CAST({name} AS decimal({length},{scale})) AS {name}")
        }
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn id() -> TableId {
        TableId::new(Some("o'[d]"), Some("dbo"), "a ]b")
    }

    #[test]
    fn sql_02_names_are_quoted() {
        assert_eq!(count(&id()), "SELECT COUNT_BIG(*) FROM [o'[d]]].[dbo].[a ]]b]");
        assert_eq!(lock(&id()), "SELECT TOP (0) * FROM [o'[d]]].[dbo].[a ]]b] WITH (TABLOCKX)");
    }

    #[test]
    fn money_is_read_as_a_decimal() {
        let columns = vec![
            Column::new("id", 1, jdbc::INTEGER, "int"),
            Column::new("price", 2, jdbc::DECIMAL, "money").sized(19).scaled(4),
            Column::new("rate", 3, jdbc::DECIMAL, "decimal").sized(9).scaled(2),
            Column::new("left out", 4, jdbc::INTEGER, "int"),
        ];
        let table = Table::new(id(), columns, Vec::new()).unwrap();
        assert_eq!(
            expressions(&table, &[true, true, true, false]),
            ["[id]", "CAST([price] AS decimal(19,4)) AS [price]", "[rate]"]
        );
    }

    #[test]
    fn a_statement_of_the_users_has_the_columns_that_are_read() {
        let columns = ["[a]".to_owned(), "[b]".to_owned()];
        for (statement, expected) in [
            ("select  * from dbo.t WHERE x = '*'", "SELECT [a], [b] from dbo.t WHERE x = '*'"),
            (" SELECT\n*\nFROM t", "SELECT [a], [b] FROM t"),
            ("SELECT *, 1 FROM t", "SELECT *, 1 FROM t"),
            ("SELECT a FROM t", "SELECT a FROM t"),
            ("WITH x AS (SELECT 1 a) SELECT * FROM x", "WITH x AS (SELECT 1 a) SELECT * FROM x"),
            ("é", "é"),
        ] {
            assert_eq!(overridden(statement, &columns), expected, "{statement}");
        }
    }

    #[test]
    fn tables_are_locked_behind_a_savepoint() {
        assert_eq!(
            begin(Isolation::RepeatableRead, 10_000),
            "SET LOCK_TIMEOUT 10000; SET TRANSACTION ISOLATION LEVEL REPEATABLE READ; BEGIN TRANSACTION; SAVE TRANSACTION \
             dbz_schema_snapshot;"
        );
        assert_eq!(
            begin(Isolation::Snapshot, -1),
            "SET LOCK_TIMEOUT -1; SET TRANSACTION ISOLATION LEVEL SNAPSHOT; BEGIN TRANSACTION;"
        );
    }
}

//! The `OUTPUT` clause.
//!
//! Follows "OUTPUT clause (Transact-SQL)". The rows that a statement has written are put aside, and its list
//! is a query over them, with the sources `inserted` and `deleted`.

use std::sync::Arc;

use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};

use super::batch::{Frame, Runner};
use super::select::Plan;
use crate::engine::bind::{Bound, Scope};
use crate::engine::catalogue::{Database, Table};
use crate::engine::fault::Outcome;
use crate::engine::sql::statement::{Insert, InsertSource, Output};
use crate::session::{Answers, Column};

const KEPT: &str = "put_aside";

/// Collects what a statement writes.
pub(super) struct Aside<'a> {
    db: &'a Connection,
    width: usize,
    wanted: bool,
}

impl<'a> Aside<'a> {
    pub(super) fn new(db: &'a Connection, table: &Table, output: Option<&Output>) -> Outcome<Self> {
        let width = table.kept().count();
        if output.is_some() {
            let names = |prefix: &str| {
                table.kept().map(|c| format!("{prefix}{}", c.kept_name())).collect::<Vec<_>>().join(", ")
            };
            db.execute_batch(&format!(
                "DROP TABLE IF EXISTS temp.{KEPT}; CREATE TEMP TABLE {KEPT} (action, {}, {})",
                names("d"),
                names("i")
            ))?;
        }
        Ok(Self { db, width, wanted: output.is_some() })
    }

    pub(super) fn row(&self, action: &str, deleted: Option<&[Value]>, inserted: Option<&[Value]>) -> Outcome<()> {
        if !self.wanted {
            return Ok(());
        }
        let nulls = vec![Value::Null; self.width];
        let values = [Value::Text(action.into())];
        let values = values.iter().chain(deleted.unwrap_or(&nulls)).chain(inserted.unwrap_or(&nulls));
        let places: Vec<String> = (1..=2 * self.width + 1).map(|n| format!("?{n}")).collect();
        self.db
            .prepare_cached(&format!("INSERT INTO temp.{KEPT} VALUES ({})", places.join(", ")))?
            .execute(params_from_iter(values))?;
        Ok(())
    }
}

impl Runner {
    /// Answers the list, or puts it into a table.
    pub(super) fn put_out(
        &mut self,
        output: &Output,
        database: &Arc<Database>,
        table: &Arc<Table>,
        frame: &mut Frame,
        answers: &mut dyn Answers,
    ) -> Outcome<()> {
        let plan = {
            let mut binder = self.binder(frame);
            let mut sources = Vec::new();
            for (title, prefix) in [("deleted", "d"), ("inserted", "i")] {
                let mut source = binder.table_source(title, "p", database, table)?;
                for column in &mut source.columns {
                    column.typed.sql = column.typed.sql.replace("p.c", &format!("p.{prefix}c"));
                    column.typed.nullable = column.typed.nullable || title == "deleted";
                }
                source.table = None;
                sources.push(source);
            }
            binder.scopes.push(Scope { sources });
            let action = crate::engine::bind::Typed::new("p.action", crate::engine::kinds::kind::nvarchar(10));
            binder.action = Some(action);
            let columns = binder.projection(&output.items)?;
            let list: Vec<String> =
                columns.iter().enumerate().map(|(n, c)| format!("{} AS k{}", c.typed.sql, n + 1)).collect();
            let sql = format!("SELECT {} FROM temp.{KEPT} AS p", list.join(", "));
            Plan {
                bound: Bound { sql, columns },
                parameters: binder.parameters,
                reads: Vec::new(),
                prepared: binder.prepared,
            }
        };
        match &output.into {
            None => {
                let told: Vec<Column> = plan
                    .bound
                    .columns
                    .iter()
                    .map(|c| Column {
                        name: c.name.clone(),
                        kind: c.typed.kind.clone(),
                        nullable: c.typed.nullable,
                        identity: false,
                        computed: false,
                    })
                    .collect();
                answers.columns(&told)?;
                self.rows(&plan, answers, &mut |answers, row| Ok(answers.row(&row)?))?;
            }
            Some((name, columns)) => {
                let insert = Insert {
                    top: None,
                    table: name.clone(),
                    hints: Vec::new(),
                    columns: columns.clone(),
                    output: None,
                    source: InsertSource::Defaults,
                };
                self.insert_bound(&insert, plan.bound, plan.parameters, frame, answers)?;
            }
        }
        self.db.execute_batch(&format!("DROP TABLE IF EXISTS temp.{KEPT}"))?;
        Ok(())
    }
}

//! `INSERT … EXECUTE`.
//!
//! Follows "INSERT (Transact-SQL)", `execute_statement`: every result has the columns of the table, and all of
//! their rows are inserted when the procedure has ended. The rows are in memory meanwhile.

use super::batch::{Frame, Runner};
use crate::engine::bind::{Bound, Output, Typed};
use crate::engine::fault::{Outcome, SqlError};
use crate::engine::kinds::convert;
use crate::engine::sql::statement::{Execute, Insert};
use crate::engine::views::{Rows, ViewColumn};
use crate::session::{Answers, Cancelled, Change, Column, Message};
use crate::types::SqlType;
use crate::value::SqlValue;

impl Runner {
    pub(super) fn insert_execute(
        &mut self,
        insert: &Insert,
        execute: &Execute,
        frame: &mut Frame,
        answers: &mut dyn Answers,
    ) -> Outcome<()> {
        let (database, table) = self.binder(frame).known_table(&insert.table)?;
        let mut results =
            Results { outer: answers, kinds: Vec::new(), current: Vec::new(), rows: Vec::new(), failed: None };
        let ran = self.run_execute(execute, frame, &mut results);
        let Results { kinds, rows, failed, .. } = results;
        if let Some(error) = failed {
            return Err(error.into());
        }
        ran?;
        let count = if kinds.is_empty() {
            0
        } else {
            self.in_transaction(answers, |runner, answers| {
                let count = runner.write_rows(insert, &database, &table, frame, answers, &mut |binder| {
                    let kept = binder.alias("v");
                    let typed = |n: usize, kind: &SqlType| Typed {
                        nullable: true,
                        ..Typed::new(format!("{kept}.k{}", n + 1), kind.clone())
                    };
                    let output = |(n, kind)| Output { name: String::new(), typed: typed(n, kind), assigned: None };
                    let columns = kinds.iter().enumerate().map(output).collect();
                    let view = |kind: &SqlType| ViewColumn { name: "", kind: kind.clone(), nullable: true };
                    let sql = format!("SELECT * FROM temp.{kept}");
                    binder.prepared.push(Rows { kept, columns: kinds.iter().map(view).collect(), rows: rows.clone() });
                    Ok(Bound { sql, columns })
                })?;
                if let Some(output) = &insert.output {
                    runner.put_out(output, &database, &table, frame, answers)?;
                }
                Ok(count)
            })?
        };
        self.counted(count);
        Ok(self.done(count, answers)?)
    }
}

/// Keeps the rows of all results; messages go on to the client.
struct Results<'a> {
    outer: &'a mut dyn Answers,
    /// Types of the first result, to which those of the others are converted.
    kinds: Vec<SqlType>,
    current: Vec<SqlType>,
    rows: Vec<Vec<SqlValue>>,
    failed: Option<SqlError>,
}

impl Answers for Results<'_> {
    fn columns(&mut self, columns: &[Column]) -> Result<(), Cancelled> {
        self.current = columns.iter().map(|c| c.kind.clone()).collect();
        if self.kinds.is_empty() {
            self.kinds.clone_from(&self.current);
        } else if self.kinds.len() != self.current.len() {
            let text = "Column name or number of supplied values does not match table definition.";
            self.failed.get_or_insert(SqlError::new(213, text).state(7));
            return Err(Cancelled);
        }
        Ok(())
    }

    fn row(&mut self, values: &[SqlValue]) -> Result<(), Cancelled> {
        let converted = values.iter().zip(&self.current).zip(&self.kinds).map(|((value, from), to)| {
            if from == to { Ok(value.clone()) } else { convert::convert(value.clone(), from, to, -1) }
        });
        match converted.collect() {
            Ok(row) => {
                self.rows.push(row);
                Ok(())
            }
            Err(error) => {
                self.failed.get_or_insert(error);
                Err(Cancelled)
            }
        }
    }

    fn message(&mut self, message: &Message) -> Result<(), Cancelled> {
        self.outer.message(message)
    }

    fn change(&mut self, change: &Change) -> Result<(), Cancelled> {
        self.outer.change(change)
    }

    fn cancelled(&self) -> bool {
        self.failed.is_some() || self.outer.cancelled()
    }
}

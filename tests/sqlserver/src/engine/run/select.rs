//! Running queries.

use rusqlite::params_from_iter;
use rusqlite::types::Value;
use sqlparser::ast::{Expr, Query, SetExpr};

use super::batch::{Frame, Runner};
use crate::engine::bind::{Bound, Read};
use crate::engine::fault::{Outcome, SqlError};
use crate::engine::kinds::stored;
use crate::engine::locks::{Mode, Target};
use crate::engine::views::Rows;
use crate::session::{Answers, Cancelled, Column};
use crate::types::SqlType;
use crate::value::SqlValue;

/// A query that is ready to run.
pub(crate) struct Plan {
    pub(crate) bound: Bound,
    pub(crate) parameters: Vec<Value>,
    pub(crate) reads: Vec<Read>,
    pub(crate) prepared: Vec<Rows>,
}

/// Takes a row, and may answer it.
type OnRow<'a> = &'a mut dyn FnMut(&mut dyn Answers, Vec<SqlValue>) -> Outcome<()>;

impl Runner {
    pub(crate) fn plan(&self, query: &Query, frame: &Frame) -> Outcome<Plan> {
        let mut binder = self.binder(frame);
        let bound = binder.query(query)?;
        Ok(Plan { bound, parameters: binder.parameters, reads: binder.reads, prepared: binder.prepared })
    }

    pub(super) fn select(&mut self, query: &Query, frame: &mut Frame, answers: &mut dyn Answers) -> Outcome<()> {
        if let SetExpr::Select(select) = query.body.as_ref()
            && let Some(into) = &select.into
        {
            return self.select_into(query, into, frame, answers);
        }
        let assigned = self.in_transaction(answers, |runner, answers| {
            let plan = runner.readable(query, frame, answers)?;
            let columns = &plan.bound.columns;
            if columns.iter().any(|c| c.assigned.is_some()) {
                if columns.iter().any(|c| c.assigned.is_none()) {
                    let text = "A SELECT statement that assigns a value to a variable must not be combined with data-retrieval operations.";
                    return Err(SqlError::new(141, text).class(15).into());
                }
                let mut last = None;
                let count = runner.rows(&plan, answers, &mut |_, row| {
                    last = Some(row);
                    Ok(())
                })?;
                let targets: Vec<(String, SqlType)> =
                    columns.iter().map(|c| (c.assigned.clone().unwrap_or_default(), c.typed.kind.clone())).collect();
                return Ok((Some((targets, last)), count));
            }
            let told: Vec<Column> = columns
                .iter()
                .map(|c| Column {
                    name: c.name.clone(),
                    kind: c.typed.kind.clone(),
                    nullable: c.typed.nullable,
                    identity: c.typed.identity,
                    computed: c.typed.computed,
                })
                .collect();
            answers.columns(&told)?;
            let count = runner.rows(&plan, answers, &mut |answers, row| Ok(answers.row(&row)?))?;
            Ok((None, count))
        })?;
        let (assignment, count) = assigned;
        self.counted(count);
        match assignment {
            Some((targets, row)) => {
                for ((name, from), value) in targets.into_iter().zip(row.into_iter().flatten()) {
                    let Some((kind, _)) = frame.variables.get(&name.to_lowercase()).cloned() else {
                        return Err(SqlError::unknown_variable(&name).into());
                    };
                    frame.set(&name, Self::stored_as(value, &from, &kind)?);
                }
            }
            None => self.done(count, answers)?,
        }
        Ok(())
    }

    /// Plans a query; under `SNAPSHOT` what is seen is fixed before.
    pub(crate) fn readable(&mut self, query: &Query, frame: &Frame, _: &mut dyn Answers) -> Outcome<Plan> {
        let plan = self.plan(query, frame)?;
        self.see(&plan.reads, true)?.map_or(Ok(plan), |()| self.plan(query, frame))
    }

    /// `query`: the statement only reads. `Some`: a snapshot was taken now, and what was bound before is to be bound again.
    pub(crate) fn see(&mut self, reads: &[Read], query: bool) -> Outcome<Option<()>> {
        let before = self.transaction.as_ref().is_some_and(|t| t.snapshot.is_some());
        if reads.is_empty() {
            return Ok(None);
        }
        let world = self.engine.world();
        let databases: Vec<i32> = reads.iter().filter_map(|r| world.table(r.table).map(|(d, _)| d.id)).collect();
        self.take_snapshot(&databases)?;
        if query {
            self.take_statement_snapshot(&databases);
        }
        let after = self.transaction.as_ref().is_some_and(|t| t.snapshot.is_some());
        Ok((before != after).then_some(()))
    }

    /// Takes the locks of a plan, opens one state of the data, and hands out the rows. The result is their number.
    pub(crate) fn rows(&mut self, plan: &Plan, answers: &mut dyn Answers, on_row: OnRow<'_>) -> Outcome<u64> {
        self.prepare(&plan.prepared)?;
        self.hold(&plan.reads, answers)?;
        let passing: Vec<(Target, Mode)> =
            plan.reads.iter().filter(|r| !r.hold).filter_map(|r| Some((Target::Table(r.table), r.mode?))).collect();
        let db = &self.db;
        {
            let asked: &dyn Answers = answers;
            self.engine.locks.pass(&passing, self.asker(), &|| self.stopped(asked), || {
                // The first read opens SQLite's snapshot.
                db.execute_batch("BEGIN; SELECT 1 FROM _commits LIMIT 1")?;
                Ok(())
            })?;
        }
        let limit = self.state.read(|s| s.row_limit);
        let kinds: Vec<SqlType> = plan.bound.columns.iter().map(|c| c.typed.kind.clone()).collect();
        let mut statement = self.db.prepare_cached(&plan.bound.sql)?;
        let mut rows = statement.query(params_from_iter(plan.parameters.iter()))?;
        let mut count = 0;
        while let Some(row) = rows.next()? {
            if count % 64 == 0
                && let Some(fault) = self.stopped(answers)
            {
                return Err(fault);
            }
            let mut values = Vec::with_capacity(kinds.len());
            for (n, kind) in kinds.iter().enumerate() {
                values.push(stored::decode(row.get_ref(n)?, kind));
            }
            on_row(answers, values)?;
            count += 1;
            if count == limit {
                break;
            }
        }
        drop(rows);
        drop(statement);
        self.db.execute_batch("COMMIT")?;
        self.unprepare(&plan.prepared)?;
        Ok(count)
    }

    /// Takes those locks of the reads that stay.
    pub(crate) fn hold(&self, reads: &[Read], answers: &dyn Answers) -> Outcome<()> {
        for read in reads.iter().filter(|r| r.hold) {
            if let Some(mode) = read.mode {
                self.engine.locks.take(Target::Table(read.table), mode, self.asker(), &|| self.stopped(answers))?;
            }
        }
        Ok(())
    }

    /// Puts rows of system views where SQLite finds them.
    pub(crate) fn prepare(&self, prepared: &[Rows]) -> Outcome<()> {
        for rows in prepared {
            let names: Vec<String> = (1..=rows.columns.len()).map(|n| format!("k{n}")).collect();
            self.db.execute_batch(&format!(
                "DROP TABLE IF EXISTS temp.{0}; CREATE TEMP TABLE {0} ({1})",
                rows.kept,
                names.join(", ")
            ))?;
            let places: Vec<String> = (1..=rows.columns.len()).map(|n| format!("?{n}")).collect();
            let mut insert =
                self.db.prepare(&format!("INSERT INTO temp.{} VALUES ({})", rows.kept, places.join(", ")))?;
            for row in &rows.rows {
                let values = row.iter().zip(&rows.columns).map(|(value, column)| stored::encode(value, &column.kind));
                insert.execute(params_from_iter(values))?;
            }
        }
        Ok(())
    }

    pub(crate) fn unprepare(&self, prepared: &[Rows]) -> Outcome<()> {
        for rows in prepared {
            self.db.execute_batch(&format!("DROP TABLE IF EXISTS temp.{}", rows.kept))?;
        }
        Ok(())
    }

    /// The value of an expression outside of any query, as a value of a type if one is given.
    pub(crate) fn scalar(
        &mut self,
        expr: &Expr,
        to: Option<&SqlType>,
        frame: &Frame,
        answers: &mut dyn Answers,
    ) -> Outcome<SqlValue> {
        let plan = |runner: &Self| -> Outcome<Plan> {
            let mut binder = runner.binder(frame);
            let typed = binder.value(expr)?;
            let typed = match to {
                Some(to) => binder.convert(typed, to),
                None => typed,
            };
            let bound = Bound {
                sql: format!("SELECT {} AS k1", typed.sql),
                columns: vec![crate::engine::bind::Output { name: String::new(), typed, assigned: None }],
            };
            Ok(Plan { bound, parameters: binder.parameters, reads: binder.reads, prepared: binder.prepared })
        };
        self.one(plan, answers)
    }

    /// Whether a condition is true.
    pub(crate) fn holds(&mut self, condition: &Expr, frame: &Frame, answers: &mut dyn Answers) -> Outcome<bool> {
        let plan = |runner: &Self| -> Outcome<Plan> {
            let mut binder = runner.binder(frame);
            let condition = binder.condition(condition)?;
            let typed = crate::engine::bind::Typed::new("k1", SqlType::Int);
            let bound = Bound {
                sql: format!("SELECT CASE WHEN {condition} THEN 1 ELSE 0 END AS k1"),
                columns: vec![crate::engine::bind::Output { name: String::new(), typed, assigned: None }],
            };
            Ok(Plan { bound, parameters: binder.parameters, reads: binder.reads, prepared: binder.prepared })
        };
        Ok(self.one(plan, answers)? == SqlValue::Int(1))
    }

    fn one(&mut self, plan: impl Fn(&Self) -> Outcome<Plan>, answers: &mut dyn Answers) -> Outcome<SqlValue> {
        let first = plan(self)?;
        let mut value = SqlValue::Null;
        let keep: OnRow<'_> = &mut |_, row| {
            value = row.into_iter().next().unwrap_or(SqlValue::Null);
            Ok(())
        };
        if first.reads.is_empty() {
            let result = self.rows(&first, answers, keep);
            if result.is_err() && !self.db.is_autocommit() {
                self.db.execute_batch("ROLLBACK")?;
            }
            result?;
            return Ok(value);
        }
        self.in_transaction(answers, |runner, answers| {
            let plan = runner.see(&first.reads, true)?.map_or(Ok(first), |()| plan(runner))?;
            runner.rows(&plan, answers, keep)
        })?;
        Ok(value)
    }

    /// `@@ROWCOUNT`.
    pub(crate) fn counted(&self, count: u64) {
        self.state.change(|s| s.rowcount = count as i64);
    }

    /// Ends a statement that counts rows.
    pub(crate) fn done(&self, count: u64, answers: &mut dyn Answers) -> Result<(), Cancelled> {
        let silent = self.state.read(|s| s.nocount);
        answers.done((!silent).then_some(count))
    }
}

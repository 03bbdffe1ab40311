//! `MERGE`.
//!
//! Follows "MERGE (Transact-SQL)": target and source are joined in full, each row takes the first clause that
//! holds, and a target row that two source rows want to change is error 8672.

use std::collections::HashSet;
use std::sync::Arc;

use rusqlite::types::Value;

use super::batch::{Frame, Runner};
use super::insert::{WORK, Work, default_of, notes};
use super::output::Aside;
use super::rows::Writer;
use super::update::new_value_of;
use crate::engine::bind::{Binder, Scope};
use crate::engine::catalogue::{Database, Table};
use crate::engine::fault::{Outcome, SqlError};
use crate::engine::locks::Mode;
use crate::engine::sql::statement::{Merge, MergeAction, MergeWhen};
use crate::session::Answers;

impl Runner {
    pub(super) fn merge(&mut self, merge: &Merge, frame: &mut Frame, answers: &mut dyn Answers) -> Outcome<()> {
        let (database, table) = self.binder(frame).known_table(&merge.target)?;
        for clause in &merge.clauses {
            let permission = match clause.action {
                MergeAction::Insert { .. } => "INSERT",
                MergeAction::Update(_) => "UPDATE",
                MergeAction::Delete => "DELETE",
            };
            self.binder(frame).require(permission, &database, &table)?;
        }
        let count = self.in_transaction(answers, |runner, answers| {
            let count = runner.writing(&table, Mode::Change, answers, &mut |runner| {
                let work = {
                    let mut binder = runner.binder(frame);
                    let sql = joined(&mut binder, merge, &database, &table)?;
                    Work { sql, parameters: binder.parameters, reads: binder.reads, prepared: binder.prepared }
                };
                runner.fill_work(&work)?;
                runner.merge_work(merge, &database, &table)
            })?;
            if let Some(output) = &merge.output {
                runner.put_out(output, &database, &table, frame, answers)?;
            }
            Ok(count)
        })?;
        self.counted(count);
        Ok(self.done(count, answers)?)
    }

    fn merge_work(&mut self, merge: &Merge, database: &Arc<Database>, table: &Arc<Table>) -> Outcome<u64> {
        let db = &self.db;
        let Some(transaction) = self.transaction.as_mut() else { return Ok(0) };
        let (_, open) = self.engine.locks.moment(transaction.number);
        let aside = Aside::new(db, table, merge.output.as_ref())?;
        let mut writer =
            Writer { engine: &self.engine, db, transaction, database: database.clone(), table: table.clone(), open };
        let width = table.kept().count();
        let (mut seen, mut places, mut count) = (HashSet::new(), Vec::new(), 0);
        // Deletes first, inserts last, so that keys are free when they are needed.
        let rank = |action: &MergeAction| match action {
            MergeAction::Delete => 0,
            MergeAction::Update(_) => 1,
            MergeAction::Insert { .. } => 2,
        };
        let mut order: Vec<usize> = (0..merge.clauses.len()).collect();
        order.sort_by_key(|n| rank(&merge.clauses[*n].action));
        for n in order {
            let list: Vec<String> = (0..width).map(|at| format!(", v{n}_{at}")).collect();
            let mut statement = db.prepare(&format!("SELECT r{} FROM temp.{WORK} WHERE act = {n}", list.concat()))?;
            let mut found = statement.query([])?;
            while let Some(row) = found.next()? {
                let place: Option<i64> = row.get(0)?;
                let values = (0..width).map(|at| row.get(at + 1)).collect::<Result<Vec<Value>, _>>()?;
                if place.is_some_and(|p| !seen.insert(p)) {
                    let text = "The MERGE statement attempted to UPDATE or DELETE the same row more than once. This happens when a target row matches more than one source row.";
                    return Err(SqlError::new(8672, text).into());
                }
                match (&merge.clauses[n].action, place) {
                    (MergeAction::Delete, Some(place)) => {
                        let old = writer.delete(place)?;
                        writer.check_referrers("DELETE", &old, None)?;
                        aside.row("DELETE", Some(&old), None)?;
                    }
                    (MergeAction::Update(_), Some(place)) => {
                        let (old, new) = writer.update(place, values)?;
                        writer.check_keys(&new, Some(place))?;
                        writer.check_references("UPDATE", &new)?;
                        writer.check_referrers("UPDATE", &old, Some(&new))?;
                        aside.row("UPDATE", Some(&old), Some(&new))?;
                        places.push(place);
                    }
                    (MergeAction::Insert { .. }, None) => {
                        let (place, values) = writer.insert(values)?;
                        writer.check_references("INSERT", &values)?;
                        aside.row("INSERT", None, Some(&values))?;
                        places.push(place);
                    }
                    _ => continue,
                }
                count += 1;
            }
        }
        self.check("MERGE", database, table, &places)?;
        Ok(count)
    }
}

/// For every row of the full join: the clause that it takes, the place of the target's row, and the values of
/// its kept columns under each clause.
fn joined(
    binder: &mut Binder<'_>,
    merge: &Merge,
    database: &Arc<Database>,
    table: &Arc<Table>,
) -> Result<String, SqlError> {
    binder.scopes.push(Scope::default());
    let title = merge.alias.clone().unwrap_or_else(|| table.name.clone());
    let target = binder.base(&title, merge.alias.is_some(), database, table, &["NOLOCK".to_owned()])?;
    binder.reads.retain(|r| r.table != table.id);
    let source = binder.factor(&merge.source)?;
    let [own, other] = binder.scopes.last().map_or(&[][..], |s| &s.sources) else {
        return Err(SqlError::near("USING"));
    };
    let (own, other) = (own.alias.clone(), other.alias.clone());
    // A mark tells a row of NULLs from no row.
    let source =
        source.strip_suffix(&format!(" AS {other}")).map(|s| format!("(SELECT 1 AS here, * FROM {s}) AS {other}"));
    let source = source.ok_or_else(|| SqlError::near("USING"))?;
    let on = binder.condition(&merge.on)?;
    let mut acts = String::new();
    let mut list = Vec::new();
    for (n, clause) in merge.clauses.iter().enumerate() {
        let when = match clause.when {
            MergeWhen::Matched => format!("{own}._row IS NOT NULL AND {other}.here IS NOT NULL"),
            MergeWhen::NotMatchedByTarget => format!("{own}._row IS NULL"),
            MergeWhen::NotMatchedBySource => format!("{other}.here IS NULL"),
        };
        let filter = match &clause.filter {
            Some(filter) => format!(" AND {}", binder.condition(filter)?),
            None => String::new(),
        };
        acts.push_str(&format!(" WHEN {when}{filter} THEN {n}"));
        for (at, column) in table.kept().enumerate() {
            let value = match &clause.action {
                MergeAction::Delete => "NULL".to_owned(),
                MergeAction::Update(assignments) => {
                    match assignments.iter().find(|a| table.column(&a.column).is_some_and(|c| c.id == column.id)) {
                        Some(assignment) => new_value_of(binder, assignment, database, table)?.sql,
                        None => format!("{own}.{}", column.kept_name()),
                    }
                }
                MergeAction::Insert { columns, values } => {
                    let names: Vec<&str> = if columns.is_empty() {
                        table.kept().filter(|c| c.identity.is_none()).map(|c| c.name.as_str()).collect()
                    } else {
                        columns.iter().map(String::as_str).collect()
                    };
                    if names.len() != values.len() {
                        return Err(SqlError::new(
                            213,
                            "Column name or number of supplied values does not match table definition.",
                        ));
                    }
                    if let Some(name) = names.iter().find(|n| table.column(n).is_none()) {
                        return Err(SqlError::unknown_column(name));
                    }
                    let given = names.iter().position(|n| table.column(n).is_some_and(|c| c.id == column.id));
                    match given.and_then(|at| values[at].as_ref()) {
                        Some(expr) => {
                            let typed = binder.value(expr)?;
                            binder.store(typed, &column.kind, notes(database, table, column)).sql
                        }
                        None => default_of(binder, database, table, column)?.sql,
                    }
                }
            };
            // Values of clauses that do not apply are not evaluated.
            list.push(format!(", CASE WHEN {when}{filter} THEN {value} END AS v{n}_{at}"));
        }
    }
    Ok(format!(
        "SELECT CASE{acts} END AS act, {own}._row AS r{} FROM {target} FULL JOIN {source} ON {on}",
        list.concat()
    ))
}

//! `UPDATE`, `DELETE`, `TRUNCATE TABLE`.
//!
//! Follows "UPDATE (Transact-SQL)", "DELETE (Transact-SQL)". The places of the rows and their new values go
//! into the work table first.

use std::sync::Arc;

use sqlparser::ast::{Expr, TableWithJoins};

use super::batch::{Frame, Runner};
use super::insert::{WORK, Work, default_of, notes};
use super::output::Aside;
use super::rows::Writer;
use crate::engine::bind::{Binder, Scope, Sight};
use crate::engine::catalogue::{Database, Table};
use crate::engine::fault::{Outcome, SqlError};
use crate::engine::kinds::stored;
use crate::engine::kinds::text::same_name;
use crate::engine::locks::Mode;
use crate::engine::session::transaction::Undo;
use crate::engine::sql::statement::{Assignment, Delete, Name, Update};
use crate::session::Answers;
use crate::types::SqlType;

/// Table, and SQLite's text for where its rows come from.
struct Target {
    database: Arc<Database>,
    table: Arc<Table>,
    alias: String,
    from: String,
    joins: bool,
}

impl Runner {
    pub(super) fn update(&mut self, update: &Update, frame: &mut Frame, answers: &mut dyn Answers) -> Outcome<()> {
        let (count, variables, database, table) = self.in_transaction(answers, |runner, answers| {
            let (database, table) = runner.target(&update.target, &update.from, frame)?;
            runner.binder(frame).require("UPDATE", &database, &table)?;
            let assigned: Vec<i32> = update
                .assignments
                .iter()
                .filter(|a| !a.column.starts_with('@'))
                .map(|a| settable(&table, a))
                .collect::<Result<_, _>>()?;
            let mode = if update.hints.iter().any(|h| h == "TABLOCKX") { Mode::Exclusive } else { Mode::Change };
            let (count, variables) = runner.writing(&table, mode, answers, &mut |runner| {
                let (work, kinds) = {
                    let mut binder = runner.binder(frame);
                    let target = from(&mut binder, &update.target, &update.from, &database, &table)?;
                    let mut list = vec![format!("{}._row AS r", target.alias)];
                    let mut kinds = Vec::new();
                    let mut n = 0;
                    for assignment in &update.assignments {
                        n += 1;
                        let typed = new_value(&mut binder, assignment, &target)?;
                        if assignment.column.starts_with('@') {
                            kinds.push((assignment.column.clone(), n, typed.kind.clone()));
                        }
                        list.push(format!("{} AS n{n}", typed.sql));
                    }
                    let text = finished(&mut binder, &list, &target, update.filter.as_ref(), update.top.as_ref())?;
                    (
                        Work {
                            sql: text,
                            parameters: binder.parameters,
                            reads: binder.reads,
                            prepared: binder.prepared,
                        },
                        kinds,
                    )
                };
                runner.fill_work(&work)?;
                let columns: Vec<(usize, i32)> = update
                    .assignments
                    .iter()
                    .enumerate()
                    .filter(|(_, a)| !a.column.starts_with('@'))
                    .zip(&assigned)
                    .map(|((n, _), id)| (n + 1, *id))
                    .collect();
                let count = runner.update_work(&database, &table, &columns, update)?;
                let mut values = Vec::new();
                for (name, n, kind) in kinds {
                    let text = format!("SELECT n{n} FROM temp.{WORK} ORDER BY rowid DESC LIMIT 1");
                    let last = runner.db.prepare(&text)?.query_row([], |r| Ok(stored::decode(r.get_ref(0)?, &kind)));
                    if let Ok(value) = last {
                        values.push((name, value));
                    }
                }
                Ok((count, values))
            })?;
            if let Some(output) = &update.output {
                runner.put_out(output, &database, &table, frame, answers)?;
            }
            Ok((count, variables, database, table))
        })?;
        drop((database, table));
        for (name, value) in variables {
            frame.set(&name, value);
        }
        self.counted(count);
        Ok(self.done(count, answers)?)
    }

    fn update_work(
        &mut self,
        database: &Arc<Database>,
        table: &Arc<Table>,
        columns: &[(usize, i32)],
        update: &Update,
    ) -> Outcome<u64> {
        let db = &self.db;
        let Some(transaction) = self.transaction.as_mut() else { return Ok(0) };
        let first = transaction.undo.len();
        let (_, open) = self.engine.locks.moment(transaction.number);
        let aside = Aside::new(db, table, update.output.as_ref())?;
        let mut writer =
            Writer { engine: &self.engine, db, transaction, database: database.clone(), table: table.clone(), open };
        let list: Vec<String> = columns.iter().map(|(n, _)| format!(", n{n}")).collect();
        let mut statement = db.prepare(&format!("SELECT r{} FROM temp.{WORK}", list.concat()))?;
        let mut found = statement.query([])?;
        let mut count = 0;
        while let Some(row) = found.next()? {
            let place: i64 = row.get(0)?;
            let mut values = writer.read(place)?;
            for (at, (_, id)) in columns.iter().enumerate() {
                if let Some(n) = table.kept().position(|c| c.id == *id) {
                    values[n] = row.get(at + 1)?;
                }
            }
            let (old, new) = writer.update(place, values)?;
            writer.check_references("UPDATE", &new)?;
            writer.check_referrers("UPDATE", &old, Some(&new))?;
            aside.row("UPDATE", Some(&old), Some(&new))?;
            count += 1;
        }
        drop(found);
        drop(statement);
        // Keys are looked at when all rows have theirs, so that rows can exchange them.
        let in_key = |id: &i32| table.indexes.iter().any(|i| i.unique && i.key.iter().any(|(k, _)| k == id));
        let places: Vec<i64> = writer.transaction.undo[first..]
            .iter()
            .filter_map(|u| match u {
                Undo::Replaced { table: t, row, .. } if *t == table.id => Some(*row),
                _ => None,
            })
            .collect();
        if columns.iter().any(|(_, id)| in_key(id)) {
            for place in &places {
                let values = writer.read(*place)?;
                writer.check_keys(&values, Some(*place))?;
            }
        }
        self.check("UPDATE", database, table, &places)?;
        Ok(count)
    }

    pub(super) fn delete(&mut self, delete: &Delete, frame: &mut Frame, answers: &mut dyn Answers) -> Outcome<()> {
        let count = self.in_transaction(answers, |runner, answers| {
            let (database, table) = runner.target(&delete.target, &delete.from, frame)?;
            runner.binder(frame).require("DELETE", &database, &table)?;
            let mode = if delete.hints.iter().any(|h| h == "TABLOCKX") { Mode::Exclusive } else { Mode::Change };
            let count = runner.writing(&table, mode, answers, &mut |runner| {
                let work = {
                    let mut binder = runner.binder(frame);
                    let target = from(&mut binder, &delete.target, &delete.from, &database, &table)?;
                    let list = [format!("{}._row AS r", target.alias)];
                    let text = finished(&mut binder, &list, &target, delete.filter.as_ref(), delete.top.as_ref())?;
                    Work { sql: text, parameters: binder.parameters, reads: binder.reads, prepared: binder.prepared }
                };
                runner.fill_work(&work)?;
                let db = &runner.db;
                let Some(transaction) = runner.transaction.as_mut() else { return Ok(0) };
                let (_, open) = runner.engine.locks.moment(transaction.number);
                let aside = Aside::new(db, &table, delete.output.as_ref())?;
                let mut writer = Writer {
                    engine: &runner.engine,
                    db,
                    transaction,
                    database: database.clone(),
                    table: table.clone(),
                    open,
                };
                let mut statement = db.prepare(&format!("SELECT r FROM temp.{WORK}"))?;
                let mut found = statement.query([])?;
                let mut count = 0;
                while let Some(row) = found.next()? {
                    let old = writer.delete(row.get(0)?)?;
                    writer.check_referrers("DELETE", &old, None)?;
                    aside.row("DELETE", Some(&old), None)?;
                    count += 1;
                }
                Ok(count)
            })?;
            if let Some(output) = &delete.output {
                runner.put_out(output, &database, &table, frame, answers)?;
            }
            Ok(count)
        })?;
        self.counted(count);
        Ok(self.done(count, answers)?)
    }

    /// "TRUNCATE TABLE": refused for captured tables (4711) and tables that foreign keys refer to (4712).
    pub(super) fn truncate(&mut self, name: &Name, frame: &mut Frame, answers: &mut dyn Answers) -> Outcome<()> {
        let (database, table) = self.binder(frame).known_table(name)?;
        self.binder(frame).require("ALTER", &database, &table)?;
        if database.captures_of(table.id).next().is_some() {
            let text = format!(
                "Cannot truncate table '{}' because it is published for replication or enabled for Change Data Capture.",
                table.name
            );
            return Err(SqlError::new(4711, text).into());
        }
        if database.tables.values().any(|t| t.id != table.id && t.foreign_keys.iter().any(|k| k.table == table.id)) {
            let text = format!(
                "Cannot truncate table '{}' because it is being referenced by a FOREIGN KEY constraint.",
                table.name
            );
            return Err(SqlError::new(4712, text).into());
        }
        self.in_transaction(answers, |runner, answers| {
            runner.writing(&table, Mode::Exclusive, answers, &mut |runner| {
                let Some(transaction) = runner.transaction.as_mut() else { return Ok(()) };
                let (_, open) = runner.engine.locks.moment(transaction.number);
                let db = &runner.db;
                let mut writer = Writer {
                    engine: &runner.engine,
                    db,
                    transaction,
                    database: database.clone(),
                    table: table.clone(),
                    open,
                };
                let mut statement = db.prepare(&format!("SELECT _row FROM {} WHERE _to IS NULL", table.kept_name()))?;
                let rows: Vec<i64> = statement.query_map([], |r| r.get(0))?.collect::<Result<_, _>>()?;
                for row in rows {
                    writer.delete(row)?;
                }
                Ok(())
            })
        })?;
        for identity in table.columns.iter().filter_map(|c| c.identity.as_ref()) {
            identity.last.store(i64::MIN, std::sync::atomic::Ordering::SeqCst);
        }
        Ok(answers.done(None)?)
    }

    /// The table of a name that may be an alias of the `FROM` clause.
    fn target(&self, name: &Name, from: &[TableWithJoins], frame: &Frame) -> Outcome<(Arc<Database>, Arc<Table>)> {
        let mut binder = self.binder(frame);
        if !from.is_empty() {
            binder.scopes.push(Scope::default());
            binder.from(from)?;
            let sources = binder.scopes.pop().unwrap_or_default().sources;
            let found = sources
                .into_iter()
                .find(|s| name.schema.is_none() && same_name(&s.name, &name.object))
                .and_then(|s| s.table);
            if let Some(found) = found {
                return Ok(found);
            }
        }
        Ok(binder.known_table(name)?)
    }
}

/// Error 207 and those of columns that cannot be set.
fn settable(table: &Table, assignment: &Assignment) -> Result<i32, SqlError> {
    let Some(column) = table.column(&assignment.column) else {
        return Err(SqlError::unknown_column(&assignment.column));
    };
    if column.computed.is_some() {
        let text = format!(
            "The column \"{}\" cannot be modified because it is either a computed column or is the result of a UNION operator.",
            column.name
        );
        return Err(SqlError::new(271, text));
    }
    if column.identity.is_some() {
        return Err(SqlError::new(8102, format!("Cannot update identity column '{}'.", column.name)));
    }
    if column.kind == SqlType::RowVersion {
        return Err(SqlError::new(272, "Cannot update a timestamp column."));
    }
    Ok(column.id)
}

pub(super) fn new_value_of(
    binder: &mut Binder<'_>,
    assignment: &Assignment,
    database: &Arc<Database>,
    table: &Arc<Table>,
) -> Result<crate::engine::bind::Typed, SqlError> {
    let Some(column) = table.column(&assignment.column) else {
        return Err(SqlError::unknown_column(&assignment.column));
    };
    match &assignment.value {
        Some(expr) => {
            let typed = binder.value(expr)?;
            Ok(binder.store(typed, &column.kind, notes(database, table, column)))
        }
        None => default_of(binder, database, table, column),
    }
}

fn new_value(
    binder: &mut Binder<'_>,
    assignment: &Assignment,
    target: &Target,
) -> Result<crate::engine::bind::Typed, SqlError> {
    if assignment.column.starts_with('@') {
        let Some((kind, _)) = binder.variables.get(&assignment.column.to_lowercase()).cloned() else {
            return Err(SqlError::unknown_variable(&assignment.column));
        };
        // `SET @x = column = value` gives the variable the same value.
        let expr = match &assignment.value {
            Some(Expr::BinaryOp { right, op: sqlparser::ast::BinaryOperator::Eq, .. }) => right.as_ref(),
            Some(expr) => expr,
            None => return Err(SqlError::near("DEFAULT")),
        };
        let typed = binder.value(expr)?;
        return Ok(binder.convert(typed, &kind));
    }
    new_value_of(binder, assignment, &target.database, &target.table)
}

/// Binds where the rows come from. Rows that other open transactions have changed are among them, to be waited for.
fn from(
    binder: &mut Binder<'_>,
    name: &Name,
    from: &[TableWithJoins],
    database: &Arc<Database>,
    table: &Arc<Table>,
) -> Result<Target, SqlError> {
    binder.scopes.push(Scope::default());
    let text = if from.is_empty() {
        let title = table.name.clone();
        binder.base(&title, false, database, table, &["NOLOCK".to_owned()])?
    } else {
        binder.from(from)?
    };
    let sources = binder.scopes.last().map_or(&[][..], |s| &s.sources);
    let own = |s: &&crate::engine::bind::Source| s.table.as_ref().is_some_and(|(_, t)| t.id == table.id);
    let source =
        sources.iter().filter(own).find(|s| same_name(&s.name, &name.object)).or_else(|| sources.iter().find(own));
    let Some(source) = source else { return Err(SqlError::unknown_object(&name.text())) };
    let alias = source.alias.clone();
    // The locks of writers are enough for the table itself.
    binder.reads.retain(|r| r.table != table.id);
    let text = match binder.sight {
        Sight::Snapshot { .. } => text,
        Sight::Last => {
            let number = binder.session.read(|s| s.transaction).unwrap_or(0);
            let (_, open) = binder.engine.locks.moment(number);
            let open = open.iter().map(u64::to_string).collect::<Vec<_>>().join(",");
            let plain = format!("(SELECT * FROM {} WHERE _to IS NULL) AS {alias}", table.kept_name());
            let doubtful =
                format!("(SELECT * FROM {} WHERE _to IS NULL OR _to IN ({open})) AS {alias}", table.kept_name());
            text.replace(&plain, &doubtful)
        }
    };
    Ok(Target { database: database.clone(), table: table.clone(), alias, from: text, joins: !from.is_empty() })
}

fn finished(
    binder: &mut Binder<'_>,
    list: &[String],
    target: &Target,
    filter: Option<&Expr>,
    top: Option<&Expr>,
) -> Result<String, SqlError> {
    let filter = match filter {
        Some(filter) => format!(" WHERE {}", binder.condition(filter)?),
        None => String::new(),
    };
    // A row that a join finds more than once is changed once.
    let group = if target.joins { format!(" GROUP BY {}._row", target.alias) } else { String::new() };
    let top = match top {
        Some(top) => format!(" LIMIT {}", binder.count(top)?),
        None => String::new(),
    };
    Ok(format!("SELECT {} FROM {}{filter}{group}{top}", list.join(", "), target.from))
}

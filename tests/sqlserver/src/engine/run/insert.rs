//! `INSERT`.
//!
//! Follows "INSERT (Transact-SQL)". The source is run into a work table first, so that a statement does not
//! read what it writes; the rows are then written one by one.

use std::sync::Arc;

use rusqlite::params_from_iter;
use rusqlite::types::Value;
use sqlparser::ast::{Expr, Query, SelectInto};

use super::batch::{Frame, Runner};
use super::output::Aside;
use super::rows::Writer;
use super::select::Plan;
use crate::engine::bind::{Binder, Bound, Output, Read, Typed, values_of};
use crate::engine::catalogue::{Column, Database, Table};
use crate::engine::fault::{Fault, Outcome, SqlError};
use crate::engine::kinds::stored;
use crate::engine::kinds::text::same_name;
use crate::engine::locks::{Mode, Target};
use crate::engine::sql;
use crate::engine::sql::statement::{Insert, InsertSource, Name};
use crate::engine::views::Rows;
use crate::session::Answers;
use crate::types::SqlType;
use crate::value::SqlValue;

pub(super) const WORK: &str = "work";

/// What is to be run into the work table.
pub(super) struct Work {
    pub(super) sql: String,
    pub(super) parameters: Vec<Value>,
    pub(super) reads: Vec<Read>,
    pub(super) prepared: Vec<Rows>,
}

impl Runner {
    pub(super) fn insert(&mut self, insert: &Insert, frame: &mut Frame, answers: &mut dyn Answers) -> Outcome<()> {
        if let InsertSource::Execute(execute) = &insert.source {
            return self.insert_execute(insert, execute, frame, answers);
        }
        let (database, table) = self.binder(frame).known_table(&insert.table)?;
        let explicit = self.state.read(|s| s.identity_insert == Some(table.id));
        let without = without_server_set(insert, &table, explicit);
        let insert = without.as_ref().unwrap_or(insert);
        let count = self.in_transaction(answers, |runner, answers| {
            let count = runner.write_rows(insert, &database, &table, frame, answers, &mut |binder| {
                source(binder, insert, &database, &table)
            })?;
            if let Some(output) = &insert.output {
                runner.put_out(output, &database, &table, frame, answers)?;
            }
            Ok(count)
        })?;
        self.counted(count);
        Ok(self.done(count, answers)?)
    }

    /// Writes the rows of a query that is already bound.
    pub(super) fn insert_bound(
        &mut self,
        insert: &Insert,
        bound: Bound,
        parameters: Vec<Value>,
        frame: &mut Frame,
        answers: &mut dyn Answers,
    ) -> Outcome<u64> {
        let (database, table) = self.binder(frame).known_table(&insert.table)?;
        self.in_transaction(answers, |runner, answers| {
            runner.write_rows(insert, &database, &table, frame, answers, &mut |binder| {
                binder.parameters.clone_from(&parameters);
                Ok(bound.clone())
            })
        })
    }

    pub(super) fn write_rows(
        &mut self,
        insert: &Insert,
        database: &Arc<Database>,
        table: &Arc<Table>,
        frame: &Frame,
        answers: &mut dyn Answers,
        source: &mut dyn FnMut(&mut Binder<'_>) -> Result<Bound, SqlError>,
    ) -> Outcome<u64> {
        let explicit = self.state.read(|s| s.identity_insert == Some(table.id));
        let mode = if insert.hints.iter().any(|h| h == "TABLOCKX") { Mode::Exclusive } else { Mode::Insert };
        self.binder(frame).require("INSERT", database, table)?;
        self.writing(table, mode, answers, &mut |runner| {
            let work = {
                let mut binder = runner.binder(frame);
                let bound = source(&mut binder)?;
                let targets = targets(insert, table, bound.columns.len(), explicit)?;
                let mut list = Vec::new();
                for column in table.kept() {
                    let given = targets.iter().position(|t| t.id == column.id);
                    let typed = match given {
                        Some(at) => {
                            let from = Typed { sql: format!("s.k{}", at + 1), ..bound.columns[at].typed.clone() };
                            binder.store(from, &column.kind, notes(database, table, column))
                        }
                        None => default_of(&mut binder, database, table, column)?,
                    };
                    list.push(format!("{} AS {}", typed.sql, column.kept_name()));
                }
                let top = match &insert.top {
                    Some(top) => format!(" LIMIT {}", binder.count(top)?),
                    None => String::new(),
                };
                let sql = format!("SELECT {} FROM ({}) AS s{top}", list.join(", "), bound.sql);
                Work { sql, parameters: binder.parameters, reads: binder.reads, prepared: binder.prepared }
            };
            runner.fill_work(&work)?;
            runner.insert_work(database, table, insert, explicit)
        })
    }

    fn insert_work(
        &mut self,
        database: &Arc<Database>,
        table: &Arc<Table>,
        insert: &Insert,
        explicit: bool,
    ) -> Outcome<u64> {
        let width = table.kept().count();
        let identity =
            table.kept().enumerate().find_map(|(n, c)| c.identity.as_ref().map(|i| (n, i.clone(), c.kind.clone())));
        let mut rows = Vec::new();
        let mut last_identity = None;
        let db = &self.db;
        let Some(transaction) = self.transaction.as_mut() else { return Ok(0) };
        let (_, open) = self.engine.locks.moment(transaction.number);
        let aside = Aside::new(db, table, insert.output.as_ref())?;
        let mut writer =
            Writer { engine: &self.engine, db, transaction, database: database.clone(), table: table.clone(), open };
        let mut statement = db.prepare(&format!("SELECT {} FROM temp.{WORK}", Writer::list(table)))?;
        let mut found = statement.query([])?;
        let mut count = 0;
        while let Some(row) = found.next()? {
            let values = (0..width).map(|n| row.get(n)).collect::<Result<Vec<Value>, _>>()?;
            let (place, values) = writer.insert(values)?;
            writer.check_references("INSERT", &values)?;
            if let Some((n, identity, kind)) = &identity {
                last_identity = match stored::decode((&values[*n]).into(), kind) {
                    SqlValue::Int(n) => Some(n),
                    SqlValue::Decimal { units, .. } => i64::try_from(units).ok(),
                    _ => None,
                };
                if let (true, Some(given)) = (explicit, last_identity) {
                    let beyond = |last: i64| last == i64::MIN || (given - last).signum() == identity.increment.signum();
                    let _ = identity.last.fetch_update(
                        std::sync::atomic::Ordering::SeqCst,
                        std::sync::atomic::Ordering::SeqCst,
                        |last| beyond(last).then_some(given),
                    );
                }
            }
            aside.row("INSERT", None, Some(&values))?;
            if !table.checks.is_empty() {
                rows.push(place);
            }
            count += 1;
        }
        drop(found);
        drop(statement);
        if last_identity.is_some() {
            self.state.change(|s| s.identity = last_identity);
        }
        self.check("INSERT", database, table, &rows)?;
        Ok(count)
    }

    /// Runs the body in one SQLite transaction, again and again while rows of other transactions are in its way.
    pub(super) fn writing<T>(
        &mut self,
        table: &Table,
        mode: Mode,
        answers: &mut dyn Answers,
        body: &mut dyn FnMut(&mut Self) -> Outcome<T>,
    ) -> Outcome<T> {
        self.writable()?;
        if !table.is_temporary() {
            self.see(&[Read { table: table.id, mode: None, hold: false }], false)?;
            self.engine.locks.take(Target::Table(table.id), mode, self.asker(), &|| self.stopped(answers))?;
        }
        loop {
            let before = self.transaction.as_ref().map_or(0, |t| t.undo.len());
            self.db.execute_batch("BEGIN IMMEDIATE")?;
            match body(self) {
                Ok(value) => {
                    self.db.execute_batch(&format!("DROP TABLE IF EXISTS temp.{WORK}; COMMIT"))?;
                    return Ok(value);
                }
                Err(Fault::Blocked(other)) => {
                    self.db.execute_batch("ROLLBACK")?;
                    if let Some(transaction) = &mut self.transaction {
                        transaction.undo.truncate(before);
                    }
                    if other == 0 {
                        continue;
                    }
                    self.engine.locks.wait_for(other, self.asker(), &|| self.stopped(answers))?;
                }
                Err(fault) => return Err(fault),
            }
        }
    }

    /// Fills the work table. Tables of which the statement reads what an open transaction writes are waited for.
    pub(super) fn fill_work(&self, work: &Work) -> Outcome<()> {
        for read in work.reads.iter().filter(|r| r.hold) {
            if let Some(mode) = read.mode {
                let asker = crate::engine::locks::Asker { timeout: Some(std::time::Duration::ZERO), ..self.asker() };
                if self.engine.locks.take(Target::Table(read.table), mode, asker, &|| None).is_err() {
                    return Err(self.blocked_by(read.table, mode));
                }
            }
        }
        for read in work.reads.iter().filter(|r| !r.hold) {
            if let Some(mode) = read.mode
                && self.engine.locks.blocked(&[(Target::Table(read.table), mode)], self.state.id)
            {
                return Err(self.blocked_by(read.table, mode));
            }
        }
        self.prepare(&work.prepared)?;
        self.db.execute_batch(&format!("DROP TABLE IF EXISTS temp.{WORK}"))?;
        let sql = format!("CREATE TEMP TABLE {WORK} AS {}", work.sql);
        let mut statement = self.db.prepare(&sql)?;
        statement.execute(params_from_iter(work.parameters.iter()))?;
        drop(statement);
        self.unprepare(&work.prepared)
    }

    fn blocked_by(&self, table: i32, mode: Mode) -> Fault {
        match self.engine.locks.transaction_in_the_way(Target::Table(table), mode, self.state.id) {
            Some(number) => Fault::Blocked(number),
            None => Fault::Blocked(0),
        }
    }

    /// `SELECT … INTO`: the table is made from the columns.
    pub(super) fn select_into(
        &mut self,
        query: &Query,
        into: &SelectInto,
        frame: &mut Frame,
        answers: &mut dyn Answers,
    ) -> Outcome<()> {
        let [Expr::Identifier(_) | Expr::CompoundIdentifier(_)] = &into.targets[..] else {
            return Err(SqlError::near("INTO").into());
        };
        let parts: Vec<String> = match &into.targets[0] {
            Expr::Identifier(ident) => vec![ident.value.clone()],
            Expr::CompoundIdentifier(parts) => parts.iter().map(|p| p.value.clone()).collect(),
            _ => Vec::new(),
        };
        let name = match &parts[..] {
            [object] => Name::local(object),
            [schema, object] => Name { database: None, schema: Some(schema.clone()), object: object.clone() },
            [database, schema, object] => Name {
                database: Some(database.clone()),
                schema: Some(schema.clone()).filter(|s| !s.is_empty()),
                object: object.clone(),
            },
            _ => return Err(SqlError::near("INTO").into()),
        };
        let mut plain = query.clone();
        if let sqlparser::ast::SetExpr::Select(select) = plain.body.as_mut() {
            select.into = None;
        }
        let plan: Plan = self.plan(&plain, frame)?;
        self.create_from(&name, &plan.bound.columns, frame)?;
        let insert = Insert {
            top: None,
            table: name,
            hints: Vec::new(),
            columns: Vec::new(),
            output: None,
            source: InsertSource::Query(Box::new(plain)),
        };
        let keeps = plan.bound.columns.iter().any(|c| c.typed.identity);
        let before = self.state.read(|s| s.identity_insert);
        if keeps {
            let (_, table) = self.binder(frame).known_table(&insert.table)?;
            self.state.change(|s| s.identity_insert = Some(table.id));
        }
        let result = self.insert(&insert, frame, answers);
        self.state.change(|s| s.identity_insert = before);
        result
    }
}

pub(super) fn notes(database: &Database, table: &Table, column: &Column) -> Vec<String> {
    vec![format!("{}.{}.{}", database.name, table.schema, table.name), column.name.clone()]
}

/// The value of a column for which none is given.
pub(super) fn default_of(
    binder: &mut Binder<'_>,
    database: &Database,
    table: &Table,
    column: &Column,
) -> Result<Typed, SqlError> {
    match &column.default {
        Some(default) => {
            let expr = sql::expression(&default.text)?;
            let scopes = std::mem::take(&mut binder.scopes);
            let typed = binder.value(&expr);
            binder.scopes = scopes;
            Ok(binder.store(typed?, &column.kind, notes(database, table, column)))
        }
        None => Ok(Typed { kind: column.kind.clone(), ..Typed::null() }),
    }
}

/// An insert of which the columns that the server itself sets, which may be given as `DEFAULT`, are left out.
/// `None`: it names none of them.
fn without_server_set(insert: &Insert, table: &Table, explicit: bool) -> Option<Insert> {
    let InsertSource::Values(rows) = &insert.source else { return None };
    let columns: Vec<&Column> = if insert.columns.is_empty() {
        table.kept().filter(|c| c.identity.is_none() || explicit).collect()
    } else {
        insert.columns.iter().map(|name| table.column(name)).collect::<Option<_>>()?
    };
    let by_server = |column: &Column| column.kind == SqlType::RowVersion || column.generated != 0;
    let defaults = |row: &Vec<Option<Expr>>| {
        row.len() == columns.len() && row.iter().zip(&columns).all(|(cell, c)| cell.is_none() || !by_server(c))
    };
    if !columns.iter().any(|c| by_server(c)) || !rows.iter().all(defaults) {
        return None;
    }
    let left = |row: &Vec<Option<Expr>>| {
        row.iter().zip(&columns).filter(|(_, c)| !by_server(c)).map(|(cell, _)| cell.clone()).collect()
    };
    let names = columns.iter().filter(|c| !by_server(c)).map(|c| c.name.clone()).collect();
    let source = InsertSource::Values(rows.iter().map(left).collect());
    Some(Insert { columns: names, source, ..insert.clone() })
}

/// The columns that get the values, in their order. Errors: 207, 264, 544, 545, 271, 273, 213, 109, 110.
fn targets<'t>(insert: &Insert, table: &'t Table, width: usize, explicit: bool) -> Result<Vec<&'t Column>, SqlError> {
    if matches!(insert.source, InsertSource::Defaults) && insert.columns.is_empty() && width == 0 {
        return Ok(Vec::new());
    }
    let mut targets = Vec::new();
    if insert.columns.is_empty() {
        targets.extend(table.columns.iter().filter(|c| {
            c.computed.is_none()
                && c.kind != SqlType::RowVersion
                && (c.identity.is_none() || explicit)
                && c.generated == 0
        }));
        if targets.len() != width {
            let text = "Column name or number of supplied values does not match table definition.";
            return Err(SqlError::new(213, text));
        }
    }
    for name in &insert.columns {
        let Some(column) = table.column(name) else { return Err(SqlError::unknown_column(name)) };
        if targets.iter().any(|t: &&Column| same_name(&t.name, name)) {
            return Err(SqlError::new(
                264,
                format!(
                    "The column name '{name}' is specified more than once in the SET clause or column list of an INSERT."
                ),
            ));
        }
        if column.computed.is_some() {
            let text = format!(
                "The column \"{name}\" cannot be modified because it is either a computed column or is the result of a UNION operator."
            );
            return Err(SqlError::new(271, text));
        }
        if column.kind == SqlType::RowVersion {
            let text = "Cannot insert an explicit value into a timestamp column. Use INSERT with a column list to exclude the timestamp column, or insert a DEFAULT into the timestamp column.";
            return Err(SqlError::new(273, text));
        }
        if column.generated != 0 {
            let text = format!(
                "Cannot insert an explicit value into a GENERATED ALWAYS column in table '{}.{}'.",
                table.schema, table.name
            );
            return Err(SqlError::new(13536, text));
        }
        if column.identity.is_some() && !explicit {
            let text = format!(
                "Cannot insert explicit value for identity column in table '{}' when IDENTITY_INSERT is set to OFF.",
                table.name
            );
            return Err(SqlError::new(544, text));
        }
        targets.push(column);
    }
    match targets.len().cmp(&width) {
        std::cmp::Ordering::Greater => {
            let text = "There are more columns in the INSERT statement than values specified in the VALUES clause. The number of values in the VALUES clause must match the number of columns specified in the INSERT statement.";
            Err(SqlError::new(109, text).class(15))
        }
        std::cmp::Ordering::Less => {
            let text = "There are fewer columns in the INSERT statement than values specified in the VALUES clause. The number of values in the VALUES clause must match the number of columns specified in the INSERT statement.";
            Err(SqlError::new(110, text).class(15))
        }
        std::cmp::Ordering::Equal if explicit && table.columns.iter().any(|c| c.identity.is_some()) => {
            if targets.iter().any(|t| t.identity.is_some()) {
                return Ok(targets);
            }
            let text = format!(
                "Explicit value must be specified for identity column in table '{}' either when IDENTITY_INSERT is set to ON or when a replication user is inserting into a NOT FOR REPLICATION identity column.",
                table.name
            );
            Err(SqlError::new(545, text))
        }
        std::cmp::Ordering::Equal => Ok(targets),
    }
}

/// The rows that are to be inserted.
fn source(
    binder: &mut Binder<'_>,
    insert: &Insert,
    database: &Arc<Database>,
    table: &Arc<Table>,
) -> Result<Bound, SqlError> {
    match &insert.source {
        InsertSource::Query(query) => binder.query(query),
        InsertSource::Defaults | InsertSource::Execute(_) => {
            Ok(Bound { sql: "SELECT 1 AS k1".into(), columns: Vec::new() })
        }
        InsertSource::Values(rows) => {
            let width = rows.first().map_or(0, Vec::len);
            let explicit = binder.session.read(|s| s.identity_insert == Some(table.id));
            let targets = targets(insert, table, width, explicit)?;
            let mut columns: Vec<Output> = Vec::new();
            let mut texts = Vec::new();
            for row in rows {
                if row.len() != width {
                    return Err(SqlError::new(
                        10709,
                        "The number of columns for each row in a table value constructor must be the same.",
                    ));
                }
                let mut cells = Vec::new();
                for (column, cell) in targets.iter().zip(row) {
                    let typed = match cell {
                        Some(expr) => binder.value(expr)?,
                        None => default_of(binder, database, table, column)?,
                    };
                    cells.push(binder.store(typed, &column.kind, notes(database, table, column)));
                }
                let list: Vec<&str> = cells.iter().map(|c| c.sql.as_str()).collect();
                texts.push(format!("({})", list.join(", ")));
                if columns.is_empty() {
                    columns = cells
                        .into_iter()
                        .map(|typed| Output {
                            name: String::new(),
                            typed: Typed { is_null: false, ..typed },
                            assigned: None,
                        })
                        .collect();
                }
            }
            Ok(Bound { sql: values_of(&texts, columns.len()), columns })
        }
    }
}

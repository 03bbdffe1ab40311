//! From what a statement says to SQLite's SQL: names are looked up, every expression gets its type, and
//! conversions are written out.
//!
//! SQLite sees names of its own making only (`o5`, `c2`, `t1`, `k3`), so no name of T-SQL has to be quoted,
//! and collations, precedence and NULL rules are decided here. Variables become SQLite parameters,
//! literals stay in the text, so that equal expressions give equal texts.

mod aggregate;
mod apply;
mod call;
mod condition;
mod expr;
mod literal;
mod order;
mod query;
mod select;
mod source;
mod template;
pub(crate) mod typed;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use rusqlite::types::Value;

pub(crate) use query::{Bound, Output, values_of};
pub(crate) use source::Source;
pub(crate) use typed::Typed;

use super::catalogue::{Database, Table};
use super::fault::SqlError;
use super::locks::Mode;
use super::session::state::SessionState;
use super::session::transaction::Snapshot;
use super::shared::Engine;
use super::sql::statement::{Name, TypeName};
use super::views::Rows;
use super::world::World;
use crate::session::Isolation;
use crate::types::SqlType;
use crate::value::SqlValue;

/// Variables of a batch or procedure, by name in lower case with its `@`.
pub(crate) type Variables = HashMap<String, (SqlType, SqlValue)>;

/// A table and the database that it is in.
pub(crate) type Found = (Arc<Database>, Arc<Table>);

/// Which versions of rows a statement sees.
#[derive(Debug, Clone)]
pub(crate) enum Sight {
    /// The last ones; locks see to it that they are committed, or the reader does not care.
    Last,
    Snapshot {
        snapshot: Snapshot,
        own: u64,
    },
}

/// A table that a statement reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Read {
    pub(crate) table: i32,
    /// `None`: no lock (`NOLOCK`, snapshots).
    pub(crate) mode: Option<Mode>,
    /// The lock stays until the transaction ends.
    pub(crate) hold: bool,
}

/// What can be named at one level of a query.
#[derive(Debug, Default)]
pub(crate) struct Scope {
    pub(crate) sources: Vec<Source>,
}

pub(crate) struct Binder<'a> {
    pub(crate) engine: &'a Arc<Engine>,
    pub(crate) world: Arc<World>,
    pub(crate) session: &'a SessionState,
    pub(crate) variables: &'a Variables,
    pub(crate) sight: Sight,
    pub(crate) isolation: Isolation,
    /// Values of SQLite's parameters, from number 1.
    pub(crate) parameters: Vec<Value>,
    /// Numbers of the variables that are parameters already.
    numbered: HashMap<String, usize>,
    pub(crate) reads: Vec<Read>,
    /// Rows of system views, which are to be put into temporary tables before the statement runs.
    pub(crate) prepared: Vec<Rows>,
    /// The innermost is last.
    pub(crate) scopes: Vec<Scope>,
    ctes: Vec<(String, Vec<Output>, String)>,
    aliases: usize,
    /// Arguments of templates, `@__0` and so on.
    placeholders: Vec<Typed>,
    /// Texts of the expressions of `GROUP BY`, while what comes after is bound.
    grouped: Option<HashSet<String>>,
    /// `$action` of a MERGE's output.
    pub(crate) action: Option<Typed>,
    /// Views that are being read, to see circles.
    depth: usize,
}

impl<'a> Binder<'a> {
    pub(crate) fn new(
        engine: &'a Arc<Engine>,
        session: &'a SessionState,
        variables: &'a Variables,
        sight: Sight,
    ) -> Self {
        Self {
            engine,
            world: engine.world(),
            session,
            variables,
            sight,
            isolation: session.read(|s| s.isolation),
            parameters: Vec::new(),
            numbered: HashMap::new(),
            reads: Vec::new(),
            prepared: Vec::new(),
            scopes: Vec::new(),
            ctes: Vec::new(),
            aliases: 0,
            placeholders: Vec::new(),
            grouped: None,
            action: None,
            depth: 0,
        }
    }

    /// A name that SQLite has not seen yet.
    pub(crate) fn alias(&mut self, prefix: &str) -> String {
        self.aliases += 1;
        format!("{prefix}{}", self.aliases)
    }

    /// The database of a name, or the current one. Errors: 208 for one that is not there, 942 for one that is
    /// offline, 916 for one that the login may not enter.
    pub(crate) fn database(&self, name: &Name) -> Result<Arc<Database>, SqlError> {
        let database = match &name.database {
            Some(database) => self.world.database(database).ok_or_else(|| SqlError::unknown_object(&name.text()))?,
            None => self
                .world
                .database_by_id(self.session.database())
                .ok_or_else(|| SqlError::unknown_object(&name.text()))?,
        };
        open(&self.world, &database, &self.session.login.user)?;
        Ok(database)
    }

    /// A base table, temporary table or table variable.
    pub(crate) fn table(&self, name: &Name) -> Result<Option<Found>, SqlError> {
        if name.object.starts_with(['#', '@']) {
            let database = self.world.database_by_id(2).ok_or_else(|| SqlError::unknown_object(&name.text()))?;
            return match self.session.temporary(&name.object) {
                Some(table) => Ok(Some((database, table))),
                None if name.object.starts_with('@') => {
                    Err(SqlError::new(1087, format!("Must declare the table variable \"{}\".", name.object)).class(15))
                }
                None => Ok(None),
            };
        }
        let database = self.database(name)?;
        let table = database.table(name.schema(), &name.object).cloned();
        Ok(table.map(|t| (database, t)))
    }

    /// A table, or error 208.
    pub(crate) fn known_table(&self, name: &Name) -> Result<Found, SqlError> {
        self.table(name)?.ok_or_else(|| SqlError::unknown_object(&name.text()))
    }

    /// Error 229 if the permission is missing.
    pub(crate) fn require(&self, permission: &str, database: &Database, table: &Table) -> Result<(), SqlError> {
        if self.world.may(database, &self.session.login.user, permission, Some(table)) {
            return Ok(());
        }
        Err(denied(permission, &table.name, &database.name, &table.schema))
    }

    /// A type by its name, also an alias type. Errors: 2715, and sizes that do not fit.
    pub(crate) fn kind(&self, name: &TypeName) -> Result<SqlType, SqlError> {
        if name.name.schema.is_none()
            && let Some(kind) = SqlType::parse(&name.name.object, &name.sizes)?
        {
            return Ok(kind);
        }
        let database = self.database(&Name { schema: None, ..name.name.clone() })?;
        match database.alias_type(name.name.schema.as_deref(), &name.name.object) {
            Some(alias) => Ok(alias.base.clone()),
            None => Err(SqlError::new(
                2715,
                format!("Column, parameter, or variable #1: Cannot find data type {}.", name.name.text()),
            )),
        }
    }

    /// The condition under which a row of a table is seen.
    pub(crate) fn seen(&self, table: &Table) -> String {
        match &self.sight {
            Sight::Snapshot { snapshot, own } if !table.is_temporary() => {
                let open = snapshot.open.iter().map(u64::to_string).collect::<Vec<_>>().join(",");
                let seen = |column: &str| {
                    format!("({column} = {own} OR {column} < {} AND {column} NOT IN ({open}))", snapshot.next)
                };
                format!("{} AND (_to IS NULL OR NOT {})", seen("_from"), seen("_to"))
            }
            _ => "_to IS NULL".into(),
        }
    }

    /// Notes that a table is read; hints are upper-case words of `WITH (…)`.
    pub(crate) fn reads(&mut self, table: &Table, hints: &[String]) {
        if table.is_temporary() {
            return;
        }
        let has = |hint: &str| hints.iter().any(|h| h == hint);
        let level = self.isolation;
        let read = if has("TABLOCKX") || has("XLOCK") {
            Read { table: table.id, mode: Some(Mode::Exclusive), hold: true }
        } else if has("NOLOCK") || has("READUNCOMMITTED") || matches!(self.sight, Sight::Snapshot { .. }) {
            Read { table: table.id, mode: None, hold: false }
        } else if has("HOLDLOCK") || has("SERIALIZABLE") || level == Isolation::Serializable {
            Read { table: table.id, mode: Some(Mode::Read), hold: true }
        } else if has("REPEATABLEREAD") || has("UPDLOCK") || level == Isolation::RepeatableRead {
            Read { table: table.id, mode: Some(Mode::Keep), hold: true }
        } else if level == Isolation::ReadUncommitted {
            Read { table: table.id, mode: None, hold: false }
        } else {
            Read { table: table.id, mode: Some(Mode::Read), hold: false }
        };
        if !self.reads.contains(&read) {
            self.reads.push(read);
        }
    }
}

/// Errors if a database cannot be used: 942, 916.
pub(crate) fn open(world: &World, database: &Database, user: &str) -> Result<(), SqlError> {
    if !database.online {
        return Err(SqlError::new(
            942,
            format!("Database '{}' cannot be opened because it is offline.", database.name),
        )
        .class(14)
        .state(4));
    }
    if !world.may_enter(database, user) {
        let text = format!(
            "The server principal \"{user}\" is not able to access the database \"{}\" under the current security context.",
            database.name
        );
        return Err(SqlError::new(916, text).class(14).state(2));
    }
    Ok(())
}

pub(crate) fn denied(permission: &str, object: &str, database: &str, schema: &str) -> SqlError {
    SqlError::new(
        229,
        format!(
            "The {permission} permission was denied on the object '{object}', database '{database}', schema '{schema}'."
        ),
    )
    .class(14)
    .state(5)
}

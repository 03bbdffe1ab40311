//! What databases are made of. Values here never change: a statement that defines something makes a new
//! [`Database`] and puts it in the place of the old one, which a rollback puts back.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;

use crate::engine::cdc::capture::Capture;
use crate::engine::kinds::text::{order_of, same_name};
use crate::engine::sql::statement::{ProcedureParameter, Referential, Step};
use crate::types::SqlType;
use crate::value::SqlValue;

pub(crate) const DEFAULT_COLLATION: &str = "SQL_Latin1_General_CP1_CI_AS";

#[derive(Debug, Clone)]
pub(crate) struct Database {
    pub(crate) id: i32,
    pub(crate) name: String,
    pub(crate) collation: String,
    /// `datetime` of the server's clock.
    pub(crate) created: SqlValue,
    pub(crate) online: bool,
    pub(crate) allow_snapshot: bool,
    pub(crate) read_committed_snapshot: bool,
    pub(crate) schemas: Vec<Schema>,
    /// By object id.
    pub(crate) tables: BTreeMap<i32, Arc<Table>>,
    pub(crate) views: Vec<View>,
    pub(crate) procedures: Vec<Arc<Procedure>>,
    pub(crate) types: Vec<AliasType>,
    pub(crate) users: Vec<User>,
    pub(crate) permissions: Vec<Permission>,
    /// `None`: the database is not enabled for change data capture.
    pub(crate) cdc: Option<CdcState>,
}

#[derive(Debug, Clone)]
pub(crate) struct CdcState {
    /// In the order in which they were made.
    pub(crate) captures: Vec<Arc<Capture>>,
    /// Statements on captured tables, for `cdc.ddl_history`.
    pub(crate) history: Vec<DdlEntry>,
    /// `object_id` of `cdc.lsn_time_mapping`.
    pub(crate) time_mapping: i32,
}

#[derive(Debug, Clone)]
pub(crate) struct DdlEntry {
    pub(crate) source: i32,
    /// `object_id` of the change table.
    pub(crate) object: i32,
    pub(crate) command: String,
    pub(crate) lsn: [u8; 10],
    pub(crate) time: SqlValue,
}

#[derive(Debug, Clone)]
pub(crate) struct Schema {
    pub(crate) id: i32,
    pub(crate) name: String,
}

#[derive(Debug, Clone)]
pub(crate) struct View {
    pub(crate) id: i32,
    pub(crate) schema: String,
    pub(crate) name: String,
    /// Names given after the view's name; empty: those of the query.
    pub(crate) columns: Vec<String>,
    pub(crate) query: Box<sqlparser::ast::Query>,
    pub(crate) text: String,
}

#[derive(Debug, Clone)]
pub(crate) struct Procedure {
    pub(crate) id: i32,
    pub(crate) schema: String,
    pub(crate) name: String,
    pub(crate) parameters: Vec<ProcedureParameter>,
    pub(crate) body: Arc<Vec<Step>>,
    pub(crate) text: String,
    /// `datetime` of the server's clock.
    pub(crate) created: SqlValue,
}

#[derive(Debug, Clone)]
pub(crate) struct AliasType {
    /// `user_type_id`, from 257.
    pub(crate) id: i32,
    pub(crate) schema: String,
    pub(crate) name: String,
    pub(crate) base: SqlType,
    pub(crate) nullable: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct User {
    pub(crate) name: String,
    pub(crate) login: Option<String>,
    /// Names of database roles, lower case.
    pub(crate) roles: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Permission {
    pub(crate) grantee: String,
    /// Upper case: `SELECT`, `VIEW DATABASE STATE`.
    pub(crate) permission: String,
    pub(crate) on: Granted,
    pub(crate) denied: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Granted {
    Database,
    Schema(String),
    Object(i32),
}

#[derive(Debug, Clone)]
pub(crate) struct Table {
    pub(crate) id: i32,
    pub(crate) schema: String,
    pub(crate) name: String,
    /// In the order of their ids; a dropped column leaves a hole.
    pub(crate) columns: Vec<Column>,
    pub(crate) indexes: Vec<Index>,
    pub(crate) foreign_keys: Vec<ForeignKey>,
    pub(crate) checks: Vec<Check>,
    /// Made by the server itself: the tables of change data capture.
    pub(crate) shipped: bool,
    pub(crate) created: SqlValue,
    pub(crate) next_column: i32,
    /// Ids of the columns of the row's period.
    pub(crate) period: Option<(i32, i32)>,
    /// Object id of the history table of a system-versioned table.
    pub(crate) history: Option<i32>,
    /// This table is a history table.
    pub(crate) is_history: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct Column {
    /// `column_id`.
    pub(crate) id: i32,
    pub(crate) name: String,
    pub(crate) kind: SqlType,
    /// `user_type_id` of an alias type or of `sysname`.
    pub(crate) alias: Option<i32>,
    pub(crate) nullable: bool,
    pub(crate) identity: Option<Identity>,
    pub(crate) default: Option<Default>,
    pub(crate) computed: Option<Computed>,
    /// Of types with characters.
    pub(crate) collation: Option<String>,
    pub(crate) rowguid: bool,
    pub(crate) sparse: bool,
    pub(crate) hidden: bool,
    /// `generated_always_type`.
    pub(crate) generated: u8,
}

/// The last value outlives transactions, as with the real server.
#[derive(Debug, Clone)]
pub(crate) struct Identity {
    pub(crate) seed: i64,
    pub(crate) increment: i64,
    /// `i64::MIN`: none was given out yet.
    pub(crate) last: Arc<AtomicI64>,
}

#[derive(Debug, Clone)]
pub(crate) struct Default {
    pub(crate) id: i32,
    pub(crate) name: String,
    /// With the parentheses that the server adds.
    pub(crate) text: String,
    pub(crate) named_by_user: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct Computed {
    pub(crate) text: String,
    pub(crate) persisted: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct Index {
    /// `index_id`.
    pub(crate) id: i32,
    /// `object_id` of the constraint; 0: none.
    pub(crate) constraint: i32,
    pub(crate) name: String,
    pub(crate) unique: bool,
    pub(crate) clustered: bool,
    pub(crate) primary: bool,
    /// Ids of columns and whether they descend.
    pub(crate) key: Vec<(i32, bool)>,
    pub(crate) include: Vec<i32>,
    pub(crate) filter: Option<String>,
}

#[derive(Debug, Clone)]
pub(crate) struct ForeignKey {
    pub(crate) id: i32,
    pub(crate) name: String,
    pub(crate) columns: Vec<i32>,
    pub(crate) table: i32,
    pub(crate) referred: Vec<i32>,
    pub(crate) on_delete: Referential,
}

#[derive(Debug, Clone)]
pub(crate) struct Check {
    pub(crate) id: i32,
    pub(crate) name: String,
    pub(crate) text: String,
}

impl Database {
    pub(crate) fn new(id: i32, name: &str, collation: &str, created: SqlValue) -> Self {
        let schema = |id, name: &str| Schema { id, name: name.into() };
        Self {
            id,
            name: name.into(),
            collation: collation.into(),
            created,
            online: true,
            allow_snapshot: false,
            read_committed_snapshot: false,
            schemas: vec![schema(1, "dbo"), schema(2, "guest"), schema(3, "INFORMATION_SCHEMA"), schema(4, "sys")],
            tables: BTreeMap::new(),
            views: Vec::new(),
            procedures: Vec::new(),
            types: Vec::new(),
            users: Vec::new(),
            permissions: Vec::new(),
            cdc: None,
        }
    }

    pub(crate) fn table(&self, schema: &str, name: &str) -> Option<&Arc<Table>> {
        self.tables.values().find(|t| same_name(&t.schema, schema) && same_name(&t.name, name))
    }

    pub(crate) fn view(&self, schema: &str, name: &str) -> Option<&View> {
        self.views.iter().find(|v| same_name(&v.schema, schema) && same_name(&v.name, name))
    }

    pub(crate) fn procedure(&self, schema: &str, name: &str) -> Option<&Arc<Procedure>> {
        self.procedures.iter().find(|p| same_name(&p.schema, schema) && same_name(&p.name, name))
    }

    pub(crate) fn schema(&self, name: &str) -> Option<&Schema> {
        self.schemas.iter().find(|s| same_name(&s.name, name))
    }

    pub(crate) fn alias_type(&self, schema: Option<&str>, name: &str) -> Option<&AliasType> {
        self.types.iter().find(|t| same_name(&t.name, name) && schema.is_none_or(|s| same_name(s, &t.schema)))
    }

    pub(crate) fn captures(&self) -> &[Arc<Capture>] {
        self.cdc.as_ref().map_or(&[], |c| &c.captures)
    }

    /// Capture instances whose source is this table.
    pub(crate) fn captures_of(&self, table: i32) -> impl Iterator<Item = &Arc<Capture>> {
        self.captures().iter().filter(move |c| c.source == table)
    }

    pub(crate) fn user_of(&self, login: &str) -> Option<&User> {
        self.users.iter().find(|u| u.login.as_deref().is_some_and(|l| same_name(l, login)))
    }
}

impl Table {
    /// A name alone, of something that permissions are asked for.
    pub(crate) fn named(schema: &str, name: &str) -> Self {
        Self {
            id: 0,
            schema: schema.into(),
            name: name.into(),
            columns: Vec::new(),
            indexes: Vec::new(),
            foreign_keys: Vec::new(),
            checks: Vec::new(),
            shipped: true,
            created: SqlValue::Null,
            next_column: 1,
            period: None,
            history: None,
            is_history: false,
        }
    }

    pub(crate) fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|c| same_name(&c.name, name))
    }

    pub(crate) fn column_by_id(&self, id: i32) -> Option<&Column> {
        self.columns.iter().find(|c| c.id == id)
    }

    pub(crate) fn primary_key(&self) -> Option<&Index> {
        self.indexes.iter().find(|i| i.primary)
    }

    pub(crate) fn clustered(&self) -> Option<&Index> {
        self.indexes.iter().find(|i| i.clustered)
    }

    /// Columns that are kept: all that are not computed.
    pub(crate) fn kept(&self) -> impl Iterator<Item = &Column> {
        self.columns.iter().filter(|c| c.computed.is_none())
    }

    pub(crate) fn is_temporary(&self) -> bool {
        self.name.starts_with(['#', '@'])
    }

    /// Name of the SQLite table.
    pub(crate) fn kept_name(&self) -> String {
        format!("o{}", self.id)
    }
}

impl Column {
    /// A nullable column without anything special.
    pub(crate) fn plain(id: i32, name: &str, kind: SqlType, collation: &str) -> Self {
        let collation = kind.is_text().then(|| collation.to_owned());
        Self {
            id,
            name: name.into(),
            kind,
            alias: None,
            nullable: true,
            identity: None,
            default: None,
            computed: None,
            collation,
            rowguid: false,
            sparse: false,
            hidden: false,
            generated: 0,
        }
    }

    /// The SQLite collation under which it compares.
    pub(crate) fn order(&self) -> &'static str {
        order_of(self.collation.as_deref().unwrap_or(DEFAULT_COLLATION))
    }

    /// Name of the SQLite column.
    pub(crate) fn kept_name(&self) -> String {
        format!("c{}", self.id)
    }
}

//! Catalog views: "sys.databases", "sys.tables", "sys.columns" and others, and the information schema.

use super::{Rows, bit, int, text, view};
use crate::engine::catalogue::{Column, Database, ForeignKey, Index, Table};
use crate::engine::kinds::kind::{SYSNAME, SYSTEM_TYPES, nvarchar};
use crate::engine::sql::statement::Referential;
use crate::engine::world::World;
use crate::types::{Length, SqlType};
use crate::value::SqlValue;

const LONG: SqlType = SqlType::NVarChar(Length::Max);

fn schema_id(database: &Database, table: &Table) -> SqlValue {
    database.schema(&table.schema).map_or(SqlValue::Null, |s| int(s.id))
}

fn or_null(value: Option<&str>) -> SqlValue {
    value.map_or(SqlValue::Null, text)
}

pub(super) fn find(world: &World, database: &Database, object: &str) -> Option<Rows> {
    let tables = || database.tables.values();
    let columns = || tables().flat_map(|t| t.columns.iter().map(move |c| (t, c)));
    let indexes = || tables().flat_map(|t| t.indexes.iter().map(move |i| (t, i)));
    let foreign_keys = || tables().flat_map(|t| t.foreign_keys.iter().map(move |f| (t, f)));
    Some(match object {
        "databases" => view(
            &[
                ("name", SYSNAME),
                ("database_id", SqlType::Int),
                ("create_date", SqlType::DateTime),
                ("compatibility_level", SqlType::TinyInt),
                ("collation_name", SYSNAME),
                ("state", SqlType::TinyInt),
                ("state_desc", nvarchar(60)),
                ("is_read_only", SqlType::Bit),
                ("snapshot_isolation_state", SqlType::TinyInt),
                ("snapshot_isolation_state_desc", nvarchar(60)),
                ("is_read_committed_snapshot_on", SqlType::Bit),
                ("is_cdc_enabled", SqlType::Bit),
            ],
            world
                .databases
                .iter()
                .map(|d| {
                    vec![
                        text(&d.name),
                        int(d.id),
                        d.created.clone(),
                        int(160),
                        text(&d.collation),
                        int(if d.online { 0 } else { 6 }),
                        text(if d.online { "ONLINE" } else { "OFFLINE" }),
                        bit(false),
                        int(i32::from(d.allow_snapshot)),
                        text(if d.allow_snapshot { "ON" } else { "OFF" }),
                        bit(d.read_committed_snapshot),
                        bit(d.cdc.is_some()),
                    ]
                })
                .collect(),
        ),
        "schemas" => view(
            &[("name", SYSNAME), ("schema_id", SqlType::Int), ("principal_id", SqlType::Int)],
            database.schemas.iter().map(|s| vec![text(&s.name), int(s.id), int(1)]).collect(),
        ),
        "tables" | "objects" | "all_objects" => view(
            &[
                ("name", SYSNAME),
                ("object_id", SqlType::Int),
                ("schema_id", SqlType::Int),
                ("parent_object_id", SqlType::Int),
                ("type", SqlType::Char(2)),
                ("type_desc", nvarchar(60)),
                ("create_date", SqlType::DateTime),
                ("modify_date", SqlType::DateTime),
                ("is_ms_shipped", SqlType::Bit),
                ("is_tracked_by_cdc", SqlType::Bit),
                ("temporal_type", SqlType::TinyInt),
                ("history_table_id", SqlType::Int),
            ],
            tables()
                .map(|t| {
                    vec![
                        text(&t.name),
                        int(t.id),
                        schema_id(database, t),
                        int(0),
                        text("U "),
                        text("USER_TABLE"),
                        t.created.clone(),
                        t.created.clone(),
                        bit(t.shipped),
                        bit(database.captures_of(t.id).next().is_some()),
                        int(if t.is_history { 1 } else { i32::from(t.history.is_some()) * 2 }),
                        t.history.map_or(SqlValue::Null, int),
                    ]
                })
                .chain(database.views.iter().filter(|_| object != "tables").map(|v| {
                    let schema = database.schema(&v.schema).map_or(SqlValue::Null, |s| int(s.id));
                    let mut row = vec![text(&v.name), int(v.id), schema, int(0), text("V "), text("VIEW")];
                    row.extend([SqlValue::Null, SqlValue::Null, bit(false), bit(false), int(0), SqlValue::Null]);
                    row
                }))
                .chain(database.procedures.iter().filter(|_| object != "tables").map(|p| {
                    let schema = database.schema(&p.schema).map_or(SqlValue::Null, |s| int(s.id));
                    let mut row =
                        vec![text(&p.name), int(p.id), schema, int(0), text("P "), text("SQL_STORED_PROCEDURE")];
                    row.extend([p.created.clone(), p.created.clone()]);
                    row.extend([bit(false), bit(false), int(0), SqlValue::Null]);
                    row
                }))
                .collect(),
        ),
        "procedures" => view(
            &[
                ("name", SYSNAME),
                ("object_id", SqlType::Int),
                ("schema_id", SqlType::Int),
                ("type", SqlType::Char(2)),
                ("type_desc", nvarchar(60)),
                ("create_date", SqlType::DateTime),
                ("is_ms_shipped", SqlType::Bit),
            ],
            database
                .procedures
                .iter()
                .map(|p| {
                    let schema = database.schema(&p.schema).map_or(SqlValue::Null, |s| int(s.id));
                    let head = vec![text(&p.name), int(p.id), schema, text("P "), text("SQL_STORED_PROCEDURE")];
                    [head, vec![p.created.clone(), bit(false)]].concat()
                })
                .collect(),
        ),
        "sql_modules" | "all_sql_modules" => view(
            &[("object_id", SqlType::Int), ("definition", LONG)],
            database
                .views
                .iter()
                .map(|v| vec![int(v.id), text(&v.text)])
                .chain(database.procedures.iter().map(|p| vec![int(p.id), text(&p.text)]))
                .collect(),
        ),
        "views" => view(
            &[("name", SYSNAME), ("object_id", SqlType::Int), ("schema_id", SqlType::Int)],
            database
                .views
                .iter()
                .map(|v| {
                    vec![text(&v.name), int(v.id), database.schema(&v.schema).map_or(SqlValue::Null, |s| int(s.id))]
                })
                .collect(),
        ),
        "columns" | "all_columns" => view(COLUMNS, columns().map(|(t, c)| column(t, c)).collect()),
        "identity_columns" => {
            let mut names = COLUMNS.to_vec();
            names.extend([("seed_value", SqlType::BigInt), ("increment_value", SqlType::BigInt)]);
            let rows = columns().filter_map(|(t, c)| {
                let identity = c.identity.as_ref()?;
                let mut row = column(t, c);
                row.extend([int(identity.seed), int(identity.increment)]);
                Some(row)
            });
            view(&names, rows.collect())
        }
        "computed_columns" => {
            let mut names = COLUMNS.to_vec();
            names.extend([("definition", LONG), ("is_persisted", SqlType::Bit)]);
            let rows = columns().filter_map(|(t, c)| {
                let computed = c.computed.as_ref()?;
                let mut row = column(t, c);
                row.extend([text(&computed.text), bit(computed.persisted)]);
                Some(row)
            });
            view(&names, rows.collect())
        }
        "types" => view(
            &[
                ("name", SYSNAME),
                ("system_type_id", SqlType::TinyInt),
                ("user_type_id", SqlType::Int),
                ("schema_id", SqlType::Int),
                ("max_length", SqlType::SmallInt),
                ("precision", SqlType::TinyInt),
                ("scale", SqlType::TinyInt),
                ("is_nullable", SqlType::Bit),
                ("is_user_defined", SqlType::Bit),
                ("is_assembly_type", SqlType::Bit),
            ],
            SYSTEM_TYPES
                .iter()
                .map(|(name, system, user)| {
                    let kind = SqlType::parse(name, &[]).ok().flatten().unwrap_or(SqlType::Int);
                    let (length, precision, scale) = kind.sizes();
                    let clr = matches!(kind, SqlType::Clr(_));
                    vec![
                        text(name),
                        int(*system),
                        int(*user),
                        int(4),
                        int(length),
                        int(precision),
                        int(scale),
                        bit(true),
                        bit(false),
                        bit(clr),
                    ]
                })
                .chain(database.types.iter().map(|t| {
                    let (length, precision, scale) = t.base.sizes();
                    let schema = database.schema(&t.schema).map_or(SqlValue::Null, |s| int(s.id));
                    let head = vec![text(&t.name), int(t.base.ids().0), int(t.id), schema];
                    [head, vec![int(length), int(precision), int(scale), bit(t.nullable), bit(true), bit(false)]]
                        .concat()
                }))
                .collect(),
        ),
        "default_constraints" => view(
            &[
                ("name", SYSNAME),
                ("object_id", SqlType::Int),
                ("parent_object_id", SqlType::Int),
                ("parent_column_id", SqlType::Int),
                ("definition", LONG),
                ("is_system_named", SqlType::Bit),
            ],
            columns()
                .filter_map(|(t, c)| {
                    let d = c.default.as_ref()?;
                    Some(vec![text(&d.name), int(d.id), int(t.id), int(c.id), text(&d.text), bit(!d.named_by_user)])
                })
                .collect(),
        ),
        "check_constraints" => view(
            &[("name", SYSNAME), ("object_id", SqlType::Int), ("parent_object_id", SqlType::Int), ("definition", LONG)],
            tables()
                .flat_map(|t| t.checks.iter().map(move |c| vec![text(&c.name), int(c.id), int(t.id), text(&c.text)]))
                .collect(),
        ),
        "foreign_keys" => view(
            &[
                ("name", SYSNAME),
                ("object_id", SqlType::Int),
                ("parent_object_id", SqlType::Int),
                ("schema_id", SqlType::Int),
                ("referenced_object_id", SqlType::Int),
                ("key_index_id", SqlType::Int),
                ("delete_referential_action", SqlType::TinyInt),
                ("update_referential_action", SqlType::TinyInt),
            ],
            foreign_keys()
                .map(|(t, f)| {
                    let index = database.tables.get(&f.table).and_then(|r| referred_index(r, f));
                    let action = match f.on_delete {
                        Referential::Refuse => 0,
                        Referential::Cascade => 1,
                        Referential::SetNull => 2,
                    };
                    let head = vec![text(&f.name), int(f.id), int(t.id), schema_id(database, t), int(f.table)];
                    [head, vec![index.map_or(SqlValue::Null, |i| int(i.id)), int(action), int(0)]].concat()
                })
                .collect(),
        ),
        "foreign_key_columns" => view(
            &[
                ("constraint_object_id", SqlType::Int),
                ("constraint_column_id", SqlType::Int),
                ("parent_object_id", SqlType::Int),
                ("parent_column_id", SqlType::Int),
                ("referenced_object_id", SqlType::Int),
                ("referenced_column_id", SqlType::Int),
            ],
            foreign_keys()
                .flat_map(|(t, f)| {
                    f.columns.iter().zip(&f.referred).zip(1..).map(move |((own, referred), place)| {
                        vec![int(f.id), int(place), int(t.id), int(*own), int(f.table), int(*referred)]
                    })
                })
                .collect(),
        ),
        "key_constraints" => view(
            &[
                ("name", SYSNAME),
                ("object_id", SqlType::Int),
                ("parent_object_id", SqlType::Int),
                ("type", SqlType::Char(2)),
                ("unique_index_id", SqlType::Int),
            ],
            indexes()
                .filter(|(_, i)| i.constraint != 0)
                .map(|(t, i)| {
                    vec![
                        text(&i.name),
                        int(i.constraint),
                        int(t.id),
                        text(if i.primary { "PK" } else { "UQ" }),
                        int(i.id),
                    ]
                })
                .collect(),
        ),
        "indexes" => {
            // A table without clustered index is a heap, index 0.
            let heaps = tables().filter(|t| t.clustered().is_none()).map(|t| {
                vec![
                    SqlValue::Null,
                    int(t.id),
                    int(0),
                    int(0),
                    text("HEAP"),
                    bit(false),
                    bit(false),
                    bit(false),
                    bit(false),
                    SqlValue::Null,
                ]
            });
            let rows = indexes().map(|(t, i)| {
                let kind = if i.clustered { "CLUSTERED" } else { "NONCLUSTERED" };
                vec![
                    text(&i.name),
                    int(t.id),
                    int(i.id),
                    int(if i.clustered { 1 } else { 2 }),
                    text(kind),
                    bit(i.unique),
                    bit(i.primary),
                    bit(i.constraint != 0 && !i.primary),
                    bit(i.filter.is_some()),
                    or_null(i.filter.as_deref()),
                ]
            });
            view(
                &[
                    ("name", SYSNAME),
                    ("object_id", SqlType::Int),
                    ("index_id", SqlType::Int),
                    ("type", SqlType::TinyInt),
                    ("type_desc", nvarchar(60)),
                    ("is_unique", SqlType::Bit),
                    ("is_primary_key", SqlType::Bit),
                    ("is_unique_constraint", SqlType::Bit),
                    ("has_filter", SqlType::Bit),
                    ("filter_definition", LONG),
                ],
                heaps.chain(rows).collect(),
            )
        }
        "index_columns" => view(
            &[
                ("object_id", SqlType::Int),
                ("index_id", SqlType::Int),
                ("index_column_id", SqlType::Int),
                ("column_id", SqlType::Int),
                ("key_ordinal", SqlType::TinyInt),
                ("is_descending_key", SqlType::Bit),
                ("is_included_column", SqlType::Bit),
            ],
            indexes().flat_map(|(t, i)| index_columns(t, i)).collect(),
        ),
        _ => return None,
    })
}

/// The unique index of the columns that a foreign key refers to.
fn referred_index<'a>(table: &'a Table, key: &ForeignKey) -> Option<&'a Index> {
    let same = |index: &&Index| {
        index.unique
            && index.key.len() == key.referred.len()
            && index.key.iter().all(|(id, _)| key.referred.contains(id))
    };
    table.indexes.iter().find(same)
}

fn index_columns(table: &Table, index: &Index) -> Vec<Vec<SqlValue>> {
    let keys = index.key.iter().enumerate().map(|(n, (id, desc))| (n, *id, n + 1, *desc, false));
    let included = index.include.iter().enumerate().map(|(n, id)| (index.key.len() + n, *id, 0, false, true));
    keys.chain(included)
        .map(|(n, id, key, desc, included)| {
            vec![int(table.id), int(index.id), int(n as i64 + 1), int(id), int(key as i64), bit(desc), bit(included)]
        })
        .collect()
}

const COLUMNS: &[(&str, SqlType)] = &[
    ("object_id", SqlType::Int),
    ("name", SYSNAME),
    ("column_id", SqlType::Int),
    ("system_type_id", SqlType::TinyInt),
    ("user_type_id", SqlType::Int),
    ("max_length", SqlType::SmallInt),
    ("precision", SqlType::TinyInt),
    ("scale", SqlType::TinyInt),
    ("collation_name", SYSNAME),
    ("is_nullable", SqlType::Bit),
    ("is_rowguidcol", SqlType::Bit),
    ("is_identity", SqlType::Bit),
    ("is_computed", SqlType::Bit),
    ("is_sparse", SqlType::Bit),
    ("default_object_id", SqlType::Int),
    ("generated_always_type", SqlType::TinyInt),
    ("is_hidden", SqlType::Bit),
];

fn column(table: &Table, c: &Column) -> Vec<SqlValue> {
    let (length, precision, scale) = c.kind.sizes();
    let (system, user) = c.kind.ids();
    vec![
        int(table.id),
        text(&c.name),
        int(c.id),
        int(system),
        int(c.alias.unwrap_or(user)),
        int(length),
        int(precision),
        int(scale),
        or_null(c.collation.as_deref()),
        bit(c.nullable),
        bit(c.rowguid),
        bit(c.identity.is_some()),
        bit(c.computed.is_some()),
        bit(c.sparse),
        int(c.default.as_ref().map_or(0, |d| d.id)),
        int(c.generated),
        bit(c.hidden),
    ]
}

pub(super) fn information_schema(database: &Database, object: &str) -> Option<Rows> {
    let tables = || database.tables.values().filter(|t| !t.shipped);
    Some(match object {
        "tables" => view(
            &[
                ("TABLE_CATALOG", nvarchar(128)),
                ("TABLE_SCHEMA", SYSNAME),
                ("TABLE_NAME", SYSNAME),
                ("TABLE_TYPE", SqlType::VarChar(Length::Limited(10))),
            ],
            tables().map(|t| vec![text(&database.name), text(&t.schema), text(&t.name), text("BASE TABLE")]).collect(),
        ),
        "columns" => view(
            &[
                ("TABLE_CATALOG", nvarchar(128)),
                ("TABLE_SCHEMA", SYSNAME),
                ("TABLE_NAME", SYSNAME),
                ("COLUMN_NAME", SYSNAME),
                ("ORDINAL_POSITION", SqlType::Int),
                ("COLUMN_DEFAULT", nvarchar(4000)),
                ("IS_NULLABLE", SqlType::VarChar(Length::Limited(3))),
                ("DATA_TYPE", nvarchar(128)),
                ("CHARACTER_MAXIMUM_LENGTH", SqlType::Int),
            ],
            tables()
                .flat_map(|t| {
                    t.columns.iter().map(move |c| {
                        let length =
                            if c.kind.is_max() { int(-1) } else { c.kind.length().map_or(SqlValue::Null, int) };
                        vec![
                            text(&database.name),
                            text(&t.schema),
                            text(&t.name),
                            text(&c.name),
                            int(c.id),
                            or_null(c.default.as_ref().map(|d| d.text.as_str())),
                            text(if c.nullable { "YES" } else { "NO" }),
                            text(c.kind.name()),
                            length,
                        ]
                    })
                })
                .collect(),
        ),
        _ => return None,
    })
}

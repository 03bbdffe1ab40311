//! Tables of the schema `cdc` that tell of capture instances: "cdc.change_tables", "cdc.captured_columns",
//! "cdc.index_columns", "cdc.ddl_history".

use super::{Rows, bit, int, text, view};
use crate::engine::catalogue::Database;
use crate::engine::kinds::kind::{SYSNAME, nvarchar};
use crate::types::{Length, SqlType};
use crate::value::SqlValue;

pub(super) fn find(database: &Database, object: &str) -> Option<Rows> {
    let cdc = database.cdc.as_ref()?;
    let captures = cdc.captures.iter();
    Some(match object {
        "change_tables" => view(
            &[
                ("object_id", SqlType::Int),
                ("version", SqlType::Int),
                ("source_object_id", SqlType::Int),
                ("capture_instance", SYSNAME),
                ("start_lsn", SqlType::Binary(10)),
                ("end_lsn", SqlType::Binary(10)),
                ("supports_net_changes", SqlType::Bit),
                ("has_drop_pending", SqlType::Bit),
                ("role_name", SYSNAME),
                ("index_name", SYSNAME),
                ("filegroup_name", SYSNAME),
                ("create_date", SqlType::DateTime),
                ("partition_switch", SqlType::Bit),
            ],
            captures
                .map(|c| {
                    vec![
                        int(c.object),
                        int(0),
                        int(c.source),
                        text(&c.name),
                        SqlValue::Bytes(c.start_lsn.0.to_vec()),
                        SqlValue::Null,
                        bit(c.net_changes),
                        SqlValue::Null,
                        c.role.as_deref().map_or(SqlValue::Null, text),
                        c.index_name.as_deref().map_or(SqlValue::Null, text),
                        SqlValue::Null,
                        c.created.clone(),
                        bit(true),
                    ]
                })
                .collect(),
        ),
        "captured_columns" => view(
            &[
                ("object_id", SqlType::Int),
                ("column_name", SYSNAME),
                ("column_id", SqlType::Int),
                ("column_type", SYSNAME),
                ("column_ordinal", SqlType::Int),
                ("is_computed", SqlType::Bit),
                ("masking_function", nvarchar(4000)),
            ],
            captures
                .flat_map(|c| {
                    c.columns.iter().enumerate().map(|(n, k)| {
                        vec![
                            int(c.object),
                            text(&k.name),
                            int(k.id),
                            text(k.kind.name()),
                            int(n as i64 + 1),
                            bit(k.computed),
                            SqlValue::Null,
                        ]
                    })
                })
                .collect(),
        ),
        "index_columns" => view(
            &[
                ("object_id", SqlType::Int),
                ("column_name", SYSNAME),
                ("index_ordinal", SqlType::TinyInt),
                ("column_id", SqlType::Int),
            ],
            captures
                .flat_map(|c| {
                    let columns = c.key.iter().filter_map(|id| c.columns.iter().find(|k| k.id == *id));
                    columns.enumerate().map(|(n, k)| vec![int(c.object), text(&k.name), int(n as i64 + 1), int(k.id)])
                })
                .collect(),
        ),
        "ddl_history" => view(
            &[
                ("source_object_id", SqlType::Int),
                ("object_id", SqlType::Int),
                ("required_column_update", SqlType::Bit),
                ("ddl_command", SqlType::NVarChar(Length::Max)),
                ("ddl_lsn", SqlType::Binary(10)),
                ("ddl_time", SqlType::DateTime),
            ],
            cdc.history
                .iter()
                .map(|d| {
                    vec![
                        int(d.source),
                        int(d.object),
                        bit(false),
                        text(&d.command),
                        SqlValue::Bytes(d.lsn.to_vec()),
                        d.time.clone(),
                    ]
                })
                .collect(),
        ),
        _ => return None,
    })
}

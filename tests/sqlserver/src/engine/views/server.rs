//! Dynamic management views: "sys.dm_server_services", "sys.dm_cdc_log_scan_sessions",
//! "sys.dm_exec_sessions".

use std::sync::{Arc, PoisonError};

use super::{Rows, int, text, view};
use crate::engine::bind::Binder;
use crate::engine::catalogue::Database;
use crate::engine::kinds::kind::nvarchar;
use crate::types::SqlType;
use crate::value::SqlValue;

pub(super) fn find(binder: &Binder<'_>, database: &Arc<Database>, object: &str) -> Option<Rows> {
    Some(match object {
        "dm_server_services" => {
            let agent = binder.engine.jobs.agent();
            let row = |name: &str, running: bool| {
                vec![
                    text(name),
                    int(2),
                    text("Automatic"),
                    int(if running { 4 } else { 1 }),
                    text(if running { "Running" } else { "Stopped" }),
                    int(std::process::id()),
                ]
            };
            view(
                &[
                    ("servicename", nvarchar(256)),
                    ("startup_type", SqlType::Int),
                    ("startup_type_desc", nvarchar(256)),
                    ("status", SqlType::Int),
                    ("status_desc", nvarchar(256)),
                    ("process_id", SqlType::Int),
                ],
                vec![row("SQL Server (MSSQLSERVER)", true), row("SQL Server Agent (MSSQLSERVER)", agent)],
            )
        }
        "dm_cdc_log_scan_sessions" => view(
            &[
                ("session_id", SqlType::Int),
                ("start_time", SqlType::DateTime),
                ("end_time", SqlType::DateTime),
                ("duration", SqlType::BigInt),
                ("scan_phase", nvarchar(200)),
                ("error_count", SqlType::Int),
                ("start_lsn", nvarchar(23)),
                ("current_lsn", nvarchar(23)),
                ("end_lsn", nvarchar(23)),
                ("tran_count", SqlType::BigInt),
                ("command_count", SqlType::BigInt),
                ("empty_scan_count", SqlType::Int),
            ],
            binder
                .engine
                .jobs
                .scans()
                .into_iter()
                .filter(|s| s.database == database.id)
                .map(|s| {
                    // The value ends with a zero character on the real server.
                    let lsn = |l: crate::engine::log::Lsn| text(&format!("{}\0", l.text()));
                    vec![
                        int(s.id),
                        s.start,
                        s.end,
                        int(0),
                        text("Done"),
                        int(0),
                        lsn(s.first),
                        lsn(s.last),
                        lsn(s.last),
                        int(s.transactions),
                        int(s.commands),
                        int(i32::from(s.transactions == 0)),
                    ]
                })
                .collect(),
        ),
        "dm_exec_sessions" => {
            let sessions = binder.engine.sessions.lock().unwrap_or_else(PoisonError::into_inner);
            view(
                &[
                    ("session_id", SqlType::SmallInt),
                    ("login_time", SqlType::DateTime),
                    ("host_name", nvarchar(128)),
                    ("program_name", nvarchar(128)),
                    ("login_name", nvarchar(128)),
                    ("status", nvarchar(30)),
                    ("database_id", SqlType::SmallInt),
                    ("open_transaction_count", SqlType::Int),
                    ("transaction_isolation_level", SqlType::SmallInt),
                    ("lock_timeout", SqlType::Int),
                    ("is_user_process", SqlType::Bit),
                ],
                sessions
                    .values()
                    .map(|s| {
                        s.read(|inner| {
                            vec![
                                int(s.id),
                                s.since.clone(),
                                text(&s.login.host),
                                text(&s.login.application),
                                text(&s.login.user),
                                text(if inner.running { "running" } else { "sleeping" }),
                                int(inner.database),
                                int(inner.trancount),
                                int(inner.isolation as i64 + 1),
                                int(inner.lock_timeout.unwrap_or(-1)),
                                SqlValue::Bit(true),
                            ]
                        })
                    })
                    .collect(),
            )
        }
        _ => return None,
    })
}

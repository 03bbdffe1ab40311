//! Change data capture.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use support::{Client, int, shop, text};
use thalweg_sqlserver_emulator::engine::{Emulator, Setup};
use thalweg_sqlserver_emulator::types::{Length, SqlType};
use thalweg_sqlserver_emulator::value::SqlValue;

const ENABLE: &str = "EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N't', @role_name = NULL";

fn captured(columns: &str) -> (Emulator, Client) {
    let server = shop();
    let mut client = Client::to(&server, "shop");
    client.rows("EXEC sys.sp_cdc_enable_db");
    client.rows(&format!("CREATE TABLE dbo.t ({columns})"));
    client.rows(ENABLE);
    (server, client)
}

#[test]
fn changes_come_with_operations_and_masks() {
    let (server, mut client) = captured("id int PRIMARY KEY, v int");
    assert_eq!(client.rows("SELECT sys.fn_cdc_get_max_lsn()"), [[SqlValue::Null]]);
    client.rows("INSERT t VALUES (1, 10); UPDATE t SET v = 11; UPDATE t SET v = 11; DELETE t");
    assert_eq!(client.rows("SELECT COUNT(*) FROM cdc.dbo_t_CT"), [[int(0)]], "capture lags");
    assert_eq!(server.capture("shop", 500).unwrap(), 3, "an update that changes nothing leaves nothing");
    let bytes = |b: u8| SqlValue::Bytes(vec![b]);
    let rows = client.rows("SELECT __$operation, __$update_mask, id, v FROM cdc.dbo_t_CT ORDER BY __$start_lsn, __$command_id, __$seqval, __$operation");
    assert_eq!(
        rows,
        [
            vec![int(2), bytes(3), int(1), int(10)],
            vec![int(3), bytes(2), int(1), int(10)],
            vec![int(4), bytes(2), int(1), int(11)],
            vec![int(1), bytes(3), int(1), int(11)],
        ]
    );
    assert_eq!(client.rows("SELECT COUNT(*) FROM [shop].cdc.lsn_time_mapping WHERE tran_id <> 0x00"), [[int(3)]]);
}

#[test]
fn sql_12_an_update_of_the_key_is_a_delete_and_an_insert_at_one_place() {
    let (server, mut client) = captured("id int PRIMARY KEY, v int");
    client.rows("INSERT t VALUES (1, 10); UPDATE t SET id = 100 WHERE id = 1");
    server.capture("shop", 500).unwrap();
    let rows = client.rows("SELECT __$operation, id FROM cdc.dbo_t_CT ORDER BY __$start_lsn, __$seqval, __$operation");
    assert_eq!(rows, [[int(2), int(1)], [int(1), int(1)], [int(2), int(100)]]);
    let places = client.rows("SELECT COUNT(DISTINCT __$start_lsn), COUNT(DISTINCT __$seqval) FROM cdc.dbo_t_CT");
    assert_eq!(places, [[int(2), int(2)]]);
}

#[test]
fn t_36_columns_of_max_types_are_null_unless_they_change() {
    let (server, mut client) = captured("id int PRIMARY KEY, title nvarchar(20), body nvarchar(max)");
    client.rows("INSERT t VALUES (1, 'a', 'long'); UPDATE t SET title = 'b'; UPDATE t SET body = NULL");
    server.capture("shop", 500).unwrap();
    let rows = client.rows("SELECT __$operation, __$update_mask, body FROM cdc.dbo_t_CT WHERE __$operation > 2 ORDER BY __$start_lsn, __$operation");
    let bytes = |b: u8| SqlValue::Bytes(vec![b]);
    assert_eq!(
        rows,
        [
            vec![int(3), bytes(2), SqlValue::Null],
            vec![int(4), bytes(2), SqlValue::Null],
            vec![int(3), bytes(4), text("long")],
            vec![int(4), bytes(4), SqlValue::Null],
        ]
    );
}

#[test]
fn t_20_functions_answer_inside_of_the_interval_only() {
    let (server, mut client) = captured("id int PRIMARY KEY, v int");
    client.rows("INSERT t VALUES (1, 10), (2, 20); UPDATE t SET v = 11 WHERE id = 1; DELETE t WHERE id = 2");
    server.capture("shop", 500).unwrap();
    client.rows("DECLARE @x binary(10) = sys.fn_cdc_get_min_lsn('dbo_t'); IF @x IS NULL RAISERROR('none', 16, 1)");
    let all = |filter: &str| {
        format!(
            "DECLARE @f binary(10) = sys.fn_cdc_get_min_lsn(N'dbo_t'), @t binary(10) = sys.fn_cdc_get_max_lsn(); SELECT __$operation, id FROM cdc.{filter}"
        )
    };
    let rows = client.rows(&all(
        "fn_cdc_get_all_changes_dbo_t(@f, @t, N'all update old') ORDER BY __$start_lsn, __$seqval, __$operation",
    ));
    assert_eq!(rows, [[int(2), int(1)], [int(2), int(2)], [int(3), int(1)], [int(4), int(1)], [int(1), int(2)]]);
    let rows = client.rows(&all("fn_cdc_get_net_changes_dbo_t(@f, @t, N'all') ORDER BY id"));
    assert_eq!(rows, [[int(2), int(1)]]);
    assert_eq!(client.error(&all("fn_cdc_get_all_changes_dbo_t(0x00000000000000000001, @t, N'all')")), 313);
    assert_eq!(client.error(&all("fn_cdc_get_all_changes_dbo_t(NULL, @t, N'all')")), 313);
    assert_eq!(client.error(&all("fn_cdc_get_all_changes_gone(@f, @t, N'all')")), 208);
    assert_eq!(client.rows("SELECT sys.fn_cdc_get_min_lsn('gone')"), [[SqlValue::Bytes(vec![0; 10])]]);
}

#[test]
fn t_18_cleanup_moves_the_beginning() {
    let (server, mut client) = captured("id int PRIMARY KEY, v int");
    client.rows("INSERT t VALUES (1, 10)");
    client.rows("INSERT t VALUES (2, 20)");
    server.capture("shop", 500).unwrap();
    let rows = client.rows("SELECT MAX(start_lsn) FROM cdc.lsn_time_mapping");
    let SqlValue::Bytes(last) = &rows[0][0] else { panic!("{rows:?}") };
    server.cleanup("shop", last.as_slice().try_into().unwrap()).unwrap();
    assert_eq!(client.rows("SELECT id FROM cdc.dbo_t_CT"), [[int(2)]]);
    assert_eq!(client.rows("SELECT MIN(start_lsn) FROM [shop].cdc.change_tables"), rows);
}

#[test]
fn t_21_a_second_instance_begins_where_it_is_made() {
    let (server, mut client) = captured("id int PRIMARY KEY");
    client.rows("INSERT t VALUES (1); ALTER TABLE dbo.t ADD n int NOT NULL DEFAULT 0; INSERT t VALUES (2, 5)");
    client.rows(&format!("{ENABLE}, @capture_instance = N't_v2'"));
    client.rows("INSERT t VALUES (3, 6)");
    assert_eq!(client.error(&format!("{ENABLE}, @capture_instance = N't_v3'")), 22962);
    server.capture("shop", 500).unwrap();
    assert_eq!(client.rows("SELECT id FROM cdc.dbo_t_CT"), [[int(1)], [int(2)], [int(3)]]);
    assert_eq!(client.rows("SELECT id, n FROM cdc.t_v2_CT"), [[int(3), int(6)]]);
    client.rows("EXEC sys.sp_cdc_disable_table N'dbo', N't', N'dbo_t'");
    assert_eq!(client.ask("SELECT * FROM cdc.dbo_t_CT").messages[0].text, "Invalid object name 'shop.cdc.dbo_t_CT'.");
}

#[test]
fn t_33_a_database_without_capture_says_so() {
    let server = shop();
    let mut client = Client::to(&server, "master");
    assert_eq!(client.error("EXEC [shop].sys.sp_cdc_help_change_data_capture"), 22901);
    client.rows("USE shop; EXEC sys.sp_cdc_enable_db");
    let rows = client.rows("SELECT is_cdc_enabled FROM sys.databases WHERE name = 'SHOP'");
    assert_eq!(rows, [[SqlValue::Bit(true)]]);
    assert_eq!(client.rows("EXEC [shop].sys.sp_cdc_help_change_data_capture").len(), 0);
}

/// Every statement that a connector sends about a database, in its own spelling.
#[test]
fn statements_of_connectors_run() {
    let (server, mut client) =
        captured("id int IDENTITY PRIMARY KEY, v nvarchar(max) DEFAULT N'x', m money, c AS id * 2");
    client.rows("INSERT t (v, m) VALUES (N'a', 6.323)");
    server.capture("shop", 500).unwrap();
    for statement in [
        "SELECT @@VERSION",
        "SELECT COUNT(*) FROM [shop].cdc.change_tables",
        "SELECT [shop].sys.fn_cdc_get_max_lsn()",
        "SELECT MAX(start_lsn) FROM [shop].cdc.lsn_time_mapping WHERE tran_id <> 0x00",
        "SELECT MAX(start_lsn) FROM (SELECT TOP (5) start_lsn FROM [shop].cdc.lsn_time_mapping WHERE tran_id <> 0x00 ORDER BY start_lsn) AS w",
        "SELECT [shop].sys.fn_cdc_increment_lsn(0x00000027000003e80003)",
        "SELECT object_id, column_name, column_ordinal, column_type, is_computed FROM [shop].cdc.captured_columns ORDER BY object_id, column_id",
        "WITH ordered AS (SELECT ROW_NUMBER() OVER (PARTITION BY source_object_id, start_lsn ORDER BY create_date DESC) AS n, * FROM [shop].cdc.change_tables) \
         SELECT OBJECT_SCHEMA_NAME(source_object_id, DB_ID(N'shop')), OBJECT_NAME(source_object_id, DB_ID(N'shop')), capture_instance, object_id, start_lsn FROM ordered WHERE n = 1",
        "EXEC [shop].sys.sp_cdc_help_jobs",
        "SELECT CASE WHEN [status]=4 THEN 1 ELSE 0 END FROM [shop].sys.dm_server_services WHERE servicename LIKE N'SQL Server Agent (%'",
        "SELECT SYSDATETIMEOFFSET()",
        "SELECT TOP 1 start_lsn FROM [shop].sys.dm_cdc_log_scan_sessions ORDER BY session_id DESC",
        "SELECT TOP (10) cdc_data.__$start_lsn, cdc_data.__$seqval, cdc_data.[v], CAST([m] AS decimal(19,4)), \
         TODATETIMEOFFSET(ltm.tran_begin_time, DATEPART(TZOFFSET, SYSDATETIMEOFFSET())), cdc_data.__$command_id \
         FROM [shop].cdc.[dbo_t_CT] AS cdc_data LEFT JOIN [shop].cdc.lsn_time_mapping ltm ON ltm.start_lsn = cdc_data.__$start_lsn \
         WHERE ((cdc_data.__$start_lsn = 0x00 AND cdc_data.__$seqval > 0x02) OR cdc_data.__$start_lsn > 0x00) AND cdc_data.__$operation NOT IN (3) \
         ORDER BY cdc_data.__$start_lsn, cdc_data.__$command_id, cdc_data.__$seqval, cdc_data.__$operation",
        "SELECT s.name, t.name, c.name, c.column_id, ut.name, bt.name, c.max_length, c.precision, c.scale, c.is_nullable, c.is_identity, c.is_computed, d.definition \
         FROM [shop].sys.tables t JOIN [shop].sys.schemas s ON s.schema_id = t.schema_id JOIN [shop].sys.columns c ON c.object_id = t.object_id \
         JOIN [shop].sys.types ut ON ut.user_type_id = c.user_type_id LEFT JOIN [shop].sys.types bt ON bt.user_type_id = c.system_type_id \
         LEFT JOIN [shop].sys.default_constraints d ON d.object_id = c.default_object_id WHERE s.name = N'dbo' AND t.name = N't' ORDER BY c.column_id",
        "SELECT c.name FROM [shop].sys.indexes i JOIN [shop].sys.index_columns ic ON ic.object_id = i.object_id AND ic.index_id = i.index_id \
         JOIN [shop].sys.columns c ON c.object_id = ic.object_id AND c.column_id = ic.column_id WHERE i.is_primary_key = 1 ORDER BY ic.key_ordinal",
        "SELECT PARSE('2019-01-01 10:11:12' AS datetime2)",
        "SELECT TOP 3 * FROM [shop].[dbo].[t] WHERE ((id > 0)) AND NOT ((id > 5)) ORDER BY id OPTION(RECOMPILE)",
        "SELECT id FROM [shop].[dbo].[t] ORDER BY id OFFSET 0 ROWS FETCH NEXT 1 ROWS ONLY",
        "SELECT COUNT(1) FROM [shop].[dbo].[t]",
        "EXEC [shop].sys.sp_columns_100 N't', N'dbo'",
        "EXEC [shop].sys.sp_tables N't'",
        "EXEC [shop].sys.sp_pkeys N't'",
        "EXEC [shop].sys.sp_statistics N't'",
    ] {
        assert!(!client.rows(statement).is_empty(), "{statement}");
    }
    let heard = client.with(
        "SELECT name FROM sys.databases WHERE name = @P1",
        "@P1 nvarchar(4000)",
        &[("@P1", SqlType::NVarChar(Length::Limited(4000)), text("SHOP"))],
    );
    assert_eq!(heard.rows, [[text("shop")]]);
}

#[test]
fn sql_24_a_login_without_rights_on_the_schema_is_denied() {
    let (server, mut client) = captured("id int PRIMARY KEY");
    client.rows("CREATE LOGIN reader WITH PASSWORD = 'pw'; CREATE USER reader; GRANT SELECT ON SCHEMA::dbo TO reader");
    let mut reader = Client::of(&server, "reader", "pw", "shop");
    reader.rows("SELECT * FROM dbo.t");
    assert_eq!(reader.error("SELECT COUNT(*) FROM [shop].cdc.change_tables"), 229);
    assert_eq!(reader.error("INSERT t VALUES (1)"), 229);
}

#[test]
fn the_capture_job_runs_by_itself_while_the_agent_does() {
    let server = Emulator::start(&Setup { agent: false, ..Setup::default() }).unwrap();
    let mut client = Client::to(&server, "");
    client.rows("CREATE DATABASE shop; USE shop; EXEC sys.sp_cdc_enable_db; EXEC sys.sp_cdc_change_job 'capture', @pollinginterval = 0");
    client.rows("CREATE TABLE dbo.t (id int PRIMARY KEY)");
    client.rows(ENABLE);
    client.rows("INSERT t VALUES (1)");
    let state = "SELECT status FROM sys.dm_server_services WHERE servicename LIKE N'SQL Server Agent (%'";
    assert_eq!(client.rows(state), [[int(1)]]);
    assert_eq!(client.rows("SELECT COUNT(*) FROM cdc.dbo_t_CT"), [[int(0)]]);
    server.set_agent(true);
    assert_eq!(client.rows(state), [[int(4)]]);
    while client.rows("SELECT COUNT(*) FROM cdc.dbo_t_CT") != [[int(1)]] {
        std::thread::yield_now();
    }
    assert_eq!(client.rows("SELECT COUNT(*) FROM sys.dm_cdc_log_scan_sessions WHERE tran_count = 1"), [[int(1)]]);
}

#[test]
fn sql_15_an_idle_database_has_rows_without_transaction() {
    let (server, mut client) = captured("id int PRIMARY KEY");
    client.rows("INSERT t VALUES (1)");
    server.capture("shop", 500).unwrap();
    let last = client.rows("SELECT MAX(start_lsn) FROM cdc.lsn_time_mapping");
    server.idle("shop").unwrap();
    assert_eq!(client.rows("SELECT MAX(start_lsn) FROM cdc.lsn_time_mapping WHERE tran_id <> 0x00"), last);
    let rows = client.rows(
        "SELECT COUNT(*) FROM cdc.lsn_time_mapping WHERE tran_id = 0x00 AND start_lsn = sys.fn_cdc_get_max_lsn()",
    );
    assert_eq!(rows, [[int(1)]]);
}

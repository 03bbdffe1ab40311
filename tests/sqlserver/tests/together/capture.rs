//! Change data capture, with the statements that connectors send.

use tiberius::{ColumnData, Row};

use crate::server::{Client, Running, shop};

async fn orders() -> (Running, Client) {
    let server = shop().await;
    let mut client = server.client("shop").await;
    client.run("EXEC sys.sp_cdc_enable_db").await;
    client.run("CREATE TABLE dbo.orders (id int PRIMARY KEY, note nvarchar(50), price money)").await;
    client
        .run("EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'orders', @role_name = NULL")
        .await;
    (server, client)
}

fn lsn(row: &Row, place: usize) -> Vec<u8> {
    row.get::<&[u8], _>(place).unwrap().to_vec()
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_are_read_with_parameters_page_by_page() {
    let (server, mut client) = orders().await;
    client.run("BEGIN TRAN; INSERT dbo.orders VALUES (1, N'one', 1.5), (2, N'two', 2.5); COMMIT").await;
    client.run("UPDATE dbo.orders SET note = N'uno' WHERE id = 1; DELETE dbo.orders WHERE id = 2").await;
    assert_eq!(server.capture().await, 3);
    let ends =
        client.rows("SELECT [shop].sys.fn_cdc_get_min_lsn(N'dbo_orders'), [shop].sys.fn_cdc_get_max_lsn()").await;
    let (from, to) = (lsn(&ends[0], 0), lsn(&ends[0], 1));
    let page = "SELECT TOP (@P1) [__$start_lsn], [__$seqval], [__$operation], [__$update_mask], [id], [note], CAST([price] AS decimal(19,4)), \
        TODATETIMEOFFSET(ltm.tran_begin_time, DATEPART(TZOFFSET, SYSDATETIMEOFFSET())), [__$command_id] \
        FROM [shop].cdc.[dbo_orders_CT] AS cdc_data LEFT JOIN [shop].cdc.lsn_time_mapping ltm ON ltm.start_lsn = cdc_data.[__$start_lsn] \
        WHERE (([__$start_lsn] = @P2 AND [__$seqval] = @P3 AND [__$operation] > @P4) OR ([__$start_lsn] = @P2 AND [__$seqval] > @P3) OR ([__$start_lsn] > @P2)) \
        AND [__$start_lsn] <= @P5 ORDER BY [__$start_lsn], [__$command_id], [__$seqval], [__$operation]";
    let mut seen = Vec::new();
    let (mut start, mut sequence, mut operation) = (from, vec![0; 10], 0);
    loop {
        let rows = client.query(page, &[&2_i64, &start, &sequence, &operation, &to]).await;
        let Some(last) = rows.last() else { break };
        (start, sequence, operation) = (lsn(last, 0), lsn(last, 1), last.get(2).unwrap());
        seen.extend(rows.iter().map(|r| (r.get::<i32, _>(2).unwrap(), r.get::<i32, _>(4).unwrap())));
        assert!(rows.iter().all(|r| matches!(r.cells().nth(7).unwrap().1, ColumnData::DateTimeOffset(Some(_)))));
    }
    assert_eq!(seen, [(2, 1), (2, 2), (3, 1), (4, 1), (1, 2)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn t_20_the_function_refuses_an_interval_that_is_not_valid() {
    let (server, mut client) = orders().await;
    client.run("INSERT dbo.orders VALUES (1, N'one', 1.5)").await;
    server.capture().await;
    let text = "SELECT * FROM [shop].cdc.[fn_cdc_get_all_changes_dbo_orders](0x00000000000000000000, sys.fn_cdc_get_max_lsn(), N'all update old')";
    assert_eq!(client.error(text).await.code(), 313);
    let missing = "SELECT * FROM [shop].cdc.[fn_cdc_get_all_changes_none](0x00, 0x00, N'all')";
    assert_eq!(client.error(missing).await.code(), 208);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_statements_that_look_at_the_state_work_as_they_are_sent() {
    let (server, mut client) = orders().await;
    client.run("INSERT dbo.orders VALUES (1, N'one', 1.5)").await;
    server.capture().await;
    let named = client.query("SELECT name FROM sys.databases WHERE name = @P1", &[&"SHOP"]).await;
    assert_eq!(named[0].get(0), Some("shop"));
    assert_eq!(client.rows("EXEC [shop].sys.sp_cdc_help_change_data_capture").await.len(), 1);
    assert_eq!(client.int("SELECT COUNT(*) FROM [shop].cdc.change_tables").await, 1);
    let last = "SELECT MAX(start_lsn) FROM [shop].cdc.lsn_time_mapping WHERE tran_id <> 0x00";
    let newest = lsn(&client.rows(last).await[0], 0);
    let limited = "SELECT MAX(start_lsn) FROM (SELECT TOP (@P1) start_lsn FROM [shop].cdc.lsn_time_mapping WHERE tran_id <> 0x00 ORDER BY start_lsn) AS t";
    assert_eq!(lsn(&client.query(limited, &[&10_i32]).await[0], 0), newest);
    let more = "SELECT MAX(start_lsn) FROM (SELECT TOP (@P1 + 1) start_lsn FROM [shop].cdc.lsn_time_mapping WHERE start_lsn >= @P2 AND tran_id <> 0x00 ORDER BY start_lsn) AS t";
    assert_eq!(lsn(&client.query(more, &[&10_i32, &newest]).await[0], 0), newest);
    let unknown = client.query("SELECT [shop].sys.fn_cdc_get_min_lsn(@P1)", &[&"none"]).await;
    assert_eq!(lsn(&unknown[0], 0), [0; 10]);
    let next = client.query("SELECT [shop].sys.fn_cdc_increment_lsn(@P1)", &[&newest]).await;
    assert!(lsn(&next[0], 0) > newest);
    assert_eq!(client.rows("SELECT MIN(start_lsn) FROM [shop].cdc.change_tables").await.len(), 1);
    let columns = "SELECT object_id, column_name, column_ordinal, column_type, is_computed FROM [shop].cdc.captured_columns ORDER BY object_id, column_id";
    assert_eq!(client.rows(columns).await.len(), 3);
    let instances = "WITH ordered_change_tables AS (SELECT ROW_NUMBER() OVER (PARTITION BY ct.source_object_id, ct.start_lsn ORDER BY ct.create_date DESC) AS ct_sequence, ct.* \
        FROM [shop].cdc.change_tables AS ct WHERE ct.start_lsn <= @P1) \
        SELECT OBJECT_SCHEMA_NAME(source_object_id, DB_ID(@P2)), OBJECT_NAME(source_object_id, DB_ID(@P2)), capture_instance, object_id, start_lsn \
        FROM ordered_change_tables WHERE ct_sequence = 1";
    let found = client.query(instances, &[&newest, &"shop"]).await;
    assert_eq!((found[0].get(0), found[0].get(1), found[0].get(2)), (Some("dbo"), Some("orders"), Some("dbo_orders")));
    let new = "SELECT * FROM [shop].cdc.change_tables WHERE start_lsn BETWEEN @P1 AND @P2";
    assert_eq!(client.query(new, &[&vec![0_u8; 10], &newest]).await.len(), 1);
    assert_eq!(client.query(new, &[&Option::<Vec<u8>>::None, &newest]).await.len(), 0);
    let jobs = client.rows("EXEC [shop].sys.sp_cdc_help_jobs").await;
    let polling = jobs.iter().find(|r| r.get::<&str, _>("job_type") == Some("capture")).unwrap();
    assert_eq!(polling.get::<i64, _>("pollinginterval"), Some(5));
    let agent = "SELECT CASE WHEN [status]=4 THEN 1 ELSE 0 END AS [isRunning] FROM [shop].sys.dm_server_services WHERE [servicename] LIKE N'SQL Server Agent (%'";
    assert_eq!(client.int(agent).await, 1);
    server.engine.set_agent(false);
    assert_eq!(client.int(agent).await, 0);
    assert_eq!(client.rows("SELECT SYSDATETIMEOFFSET()").await.len(), 1);
    let scan = "SELECT TOP 1 start_lsn FROM [shop].sys.dm_cdc_log_scan_sessions ORDER BY session_id DESC";
    assert_eq!(client.rows(scan).await.len(), 1);
    let parsed = client.query("SELECT PARSE(@P1 AS datetime2)", &[&"2024-02-29 01:02:03"]).await;
    assert_eq!(parsed.len(), 1);
}

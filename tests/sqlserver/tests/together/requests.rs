//! Requests and their ends: parameters, errors, cancellation, faults.

use futures::TryStreamExt;
use thalweg_sqlserver_emulator::session::Message;
use tiberius::error::Error;

use crate::server::shop;

#[tokio::test(flavor = "multi_thread")]
async fn an_error_has_its_number_severity_state_and_line() {
    let server = shop().await;
    let mut client = server.client("shop").await;
    let error = client.error("SELECT 1;\n\nSELECT * FROM dbo.nowhere").await;
    assert_eq!((error.code(), error.class(), error.state(), error.line()), (208, 16, 1, 3));
    assert_eq!(error.message(), "Invalid object name 'dbo.nowhere'.");
    let error = client.error("RAISERROR('own', 14, 7)").await;
    assert_eq!((error.code(), error.class(), error.state()), (50000, 14, 7));
    client.run("CREATE TABLE dbo.t (id int PRIMARY KEY)").await;
    assert_eq!(client.error("INSERT dbo.t VALUES (1), (1)").await.code(), 2627);
    assert_eq!(client.error("SELECT 1 FROM").await.code(), 102);
    assert_eq!(client.int("SELECT COUNT(*) FROM dbo.t").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_procedure_has_its_name_in_its_errors_and_try_catches_them() {
    let server = shop().await;
    let mut client = server.client("shop").await;
    client.run("CREATE PROCEDURE dbo.fails @n int = 0 AS\nBEGIN\n  SELECT 1 / @n\nEND").await;
    let error = client.error("EXEC dbo.fails").await;
    assert_eq!((error.code(), error.procedure(), error.line()), (8134, "fails", 3));
    let caught = "BEGIN TRY EXEC dbo.fails @n = 0 END TRY BEGIN CATCH SELECT ERROR_NUMBER() END CATCH";
    assert_eq!(client.int(caught).await, 8134);
    assert_eq!(client.error("EXEC dbo.fails @m = 1").await.code(), 8145);
    assert_eq!(client.error("EXEC dbo.fails 1, 2").await.code(), 8144);
    assert_eq!(client.error("EXEC dbo.nothing").await.code(), 2812);
    client.run("DROP PROCEDURE dbo.fails").await;
    assert_eq!(client.error("EXEC dbo.fails").await.code(), 2812);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rows_of_a_procedure_can_be_inserted() {
    let server = shop().await;
    let mut client = server.client("shop").await;
    client.run("CREATE PROCEDURE dbo.two AS SELECT 1, N'a' UNION ALL SELECT 2, N'b'; SELECT 3, N'c'").await;
    client.run("CREATE TABLE dbo.t (id int, v nvarchar(10))").await;
    let rows = client.rows("INSERT dbo.t EXEC dbo.two; SELECT COUNT(*), MAX(v) FROM dbo.t").await;
    assert_eq!((rows[0].get::<i32, _>(0), rows[0].get::<&str, _>(1)), (Some(3), Some("c")));
    client.run("CREATE PROCEDURE dbo.odd AS SELECT 1").await;
    assert_eq!(client.error("INSERT dbo.t EXEC dbo.odd").await.code(), 213);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_in_the_middle_of_a_result_ends_its_session() {
    let server = shop().await;
    let mut client = server.client("shop").await;
    client.run("CREATE TABLE dbo.t (id int)").await;
    client.run("INSERT dbo.t VALUES (1), (2), (3), (4), (5), (6), (7), (8), (9), (10)").await;
    let endless = "SELECT a.id FROM dbo.t a, dbo.t b, dbo.t c, dbo.t d, dbo.t e, dbo.t f, dbo.t g, dbo.t h";
    let mut stream = client.0.query(endless, &[]).await.unwrap();
    for _ in 0..100 {
        stream.try_next().await.unwrap().unwrap();
    }
    drop(stream);
    drop(client);
    server.tds.until_connections(0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fault_refuses_a_request_that_the_engine_never_sees() {
    let server = shop().await;
    let mut client = server.client("shop").await;
    client.run("CREATE TABLE dbo.t (id int)").await;
    let error = Message {
        number: 1205,
        state: 1,
        class: 13,
        text: "Transaction was deadlocked.".into(),
        procedure: String::new(),
        line: 1,
    };
    server.tds.faults().refuse_next(error);
    assert_eq!(client.error("INSERT dbo.t VALUES (1)").await.code(), 1205);
    assert_eq!(client.int("SELECT COUNT(*) FROM dbo.t").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_is_cut_takes_its_transaction_back() {
    let server = shop().await;
    let mut client = server.client("shop").await;
    client.run("CREATE TABLE dbo.t (id int); BEGIN TRAN; INSERT dbo.t VALUES (1)").await;
    server.tds.connections().last().unwrap().cut();
    server.tds.until_connections(0).await;
    assert!(matches!(client.try_rows("SELECT 1").await, Err(Error::Io { .. })));
    let mut other = server.client("shop").await;
    // Waits for the other's lock, which ends with its session.
    assert_eq!(other.int("SELECT COUNT(*) FROM dbo.t").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn apply_evaluates_its_right_side_for_each_row() {
    let server = shop().await;
    let mut client = server.client("shop").await;
    client.run("CREATE TABLE dbo.a (id int, name nvarchar(9)); INSERT dbo.a VALUES (1, N'p'), (2, N'q')").await;
    client.run("CREATE TABLE dbo.b (a int, v decimal(5,2), x varbinary(4)); INSERT dbo.b VALUES (1, 10, 0x01), (1, 20.5, 0x02), (1, 5, NULL)").await;
    let right = "(SELECT TOP 2 b.v, b.x FROM dbo.b b WHERE b.a = a.id ORDER BY b.v DESC) AS t";
    let rows = client
        .rows(&format!("SELECT a.id, CAST(t.v AS nvarchar(9)), t.x FROM dbo.a a CROSS APPLY {right} ORDER BY t.v"))
        .await;
    let found: Vec<_> = rows.iter().map(|r| (r.get::<i32, _>(0), r.get::<&str, _>(1), r.get::<&[u8], _>(2))).collect();
    assert_eq!(found, [(Some(1), Some("10.00"), Some(&[1][..])), (Some(1), Some("20.50"), Some(&[2][..]))]);
    let rows = client.rows(&format!("SELECT a.name, t.v FROM dbo.a a OUTER APPLY {right} WHERE t.v IS NULL")).await;
    assert_eq!((rows.len(), rows[0].get::<&str, _>(0)), (1, Some("q")));
}

#[tokio::test(flavor = "multi_thread")]
async fn top_takes_percents_and_rounds_up() {
    let server = shop().await;
    let mut client = server.client("shop").await;
    client.run("CREATE TABLE dbo.t (id int PRIMARY KEY); INSERT dbo.t VALUES (1), (2), (3), (4), (5)").await;
    assert_eq!(client.rows("SELECT TOP (50) PERCENT id FROM dbo.t ORDER BY id DESC").await.len(), 3);
    assert_eq!(client.rows("SELECT TOP 20 PERCENT id FROM dbo.t").await.len(), 1);
    assert_eq!(client.rows("SELECT TOP (0.1) PERCENT id FROM dbo.t").await.len(), 1);
}

//! Several sessions: logins, permissions, locks, deadlocks, `KILL`.

use tiberius::error::Error;

use crate::server::shop;

#[tokio::test(flavor = "multi_thread")]
async fn a_login_is_refused_with_the_reason() {
    let server = shop().await;
    let refused =
        async |user: &str, password: &str, database: &str| match server.connect(user, password, database).await {
            Err(Error::Server(error)) => error.code(),
            Err(other) => panic!("{other}"),
            Ok(_) => 0,
        };
    assert_eq!(refused("sa", "wrong", "shop").await, 18456);
    assert_eq!(refused("nobody", "x", "shop").await, 18456);
    assert_eq!(refused("sa", "Password!1", "nowhere").await, 4060);
    server.client("shop").await.run("CREATE LOGIN reader WITH PASSWORD = 'Reader!1'").await;
    assert_eq!(refused("reader", "Reader!1", "shop").await, 4060);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_may_do_what_was_granted() {
    let server = shop().await;
    let mut owner = server.client("shop").await;
    owner.run("CREATE TABLE dbo.open_to_all (id int); CREATE TABLE dbo.secret (id int)").await;
    owner.run("CREATE LOGIN reader WITH PASSWORD = 'Reader!1'; CREATE USER reader FOR LOGIN reader").await;
    owner.run("GRANT SELECT ON dbo.open_to_all TO reader").await;
    owner.run("CREATE PROCEDURE dbo.p AS SELECT 7").await;
    let mut reader = server.connect("reader", "Reader!1", "shop").await.unwrap();
    assert_eq!(reader.int("SELECT COUNT(*) FROM dbo.open_to_all").await, 0);
    assert_eq!(reader.error("SELECT * FROM dbo.secret").await.code(), 229);
    assert_eq!(reader.error("INSERT dbo.open_to_all VALUES (1)").await.code(), 229);
    assert_eq!(reader.error("EXEC dbo.p").await.code(), 229);
    owner.run("GRANT EXECUTE ON dbo.p TO reader").await;
    assert_eq!(reader.int("EXEC dbo.p").await, 7);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_that_does_not_come_is_error_1222() {
    let server = shop().await;
    let (mut one, mut other) = (server.client("shop").await, server.client("shop").await);
    one.run("CREATE TABLE dbo.t (id int PRIMARY KEY, v int); INSERT dbo.t VALUES (1, 10)").await;
    one.run("BEGIN TRAN; UPDATE dbo.t SET v = 11").await;
    assert_eq!(other.error("SET LOCK_TIMEOUT 20; SELECT * FROM dbo.t").await.code(), 1222);
    one.run("ROLLBACK").await;
    assert_eq!(other.int("SELECT v FROM dbo.t").await, 10);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_that_wait_for_each_other_one_is_the_victim() {
    let server = shop().await;
    let (mut one, mut other) = (server.client("shop").await, server.client("shop").await);
    one.run("CREATE TABLE dbo.a (v int); INSERT dbo.a VALUES (1); CREATE TABLE dbo.b (v int); INSERT dbo.b VALUES (1)")
        .await;
    one.run("BEGIN TRAN; UPDATE dbo.a SET v = 2").await;
    other.run("SET DEADLOCK_PRIORITY LOW; BEGIN TRAN; UPDATE dbo.b SET v = 3").await;
    let session = one.session().await;
    let waiting = tokio::spawn(async move {
        one.run("UPDATE dbo.b SET v = 2; COMMIT").await;
        one
    });
    server.until_waiting(session).await;
    assert_eq!(other.error("UPDATE dbo.a SET v = 3").await.code(), 1205);
    let mut one = waiting.await.unwrap();
    assert_eq!(one.int("SELECT v FROM dbo.b").await, 2);
    assert_eq!(other.int("SELECT @@TRANCOUNT").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn kill_ends_a_session_even_one_that_waits() {
    let server = shop().await;
    let (mut one, mut other) = (server.client("shop").await, server.client("shop").await);
    one.run("CREATE TABLE dbo.t (v int); INSERT dbo.t VALUES (1); BEGIN TRAN; UPDATE dbo.t SET v = 2").await;
    let session = other.session().await;
    let waiting = tokio::spawn(async move { other.try_rows("SELECT * FROM dbo.t").await.is_err() });
    server.until_waiting(session).await;
    one.run(&format!("KILL {session}")).await;
    assert!(waiting.await.unwrap());
    server.tds.until_connections(1).await;
    assert_eq!(one.error("KILL 999").await.code(), 6106);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_stays_as_it_was() {
    let server = shop().await;
    let (mut one, mut other) = (server.client("shop").await, server.client("shop").await);
    one.run("CREATE TABLE dbo.t (v int); INSERT dbo.t VALUES (1)").await;
    let begin = "SET TRANSACTION ISOLATION LEVEL SNAPSHOT; BEGIN TRAN; SELECT v FROM dbo.t";
    assert_eq!(other.error(begin).await.code(), 3952);
    other.run("IF @@TRANCOUNT > 0 ROLLBACK").await;
    one.run("ALTER DATABASE shop SET ALLOW_SNAPSHOT_ISOLATION ON").await;
    assert_eq!(other.int(begin).await, 1);
    one.run("UPDATE dbo.t SET v = 2").await;
    assert_eq!(other.int("SELECT v FROM dbo.t").await, 1);
    other.run("COMMIT").await;
    assert_eq!(other.int("SELECT v FROM dbo.t").await, 2);
}

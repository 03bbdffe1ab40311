//! Transactions of several sessions: what they see, whom they wait for.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use support::{Client, int, shop};
use thalweg_sqlserver_emulator::engine::Emulator;

fn two(server: &Emulator) -> (Client, Client) {
    let (mut one, other) = (Client::to(server, "shop"), Client::to(server, "shop"));
    one.rows("CREATE TABLE t (id int PRIMARY KEY, v int); INSERT t VALUES (1, 10), (2, 20)");
    one.rows("CREATE TABLE u (id int PRIMARY KEY, v int); INSERT u VALUES (1, 10)");
    (one, other)
}

#[test]
fn a_rollback_takes_everything_back_and_a_savepoint_the_rest() {
    let server = shop();
    let (mut one, _) = two(&server);
    one.rows("BEGIN TRAN; UPDATE t SET v = 11 WHERE id = 1; SAVE TRAN s; DELETE t WHERE id = 2; INSERT t VALUES (3, 30); ROLLBACK TRAN s; COMMIT");
    assert_eq!(one.rows("SELECT id, v FROM t"), [[int(1), int(11)], [int(2), int(20)]]);
    one.rows("BEGIN TRAN; UPDATE t SET v = 0; CREATE TABLE w (id int); ROLLBACK");
    assert_eq!(one.rows("SELECT v FROM t"), [[int(11)], [int(20)]]);
    assert_eq!(one.error("SELECT * FROM w"), 208);
    assert_eq!(server.open_transactions(), 0);
}

#[test]
fn a_session_that_ends_is_rolled_back() {
    let server = shop();
    let (mut one, mut other) = two(&server);
    other.rows("BEGIN TRAN; UPDATE t SET v = 0");
    drop(other);
    assert_eq!(one.rows("SET LOCK_TIMEOUT 0; SELECT v FROM t"), [[int(10)], [int(20)]]);
}

#[test]
fn t_64_readers_wait_for_writers_unless_they_do_not_care() {
    let server = shop();
    let (mut one, mut other) = two(&server);
    one.rows("BEGIN TRAN; UPDATE t SET v = 11 WHERE id = 1");
    assert_eq!(other.error("SET LOCK_TIMEOUT 10; SELECT v FROM t"), 1222);
    assert_eq!(other.rows("SELECT v FROM t WITH (NOLOCK) WHERE id = 1"), [[int(11)]]);
    assert_eq!(other.error("UPDATE t SET v = 12 WHERE id = 1"), 1222);
    other.rows("UPDATE t SET v = 21 WHERE id = 2");
    one.rows("COMMIT");
    assert_eq!(other.rows("SELECT v FROM t"), [[int(11)], [int(21)]]);
}

#[test]
fn an_exclusive_table_lock_keeps_writers_out_until_the_savepoint_or_the_end() {
    let server = shop();
    let (mut one, mut other) = two(&server);
    one.rows("BEGIN TRAN; SELECT TOP(0) * FROM [shop].[dbo].[t] WITH (TABLOCKX)");
    assert_eq!(other.error("SET LOCK_TIMEOUT 0; INSERT t VALUES (3, 30)"), 1222);
    one.rows("ROLLBACK");
    other.rows("INSERT t VALUES (3, 30)");
}

#[test]
fn t_65_a_snapshot_is_what_was_committed_when_it_first_read() {
    let server = shop();
    let (mut one, mut other) = two(&server);
    assert_eq!(one.error("SET TRANSACTION ISOLATION LEVEL SNAPSHOT; BEGIN TRAN; SELECT v FROM t"), 3952);
    one.rows("ROLLBACK; ALTER DATABASE shop SET ALLOW_SNAPSHOT_ISOLATION ON");
    other.rows("BEGIN TRAN; UPDATE t SET v = 21 WHERE id = 2");
    assert_eq!(one.rows("BEGIN TRAN; SELECT v FROM t"), [[int(10)], [int(20)]]);
    other.rows("UPDATE t SET v = 11 WHERE id = 1; DELETE t WHERE id = 2; INSERT t VALUES (3, 30); COMMIT");
    assert_eq!(one.rows("SELECT v FROM t"), [[int(10)], [int(20)]]);
    assert_eq!(one.error("UPDATE t SET v = 12 WHERE id = 1"), 3960);
    assert_eq!(one.rows("SET TRANSACTION ISOLATION LEVEL READ COMMITTED; SELECT v FROM t"), [[int(11)], [int(30)]]);
}

#[test]
fn two_that_wait_for_each_other_are_a_deadlock() {
    let server = shop();
    let (mut one, mut other) = two(&server);
    one.rows("BEGIN TRAN; UPDATE t SET v = 11 WHERE id = 1");
    other.rows("BEGIN TRAN; UPDATE u SET v = 11; INSERT u VALUES (2, 20)");
    let id = one.0.id();
    let waiting = std::thread::spawn(move || {
        let heard = one.ask("UPDATE u SET v = 12 WHERE id = 1; SELECT @@TRANCOUNT");
        (one, heard.errors())
    });
    while !server.waits(id) {
        std::thread::yield_now();
    }
    let heard = other.ask("UPDATE t SET v = 12 WHERE id = 1");
    let (_, errors) = waiting.join().unwrap();
    // The first has less to undo.
    assert_eq!((errors, heard.errors()), (vec![1205], vec![]));
    other.rows("COMMIT");
    assert_eq!(other.rows("SELECT v FROM t WHERE id = 1"), [[int(12)]]);
}

#[test]
fn kill_ends_a_session() {
    let server = shop();
    let (mut one, mut other) = two(&server);
    other.rows("BEGIN TRAN; UPDATE t SET v = 0");
    one.rows(&format!("KILL {}", other.0.id()));
    assert!(other.0.killed());
    assert_eq!(other.ask("SELECT 1").messages[0].number, 596);
}

#[test]
fn t_45_a_database_that_is_offline_cannot_be_read() {
    let server = shop();
    let (one, _) = two(&server);
    let mut master = Client::to(&server, "master");
    master.rows("ALTER DATABASE shop SET OFFLINE WITH ROLLBACK IMMEDIATE");
    assert_eq!(master.error("SELECT * FROM shop.dbo.t"), 942);
    assert!(one.0.killed());
    drop(one);
    master.rows("ALTER DATABASE shop SET ONLINE");
    assert_eq!(master.rows("SELECT COUNT(*) FROM shop.dbo.t"), [[int(2)]]);
}

#[test]
fn with_read_committed_snapshot_readers_wait_for_nobody() {
    let server = shop();
    let (mut one, mut other) = two(&server);
    one.rows("ALTER DATABASE shop SET READ_COMMITTED_SNAPSHOT ON");
    other.rows("BEGIN TRAN; UPDATE t SET v = 11 WHERE id = 1; DELETE t WHERE id = 2");
    assert_eq!(one.rows("SET LOCK_TIMEOUT 0; BEGIN TRAN; SELECT v FROM t"), [[int(10)], [int(20)]]);
    assert_eq!(other.rows("SELECT v FROM t"), [[int(11)]]);
    other.rows("COMMIT");
    assert_eq!(one.rows("SELECT v FROM t"), [[int(11)]], "each statement sees what is committed by then");
    one.rows("UPDATE t SET v = 12; COMMIT");
    assert_eq!(other.rows("SELECT v FROM t"), [[int(12)]]);
}

//! What each snapshot mode does at a start.

use serde_json::json;
use thalweg_core::{Error, ErrorKind, Policy};

use crate::fixture::Lab;
use crate::fixture::run::{Offsets, Run, afters, markers, settled, shown};
use crate::reading::{items, plain};

/// The error of a start.
async fn refusal(lab: &Lab, more: &[(&str, &str)], offsets: &std::sync::Arc<Offsets>) -> Error {
    let mut run = Run::start(&plain(lab, more), offsets).await.unwrap();
    let error = run.error().await.unwrap();
    run.stop().await.unwrap();
    error
}

/// Everything of the lab is delivered, in this mode.
async fn delivered(lab: &Lab, mode: &str) -> std::sync::Arc<Offsets> {
    let offsets = Offsets::new();
    let mut run = Run::start(&plain(lab, &[("snapshot.mode", mode)]), &offsets).await.unwrap();
    if mode == "initial" {
        run.take(2).await.unwrap();
    }
    settled(&mut run).await;
    run.stop().await.unwrap();
    offsets
}

#[tokio::test]
async fn sql_40_a_snapshot_of_structures_keeps_its_position() {
    let mut lab = items().await;
    for mode in ["schema_only", "no_data", "when_needed_no_data"] {
        let offsets = delivered(&lab, mode).await;
        lab.change("INSERT dbo.item VALUES (9, 'x')").await;
        let mut run = Run::start(&plain(&lab, &[("snapshot.mode", mode)]), &offsets).await.unwrap();
        let change = run.record().await.unwrap();
        assert_eq!(shown(std::slice::from_ref(&change)), [r#"item c null>{"id":9,"v":"x"}"#], "{mode}");
        assert!(change.offset.get("snapshot").is_none());
        run.stop().await.unwrap();
        lab.change("DELETE dbo.item WHERE id = 9").await;
    }
}

#[tokio::test]
async fn always_reads_everything_at_each_start() {
    let lab = items().await;
    let offsets = delivered(&lab, "initial").await;
    let mut run = Run::start(&plain(&lab, &[("snapshot.mode", "always")]), &offsets).await.unwrap();
    assert_eq!(markers(&run.take(2).await.unwrap()), ["first", "last"]);
    run.stop().await.unwrap();
}

#[tokio::test]
async fn t_34_a_single_snapshot_needs_no_capture() {
    let mut lab = Lab::start().await;
    lab.sql("CREATE DATABASE plain").await;
    lab.sql("CREATE TABLE plain.dbo.t (id int NOT NULL PRIMARY KEY, v int)").await;
    lab.sql("INSERT plain.dbo.t VALUES (1, 2)").await;
    let config = plain(&lab, &[("snapshot.mode", "initial_only"), ("database.names", "plain")]);
    let mut run = Run::start(&config, &Offsets::new()).await.unwrap();
    assert_eq!(afters(&run.take(1).await.unwrap()), [json!({"id": 1, "v": 2})]);
    while !run.has_finished() {
        run.advance().await.unwrap();
    }
    assert_eq!(run.offsets.only()["snapshot_completed"], true);
    run.stop().await.unwrap();
}

#[tokio::test]
async fn sql_41_a_lost_history_is_noticed_and_made_anew() {
    let mut lab = items().await;
    let offsets = delivered(&lab, "initial").await;
    // The offset alone is kept.
    let lost = Offsets::with(&[("server", "s1"), ("database", "shop")], offsets.only());
    lab.change("INSERT dbo.item VALUES (3, 'c')").await;
    let error = refusal(&lab, &[], &lost).await;
    assert_eq!((error.kind, error.policy()), (ErrorKind::SchemaChanged, Policy::NeedsUser));
    assert!(error.advice().contains("snapshot.mode=recovery"), "{}", error.advice());
    for mode in ["recovery", "schema_only_recovery"] {
        let lost = Offsets::with(&[("server", "s1"), ("database", "shop")], offsets.only());
        let mut run = Run::start(&plain(&lab, &[("snapshot.mode", mode)]), &lost).await.unwrap();
        assert_eq!(shown(&run.take(1).await.unwrap()), [r#"item c null>{"id":3,"v":"c"}"#], "{mode}");
        run.stop().await.unwrap();
    }
    let error = refusal(&lab, &[("snapshot.mode", "recovery")], &Offsets::new()).await;
    assert!(error.message.starts_with("Could not find existing redo log information"), "{}", error.message);
}

#[tokio::test]
async fn sql_25_a_position_that_was_cleaned_up_is_lost() {
    let mut lab = items().await;
    let offsets = delivered(&lab, "initial").await;
    lab.change("INSERT dbo.item VALUES (3, 'c')").await;
    lab.change("INSERT dbo.item VALUES (4, 'd')").await;
    lab.sql(
        "DECLARE @low binary(10); SET @low = sys.fn_cdc_get_max_lsn(); EXEC sys.sp_cdc_cleanup_change_table \
         @capture_instance = N'dbo_item', @low_water_mark = @low, @threshold = 5000",
    )
    .await;
    let error = refusal(&lab, &[], &offsets.copy()).await;
    assert_eq!((error.kind, error.policy()), (ErrorKind::PositionLost, Policy::NeedsUser));
    assert!(error.message.contains("is no longer available on the server"), "{}", error.message);
    let mut run = Run::start(&plain(&lab, &[("snapshot.mode", "when_needed")]), &offsets).await.unwrap();
    assert_eq!(markers(&run.take(4).await.unwrap()), ["first", "true", "true", "last"]);
    run.stop().await.unwrap();
}

#[tokio::test]
async fn an_unfinished_snapshot_needs_a_mode_that_takes_one() {
    let lab = items().await;
    let offsets = Offsets::new();
    let mut run = Run::start(&plain(&lab, &[]), &offsets).await.unwrap();
    run.record().await.unwrap();
    run.stop().await.unwrap();
    let mode = ("snapshot.mode", "configuration_based");
    let start = ("snapshot.mode.configuration.based.start.stream", "true");
    let error = refusal(&lab, &[mode, start], &offsets).await;
    assert!(error.message.starts_with("The connector previously stopped while taking a snapshot"), "{}", error.message);
}

#[tokio::test]
async fn t_65_an_isolation_that_the_database_does_not_allow_is_named() {
    let mut lab = items().await;
    let isolation = [("snapshot.isolation.mode", "snapshot")];
    let error = refusal(&lab, &isolation, &Offsets::new()).await;
    assert!(error.message.contains("error 3952"), "{}", error.message);
    assert!(error.advice().contains("ALLOW_SNAPSHOT_ISOLATION ON"), "{}", error.advice());
    lab.sql("ALTER DATABASE shop SET ALLOW_SNAPSHOT_ISOLATION ON").await;
    for mode in ["snapshot", "exclusive", "repeatable_read", "read_committed", "read_uncommitted"] {
        let config = plain(&lab, &[("snapshot.isolation.mode", mode)]);
        let mut run = Run::start(&config, &Offsets::new()).await.unwrap();
        assert_eq!(markers(&run.take(2).await.unwrap()), ["first", "last"], "{mode}");
        run.stop().await.unwrap();
    }
}

#[tokio::test]
async fn t_64_a_lock_that_is_not_had_in_time_makes_the_snapshot_be_tried_again() {
    let mut lab = items().await;
    lab.sql("BEGIN TRANSACTION; UPDATE dbo.item SET v = 'z' WHERE id = 1").await;
    let error = refusal(&lab, &[("snapshot.lock.timeout.ms", "0")], &Offsets::new()).await;
    assert!(error.message.contains("error 1222") && error.is_retriable(), "{}", error.message);
    let none = plain(&lab, &[("snapshot.locking.mode", "none"), ("snapshot.isolation.mode", "read_uncommitted")]);
    let mut run = Run::start(&none, &Offsets::new()).await.unwrap();
    assert_eq!(run.take(2).await.unwrap().len(), 2);
    run.stop().await.unwrap();
}

//! What streams tell of changes.

use std::time::{Duration, Instant};

use thalweg_core::relational::cell::Cell;
use thalweg_core::relational::table::Tables;
use thalweg_sqlserver::catalogue::Catalogue;
use thalweg_sqlserver::change::Rows;
use thalweg_sqlserver::lsn::Lsn;
use thalweg_sqlserver::position::{Place, SqlServerPosition};
use thalweg_sqlserver::stream::{Step, is_available};
use thalweg_sqlserver::transaction_end::TransactionEnd;
use thalweg_sqlserver_emulator::engine::{Capturing, Setup};
use thalweg_sqlserver_emulator::wire::server::Options;

use crate::fixture::{Lab, cells, changes, drain, shown};

#[tokio::test]
async fn changes_come_in_order_and_a_table_before_them() {
    let mut lab = Lab::start().await;
    lab.table("t", "id int PRIMARY KEY, v varchar(9)").await;
    lab.change(
        "INSERT dbo.t VALUES (1, 'a'), (2, 'b'); UPDATE dbo.t SET v = 'c' WHERE id = 2; DELETE dbo.t WHERE id = 1",
    )
    .await;
    for mode in ["direct", "function"] {
        let mut stream = lab.stream(&[("data.query.mode", mode)]);
        let steps = drain(&mut stream).await;
        assert_eq!(shown(&steps), ["CREATE t(id,v)", "t +1,a", "t +2,b", "t 2,b>2,c", "t -1,a"], "{mode}");
        assert!(stream.structure(&changes(&steps)[0].instance.table).is_some());
        assert_eq!(drain(&mut stream).await, []);
    }
}

#[tokio::test]
async fn t_13_an_update_of_the_key_is_a_delete_and_a_create_at_one_place() {
    let mut lab = Lab::start().await;
    lab.table("a", "id int PRIMARY KEY, x int").await;
    lab.change("INSERT dbo.a VALUES (1, 7)").await;
    lab.change("UPDATE dbo.a SET id = 100 WHERE id = 1").await;
    let steps = drain(&mut lab.stream(&[])).await;
    assert_eq!(shown(&steps), ["CREATE a(id,x)", "a +1,7", "a -1,7", "a +100,7"]);
    let changes = changes(&steps);
    assert_eq!(changes[1].place, changes[2].place);
    assert_eq!((changes[0].serial, changes[1].serial, changes[2].serial), (1, 1, 2));
}

#[tokio::test]
async fn sql_11_large_values_that_an_update_did_not_touch_are_unavailable() {
    let mut lab = Lab::start().await;
    for more in [0, 5, 6, 14] {
        let filling: String = (0..more).map(|n| format!(", f{n} int")).collect();
        let name = format!("doc{more}");
        lab.table(&name, &format!("id int PRIMARY KEY, title varchar(20){filling}, body nvarchar(max)")).await;
        lab.sql(&format!("INSERT dbo.{name} (id, title, body) VALUES (1, 'a', N'long')")).await;
        lab.sql(&format!("UPDATE dbo.{name} SET title = 'b'")).await;
        lab.change(&format!("UPDATE dbo.{name} SET body = NULL")).await;
        lab.change(&format!("DELETE dbo.{name}")).await;
        let steps = drain(&mut lab.stream(&[("table.include.list", &format!("dbo.{name}"))])).await;
        let body = |row: &[Cell]| cells(&row[row.len() - 1..]);
        let bodies: Vec<_> = changes(&steps)
            .into_iter()
            .map(|change| match &change.rows {
                Rows::Insert(row) | Rows::Delete(row) => body(row),
                Rows::Update { before, after } => format!("{}>{}", body(before), body(after)),
            })
            .collect();
        // The third is T36: null that was really set.
        assert_eq!(bodies, ["long", "?>?", "long>null", "null"], "{} columns", more + 3);
    }
}

#[tokio::test]
async fn t_01_a_computed_column_has_no_value_in_changes() {
    let mut lab = Lab::start().await;
    lab.table("c", "id int PRIMARY KEY, twice AS (id * 2)").await;
    lab.change("INSERT dbo.c VALUES (4)").await;
    assert_eq!(shown(&drain(&mut lab.stream(&[])).await), ["CREATE c(id,twice)", "c +4,null"]);
}

#[tokio::test]
async fn sql_08_money_comes_as_a_decimal() {
    let mut lab = Lab::start().await;
    lab.table("n", "id int PRIMARY KEY, a numeric(10,2), c money, d decimal(38,0), e smallmoney").await;
    let nines = "9".repeat(38);
    lab.change(&format!("INSERT dbo.n VALUES (1, -17.80, -12.34, {nines}, -0.005)")).await;
    for mode in ["direct", "function"] {
        let steps = drain(&mut lab.stream(&[("data.query.mode", mode)])).await;
        assert_eq!(shown(&steps)[1], format!("n +1,-17.80,-12.3400,{nines},-0.0050"));
    }
}

#[tokio::test]
async fn sql_02_odd_names_of_everything() {
    let mut lab = Lab::start().await;
    lab.sql("CREATE SCHEMA [ops ['a']]]").await;
    lab.sql("CREATE TABLE [ops ['a']]].[CRN UK$Ledger 50%] (id int PRIMARY KEY, [amt $net] varchar(20))").await;
    lab.sql(
        "EXEC sys.sp_cdc_enable_table @source_schema = N'ops [''a'']', @source_name = N'CRN UK$Ledger 50%', @role_name \
         = NULL, @capture_instance = N'ops [''a'']_CRN UK$Ledger 50%'",
    )
    .await;
    lab.change("INSERT [ops ['a']]].[CRN UK$Ledger 50%] VALUES (2, 'y')").await;
    for mode in ["direct", "function"] {
        let steps = drain(&mut lab.stream(&[("data.query.mode", mode)])).await;
        assert_eq!(shown(&steps), ["CREATE CRN UK$Ledger 50%(id,amt $net)", "CRN UK$Ledger 50% +2,y"], "{mode}");
        assert_eq!(changes(&steps)[0].instance.table.schema(), Some("ops ['a']"));
    }
}

#[tokio::test]
async fn sql_17_an_instance_with_quotes_in_its_name_is_dropped() {
    for mode in ["direct", "function"] {
        let mut lab = Lab::start().await;
        lab.table("a", "id int PRIMARY KEY").await;
        lab.table("b", "id int PRIMARY KEY").await;
        lab.enable("a", ", @capture_instance = N'it''s'").await;
        let mut stream = lab.stream(&[("data.query.mode", mode)]);
        lab.change("INSERT dbo.a VALUES (1)").await;
        assert_eq!(shown(&drain(&mut stream).await).last().unwrap(), "a +1");
        lab.sql("EXEC sys.sp_cdc_disable_table N'dbo', N'a', N'it''s'").await;
        lab.change("INSERT dbo.b VALUES (2)").await;
        assert_eq!(shown(&drain(&mut stream).await), ["b +2"], "{mode}");
    }
}

#[tokio::test]
async fn sql_22_operations_that_are_skipped_are_not_read() {
    let mut lab = Lab::start().await;
    lab.table("t", "id int PRIMARY KEY, v int").await;
    lab.change("INSERT dbo.t VALUES (201, 0); UPDATE dbo.t SET v = 1; INSERT dbo.t VALUES (202, 0); DELETE dbo.t WHERE id = 202; INSERT dbo.t VALUES (203, 0)").await;
    let shown = shown(&drain(&mut lab.stream(&[("skipped.operations", "u,d")])).await);
    assert_eq!(shown, ["CREATE t(id,v)", "t +201,0", "t +202,0", "t +203,0"]);
}

#[tokio::test]
async fn t_31_other_tables_are_never_asked() {
    let mut lab = Lab::start().await;
    lab.table("a", "id int PRIMARY KEY").await;
    lab.table("b", "id int PRIMARY KEY").await;
    lab.change("INSERT dbo.a VALUES (1); INSERT dbo.b VALUES (2)").await;
    let steps = drain(&mut lab.stream(&[("table.include.list", "dbo.a")])).await;
    assert_eq!(shown(&steps), ["CREATE a(id)", "a +1"]);
    let steps = drain(&mut lab.stream(&[("internal.capture.instance.exclude.list", "DBO_A")])).await;
    assert_eq!(shown(&steps), ["CREATE b(id)", "b +2"]);
}

#[tokio::test]
async fn t_32_a_database_without_captured_tables_is_quiet() {
    let lab = Lab::start().await;
    let mut stream = lab.stream(&[]);
    assert_eq!(drain(&mut stream).await, []);
}

#[tokio::test]
async fn t_29_a_table_that_is_enabled_later_is_told_with_its_first_change() {
    let mut lab = Lab::start().await;
    lab.table("a", "id int PRIMARY KEY").await;
    let mut stream = lab.stream(&[]);
    lab.change("INSERT dbo.a VALUES (1)").await;
    assert_eq!(shown(&drain(&mut stream).await), ["CREATE a(id)", "a +1"]);
    lab.table("b", "id int PRIMARY KEY").await;
    lab.change("INSERT dbo.b VALUES (1); INSERT dbo.a VALUES (2)").await;
    assert_eq!(shown(&drain(&mut stream).await), ["CREATE b(id)", "b +1", "a +2"]);
}

#[tokio::test]
async fn sql_17_an_instance_that_is_dropped_is_left_out() {
    for mode in ["direct", "function"] {
        let mut lab = Lab::start().await;
        lab.table("a", "id int PRIMARY KEY").await;
        lab.table("b", "id int PRIMARY KEY").await;
        let mut stream = lab.stream(&[("data.query.mode", mode)]);
        lab.change("INSERT dbo.a VALUES (1)").await;
        assert_eq!(shown(&drain(&mut stream).await).last().unwrap(), "a +1");
        assert_eq!(lab.emulator.open_transactions(), 0, "nobody is kept from disabling it");
        lab.sql("EXEC sys.sp_cdc_disable_table N'dbo', N'a', N'dbo_a'").await;
        lab.change("INSERT dbo.b VALUES (2)").await;
        assert_eq!(shown(&drain(&mut stream).await), ["b +2"], "{mode}");
        lab.change("INSERT dbo.b VALUES (3)").await;
        assert_eq!(shown(&drain(&mut stream).await), ["b +3"], "{mode}");
    }
}

#[tokio::test]
async fn t_51_a_window_without_our_changes_moves_the_position() {
    let mut lab = Lab::start().await;
    lab.table("a", "id int PRIMARY KEY").await;
    lab.table("b", "id int PRIMARY KEY").await;
    let mut stream = lab.stream(&[("table.include.list", "dbo.a")]);
    lab.change("INSERT dbo.b VALUES (1)").await;
    let newest = Catalogue::new("shop").max_lsn(&mut lab.admin).await.unwrap().unwrap();
    let steps = drain(&mut stream).await;
    assert_eq!(steps.last(), Some(&Step::Quiet(newest)));
    // What tells of scans that found nothing moves nothing.
    lab.emulator.idle("shop").unwrap();
    assert_eq!(drain(&mut stream).await, []);
}

#[tokio::test]
async fn sql_37_no_transaction_stays_open_between_looks() {
    let mut lab = Lab::start().await;
    lab.table("a", "id int PRIMARY KEY").await;
    let mut stream = lab.stream(&[]);
    for n in 0..5 {
        lab.change(&format!("INSERT dbo.a VALUES ({n})")).await;
        drain(&mut stream).await;
        assert_eq!(lab.emulator.open_transactions(), 0);
    }
}

#[tokio::test]
async fn sql_27_times_are_utc_whatever_the_servers_clock_shows() {
    let setup = Setup { capturing: Capturing::Test, utc_offset: 570, ..Setup::default() };
    let mut lab = Lab::with(setup, Options::default()).await;
    lab.table("a", "id int PRIMARY KEY").await;
    let before = thalweg_core::envelope::SourceTime::now().ms;
    lab.change("INSERT dbo.a VALUES (1)").await;
    for mode in ["direct", "function"] {
        let steps = drain(&mut lab.stream(&[("data.query.mode", mode)])).await;
        let at = changes(&steps)[0].time.unwrap().ms;
        // A datetime is rounded to three-hundredths of a second.
        assert!((before - 10..before + 60_000).contains(&at), "{at} is not near {before}");
    }
}

#[tokio::test]
async fn t_75_a_change_whose_time_is_gone_has_another() {
    let mut lab = Lab::start().await;
    lab.table("a", "id int PRIMARY KEY").await;
    lab.change("INSERT dbo.a VALUES (1)").await;
    lab.change("INSERT dbo.a VALUES (2)").await;
    lab.sql("DELETE FROM cdc.lsn_time_mapping WHERE start_lsn = (SELECT MIN(__$start_lsn) FROM cdc.dbo_a_CT)").await;
    let steps = drain(&mut lab.stream(&[])).await;
    assert_eq!(shown(&steps), ["CREATE a(id)", "a +1", "a +2"]);
    assert!(changes(&steps)[0].time.is_some());
}

#[tokio::test]
async fn sql_25_a_position_is_there_as_long_as_its_commit_is() {
    let mut lab = Lab::start().await;
    lab.table("a", "id int PRIMARY KEY").await;
    lab.change("INSERT dbo.a VALUES (1)").await;
    lab.change("INSERT dbo.a VALUES (2)").await;
    let catalogue = Catalogue::new("shop");
    let newest = catalogue.max_lsn(&mut lab.admin).await.unwrap().unwrap();
    lab.emulator.cleanup("shop", *newest.as_bytes()).unwrap();
    let oldest = catalogue.oldest(&mut lab.admin).await.unwrap();
    let at = |commit: Option<Lsn>| SqlServerPosition::at(Place::at_commit(commit), 0);
    assert!(is_available(oldest, &at(Some(newest))), "the edge itself is there");
    assert!(is_available(oldest, &at(None)));
    let mut below = *newest.as_bytes();
    below[9] = below[9].wrapping_sub(1);
    assert!(!is_available(oldest, &at(Some(Lsn::new(below)))));
    assert!(!is_available(None, &at(Some(newest))));
}

#[tokio::test]
async fn t_17_a_database_whose_changes_are_cleaned_up_is_idle() {
    let mut lab = Lab::start().await;
    lab.table("a", "id int PRIMARY KEY").await;
    lab.change("INSERT dbo.a VALUES (1)").await;
    let mut stream = lab.stream(&[]);
    drain(&mut stream).await;
    let newest = Catalogue::new("shop").max_lsn(&mut lab.admin).await.unwrap().unwrap();
    lab.emulator.cleanup("shop", *newest.next().unwrap().as_bytes()).unwrap();
    lab.sql("DELETE FROM cdc.lsn_time_mapping").await;
    assert_eq!(drain(&mut stream).await, []);
    lab.change("INSERT dbo.a VALUES (2)").await;
    assert_eq!(shown(&drain(&mut stream).await), ["a +2"]);
}

#[tokio::test]
async fn sql_26_a_stream_goes_on_when_its_connection_breaks() {
    let mut lab = Lab::start().await;
    lab.table("a", "id int PRIMARY KEY, v varchar(1000)").await;
    let before = lab.server.connections().len();
    let mut stream = lab.stream(&[("streaming.fetch.size", "7")]);
    assert_eq!(drain(&mut stream).await, []);
    let mut expected = vec!["CREATE a(id,v)".to_owned()];
    for round in 0..3 {
        let text = "x".repeat(900);
        let values: Vec<_> = (round * 20..round * 20 + 20).map(|n| format!("({n}, '{text}')")).collect();
        lab.change(&format!("INSERT dbo.a VALUES {}", values.join(","))).await;
        expected.extend((round * 20..round * 20 + 20).map(|n| format!("a +{n},{text}")));
    }
    let mut seen = Vec::new();
    for packets in [0_u64, 1, 2, 3, 5, 8, 13] {
        for connection in lab.server.connections().into_iter().skip(before) {
            connection.faults.drop_after(packets);
        }
        for _ in 0..9 {
            let step = stream.next().await.unwrap();
            seen.extend(shown(&[step]));
        }
    }
    seen.extend(shown(&drain(&mut stream).await));
    assert_eq!(seen, expected, "each change once and in order");
}

#[tokio::test]
async fn sql_36_a_transaction_is_over_when_the_log_has_nothing_more() {
    let mut lab = Lab::start().await;
    lab.table("a", "id int PRIMARY KEY").await;
    lab.change("INSERT dbo.a VALUES (1)").await;
    let catalogue = Catalogue::new("shop");
    let mut end = TransactionEnd::new(catalogue.capture_interval(&mut lab.admin).await);
    let read = Instant::now();
    let after = |seconds| read + Duration::from_secs(seconds);
    assert!(!end.is_over(after(99), &catalogue, &mut lab.admin).await.unwrap(), "nothing was read");
    end.moved(read);
    lab.capture();
    assert!(!end.is_over(after(9), &catalogue, &mut lab.admin).await.unwrap(), "two rounds of five seconds");
    assert!(end.is_over(after(10), &catalogue, &mut lab.admin).await.unwrap());
    assert!(!end.is_over(after(99), &catalogue, &mut lab.admin).await.unwrap(), "once");
    lab.change("INSERT dbo.a VALUES (2)").await;
    end.moved(after(100));
    assert!(!end.is_over(after(110), &catalogue, &mut lab.admin).await.unwrap(), "the newest scan found changes");
    lab.capture();
    assert!(!end.is_over(after(119), &catalogue, &mut lab.admin).await.unwrap(), "not asked again at once");
    assert!(end.is_over(after(120), &catalogue, &mut lab.admin).await.unwrap());
}

#[tokio::test]
async fn the_tables_that_moved_are_found_among_many() {
    let mut lab = Lab::start().await;
    for n in 0..130 {
        lab.table(&format!("t{n}"), "id int PRIMARY KEY").await;
    }
    lab.change("INSERT dbo.t129 VALUES (1); INSERT dbo.t5 VALUES (2)").await;
    let mut stream = lab.stream_from(&[], Tables::default(), &SqlServerPosition::at(Place::default(), 0));
    let steps = drain(&mut stream).await;
    let changes: Vec<String> = shown(&steps).into_iter().filter(|s| !s.starts_with("CREATE")).collect();
    assert_eq!(changes, ["t129 +1", "t5 +2"]);
}

//! From one capture instance of a table to the next.

use thalweg_core::relational::table::Tables;
use thalweg_sqlserver::position::SqlServerPosition;
use thalweg_sqlserver::stream::Step;

use crate::fixture::{Lab, behind, changes, drain, known, shown};

async fn altered(lab: &mut Lab) {
    lab.table("b", "id int PRIMARY KEY, colb varchar(30)").await;
    lab.change("INSERT dbo.b VALUES (10, 'x'), (11, 'x')").await;
    lab.sql("ALTER TABLE dbo.b ADD nc int NOT NULL DEFAULT 0").await;
    lab.change("INSERT dbo.b VALUES (100, 'x', 2)").await;
    lab.enable("b", ", @capture_instance = N'b_v2'").await;
    lab.change("INSERT dbo.b VALUES (1000, 'x', 3)").await;
    lab.change("INSERT dbo.b VALUES (1001, 'x', 3)").await;
}

const EXPECTED: [&str; 7] =
    ["CREATE b(id,colb)", "b +10,x", "b +11,x", "b +100,x", "ALTER b(id,colb,nc)", "b +1000,x,3", "b +1001,x,3"];

#[tokio::test]
async fn sql_16_a_second_instance_takes_over_where_it_begins() {
    let mut lab = Lab::start().await;
    altered(&mut lab).await;
    for most in ["0", "1", "2"] {
        for mode in ["direct", "function"] {
            let steps =
                drain(&mut lab.stream(&[("max.iteration.transactions", most), ("data.query.mode", mode)])).await;
            assert_eq!(shown(&steps), EXPECTED, "{most} {mode}");
        }
    }
}

#[tokio::test]
async fn an_instance_that_is_left_out_takes_nothing_over() {
    let mut lab = Lab::start().await;
    altered(&mut lab).await;
    let steps = drain(&mut lab.stream(&[("internal.capture.instance.exclude.list", "b_v2")])).await;
    let all = ["CREATE b(id,colb)", "b +10,x", "b +11,x", "b +100,x", "b +1000,x", "b +1001,x"];
    assert_eq!(shown(&steps), all);
}

/// The newer instance goes while its window is read, before a row of it was told: the older one tells them.
#[tokio::test]
async fn sql_17_what_a_dropped_instance_had_to_tell_the_other_one_tells() {
    let mut lab = Lab::start().await;
    altered(&mut lab).await;
    let mut stream = lab.stream(&[("streaming.fetch.size", "1")]);
    let mut seen = Vec::new();
    for _ in 0..2 {
        seen.push(stream.next().await.unwrap());
    }
    lab.sql("EXEC sys.sp_cdc_disable_table N'dbo', N'b', N'b_v2'").await;
    seen.extend(drain(&mut stream).await);
    let told = shown(&seen);
    let of = |text: &str| told.iter().filter(|step| step.starts_with(text)).count();
    for row in ["b +10,x", "b +11,x", "b +100,x", "b +1000,x", "b +1001,x"] {
        assert_eq!(of(row), 1, "{row}: {told:?}");
    }
}

#[tokio::test]
async fn t_21_a_second_instance_that_comes_while_streaming() {
    let mut lab = Lab::start().await;
    let mut stream = lab.stream(&[]);
    let mut seen = Vec::new();
    lab.table("b", "id int PRIMARY KEY, colb varchar(30)").await;
    lab.change("INSERT dbo.b VALUES (10, 'x'), (11, 'x')").await;
    seen.extend(drain(&mut stream).await);
    lab.sql("ALTER TABLE dbo.b ADD nc int NOT NULL DEFAULT 0").await;
    lab.change("INSERT dbo.b VALUES (100, 'x', 2)").await;
    seen.extend(drain(&mut stream).await);
    lab.enable("b", ", @capture_instance = N'b_v2'").await;
    lab.change("INSERT dbo.b VALUES (1000, 'x', 3)").await;
    seen.extend(drain(&mut stream).await);
    lab.sql("EXEC sys.sp_cdc_disable_table N'dbo', N'b', N'dbo_b'").await;
    lab.change("INSERT dbo.b VALUES (1001, 'x', 3)").await;
    seen.extend(drain(&mut stream).await);
    assert_eq!(shown(&seen), EXPECTED);
}

#[tokio::test]
async fn t_22_a_restart_before_or_behind_the_switch() {
    let mut lab = Lab::start().await;
    altered(&mut lab).await;
    let mut whole = drain(&mut lab.stream(&[])).await;
    whole.retain(|step| !matches!(step, Step::Superseded(_)));
    let at = |change: &thalweg_sqlserver::change::Change| {
        whole.iter().position(|step| matches!(step, Step::Change(c) if c == change)).unwrap()
    };
    for change in changes(&whole) {
        let told = at(change) + 1;
        let mut stream = lab.stream_from(&[], known(&whole[..told]), &behind(change));
        assert_eq!(shown(&drain(&mut stream).await), EXPECTED[told..], "behind {}", EXPECTED[told - 1]);
    }
}

#[tokio::test]
async fn t_25_a_dropped_column_stays_until_the_switch() {
    let mut lab = Lab::start().await;
    lab.table("t", "id int PRIMARY KEY, gone int").await;
    lab.change("INSERT dbo.t VALUES (1, 7)").await;
    let mut stream = lab.stream(&[]);
    let mut seen = drain(&mut stream).await;
    lab.sql("ALTER TABLE dbo.t DROP COLUMN gone").await;
    lab.change("INSERT dbo.t VALUES (2)").await;
    seen.extend(drain(&mut stream).await);
    lab.enable("t", ", @capture_instance = N't_v2'").await;
    lab.change("INSERT dbo.t VALUES (3)").await;
    seen.extend(drain(&mut stream).await);
    assert_eq!(shown(&seen), ["CREATE t(id,gone)", "t +1,7", "t +2,null", "ALTER t(id)", "t +3"]);
}

#[tokio::test]
async fn t_26_an_added_column_is_not_seen_without_a_new_instance() {
    let mut lab = Lab::start().await;
    lab.table("t", "id int PRIMARY KEY").await;
    lab.change("INSERT dbo.t VALUES (1)").await;
    let mut stream = lab.stream(&[]);
    let mut seen = drain(&mut stream).await;
    lab.sql("ALTER TABLE dbo.t ADD more int").await;
    lab.change("INSERT dbo.t VALUES (2, 5)").await;
    seen.extend(drain(&mut stream).await);
    assert_eq!(shown(&seen), ["CREATE t(id)", "t +1", "t +2"]);
}

#[tokio::test]
async fn sql_19_an_instance_that_is_made_anew_with_another_column_name() {
    let mut lab = Lab::start().await;
    lab.table("r", "id int PRIMARY KEY, name varchar(30)").await;
    lab.change("INSERT dbo.r VALUES (10, 'a')").await;
    let mut stream = lab.stream(&[]);
    let mut seen = drain(&mut stream).await;
    let position = behind(changes(&seen)[0]);
    lab.sql("EXEC sys.sp_cdc_disable_table N'dbo', N'r', N'dbo_r'").await;
    lab.sql("EXEC sp_rename 'dbo.r.name', 'first_name', 'COLUMN'").await;
    lab.enable("r", "").await;
    lab.change("INSERT dbo.r VALUES (11, 'b')").await;
    // T27: the same while the connector is stopped.
    let mut later = lab.stream_from(&[], known(&seen), &position);
    assert_eq!(shown(&drain(&mut later).await), ["ALTER r(id,first_name)", "r +11,b"]);
    seen.extend(drain(&mut stream).await);
    assert_eq!(shown(&seen), ["CREATE r(id,name)", "r +10,a", "ALTER r(id,first_name)", "r +11,b"]);
}

#[tokio::test]
async fn t_22_nothing_is_told_of_a_structure_that_did_not_change() {
    let mut lab = Lab::start().await;
    lab.table("t", "id int PRIMARY KEY").await;
    lab.change("INSERT dbo.t VALUES (1)").await;
    lab.enable("t", ", @capture_instance = N't_v2'").await;
    lab.change("INSERT dbo.t VALUES (2)").await;
    assert_eq!(shown(&drain(&mut lab.stream(&[])).await), ["CREATE t(id)", "t +1", "t +2"]);
    let beginning = SqlServerPosition::at(Default::default(), 0);
    let steps = drain(&mut lab.stream_from(&[], Tables::default(), &beginning)).await;
    assert_eq!(changes(&steps).len(), 2);
}

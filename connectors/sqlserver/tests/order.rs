//! The order of changes over tables, pages and transactions.

use crate::fixture::{Lab, behind, changes, drain, known, shown};

async fn three(lab: &mut Lab) {
    for name in ["a", "b", "c"] {
        lab.table(name, "id int PRIMARY KEY, v int").await;
    }
}

const TRANSACTION: &str = "BEGIN TRAN; INSERT dbo.b VALUES (1, 0); INSERT dbo.a VALUES (1, 0), (2, 0); UPDATE dbo.b SET \
                           v = 1; INSERT dbo.c VALUES (1, 0); DELETE dbo.a WHERE id = 1; UPDATE dbo.c SET id = 9; UPDATE \
                           dbo.a SET v = v + 1; COMMIT";

const EXPECTED: [&str; 9] =
    ["b +1,0", "a +1,0", "a +2,0", "b 1,0>1,1", "c +1,0", "a -1,0", "c -1,0", "c +9,0", "a 2,0>2,1"];

#[tokio::test]
async fn t_80_a_transaction_over_tables_comes_in_the_order_of_its_changes() {
    let mut lab = Lab::start().await;
    three(&mut lab).await;
    lab.change(TRANSACTION).await;
    for mode in ["direct", "function"] {
        let steps = drain(&mut lab.stream(&[("data.query.mode", mode)])).await;
        assert_eq!(shown(&steps)[3..], EXPECTED, "{mode}");
        let all = changes(&steps);
        assert!(all.iter().all(|change| change.place.commit == all[0].place.commit));
        assert!(all.is_sorted_by(|a, b| (a.place, a.serial) < (b.place, b.serial)));
    }
}

#[tokio::test]
async fn t_10_the_size_of_pages_changes_nothing() {
    let mut lab = Lab::start().await;
    three(&mut lab).await;
    for n in 0..3 {
        lab.change(&TRANSACTION.replace("(1,", &format!("(1{n},")).replace("id = 9", &format!("id = 9{n}"))).await;
        lab.change("DELETE dbo.a; DELETE dbo.b; DELETE dbo.c").await;
    }
    let whole = drain(&mut lab.stream(&[])).await;
    let places: Vec<_> = changes(&whole).iter().map(|c| (c.place, c.serial)).collect();
    assert!(places.len() > 30, "{places:?}");
    for mode in ["direct", "function"] {
        for rows in ["1", "2", "3", "5"] {
            let more = [("data.query.mode", mode), ("streaming.fetch.size", rows)];
            let paged = drain(&mut lab.stream(&more)).await;
            assert_eq!(shown(&paged), shown(&whole), "{mode}, pages of {rows}");
            let again: Vec<_> = changes(&paged).iter().map(|c| (c.place, c.serial)).collect();
            assert_eq!(again, places);
        }
    }
}

#[tokio::test]
async fn windows_of_few_transactions_change_nothing() {
    let mut lab = Lab::start().await;
    three(&mut lab).await;
    for n in 0..7 {
        lab.change(&format!("INSERT dbo.a VALUES ({n}, 0)")).await;
        lab.change(&format!("INSERT dbo.b VALUES ({n}, 0); DELETE dbo.b")).await;
    }
    let whole = shown(&drain(&mut lab.stream(&[("max.iteration.transactions", "0")])).await);
    for most in ["1", "2", "5", "500"] {
        assert_eq!(shown(&drain(&mut lab.stream(&[("max.iteration.transactions", most)])).await), whole, "{most}");
    }
}

/// Changes that do not rise along a table, as parallel plans of the server leave them.
#[tokio::test]
async fn t_09_changes_of_one_table_keep_the_order_of_statements() {
    let mut lab = Lab::start().await;
    lab.table("t", "id int PRIMARY KEY, v int").await;
    lab.change("BEGIN TRAN; INSERT dbo.t VALUES (1, 0); UPDATE dbo.t SET v = 1; UPDATE dbo.t SET v = 2; COMMIT").await;
    lab.change("INSERT dbo.t VALUES (7, 0)").await;
    // The second statement gets a place in front of the first.
    lab.sql(
        "UPDATE cdc.dbo_t_CT SET __$seqval = 0x00000000000000000001 WHERE __$operation IN (3, 4) AND v + __$operation \
         IN (3, 5)",
    )
    .await;
    let expected = ["CREATE t(id,v)", "t +1,0", "t 1,0>1,1", "t 1,1>1,2", "t +7,0"];
    for rows in ["1", "2", "3", "100"] {
        let steps = drain(&mut lab.stream(&[("streaming.fetch.size", rows)])).await;
        assert_eq!(shown(&steps), expected, "pages of {rows}");
        // From wherever it is resumed, nothing is lost.
        for (told, change) in changes(&steps).into_iter().enumerate() {
            let mut stream = lab.stream_from(&[("streaming.fetch.size", rows)], known(&steps), &behind(change));
            let rest = shown(&drain(&mut stream).await);
            assert!(rest.ends_with(&shown(&steps)[told + 2..]), "behind {told}: {rest:?}");
        }
    }
}

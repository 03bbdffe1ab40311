//! What a database says of itself.

use std::time::Duration;

use thalweg_core::relational::table::Table;
use thalweg_sqlserver::catalogue::Catalogue;
use thalweg_sqlserver::instance::CaptureInstance;
use thalweg_sqlserver::lsn::Lsn;

use crate::fixture::Lab;

const NEWEST: Lsn = Lsn::new([255; 10]);

async fn instance(lab: &mut Lab) -> CaptureInstance {
    let mut all = Catalogue::new("shop").instances(&mut lab.admin, NEWEST).await.unwrap();
    assert_eq!(all.len(), 1);
    all.remove(0)
}

async fn structure(lab: &mut Lab) -> Table {
    let instance = instance(lab).await;
    let is_captured = |name: &str| instance.columns.iter().any(|c| c.column.name == name);
    let catalogue = Catalogue::new("shop");
    let read = catalogue.table(&mut lab.admin, &instance.table, instance.source_object, is_captured).await;
    read.unwrap().unwrap()
}

/// Name, JDBC type, type name, length, scale, optional.
type Described<'a> = (&'a str, i32, &'a str, Option<i32>, Option<i32>, bool);

fn described(table: &Table) -> Vec<Described<'_>> {
    let all = table.columns().iter();
    all.map(|c| (&*c.name, c.jdbc_type, &*c.type_name, c.length, c.scale, c.optional)).collect()
}

fn key(table: &Table) -> Vec<&str> {
    table.primary_key().iter().map(|name| &**name).collect()
}

#[tokio::test]
async fn columns_and_their_types() {
    let mut lab = Lab::start().await;
    lab.table(
        "t",
        "id int NOT NULL IDENTITY PRIMARY KEY, a nvarchar(20) NULL, b varchar(max) NULL, c decimal(10,2) NOT NULL, \
         d datetime2(3) NULL, e money NULL, f varbinary(16) NULL, g uniqueidentifier NULL",
    )
    .await;
    let table = structure(&mut lab).await;
    assert_eq!(table.id.to_string(), "shop.dbo.t");
    assert_eq!(
        described(&table),
        [
            ("id", 4, "int identity", Some(10), Some(0), false),
            ("a", -9, "nvarchar", Some(20), None, true),
            ("b", 12, "varchar", Some(2_147_483_647), None, true),
            ("c", 3, "decimal", Some(10), Some(2), false),
            ("d", 93, "datetime2", Some(23), Some(3), true),
            ("e", 3, "money", Some(19), Some(4), true),
            ("f", -3, "varbinary", Some(16), None, true),
            ("g", 1, "uniqueidentifier", Some(36), None, true),
        ]
    );
    assert_eq!(key(&table), ["id"]);
    let captured = instance(&mut lab).await;
    let large: Vec<bool> = captured.columns.iter().map(|c| c.column.is_large()).collect();
    assert_eq!(large, [false, false, true, false, false, false, false, false]);
    assert!(captured.has_commands);
}

#[tokio::test]
async fn sql_18_captured_columns_are_a_part_of_the_table() {
    let mut lab = Lab::start().await;
    lab.sql("CREATE TABLE dbo.s (id int PRIMARY KEY, name varchar(30), amt int)").await;
    lab.enable("s", ", @captured_column_list = N'id, amt'").await;
    lab.sql("ALTER TABLE dbo.s ADD extra varchar(5)").await;
    let table = structure(&mut lab).await;
    let positions: Vec<_> = table.columns().iter().map(|c| (&*c.name, c.position)).collect();
    assert_eq!(positions, [("id", 1), ("amt", 2)]);
}

#[tokio::test]
async fn t_08_a_unique_index_is_a_key_where_there_is_no_other() {
    let mut lab = Lab::start().await;
    lab.sql("CREATE TABLE dbo.u (a int NULL, b int NOT NULL, c int NOT NULL)").await;
    lab.sql("CREATE UNIQUE INDEX z ON dbo.u (c)").await;
    lab.sql("CREATE UNIQUE INDEX y ON dbo.u (b, a) INCLUDE (c)").await;
    lab.enable("u", "").await;
    assert_eq!(key(&structure(&mut lab).await), ["b", "a"], "the first by name, without what is only included");
}

#[tokio::test]
async fn t_71_key_columns_that_are_not_captured_are_not_in_the_key() {
    let mut lab = Lab::start().await;
    lab.sql("CREATE TABLE dbo.k (a int NOT NULL, b int NOT NULL, v int, PRIMARY KEY (a, b))").await;
    lab.enable("k", ", @captured_column_list = N'b, v'").await;
    assert_eq!(key(&structure(&mut lab).await), ["b"]);
}

#[tokio::test]
async fn sql_28_a_table_may_have_no_key() {
    let mut lab = Lab::start().await;
    lab.table("kl", "a int, b varchar(9)").await;
    assert_eq!(key(&structure(&mut lab).await), Vec::<&str>::new());
}

#[tokio::test]
async fn sql_03_names_of_tables_and_columns_may_be_anything() {
    let mut lab = Lab::start().await;
    lab.sql("CREATE TABLE dbo.[Order] ([key] int PRIMARY KEY, [Select] varchar(5), [a]]b] int, [x'y %_#] int)").await;
    lab.enable("[Order]", "").await;
    lab.sql("CREATE TABLE dbo.[OrdeX] (other int)").await;
    let table = structure(&mut lab).await;
    let names: Vec<&str> = table.columns().iter().map(|c| &*c.name).collect();
    assert_eq!((table.id.table(), names), ("Order", vec!["key", "Select", "a]b", "x'y %_#"]));
}

#[tokio::test]
async fn sql_09_definitions_of_defaults_are_kept_as_they_are() {
    let mut lab = Lab::start().await;
    lab.table("d", "id int PRIMARY KEY, n int NOT NULL DEFAULT 5, s varchar(5) DEFAULT 'it''s'").await;
    let table = structure(&mut lab).await;
    let defaults: Vec<_> = table.columns().iter().map(|c| c.default.expression().map(|d| d.to_string())).collect();
    assert_eq!(defaults, [None, Some("((5))".to_owned()), Some("('it''s')".to_owned())]);
}

#[tokio::test]
async fn t_41_the_pause_of_the_capture_job_is_read_or_assumed() {
    let mut lab = Lab::start().await;
    lab.table("t", "id int PRIMARY KEY").await;
    let catalogue = Catalogue::new("shop");
    assert_eq!(catalogue.capture_interval(&mut lab.admin).await, Duration::from_secs(5));
    lab.sql("EXEC sys.sp_cdc_change_job @job_type = N'capture', @pollinginterval = 2").await;
    assert_eq!(catalogue.capture_interval(&mut lab.admin).await, Duration::from_secs(2));
    lab.sql("EXEC sys.sp_cdc_change_job @job_type = N'capture', @pollinginterval = 0").await;
    assert_eq!(catalogue.capture_interval(&mut lab.admin).await, Duration::from_secs(5));
}

#[tokio::test]
async fn t_15_the_agent_is_asked_for() {
    let mut lab = Lab::start().await;
    let catalogue = Catalogue::new("shop");
    assert!(catalogue.agent_runs(&mut lab.admin, None).await.unwrap());
    lab.emulator.set_agent(false);
    assert!(!catalogue.agent_runs(&mut lab.admin, None).await.unwrap());
    assert!(
        catalogue
            .agent_runs(&mut lab.admin, Some("SELECT 1 AS running FROM #db.sys.objects WHERE 1 = 0 UNION SELECT 1"))
            .await
            .unwrap()
    );
}

#[tokio::test]
async fn numbers_of_an_idle_database_are_null() {
    let mut lab = Lab::start().await;
    let catalogue = Catalogue::new("shop");
    assert_eq!(catalogue.max_lsn(&mut lab.admin).await.unwrap(), None);
    assert_eq!(catalogue.window_end(&mut lab.admin, None, None).await.unwrap(), None);
    assert_eq!(catalogue.oldest(&mut lab.admin).await.unwrap(), None);
    lab.table("t", "id int PRIMARY KEY").await;
    for n in 1..=4 {
        lab.change(&format!("INSERT dbo.t VALUES ({n})")).await;
    }
    let newest = catalogue.max_lsn(&mut lab.admin).await.unwrap();
    assert_eq!(catalogue.window_end(&mut lab.admin, None, None).await.unwrap(), newest);
    let first = catalogue.window_end(&mut lab.admin, None, Some(1)).await.unwrap();
    let third = catalogue.window_end(&mut lab.admin, first, Some(2)).await.unwrap();
    assert!(first < third && third < newest, "the one that is known is counted apart");
    assert_eq!(catalogue.window_end(&mut lab.admin, third, Some(2)).await.unwrap(), newest);
    lab.emulator.idle("shop").unwrap();
    assert_eq!(catalogue.window_end(&mut lab.admin, None, None).await.unwrap(), newest, "markers are no transactions");
}

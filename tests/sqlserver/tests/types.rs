//! Values of every type go in, are captured, and come out as they were.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use support::{Client, int, shop, text};
use thalweg_sqlserver_emulator::types::SqlType;
use thalweg_sqlserver_emulator::value::SqlValue;

/// Type, literal, and how the value reads as text (style 121).
const VALUES: &[(&str, &str, &str)] = &[
    ("bit", "1", "1"),
    ("tinyint", "255", "255"),
    ("smallint", "-32768", "-32768"),
    ("int", "-2147483648", "-2147483648"),
    ("bigint", "-9223372036854775808", "-9223372036854775808"),
    ("real", "0.5", "0.5"),
    ("float", "1.25e10", "1.25e+010"),
    ("decimal(38,4)", "-12345678901234567890.1234", "-12345678901234567890.1234"),
    ("numeric(5,2)", "-0.05", "-0.05"),
    ("money", "-922337203685477.5808", "-922337203685477.58"),
    ("smallmoney", "$6.323", "6.32"),
    ("date", "'2018-07-13'", "2018-07-13"),
    ("time(7)", "'23:59:59.9999999'", "23:59:59.9999999"),
    ("datetime2(7)", "'9999-12-31T23:59:59.9999999'", "9999-12-31 23:59:59.9999999"),
    ("datetimeoffset(3)", "'2018-07-13 12:23:45.456 -11:00'", "2018-07-13 12:23:45.456 -11:00"),
    ("datetime", "'1753-01-01 13:23:45.785'", "1753-01-01 13:23:45.787"),
    ("smalldatetime", "'2018-07-13 14:23:45'", "2018-07-13 14:24:00"),
    ("uniqueidentifier", "'6f9619ff-8b86-d011-b42d-00c04fc964ff'", "6F9619FF-8B86-D011-B42D-00C04FC964FF"),
    ("char(4)", "'ab'", "ab  "),
    ("varchar(10)", "'it''s'", "it's"),
    ("nvarchar(max)", "N'ünï😀'", "ünï😀"),
    ("xml", "'<a/>'", "<a/>"),
];

#[test]
fn values_come_back_from_tables_and_change_tables() {
    let server = shop();
    let mut client = Client::to(&server, "shop");
    client.rows("EXEC sys.sp_cdc_enable_db");
    for (n, (kind, literal, shown)) in VALUES.iter().enumerate() {
        client.rows(&format!("CREATE TABLE dbo.v{n} (id int PRIMARY KEY, v {kind})"));
        client.rows(&format!("EXEC sys.sp_cdc_enable_table N'dbo', N'v{n}', NULL"));
        client.rows(&format!("INSERT v{n} VALUES (1, {literal}), (2, NULL); UPDATE v{n} SET id = 3 WHERE id = 2"));
        server.capture("shop", 500).unwrap();
        for table in [format!("v{n}"), format!("cdc.dbo_v{n}_CT")] {
            let rows = client.rows(&format!("SELECT CONVERT(nvarchar(100), v, 121) FROM {table} WHERE id = 1"));
            assert_eq!(rows, [[text(shown)]], "{kind} in {table}");
        }
        assert_eq!(client.rows(&format!("SELECT v FROM v{n} WHERE id = 3")), [[SqlValue::Null]]);
        let heard = client.ask(&format!("SELECT v FROM v{n}"));
        let given = &heard.columns[0][0].kind;
        let captured = client.ask(&format!("SELECT v FROM cdc.dbo_v{n}_CT"));
        assert_eq!(&captured.columns[0][0].kind, given, "{kind}");
    }
}

#[test]
fn keys_compare_as_their_types_do() {
    let server = shop();
    let mut client = Client::to(&server, "shop");
    for (kind, low, high) in [
        ("decimal(10,2)", "-5", "3.5"),
        ("datetimeoffset", "'2020-01-01 00:00 +10:00'", "'2020-01-01 00:00 +01:00'"),
        ("uniqueidentifier", "'FFFFFFFF-0000-0000-0000-000000000000'", "'00000000-0000-0000-0000-000000000001'"),
        ("nvarchar(10)", "N'a'", "N'B'"),
        ("varbinary(5)", "0x01", "0x0101"),
        ("datetime", "'2020-01-01'", "'2020-01-01 00:00:01'"),
    ] {
        client.rows(&format!("CREATE TABLE k (v {kind} NOT NULL UNIQUE); INSERT k VALUES ({high}), ({low})"));
        let rows = client.rows(&format!("SELECT COUNT(*) FROM k WHERE v > {low} AND v <= {high}"));
        assert_eq!(rows, [[int(1)]], "{kind}");
        let first = client.rows("SELECT TOP 1 v FROM k ORDER BY v");
        assert_eq!(first, client.rows(&format!("SELECT v FROM k WHERE v = {low}")), "{kind}");
        assert_eq!(client.error(&format!("INSERT k VALUES ({low})")), 2627, "{kind}");
        client.rows("DROP TABLE k");
    }
}

#[test]
fn sql_02_names_may_have_any_characters() {
    let server = shop();
    let mut client = Client::to(&server, "shop");
    client.rows("CREATE SCHEMA [a.b]");
    client.rows("CREATE TABLE [a.b].[user %_ de]]tail] ([key] int PRIMARY KEY, [order by] int, [select] int, \"group\" int, [ünï $x] int)");
    client.rows("INSERT [shop].[a.b].[user %_ de]]tail] ([key], [order by], [select], [group], [ünï $x]) VALUES (1, 2, 3, 4, 5)");
    let heard = client.ask("SELECT [key], t.[order by], [select], [group], [ünï $x] FROM [shop].[a.b].[user %_ de]]tail] AS t ORDER BY [key]");
    assert_eq!(heard.rows, [[int(1), int(2), int(3), int(4), int(5)]], "{:?}", heard.messages);
    let names: Vec<&str> = heard.columns[0].iter().map(|c| c.name.as_str()).collect();
    assert_eq!(names, ["key", "order by", "select", "group", "ünï $x"]);
    let rows = client.rows("SELECT COUNT(*) FROM sys.tables WHERE name = N'user %_ de]tail'");
    assert_eq!(rows, [[int(1)]]);
}

#[test]
fn t_37_large_objects_of_the_old_types_are_captured_sparsely() {
    let server = shop();
    let mut client = Client::to(&server, "shop");
    client.rows("EXEC sys.sp_cdc_enable_db; CREATE TABLE dbo.o (id int PRIMARY KEY, n int, t text)");
    client.rows("EXEC sys.sp_cdc_enable_table N'dbo', N'o', NULL; INSERT o VALUES (1, 1, 'a'); UPDATE o SET n = 2; UPDATE o SET t = 'b'; DELETE o");
    server.capture("shop", 500).unwrap();
    let rows = client.rows("SELECT __$operation, t FROM cdc.dbo_o_CT ORDER BY __$start_lsn, __$operation");
    let none = || SqlValue::Null;
    assert_eq!(
        rows,
        [
            vec![int(2), text("a")],
            vec![int(3), none()],
            vec![int(4), none()],
            vec![int(3), none()],
            vec![int(4), text("b")],
            vec![int(1), none()]
        ]
    );
}

#[test]
fn t_52_a_system_versioned_table_keeps_its_history() {
    let server = shop();
    let mut client = Client::to(&server, "shop");
    client.rows(
        "CREATE TABLE dbo.h (id int PRIMARY KEY, v int, s datetime2 GENERATED ALWAYS AS ROW START HIDDEN NOT NULL, \
         e datetime2 GENERATED ALWAYS AS ROW END HIDDEN NOT NULL, PERIOD FOR SYSTEM_TIME (s, e)) WITH (SYSTEM_VERSIONING = ON (HISTORY_TABLE = dbo.h_old))",
    );
    client.rows("INSERT h (id, v) VALUES (1, 10); UPDATE h SET v = 11");
    assert_eq!(client.rows("SELECT * FROM h"), [[int(1), int(11)]]);
    assert_eq!(client.rows("SELECT id, v FROM h_old"), [[int(1), int(10)]]);
    let heard = client.ask("SELECT s FROM h");
    assert_eq!(heard.columns[0][0].kind, SqlType::DateTime2 { scale: 7 });
    assert_eq!(
        client.rows("SELECT COUNT(*) FROM sys.columns WHERE is_hidden = 1 AND generated_always_type > 0"),
        [[int(2)]]
    );
}

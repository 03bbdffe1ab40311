//! T-SQL: queries, rows that change, types, errors.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use support::{Client, int, shop, text};
use thalweg_sqlserver_emulator::types::{Length, SqlType};
use thalweg_sqlserver_emulator::value::SqlValue;

#[test]
fn rows_go_in_change_and_go() {
    let server = shop();
    let mut client = Client::to(&server, "shop");
    client.rows("CREATE TABLE dbo.item (id int IDENTITY(1,1) PRIMARY KEY, name nvarchar(20) NOT NULL, price decimal(10,2) DEFAULT 1.5, at datetime2(3))");
    client.rows("INSERT INTO dbo.item (name) VALUES (N'a'), (N'b'); INSERT item (name, price, at) VALUES ('c', 2, '2020-01-02T03:04:05.678')");
    let heard = client.ask("UPDATE dbo.item SET price = price * 2 WHERE id >= 2; DELETE FROM item WHERE name = 'A'");
    assert_eq!(heard.counts, [Some(2), Some(1)]);
    let rows = client.rows("SELECT id, name, price FROM [shop].[dbo].[item]");
    let price = |units| SqlValue::Decimal { units, scale: 2 };
    assert_eq!(rows, [vec![int(2), text("b"), price(300)], vec![int(3), text("c"), price(400)]]);
    let heard = client.ask("SELECT * FROM item WHERE id = 3");
    let kinds: Vec<SqlType> = heard.columns[0].iter().map(|c| c.kind.clone()).collect();
    assert_eq!(
        kinds,
        [
            SqlType::Int,
            SqlType::NVarChar(Length::Limited(20)),
            SqlType::Decimal { precision: 10, scale: 2 },
            SqlType::DateTime2 { scale: 3 }
        ]
    );
    assert!(heard.columns[0][0].identity && !heard.columns[0][0].nullable);
}

#[test]
fn queries_of_every_shape_run() {
    let server = shop();
    let mut client = Client::to(&server, "shop");
    client.rows("CREATE TABLE a (id int PRIMARY KEY, g int, v varchar(10)); INSERT a VALUES (1, 1, 'x'), (2, 1, 'y'), (3, 2, 'Z')");
    for (query, expected) in [
        ("SELECT TOP (2) id FROM a ORDER BY id DESC", vec![vec![int(3)], vec![int(2)]]),
        (
            "SELECT g, COUNT(*), MAX(v) FROM a GROUP BY g ORDER BY g",
            vec![vec![int(1), int(2), text("y")], vec![int(2), int(1), text("Z")]],
        ),
        ("SELECT id FROM a ORDER BY id OFFSET 1 ROWS FETCH NEXT 1 ROWS ONLY", vec![vec![int(2)]]),
        ("SELECT x.id FROM a x LEFT JOIN a y ON y.id = x.id + 1 WHERE y.id IS NULL", vec![vec![int(3)]]),
        ("SELECT id FROM a WHERE v IN ('X', 'z') ORDER BY 1", vec![vec![int(1)], vec![int(3)]]),
        ("SELECT id FROM a WHERE id IN (SELECT id FROM a WHERE g = 2)", vec![vec![int(3)]]),
        ("SELECT id FROM a WHERE EXISTS (SELECT 1 FROM a b WHERE b.id = a.id AND b.g = 2)", vec![vec![int(3)]]),
        ("WITH c AS (SELECT id * 2 AS d FROM a) SELECT SUM(d) FROM c", vec![vec![int(12)]]),
        (
            "WITH n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 4) SELECT COUNT(*) FROM n",
            vec![vec![int(4)]],
        ),
        (
            "WITH c AS (SELECT 9 AS id) INSERT a (id) SELECT id FROM c; DELETE a OUTPUT deleted.id WHERE id = 9",
            vec![vec![int(9)]],
        ),
        ("SELECT 1 UNION SELECT 1 UNION ALL SELECT 2", vec![vec![int(1)], vec![int(2)]]),
        (
            "SELECT r FROM (SELECT ROW_NUMBER() OVER (PARTITION BY g ORDER BY id DESC) AS r, id FROM a) q WHERE id = 1",
            vec![vec![int(2)]],
        ),
        ("SELECT TOP 1 WITH TIES g FROM a ORDER BY g", vec![vec![int(1)], vec![int(1)]]),
        ("SELECT CASE WHEN g = 1 THEN 'one' ELSE 'more' END FROM a WHERE id = 3", vec![vec![text("more")]]),
        ("SELECT CONVERT(varchar(10), CAST('2020-01-02' AS date), 103)", vec![vec![text("02/01/2020")]]),
        ("SELECT v FROM a WHERE v LIKE '[w-y]' ORDER BY v", vec![vec![text("x")], vec![text("y")]]),
        ("SELECT AVG(id) FROM a", vec![vec![int(2)]]),
        ("SELECT COALESCE(NULL, v) FROM a WHERE id = 1", vec![vec![text("x")]]),
        ("SELECT t.x FROM (VALUES (1), (2)) AS t(x) WHERE t.x > 1", vec![vec![int(2)]]),
        (
            "SELECT LEN(N'abc  '), LEFT('abc', 2), PARSE('5' AS int USING 'en-US')",
            vec![vec![int(3), text("ab"), int(5)]],
        ),
    ] {
        assert_eq!(client.rows(query), expected, "{query}");
    }
}

#[test]
fn errors_have_the_numbers_of_the_server() {
    let server = shop();
    let mut client = Client::to(&server, "shop");
    client.rows("CREATE TABLE p (id int PRIMARY KEY, n int NOT NULL CHECK (n > 0), s varchar(3)); CREATE TABLE f (id int REFERENCES p(id))");
    client.rows("INSERT p VALUES (1, 1, 'a')");
    for (statement, number) in [
        ("SELEC 1", 2812),
        ("SELECT 1 +", 102),
        ("SELECT FROM p", 156),
        ("SELECT nope FROM p", 207),
        ("SELECT * FROM nope", 208),
        ("SELECT * FROM other.dbo.p", 208),
        ("SELECT x.id FROM p", 4104),
        ("SELECT id FROM p, f", 209),
        ("INSERT p VALUES (1, 1, 'b')", 2627),
        ("INSERT p VALUES (2, NULL, 'b')", 515),
        ("INSERT p VALUES (2, 0, 'b')", 547),
        ("INSERT f VALUES (5)", 547),
        ("INSERT p VALUES (2, 1, 'abcd')", 2628),
        ("SELECT 1 / 0", 8134),
        ("SELECT CAST('x' AS int)", 245),
        ("SELECT 2147483647 + 1", 8115),
        ("USE nope", 911),
        ("EXEC nope", 2812),
        ("SELECT @x", 137),
        ("SELECT s, COUNT(*) FROM p", 8120),
        ("COMMIT", 3902),
        ("ROLLBACK", 3903),
        ("SELECT nope(1)", 195),
        ("CREATE TABLE p (id int)", 2714),
        ("INSERT f VALUES (1), (1); CREATE UNIQUE INDEX x ON f (id)", 1505),
    ] {
        assert_eq!(client.error(statement), number, "{statement}");
    }
    assert_eq!(client.rows("SELECT COUNT(*) FROM p"), [[int(1)]]);
}

#[test]
fn batches_have_variables_and_control_of_flow() {
    let server = shop();
    let mut client = Client::to(&server, "shop");
    let rows = client.rows(
        "DECLARE @i int = 0, @s nvarchar(20) = N''
         WHILE @i < 5
         BEGIN
            SET @i += 1
            IF @i = 2 CONTINUE
            IF @i = 4 BREAK
            SET @s = @s + CAST(@i AS nvarchar(5))
         END
         SELECT @i, @s
         BEGIN TRY SELECT 1 / 0 END TRY BEGIN CATCH SELECT ERROR_NUMBER(), N'caught' END CATCH",
    );
    assert_eq!(rows, [[int(4), text("13")], [int(8134), text("caught")]]);
    let heard = client.ask("PRINT 'hello'; RAISERROR('bad %s %d', 16, 2, 'x', 5)");
    assert_eq!(heard.messages[0].text, "hello");
    assert_eq!((heard.messages[1].number, heard.messages[1].text.as_str()), (50_000, "bad x 5"));
}

#[test]
fn parameters_come_by_sp_executesql() {
    let server = shop();
    let mut client = Client::to(&server, "shop");
    client.rows("CREATE TABLE k (id int PRIMARY KEY, v nvarchar(10)); INSERT k VALUES (1, N'a'), (2, N'b')");
    let nv = SqlType::NVarChar(Length::Limited(4000));
    let heard = client.with("SELECT id FROM k WHERE v = @P1", "@P1 nvarchar(4000)", &[("@P1", nv, text("B"))]);
    assert_eq!(heard.rows, [[int(2)]]);
    let heard = client.with("SELECT TOP (@P1) id FROM k ORDER BY id", "@P1 int", &[("@P1", SqlType::Int, int(1))]);
    assert_eq!(heard.rows, [[int(1)]]);
}

#[test]
fn merge_and_output_tell_what_was_done() {
    let server = shop();
    let mut client = Client::to(&server, "shop");
    client.rows("CREATE TABLE m (id int PRIMARY KEY, v int); INSERT m VALUES (1, 10), (2, 20)");
    let rows = client.rows(
        "MERGE INTO m AS t USING (VALUES (2, 21), (3, 30)) AS s(id, v) ON t.id = s.id
         WHEN MATCHED THEN UPDATE SET v = s.v
         WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, s.v)
         WHEN NOT MATCHED BY SOURCE THEN DELETE
         OUTPUT $action, deleted.id, inserted.v;",
    );
    assert_eq!(
        rows,
        [
            vec![text("DELETE"), int(1), SqlValue::Null],
            vec![text("UPDATE"), int(2), int(21)],
            vec![text("INSERT"), SqlValue::Null, int(30)],
        ]
    );
    assert_eq!(client.rows("UPDATE m SET v = v + 1 OUTPUT deleted.v, inserted.v WHERE id = 2"), [[int(21), int(22)]]);
    assert_eq!(client.rows("SELECT id, v FROM m"), [[int(2), int(22)], [int(3), int(30)]]);
    client.rows("SELECT id, v INTO #x FROM m; INSERT #x VALUES (9, 9)");
    assert_eq!(client.rows("SELECT COUNT(*) FROM #x"), [[int(3)]]);
}

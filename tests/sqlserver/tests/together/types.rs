//! Every type through a table, from literals and from parameters.

use tiberius::ColumnData;

use crate::server::shop;

/// Type and literal.
const TYPES: &[(&str, &str)] = &[
    ("bit", "1"),
    ("tinyint", "255"),
    ("smallint", "-32768"),
    ("int", "-2147483648"),
    ("bigint", "9223372036854775807"),
    ("real", "1.5"),
    ("float", "-2.5E+300"),
    ("decimal(9,4)", "12345.6789"),
    ("decimal(19,4)", "123456789012345.6789"),
    ("numeric(28,1)", "-123456789012345678901234567.8"),
    ("decimal(38,10)", "1234567890123456789012345678.0123456789"),
    ("smallmoney", "-214748.3648"),
    // Tiberius has floats for them.
    ("money", "-123456.7891"),
    ("date", "'0001-01-01'"),
    ("time(0)", "'23:59:59'"),
    ("time(7)", "'23:59:59.9999999'"),
    ("datetime2(0)", "'9999-12-31 23:59:59'"),
    ("datetime2(3)", "'2024-02-29 01:02:03.004'"),
    ("datetime2(7)", "'0001-01-01 00:00:00.0000001'"),
    ("datetimeoffset(7)", "'2024-02-29 01:02:03.1234567 +05:30'"),
    ("datetimeoffset(0)", "'2024-02-29 01:02:03 -14:00'"),
    ("datetime", "'1753-01-01 00:00:00.003'"),
    ("smalldatetime", "'2079-06-06 23:59:00'"),
    ("uniqueidentifier", "'6F9619FF-8B86-D011-B42D-00C04FC964FF'"),
    ("char(4)", "'ab'"),
    ("varchar(10)", "'café'"),
    ("varchar(max)", "REPLICATE(CAST('x' AS varchar(max)), 70000)"),
    ("nchar(4)", "N'中'"),
    ("nvarchar(10)", "N'中😀'"),
    ("nvarchar(max)", "REPLICATE(CAST(N'ü' AS nvarchar(max)), 70000)"),
    ("text", "'long'"),
    ("ntext", "N'lang'"),
    ("xml", "'<a>1</a>'"),
    ("binary(4)", "0x0102"),
    ("varbinary(10)", "0x00FF"),
    ("varbinary(max)", "CAST(REPLICATE(CAST('y' AS varchar(max)), 70000) AS varbinary(max))"),
    ("image", "0xCAFE"),
];

#[tokio::test(flavor = "multi_thread")]
async fn every_type_goes_out_comes_back_as_a_parameter_and_is_the_same() {
    let server = shop().await;
    let mut client = server.client("shop").await;
    for (number, (kind, literal)) in TYPES.iter().enumerate() {
        let table = format!("dbo.t{number}");
        client.run(&format!("CREATE TABLE {table} (id int PRIMARY KEY, v {kind} NULL)")).await;
        client.run(&format!("INSERT {table} VALUES (1, {literal}), (2, NULL)")).await;
        let rows = client.rows(&format!("SELECT id, v FROM {table} ORDER BY id")).await;
        let [value, null] = [&rows[0], &rows[1]].map(|row| row.cells().nth(1).unwrap().1.clone());
        for (id, value) in [(3, &value), (4, &null)] {
            let mut query = tiberius::Query::new(format!("INSERT {table} VALUES (@P1, @P2)"));
            query.bind(id);
            query.bind(Sent(value.clone()));
            query.execute(&mut client.0).await.unwrap_or_else(|e| panic!("{kind}: {e}"));
        }
        let rows = client.rows(&format!("SELECT v FROM {table} ORDER BY id")).await;
        let found: Vec<_> = rows.iter().map(|row| format!("{:?}", row.cells().next().unwrap().1)).collect();
        assert_eq!(found[0], found[2], "{kind}");
        assert_eq!(found[1], found[3], "NULL {kind}");
        assert_ne!(found[0], found[1], "{kind}");
        // Large and old types cannot be compared.
        if !matches!(*kind, "text" | "ntext" | "image" | "xml") {
            let same = format!("SELECT COUNT(*) FROM {table} WHERE v = CAST({literal} AS {kind})");
            assert_eq!(client.int(&same).await, 2, "{kind}");
        }
    }
}

struct Sent(ColumnData<'static>);

impl<'a> tiberius::IntoSql<'a> for Sent {
    fn into_sql(self) -> ColumnData<'a> {
        self.0
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rowversion_changes_with_every_update_and_a_variant_keeps_its_type() {
    let server = shop().await;
    let mut client = server.client("shop").await;
    client.run("CREATE TABLE dbo.t (id int PRIMARY KEY, stamp rowversion, v sql_variant)").await;
    client.run("INSERT dbo.t (id, v) VALUES (1, CAST(1.50 AS decimal(5,2)))").await;
    let stamp = async |client: &mut crate::server::Client| -> Vec<u8> {
        client.rows("SELECT stamp FROM dbo.t").await[0].get::<&[u8], _>(0).unwrap().to_vec()
    };
    let before = stamp(&mut client).await;
    client.run("UPDATE dbo.t SET id = 1").await;
    assert!(before.len() == 8 && stamp(&mut client).await > before);
    let kind = "SELECT CAST(SQL_VARIANT_PROPERTY(v, 'BaseType') AS nvarchar(20)) FROM dbo.t";
    assert_eq!(client.rows(kind).await[0].get(0), Some("decimal"));
}

//! What a driver asks for when it wants to know the tables.

use crate::server::shop;

#[tokio::test(flavor = "multi_thread")]
async fn columns_are_described_as_odbc_has_them() {
    let server = shop().await;
    let mut client = server.client("shop").await;
    client
        .run(
            "CREATE TABLE dbo.t (id bigint IDENTITY PRIMARY KEY, m nvarchar(max), d decimal(10,2) NOT NULL DEFAULT 1.5, \
             w datetime2(3), o datetimeoffset, f float, x xml, u uniqueidentifier)",
        )
        .await;
    let rows = client.rows("EXEC sp_columns_100 @table_name = N't', @ODBCVer = 3").await;
    let found: Vec<_> = rows
        .iter()
        .map(|r| {
            let text = |name: &str| r.get::<&str, _>(name).unwrap_or("").to_owned();
            (
                text("COLUMN_NAME"),
                r.get::<i16, _>("DATA_TYPE"),
                text("TYPE_NAME"),
                r.get::<i32, _>("PRECISION"),
                r.get::<i16, _>("SCALE"),
            )
        })
        .collect();
    let column = |name: &str, number, kind: &str, precision, scale| {
        (name.to_owned(), Some(number), kind.to_owned(), Some(precision), scale)
    };
    assert_eq!(
        found,
        [
            column("id", -5, "bigint identity", 19, Some(0)),
            column("m", -9, "nvarchar", 1_073_741_823, None),
            column("d", 3, "decimal", 10, Some(2)),
            column("w", 93, "datetime2", 23, Some(3)),
            column("o", -155, "datetimeoffset", 34, Some(7)),
            column("f", 6, "float", 53, None),
            column("x", -152, "xml", 1_073_741_823, None),
            column("u", -11, "uniqueidentifier", 36, None),
        ]
    );
    assert_eq!(client.error("EXEC sp_columns N't', N'dbo', N'elsewhere'").await.code(), 15250);
    let types = client.rows("EXEC sp_datatype_info_100 @ODBCVer = 3").await;
    assert!(types.iter().any(|r| r.get::<&str, _>("TYPE_NAME") == Some("datetimeoffset")));
}

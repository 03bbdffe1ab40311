"""FreeTDS (pymssql) against the emulator: freetds.py HOST PORT off|require."""

import datetime
import sys
import uuid
from decimal import Decimal

import pymssql
from pymssql import _mssql

HOST, PORT, ENCRYPTION = sys.argv[1], sys.argv[2], sys.argv[3]
SIGNED_IN = dict(server=HOST, port=PORT, user="sa", password="Password!1", encryption=ENCRYPTION, login_timeout=20, timeout=20)


def connect(database="shop", **more):
    return pymssql.connect(database=database, **SIGNED_IN, **more)


def rows(connection, text, parameters=None):
    with connection.cursor() as cursor:
        if parameters is None:
            cursor.execute(text)
        else:
            cursor.execute(text, parameters)
        return cursor.fetchall()


def same(found, expected, what):
    assert found == expected, f"{what}: {found!r} instead of {expected!r}"


def error(connection, text):
    """Number and text of the error that a statement ends with."""
    try:
        rows(connection, text)
    except pymssql.Error as e:
        return e.args[0], e.args[1].decode()
    raise AssertionError(f"no error: {text}")


def logging_in():
    try:
        pymssql.connect(server=HOST, port=PORT, user="sa", password="wrong", encryption=ENCRYPTION, login_timeout=20)
    except pymssql.Error as e:
        assert "Login failed for user 'sa'" in str(e), e
    else:
        raise AssertionError("a wrong password was taken")
    admin = connect("master", autocommit=True)
    version = rows(admin, "SELECT @@VERSION")[0][0]
    assert version.startswith("Microsoft SQL Server 2022"), version
    admin.cursor().execute("CREATE DATABASE shop")
    admin.cursor().execute("USE shop")
    same(rows(admin, "SELECT DB_NAME(), SUSER_SNAME(), APP_NAME()"), [("shop", "sa", f"pymssql={pymssql.__version__}")], "session")
    admin.close()


# Column type, what T-SQL writes, what the client reads.
TYPES = [
    ("bit", "1", True),
    ("tinyint", "255", 255),
    ("smallint", "-32768", -32768),
    ("int", "-2147483648", -2147483648),
    ("bigint", "9223372036854775807", 9223372036854775807),
    ("real", "1.5", 1.5),
    ("float", "-2.5E300", -2.5e300),
    ("decimal(5,2)", "-999.99", Decimal("-999.99")),
    ("decimal(19,4)", "123456789012345.6789", Decimal("123456789012345.6789")),
    ("numeric(28,0)", "1234567890123456789012345678", Decimal("1234567890123456789012345678")),
    ("decimal(38,10)", "-1234567890123456789012345678.0123456789", Decimal("-1234567890123456789012345678.0123456789")),
    ("smallmoney", "-214748.3648", Decimal("-214748.3648")),
    ("money", "922337203685477.5807", Decimal("922337203685477.5807")),
    ("date", "'0001-01-01'", datetime.date(1, 1, 1)),
    ("time(7)", "'23:59:59.1234560'", datetime.time(23, 59, 59, 123456)),
    ("time(0)", "'01:02:03'", datetime.time(1, 2, 3)),
    ("datetime2(7)", "'9999-12-31T23:59:59.1234560'", datetime.datetime(9999, 12, 31, 23, 59, 59, 123456)),
    ("datetime2(3)", "'2024-02-29T01:02:03.004'", datetime.datetime(2024, 2, 29, 1, 2, 3, 4000)),
    ("datetime", "'2024-02-29T01:02:03.123'", datetime.datetime(2024, 2, 29, 1, 2, 3, 123000)),
    ("smalldatetime", "'2079-06-06T23:59:00'", datetime.datetime(2079, 6, 6, 23, 59)),
    ("uniqueidentifier", "'6F9619FF-8B86-D011-B42D-00C04FC964FF'", uuid.UUID("6F9619FF-8B86-D011-B42D-00C04FC964FF")),
    ("char(5)", "'ab'", "ab   "),
    ("varchar(20)", "'caf\u00e9'", "caf\u00e9"),
    ("nchar(3)", "N'\u4e2d'", "\u4e2d  "),
    ("nvarchar(20)", "N'\u4e2d\U0001F600'", "\u4e2d\U0001F600"),
    ("varchar(max)", "REPLICATE(CAST('x' AS varchar(max)), 20000)", "x" * 20000),
    ("nvarchar(max)", "REPLICATE(CAST(N'\u00fc' AS nvarchar(max)), 20000)", "\u00fc" * 20000),
    ("text", "'long'", "long"),
    ("ntext", "N'l\u00f6ng'", "l\u00f6ng"),
    ("xml", "'<a>1</a>'", "<a>1</a>"),
    ("binary(4)", "0x0102", b"\x01\x02\x00\x00"),
    ("varbinary(10)", "0x00FF", b"\x00\xff"),
    ("varbinary(max)", "CAST(REPLICATE(CAST('y' AS varchar(max)), 20000) AS varbinary(max))", b"y" * 20000),
    ("image", "0xCAFE", b"\xca\xfe"),
]


def types_from_server():
    connection = connect(autocommit=True)
    columns = ", ".join(f"c{n} {kind} NULL" for n, (kind, _, _) in enumerate(TYPES))
    connection.cursor().execute(f"CREATE TABLE dbo.every_type (id int PRIMARY KEY, {columns})")
    values = ", ".join(literal for _, literal, _ in TYPES)
    connection.cursor().execute(f"INSERT dbo.every_type VALUES (1, {values})")
    connection.cursor().execute("INSERT dbo.every_type (id) VALUES (2)")
    full, empty = rows(connection, "SELECT * FROM dbo.every_type ORDER BY id")
    for (kind, _, expected), found in zip(TYPES, full[1:]):
        same(found, expected, kind)
    for (kind, _, _), found in zip(TYPES, empty[1:]):
        same(found, None, f"NULL {kind}")
    offset = rows(connection, "SELECT CAST('2024-02-29T01:02:03.1234567+05:30' AS datetimeoffset(7))")[0][0]
    same((offset.utcoffset(), offset.replace(tzinfo=None)), (datetime.timedelta(hours=5, minutes=30), datetime.datetime(2024, 2, 29, 1, 2, 3, 123456)), "datetimeoffset")
    connection.close()


def types_from_client():
    """Values that the client writes into its text."""
    connection = connect(autocommit=True)
    values = [7, -(2**40), 1.25, Decimal("12.3456"), "O'Brien \u4e2d", b"\x00\x01", None, True, datetime.date(2024, 2, 29),
              datetime.datetime(2024, 2, 29, 1, 2, 3, 123000), uuid.UUID("6F9619FF-8B86-D011-B42D-00C04FC964FF")]
    cursor = connection.cursor()
    cursor.execute("CREATE TABLE dbo.sent (a int, b bigint, c float, d decimal(10,4), e nvarchar(50), f varbinary(10), g int, h bit, i date, j datetime, k uniqueidentifier)")
    cursor.execute("INSERT dbo.sent VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)", tuple(values))
    same(cursor.rowcount, 1, "rows written")
    same(list(rows(connection, "SELECT * FROM dbo.sent")[0]), values, "values sent")
    connection.close()


def procedure_calls():
    """Parameters of a call, in and out, as the protocol has them."""
    connection = _mssql.connect(server=HOST, port=PORT, user="sa", password="Password!1", database="shop", encryption=ENCRYPTION)
    call = connection.init_procedure("sp_executesql")
    call.bind("SELECT @b AS b, @c AS c", _mssql.SQLVARCHAR, "@stmt")
    call.bind("@b varchar(20), @c varbinary(8)", _mssql.SQLVARCHAR, "@params")
    call.bind("text", _mssql.SQLVARCHAR, "@b")
    call.bind(b"\x01\x02", _mssql.SQLVARBINARY, "@c")
    call.execute()
    same([(row["b"], row["c"]) for row in connection], [("text", b"\x01\x02")], "result of a call")
    call = connection.init_procedure("sp_executesql")
    # An output parameter of FreeTDS is NULL on its way in.
    call.bind("SET @a = ISNULL(@a, 41) + 1; SET @t = N'out'", _mssql.SQLVARCHAR, "@stmt")
    call.bind("@a int OUTPUT, @t nvarchar(20) OUTPUT", _mssql.SQLVARCHAR, "@params")
    call.bind(41, _mssql.SQLINT4, "@a", output=True)
    call.bind(None, _mssql.SQLVARCHAR, "@t", null=True, output=True, max_length=20)
    same(call.execute(), 0, "status")
    same((call.parameters["@a"], call.parameters["@t"]), (42, "out"), "output parameters")
    connection.close()
    own = connect(autocommit=True)
    own.cursor().execute("CREATE PROCEDURE dbo.twice @n int, @double int OUTPUT AS BEGIN SET @double = 2 * @n; RETURN 5 END")
    with own.cursor() as cursor:
        answer = cursor.callproc("dbo.twice", (21, pymssql.output(int)))
        same(answer[1], 42, "output of a procedure")
    own.close()


def transactions():
    connection = connect()
    cursor = connection.cursor()
    cursor.execute("CREATE TABLE dbo.money (id int PRIMARY KEY, amount int NOT NULL)")
    connection.commit()
    cursor.execute("INSERT dbo.money VALUES (1, 10)")
    connection.rollback()
    same(rows(connection, "SELECT COUNT(*) FROM dbo.money"), [(0,)], "after a rollback")
    cursor.executemany("INSERT dbo.money VALUES (%s, %s)", [(1, 10), (2, 20), (3, 30)])
    connection.commit()
    other = connect(autocommit=True)
    same(rows(other, "SELECT SUM(amount) FROM dbo.money"), [(60,)], "after a commit")
    # A lock that does not come.
    cursor.execute("UPDATE dbo.money SET amount = 11 WHERE id = 1")
    number, _ = error(other, "SET LOCK_TIMEOUT 50; SELECT amount FROM dbo.money WHERE id = 1")
    same(number, 1222, "lock time-out")
    connection.rollback()
    other.close()
    connection.close()


def errors():
    connection = connect(autocommit=True)
    number, text = error(connection, "SELECT * FROM dbo.nowhere")
    same((number, "Invalid object name 'dbo.nowhere'." in text), (208, True), text)
    same(error(connection, "INSERT dbo.money VALUES (1, 1)")[0], 2627, "duplicate key")
    same(error(connection, "SELECT 1/0")[0], 8134, "division by zero")
    same(error(connection, "RAISERROR('own %d', 16, 3, 7)"), (50000, "own 7DB-Lib error message 20018, severity 16:\nGeneral SQL Server error: Check messages from the SQL Server\n"), "own error")
    same(rows(connection, "SELECT 1"), [(1,)], "after errors")
    connection.close()


def several_results():
    connection = connect(autocommit=True)
    cursor = connection.cursor()
    cursor.execute("SELECT 1 AS a; PRINT 'between'; UPDATE dbo.money SET amount = amount; SELECT 'x' AS b, 2 AS c")
    same(cursor.fetchall(), [(1,)], "first result")
    assert cursor.nextset()
    same([c[0] for c in cursor.description], ["b", "c"], "names")
    same(cursor.fetchall(), [("x", 2)], "second result")
    assert not cursor.nextset()
    # Not read to its end: the client cancels it.
    cursor.execute("SELECT TOP 5000 a.amount FROM dbo.money a CROSS JOIN dbo.money b CROSS JOIN dbo.money c CROSS JOIN dbo.money d CROSS JOIN dbo.money e CROSS JOIN dbo.money f CROSS JOIN dbo.money g CROSS JOIN dbo.money h")
    cursor.fetchone()
    cursor.close()
    same(rows(connection, "SELECT 3"), [(3,)], "after a cancelled result")
    connection.close()


def catalog():
    connection = connect(autocommit=True)
    cursor = connection.cursor()
    cursor.execute("CREATE TABLE dbo.parents (a int, b nvarchar(20), CONSTRAINT pk_parents PRIMARY KEY (b, a))")
    cursor.execute("CREATE UNIQUE INDEX ux ON dbo.parents (a DESC)")
    cursor.execute("CREATE TABLE dbo.children (id int IDENTITY PRIMARY KEY, b nvarchar(20), a int, price decimal(10,2) NOT NULL CONSTRAINT df DEFAULT 1.5, CONSTRAINT fk FOREIGN KEY (b, a) REFERENCES dbo.parents (b, a) ON DELETE CASCADE)")
    same([r[2:4] for r in rows(connection, "EXEC sp_tables @table_name = 'parents'")], [("parents", "TABLE")], "sp_tables")
    columns = rows(connection, "EXEC sp_columns_100 @table_name = N'children', @ODBCVer = 3")
    same(
        [(r[3], r[4], r[5], r[6], r[7], r[8], r[10], r[12], r[16], r[28]) for r in columns],
        [
            ("id", 4, "int identity", 10, 4, 0, 0, None, 1, 56),
            ("b", -9, "nvarchar", 20, 40, None, 1, None, 2, 39),
            ("a", 4, "int", 10, 4, 0, 1, None, 3, 38),
            ("price", 3, "decimal", 10, 12, 2, 0, "((1.5))", 4, 106),
        ],
        "sp_columns_100",
    )
    same([(r[3], r[4], r[5]) for r in rows(connection, "EXEC sp_pkeys N'parents'")], [("b", 1, "pk_parents"), ("a", 2, "pk_parents")], "sp_pkeys")
    statistics = rows(connection, "EXEC sp_statistics N'parents'")
    same(
        [(r[3], r[5], r[6], r[7], r[8], r[9]) for r in statistics],
        [
            (None, None, 0, None, None, None),
            (0, "pk_parents", 1, 1, "b", "A"),
            (0, "pk_parents", 1, 2, "a", "A"),
            (0, "ux", 3, 1, "a", "D"),
        ],
        "sp_statistics",
    )
    keys = rows(connection, "EXEC sp_fkeys @pktable_name = N'parents'")
    same([(r[2], r[3], r[6], r[7], r[8], r[10], r[11]) for r in keys],
         [("parents", "b", "children", "b", 1, 0, "fk"), ("parents", "a", "children", "a", 2, 0, "fk")], "sp_fkeys")
    connection.close()


def change_data_capture():
    connection = connect(autocommit=True)
    cursor = connection.cursor()
    same(error(connection, "EXEC sys.sp_cdc_help_change_data_capture")[0], 22901, "not enabled")
    cursor.execute("EXEC sys.sp_cdc_enable_db")
    cursor.execute("CREATE TABLE dbo.orders (id int PRIMARY KEY, note nvarchar(50), price money)")
    cursor.execute("EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'orders', @role_name = NULL, @supports_net_changes = 1")
    cursor.execute("EXEC sys.sp_cdc_change_job @job_type = N'capture', @pollinginterval = 0")
    cursor.execute("INSERT dbo.orders VALUES (1, N'one', 1.5), (2, N'two', 2.5)")
    cursor.execute("UPDATE dbo.orders SET note = N'uno' WHERE id = 1")
    cursor.execute("DELETE dbo.orders WHERE id = 2")
    # The capture job runs by itself; the server waits until it has seen all of it.
    cursor.execute("""
        DECLARE @turns int = 0
        WHILE (SELECT COUNT(*) FROM cdc.dbo_orders_CT) < 5 AND @turns < 500
        BEGIN
            SET @turns = @turns + 1
            WAITFOR DELAY '00:00:00.020'
        END
    """)
    changes = rows(connection, """
        DECLARE @from binary(10) = sys.fn_cdc_get_min_lsn(N'dbo_orders'), @to binary(10) = sys.fn_cdc_get_max_lsn()
        SELECT __$operation, id, note, price FROM cdc.fn_cdc_get_all_changes_dbo_orders(@from, @to, N'all update old')
        ORDER BY __$start_lsn, __$seqval, __$operation
    """)
    same(
        changes,
        [
            (2, 1, "one", Decimal("1.5000")),
            (2, 2, "two", Decimal("2.5000")),
            (3, 1, "one", Decimal("1.5000")),
            (4, 1, "uno", Decimal("1.5000")),
            (1, 2, "two", Decimal("2.5000")),
        ],
        "changes",
    )
    net = rows(connection, """
        DECLARE @from binary(10) = sys.fn_cdc_get_min_lsn(N'dbo_orders'), @to binary(10) = sys.fn_cdc_get_max_lsn()
        SELECT __$operation, id, note FROM cdc.fn_cdc_get_net_changes_dbo_orders(@from, @to, N'all')
    """)
    same(net, [(2, 1, "uno")], "net changes")
    help_rows = rows(connection, "EXEC sys.sp_cdc_help_change_data_capture")
    same([(r[0], r[1], r[2]) for r in help_rows], [("dbo", "orders", "dbo_orders")], "sp_cdc_help_change_data_capture")
    same(sorted(r[1] for r in rows(connection, "EXEC sys.sp_cdc_help_jobs")), ["capture", "cleanup"], "sp_cdc_help_jobs")
    connection.close()


for step in (logging_in, types_from_server, types_from_client, procedure_calls, transactions, errors, several_results, catalog, change_data_capture):
    try:
        step()
    except Exception:
        print(f"step {step.__name__}", file=sys.stderr)
        raise

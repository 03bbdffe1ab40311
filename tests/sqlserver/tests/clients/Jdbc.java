import java.math.BigDecimal;
import java.sql.CallableStatement;
import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.sql.Savepoint;
import java.sql.Statement;
import java.sql.Types;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Properties;

/** Microsoft's JDBC driver against the emulator: Jdbc HOST PORT true|false (encrypt). */
public class Jdbc {
    interface Step {
        void run() throws Exception;
    }

    static String url;

    static Connection connect(String database, String... more) throws SQLException {
        Properties properties = new Properties();
        properties.setProperty("user", "sa");
        properties.setProperty("password", "Password!1");
        properties.setProperty("databaseName", database);
        for (int n = 0; n < more.length; n += 2) {
            properties.setProperty(more[n], more[n + 1]);
        }
        return DriverManager.getConnection(url, properties);
    }

    static void same(Object found, Object expected, String what) {
        if (!expected.equals(found)) {
            throw new AssertionError(what + ": " + found + " instead of " + expected);
        }
    }

    static void execute(Connection connection, String text) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            statement.execute(text);
        }
    }

    /** The named columns of all rows, as texts. */
    static List<List<String>> rows(ResultSet result, Object... columns) throws SQLException {
        List<List<String>> rows = new ArrayList<>();
        try (result) {
            while (result.next()) {
                List<String> row = new ArrayList<>();
                for (Object column : columns) {
                    row.add(column instanceof Integer place ? result.getString(place) : result.getString((String) column));
                }
                rows.add(row);
            }
        }
        return rows;
    }

    static List<List<String>> query(Connection connection, String text, int width) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            Object[] places = new Object[width];
            for (int n = 0; n < width; n++) {
                places[n] = n + 1;
            }
            return rows(statement.executeQuery(text), places);
        }
    }

    static int error(Connection connection, String text) {
        // An error may come in the place of a row.
        try (Statement statement = connection.createStatement()) {
            boolean result = statement.execute(text);
            while (result || statement.getUpdateCount() != -1) {
                if (result) {
                    rows(statement.getResultSet());
                }
                result = statement.getMoreResults();
            }
        } catch (SQLException e) {
            return e.getErrorCode();
        }
        throw new AssertionError("no error: " + text);
    }

    static List<String> row(String... values) {
        return Arrays.asList(values);
    }

    static void loggingIn() throws SQLException {
        try {
            connect("master", "password", "wrong").close();
            throw new AssertionError("a wrong password was taken");
        } catch (SQLException e) {
            same(e.getErrorCode(), 18456, "wrong password");
        }
        try (Connection admin = connect("master")) {
            DatabaseMetaData meta = admin.getMetaData();
            same(meta.getDatabaseProductName(), "Microsoft SQL Server", "product");
            same(meta.getDatabaseMajorVersion(), 16, "version");
            execute(admin, "CREATE DATABASE shop");
            admin.setCatalog("shop");
            same(admin.getCatalog(), "shop", "catalog");
            same(admin.getSchema(), "dbo", "schema");
            same(admin.isValid(5), true, "valid");
        }
        try {
            connect("nowhere").close();
            throw new AssertionError("an unknown database was opened");
        } catch (SQLException e) {
            same(e.getErrorCode(), 4060, "unknown database");
        }
    }

    /** Type, literal, text that the driver makes of it. */
    static final String[][] TYPES = {
        {"bit", "1", "1"},
        {"tinyint", "255", "255"},
        {"smallint", "-32768", "-32768"},
        {"int", "-2147483648", "-2147483648"},
        {"bigint", "9223372036854775807", "9223372036854775807"},
        {"real", "1.5", "1.5"},
        {"float", "-2.5E300", "-2.5E300"},
        {"decimal(5,2)", "-999.99", "-999.99"},
        {"numeric(28,0)", "1234567890123456789012345678", "1234567890123456789012345678"},
        {"decimal(38,10)", "-1234567890123456789012345678.0123456789", "-1234567890123456789012345678.0123456789"},
        {"smallmoney", "-214748.3648", "-214748.3648"},
        {"money", "922337203685477.5807", "922337203685477.5807"},
        {"date", "'2024-02-29'", "2024-02-29"},
        {"time(7)", "'23:59:59.1234567'", "23:59:59.1234567"},
        {"datetime2(7)", "'9999-12-31T23:59:59.1234567'", "9999-12-31 23:59:59.1234567"},
        {"datetime2(0)", "'2024-02-29T01:02:03'", "2024-02-29 01:02:03"},
        {"datetimeoffset(7)", "'2024-02-29T01:02:03.1234567+05:30'", "2024-02-29 01:02:03.1234567 +05:30"},
        {"datetime", "'2024-02-29T01:02:03.123'", "2024-02-29 01:02:03.123"},
        {"smalldatetime", "'2079-06-06T23:59:00'", "2079-06-06 23:59:00.0"},
        {"uniqueidentifier", "'6F9619FF-8B86-D011-B42D-00C04FC964FF'", "6F9619FF-8B86-D011-B42D-00C04FC964FF"},
        {"char(5)", "'ab'", "ab   "},
        {"varchar(20)", "'caf\u00e9'", "caf\u00e9"},
        {"nchar(3)", "N'\u4e2d'", "\u4e2d  "},
        {"nvarchar(20)", "N'\u4e2d\uD83D\uDE00'", "\u4e2d\uD83D\uDE00"},
        {"varchar(max)", "REPLICATE(CAST('x' AS varchar(max)), 20000)", "x".repeat(20000)},
        {"nvarchar(max)", "REPLICATE(CAST(N'\u00fc' AS nvarchar(max)), 20000)", "\u00fc".repeat(20000)},
        {"text", "'long'", "long"},
        {"ntext", "N'l\u00f6ng'", "l\u00f6ng"},
        {"xml", "'<a>1</a>'", "<a>1</a>"},
        {"binary(4)", "0x0102", "01020000"},
        {"varbinary(10)", "0x00FF", "00FF"},
        {"varbinary(max)", "CAST(REPLICATE(CAST('y' AS varchar(max)), 9000) AS varbinary(max))", "79".repeat(9000)},
        {"image", "0xCAFE", "CAFE"},
        {"sql_variant", "CAST(12 AS int)", "12"},
    };

    static void types() throws SQLException {
        try (Connection connection = connect("shop", "sendTimeAsDatetime", "false")) {
            StringBuilder columns = new StringBuilder();
            StringBuilder literals = new StringBuilder();
            StringBuilder marks = new StringBuilder();
            for (int n = 0; n < TYPES.length; n++) {
                columns.append(", c").append(n).append(' ').append(TYPES[n][0]).append(" NULL");
                literals.append(", ").append(TYPES[n][1]);
                marks.append(", ?");
            }
            execute(connection, "CREATE TABLE dbo.every_type (id int PRIMARY KEY" + columns + ", stamp rowversion)");
            execute(connection, "INSERT dbo.every_type VALUES (1" + literals + ", DEFAULT)");
            execute(connection, "INSERT dbo.every_type (id) VALUES (2)");
            List<Object> read = new ArrayList<>();
            try (Statement statement = connection.createStatement();
                    ResultSet result = statement.executeQuery("SELECT * FROM dbo.every_type ORDER BY id")) {
                result.next();
                for (int n = 0; n < TYPES.length; n++) {
                    same(result.getString(n + 2), TYPES[n][2], TYPES[n][0]);
                    // A Time of JDBC has milliseconds only.
                    read.add(TYPES[n][0].startsWith("time") ? result.getObject(n + 2, java.time.LocalTime.class) : result.getObject(n + 2));
                }
                same(result.getBytes(TYPES.length + 2).length, 8, "rowversion");
                result.next();
                for (int n = 0; n < TYPES.length; n++) {
                    result.getString(n + 2);
                    same(result.wasNull(), true, "NULL " + TYPES[n][0]);
                }
                same(result.next(), false, "rows");
            }
            // The same values back, as the driver sends each of them; a variant is no parameter.
            int width = TYPES.length - 1;
            String places = "?" + ", ?".repeat(width);
            StringBuilder names = new StringBuilder("id");
            for (int n = 0; n < width; n++) {
                names.append(", c").append(n);
            }
            String insert = "INSERT dbo.every_type (" + names + ") VALUES (" + places + ")";
            try (PreparedStatement statement = connection.prepareStatement(insert)) {
                // The third execution of a text is by its handle.
                for (int id = 3; id <= 6; id++) {
                    statement.setInt(1, id);
                    for (int n = 0; n < width; n++) {
                        if (TYPES[n][0].equals("xml")) {
                            statement.setString(n + 2, TYPES[n][2]);
                        } else {
                            statement.setObject(n + 2, read.get(n));
                        }
                    }
                    same(statement.executeUpdate(), 1, "rows written");
                }
            }
            String all = "SELECT " + names + " FROM dbo.every_type WHERE id IN (1, 3, 6) ORDER BY id";
            List<List<String>> found = query(connection, all, width + 1);
            same(found.size(), 3, "rows");
            for (int n = 0; n < width; n++) {
                same(found.get(1).get(n + 1), TYPES[n][2], "sent " + TYPES[n][0]);
                same(found.get(2).get(n + 1), TYPES[n][2], "sent again " + TYPES[n][0]);
            }
            // NULL of each.
            try (PreparedStatement statement = connection.prepareStatement(
                    "INSERT dbo.every_type (id, c1, c3, c7, c16, c23, c31) VALUES (?, ?, ?, ?, ?, ?, ?)")) {
                statement.setInt(1, 7);
                int[] kinds = {Types.TINYINT, Types.INTEGER, Types.DECIMAL, Types.TIMESTAMP, Types.NVARCHAR, Types.VARBINARY};
                for (int n = 0; n < kinds.length; n++) {
                    statement.setNull(n + 2, kinds[n]);
                }
                same(statement.executeUpdate(), 1, "rows written");
            }
            // Several rows of parameters in one message.
            execute(connection, "CREATE TABLE dbo.batch (id int PRIMARY KEY, note nvarchar(20))");
            try (PreparedStatement statement = connection.prepareStatement("INSERT dbo.batch VALUES (?, ?)")) {
                for (int n = 0; n < 50; n++) {
                    statement.setInt(1, n);
                    statement.setString(2, "n" + n);
                    statement.addBatch();
                }
                same(Arrays.stream(statement.executeBatch()).sum(), 50, "batch");
            }
            try (PreparedStatement statement = connection.prepareStatement("SELECT note FROM dbo.batch WHERE id = ?");) {
                ResultSetMetaData meta = statement.getMetaData();
                same(meta.getColumnTypeName(1), "nvarchar", "type before execution");
                for (int n = 0; n < 5; n++) {
                    statement.setInt(1, n);
                    same(rows(statement.executeQuery(), 1), List.of(row("n" + n)), "prepared query");
                }
            }
        }
    }

    static void transactions() throws SQLException {
        try (Connection connection = connect("shop"); Connection other = connect("shop")) {
            execute(connection, "CREATE TABLE dbo.money (id int PRIMARY KEY, amount int NOT NULL)");
            connection.setAutoCommit(false);
            execute(connection, "INSERT dbo.money VALUES (1, 10)");
            Savepoint point = connection.setSavepoint("p");
            execute(connection, "INSERT dbo.money VALUES (2, 20)");
            connection.rollback(point);
            connection.commit();
            same(query(other, "SELECT id FROM dbo.money", 1), List.of(row("1")), "after a savepoint");
            execute(connection, "UPDATE dbo.money SET amount = 11");
            same(error(other, "SET LOCK_TIMEOUT 50; SELECT * FROM dbo.money"), 1222, "lock time-out");
            connection.rollback();
            same(query(other, "SELECT amount FROM dbo.money", 1), List.of(row("10")), "after a rollback");
            connection.setTransactionIsolation(Connection.TRANSACTION_SERIALIZABLE);
            same(connection.getTransactionIsolation(), Connection.TRANSACTION_SERIALIZABLE, "isolation");
            execute(other, "ALTER DATABASE shop SET ALLOW_SNAPSHOT_ISOLATION ON");
            connection.commit();
            connection.setTransactionIsolation(4096);
            same(query(connection, "SELECT amount FROM dbo.money", 1), List.of(row("10")), "snapshot");
            execute(other, "UPDATE dbo.money SET amount = 12");
            same(query(connection, "SELECT amount FROM dbo.money", 1), List.of(row("10")), "the same snapshot");
            connection.commit();
        }
    }

    static void errors() throws SQLException {
        try (Connection connection = connect("shop")) {
            same(error(connection, "SELECT * FROM dbo.nowhere"), 208, "unknown table");
            same(error(connection, "INSERT dbo.money VALUES (1, 1)"), 2627, "duplicate key");
            same(error(connection, "SELECT 1/0"), 8134, "division by zero");
            try {
                execute(connection, "\nRAISERROR(N'own %s', 16, 7, N'text')");
                throw new AssertionError("no error");
            } catch (com.microsoft.sqlserver.jdbc.SQLServerException e) {
                same(e.getSQLServerError().getErrorMessage(), "own text", "text");
                same(e.getSQLServerError().getErrorState(), 7, "state");
                same((int) e.getSQLServerError().getLineNumber(), 2, "line");
            }
            try (Statement statement = connection.createStatement()) {
                statement.setQueryTimeout(1);
                statement.execute("WAITFOR DELAY '00:01:00'");
                throw new AssertionError("it was not cancelled");
            } catch (java.sql.SQLTimeoutException e) {
                same(query(connection, "SELECT 1", 1), List.of(row("1")), "after a cancellation");
            }
        }
    }

    static void severalResults() throws SQLException {
        try (Connection connection = connect("shop"); Statement statement = connection.createStatement()) {
            same(statement.execute("SELECT 1; UPDATE dbo.money SET amount = amount; PRINT 'said'; SELECT 2"), true, "a result first");
            same(rows(statement.getResultSet(), 1), List.of(row("1")), "first");
            same(statement.getMoreResults(), false, "then a count");
            same(statement.getUpdateCount(), 1, "count");
            same(statement.getMoreResults(), true, "then a result");
            same(rows(statement.getResultSet(), 1), List.of(row("2")), "second");
            execute(connection, "CREATE TABLE dbo.counted (id int IDENTITY(5, 5) PRIMARY KEY, v int)");
            statement.executeUpdate("INSERT dbo.counted (v) VALUES (1)", Statement.RETURN_GENERATED_KEYS);
            same(rows(statement.getGeneratedKeys(), 1), List.of(row("5")), "generated key");
        }
    }

    static void procedures() throws SQLException {
        try (Connection connection = connect("shop")) {
            execute(connection, "CREATE PROCEDURE dbo.twice @n int, @double int OUTPUT, @note nvarchar(20) = N'none' AS\n"
                    + "BEGIN\n SET NOCOUNT ON;\n SET @double = 2 * @n;\n SELECT @n AS n, @note AS note;\n RETURN 5\nEND");
            try (CallableStatement call = connection.prepareCall("{ ? = call dbo.twice(?, ?) }")) {
                call.registerOutParameter(1, Types.INTEGER);
                call.setInt(2, 21);
                call.registerOutParameter(3, Types.INTEGER);
                same(rows(call.executeQuery(), "n", "note"), List.of(row("21", "none")), "rows of a procedure");
                same(call.getInt(1), 5, "status");
                same(call.getInt(3), 42, "output");
            }
            try (CallableStatement call = connection.prepareCall("{ call dbo.twice(?, ?, ?) }")) {
                call.setInt("n", 4);
                call.registerOutParameter("double", Types.INTEGER);
                call.setString("note", "named");
                same(rows(call.executeQuery(), "note"), List.of(row("named")), "by name");
                same(call.getInt("double"), 8, "output by name");
            }
        }
    }

    static void cursors() throws SQLException {
        try (Connection connection = connect("shop", "selectMethod", "cursor")) {
            try (Statement statement = connection.createStatement()) {
                statement.setFetchSize(7);
                List<List<String>> found = rows(statement.executeQuery("SELECT id, note FROM dbo.batch ORDER BY id"), "id", "note");
                same(found.size(), 50, "rows of a cursor");
                same(found.get(49), row("49", "n49"), "last row of a cursor");
            }
            try (PreparedStatement statement = connection.prepareStatement("SELECT note FROM dbo.batch WHERE id >= ? ORDER BY id")) {
                for (int from : new int[] {48, 47}) {
                    statement.setInt(1, from);
                    same(rows(statement.executeQuery(), 1).size(), 50 - from, "rows of a prepared cursor");
                }
            }
        }
        try (Connection connection = connect("shop");
                Statement statement = connection.createStatement(ResultSet.TYPE_SCROLL_INSENSITIVE, ResultSet.CONCUR_READ_ONLY);
                ResultSet result = statement.executeQuery("SELECT id FROM dbo.batch ORDER BY id")) {
            same(result.last(), true, "last");
            same(result.getInt(1), 49, "last row");
            same(result.getRow(), 50, "its number");
            same(result.absolute(10), true, "absolute");
            same(result.getInt(1), 9, "tenth row");
            same(result.previous(), true, "previous");
            same(result.getInt(1), 8, "ninth row");
            result.beforeFirst();
            same(result.next(), true, "first");
            same(result.getInt(1), 0, "first row");
        }
    }

    static void metadata() throws SQLException {
        try (Connection connection = connect("shop")) {
            execute(connection, "CREATE TABLE dbo.parents (a int, b nvarchar(20), CONSTRAINT pk_parents PRIMARY KEY (b, a))");
            execute(connection, "CREATE UNIQUE INDEX ux ON dbo.parents (a DESC)");
            execute(connection, "CREATE TABLE dbo.children (id int IDENTITY PRIMARY KEY, b nvarchar(20), a int, "
                    + "price decimal(10,2) NOT NULL CONSTRAINT df DEFAULT 1.5, twice AS CAST(a AS bigint), long varchar(max), "
                    + "CONSTRAINT fk FOREIGN KEY (b, a) REFERENCES dbo.parents (b, a) ON DELETE CASCADE)");
            DatabaseMetaData meta = connection.getMetaData();
            same(rows(meta.getTables("shop", "dbo", "%", new String[] {"TABLE"}), "TABLE_NAME", "TABLE_TYPE").contains(row("parents", "TABLE")), true, "getTables");
            same(
                    rows(meta.getColumns("shop", "dbo", "children", "%"), "COLUMN_NAME", "DATA_TYPE", "TYPE_NAME", "COLUMN_SIZE", "DECIMAL_DIGITS", "NULLABLE", "COLUMN_DEF", "ORDINAL_POSITION", "IS_AUTOINCREMENT", "IS_GENERATEDCOLUMN"),
                    List.of(
                            row("id", "4", "int identity", "10", "0", "0", null, "1", "YES", "NO"),
                            row("b", "-9", "nvarchar", "20", null, "1", null, "2", "NO", "NO"),
                            row("a", "4", "int", "10", "0", "1", null, "3", "NO", "NO"),
                            row("price", "3", "decimal", "10", "2", "0", "((1.5))", "4", "NO", "NO"),
                            row("twice", "-5", "bigint", "19", "0", "1", null, "5", "NO", "YES"),
                            row("long", "12", "varchar", "2147483647", null, "1", null, "6", "NO", "NO")),
                    "getColumns");
            same(rows(meta.getPrimaryKeys("shop", "dbo", "parents"), "COLUMN_NAME", "KEY_SEQ", "PK_NAME"),
                    List.of(row("b", "1", "pk_parents"), row("a", "2", "pk_parents")), "getPrimaryKeys");
            same(rows(meta.getIndexInfo("shop", "dbo", "parents", true, false), "INDEX_NAME", "NON_UNIQUE", "TYPE", "ORDINAL_POSITION", "COLUMN_NAME", "ASC_OR_DESC"),
                    List.of(
                            row(null, null, "0", null, null, null),
                            row("pk_parents", "0", "1", "1", "b", "A"),
                            row("pk_parents", "0", "1", "2", "a", "A"),
                            row("ux", "0", "3", "1", "a", "D")),
                    "getIndexInfo");
            same(rows(meta.getImportedKeys("shop", "dbo", "children"), "PKTABLE_NAME", "PKCOLUMN_NAME", "FKCOLUMN_NAME", "KEY_SEQ", "DELETE_RULE"),
                    List.of(row("parents", "b", "b", "1", "0"), row("parents", "a", "a", "2", "0")), "getImportedKeys");
            same(rows(meta.getBestRowIdentifier("shop", "dbo", "parents", DatabaseMetaData.bestRowSession, true), "COLUMN_NAME"),
                    List.of(row("b"), row("a")), "getBestRowIdentifier");
            same(rows(meta.getCatalogs(), 1).contains(row("shop")), true, "getCatalogs");
            same(rows(meta.getSchemas(), 1).contains(row("dbo")), true, "getSchemas");
        }
    }

    static void changeDataCapture() throws SQLException {
        try (Connection connection = connect("shop")) {
            execute(connection, "EXEC sys.sp_cdc_enable_db");
            execute(connection, "CREATE TABLE dbo.orders (id int PRIMARY KEY, note nvarchar(50), price money)");
            try (CallableStatement call = connection.prepareCall("{ call sys.sp_cdc_enable_table(@source_schema = ?, @source_name = ?, @role_name = NULL) }")) {
                call.setString(1, "dbo");
                call.setString(2, "orders");
                call.execute();
            }
            execute(connection, "EXEC sys.sp_cdc_change_job @job_type = N'capture', @pollinginterval = 0");
            connection.setAutoCommit(false);
            execute(connection, "INSERT dbo.orders VALUES (1, N'one', 1.5), (2, N'two', 2.5)");
            execute(connection, "UPDATE dbo.orders SET note = N'uno' WHERE id = 1");
            connection.commit();
            connection.setAutoCommit(true);
            execute(connection, "DECLARE @turns int = 0 WHILE (SELECT COUNT(*) FROM cdc.dbo_orders_CT) < 4 AND @turns < 500 "
                    + "BEGIN SET @turns = @turns + 1; WAITFOR DELAY '00:00:00.020' END");
            byte[] from;
            byte[] to;
            try (Statement statement = connection.createStatement();
                    ResultSet ends = statement.executeQuery("SELECT [shop].sys.fn_cdc_get_min_lsn('dbo_orders'), [shop].sys.fn_cdc_get_max_lsn()")) {
                ends.next();
                from = ends.getBytes(1);
                to = ends.getBytes(2);
            }
            String changes = "SELECT *, TODATETIMEOFFSET([shop].sys.fn_cdc_map_lsn_to_time([__$start_lsn]), DATEPART(TZOFFSET, SYSDATETIMEOFFSET())) "
                    + "FROM [shop].cdc.[fn_cdc_get_all_changes_dbo_orders](?, ?, N'all update old') order by [__$start_lsn] ASC, [__$seqval] ASC, [__$operation] ASC";
            try (PreparedStatement statement = connection.prepareStatement(changes)) {
                statement.setBytes(1, from);
                statement.setBytes(2, to);
                same(
                        rows(statement.executeQuery(), 3, 5, 6, 7),
                        List.of(
                                row("2", "1", "one", "1.5000"),
                                row("2", "2", "two", "2.5000"),
                                row("3", "1", "one", "1.5000"),
                                row("4", "1", "uno", "1.5000")),
                        "changes");
                statement.setBytes(1, new byte[10]);
                statement.setBytes(2, to);
                try {
                    rows(statement.executeQuery());
                    throw new AssertionError("an interval that begins too early was answered");
                } catch (SQLException e) {
                    same(e.getErrorCode(), 313, "interval");
                }
            }
        }
    }

    public static void main(String[] arguments) throws Exception {
        url = "jdbc:sqlserver://" + arguments[0] + ":" + arguments[1] + ";encrypt=" + arguments[2]
                + ";trustServerCertificate=true;loginTimeout=20;connectRetryCount=0";
        String[] names = {"loggingIn", "types", "transactions", "errors", "severalResults", "procedures", "cursors", "metadata", "changeDataCapture"};
        Step[] steps = {Jdbc::loggingIn, Jdbc::types, Jdbc::transactions, Jdbc::errors, Jdbc::severalResults, Jdbc::procedures, Jdbc::cursors, Jdbc::metadata, Jdbc::changeDataCapture};
        List<String> failed = new ArrayList<>();
        for (int n = 0; n < steps.length; n++) {
            try {
                steps[n].run();
            } catch (Throwable e) {
                System.err.print("step " + names[n] + ": ");
                e.printStackTrace();
                failed.add(names[n]);
            }
        }
        if (!failed.isEmpty()) {
            System.exit(1);
        }
    }
}

//! Options of the group `Connection`: the server, the databases, and what Microsoft's JDBC driver calls its
//! properties, as far as they mean something here.
//!
//! Properties of the driver stand under `driver.`, and in older configurations under `database.`.

use thalweg_config::debezium::{named, shared};
use thalweg_config::rule::boolean;
use thalweg_config::{Importance, OptionDef, OptionKind, Width};
use thalweg_core::relational::options::RELATIONAL;

const GROUP: &str = "Connection";

const fn option(name: &'static str, kind: OptionKind, display: &'static str, doc: &'static str) -> OptionDef {
    OptionDef::new(name, kind, doc).group(GROUP).display(display)
}

/// A property of the driver: Debezium passes them on without a definition.
const fn driver(
    name: &'static str,
    older: &'static [&'static str],
    kind: OptionKind,
    display: &'static str,
    doc: &'static str,
) -> OptionDef {
    option(name, kind, display, doc).aliases(older).importance(Importance::Low).unpublished()
}

const fn seconds(
    name: &'static str,
    older: &'static [&'static str],
    display: &'static str,
    doc: &'static str,
) -> OptionDef {
    driver(name, older, OptionKind::Int, display, doc).at_least(0)
}

const KERBEROS: &str =
    "only logins of the server itself are supported: set database.user and database.password and remove this property";
const ENCRYPTED_COLUMNS: &str = "columns that the client encrypts are not supported: leave them out with column.exclude.list and remove this property";

fn column_encryption(text: &str) -> Result<(), String> {
    if text.trim().eq_ignore_ascii_case("enabled") { Err(ENCRYPTED_COLUMNS.to_owned()) } else { Ok(()) }
}

fn no_integrated_security(text: &str) -> Result<(), String> {
    boolean(text)?;
    if text.trim().eq_ignore_ascii_case("true") { Err(KERBEROS.to_owned()) } else { Ok(()) }
}

pub(super) const OPTIONS: &[OptionDef] = &[
    shared("topic.prefix"),
    named(RELATIONAL, "database.hostname").aliases(&["driver.serverName"]),
    named(RELATIONAL, "database.port").default("1433").aliases(&["driver.portNumber"]),
    option(
        "database.instance",
        OptionKind::String,
        "Instance name",
        "Name of an instance: its port is asked for at port 1434 of the host (SQL Server Browser). Not used if \
         `database.port` is set.",
    )
    .aliases(&["driver.instanceName"]),
    named(RELATIONAL, "database.user").aliases(&["driver.user"]),
    named(RELATIONAL, "database.password").aliases(&["driver.password"]),
    option(
        "database.names",
        OptionKind::List,
        "Databases",
        "Databases that are captured. Topics and schemas have the database in their names, and each database is a \
         partition of its own.",
    )
    .importance(Importance::High),
    option(
        "database.dbname",
        OptionKind::String,
        "Database",
        "One database, in the older layout: neither topics nor partitions have its name. Not together with \
         `database.names`.",
    ),
    option(
        "sqlserver.legacy.naming",
        OptionKind::String,
        "Older layout of names",
        "Whether topics, schemas and partitions go without the database: if `database.dbname` is used (auto), always \
         (for one database only), or never.",
    )
    .default("auto")
    .one_of(&["auto", "always", "never"])
    .importance(Importance::Low)
    .unpublished(),
    named(RELATIONAL, "database.query.timeout.ms"),
    shared("connection.validation.timeout.ms"),
    driver(
        "driver.encrypt",
        &["database.encrypt"],
        OptionKind::String,
        "Encryption",
        "Whether connections are encrypted: after the first packets (true, mandatory), only for the login (false, \
         optional), or from the first byte on (strict: TDS 8.0, SQL Server 2022).",
    )
    .default("true")
    .one_of(&["true", "mandatory", "false", "optional", "strict"])
    .value_aliases(&[("yes", "true"), ("no", "false")]),
    driver(
        "driver.trustServerCertificate",
        &["database.trustServerCertificate"],
        OptionKind::Boolean,
        "Trust any certificate",
        "Whether the server's certificate is taken without a check. Not together with `driver.trustStore` or \
         `driver.serverCertificate`.",
    )
    .default("false"),
    driver(
        "driver.trustStore",
        &["database.trustStore", "database.ssl.truststore"],
        OptionKind::String,
        "Trust store",
        "File with the certificates of the authorities to trust; unset trusts those of the system.",
    )
    .width(Width::Long),
    driver(
        "driver.trustStorePassword",
        &["database.trustStorePassword", "database.ssl.truststore.password"],
        OptionKind::Password,
        "Trust store password",
        "Password of that file.",
    ),
    driver(
        "driver.trustStoreType",
        &["database.trustStoreType"],
        OptionKind::String,
        "Trust store type",
        "Format of that file. JKS is refused: keytool -importkeystore -deststoretype PKCS12 converts it.",
    )
    .default("PKCS12")
    .one_of(&["PKCS12", "JKS", "PEM"]),
    driver(
        "driver.serverCertificate",
        &["database.serverCertificate"],
        OptionKind::String,
        "Server certificate",
        "PEM file with the server's certificate or its authority.",
    )
    .width(Width::Long),
    driver(
        "driver.hostNameInCertificate",
        &["database.hostNameInCertificate"],
        OptionKind::String,
        "Host name in the certificate",
        "Name that the certificate must have, if it is not that of `database.hostname`.",
    ),
    driver(
        "driver.applicationIntent",
        &["database.applicationIntent"],
        OptionKind::String,
        "Application intent",
        "ReadOnly lets an availability group choose a readable secondary.",
    )
    .default("ReadWrite")
    .one_of(&["ReadWrite", "ReadOnly"]),
    driver(
        "driver.multiSubnetFailover",
        &["database.multiSubnetFailover"],
        OptionKind::Boolean,
        "Try all addresses at once",
        "Whether all addresses of the host are tried at the same time.",
    )
    .default("false"),
    driver(
        "driver.applicationName",
        &["database.applicationName"],
        OptionKind::String,
        "Application name",
        "Name of the sessions, in sys.dm_exec_sessions.",
    )
    .default("Thalweg SQL Server connector"),
    driver(
        "driver.workstationID",
        &["database.workstationID"],
        OptionKind::String,
        "Workstation",
        "Name of the client's host in sessions; unset: the host's.",
    ),
    seconds(
        "driver.loginTimeout",
        &["database.loginTimeout"],
        "Login timeout",
        "The most seconds until a connection is logged in. 0: no limit.",
    )
    .default("30"),
    seconds(
        "driver.queryTimeout",
        &["database.queryTimeout"],
        "Query timeout of the driver",
        "Seconds, used if `database.query.timeout.ms` is not set.",
    ),
    driver(
        "driver.packetSize",
        &["database.packetSize"],
        OptionKind::Int,
        "Packet size",
        "Bytes of a packet that are asked for.",
    )
    .default("8000")
    .rule(thalweg_config::Rule::Range(Some(512), Some(32_767))),
    driver(
        "driver.authentication",
        &["database.authentication"],
        OptionKind::String,
        "Authentication",
        "Only logins of the server itself.",
    )
    .default("NotSpecified")
    .one_of(&["NotSpecified", "SqlPassword"]),
    driver(
        "driver.integratedSecurity",
        &["database.integratedSecurity"],
        OptionKind::Boolean,
        "Integrated security",
        "Only `false`: logins of Windows and Kerberos are not supported.",
    )
    .default("false")
    .check(no_integrated_security),
    driver(
        "driver.columnEncryptionSetting",
        &["database.columnEncryptionSetting"],
        OptionKind::String,
        "Always Encrypted",
        "Only `Disabled`.",
    )
    .default("Disabled")
    .check(column_encryption),
    driver(
        "driver.sqlserver.agent.status.query",
        &["database.sqlserver.agent.status.query"],
        OptionKind::String,
        "Agent status query",
        "Statement that returns 1 if SQL Server Agent runs; `#db` stands for the database. Where the view of services \
         cannot be read (Azure SQL Managed Instance, Amazon RDS): SELECT 1.",
    )
    .width(Width::Long),
];

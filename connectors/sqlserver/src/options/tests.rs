#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use std::time::Duration;

use super::*;
use crate::offsets::Layout;

const TODAY: [(&str, &str); 6] = [
    ("topic.prefix", "s1"),
    ("database.hostname", "db1"),
    ("database.user", "cdc"),
    ("database.password", "secret"),
    ("database.names", "shop, crm"),
    ("schema.history.internal", "io.debezium.relational.history.MemorySchemaHistory"),
];

fn properties(more: &[(&str, &str)]) -> Properties {
    let mut all = Properties::new();
    for (key, value) in TODAY.iter().chain(more) {
        if *value == "-" {
            all.remove(key);
        } else {
            all.set(*key, (*value).to_owned());
        }
    }
    all
}

/// `name: message` without the standard prefix.
fn errors(more: &[(&str, &str)]) -> Vec<String> {
    let validation = validate(&properties(more));
    let rows = validation.options.iter().flat_map(|o| o.errors.iter().map(move |e| (o.name.clone(), e.clone())));
    rows.map(|(name, text)| {
        let prefix = format!("The '{name}' value is invalid: ");
        format!("{name}: {}", text.strip_prefix(&prefix).unwrap_or(&text))
    })
    .collect()
}

fn config(more: &[(&str, &str)]) -> SqlServerConfig {
    SqlServerConfig::parse(&properties(more)).unwrap()
}

#[test]
fn names_are_unique_and_defaults_valid() {
    let mut names: Vec<_> = TABLE.options.iter().flat_map(|o| o.aliases.iter().chain([&o.name])).collect();
    names.sort_unstable();
    let twice = names.windows(2).find(|w| w[0] == w[1]);
    assert_eq!(twice, None);
    assert_eq!(errors(&[]), Vec::<String>::new());
    assert_eq!(validate(&properties(&[])).warnings, Vec::<String>::new());
}

#[test]
fn bad_values_name_their_option() {
    for (name, value, text) in [
        (
            "signal.data.collection",
            "dbo.signals",
            "'dbo.signals' is not whole: <database>.<schema>.<table> is expected",
        ),
        ("signal.enabled.channels", "rest", "'rest' is not there yet for SQL Server: signals are not followed"),
        ("database.hostname", "-", "A value is required"),
        (
            "topic.prefix",
            "a b",
            "a b has invalid format (only the underscore, hyphen, dot and alphanumeric characters are allowed)",
        ),
        ("database.port", "0", "Value must be between 1 and 65535"),
        ("database.names", "-", "Cannot be empty"),
        ("database.names", " , ", "Cannot be empty"),
        ("database.dbname", "shop", "Must not be used with database.names"),
        (
            "sqlserver.legacy.naming",
            "always",
            "always is for one database only: topics of several would get the same names",
        ),
        ("driver.trustStoreType", "X", "Value must be one of PKCS12, JKS, PEM"),
        (
            "driver.columnEncryptionSetting",
            "Enabled",
            "columns that the client encrypts are not supported: leave them out with column.exclude.list and remove this property",
        ),
        ("data.query.mode", "x", "Value must be one of direct, function"),
        (
            "snapshot.isolation.mode",
            "x",
            "Value must be one of exclusive, snapshot, repeatable_read, read_committed, read_uncommitted",
        ),
        ("snapshot.locking.mode", "custom", "custom is not supported: classes cannot be loaded; use exclusive or none"),
        ("snapshot.query.mode", "custom", "custom is not supported: classes cannot be loaded; use select_all"),
        ("skipped.operations", "c,none", "'none' cannot be specified with other skipped operation types"),
        ("binary.handling.mode", "x", "Value must be one of bytes, base64, base64-url-safe, hex"),
    ] {
        assert_eq!(errors(&[(name, value)]), [format!("{name}: {text}")], "{name}={value}");
    }
    assert_eq!(
        errors(&[("snapshot.mode", "custom")]),
        ["snapshot.mode.custom.name: snapshot.mode.custom.name cannot be empty when snapshot.mode 'custom' is defined"]
    );
    let refused = errors(&[("driver.integratedSecurity", "true")]);
    assert!(refused[0].starts_with("driver.integratedSecurity: only logins of the server itself"), "{refused:?}");
    let ad = errors(&[("driver.authentication", "ActiveDirectoryPassword")]);
    assert_eq!(ad, ["driver.authentication: Value must be one of NotSpecified, SqlPassword"]);
    let both = errors(&[("driver.trustServerCertificate", "true"), ("driver.trustStore", "a.p12")]);
    assert!(
        both[0].starts_with("driver.trustStore: \"driver.trustServerCertificate\" is already specified"),
        "{both:?}"
    );
    let jks = errors(&[("driver.trustStore", "a.jks"), ("driver.trustStoreType", "jks")]);
    assert!(jks[0].contains("keytool -importkeystore"), "{jks:?}");
}

#[test]
fn sql_32_lists_of_one_kind_exclude_each_other() {
    for kind in ["schema", "table", "column"] {
        let (include, exclude) = (format!("{kind}.include.list"), format!("{kind}.exclude.list"));
        let both = errors(&[(&include, "a"), (&exclude, "b")]);
        assert_eq!(both, [format!("{exclude}: \"{include}\" is already specified")]);
    }
    let (include, exclude) = ("internal.capture.instance.include.list", "internal.capture.instance.exclude.list");
    assert_eq!(errors(&[(include, "a"), (exclude, "b")]), [format!("{exclude}: \"{include}\" is already specified")]);
}

#[test]
fn the_names_of_databases_choose_the_layout() {
    let today = config(&[]);
    assert_eq!((today.layout, today.databases), (Layout::ByDatabase, vec!["shop".to_owned(), "crm".to_owned()]));
    let older = [("database.names", "-"), ("database.dbname", "shop")];
    let single = config(&older);
    assert_eq!((single.layout, single.databases), (Layout::Single, vec!["shop".to_owned()]));
    let never = [&older[..], &[("sqlserver.legacy.naming", "never")]].concat();
    assert_eq!(config(&never).layout, Layout::ByDatabase);
    let always = [("database.names", "shop"), ("sqlserver.legacy.naming", "always")];
    assert_eq!(config(&always).layout, Layout::Single);
    let several = [&older[..], &[("tasks.max", "2")]].concat();
    assert_eq!(
        errors(&several),
        ["tasks.max: Only a single connector task may be started in single-partition mode: use database.names"]
    );
    assert_eq!(errors(&[("tasks.max", "4")]), Vec::<String>::new());
}

/// As configurations of the 1.9 line are.
#[test]
fn older_names_are_read() {
    let properties = Properties::from([
        ("database.server.name", "s1"),
        ("database.hostname", "db1"),
        ("database.dbname", "shop"),
        ("database.user", "cdc"),
        ("database.password", "secret"),
        ("database.encrypt", "false"),
        ("database.trustServerCertificate", "true"),
        ("database.applicationIntent", "readonly"),
        ("database.history.kafka.topic", "hist.s1"),
        ("database.history.kafka.bootstrap.servers", "k1:9092"),
        ("database.history.consumer.security.protocol", "PLAINTEXT"),
        ("table.whitelist", "dbo\\.item"),
        ("snapshot.mode", "schema_only"),
        ("database.responseBuffering", "adaptive"),
    ]);
    let validation = validate(&properties);
    assert_eq!(validation.messages(), Vec::<String>::new());
    assert_eq!(validation.settings.text("snapshot.mode"), Some("no_data"));
    assert_eq!(validation.settings.text("schema.history.internal.kafka.topic"), Some("hist.s1"));
    let ignored: Vec<_> = validation.warnings.iter().filter(|w| w.contains("JDBC")).collect();
    assert_eq!(ignored, ["properties of the JDBC driver that have no effect: database.responseBuffering"]);
    let config = SqlServerConfig::parse(&properties).unwrap();
    assert_eq!((&*config.topic_prefix, config.layout), ("s1", Layout::Single));
    assert_eq!((config.connection.encryption, config.connection.read_only), (Encryption::Login, true));
    assert!(matches!(config.connection.trust, Trust::All));
    assert_eq!(config.tables.tables.include, ["dbo\\.item"]);
}

#[test]
fn where_the_server_is() {
    let place = |more: &[(&str, &str)]| {
        let connection = config(more).connection;
        (connection.host, connection.port, connection.instance)
    };
    assert_eq!(place(&[]), ("db1".to_owned(), Some(1433), None));
    let named = Some("SALES".to_owned());
    assert_eq!(place(&[("database.instance", "SALES")]), ("db1".to_owned(), None, named.clone()));
    assert_eq!(place(&[("database.hostname", r"db1\SALES")]), ("db1".to_owned(), None, named.clone()));
    // A port that is set counts, as with the driver.
    let both = [("database.instance", "SALES"), ("database.port", "1450")];
    assert_eq!(place(&both), ("db1".to_owned(), Some(1450), named));
}

#[test]
fn limits_of_time() {
    let limits = |more: &[(&str, &str)]| {
        let config = config(more);
        (config.connection.query_timeout, config.connection.login_timeout, config.stream.poll_interval)
    };
    let (query, login, poll) = limits(&[]);
    assert_eq!((query, login), (Some(Duration::from_secs(600)), Some(Duration::from_secs(30))));
    assert_eq!(poll, Duration::from_millis(500));
    let (query, login, poll) =
        limits(&[("database.query.timeout.ms", "0"), ("driver.loginTimeout", "0"), ("poll.interval.ms", "60000")]);
    assert_eq!((query, login, poll), (None, None, Duration::from_secs(5)));
    assert_eq!(limits(&[("driver.queryTimeout", "7")]).0, Some(Duration::from_secs(7)));
    let both = [("driver.queryTimeout", "7"), ("database.query.timeout.ms", "9000")];
    assert_eq!(limits(&both).0, Some(Duration::from_secs(9)));
}

#[test]
fn pages_and_windows() {
    let stream = |more: &[(&str, &str)]| config(more).stream;
    assert_eq!((stream(&[]).page_rows, stream(&[]).transactions), (2000, Some(500)));
    let set =
        stream(&[("streaming.fetch.size", "3"), ("max.iteration.transactions", "0"), ("data.query.mode", "FUNCTION")]);
    assert_eq!((set.page_rows, set.transactions, set.query_mode), (3, None, QueryMode::Function));
}

#[test]
fn sql_31_tables_are_matched_without_database_and_case() {
    let id = |schema, table| thalweg_core::relational::table_id::TableId::new(Some("TestDB"), Some(schema), table);
    let filter = config(&[("table.include.list", "DBO.orders")]).tables.filter().unwrap();
    assert!(filter.captures(&id("dbo", "Orders")).unwrap());
    assert!(!filter.captures(&id("dbo", "Orders2")).unwrap());
    let all = config(&[]).tables.filter().unwrap();
    assert!(all.captures(&id("dbo", "t")).unwrap() && !all.captures(&id("CDC", "dbo_t_CT")).unwrap());
    let builtin = config(&[("table.ignore.builtin", "false")]).tables.filter().unwrap();
    assert!(builtin.captures(&id("cdc", "dbo_t_CT")).unwrap());
}

#[test]
fn secrets_do_not_print() {
    let printed = format!("{:?}", config(&[("driver.trustStore", "a.p12"), ("driver.trustStorePassword", "secret")]));
    assert!(!printed.contains("secret\""), "{printed}");
}

#[test]
fn clients_of_the_history_have_settings_under_older_names_too() {
    let older = [
        ("schema.history.internal", "-"),
        ("database.history.kafka.topic", "h"),
        ("database.history.kafka.bootstrap.servers", "k:9092"),
        ("database.history.producer.security.protocol", "SSL"),
        ("schema.history.internal.consumer.security.protocol", "SSL"),
    ];
    let topic = config(&older).history.topic;
    assert_eq!((topic.topic.as_str(), topic.bootstrap.as_str()), ("h", "k:9092"));
    assert_eq!(topic.producer.get("security.protocol"), Some("SSL"));
    assert_eq!(topic.consumer.get("security.protocol"), Some("SSL"));
}

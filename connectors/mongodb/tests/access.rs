//! Who may connect, and what `check` says about those who may not.

use std::time::{Duration, Instant};

use anyhow::Result;
use bson::{Document, doc};
use thalweg_config::Properties;
use thalweg_core::source::{CheckReport, Connector};
use thalweg_core::{ErrorKind, Policy};
use thalweg_mongodb::MongoDbConnector;

use crate::fixture::run::{Offsets, Run};
use crate::fixture::servers::{Secured, Standalone};
use crate::fixture::{bed, config, shared};

const STRING: &str = "mongodb.connection.string";

/// Messages by option, and the report.
async fn check(config: &Properties) -> (Vec<(String, String)>, CheckReport) {
    let connector = MongoDbConnector::new();
    let mut validation = connector.validate(config);
    assert!(validation.is_valid(), "{:?}", validation.messages());
    let report = connector.check(config, &mut validation, Duration::from_secs(30)).await;
    let messages = validation.options.iter().flat_map(|o| o.errors.iter().map(|e| (o.name.to_string(), e.clone())));
    (messages.collect(), report)
}

#[tokio::test]
async fn check_shows_what_would_run() -> Result<()> {
    let bed = bed("check_good").await?;
    bed.db.create_collection("a").await?;
    let (messages, report) = check(&bed.config(&[])).await;
    assert_eq!(messages, []);
    let facts: Vec<&str> = report.facts.iter().map(|(_, v)| v.as_str()).collect();
    assert!(facts.contains(&"MongoDB 6.0.5, replica set rs0"), "{facts:?}");
    assert_eq!(report.tasks.len(), 1);
    assert_eq!(report.warnings, Vec::<String>::new());
    let (_, report) = check(&bed.config(&[("collection.include.list", "check_good.none")])).await;
    assert!(report.warnings.iter().any(|w| w.contains("no changes will be captured")), "{:?}", report.warnings);
    Ok(())
}

#[tokio::test]
async fn check_wants_the_name_of_the_replica_set_but_a_task_does_without() -> Result<()> {
    let set = shared()?;
    let bed = bed("check_no_name").await?;
    let uri = format!("mongodb://{}/", set.members[0].address());
    let config = config(&uri, &[("database.include.list", "check_no_name")]);
    let (messages, _) = check(&config).await;
    let text = "Replica set not specified in connection string for REPLICA_SET cluster.";
    assert_eq!(messages, [(STRING.to_owned(), text.to_owned())]);
    bed.db.collection("a").insert_one(doc! {"_id": 1}).await?;
    let mut run = Run::start(&config, &Offsets::new()).await?;
    assert_eq!(run.record().await?.op(), "r");
    run.stop().await
}

#[tokio::test]
async fn a_standalone_server_is_refused_with_advice() -> Result<()> {
    let server = Standalone::start().await?;
    let config = config(&format!("mongodb://127.0.0.1:{}/", server.port), &[]);
    let (messages, _) = check(&config).await;
    assert_eq!(messages.len(), 1);
    assert!(messages[0].1.contains("standalone") && messages[0].1.contains("replica set"), "{messages:?}");
    let error = Run::start(&config, &Offsets::new()).await?.error().await?;
    assert_eq!((error.kind, error.policy()), (ErrorKind::Config, Policy::NeedsUser), "{error}");
    Ok(())
}

#[tokio::test]
async fn t_92_nobody_answers() -> Result<()> {
    let port = thalweg_services::free_port()?;
    let uri = format!("mongodb://127.0.0.1:{port}/?replicaSet=rs0");
    let (messages, _) = check(&config(&uri, &[("mongodb.server.selection.timeout.ms", "200")])).await;
    assert!(messages[0].1.starts_with("Unable to connect: "), "{messages:?}");
    // The connection timeout is longer than the whole check may take.
    let begun = Instant::now();
    let (messages, _) = check(&config(&uri, &[("connection.validation.timeout.ms", "300")])).await;
    assert_eq!(messages, [(STRING.to_owned(), "Connection validation timed out after 300ms".to_owned())]);
    assert!(begun.elapsed() < Duration::from_secs(10));
    Ok(())
}

#[tokio::test]
async fn mgo_08_mgo_26_t_17_rights() -> Result<()> {
    let server = Secured::start().await?;
    let admin = server.client("admin", "secret").await?;
    let inv = admin.database("inv");
    let a = inv.collection::<Document>("a");
    a.insert_one(doc! {"_id": 1}).await?;
    admin.database("crm").collection("b").insert_one(doc! {"_id": 1}).await?;
    let users = admin.database("admin");
    users.run_command(doc! {"createUser": "inv", "pwd": "p@ss", "roles": [{"role": "read", "db": "inv"}]}).await?;
    let one = doc! {
        "createRole": "one", "roles": [],
        "privileges": [{"resource": {"db": "inv", "collection": "a"}, "actions": ["find", "changeStream"]}],
    };
    users.run_command(one).await?;
    users.run_command(doc! {"createUser": "one", "pwd": "p", "roles": ["one"]}).await?;
    users.run_command(doc! {"createUser": "none", "pwd": "p", "roles": []}).await?;
    let uri =
        |user: &str, password: &str| format!("mongodb://{user}:{password}@127.0.0.1:{}/?replicaSet=rs0", server.port);

    // A wrong password: said at once, by check and by a task, and not asked again.
    for wrong in [
        config(&uri("inv", "wrong"), &[]),
        config(&server.uri(), &[("mongodb.user", "inv"), ("mongodb.password", "wrong")]),
    ] {
        let (messages, _) = check(&wrong).await;
        assert!(messages[0].1.starts_with("Unable to connect: "), "{messages:?}");
        assert!(messages[0].1.contains("Authentication failed") && !messages[0].1.contains("wrong"), "{messages:?}");
        let before = connections(&admin).await?;
        let error = Run::start(&wrong, &Offsets::new()).await?.error().await?;
        assert_eq!((error.kind, error.policy()), (ErrorKind::Auth, Policy::NeedsUser), "{error}");
        assert!(!error.trace().contains("wrong"));
        assert!(connections(&admin).await? <= before + 8);
    }
    // The property's user, where the connection string has none.
    let by_property = [
        ("mongodb.user", "inv"),
        ("mongodb.password", "p@ss"),
        ("capture.scope", "database"),
        ("capture.target", "inv"),
    ];
    assert_eq!(check(&config(&server.uri(), &by_property)).await.0, []);
    let mut run = Run::start(&config(&server.uri(), &by_property), &Offsets::new()).await?;
    assert_eq!(run.record().await?.topic, "t.inv.a");
    a.insert_one(doc! {"_id": 2}).await?;
    assert_eq!(run.record().await?.op(), "c");
    run.stop().await?;

    // One collection is enough for one collection.
    let scope = [("capture.scope", "collection"), ("capture.target", "inv.a")];
    let only = config(&uri("one", "p"), &scope);
    assert_eq!(check(&only).await.0, []);
    let mut run = Run::start(&only, &Offsets::new()).await?;
    run.take(2).await?;
    a.insert_one(doc! {"_id": 3}).await?;
    assert_eq!(run.record().await?.id(), "3");
    run.stop().await?;

    // And not for the deployment: the missing right is named.
    let all = config(&uri("inv", "p%40ss"), &[]);
    let (messages, _) = check(&all).await;
    assert!(
        messages[0].1.starts_with("User doesn't have sufficient privileges: not authorized on admin"),
        "{messages:?}"
    );
    assert!(messages[0].1.contains("capture.scope"), "{messages:?}");
    let error = Run::start(&all, &Offsets::new()).await?.error().await?;
    assert_eq!((error.kind, error.policy()), (ErrorKind::Permission, Policy::NeedsUser), "{error}");

    let (messages, _) = check(&config(&uri("none", "p"), &[])).await;
    let text = "User doesn't have rights to list databases. Please verify credentials and database permissions.";
    assert_eq!(messages, [(STRING.to_owned(), text.to_owned())]);
    Ok(())
}

async fn connections(admin: &mongodb::Client) -> Result<i32> {
    let status = admin.database("admin").run_command(doc! {"serverStatus": 1}).await?;
    Ok(status.get_document("connections")?.get_i32("current")?)
}

#[tokio::test]
async fn tls_with_certificates_on_both_sides() -> Result<()> {
    let server = crate::fixture::servers::Encrypted::start().await?;
    let uri = format!("mongodb://localhost:{}/?directConnection=true", server.port);
    let authority = server.authority.display().to_string();
    let client = server.client.display().to_string();
    let pem = [
        ("mongodb.ssl.enabled", "true"),
        ("mongodb.ssl.truststore", authority.as_str()),
        ("mongodb.ssl.truststore.type", "PEM"),
        ("mongodb.ssl.keystore", client.as_str()),
        ("mongodb.ssl.keystore.type", "PEM"),
        ("mongodb.server.selection.timeout.ms", "5000"),
        ("connect.max.attempts", "1"),
    ];
    // As Debezium's users have them, which is also the default type.
    let (authority_store, client_store) =
        (server.authority_store.display().to_string(), server.client_store.display().to_string());
    let java = [
        ("mongodb.ssl.enabled", "true"),
        ("mongodb.ssl.truststore", authority_store.as_str()),
        ("mongodb.ssl.truststore.password", server.store_password),
        ("mongodb.ssl.keystore", client_store.as_str()),
        ("mongodb.ssl.keystore.password", server.store_password),
        pem[5],
        pem[6],
    ];
    for stores in [&pem, &java] {
        let mut run = Run::start(&config(&uri, stores), &Offsets::new()).await?;
        run.quiet().await?;
        run.stop().await?;
    }
    let mut wrong = java.to_vec();
    wrong[4].1 = "not the password";
    let error = Run::start(&config(&uri, &wrong), &Offsets::new()).await?.error().await?;
    assert_eq!((error.kind, error.policy()), (ErrorKind::Config, Policy::NeedsUser), "{error}");
    for part in ["mongodb.ssl.keystore ", client_store.as_str(), "mongodb.ssl.keystore.password"] {
        assert!(error.message.contains(part), "{error}");
    }
    assert!(!error.to_string().contains("not the password"));
    let (messages, _) = check(&config(&uri, &wrong)).await;
    assert_eq!(messages[0].0, "mongodb.ssl.keystore");
    // Without its certificate the client is not let in; without the authority it does not go in.
    for part in [&pem[..3], &pem[3..]] {
        let mut part = part.to_vec();
        part.extend([("mongodb.ssl.enabled", "true"), pem[6], ("mongodb.server.selection.timeout.ms", "1000")]);
        let error = Run::start(&config(&uri, &part), &Offsets::new()).await?.error().await?;
        assert_eq!(error.policy(), Policy::NeedsUser, "{error}");
    }
    Ok(())
}

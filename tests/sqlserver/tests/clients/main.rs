//! Clients that others have written, each running a script of its own against the program.
//!
//! They need what the fetching scripts of `thalweg-services` name: Python with pip, a Java development kit and
//! Maven.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod program;

use std::path::PathBuf;
use std::process::Command;

use program::Program;

fn script(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/clients").join(name)
}

/// Runs a client to its end; what it says is the test's failure.
async fn passes(mut client: Command) {
    let output = tokio::task::spawn_blocking(move || client.output().unwrap()).await.unwrap();
    assert!(
        output.status.success(),
        "{}\n{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

async fn freetds(arguments: &[&str], encryption: &str) {
    let server = Program::start(arguments).await;
    let mut client = Command::new("python3");
    client
        .arg(script("freetds.py"))
        .args(["127.0.0.1", &server.port.to_string(), encryption])
        .env("PYTHONPATH", thalweg_services::pymssql().unwrap())
        .env("PYTHONDONTWRITEBYTECODE", "1");
    passes(client).await;
}

async fn jdbc(arguments: &[&str], encryption: &str) {
    let server = Program::start(arguments).await;
    let mut client = Command::new("java");
    client
        .args(["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp"])
        .arg(thalweg_services::mssql_jdbc().unwrap())
        .arg(script("Jdbc.java"))
        .args(["127.0.0.1", &server.port.to_string(), encryption]);
    passes(client).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn freetds_without_encryption() {
    freetds(&[], "off").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn freetds_with_tls() {
    freetds(&["--tls"], "require").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn jdbc_without_encryption() {
    jdbc(&[], "false").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn jdbc_with_tls() {
    jdbc(&["--tls"], "true").await;
}

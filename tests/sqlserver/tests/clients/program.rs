//! The program `sqlserver-emulator` as a process.

use std::path::Path;
use std::process::{Command, ExitStatus};
use std::time::Duration;

use nix::sys::signal::Signal;
use tempfile::TempDir;
use thalweg_services::{Process, until};

const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct Program {
    pub(crate) port: u16,
    process: Process,
    _folder: TempDir,
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sqlserver-emulator"));
    command.args(["--listen", "127.0.0.1:0"]).args(arguments);
    command
}

impl Program {
    /// Starts it on a free port, and waits until it listens.
    pub(crate) async fn start(arguments: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut process = Process::start("sqlserver-emulator", command(arguments), &folder.path().join("log")).unwrap();
        let port =
            until("the emulator listens", PATIENCE, || std::future::ready(listening(&mut process))).await.unwrap();
        Self { port, process, _folder: folder }
    }

    /// After SIGTERM.
    pub(crate) async fn terminated(mut self) -> ExitStatus {
        self.process.signal(Signal::SIGTERM).unwrap();
        self.process.ended(PATIENCE).await.unwrap()
    }
}

/// The port; `None`: it has not said so yet.
fn listening(process: &mut Process) -> anyhow::Result<Option<u16>> {
    if let Some(status) = process.exited()? {
        anyhow::bail!("it ended with {status}: {}", process.output());
    }
    let output = process.output();
    let address = output.lines().find_map(|l| l.strip_prefix("listening on 127.0.0.1:"));
    Ok(address.filter(|_| output.ends_with('\n')).and_then(|p| p.parse().ok()))
}

/// Runs it with a script that it is to refuse; the result is what it says.
fn refused(script: &Path) -> String {
    let output = command(&["--script", script.to_str().unwrap()]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn an_error_in_a_script_names_file_and_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("broken.sql");
    std::fs::write(&file, "CREATE DATABASE shop\nGO\nUSE shop\nGO\n\nSELECT 1\nSELECT * FROM nowhere\n").unwrap();
    let said = refused(&file);
    assert!(said.contains("broken.sql, line 7: error 208: Invalid object name 'nowhere'."), "{said}");
    assert!(refused(&folder.path().join("missing.sql")).contains("missing.sql"));
}

#[test]
fn an_address_that_is_none_is_told() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sqlserver-emulator"));
    let output = command.args(["--listen", "nonsense"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--listen nonsense is no HOST:PORT"));
}

#[tokio::test(flavor = "multi_thread")]
async fn sigterm_ends_it_though_a_client_is_connected() {
    let server = Program::start(&[]).await;
    let _client = tokio::net::TcpStream::connect(("127.0.0.1", server.port)).await.unwrap();
    assert_eq!(server.terminated().await.code(), Some(0));
}

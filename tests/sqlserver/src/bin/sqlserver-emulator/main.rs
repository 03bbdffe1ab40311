//! `sqlserver-emulator`: the emulator as a program, for trying a client by hand.
//!
//! Runs the script if there is one, then listens until SIGTERM or SIGINT. What it prints to standard output is
//! the one line that says where it listens; everything else goes to standard error. It ends with 0 after a
//! signal and with 1 after an error.

mod script;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result, anyhow};
use clap::Parser;
use thalweg_sqlserver_emulator::engine::{Emulator, Setup};
use thalweg_sqlserver_emulator::wire::server::{Options, TdsServer};
use thalweg_sqlserver_emulator::wire::{Certificate, Encryption};
use tokio::signal::unix::{SignalKind, signal};

/// A server to test SQL Server clients on: TDS 7.4 and 8.0, T-SQL, change data capture. Not for production.
#[derive(Debug, Parser)]
#[command(name = "sqlserver-emulator")]
struct Arguments {
    /// Where to listen; port 0 takes a free one.
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:1433")]
    listen: String,
    /// Login that may do everything.
    #[arg(long, default_value = "sa")]
    user: String,
    /// Its password.
    #[arg(long, default_value = "Password!1")]
    password: String,
    /// Take encrypted connections only. Without this the client decides.
    #[arg(long)]
    tls: bool,
    /// T-SQL to run before the first client is let in; lines with GO separate batches.
    #[arg(long, value_name = "FILE.sql")]
    script: Option<PathBuf>,
}

fn main() -> std::process::ExitCode {
    let arguments = Arguments::parse();
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_env_filter(tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| "warn".into()))
        .init();
    match run(&arguments) {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("sqlserver-emulator: {error:#}");
            std::process::ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<()> {
    let setup = Setup { administrator: (arguments.user.clone(), arguments.password.clone()), ..Setup::default() };
    let emulator = Arc::new(Emulator::start(&setup)?);
    if let Some(file) = &arguments.script {
        script::run(file, emulator.as_ref(), &setup.administrator)?;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().context("starting threads")?;
    runtime.block_on(serve(arguments, emulator.clone()))
    // The emulator goes last: its sessions have ended by then.
}

async fn serve(arguments: &Arguments, emulator: Arc<Emulator>) -> Result<()> {
    // Before anybody can connect, so that no signal is missed.
    let mut terminate = signal(SignalKind::terminate()).context("waiting for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("waiting for SIGINT")?;
    let (address, host) = address(&arguments.listen).await?;
    let options = Options {
        address,
        encryption: if arguments.tls { Encryption::Required } else { Encryption::Offered },
        certificate: Some(Certificate::self_signed(&["localhost", "127.0.0.1", &host])?),
        ..Options::default()
    };
    let server = TdsServer::start(emulator, options).await?;
    println!("listening on {}", server.address());
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    server.shut_down().await;
    Ok(())
}

/// The first address of `HOST:PORT`, and the host.
async fn address(listen: &str) -> Result<(SocketAddr, String)> {
    let wrong = || anyhow!("--listen {listen} is no HOST:PORT; give for example 127.0.0.1:1433");
    let (host, _) = listen.rsplit_once(':').ok_or_else(wrong)?;
    let mut found = tokio::net::lookup_host(listen).await.with_context(|| wrong().to_string())?;
    let address = found.next().ok_or_else(|| anyhow!("--listen {listen}: the host has no address"))?;
    Ok((address, host.trim_matches(['[', ']']).to_owned()))
}

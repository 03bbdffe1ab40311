//! The command line and what it starts. The only place that names concrete connectors.

mod arguments;
mod check;
mod demo;
mod run;

use std::process::ExitCode;

use clap::Parser;

use arguments::{Arguments, Command};

pub fn main() -> ExitCode {
    let arguments = Arguments::parse();
    // One provider for every TLS client and server of the process, before any of them is made.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let done = match arguments.command {
        Command::Run(arguments) => run::run(arguments),
        Command::Demo(arguments) => blocking(demo::run(arguments)),
        Command::Check(arguments) => blocking(check::run(arguments)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("thalweg: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn blocking<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(work)
}

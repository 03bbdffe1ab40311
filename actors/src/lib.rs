//! Control plane of one node: who runs what, life cycle, restart, status; and the data tasks that it
//! starts.
//!
//! In the order in which a unit comes to life: `port` is the seam to the cluster and `registry` what
//! can be run; `node` compares the plan with what runs; `connector` plans tasks; `task` runs one;
//! `run` is one run of it; `partition` restarts its sources; `generation` is one life of a source,
//! `table` one collection in a snapshot; `histories` opens the places of schema histories. In the order in which data passes: `reader`, `encoder` (with
//! `coder`, `topics`, `refused`), `ledger`. Shared vocabulary: `exit`, `backoff`, `progress`, `settings`;
//! `memory`, `counters` and `view` are what can be seen from outside.
//!
//! Actors (actix) run on the main thread and never carry a change event; data tasks are plain tokio
//! tasks on the pool. Supervision is ours: a factory makes a fresh actor, a number marks each run.
//!
//! It does not: decide placement, store anything, or name a database or a Kafka client.

mod backoff;
mod coder;
mod connector;
mod counters;
mod dead_letter;
mod encoder;
mod exit;
mod generation;
mod histories;
mod ledger;
mod memory;
mod node;
mod partition;
pub mod port;
mod progress;
mod reader;
mod refused;
mod registry;
mod rest_signals;
mod run;
pub mod sabotage;
mod settings;
mod signals;
mod table;
mod task;
mod topics;
mod turn;
mod view;

/// The doubles of the integration tests, for tests that need to look inside.
#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, unreachable_pub, dead_code)]
#[path = "../tests/node/support/mod.rs"]
mod support;
#[cfg(test)]
extern crate self as thalweg_actors;

use std::future::Future;
use std::io;

pub use counters::CounterView;
pub use exit::ExitKind;
pub use node::{Node, NodeHandle, ShutdownReport};
pub use progress::Wait;
pub use registry::Registry;
pub use settings::NodeOptions;
pub use view::{Activity, AwayView, ErrorView, NodeView, PartitionView, SnapshotView, TableView, UnitView};

/// Runs `main` on this thread inside an actix system whose tokio runtime has `threads` workers
/// (`None`: one per core). Actors share this thread with `main`; whatever is spawned with
/// `tokio::spawn` runs on the workers.
///
/// The binary calls this once; a test calls it as often as it likes, each time on its own thread:
///
/// ```
/// let answer = thalweg_actors::run(Some(2), async { tokio::spawn(async { 42 }).await })?;
/// assert_eq!(answer.ok(), Some(42));
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// The runtime could not be made.
pub fn run<F: Future>(threads: Option<usize>, main: F) -> io::Result<F::Output> {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    if let Some(threads) = threads {
        runtime.worker_threads(threads.max(1));
    }
    let runtime = runtime.enable_all().thread_name("thalweg-worker").build()?;
    Ok(actix::System::with_tokio_rt(move || runtime).block_on(main))
}

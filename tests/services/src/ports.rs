//! TCP ports that no other test takes, also not one of another process.
//!
//! A port is held by a file lock for the lifetime of this process, and lies below the range from
//! which the kernel chooses ports for outgoing connections.

use std::fs::File;
use std::net::TcpListener;
use std::sync::Mutex;

use anyhow::{Context, Result, bail};

const FIRST: u16 = 20_000;
const LAST: u16 = 29_999;

static HELD: Mutex<Vec<File>> = Mutex::new(Vec::new());

/// A free port on the loopback address.
pub fn free_port() -> Result<u16> {
    let folder = std::env::temp_dir().join("thalweg-test-ports");
    std::fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
    let span = LAST - FIRST;
    let start = (std::process::id() as u16).wrapping_mul(97) % span;
    for step in 0..span {
        let port = FIRST + (start + step) % span;
        let file = File::create(folder.join(port.to_string()))?;
        if file.try_lock().is_err() || TcpListener::bind(("127.0.0.1", port)).is_err() {
            continue;
        }
        HELD.lock().map_err(|_| anyhow::anyhow!("port registry poisoned"))?.push(file);
        return Ok(port);
    }
    bail!("no free port between {FIRST} and {LAST}")
}

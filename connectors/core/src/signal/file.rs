//! Signals in a file: one JSON object per line, taken out of the file as they are read.

use std::io::ErrorKind as Io;
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use tracing::warn;

use super::{Signal, SignalChannel};
use crate::error::{Error, ErrorKind, Phase, Result};

/// A file larger than this is no list of signals.
const MOST_BYTES: u64 = 1 << 20;

/// The channel `file`. Whoever runs the task reads the file of its own host.
#[derive(Debug)]
pub struct FileSignals {
    path: PathBuf,
}

impl FileSignals {
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    fn failed(&self, doing: &str, error: &std::io::Error) -> Error {
        let message = format!("the signal file {} cannot be {doing}", self.path.display());
        Error::new(ErrorKind::Storage, Phase::Stream, message).because(error)
    }
}

#[async_trait]
impl SignalChannel for FileSignals {
    async fn poll(&mut self) -> Result<Vec<Signal>> {
        let size = match tokio::fs::metadata(&self.path).await {
            Ok(file) => file.len(),
            Err(e) if e.kind() == Io::NotFound => return Ok(Vec::new()),
            Err(e) => return Err(self.failed("read", &e)),
        };
        if size == 0 {
            return Ok(Vec::new());
        }
        if size > MOST_BYTES {
            let message = format!("the signal file {} has {size} bytes and is not read", self.path.display());
            return Err(Error::new(ErrorKind::Storage, Phase::Stream, message)
                .advise("put one signal per line into it, and no more than a megabyte at once"));
        }
        let text = tokio::fs::read(&self.path).await.map_err(|e| self.failed("read", &e))?;
        // First emptied, then followed: a signal is not repeated, as it would be if the file stayed.
        tokio::fs::write(&self.path, b"").await.map_err(|e| self.failed("emptied", &e))?;
        Ok(parse(&self.path, &text))
    }
}

fn parse(path: &Path, text: &[u8]) -> Vec<Signal> {
    let lines = text.split(|b| *b == b'\n').map(<[u8]>::trim_ascii).enumerate().filter(|(_, line)| !line.is_empty());
    lines
        .filter_map(|(at, line)| match Signal::from_json(line) {
            Ok(signal) => Some(signal),
            Err(why) => {
                warn!(file = %path.display(), line = at + 1, why, "a line of the signal file is ignored");
                None
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[tokio::test]
    async fn lines_are_taken_out_of_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("signals.txt");
        let mut channel = FileSignals::new(&path);
        assert!(channel.poll().await.unwrap().is_empty(), "no file yet");
        std::fs::write(&path, "{\"id\":\"1\",\"type\":\"log\"}\nnonsense\n\n{\"id\":\"2\",\"type\":\"log\"}").unwrap();
        let ids: Vec<_> = channel.poll().await.unwrap().into_iter().map(|s| s.id).collect();
        assert_eq!(ids, ["1", "2"]);
        assert_eq!(std::fs::read(&path).unwrap(), b"");
        assert!(channel.poll().await.unwrap().is_empty());
        std::fs::write(&path, vec![b'x'; MOST_BYTES as usize + 1]).unwrap();
        assert!(channel.poll().await.unwrap_err().message.contains("is not read"));
        assert!(FileSignals::new(dir.path().join("a").join("b")).poll().await.unwrap().is_empty());
    }
}

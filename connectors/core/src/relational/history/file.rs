//! A schema history in a file, one record in a line: what Debezium's file history reads and writes.
//!
//! A record is on the disk before its change counts. A line that was cut by a crash is ended by the next record,
//! which so stays whole; whoever reads passes over what is no record. It does not lock the file: it belongs to
//! one task, on one host.

use std::io;
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use bytes::Bytes;
use tokio::fs::{File, OpenOptions};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncSeekExt, AsyncWriteExt, BufReader, Take};

use super::store::{HistoryReader, HistoryStore};
use crate::error::{Error, ErrorKind, Phase, Result};

/// Longest line in bytes: a record has the structure of one table, or of some.
const LONGEST: usize = 64 << 20;

/// Bytes of records that are handed over together.
const HANDY: usize = 1 << 20;

#[derive(Debug)]
pub struct FileHistory {
    path: PathBuf,
}

impl FileHistory {
    /// `path`: `schema.history.internal.file.filename`.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    async fn add(&self, text: &[u8]) -> io::Result<()> {
        let mut file = OpenOptions::new().read(true).append(true).create(true).open(&self.path).await?;
        let mut line = Vec::with_capacity(text.len() + 2);
        if file.seek(io::SeekFrom::End(0)).await? > 0 {
            file.seek(io::SeekFrom::End(-1)).await?;
            if file.read_u8().await? != b'\n' {
                line.push(b'\n');
            }
        }
        line.extend_from_slice(text);
        line.push(b'\n');
        file.write_all(&line).await?;
        file.flush().await?;
        file.sync_data().await
    }
}

fn failed(what: &str, path: &Path, error: &io::Error) -> Error {
    Error::new(ErrorKind::Storage, Phase::Start, format!("the schema history {} cannot be {what}", path.display()))
        .because(error)
        .advise("check schema.history.internal.file.filename and the rights of its folder, then restart the task")
}

#[async_trait]
impl HistoryStore for FileHistory {
    fn describe(&self) -> String {
        format!("file {}", self.path.display())
    }

    async fn prepare(&mut self) -> Result<()> {
        if let Some(folder) = self.path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            tokio::fs::create_dir_all(folder).await.map_err(|e| failed("made", &self.path, &e))?;
        }
        let made = OpenOptions::new().append(true).create(true).open(&self.path).await;
        made.map(drop).map_err(|e| failed("made", &self.path, &e))
    }

    async fn append(&mut self, text: Bytes) -> Result<()> {
        if text.contains(&b'\n') {
            let message = format!("a record of the schema history {} has a line break", self.path.display());
            return Err(Error::new(ErrorKind::Internal, Phase::Start, message));
        }
        self.add(&text).await.map_err(|e| failed("written", &self.path, &e))
    }

    async fn read(&mut self) -> Result<Box<dyn HistoryReader>> {
        let open = async {
            let file = File::open(&self.path).await?;
            let length = file.metadata().await?.len();
            Ok(BufReader::new(file).take(length))
        };
        let rest = open.await.map_err(|e: io::Error| failed("read", &self.path, &e))?;
        Ok(Box::new(Lines { path: self.path.clone(), rest }))
    }
}

struct Lines {
    path: PathBuf,
    /// Up to where the file went when reading began.
    rest: Take<BufReader<File>>,
}

impl Lines {
    /// A line without its end; `None` behind the last.
    async fn line(&mut self) -> io::Result<Option<Bytes>> {
        let mut line = Vec::new();
        // One byte more than is allowed shows that there is more.
        let limit = LONGEST as u64 + 1;
        (&mut self.rest).take(limit).read_until(b'\n', &mut line).await?;
        if line.is_empty() {
            return Ok(None);
        }
        if line.len() > LONGEST {
            return Err(io::Error::other(format!("a line has more than {LONGEST} bytes")));
        }
        if line.last() == Some(&b'\n') {
            line.pop();
        }
        Ok(Some(line.into()))
    }
}

#[async_trait]
impl HistoryReader for Lines {
    async fn next(&mut self) -> Result<Option<Vec<Bytes>>> {
        let (mut records, mut bytes) = (Vec::new(), 0);
        while bytes < HANDY {
            match self.line().await.map_err(|e| failed("read", &self.path, &e))? {
                Some(line) => {
                    bytes += line.len();
                    records.push(line);
                }
                None if records.is_empty() => return Ok(None),
                None => break,
            }
        }
        Ok(Some(records))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    async fn lines(history: &mut FileHistory) -> Vec<String> {
        let mut reader = history.read().await.unwrap();
        let mut all = Vec::new();
        while let Some(records) = reader.next().await.unwrap() {
            all.extend(records.iter().map(|record| String::from_utf8(record.to_vec()).unwrap()));
        }
        all
    }

    #[tokio::test]
    async fn records_are_lines_and_survive_a_cut_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/history.dat");
        let mut history = FileHistory::new(&path);
        history.prepare().await.unwrap();
        assert_eq!(lines(&mut history).await, [""; 0]);
        history.append("{\"a\":1}".into()).await.unwrap();
        history.append("{\"a\":2}".into()).await.unwrap();
        std::fs::write(&path, std::fs::read_to_string(&path).unwrap() + "{\"a\":").unwrap();
        history.prepare().await.unwrap();
        history.append("{\"a\":3}".into()).await.unwrap();
        assert_eq!(lines(&mut history).await, ["{\"a\":1}", "{\"a\":2}", "{\"a\":", "{\"a\":3}"]);
        assert!(history.append("a\nb".into()).await.is_err());
    }

    #[tokio::test]
    async fn a_reader_ends_where_the_file_ended() {
        let folder = tempfile::tempdir().unwrap();
        let mut history = FileHistory::new(folder.path().join("h"));
        history.append("first".into()).await.unwrap();
        let mut reader = history.read().await.unwrap();
        history.append("second".into()).await.unwrap();
        assert_eq!(reader.next().await.unwrap().unwrap(), ["first"]);
        assert_eq!(reader.next().await.unwrap(), None);
    }

    #[tokio::test]
    async fn many_records_come_in_several_portions() {
        let folder = tempfile::tempdir().unwrap();
        let mut history = FileHistory::new(folder.path().join("h"));
        let long = "x".repeat(HANDY / 2);
        for _ in 0..5 {
            history.append(long.clone().into()).await.unwrap();
        }
        let mut reader = history.read().await.unwrap();
        let mut portions = Vec::new();
        while let Some(records) = reader.next().await.unwrap() {
            portions.push(records.len());
        }
        assert_eq!(portions, [2, 2, 1]);
    }

    #[tokio::test]
    async fn a_file_that_is_not_there_says_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        let mut history = FileHistory::new(folder.path().join("none"));
        let error = history.read().await.map(|_| ()).unwrap_err();
        assert!(error.message.ends_with("none cannot be read") && error.advice().contains("file.filename"));
    }
}

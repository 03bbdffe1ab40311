//! Signals in a file: one JSON object per line, taken out of the file as they are read.
//!
//! The file is renamed before it is read, and an empty one takes its place: so a line that is added
//! meanwhile is in the one or in the other. The renamed file is there until its signals are confirmed;
//! one that a node has left behind is read first by whoever runs the task next. It does not lock the file:
//! whoever of several tasks renames it first has its signals.

use std::collections::VecDeque;
use std::io::ErrorKind as Io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use tokio::io::{AsyncReadExt, AsyncSeekExt};
use tracing::{info, warn};

use super::{Mark, Received, Signal, SignalChannel};
use crate::error::{Error, ErrorKind, Phase, Result};

/// A file larger than this is no list of signals. Also what is read of one at once.
const MOST_BYTES: u64 = 1 << 20;

/// A renamed file stays at least as long: for those who had opened it before and write after that.
const GRACE: Duration = Duration::from_secs(1);

/// Ending of the name of a renamed file.
const TAKEN: &str = ".taken";

/// The channel `file`. Whoever runs the task reads the file of its own host.
#[derive(Debug)]
pub struct FileSignals {
    path: PathBuf,
    /// Part of the names of renamed files: those of other tasks are left alone.
    owner: String,
    /// Renamed files of earlier runs; `None`: nobody has looked yet.
    left_behind: Option<VecDeque<PathBuf>>,
    taken: Option<Taken>,
    grace: Duration,
}

/// A renamed file.
#[derive(Debug)]
struct Taken {
    path: PathBuf,
    series: Arc<str>,
    /// Bytes and lines of it that were read.
    read: u64,
    lines: i64,
    since: Instant,
    /// How long it was at the last look, and since when.
    length: (u64, Instant),
}

impl Taken {
    /// Whether nobody has added to it for so long, now that it has this length.
    fn rests(&mut self, length: u64, grace: Duration) -> bool {
        if self.length.0 != length {
            self.length = (length, Instant::now());
        }
        self.length.1.elapsed() >= grace
    }
}

impl FileSignals {
    /// `owner` tells the task from others that may use the same file.
    pub fn new(path: impl Into<PathBuf>, owner: &str) -> Self {
        let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
        let owner = owner.chars().map(plain).take(100).collect();
        Self { path: path.into(), owner, left_behind: None, taken: None, grace: GRACE }
    }

    fn failed(&self, doing: &str, error: &std::io::Error) -> Error {
        let message = format!("the signal file {} cannot be {doing}", self.path.display());
        Error::new(ErrorKind::Storage, Phase::Stream, message).because(error)
    }

    /// The file itself, should the path be a link; `None`: not even its folder is there.
    async fn place(&self) -> Result<Option<PathBuf>> {
        match tokio::fs::canonicalize(&self.path).await {
            Ok(path) => return Ok(Some(path)),
            Err(e) if e.kind() == Io::NotFound => {}
            Err(e) => return Err(self.failed("found", &e)),
        }
        let Some(name) = self.path.file_name() else { return Ok(None) };
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        match tokio::fs::canonicalize(folder).await {
            Ok(folder) => Ok(Some(folder.join(name))),
            Err(e) if e.kind() == Io::NotFound => Ok(None),
            Err(e) => Err(self.failed("found", &e)),
        }
    }

    /// What the names of this task's renamed files begin with.
    fn beginning(&self, place: &Path) -> String {
        let name = place.file_name().unwrap_or_default().to_string_lossy();
        format!("{name}.{}.", self.owner)
    }

    async fn find_left_behind(&self, place: &Path) -> Result<VecDeque<PathBuf>> {
        let beginning = self.beginning(place);
        let mut found = Vec::new();
        let Some(folder) = place.parent() else { return Ok(VecDeque::new()) };
        let mut entries = tokio::fs::read_dir(folder).await.map_err(|e| self.failed("looked for", &e))?;
        while let Some(entry) = entries.next_entry().await.map_err(|e| self.failed("looked for", &e))? {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with(&beginning) && name.ends_with(TAKEN) {
                info!(file = %entry.path().display(), "signals that an earlier run has left are read first");
                found.push(entry.path());
            }
        }
        // Their names begin with the time.
        found.sort();
        Ok(found.into())
    }

    /// Renames the file, if there is anything in it.
    async fn rename(&self, place: &Path) -> Result<Option<PathBuf>> {
        let about = match tokio::fs::metadata(place).await {
            Ok(about) => about,
            Err(e) if e.kind() == Io::NotFound => return Ok(None),
            Err(e) => return Err(self.failed("read", &e)),
        };
        if about.len() == 0 {
            return Ok(None);
        }
        if about.len() > MOST_BYTES {
            let message = format!("the signal file {} has {} bytes and is not read", self.path.display(), about.len());
            return Err(Error::new(ErrorKind::Storage, Phase::Stream, message)
                .advise("put one signal per line into it, and no more than a megabyte at once"));
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        let unique = uuid::Uuid::new_v4().simple();
        let taken = place.with_file_name(format!("{}{now:015}-{unique}{TAKEN}", self.beginning(place)));
        match tokio::fs::rename(place, &taken).await {
            Ok(()) => {}
            // Another task was faster.
            Err(e) if e.kind() == Io::NotFound => return Ok(None),
            Err(e) => {
                return Err(self.failed("renamed, and is not read", &e).advise(
                    "let the node write to the folder of the file; a file that is mounted by itself cannot be used",
                ));
            }
        }
        // Who writes signals need not be allowed to create files there.
        let empty = tokio::fs::OpenOptions::new().write(true).create_new(true).open(place).await;
        let allowed = match empty {
            Ok(file) => file.set_permissions(about.permissions()).await,
            Err(e) if e.kind() == Io::AlreadyExists => Ok(()),
            Err(e) => Err(e),
        };
        if let Err(error) = allowed {
            warn!(file = %self.path.display(), %error, "the signal file cannot be created again");
        }
        Ok(Some(taken))
    }

    /// What was added to the renamed file since the last look.
    async fn read(&mut self) -> Result<Vec<Received>> {
        let Some(mut taken) = self.taken.take() else { return Ok(Vec::new()) };
        let reading = async {
            let mut file = tokio::fs::File::open(&taken.path).await?;
            file.seek(std::io::SeekFrom::Start(taken.read)).await?;
            let mut text = Vec::new();
            file.take(MOST_BYTES).read_to_end(&mut text).await?;
            std::io::Result::Ok(text)
        };
        let mut text = match reading.await {
            Ok(text) => text,
            Err(e) if e.kind() == Io::NotFound => return Ok(Vec::new()),
            Err(e) => {
                self.taken = Some(taken);
                return Err(self.failed("read", &e));
            }
        };
        // The rest of a line comes with the next part, or from a writer that is not done with it.
        let whole = memchr::memrchr(b'\n', &text).map_or(0, |end| end + 1);
        let is_part = text.len() as u64 == MOST_BYTES;
        let to_its_end = match is_part {
            true => whole == 0,
            false => taken.rests(taken.read + text.len() as u64, self.grace),
        };
        if !to_its_end {
            text.truncate(whole);
        }
        let signals = parse(&self.path, &text, &mut taken);
        taken.read += text.len() as u64;
        self.taken = Some(taken);
        Ok(signals)
    }
}

#[async_trait]
impl SignalChannel for FileSignals {
    fn name(&self) -> &'static str {
        "file"
    }

    async fn poll(&mut self) -> Result<Vec<Received>> {
        if self.taken.is_none() {
            let Some(place) = self.place().await? else { return Ok(Vec::new()) };
            if self.left_behind.is_none() {
                self.left_behind = Some(self.find_left_behind(&place).await?);
            }
            let path = match self.left_behind.as_mut().and_then(VecDeque::pop_front) {
                Some(path) => Some(path),
                None => self.rename(&place).await?,
            };
            self.taken = path.map(|path| {
                let series = path.file_name().unwrap_or_default().to_string_lossy().into();
                let now = Instant::now();
                Taken { path, series, read: 0, lines: 0, since: now, length: (0, now) }
            });
        }
        self.read().await
    }

    async fn settle(&mut self, waiting: Option<&Mark>) -> Result<bool> {
        let Some(taken) = self.taken.as_ref().filter(|_| waiting.is_none()) else { return Ok(waiting.is_none()) };
        let removed = match tokio::fs::metadata(&taken.path).await {
            // Whoever had it open before may have added something.
            Ok(about) if about.len() > taken.read || taken.since.elapsed() < self.grace => return Ok(false),
            Ok(_) => tokio::fs::remove_file(&taken.path).await,
            Err(e) => Err(e),
        };
        match removed {
            Err(e) if e.kind() != Io::NotFound => Err(self.failed("removed when its signals were followed", &e)),
            _ => {
                self.taken = None;
                Ok(true)
            }
        }
    }
}

fn parse(path: &Path, text: &[u8], taken: &mut Taken) -> Vec<Received> {
    let mut signals = Vec::new();
    // Nothing has no line.
    if text.is_empty() {
        return signals;
    }
    for line in text.strip_suffix(b"\n").unwrap_or(text).split(|b| *b == b'\n').map(<[u8]>::trim_ascii) {
        taken.lines += 1;
        if line.is_empty() {
            continue;
        }
        match Signal::from_json(line) {
            Ok(signal) => {
                let mark = Mark { channel: "file", series: taken.series.clone(), number: taken.lines, time_ms: 0 };
                signals.push(Received { signal: Some(signal), mark });
            }
            Err(why) => warn!(file = %path.display(), line = taken.lines, why, "a line of the signal file is ignored"),
        }
    }
    signals
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::io::Write;

    use super::*;

    fn line(id: impl std::fmt::Display) -> String {
        format!("{{\"id\":\"{id}\",\"type\":\"log\"}}\n")
    }

    /// One that lets renamed files go at once.
    fn quick(path: &Path, owner: &str) -> FileSignals {
        FileSignals { grace: Duration::ZERO, ..FileSignals::new(path, owner) }
    }

    async fn ids(channel: &mut FileSignals) -> Vec<String> {
        channel.poll().await.unwrap().into_iter().filter_map(|r| r.signal).map(|signal| signal.id).collect()
    }

    fn renamed(folder: &Path) -> usize {
        std::fs::read_dir(folder)
            .unwrap()
            .filter(|e| e.as_ref().unwrap().path().to_string_lossy().ends_with(TAKEN))
            .count()
    }

    #[tokio::test]
    async fn lines_are_taken_out_of_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("signals.txt");
        let mut channel = quick(&path, "shop-0");
        assert!(ids(&mut channel).await.is_empty(), "no file yet");
        std::fs::write(&path, "{\"id\":\"1\",\"type\":\"log\"}\nnonsense\n\n{\"id\":\"2\",\"type\":\"log\"}").unwrap();
        let received = channel.poll().await.unwrap();
        let told: Vec<_> = received.iter().map(|r| (&*r.signal.as_ref().unwrap().id, r.mark.number)).collect();
        assert_eq!(told, [("1", 1), ("2", 4)]);
        assert_eq!(std::fs::read(&path).unwrap(), b"");
        assert!(ids(&mut channel).await.is_empty());
        channel.settle(None).await.unwrap();
        assert_eq!(renamed(dir.path()), 0);
        std::fs::write(&path, vec![b'x'; MOST_BYTES as usize + 1]).unwrap();
        assert!(channel.poll().await.unwrap_err().message.contains("is not read"));
        assert!(ids(&mut quick(&dir.path().join("a").join("b"), "shop-0")).await.is_empty());
    }

    /// Whoever dies before the confirmation leaves the signals to the next one, and to no other task.
    #[tokio::test]
    async fn signals_that_nobody_has_confirmed_are_read_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("signals.txt");
        std::fs::write(&path, line(1) + &line(2)).unwrap();
        let mut channel = quick(&path, "shop-0");
        let received = channel.poll().await.unwrap();
        channel.settle(Some(&received[1].mark)).await.unwrap();
        drop(channel);
        std::fs::write(&path, line(3)).unwrap();
        let mut other = quick(&path, "shop-1");
        assert_eq!(ids(&mut other).await, ["3"]);
        std::fs::write(&path, line(4)).unwrap();
        let mut next = quick(&path, "shop-0");
        assert_eq!(next.poll().await.unwrap(), received, "with the same marks");
        assert!(ids(&mut next).await.is_empty(), "one file after the other");
        next.settle(None).await.unwrap();
        assert_eq!(ids(&mut next).await, ["4"]);
    }

    /// Whoever had the file open may be in the middle of a line.
    #[tokio::test]
    async fn half_a_line_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("signals.txt");
        let mut channel = FileSignals { grace: Duration::from_secs(3_600), ..FileSignals::new(&path, "shop-0") };
        let mut writer = std::fs::OpenOptions::new().append(true).create(true).open(&path).unwrap();
        let (both, second) = (line(1) + &line(2), line(2));
        writer.write_all(&both.as_bytes()[..both.len() - second.len() / 2]).unwrap();
        assert_eq!(ids(&mut channel).await, ["1"]);
        assert!(ids(&mut channel).await.is_empty());
        writer.write_all(&both.as_bytes()[both.len() - second.len() / 2..]).unwrap();
        let second = channel.poll().await.unwrap();
        assert_eq!((&*second[0].signal.as_ref().unwrap().id, second[0].mark.number), ("2", 2));
        writer.write_all(line(3).trim_end().as_bytes()).unwrap();
        assert!(ids(&mut channel).await.is_empty());
        channel.grace = Duration::ZERO;
        assert_eq!(ids(&mut channel).await, ["3"]);
    }

    /// A line is in the file that is read or in the one that is there then, whenever it is written.
    #[tokio::test]
    async fn lines_that_are_added_meanwhile_are_not_lost() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("signals.txt");
        let mut channel = quick(&path, "shop-0");
        let append = || std::fs::OpenOptions::new().append(true).create(true).open(&path).unwrap();
        let mut kept_open = append();
        kept_open.write_all(line(1).as_bytes()).unwrap();
        assert_eq!(ids(&mut channel).await, ["1"]);
        kept_open.write_all(line(2).as_bytes()).unwrap();
        append().write_all(line(3).as_bytes()).unwrap();
        channel.settle(None).await.unwrap();
        assert_eq!(ids(&mut channel).await, ["2"]);
        channel.settle(None).await.unwrap();
        assert_eq!(ids(&mut channel).await, ["3"]);

        // One who writes at any time, but not into a file that is gone.
        const LINES: usize = 2_000;
        let (writer_path, gone) = (path.clone(), Arc::new(tokio::sync::Mutex::new(())));
        let goes = gone.clone();
        let writer = std::thread::spawn(move || {
            for n in 0..LINES {
                let _stays = goes.blocking_lock();
                let mut file = std::fs::OpenOptions::new().append(true).create(true).open(&writer_path).unwrap();
                file.write_all(line(format!("n{n}")).as_bytes()).unwrap();
            }
        });
        let mut seen = Vec::new();
        loop {
            let finished = writer.is_finished();
            {
                let _goes = gone.lock().await;
                channel.settle(None).await.unwrap();
            }
            let new = ids(&mut channel).await;
            let quiet = new.is_empty() && renamed(dir.path()) == 0;
            seen.extend(new);
            if finished && quiet {
                break;
            }
        }
        writer.join().unwrap();
        assert_eq!(seen.len(), LINES);
        assert!(seen.iter().enumerate().all(|(n, id)| *id == format!("n{n}")));
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn the_new_file_takes_the_place_and_the_rights_of_the_old_one() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("real")).unwrap();
        let (path, link) = (dir.path().join("real/s.txt"), dir.path().join("link.txt"));
        std::fs::write(&path, line(1)).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert_eq!(ids(&mut quick(&link, "shop-0")).await, ["1"]);
        assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
        let about = std::fs::metadata(&path).unwrap();
        assert_eq!((about.len(), about.permissions().mode() & 0o777), (0, 0o666));
    }
}

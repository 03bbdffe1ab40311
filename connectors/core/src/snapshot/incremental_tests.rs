#![allow(clippy::unwrap_used)]
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use async_trait::async_trait;
use parking_lot::Mutex;
use proptest::prelude::*;
use serde_json::Value as Json;
use tokio::sync::mpsc;

use super::super::state::tests::Plain;
use super::super::{ChunkReader, Status, Strategy as Watermarks, read_chunk};
use super::*;
use crate::error::{Error, ErrorKind, Phase, Result};
use crate::signal::SnapshotKind;

const LIMITS: Limits = Limits { rows: 3, retries: 0, pause: Duration::ZERO };

fn request(collections: &[&str]) -> SnapshotRequest {
    SnapshotRequest {
        kind: SnapshotKind::Incremental,
        collections: collections.iter().map(|c| (*c).into()).collect(),
        conditions: Vec::new(),
        surrogate_key: None,
    }
}

/// A source with collections of numbered rows and a log of everything that was written.
#[derive(Default)]
struct Db {
    tables: BTreeMap<String, BTreeMap<u8, u32>>,
    log: Vec<Entry>,
    refuses: Option<&'static str>,
}

#[derive(Debug, Clone, PartialEq)]
enum Entry {
    Open(String),
    Close(String),
    /// Collection, key, value; no value: deleted.
    Change(String, u8, Option<u32>),
}

impl Db {
    fn write(&mut self, table: &str, key: u8, value: Option<u32>) {
        let rows = self.tables.entry(table.into()).or_default();
        match value {
            Some(value) => drop(rows.insert(key, value)),
            None => drop(rows.remove(&key)),
        }
        self.log.push(Entry::Change(table.into(), key, value));
    }
}

#[derive(Clone, Default)]
struct Source(Arc<Mutex<Db>>);

/// Lets whoever polls by hand put something in between.
async fn turn() {
    let mut first = true;
    std::future::poll_fn(|_| if std::mem::take(&mut first) { Poll::Pending } else { Poll::Ready(()) }).await;
}

fn place(key: u8) -> Bytes {
    Bytes::from(format!("{key:03}"))
}

#[async_trait]
impl ChunkReader for Source {
    type Row = (u8, u32);

    async fn expand(&self, pattern: &str) -> Result<Vec<String>> {
        turn().await;
        let names = self.0.lock().tables.keys().filter(|name| super::super::means(pattern, name)).cloned().collect();
        Ok(names)
    }

    async fn open_window(&self, chunk: &str) -> Result<()> {
        turn().await;
        let mut db = self.0.lock();
        if let Some(why) = db.refuses {
            return Err(Error::new(ErrorKind::Permission, Phase::Snapshot, why));
        }
        db.log.push(Entry::Open(format!("{chunk}-open")));
        Ok(())
    }

    async fn close_window(&self, chunk: &str) -> Result<()> {
        turn().await;
        self.0.lock().log.push(Entry::Close(format!("{chunk}-close")));
        Ok(())
    }

    async fn maximum(&self, collection: &Queued) -> Result<Option<Bytes>> {
        turn().await;
        let db = self.0.lock();
        Ok(db.tables.get(&collection.id).and_then(|rows| rows.keys().next_back()).map(|key| place(*key)))
    }

    async fn rows(
        &self,
        collection: &Queued,
        after: Option<&Bytes>,
        maximum: &Bytes,
        limit: usize,
    ) -> Result<Vec<ChunkRow<(u8, u32)>>> {
        turn().await;
        let db = self.0.lock();
        let Some(rows) = db.tables.get(&collection.id) else { return Ok(Vec::new()) };
        let within = |key: u8| after.is_none_or(|after| place(key) > *after) && place(key) <= *maximum;
        let rows = rows.iter().filter(|(key, _)| within(**key)).take(limit);
        Ok(rows.map(|(k, v)| ChunkRow { place: place(*k), key: place(*k), row: (*k, *v) }).collect())
    }
}

type Numbers = Chunk<(u8, u32)>;
type Worker = Pin<Box<dyn Future<Output = ()>>>;

/// A reader over the log of a source, and what its consumer knows.
struct Run {
    source: Source,
    snapshot: Incremental<(u8, u32)>,
    meter: Arc<IncrementalMeter>,
    worker: Option<Worker>,
    chunks: (mpsc::Sender<Numbers>, mpsc::Receiver<Numbers>),
    /// Entries of the log that were read.
    at: usize,
    seen: BTreeMap<(String, u8), u32>,
    reads: usize,
    notices: Vec<&'static str>,
}

impl Run {
    fn new(source: Source) -> Self {
        let meter = Arc::new(IncrementalMeter::default());
        Self {
            source,
            snapshot: Incremental::new(Arc::new(Plain), LIMITS, meter.clone()),
            meter,
            worker: None,
            chunks: mpsc::channel(4),
            at: 0,
            seen: BTreeMap::new(),
            reads: 0,
            notices: Vec::new(),
        }
    }

    fn tell(&mut self, notices: Vec<Notice>) {
        self.notices.extend(notices.iter().map(Notice::kind));
    }

    fn execute(&mut self, collections: &[&str]) {
        let notices = self.snapshot.execute(&request(collections), "s1");
        self.tell(notices);
    }

    /// One step of whoever reads chunks.
    fn work(&mut self) {
        if self.worker.is_none()
            && let Some(order) = self.snapshot.order()
        {
            let (source, out) = (self.source.clone(), self.chunks.0.clone());
            self.worker = Some(Box::pin(async move { read_chunk(&source, order, out).await }));
        }
        if let Some(worker) = &mut self.worker
            && worker.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready()
        {
            self.worker = None;
        }
    }

    fn arrivals(&mut self) {
        while let Ok(chunk) = self.chunks.1.try_recv() {
            let notices = self.snapshot.arrived(chunk);
            self.tell(notices);
        }
    }

    /// Reads one entry of the log; `false`: there is none.
    fn read(&mut self) -> bool {
        let Some(entry) = self.source.0.lock().log.get(self.at).cloned() else { return false };
        self.at += 1;
        match entry {
            Entry::Open(id) => self.snapshot.opened(&id),
            Entry::Close(id) => {
                if self.snapshot.is_end(&id, Watermarks::InsertInsert) {
                    self.arrivals();
                    let closed = self.snapshot.close().unwrap();
                    self.reads += closed.rows.len();
                    for (key, value) in closed.rows {
                        self.seen.insert((closed.collection.clone().unwrap(), key), value);
                    }
                    self.tell(closed.notices);
                }
            }
            Entry::Change(table, key, value) => {
                self.snapshot.touch(&table, &place(key));
                match value {
                    Some(value) => self.seen.insert((table, key), value),
                    None => self.seen.remove(&(table, key)),
                };
            }
        }
        true
    }

    fn finish(&mut self) {
        for _ in 0..100_000 {
            self.work();
            self.arrivals();
            if !self.read() && !self.snapshot.is_running() && self.worker.is_none() {
                return;
            }
        }
        unreachable!("the snapshot does not end");
    }

    fn truth(&self) -> BTreeMap<(String, u8), u32> {
        let db = self.source.0.lock();
        let rows = |(table, rows): (&String, &BTreeMap<u8, u32>)| {
            rows.iter().map(|(k, v)| ((table.clone(), *k), *v)).collect::<Vec<_>>()
        };
        db.tables.iter().flat_map(rows).collect()
    }
}

/// Rows that were there before the log begins.
fn filled(tables: &[(&str, u8)]) -> Source {
    let source = Source::default();
    for (name, rows) in tables {
        let rows = (0..*rows).map(|key| (key, u32::from(key))).collect();
        source.0.lock().tables.insert((*name).into(), rows);
    }
    source
}

#[test]
fn all_rows_of_all_collections_once_and_what_is_told() {
    let mut run = Run::new(filled(&[("d.a", 7), ("d.b", 0), ("d.c", 3)]));
    run.execute(&["d\\.[ab]", "d.c", "d.none"]);
    run.finish();
    assert_eq!((run.seen.clone(), run.reads), (run.truth(), 10));
    assert_eq!(
        run.notices,
        [
            "STARTED",
            "IN_PROGRESS",
            "IN_PROGRESS",
            "IN_PROGRESS",
            "TABLE_SCAN_COMPLETED",
            "TABLE_SCAN_COMPLETED",
            "IN_PROGRESS",
            "TABLE_SCAN_COMPLETED",
            "COMPLETED"
        ]
    );
    // Chunks of 3: 7 rows are three of them, 3 rows are one, and one finds the end.
    let windows = run.source.0.lock().log.iter().filter(|e| matches!(e, Entry::Open(_))).count();
    assert_eq!(windows, 5);
    assert!(run.snapshot.state().is_none());
}

#[test]
fn numbers_of_it_follow_chunks_pauses_and_ends() {
    let mut run = Run::new(filled(&[("d.a", 7), ("d.b", 0), ("d.c", 3)]));
    let meter = run.meter.clone();
    assert_eq!(meter.view(), None);
    let of = |meter: &IncrementalMeter| {
        let view = meter.view().unwrap();
        let tables: Vec<_> = view.tables.iter().map(|(name, s)| (name.clone(), s.rows, s.chunks)).collect();
        (view.standing, view.waiting, view.ended, tables)
    };
    let table = |name: &str, rows, chunks| (name.to_owned(), rows, chunks);
    run.execute(&["d\\.[ab]", "d.c"]);
    assert_eq!(of(&meter), (Standing::Running, 2, 0, vec![]));
    while run.reads == 0 {
        run.work();
        run.read();
    }
    assert_eq!(of(&meter), (Standing::Running, 3, 0, vec![table("d.a", 3, 1)]));
    run.snapshot.pause();
    let paused = meter.view().unwrap().paused;
    assert_eq!(of(&meter).0, Standing::Paused);
    while meter.view().unwrap().paused == paused {
        std::hint::spin_loop();
    }
    // A restart of the reader ends the pause, and nothing is counted anew.
    let stored = run.snapshot.state().unwrap();
    run.snapshot.restore(&stored);
    assert_eq!(of(&meter), (Standing::Running, 3, 0, vec![table("d.a", 3, 1)]));
    let paused = meter.view().unwrap().paused;
    assert!(paused > Duration::ZERO);
    run.finish();
    let tables = vec![table("d.a", 7, 3), table("d.c", 3, 1)];
    assert_eq!(of(&meter), (Standing::Completed, 0, 3, tables));
    let done = meter.view().unwrap();
    assert_eq!((done.paused, done.duration), (paused, meter.view().unwrap().duration), "time stands still");
    run.snapshot.restore(&OffsetMap::new());
    assert_eq!(meter.view().unwrap(), done, "nothing is under way, and what was stays");

    run.execute(&["d.a", "d.c"]);
    assert_eq!(of(&meter), (Standing::Running, 2, 0, vec![]));
    run.snapshot.stop(&Stopped { collections: Some(vec!["d.c".into()]) });
    assert_eq!(of(&meter), (Standing::Running, 1, 1, vec![]));
    run.snapshot.stop(&Stopped { collections: None });
    assert_eq!(of(&meter).0, Standing::Aborted);
    run.execute(&["d.c"]);
    run.snapshot.restore(&OffsetMap::new());
    assert_eq!(of(&meter).0, Standing::Aborted, "the position that is taken up does not know of it");
}

/// What is stored with every position does not grow with what signals name.
#[test]
fn a_signal_with_too_many_names_is_refused_and_the_rest_goes_on() {
    let mut run = Run::new(filled(&[("d.a", 2)]));
    run.execute(&["d.a"]);
    let names: Vec<String> = (0..5_000).map(|n| format!("d.collection{n:05}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let before = run.snapshot.state();
    assert!(run.snapshot.execute(&request(&names), "s2").is_empty());
    assert_eq!(run.snapshot.state(), before);
    // Some hundred at once, and more of them later.
    let some = &names[..200];
    assert!(run.snapshot.execute(&request(some), "s3").is_empty());
    assert_ne!(run.snapshot.state(), before);
    let stop = Stopped { collections: Some(names.iter().map(|n| (*n).to_owned()).collect()) };
    assert!(run.snapshot.stop(&stop).is_empty());
    run.finish();
    assert_eq!(run.seen, run.truth());
    assert_eq!(run.notices.last(), Some(&"COMPLETED"));
    assert!(run.snapshot.execute(&request(&names), "s4").is_empty(), "also where nothing waits");
    assert!(!run.snapshot.is_running());
}

#[test]
fn a_change_in_the_window_wins() {
    let mut run = Run::new(filled(&[("d.a", 3)]));
    run.execute(&["d.a"]);
    // Watermark, maximum, rows: then a change before the second watermark.
    while run.source.0.lock().log.is_empty() {
        run.work();
    }
    for _ in 0..2 {
        run.work();
    }
    run.source.0.lock().write("d.a", 1, Some(100));
    run.source.0.lock().write("d.a", 2, None);
    run.finish();
    assert_eq!(run.reads, 1);
    assert_eq!(run.seen, run.truth());
}

#[test]
fn pause_stop_and_a_second_signal() {
    let mut run = Run::new(filled(&[("d.a", 9), ("d.b", 3), ("d.c", 2)]));
    run.execute(&["d.a"]);
    run.execute(&["d.a", "d.b", "d.c"]);
    while run.reads == 0 {
        run.work();
        run.read();
    }
    let notices = run.snapshot.pause();
    run.tell(notices);
    for _ in 0..50 {
        run.work();
        run.read();
    }
    assert_eq!(run.reads, 3);
    let notices = run.snapshot.resume();
    run.tell(notices);
    let one = Stopped { collections: Some(vec!["d\\.b".into()]) };
    let told = |notice: &Notice| format!("{notice:?}");
    let stopped = run.snapshot.stop(&one);
    assert_eq!((stopped.len(), stopped[0].kind()), (1, "ABORTED"));
    assert!(told(&stopped[0]).contains(r#"("data_collections", "d.b")"#), "{stopped:?}");
    run.finish();
    assert_eq!(run.reads, 11);
    assert_eq!(run.notices[..5], ["STARTED", "IN_PROGRESS", "PAUSED", "RESUMED", "IN_PROGRESS"]);

    run.execute(&["d.a"]);
    while run.reads == 11 {
        run.work();
        run.read();
    }
    let notices = run.snapshot.stop(&Stopped { collections: None });
    assert_eq!(notices.iter().map(Notice::kind).collect::<Vec<_>>(), ["ABORTED"]);
    assert!(!told(&notices[0]).contains("data_collections"));
    run.finish();
    assert_eq!(run.reads, 14);

    // The last one, while it is being read.
    run.execute(&["d.a"]);
    while run.reads == 14 {
        run.work();
        run.read();
    }
    let notices = run.snapshot.stop(&Stopped { collections: Some(vec!["d.a".into()]) });
    assert_eq!(notices.iter().map(Notice::kind).collect::<Vec<_>>(), ["COMPLETED", "ABORTED"]);
    assert!(told(&notices[0]).contains(r#"id: Some("#) && told(&notices[1]).contains("id: None"), "{notices:?}");
    assert!(!told(&notices[0]).contains("data_collections"));
}

/// A collection that is taken out is not read, whether its pattern is expanded yet, is being expanded, or
/// was stored before that.
#[test]
fn a_collection_of_a_pattern_is_taken_out_at_any_time() {
    for (turns, restart) in [(0, false), (0, true), (2, false), (4, false), (4, true), (8, false)] {
        let mut run = Run::new(filled(&[("d.a", 7), ("d.b", 3), ("d.c", 2)]));
        run.execute(&["d\\..*"]);
        for _ in 0..turns {
            run.work();
        }
        let one = Stopped { collections: Some(vec!["D\\.b".into()]) };
        assert_eq!(run.snapshot.stop(&one).iter().map(Notice::kind).collect::<Vec<_>>(), ["ABORTED"]);
        if restart {
            let stored = run.snapshot.state().unwrap();
            run.worker = None;
            run.chunks = mpsc::channel(4);
            run.snapshot = Incremental::new(Arc::new(Plain), LIMITS, Arc::default());
            run.snapshot.restore(&stored);
        }
        run.finish();
        assert_eq!(run.reads, 9, "after {turns} turns, restart: {restart}");
        assert!(run.seen.keys().all(|(table, _)| table != "d.b"));
    }
}

/// However many collections a pattern means, what is stored of them is bounded, and a restart at any moment
/// leaves none out and repeats little.
#[test]
fn a_pattern_with_many_collections_over_restarts() {
    let names: Vec<String> = (0..200).map(|n| format!("d.c{n:03}")).collect();
    let tables: Vec<(&str, u8)> = names.iter().map(|name| (&**name, 2)).collect();
    let mut run = Run::new(filled(&tables));
    run.execute(&["d\\..*"]);
    let mut longest = 0;
    for turn in 0.. {
        for _ in 0..20 {
            run.work();
            run.arrivals();
            run.read();
        }
        let Some(state) = run.snapshot.state() else { break };
        longest = longest.max(Json::Object(state.clone()).to_string().len());
        if turn % 3 == 0 {
            run.worker = None;
            run.chunks = mpsc::channel(4);
            run.snapshot = Incremental::new(Arc::new(Plain), LIMITS, Arc::default());
            run.snapshot.restore(&state);
        }
    }
    assert_eq!(run.seen, run.truth());
    assert_eq!(run.reads, 400);
    assert!(longest < 4_000, "{longest} bytes");
}

/// A signal may name each of hundreds of collections, each with its condition.
#[test]
fn conditions_are_kept_only_where_they_can_apply() {
    let names: Vec<String> = (0..500).map(|n| format!("d.c{n}")).collect();
    let mut snapshot = Incremental::<()>::new(Arc::new(Plain), LIMITS, Arc::default());
    let condition = |name: &String| Condition { collection: name.clone(), filter: "{}".into() };
    let conditions = names.iter().map(condition).chain([condition(&"d\\.c1.".into())]).collect();
    let request = SnapshotRequest { conditions, ..request(&names.iter().map(|n| &**n).collect::<Vec<_>>()) };
    snapshot.execute(&request, "s");
    let order = snapshot.order().unwrap();
    let kept = |at: usize| order.queue[at].pattern.as_ref().unwrap().conditions.len();
    assert_eq!((order.queue.len(), kept(0), kept(15)), (500, 2, 2), "its own, and the expression");
}

#[test]
fn names_and_expressions_mean_whole_names() {
    for (pattern, name, meant) in [
        ("d.a", "d.a", true),
        ("D.A", "d.a", true),
        ("d.a", "dxa", true),
        ("d.a", "d.ab", false),
        ("d.a_1-x", "d.a_1-x", true),
        ("d\\..*", "d.a", true),
        ("d\\.a", "dxa", false),
        ("d.(", "d.(", true),
        ("d.ä", "d.Ä", true),
    ] {
        assert_eq!(means(pattern, name), meant, "{pattern} {name}");
    }
}

#[test]
fn a_source_that_takes_no_watermarks_ends_the_snapshot_only() {
    let mut run = Run::new(filled(&[("d.a", 3)]));
    run.source.0.lock().refuses = Some("not allowed");
    run.execute(&["d.a"]);
    run.finish();
    assert_eq!(run.notices, ["STARTED", "ABORTED"]);
    run.source.0.lock().refuses = None;
    run.execute(&["d.a"]);
    run.finish();
    assert_eq!(run.reads, 3);
}

#[test]
fn t_82_watermarks_of_others_are_none_of_ours() {
    let mut run = Run::new(filled(&[("d.a", 3)]));
    run.execute(&["d.a"]);
    run.work();
    run.snapshot.opened("0c5a-open");
    assert!(!run.snapshot.is_open() && !run.snapshot.is_end("0c5a-close", Watermarks::InsertInsert));
    assert_eq!(Status::Refused.name(), "UNKNOWN_SCHEMA");
}

#[derive(Debug, Clone)]
enum Do {
    Write(u8, u8, bool),
    Work,
    Read,
    /// Goes on from what was stored.
    Restart,
}

fn doing() -> impl Strategy<Value = Do> {
    prop_oneof![
        4 => (0_u8..2, 0_u8..14, any::<bool>()).prop_map(|(table, key, set)| Do::Write(table, key, set)),
        6 => Just(Do::Work),
        6 => Just(Do::Read),
        1 => Just(Do::Restart),
    ]
}

proptest! {
    /// However writers, chunks, the log and restarts fall together: in the end a consumer has the rows
    /// that are there.
    #[test]
    fn nothing_is_missed_and_nothing_stale_stays(steps in prop::collection::vec(doing(), 0..200)) {
        let mut run = Run::new(filled(&[("d.0", 10), ("d.1", 10)]));
        run.execute(&["d\\..*"]);
        let mut stored = (0, run.snapshot.state());
        for (n, step) in steps.into_iter().enumerate() {
            match step {
                Do::Write(table, key, set) => {
                    let value = set.then_some(1_000 + n as u32);
                    run.source.0.lock().write(&format!("d.{table}"), key, value);
                }
                Do::Work => run.work(),
                Do::Read => {
                    run.arrivals();
                    if run.read() {
                        stored = (run.at, run.snapshot.state());
                    }
                }
                Do::Restart => {
                    // The consumer keeps what it has; the rest begins at what was stored.
                    run.worker = None;
                    run.chunks = mpsc::channel(4);
                    run.snapshot = Incremental::new(Arc::new(Plain), LIMITS, Arc::default());
                    run.snapshot.restore(&stored.1.clone().unwrap_or_default());
                    run.at = stored.0;
                }
            }
        }
        run.finish();
        prop_assert_eq!(&run.seen, &run.truth());
        prop_assert!(run.notices.ends_with(&["COMPLETED"]));
    }
}

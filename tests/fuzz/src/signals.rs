//! Signals, and incremental snapshots that stored offsets hold.
//!
//! Promised: no panic, whatever a signal or an offset says, in whatever order things happen. The state of a
//! snapshot that is under way reads back to itself, also as a part of a position. A request for a snapshot
//! names at least one collection. A closed window gives out at most the rows of its chunk, and none whose
//! key has changed in it.
//!
//! The input is a row of steps, one per line; the first byte says what a line is: `o` an offset, `d` the
//! program of a document of the signal collection, `c` what becomes of the chunk under way, else a signal.

use std::sync::Arc;
use std::time::Duration;

use bson::rawdoc;
use bytes::Bytes;
use thalweg_core::notification::Notice;
use thalweg_core::position::OffsetMap;
use thalweg_core::signal::{Action, Signal, SnapshotRequest};
use thalweg_core::snapshot::{
    Chunk, ChunkRow, Incremental, KeyText, Limits, Queued, Status, Step, Strategy, is_state, means,
};
use thalweg_mongodb::filter::SnapshotSelection;
use thalweg_mongodb::namespace::Namespace;
use thalweg_mongodb::position::MongoPosition;
use thalweg_mongodb::{PlaceText, signals};

use super::program::Program;

/// Rows are the number of their key.
type Snapshot = Incremental<u8>;

/// One input.
pub fn run(data: &[u8]) {
    let mut snapshot = fresh();
    for line in data.split(|b| *b == b'\n').take(64) {
        match line.split_first() {
            Some((b'o', offset)) => {
                if let Ok(offset) = serde_json::from_slice::<OffsetMap>(offset) {
                    snapshot.restore(&offset);
                }
            }
            Some((b'd', document)) => {
                let _ = signals::parse(document);
                if let Ok(signal) = signals::parse(&Program(document).document(0)) {
                    follow(&mut snapshot, &signal);
                }
            }
            Some((b'c', what)) => chunk(&mut snapshot, &mut Program(what)),
            _ => {
                if let Ok(signal) = Signal::from_json(line) {
                    follow(&mut snapshot, &signal);
                }
            }
        }
        look(&snapshot);
    }
}

fn fresh() -> Snapshot {
    Incremental::new(
        Arc::new(PlaceText),
        Limits { rows: 4, retries: 1, pause: Duration::from_millis(1) },
        Arc::default(),
    )
}

fn look(snapshot: &Snapshot) {
    let Some(state) = snapshot.state() else { return };
    assert!(snapshot.is_running());
    assert!(state.keys().all(|member| is_state(member)));
    let mut other = fresh();
    other.restore(&state);
    assert_eq!(other.state().as_ref(), Some(&state));
    let begun = MongoPosition::behind_batch(rawdoc! {"_data": "82"}.into_bytes().into());
    let stored = begun.beside(Some(&state)).to_offset();
    other.restore(&MongoPosition::from_offset(&stored).expect("its own offset").to_offset());
    assert_eq!(other.state().as_ref(), Some(&state));
}

fn follow(snapshot: &mut Snapshot, signal: &Signal) {
    let running = snapshot.is_running();
    match Action::of(signal) {
        Ok(Action::ExecuteSnapshot(request)) => {
            requested(&request);
            snapshot.execute(&request, &signal.id);
            assert!(snapshot.is_running());
        }
        Ok(Action::StopSnapshot(stopped)) => {
            let notices = snapshot.stop(&stopped);
            assert_eq!(notices.last().map(Notice::kind), running.then_some("ABORTED"));
            assert!(notices.len() < 2 || !snapshot.is_running());
        }
        Ok(Action::PauseSnapshot) => {
            snapshot.pause();
            assert!(snapshot.order().is_none());
        }
        Ok(Action::ResumeSnapshot) => drop(snapshot.resume()),
        Ok(Action::WindowOpen | Action::WindowClose | Action::Log(_)) | Err(_) => {}
    }
}

fn requested(request: &SnapshotRequest) {
    assert!(!request.collections.is_empty());
    let orders = Namespace::new("shop", "orders");
    if let Ok(selection) = SnapshotSelection::asked(request) {
        let _ = (selection.selects(&orders), selection.condition(&orders));
    }
    for condition in &request.conditions {
        let _ = means(&condition.collection, "shop.orders");
    }
}

/// The chunk that is due: its window, changes in it, and what its reader says.
fn chunk(snapshot: &mut Snapshot, what: &mut Program<'_>) {
    let Some(order) = snapshot.order() else { return };
    let marks = what.byte();
    for key in [&order.after, &order.maximum].into_iter().flatten() {
        let text = PlaceText.write(key);
        assert_eq!(PlaceText.read(&text).as_ref(), Some(key));
        let _ = PlaceText.shown(key);
    }
    if marks & 1 != 0 {
        snapshot.opened(&format!("{}-open", order.id));
    }
    let key = |n: u8| Bytes::copy_from_slice(&[n]);
    let first = order.queue[0].id.clone();
    let before = what.byte() & 7;
    if marks & 2 != 0 {
        snapshot.touch(&first, &key(before));
    }
    let count = usize::from(what.byte() & 3);
    // Keys are unique, as those of a collection.
    let mut numbers: Vec<u8> = what.bytes(count).iter().map(|n| n & 7).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let row = |n: u8| ChunkRow { place: rawdoc! {"_id": i32::from(n)}.into_bytes().into(), key: key(n), row: n };
    let rows: Vec<_> = numbers.into_iter().map(row).collect();
    let mut steps = Vec::new();
    if marks & 4 != 0 {
        let collections = (0..what.byte() & 3).map(|n| Queued::named(format!("shop.c{n}"))).collect();
        steps.push(Step::Expanded { pattern: first.clone(), collections });
    }
    if marks & 8 != 0 {
        let status = [Status::Succeeded, Status::Empty, Status::Refused][usize::from(marks >> 6) % 3];
        steps.push(Step::Ended { collection: first.clone(), status });
    }
    let current = if marks & 16 != 0 { first.clone() } else { format!("shop.c{}", what.byte() & 3) };
    let given = rows.len();
    let read = !rows.is_empty();
    let maximum = Bytes::from(rawdoc! {"_id": 255}.into_bytes());
    snapshot.arrived(Chunk {
        id: order.id.clone(),
        steps,
        current: read.then(|| (current.clone(), maximum)),
        rows,
        given_up: None,
    });
    let behind = what.byte() & 7;
    if marks & 32 != 0 {
        snapshot.touch(&current, &key(behind));
    }
    let strategy = if marks & 64 == 0 { Strategy::InsertInsert } else { Strategy::InsertDelete };
    let end = if marks & 64 == 0 { "close" } else { "open" };
    let opened = snapshot.is_open();
    let ends = snapshot.is_end(&format!("{}-{end}", order.id), strategy);
    let Some(closed) = snapshot.close() else { return };
    assert!(closed.rows.len() <= given);
    if ends && opened {
        assert!(marks & 32 == 0 || !closed.rows.contains(&behind));
        assert!(marks & 2 == 0 || current != first || !closed.rows.contains(&before));
    }
}

//! A disk that forgets what was not synced, and breaks when told to.

use std::io;
use std::sync::Arc;

use parking_lot::Mutex;
use redb::StorageBackend;

#[derive(Debug, Default, Clone)]
pub(super) struct Disk {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    /// What a reader sees now.
    current: Vec<u8>,
    /// What was there at the last sync.
    synced: Vec<u8>,
    unsynced: Vec<Change>,
    operations: usize,
    syncs: usize,
    breaks_at: Option<usize>,
    error: Option<io::ErrorKind>,
}

#[derive(Debug, Clone)]
enum Change {
    Length(usize),
    Bytes(usize, Vec<u8>),
}

impl Change {
    fn apply(&self, to: &mut Vec<u8>) {
        match self {
            Self::Length(length) => to.resize(*length, 0),
            Self::Bytes(at, bytes) => {
                if to.len() < at + bytes.len() {
                    to.resize(at + bytes.len(), 0);
                }
                to[*at..at + bytes.len()].copy_from_slice(bytes);
            }
        }
    }
}

impl Disk {
    fn holding(bytes: Vec<u8>) -> Self {
        let state = State { current: bytes.clone(), synced: bytes, ..State::default() };
        Self { state: Arc::new(Mutex::new(state)) }
    }

    /// Every operation from the `nth` on fails.
    pub(super) fn break_at(&self, nth: usize, error: io::ErrorKind) {
        let mut state = self.state.lock();
        state.breaks_at = Some(nth);
        state.error = Some(error);
        state.operations = 0;
    }

    pub(super) fn operations(&self) -> usize {
        self.state.lock().operations
    }

    pub(super) fn syncs(&self) -> usize {
        self.state.lock().syncs
    }

    /// What is left after the power failed: everything synced, and of the rest whatever had
    /// reached the medium, as `random` decides, the last write perhaps torn.
    pub(super) fn after_power_failure(&self, mut random: u64) -> Self {
        let state = self.state.lock();
        let mut bytes = state.synced.clone();
        for change in &state.unsynced {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            match (random >> 60, change) {
                (0..=5, change) => change.apply(&mut bytes),
                (6..=8, Change::Bytes(at, data)) => {
                    let torn = data[..(random as usize >> 7) % data.len().max(1)].to_vec();
                    Change::Bytes(*at, torn).apply(&mut bytes);
                }
                _ => {}
            }
        }
        Self::holding(bytes)
    }

    fn operation(&self) -> io::Result<parking_lot::MutexGuard<'_, State>> {
        let mut state = self.state.lock();
        state.operations += 1;
        match state.breaks_at {
            Some(at) if state.operations > at => Err(state.error.unwrap_or(io::ErrorKind::Other).into()),
            _ => Ok(state),
        }
    }
}

impl StorageBackend for Disk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.state.lock().current.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let state = self.state.lock();
        let offset = offset as usize;
        let found = state.current.get(offset..offset + out.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
        out.copy_from_slice(found);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut state = self.operation()?;
        let change = Change::Length(len as usize);
        change.apply(&mut state.current);
        state.unsynced.push(change);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut state = self.operation()?;
        state.synced = state.current.clone();
        state.unsynced.clear();
        state.syncs += 1;
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut state = self.operation()?;
        let change = Change::Bytes(offset as usize, data.to_vec());
        change.apply(&mut state.current);
        state.unsynced.push(change);
        Ok(())
    }
}

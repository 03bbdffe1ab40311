//! Locks, waiting, and deadlocks.
//!
//! What is locked are whole objects; rows need no entries of their own, since a row that was changed by a
//! transaction which has not ended carries that transaction's number, and who wants to change it waits for
//! the transaction ([`Locks::wait_for`]). Two writers of one table get along; a reader waits for all of
//! them, as a scan of the real server would ("Transaction locking and row versioning guide"). It also
//! waits when it looks up another row, which is coarser than the real server.
//!
//! Who waits for whom is always known, so a circle is found when it closes. Its victim is the one with the
//! lowest `DEADLOCK_PRIORITY`, then the one with the least to undo.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::fault::{Fault, Outcome, SqlError};

/// How often a waiter looks whether its client is still there.
const LOOK: Duration = Duration::from_millis(20);

/// What is locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Target {
    /// By object id.
    Table(i32),
    /// Definitions of a database.
    Definitions(i32),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Mode {
    /// Rows that were read stay as they are; others may come (`REPEATABLE READ`).
    Keep,
    /// Nothing of what is read is of an open transaction.
    Read,
    /// Rows come; others are not touched.
    Insert,
    /// Rows change.
    Change,
    /// Nobody else does anything.
    Exclusive,
}

impl Mode {
    fn gets_along(self, other: Self) -> bool {
        use Mode::{Change, Insert, Keep, Read};
        matches!(
            (self.min(other), self.max(other)),
            (Keep, Keep | Read | Insert) | (Read, Read) | (Insert | Change, Insert | Change)
        )
    }
}

/// Who asks, and how long it waits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asker {
    pub(crate) session: u16,
    /// `None`: for ever.
    pub(crate) timeout: Option<Duration>,
    pub(crate) priority: i32,
    /// Changes that a rollback would undo.
    pub(crate) weight: usize,
}

#[derive(Debug, Default)]
struct Table {
    held: HashMap<Target, BTreeMap<u16, BTreeSet<Mode>>>,
    /// Waiter to those it waits for, with what decides over victims.
    waits: BTreeMap<u16, (Vec<u16>, i32, usize)>,
    victims: BTreeSet<u16>,
    /// Open transactions by number, and whose they are.
    open: BTreeMap<u64, u16>,
    /// Number of the last transaction.
    last: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Locks {
    table: Mutex<Table>,
    changed: Condvar,
}

impl Locks {
    /// Takes a lock and keeps it until [`Locks::release`]. `stopped` is asked now and then.
    pub(crate) fn take(
        &self,
        target: Target,
        mode: Mode,
        asker: Asker,
        stopped: &dyn Fn() -> Option<Fault>,
    ) -> Outcome<()> {
        let mut table = self.wait(asker, stopped, |table| table.in_the_way(target, mode, asker.session))?;
        table.held.entry(target).or_default().entry(asker.session).or_default().insert(mode);
        Ok(())
    }

    /// Waits until all the locks could be had and calls `at` at that moment, without keeping any.
    pub(crate) fn pass<T>(
        &self,
        targets: &[(Target, Mode)],
        asker: Asker,
        stopped: &dyn Fn() -> Option<Fault>,
        at: impl FnOnce() -> Outcome<T>,
    ) -> Outcome<T> {
        let guard = self.wait(asker, stopped, |table| {
            targets.iter().flat_map(|(target, mode)| table.in_the_way(*target, *mode, asker.session)).collect()
        })?;
        let result = at();
        drop(guard);
        result
    }

    /// Whether somebody else has a lock that is in the way of one of these.
    pub(crate) fn blocked(&self, targets: &[(Target, Mode)], session: u16) -> bool {
        let table = self.lock();
        targets.iter().any(|(target, mode)| !table.in_the_way(*target, *mode, session).is_empty())
    }

    /// Number of a transaction whose lock is in the way.
    pub(crate) fn transaction_in_the_way(&self, target: Target, mode: Mode, session: u16) -> Option<u64> {
        let table = self.lock();
        let blockers = table.in_the_way(target, mode, session);
        table.open.iter().find(|(_, s)| blockers.contains(s)).map(|(number, _)| *number)
    }

    /// Waits until a transaction has ended.
    pub(crate) fn wait_for(&self, transaction: u64, asker: Asker, stopped: &dyn Fn() -> Option<Fault>) -> Outcome<()> {
        self.wait(asker, stopped, |table| {
            table.open.get(&transaction).copied().filter(|s| *s != asker.session).into_iter().collect()
        })
        .map(drop)
    }

    fn wait(
        &self,
        asker: Asker,
        stopped: &dyn Fn() -> Option<Fault>,
        blockers: impl Fn(&Table) -> Vec<u16>,
    ) -> Outcome<MutexGuard<'_, Table>> {
        let deadline = asker.timeout.map(|t| Instant::now() + t);
        let mut table = self.lock();
        loop {
            if table.victims.remove(&asker.session) {
                table.waits.remove(&asker.session);
                return Err(deadlock(asker.session).into());
            }
            let blockers = blockers(&table);
            if blockers.is_empty() {
                table.waits.remove(&asker.session);
                return Ok(table);
            }
            let left = deadline.map(|d| d.saturating_duration_since(Instant::now()));
            let ended = stopped().or_else(|| left.is_some_and(|l| l.is_zero()).then(|| timed_out().into()));
            if let Some(fault) = ended {
                table.waits.remove(&asker.session);
                return Err(fault);
            }
            table.waits.insert(asker.session, (blockers, asker.priority, asker.weight));
            if let Some(circle) = table.circle(asker.session) {
                let victim = circle.into_iter().min_by_key(|s| table.waits.get(s).map_or((0, 0), |w| (w.1, w.2)));
                if let Some(victim) = victim {
                    table.victims.insert(victim);
                    self.changed.notify_all();
                    if victim == asker.session {
                        continue;
                    }
                }
            }
            let pause = left.map_or(LOOK, |l| l.min(LOOK));
            table = self.changed.wait_timeout(table, pause).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// A transaction begins and gets its number.
    pub(crate) fn begin(&self, session: u16) -> u64 {
        let mut table = self.lock();
        table.last += 1;
        let number = table.last;
        table.open.insert(number, session);
        number
    }

    /// The number that the next transaction will have, and those that are open without the given one.
    pub(crate) fn moment(&self, without: u64) -> (u64, Vec<u64>) {
        let table = self.lock();
        (table.last + 1, table.open.keys().copied().filter(|t| *t != without).collect())
    }

    /// The transaction is over and all its locks are free.
    pub(crate) fn end(&self, transaction: u64, session: u16) {
        let mut table = self.lock();
        table.open.remove(&transaction);
        table.release(session);
        drop(table);
        self.changed.notify_all();
    }

    /// Frees every lock of the session.
    pub(crate) fn release(&self, session: u16) {
        self.lock().release(session);
        self.changed.notify_all();
    }

    /// Session that the waiter waits for, for `sys.dm_exec_requests`.
    pub(crate) fn blocker(&self, session: u16) -> Option<u16> {
        self.lock().waits.get(&session).and_then(|w| w.0.first().copied())
    }

    /// So that waiters look again.
    pub(crate) fn wake(&self) {
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn in_the_way(&self, target: Target, mode: Mode, session: u16) -> Vec<u16> {
        let Some(held) = self.held.get(&target) else { return Vec::new() };
        held.iter()
            .filter(|(s, modes)| **s != session && modes.iter().any(|m| !m.gets_along(mode)))
            .map(|(s, _)| *s)
            .collect()
    }

    fn release(&mut self, session: u16) {
        self.held.retain(|_, held| {
            held.remove(&session);
            !held.is_empty()
        });
    }

    /// Sessions of the circle that goes through this one.
    fn circle(&self, from: u16) -> Option<Vec<u16>> {
        let mut path = vec![from];
        self.follow(from, from, &mut path).then_some(path)
    }

    fn follow(&self, at: u16, home: u16, path: &mut Vec<u16>) -> bool {
        let Some((next, ..)) = self.waits.get(&at) else { return false };
        for session in next {
            // A victim is on its way out.
            if self.victims.contains(session) {
                continue;
            }
            if *session == home {
                return true;
            }
            if path.contains(session) {
                continue;
            }
            path.push(*session);
            if self.follow(*session, home, path) {
                return true;
            }
            path.pop();
        }
        false
    }
}

fn timed_out() -> SqlError {
    SqlError::new(1222, "Lock request time out period exceeded.").state(51)
}

fn deadlock(session: u16) -> SqlError {
    let text = format!(
        "Transaction (Process ID {session}) was deadlocked on lock resources with another process and has been chosen as the deadlock victim. Rerun the transaction."
    );
    SqlError::new(1205, text).class(13).state(51)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn asker(session: u16, timeout: Option<u64>) -> Asker {
        Asker { session, timeout: timeout.map(Duration::from_millis), priority: 0, weight: usize::from(session) }
    }

    fn never() -> Option<Fault> {
        None
    }

    #[test]
    fn modes_get_along_as_documented() {
        use Mode::*;
        for (a, b, expected) in [
            (Read, Insert, false),
            (Keep, Insert, true),
            (Keep, Change, false),
            (Insert, Change, true),
            (Change, Change, true),
            (Read, Keep, true),
            (Exclusive, Keep, false),
            (Exclusive, Exclusive, false),
        ] {
            assert_eq!(a.gets_along(b), expected, "{a:?} {b:?}");
            assert_eq!(b.gets_along(a), expected, "{b:?} {a:?}");
        }
    }

    #[test]
    fn t_64_a_lock_that_is_not_had_in_time_is_1222() {
        let locks = Locks::default();
        locks.take(Target::Table(1), Mode::Exclusive, asker(51, None), &never).unwrap();
        let Err(Fault::Error(error)) = locks.take(Target::Table(1), Mode::Read, asker(52, Some(0)), &never) else {
            panic!("the lock was had");
        };
        assert_eq!(error.number, 1222);
        locks.release(51);
        locks.take(Target::Table(1), Mode::Read, asker(52, Some(0)), &never).unwrap();
    }

    #[test]
    fn a_circle_has_one_victim_the_one_with_the_least_to_undo() {
        let locks = Arc::new(Locks::default());
        locks.take(Target::Table(1), Mode::Exclusive, asker(51, None), &never).unwrap();
        locks.take(Target::Table(2), Mode::Exclusive, asker(52, None), &never).unwrap();
        let other = locks.clone();
        let first = std::thread::spawn(move || {
            let result = other.take(Target::Table(2), Mode::Read, asker(51, None), &never);
            other.release(51);
            result
        });
        // Session 52 has more to undo, so it waits until 51 has given up.
        locks.take(Target::Table(1), Mode::Read, asker(52, None), &never).unwrap();
        let Err(Fault::Error(error)) = first.join().unwrap() else { panic!("no deadlock was seen") };
        assert_eq!(error.number, 1205);
    }
}

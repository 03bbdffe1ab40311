#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use proptest::prelude::*;

use super::*;
use crate::error::{ErrorKind, Phase};

fn position(n: u64) -> Position {
    Position::new(Bytes::copy_from_slice(&n.to_be_bytes()))
}

fn number(position: &Position) -> u64 {
    u64::from_be_bytes(position.place[..].try_into().unwrap())
}

fn error(text: &str) -> Error {
    Error::new(ErrorKind::BrokerUnavailable, Phase::Deliver, text)
}

fn ready(window: &AckWindow) -> bool {
    matches!(pin!(window.advanced()).poll(&mut Context::from_waker(Waker::noop())), Poll::Ready(()))
}

/// KFK-05: topic B has no leader, A goes on; nothing behind B1 may be committed.
#[test]
fn kfk_05_an_unacknowledged_message_holds_back_all_later_ones() {
    let mut tracker = AckTracker::new(64, 1);
    let (a1, b1, a2, a3) = (1, 2, 3, 4);
    let seq: Vec<_> = [a1, b1, a2, a3].map(|n| tracker.enter(0, position(n)).unwrap()).into();
    assert_eq!(seq, [0, 1, 2, 3]);
    let window = tracker.window().clone();
    for seq in [3, 2, 0] {
        window.delivered(seq);
    }
    assert_eq!(tracker.advance(), Some((0, position(a1))));
    assert_eq!(tracker.advance(), None);
    assert_eq!((tracker.oldest_unacked(), tracker.in_flight()), (Some(1), 3));
    window.delivered(1);
    assert_eq!(tracker.advance(), Some((0, position(a3))));
    assert_eq!((tracker.oldest_unacked(), tracker.in_flight()), (None, 0));
}

#[test]
fn entries_without_a_message_take_their_place_in_the_order() {
    let mut tracker = AckTracker::new(64, 1);
    // Before the first message: the starting position is durable at once (RUN-16).
    tracker.enter_done(0, position(1));
    assert_eq!(tracker.advance(), Some((0, position(1))));
    let seq = tracker.enter(0, position(2)).unwrap();
    tracker.enter_done(0, position(3));
    assert_eq!(tracker.advance(), None);
    tracker.window().delivered(seq);
    assert_eq!(tracker.advance(), Some((0, position(3))));
    tracker.enter_done(0, position(4));
    assert_eq!(tracker.advance(), Some((0, position(4))));
    assert_eq!(tracker.enter(0, position(5)).unwrap(), 1, "numbers stay dense");
}

#[test]
fn partitions_are_given_out_one_by_one() {
    let mut tracker = AckTracker::new(64, 2);
    let first = tracker.enter(0, position(1)).unwrap();
    let second = tracker.enter(1, position(2)).unwrap();
    tracker.enter_done(0, position(3));
    tracker.window().delivered(first);
    assert_eq!(tracker.advance(), Some((0, position(3))));
    assert_eq!(tracker.advance(), None);
    tracker.enter_done(0, position(4));
    tracker.window().delivered(second);
    assert_eq!(tracker.advance(), Some((0, position(4))));
    assert_eq!(tracker.advance(), Some((1, position(2))));
    assert_eq!(tracker.advance(), None);
}

#[test]
fn a_failure_stops_the_prefix_and_the_first_one_is_kept() {
    let mut tracker = AckTracker::new(64, 1);
    for n in 0..4 {
        tracker.enter(0, position(n)).unwrap();
    }
    let window = tracker.window().clone();
    assert!(!ready(&window));
    window.failed(2, error("first"));
    window.failed(3, error("second"));
    window.delivered(3);
    window.delivered_below(4);
    assert!(ready(&window));
    assert_eq!(window.failure().unwrap().message, "first");
    assert_eq!(tracker.advance(), Some((0, position(1))));
    assert_eq!(tracker.advance(), None);
    assert_eq!(tracker.oldest_unacked(), Some(2));
}

#[test]
fn refuses_when_full_and_wakes_once_the_oldest_is_acknowledged() {
    let mut tracker = AckTracker::new(1, 1);
    for n in 0..64 {
        tracker.enter(0, position(n)).unwrap();
    }
    let Err(Full(back)) = tracker.enter(0, position(64)) else { panic!("the window is full") };
    assert_eq!(number(&back), 64);
    let window = tracker.window().clone();
    for seq in 1..64 {
        window.delivered(seq);
    }
    assert!(!ready(&window), "the oldest is still out");
    window.delivered(0);
    assert!(ready(&window));
    assert_eq!(tracker.advance(), Some((0, position(63))));
    assert_eq!(tracker.enter(0, back).unwrap(), 64);
}

#[test]
fn answers_that_cannot_be_are_ignored() {
    let mut tracker = AckTracker::new(64, 1);
    let window = tracker.window().clone();
    window.delivered(0);
    window.delivered_below(1_000);
    tracker.enter(0, position(0)).unwrap();
    assert_eq!(tracker.advance(), None);
    window.delivered(64);
    assert_eq!(tracker.advance(), None);
    window.delivered(0);
    assert_eq!(tracker.advance(), Some((0, position(0))));
    // A repeated answer for a number of the last lap says nothing about this one.
    for n in 1..65 {
        tracker.enter(0, position(n)).unwrap();
    }
    window.delivered(0);
    assert_eq!(tracker.advance(), None);
}

#[derive(Debug, Clone)]
enum Step {
    Enter(usize),
    Done(usize),
    /// Index into the numbers that are out.
    Deliver(prop::sample::Index),
    Again(prop::sample::Index),
    Below(prop::sample::Index),
    Fail(prop::sample::Index),
    Advance,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        30 => (0..3usize).prop_map(Step::Enter),
        8 => (0..3usize).prop_map(Step::Done),
        30 => any::<prop::sample::Index>().prop_map(Step::Deliver),
        3 => any::<prop::sample::Index>().prop_map(Step::Again),
        4 => any::<prop::sample::Index>().prop_map(Step::Below),
        1 => any::<prop::sample::Index>().prop_map(Step::Fail),
        10 => Just(Step::Advance),
    ];
    prop::collection::vec(step, 1..1_500)
}

/// The model: every entry ever made, in one list.
#[derive(Default)]
struct Model {
    /// Partition, position, number of the message.
    entries: Vec<(usize, u64, Option<u64>)>,
    acked: Vec<bool>,
    failed: Option<u64>,
    given: [Option<u64>; 3],
}

impl Model {
    fn prefix(&self) -> u64 {
        let acked = self.acked.iter().take_while(|a| **a).count() as u64;
        acked.min(self.failed.unwrap_or(u64::MAX))
    }
    /// Newest position of a partition before which all messages of the prefix rule are in.
    fn durable(&self, partition: usize) -> Option<u64> {
        let prefix = self.prefix();
        let mut last = 0;
        let mut durable = None;
        for &(p, position, seq) in &self.entries {
            if p == partition {
                last = seq.map_or(last, |s| s + 1);
                if last <= prefix {
                    durable = Some(position);
                }
            }
        }
        durable
    }
    fn out(&self) -> Vec<u64> {
        (0..self.acked.len() as u64).filter(|s| !self.acked[*s as usize] && Some(*s) != self.failed).collect()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]
    #[test]
    fn agrees_with_the_model(steps in steps(), failures in any::<bool>()) {
        let mut tracker = AckTracker::new(64, 3);
        let window = tracker.window().clone();
        let mut model = Model::default();
        for (at, step) in steps.into_iter().enumerate() {
            let at = at as u64;
            match step {
                Step::Enter(p) => {
                    let full = model.acked.len() as u64 - tracker.acknowledged() >= 64;
                    match tracker.enter(p, position(at)) {
                        Ok(seq) => {
                            prop_assert!(!full);
                            prop_assert_eq!(seq, model.acked.len() as u64);
                            model.entries.push((p, at, Some(seq)));
                            model.acked.push(false);
                        }
                        Err(Full(back)) => {
                            prop_assert!(full);
                            prop_assert_eq!(number(&back), at);
                        }
                    }
                }
                Step::Done(p) => {
                    tracker.enter_done(p, position(at));
                    model.entries.push((p, at, None));
                }
                Step::Deliver(index) => {
                    let out = model.out();
                    if !out.is_empty() {
                        let seq = *index.get(&out);
                        window.delivered(seq);
                        model.acked[seq as usize] = true;
                    }
                }
                Step::Again(index) => {
                    let answered: Vec<u64> =
                        (0..model.acked.len() as u64).filter(|s| model.acked[*s as usize]).collect();
                    if !answered.is_empty() {
                        window.delivered(*index.get(&answered));
                    }
                }
                Step::Below(index) => {
                    let below = index.index(model.acked.len() + 1);
                    window.delivered_below(below as u64);
                    model.acked[..below].fill(true);
                }
                Step::Fail(index) => {
                    let out = model.out();
                    if failures && !out.is_empty() {
                        let seq = *index.get(&out);
                        window.failed(seq, error("lost"));
                        model.failed = Some(model.failed.map_or(seq, |f| f.min(seq)));
                    }
                }
                Step::Advance => {
                    let before = tracker.acknowledged();
                    if before < model.prefix() {
                        prop_assert!(ready(&window));
                    }
                    let mut moved = [None; 3];
                    while let Some((p, position)) = tracker.advance() {
                        moved[p] = Some(number(&position));
                    }
                    prop_assert_eq!(tracker.acknowledged(), before.max(model.prefix()));
                    for (p, moved) in moved.into_iter().enumerate() {
                        let durable = model.durable(p);
                        if durable > model.given[p] {
                            prop_assert_eq!(moved, durable, "partition {}", p);
                            model.given[p] = durable;
                        } else {
                            prop_assert_eq!(moved, None, "partition {}", p);
                        }
                    }
                }
            }
        }
    }
}

/// Three client threads answer in their own order while the encoder fills the window and waits.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_wake_is_lost_and_no_number_is_skipped() {
    const MESSAGES: u64 = 60_000;
    let mut tracker = AckTracker::new(64, 1);
    let window = tracker.window().clone();
    let (tx, rx) = std::sync::mpsc::channel::<u64>();
    let rx = Arc::new(std::sync::Mutex::new(rx));
    let threads: Vec<_> = (0..3)
        .map(|_| {
            let (rx, window) = (rx.clone(), window.clone());
            std::thread::spawn(move || {
                while let Ok(seq) = { rx.lock().unwrap().recv() } {
                    window.delivered(seq);
                }
            })
        })
        .collect();
    let mut last = None;
    let mut seen = |tracker: &mut AckTracker| {
        while let Some((_, position)) = tracker.advance() {
            let n = number(&position);
            assert!(last.is_none_or(|l| l < n));
            last = Some(n);
        }
    };
    for n in 0..MESSAGES {
        let mut next = position(n);
        let seq = loop {
            match tracker.enter(0, next) {
                Ok(seq) => break seq,
                Err(Full(back)) => {
                    next = back;
                    window.advanced().await;
                    seen(&mut tracker);
                }
            }
        };
        tx.send(seq).unwrap();
    }
    drop(tx);
    while tracker.in_flight() > 0 {
        window.advanced().await;
        seen(&mut tracker);
    }
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!((tracker.acknowledged(), tracker.next()), (MESSAGES, MESSAGES));
}

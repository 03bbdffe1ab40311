//! What votes tell of former leaders is true: in the time that a new leader takes for quiet, none of
//! them has proved that it led.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use thalweg_cluster::consensus::Consensus;
use thalweg_cluster::rpc::faulty::Weather;
use tokio_util::sync::CancellationToken;

use crate::sim::Sim;

/// The term in which a node proved that it led, and when it had asked for that.
type Proof = (u64, Instant);
/// A term and the beginning of the quiet time before it, or a little later.
type Quiet = (u64, Instant, Duration);

async fn prove_all_the_time(node: Arc<Consensus>, proofs: Arc<Mutex<Vec<Proof>>>) {
    let term = || node.leading().borrow().map(|l| l.term);
    let mut leading = node.leading();
    loop {
        let (before, asked) = (term(), Instant::now());
        let Some(led) = before else {
            if leading.changed().await.is_err() {
                return;
            }
            continue;
        };
        if node.confirm(Duration::from_millis(300)).await.is_ok() && term() == Some(led) {
            proofs.lock().push((led, asked));
        }
    }
}

async fn note_terms(node: Arc<Consensus>, terms: Arc<Mutex<Vec<Quiet>>>) {
    let mut leading = node.leading();
    while leading.changed().await.is_ok() {
        if let Some(leadership) = *leading.borrow_and_update() {
            let now = Instant::now();
            terms.lock().push((leadership.term, now - leadership.quiet, leadership.quiet));
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_former_leader_proves_anything_in_the_quiet_before_a_term() {
    let (mut gained, mut compared) = (0, 0);
    for seed in [401, 402] {
        let sim = Sim::group(seed, 3).await;
        let (proofs, terms, stop) = (Arc::default(), Arc::default(), CancellationToken::new());
        for node in sim.running() {
            let proving = prove_all_the_time(node.clone(), Arc::clone(&proofs));
            let noting = note_terms(node.clone(), Arc::clone(&terms));
            tokio::spawn(stop.clone().run_until_cancelled_owned(async { tokio::join!(proving, noting) }));
        }
        for round in 0..10 {
            let leader = sim.leader().await;
            let followers = sim.followers();
            let others: Vec<&str> = followers.iter().map(String::as_str).collect();
            match round % 3 {
                0 => sim.faults.split(&[&leader], &others),
                // It still reaches one of them.
                1 => sim.faults.split(&[&leader], &others[..1]),
                // It is heard and hears nothing, in bad weather.
                _ => {
                    sim.faults.set_weather(Weather {
                        lost_per_mille: 100,
                        repeated_per_mille: 50,
                        delay: Duration::from_millis(20),
                    });
                    others.iter().for_each(|other| sim.faults.cut(other, &leader));
                }
            }
            let before = terms.lock().len();
            if round % 3 == 0 {
                sim.eventually("another one leads", |_| terms.lock().len() > before).await;
            } else {
                sim.must_write(others[1], &format!("round{round}")).await;
            }
            sim.faults.heal();
        }
        stop.cancel();
        let (proofs, terms) = (proofs.lock().clone(), terms.lock().clone());
        for (term, begin, quiet) in terms {
            gained += usize::from(quiet >= sim.timing.election.0);
            for (led, asked) in proofs.iter().filter(|(led, _)| *led < term) {
                compared += 1;
                assert!(*asked <= begin, "term {led} was proved {:?} into the quiet before {term}", *asked - begin);
            }
        }
    }
    assert!(gained >= 4, "elections after silence know of it: {gained}");
    assert!(compared > 100, "{compared}");
}

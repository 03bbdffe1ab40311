//! Ending, leaving for good, being replaced, coming back too late.

use std::time::{Duration, Instant};

use thalweg_cluster::raft::store::{Store, StoreError};

use crate::sim::{PATIENCE, Sim, found, join};

/// A leader whose process ends is replaced at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_loss_of_the_leaders_process_is_healed_quickly() {
    let mut sim = Sim::new(20);
    // With the times of production: silence alone would take 1.4 s at least.
    sim.timing = thalweg_cluster::consensus::Timing::default();
    let names = ["a", "b", "c"];
    for name in names {
        sim.start(name, found(&names)).await;
    }
    let mut fastest = PATIENCE;
    for round in 0..3 {
        let leader = sim.leader().await;
        sim.must_write(&leader, &format!("c{round}")).await;
        sim.agree().await;
        let start = Instant::now();
        sim.kill(&leader).await;
        let survivor = sim.names()[0].clone();
        sim.must_write(&survivor, &format!("d{round}")).await;
        fastest = fastest.min(start.elapsed());
        sim.start(&leader, found(&names)).await;
        sim.eventually("it is back", |sim| sim.node(&leader).standing().borrow().leader.is_some()).await;
    }
    sim.agree().await;
    // The fastest, since the machine may be busy; by silence alone none could be that fast.
    println!("from the loss of the leader to the next write: {fastest:?}");
    assert!(fastest < Duration::from_millis(1200), "{fastest:?}");
}

/// A leader that is killed and is back before anybody missed it: its former self led, not this one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_starts_anew_is_replaced_quickly() {
    let mut sim = Sim::new(25);
    sim.timing = thalweg_cluster::consensus::Timing::default();
    let names = ["a", "b", "c"];
    for name in names {
        sim.start(name, found(&names)).await;
    }
    let mut fastest = PATIENCE;
    for round in 0..3 {
        let leader = sim.leader().await;
        sim.must_write(&leader, &format!("x{round}")).await;
        let survivor = sim.followers()[0].clone();
        let start = Instant::now();
        sim.kill(&leader).await;
        sim.start(&leader, found(&names)).await;
        sim.must_write(&survivor, &format!("y{round}")).await;
        fastest = fastest.min(start.elapsed());
        sim.agree().await;
    }
    assert!(fastest < Duration::from_millis(1400), "{fastest:?}");
}

/// A port that refuses one node only is no reason to elect: the leader still speaks.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_still_speaks_stays() {
    let sim = Sim::group(26, 3).await;
    let leader = sim.leader().await;
    let follower = sim.followers()[0].clone();
    let before = sim.node(&leader).standing().borrow().term;
    sim.faults.refuse(&follower, &leader);
    let node = sim.node(&leader).node();
    sim.eventually("the follower believes it gone", |sim| sim.node(&follower).presence().is_gone(node)).await;
    let other = sim.followers()[1].clone();
    // Longer than a voter would wait before it elects another one.
    let start = Instant::now();
    for i in 0.. {
        sim.must_write(&other, &format!("c{i}")).await;
        if start.elapsed() > Duration::from_secs(2) {
            break;
        }
    }
    assert_eq!(sim.node(&leader).standing().borrow().term, before);
    assert_eq!(sim.leader().await, leader);
    sim.faults.heal();
    sim.agree().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_ends_in_order_hands_over_first() {
    let mut sim = Sim::group(21, 3).await;
    let leader = sim.leader().await;
    sim.must_write(&leader, "x").await;
    let start = Instant::now();
    let others = sim.followers();
    let watcher = sim.node(&others[0]).clone();
    let (old, mut standing) = (sim.node(&leader).node(), watcher.standing());
    let took_over = tokio::spawn(async move {
        standing.wait_for(|s| s.leader.as_ref().is_some_and(|l| l.node != old)).await.unwrap();
        start.elapsed()
    });
    sim.stop(&leader).await;
    let took = took_over.await.unwrap();
    assert!(took < Duration::from_secs(5), "{took:?}");
    sim.must_write(&others[1], "y").await;
    sim.agree().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_leave_for_good_and_do_not_start_again() {
    let mut sim = Sim::group(22, 3).await;
    sim.start("d", join(&["a"])).await;
    sim.eventually("d is a member", |sim| sim.members() == 4).await;
    // The leader itself leaves; the learner takes the free vote.
    let leader = sim.leader().await;
    sim.node(&leader).leave(PATIENCE).await.unwrap();
    sim.stop(&leader).await;
    sim.eventually("three vote, d among them", |sim| {
        sim.members() == 3 && sim.voters().len() == 3 && sim.voters().contains(&"d".to_owned())
    })
    .await;
    let error = Store::open(&sim.file(&leader)).err().unwrap();
    assert!(matches!(error, StoreError::Left { .. }), "{error}");
    // Down to one.
    for _ in 0..2 {
        let name = sim.followers()[0].clone();
        sim.node(&name).leave(PATIENCE).await.unwrap();
        sim.stop(&name).await;
    }
    sim.eventually("one is left", |sim| sim.members() == 1).await;
    let last = sim.leader().await;
    let error = sim.node(&last).leave(Duration::from_secs(5)).await.unwrap_err();
    assert!(error.to_string().contains("only voter"), "{error}");
    sim.must_write(&last, "x").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dead_voter_is_replaced_by_a_learner() {
    let mut sim = Sim::group(23, 3).await;
    sim.start("d", join(&["a", "b"])).await;
    sim.eventually("d is a member", |sim| sim.members() == 4).await;
    let victim = sim.followers().into_iter().find(|n| n != "d").unwrap();
    sim.kill(&victim).await;
    sim.eventually("d votes in its place", |sim| {
        sim.voters().contains(&"d".to_owned()) && !sim.voters().contains(&victim)
    })
    .await;
    // It comes back as a learner.
    sim.start(&victim, found(&["a", "b", "c"])).await;
    sim.must_write(&victim, "x").await;
    sim.agree().await;
    assert_eq!(sim.voters().len(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_was_taken_out_while_away_is_told() {
    let mut sim = Sim::group(24, 3).await;
    let victim = sim.followers()[0].clone();
    let node = sim.node(&victim).node();
    sim.kill(&victim).await;
    let leader = sim.leader().await;
    sim.node(&leader).remove(node, PATIENCE).await.unwrap();
    sim.start(&victim, found(&["a", "b", "c"])).await;
    sim.eventually("it says that it was taken out", |sim| {
        let failure = sim.node(&victim).failure().borrow().clone();
        failure.is_some_and(|f| f.contains("taken out") && f.contains("raft.redb"))
    })
    .await;
}

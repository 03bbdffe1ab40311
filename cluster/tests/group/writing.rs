//! Writing and reading through any node, with and without a majority; restarts.

use std::time::{Duration, Instant};

use async_trait::async_trait;
use thalweg_cluster::consensus::{Duties, Formation};
use thalweg_cluster::lease::{Grant, LeaseLink};
use thalweg_cluster::raft::{NodeId, ProposeError, Proposer, Reply};
use thalweg_cluster::rpc::{Caller, Destination, Lane, Request, Response};

use crate::sim::{Sim, create, found};

/// CLU-04: one node, killed and started.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clu_04_restart_of_a_one_node_cluster() {
    let mut sim = Sim::new(30);
    sim.start("a", Formation::Alone).await;
    sim.leader().await;
    for name in ["x", "y", "z"] {
        sim.must_write("a", name).await;
    }
    let (cluster, node) = (sim.node("a").standing().borrow().cluster, sim.node("a").node());
    for start in 2..5 {
        sim.kill("a").await;
        let a = sim.start("a", Formation::Alone).await;
        // A read during the start waits until it can be answered.
        a.confirm(Duration::from_secs(20)).await.unwrap();
        assert_eq!(a.view().read().connectors.len(), 3);
        assert_eq!((a.standing().borrow().cluster, a.node()), (cluster, node));
        assert_eq!(a.local().incarnation, start);
    }
    sim.must_write("a", "later").await;
}

/// CLU-04: all nodes stopped and started.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clu_04_restart_of_a_whole_cluster() {
    let mut sim = Sim::group(31, 3).await;
    for name in ["x", "y", "z"] {
        sim.must_write("b", name).await;
    }
    sim.agree().await;
    for orderly in [false, true] {
        for name in ["a", "b", "c"] {
            if orderly { sim.stop(name).await } else { sim.kill(name).await }
        }
        for name in ["c", "a", "b"] {
            sim.start(name, found(&["a", "b", "c"])).await;
        }
        sim.leader().await;
        sim.node("a").confirm(Duration::from_secs(20)).await.unwrap();
        assert_eq!(sim.node("a").view().read().connectors.len(), 3);
        sim.agree().await;
    }
}

/// CLU-05: a write that is pending when the leader loses its majority.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clu_05_pending_writes_on_leader_change() {
    let sim = Sim::group(32, 3).await;
    let leader = sim.leader().await;
    let others = sim.followers();
    sim.faults.split(&[&leader], &[&others[0], &others[1]]);
    let start = Instant::now();
    let error = sim.node(&leader).propose(create("pending")).await.unwrap_err();
    assert!(start.elapsed() < sim.timing.propose + Duration::from_secs(1), "{:?}", start.elapsed());
    assert!(matches!(error, ProposeError::Unknown | ProposeError::QuorumLost | ProposeError::NoLeader), "{error}");
    sim.must_write(&others[0], "meanwhile").await;
    sim.faults.heal();
    sim.must_write(&leader, "later").await;
    sim.agree().await;
    assert!(sim.running().all(|c| c.failure().borrow().is_none()), "all nodes are healthy");
    let there: Vec<bool> = sim.names().iter().map(|n| sim.has(n, "pending")).collect();
    assert!(there.windows(2).all(|w| w[0] == w[1]), "all or nothing: {there:?}");
}

/// CLU-08: after a success, every node shows it; while leadership moves.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clu_08_read_your_own_writes_through_any_node() {
    let sim = Sim::group(33, 3).await;
    let names = sim.names();
    for round in 0..200 {
        let writer = &names[round % 3];
        let connector = format!("c{round}");
        sim.must_write(writer, &connector).await;
        for reader in names.iter().filter(|n| *n != writer) {
            // A round may meet a change of leader; the confirmation waits for the next one.
            sim.node(reader).confirm(Duration::from_secs(20)).await.unwrap();
            assert!(sim.has(reader, &connector), "{connector} written through {writer}, read through {reader}");
        }
        if round % 20 == 19 {
            let leader = sim.leader().await;
            sim.node(&leader).step_down(Duration::from_secs(5)).await;
        }
    }
    sim.agree().await;
}

/// CLU-09: writes need a majority.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clu_09_writes_need_a_majority() {
    let sim = Sim::group(34, 3).await;
    // A follower alone.
    sim.leader().await;
    let alone = sim.followers()[0].clone();
    let rest: Vec<String> = sim.names().into_iter().filter(|n| *n != alone).collect();
    sim.faults.split(&[&alone], &[&rest[0], &rest[1]]);
    let start = Instant::now();
    let error = sim.node(&alone).propose(create("lost")).await.unwrap_err();
    assert!(start.elapsed() < sim.timing.propose + Duration::from_secs(1), "{:?}", start.elapsed());
    assert!(matches!(error, ProposeError::NoLeader | ProposeError::Unknown), "{error}");
    assert!(sim.node(&alone).confirm(Duration::from_millis(500)).await.is_err(), "nor reads that shall be current");
    sim.faults.heal();
    sim.must_write(&alone, "after").await;
    sim.agree().await;
    assert!(sim.names().iter().all(|n| !sim.has(n, "lost")), "nothing of it appears after healing");

    // The leader alone, with writers of one name on both sides: one of them wins, everywhere.
    let leader = sim.leader().await;
    let others: Vec<String> = sim.names().into_iter().filter(|n| *n != leader).collect();
    sim.faults.split(&[&leader], &[&others[0], &others[1]]);
    let (old, new) = (sim.node(&leader).clone(), sim.node(&others[0]).clone());
    let (one, two) = tokio::join!(old.propose(create("rival")), async {
        let mut standing = new.standing();
        standing.wait_for(|s| s.leader.as_ref().is_some_and(|l| l.node != old.node())).await.unwrap();
        new.propose(create("rival")).await
    });
    assert!(one.is_err(), "{one:?}");
    assert!(matches!(two, Ok(Reply::ConnectorPut { created: true, .. })), "{two:?}");
    sim.faults.heal();
    sim.must_write(&leader, "end").await;
    sim.agree().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn too_large_is_refused_before_it_is_written() {
    let sim = Sim::group(35, 3).await;
    let huge = create(&"x".repeat(9 << 20));
    for node in sim.running() {
        let error = node.propose(huge.clone()).await.unwrap_err();
        assert!(matches!(error, ProposeError::TooLarge { .. }), "{error}");
    }
    sim.must_write("a", "fine").await;
    sim.agree().await;
}

/// Grants to whoever asks, and says what it was asked.
struct Generous;

#[async_trait]
impl Duties for Generous {
    fn grant(&self, _node: NodeId, incarnation: u64, _applied: u64) -> Option<Grant> {
        Some(if incarnation == 7 { Grant::Granted } else { Grant::Expired })
    }
    async fn forwarded(&self, caller: Caller, request: Vec<u8>) -> Result<Vec<u8>, String> {
        match request.as_slice() {
            b"fail" => Err("as you wished".into()),
            _ => Ok([caller.address.as_bytes(), b" says ", &request].concat()),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn heartbeats_are_granted_by_a_leader_with_a_majority_only() {
    let sim = Sim::group(36, 3).await;
    let leader = sim.leader().await;
    let follower = sim.followers()[0].clone();
    assert_eq!(sim.node(&follower).heartbeat(7, 1, 0).await, None, "no duties yet");
    for node in sim.running() {
        node.set_duties(std::sync::Arc::new(Generous));
    }
    for name in [&leader, &follower] {
        assert_eq!(sim.node(name).heartbeat(7, 1, 0).await, Some(Grant::Granted));
        assert_eq!(sim.node(name).heartbeat(8, 2, 0).await, Some(Grant::Expired));
    }
    let others = sim.followers();
    sim.faults.split(&[&leader], &[&others[0], &others[1]]);
    assert_eq!(sim.node(&leader).heartbeat(7, 3, 0).await, None, "a leader without a majority grants nothing");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_of_the_layers_above_are_forwarded() {
    let sim = Sim::group(37, 2).await;
    sim.node("b").set_duties(std::sync::Arc::new(Generous));
    let to = Destination::node(sim.node("b").node(), "b");
    let call = |bytes: &[u8]| {
        let (a, to, request) = (sim.node("a").clone(), to.clone(), Request::Forward(bytes.to_vec()));
        async move { a.transport().call(&to, Lane::Forward, request, Duration::from_secs(5)).await }
    };
    assert_eq!(call(b"hello").await.unwrap(), Response::Forwarded(b"a says hello".to_vec()));
    let Response::Failed(failure) = call(b"fail").await.unwrap() else { panic!("it fails") };
    assert_eq!(failure.to_string(), "as you wished");
}

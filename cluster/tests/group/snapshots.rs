//! Snapshots: taken, sent, installed, and found again after a restart.

use thalweg_cluster::raft::command::{OffsetChange, PartitionText, TargetState};
use thalweg_cluster::raft::{CommandV1, Proposer, Reply};

use crate::sim::{Sim, found, join};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_follower_that_was_away_for_long_gets_a_snapshot() {
    let mut sim = Sim::new(40);
    sim.timing.snapshot_entries = 40;
    sim.timing.keep_entries = 10;
    let names = ["a", "b", "c"];
    for name in names {
        sim.start(name, found(&names)).await;
    }
    let leader = sim.leader().await;
    let away = sim.followers()[0].clone();
    sim.kill(&away).await;
    for i in 0..150 {
        sim.must_write(&leader, &format!("c{i}")).await;
    }
    sim.start(&away, found(&names)).await;
    sim.agree().await;
    assert!(sim.has(&away, "c0") && sim.has(&away, "c149"));
    // And from the file, for all of them.
    for name in names {
        sim.kill(name).await;
    }
    for name in names {
        sim.start(name, found(&names)).await;
    }
    sim.leader().await;
    sim.agree().await;
    assert_eq!(sim.node(&away).view().read().connectors.len(), 150);
}

/// CLU-07: a snapshot with 10 000 offsets.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clu_07_snapshot_with_ten_thousand_offsets() {
    let mut sim = Sim::new(41);
    sim.timing.snapshot_entries = 30;
    sim.timing.keep_entries = 0;
    sim.start("a", thalweg_cluster::consensus::Formation::Alone).await;
    sim.leader().await;
    sim.must_write("a", "big").await;
    let a = sim.node("a").clone();
    let stop = CommandV1::SetTarget { name: "big".into(), target: TargetState::Stopped };
    assert_eq!(a.propose(stop.into()).await.unwrap(), Reply::Done);
    for part in 0..100 {
        let rows = (0..100).map(|i| {
            let text = format!("{{\"server_id\":\"s{}\"}}", part * 100 + i);
            let partition = PartitionText { canonical: text.clone(), original: text };
            (partition, Some(format!("{{\"sec\":{i},\"filler\":\"{}\"}}", "x".repeat(200))))
        });
        let change = OffsetChange::Set(rows.collect());
        let command = CommandV1::AlterOffsets { name: "big".into(), expect_revision: None, change };
        let reply = a.propose(command.into()).await.unwrap();
        assert!(matches!(reply, Reply::OffsetsAltered { .. }), "{reply:?}");
    }
    // What a new node gets can only come from a snapshot: the log has been purged.
    sim.start("b", join(&["a"])).await;
    sim.agree().await;
    sim.eventually("b has all rows", |sim| {
        sim.node("b").view().read().offsets.values().map(|o| o.rows.len()).sum::<usize>() == 10_000
    })
    .await;
    sim.kill("b").await;
    sim.start("b", join(&["a"])).await;
    sim.agree().await;
}

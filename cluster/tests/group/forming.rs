//! Forming a group once, whatever comes and goes meanwhile; joining one.

use std::time::Duration;

use thalweg_cluster::consensus::Formation;
use thalweg_cluster::rpc::message::Adopt;
use thalweg_cluster::rpc::transport::ClusterId;
use thalweg_cluster::rpc::{Destination, Failure, Lane, Request, Response, RpcError};

use crate::sim::{Sim, found, join};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_alone_is_a_group() {
    let mut sim = Sim::new(1);
    let node = sim.start("a", Formation::Alone).await;
    assert_eq!(sim.leader().await, "a");
    sim.must_write("a", "x").await;
    assert!(sim.has("a", "x"));
    assert_eq!(node.waiting(), None);
    assert!(node.caught_up().wait_for(|c| *c).await.is_ok());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_seeds_form_one_group() {
    let sim = Sim::group(2, 3).await;
    for (i, name) in sim.names().iter().enumerate() {
        sim.must_write(name, &format!("c{i}")).await;
    }
    sim.agree().await;
    let clusters: Vec<_> = sim.running().map(|c| c.standing().borrow().cluster).collect();
    assert!(clusters[0].is_some() && clusters.windows(2).all(|w| w[0] == w[1]), "{clusters:?}");
    sim.eventually("all vote", |sim| sim.voters().len() == 3).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_group_is_not_formed_while_a_seed_is_missing() {
    let mut sim = Sim::new(3);
    let names = ["a", "b", "c"];
    sim.start("a", found(&names)).await;
    sim.start("b", found(&names)).await;
    sim.eventually("it says who is missing", |sim| {
        sim.node("a").waiting().is_some_and(|w| w.contains("nothing listens at c"))
    })
    .await;
    assert!(sim.leader_now().is_none());
    sim.start("c", found(&names)).await;
    sim.leader().await;
    sim.must_write("c", "x").await;
    sim.agree().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn different_seed_lists_form_nothing() {
    let mut sim = Sim::new(4);
    sim.start("a", found(&["a", "b", "c"])).await;
    sim.start("b", found(&["a", "b"])).await;
    sim.start("c", found(&["a", "b", "c"])).await;
    sim.eventually("it names the difference", |sim| {
        sim.node("a").waiting().is_some_and(|w| w.contains("seed lists differ") && w.contains("b has a, b"))
    })
    .await;
    assert!(sim.leader_now().is_none());
}

/// CLU-06: calls about membership before there is a group, and forming twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clu_06_membership_calls_at_the_wrong_time() {
    let mut sim = Sim::new(5);
    // A list that lacks the node itself.
    sim.start("x", found(&["y", "z"])).await;
    sim.start("y", found(&["y", "z"])).await;
    sim.eventually("it says that its list lacks it", |sim| sim.node("x").waiting().is_some_and(|w| w.contains('z')))
        .await;
    // Leaving and removing before there is a group.
    let error = sim.node("x").remove(17, Duration::from_millis(300)).await.unwrap_err();
    assert!(error.to_string().contains("no leader"), "{error}");
    // Joining a node that is in no group.
    sim.start("j", join(&["x"])).await;
    sim.eventually("it says that there is no group", |sim| {
        sim.node("j").waiting().is_some_and(|w| w.contains("none of x is in a group yet"))
    })
    .await;
    sim.start("z", found(&["y", "z"])).await;
    sim.eventually("y and z are a group", |sim| sim.node("z").standing().borrow().leader.is_some()).await;
    // x finds the group through its seeds, and joins it, since it is there.
    sim.eventually("x is a member", |sim| sim.node("x").standing().borrow().leader.is_some()).await;

    // Forming again is refused, and nothing changes.
    let before = sim.node("z").standing().borrow().members.clone();
    let again = Adopt { cluster: ClusterId([9; 16]), members: Vec::new() };
    let to = Destination::address("z");
    let answer = sim.node("y").transport().call(&to, Lane::Consensus, Request::Adopt(again), SECOND).await;
    assert!(matches!(&answer, Ok(Response::Failed(Failure::Refused(why))) if why.contains("in a group")), "{answer:?}");
    assert_eq!(sim.node("z").standing().borrow().members, before);
    sim.must_write("y", "c").await;
    sim.agree_except("j").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn late_nodes_learn_first_and_vote_when_that_helps() {
    let mut sim = Sim::new(6);
    sim.start("a", Formation::Alone).await;
    sim.leader().await;
    sim.must_write("a", "early").await;
    sim.start("b", join(&["a"])).await;
    sim.eventually("b has everything", |sim| sim.members() == 2 && sim.has("b", "early")).await;
    assert_eq!(sim.voters(), ["a"], "two voters tolerate less than one");
    // A seed that is not the leader will do.
    sim.start("c", join(&["b"])).await;
    sim.eventually("three vote", |sim| sim.voters().len() == 3).await;
    sim.start("d", join(&["a", "b"])).await;
    sim.start("e", join(&["c"])).await;
    sim.eventually("five vote", |sim| sim.voters().len() == 5).await;
    sim.start("f", join(&["c"])).await;
    sim.eventually("the sixth is a member", |sim| sim.members() == 6).await;
    // CLU-06: learner to voter works while writing.
    for i in 0..20 {
        sim.must_write("f", &format!("c{i}")).await;
    }
    sim.agree().await;
    assert_eq!(sim.voters().len(), 5);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wiped_node_comes_back_as_a_new_voter_and_forms_nothing() {
    let mut sim = Sim::group(7, 3).await;
    sim.must_write("a", "kept").await;
    sim.agree().await;
    let cluster = sim.node("b").standing().borrow().cluster;
    // The one that formed the group, too.
    for name in ["c", "a"] {
        let old = sim.node(name).node();
        sim.kill(name).await;
        sim.wipe(name);
        sim.leader().await;
        sim.start(name, found(&["a", "b", "c"])).await;
        sim.eventually("it votes again, and its former self is forgotten", |sim| {
            let standing = sim.node("b").standing().borrow().clone();
            let new = sim.node(name).node();
            new != old && standing.is_voter(new) && !standing.members.contains_key(&old) && standing.members.len() == 3
        })
        .await;
        sim.eventually("it has everything", |sim| sim.has(name, "kept")).await;
        assert_eq!(sim.node(name).standing().borrow().cluster, cluster);
    }
    sim.must_write("a", "later").await;
    sim.agree().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_majority_of_wiped_nodes_does_not_form_a_second_group() {
    let mut sim = Sim::group(8, 3).await;
    sim.must_write("a", "kept").await;
    sim.agree().await;
    for name in ["a", "b"] {
        sim.kill(name).await;
        sim.wipe(name);
    }
    // Without the one that remembers.
    sim.kill("c").await;
    for name in ["a", "b"] {
        sim.start(name, found(&["a", "b", "c"])).await;
    }
    sim.eventually("they wait for the third", |sim| {
        sim.node("a").waiting().is_some_and(|w| w.contains("may remember a group"))
    })
    .await;
    // With it.
    sim.start("c", found(&["a", "b", "c"])).await;
    sim.eventually("they say that the group has no majority", |sim| {
        ["a", "b"].iter().all(|n| sim.node(n).waiting().is_some_and(|w| w.contains("no leader at the moment")))
    })
    .await;
    assert!(sim.leader_now().is_none());
    assert!(sim.has("c", "kept"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clusters_do_not_mix() {
    let mut sim = Sim::new(9);
    sim.start("a", Formation::Alone).await;
    sim.start("b", Formation::Alone).await;
    sim.eventually("two groups", |sim| sim.running().all(|c| c.leading().borrow().is_some())).await;
    let b = Destination::address("b");
    let error = sim.node("a").transport().call(&b, Lane::Consensus, Request::Probe, SECOND).await.unwrap_err();
    assert!(matches!(error, RpcError::Rejected { .. }), "{error}");
    assert!(error.to_string().contains("belongs to cluster"), "{error}");
    // The same seeds do not change that.
    sim.kill("b").await;
    sim.start("b", found(&["a", "b"])).await;
    sim.eventually("b goes on by itself", |sim| sim.node("b").leading().borrow().is_some()).await;
    assert_eq!(sim.node("a").standing().borrow().members.len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copied_data_directory_is_refused() {
    let mut sim = Sim::group(10, 3).await;
    let copy = sim.file("copy");
    sim.stop("c").await;
    std::fs::create_dir_all(copy.parent().unwrap()).unwrap();
    std::fs::copy(sim.file("c"), &copy).unwrap();
    sim.start("c", found(&["a", "b", "c"])).await;
    sim.eventually("c is back", |sim| sim.node("c").standing().borrow().leader.is_some()).await;
    let twin = sim.start_from("copy", &copy, found(&["a", "b", "c"])).await;
    assert_eq!(twin.node(), sim.node("c").node());
    for name in ["a", "c"] {
        let to = Destination::address(name);
        let error = twin.transport().call(&to, Lane::Consensus, Request::Probe, SECOND).await.unwrap_err();
        assert!(matches!(error, RpcError::Rejected { .. }), "{error}");
        assert!(error.to_string().contains("data directory was copied"), "{error}");
    }
    assert!(twin.standing().borrow().leader.is_none());
    sim.kill("copy").await;
    sim.must_write("c", "x").await;
    sim.agree().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_moved_tells_its_new_address() {
    let mut sim = Sim::group(11, 3).await;
    let node = sim.node("c").node();
    sim.stop("c").await;
    let file = sim.file("c");
    sim.start_from("moved", &file, Formation::Join { seeds: vec!["a".into()] }).await;
    sim.eventually("the others know the address", |sim| {
        let standing = sim.node("a").standing().borrow().clone();
        standing.members.get(&node).is_some_and(|m| m.address == "moved")
    })
    .await;
    sim.must_write("moved", "x").await;
    sim.agree().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lone_node_that_moved_can_be_joined_at_its_new_address() {
    let mut sim = Sim::new(12);
    sim.start("a", Formation::Alone).await;
    sim.leader().await;
    sim.must_write("a", "x").await;
    sim.stop("a").await;
    let file = sim.file("a");
    sim.start_from("moved", &file, Formation::Alone).await;
    sim.leader().await;
    sim.start("b", join(&["moved"])).await;
    sim.eventually("b has everything", |sim| sim.has("b", "x")).await;
    sim.eventually("b knows where it is now", |sim| {
        sim.node("b").standing().borrow().leader.as_ref().is_some_and(|l| l.address == "moved")
    })
    .await;
    sim.agree().await;
}

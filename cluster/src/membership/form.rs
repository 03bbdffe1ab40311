//! A node without data: forms the group with its seeds, or finds the one to join.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::future::join_all;
use openraft::errors::{InitializeError, RaftError};
use tokio::time::Instant;

use crate::consensus::Consensus;
use crate::raft::NodeId;
use crate::raft::types::Member;
use crate::rpc::message::{Adopt, Join, Probed};
use crate::rpc::transport::ClusterId;
use crate::rpc::{Caller, Destination, Failure, Lane, Request, Response, RpcError};

/// Limit of one question to a seed.
const ASK: Duration = Duration::from_secs(1);
/// Taking a node in costs the leader a question and two rounds of the log.
const JOIN: Duration = Duration::from_secs(10);
/// Between two rounds through the seeds.
const ROUND: Duration = Duration::from_millis(200);
const LONGEST_ROUND: Duration = Duration::from_secs(2);
/// After it was taken in, until the leader has sent something.
const ARRIVAL: Duration = Duration::from_secs(10);

/// Forms a group of this node only.
pub(super) async fn alone(consensus: &Consensus) {
    let cluster = consensus.local.cluster().unwrap_or_else(ClusterId::random);
    let me = Member { address: consensus.local.address.clone() };
    if let Err(why) = begin(consensus, cluster, vec![(consensus.local.node, me)]).await {
        consensus.fail(why);
    }
}

/// Goes through the seeds until this node is in a group. `founding`: it may form one with them.
pub(super) async fn with_seeds(consensus: &Consensus, seeds: &[String], founding: bool) {
    let mut pause = ROUND;
    loop {
        let mut standing = consensus.standing();
        if !consensus.store.is_pristine() {
            return;
        }
        let asked = ask(consensus, seeds).await;
        let outcome = match consider(consensus, seeds, &asked, founding) {
            Step::Form => form(consensus, seeds, asked).await,
            Step::Join(at) => join(consensus, &at).await,
            Step::Wait(why) => Err(why),
        };
        match outcome {
            Ok(()) => {
                // The first entry or snapshot of the leader moves the standing.
                let arrived = standing.wait_for(|_| !consensus.store.is_pristine());
                let _ = tokio::time::timeout(ARRIVAL, arrived).await;
                pause = ROUND;
            }
            Err(why) => {
                consensus.membership.wait_for(why);
                // Others form the group, or take this node in, while it waits.
                let arrived = standing.wait_for(|_| !consensus.store.is_pristine());
                let _ = tokio::time::timeout(pause, arrived).await;
                pause = (pause * 2).min(LONGEST_ROUND);
            }
        }
    }
}

type Asked = Vec<(String, Result<Probed, RpcError>)>;

/// Asks every seed but this node itself.
async fn ask(consensus: &Consensus, seeds: &[String]) -> Asked {
    let others = seeds.iter().filter(|seed| **seed != consensus.local.address);
    join_all(others.map(|seed| async move {
        let to = Destination::address(seed.as_str());
        let answer = match consensus.transport.call(&to, Lane::Consensus, Request::Probe, ASK).await {
            Ok(Response::Probed(probed)) => Ok(probed),
            Ok(_) => Err(RpcError::Codec(format!("{seed} gave an answer of another kind"))),
            Err(e) => Err(e),
        };
        (seed.clone(), answer)
    }))
    .await
}

enum Step {
    Form,
    /// There is a group; that one knows it.
    Join(String),
    Wait(String),
}

fn consider(consensus: &Consensus, seeds: &[String], asked: &Asked, founding: bool) -> Step {
    // Who remembers a group with a leader first, who remembers one at all second.
    let remembers = asked.iter().filter_map(|(seed, answer)| answer.as_ref().ok().map(|p| (seed, p)));
    let remembers = remembers.filter(|(_, p)| !p.pristine).max_by_key(|(_, p)| p.leader.is_some());
    if let Some((seed, probed)) = remembers {
        return match &probed.leader {
            Some((_, address)) => Step::Join(address.clone()),
            None => Step::Wait(format!(
                "{seed} belongs to cluster {}, which has no leader at the moment: start the majority of its voters",
                probed.cluster.map_or_else(|| "?".to_owned(), |c| c.to_string())
            )),
        };
    }
    let missing: Vec<String> =
        asked.iter().filter_map(|(_, answer)| answer.as_ref().err().map(ToString::to_string)).collect();
    if !founding {
        return Step::Wait(match missing.is_empty() {
            true => format!("none of {} is in a group yet", seeds.join(", ")),
            false => format!("no group was found at {}: {}", seeds.join(", "), missing.join("; ")),
        });
    }
    if !missing.is_empty() {
        return Step::Wait(format!(
            "a group is formed only when all of {} are there, since one that is missing may remember a group: {}",
            seeds.join(", "),
            missing.join("; ")
        ));
    }
    let mut sorted = seeds.to_vec();
    sorted.sort();
    for (seed, answer) in asked {
        let Ok(probed) = answer else { continue };
        if probed.seeds != sorted {
            return Step::Wait(format!(
                "the seed lists differ: {seed} has {}, this node has {}; make thalweg.seeds the same everywhere",
                if probed.seeds.is_empty() { "none".to_owned() } else { probed.seeds.join(", ") },
                sorted.join(", ")
            ));
        }
        if probed.node == consensus.local.node {
            return Step::Wait(format!(
                "{seed} is this node itself (or a copy of its data directory), whose address is {}; write every node \
                 once into thalweg.seeds, as thalweg.rpc.advertised has it",
                consensus.local.address
            ));
        }
    }
    match sorted.first() {
        Some(first) if *first == consensus.local.address => Step::Form,
        Some(_) if !sorted.contains(&consensus.local.address) => Step::Wait(format!(
            "this node's address {} is not among its seeds {}; a node can form a group only as one of them",
            consensus.local.address,
            sorted.join(", ")
        )),
        Some(first) => Step::Wait(format!("{first} is about to form the group")),
        None => Step::Form,
    }
}

/// Every seed is there and empty, and this one is the first.
async fn form(consensus: &Consensus, seeds: &[String], asked: Asked) -> Result<(), String> {
    let mut members = BTreeMap::from([(consensus.local.node, Member { address: consensus.local.address.clone() })]);
    for (seed, answer) in asked {
        let probed = answer.map_err(|e| e.to_string())?;
        if members.insert(probed.node, Member { address: seed.clone() }).is_some() {
            return Err(format!(
                "{seed} answers as node {}, like another seed: the data directory was copied",
                probed.node
            ));
        }
    }
    let cluster = consensus.local.cluster().unwrap_or_else(ClusterId::random);
    let members: Vec<(NodeId, Member)> = members.into_iter().collect();
    let adopt = Adopt { cluster, members: members.clone() };
    for seed in seeds.iter().filter(|seed| **seed != consensus.local.address) {
        let to = Destination::address(seed.as_str());
        match consensus.transport.call(&to, Lane::Consensus, Request::Adopt(adopt.clone()), ASK).await {
            Ok(Response::Adopted) => {}
            Ok(Response::Failed(failure)) => return Err(format!("{seed} does not join in: {failure}")),
            Ok(_) => return Err(format!("{seed} gave an answer of another kind")),
            Err(e) => return Err(format!("{seed} does not join in: {e}")),
        }
    }
    begin(consensus, cluster, members).await
}

/// Writes the first entry of the group's log.
async fn begin(consensus: &Consensus, cluster: ClusterId, members: Vec<(NodeId, Member)>) -> Result<(), String> {
    belong(consensus, cluster).await?;
    let members: BTreeMap<NodeId, Member> = members.into_iter().collect();
    let count = members.len();
    match consensus.raft.initialize(members).await {
        Ok(()) => {
            tracing::info!(%cluster, nodes = count, "formed a group");
            Ok(())
        }
        // Somebody was faster: there is a group.
        Err(RaftError::APIError(InitializeError::NotAllowed(_))) => Ok(()),
        Err(e) => Err(format!("the group cannot be formed: {e}")),
    }
}

/// Asks the leader at `address`, or the one it names, to take this node in.
async fn join(consensus: &Consensus, address: &str) -> Result<(), String> {
    let mut to = Destination::address(address);
    let request = Join { node: consensus.local.node, address: consensus.local.address.clone() };
    for _ in 0..3 {
        match consensus.transport.call(&to, Lane::Consensus, Request::Join(request.clone()), JOIN).await {
            Ok(Response::Joined { cluster }) => {
                tracing::info!(%cluster, "joined a group");
                return belong(consensus, cluster).await;
            }
            Ok(Response::Failed(Failure::NotLeader { leader: Some((node, address)) })) => {
                to = Destination::node(node, address);
            }
            Ok(Response::Failed(failure)) => return Err(format!("{to} does not take this node in: {failure}")),
            Ok(_) => return Err(format!("{to} gave an answer of another kind")),
            Err(e) => return Err(e.to_string()),
        }
    }
    Err("the leader changes all the time".into())
}

async fn belong(consensus: &Consensus, cluster: ClusterId) -> Result<(), String> {
    if consensus.local.cluster() == Some(cluster) {
        return Ok(());
    }
    consensus.store.set_cluster(cluster).await.map_err(|e| e.to_string())?;
    consensus.local.set_cluster(Some(cluster));
    // The connections so far introduced a node without a cluster.
    consensus.transport.reset();
    Ok(())
}

impl Consensus {
    /// A seed asks this node to give its word for the cluster it forms.
    pub(crate) async fn adopt(&self, caller: &Caller, adopt: Adopt) -> Result<(), Failure> {
        let no = |why: String| Err(Failure::Refused(why));
        let crate::consensus::Formation::Found { seeds } = &self.settings.formation else {
            return no("it is not configured to form a group (thalweg.seeds, thalweg.join)".into());
        };
        if !self.store.is_pristine() {
            return no("it is in a group already".into());
        }
        let mut mine = seeds.clone();
        mine.sort();
        let mut theirs: Vec<&str> = adopt.members.iter().map(|(_, m)| m.address.as_str()).collect();
        theirs.sort_unstable();
        if mine != theirs {
            return no(format!("the seed lists differ: it has {}", mine.join(", ")));
        }
        let listed = |node: NodeId| adopt.members.iter().find(|(n, _)| *n == node).map(|(_, m)| m.address.as_str());
        if listed(self.local.node) != Some(&self.local.address) {
            return no(format!("it is node {} at {}", self.local.node, self.local.address));
        }
        if mine.first().map(String::as_str) != listed(caller.node) {
            return no("only the first of the seeds forms the group".into());
        }
        let began = Instant::now();
        belong(self, adopt.cluster).await.map_err(Failure::Refused)?;
        tracing::info!(cluster = %adopt.cluster, by = caller.node, took = ?began.elapsed(), "adopted a cluster");
        Ok(())
    }
}

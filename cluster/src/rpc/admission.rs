//! Who may open a connection: the hello of the caller, and the answer in words for operators.
//!
//! Invariants: a node talks only to nodes of its own cluster (or to nodes that have none yet), only
//! to the node it meant, and never to two processes that claim one identity.
//!
//! It does not: authenticate; with mutual TLS the certificate has done that before.

use std::collections::HashMap;
use std::fmt;

use bincode::{Decode, Encode};

use super::transport::{Caller, ClusterId, Lane, Local};
use crate::raft::unit::NodeId;

/// What this build can do that an older one may not. Appended, never reworded.
pub const PROVIDED: &[&str] = &["rpc-1"];
/// What this build cannot do without.
pub const REQUIRED: &[&str] = &["rpc-1"];

#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Hello {
    pub cluster: Option<ClusterId>,
    /// The caller holds something of that cluster and cannot change it any more.
    pub settled: bool,
    pub node: NodeId,
    pub incarnation: u64,
    pub address: String,
    pub lane: Lane,
    /// The node the caller means.
    pub wanted: Option<NodeId>,
    /// Version of the build, for people.
    pub version: String,
    pub provides: Vec<String>,
    pub requires: Vec<String>,
}

impl Hello {
    pub fn new(local: &Local, lane: Lane, wanted: Option<NodeId>) -> Self {
        Self {
            cluster: local.cluster(),
            settled: local.is_settled(),
            node: local.node,
            incarnation: local.incarnation,
            address: local.address.clone(),
            lane,
            wanted,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            provides: PROVIDED.iter().map(|&f| f.to_owned()).collect(),
            requires: REQUIRED.iter().map(|&f| f.to_owned()).collect(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum Welcome {
    Admitted { node: NodeId, incarnation: u64, cluster: Option<ClusterId> },
    Refused(Refusal),
}

#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum Refusal {
    OtherCluster {
        yours: ClusterId,
        mine: ClusterId,
    },
    /// The caller meant another node.
    NotThisNode {
        wanted: NodeId,
        found: NodeId,
    },
    /// The caller has the identity of the node it calls.
    SameIdentity {
        node: NodeId,
    },
    /// Another process with this identity is connected.
    IdentityInUse {
        node: NodeId,
        other_address: String,
    },
    /// A later start of this node has been seen.
    OldIncarnation {
        node: NodeId,
        incarnation: u64,
        seen: u64,
    },
    /// The side that refuses lacks something.
    Lacks {
        features: Vec<String>,
        version: String,
    },
    /// The caller lacks something.
    MustHave {
        features: Vec<String>,
        version: String,
    },
    /// Too many connections.
    Busy,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OtherCluster { yours, mine } => write!(
                f,
                "it belongs to cluster {mine} and this node to cluster {yours}; check thalweg.seeds, or delete the \
                 data directory of the node that shall change the cluster"
            ),
            Self::NotThisNode { wanted, found } => {
                write!(f, "node {wanted} was expected there, but node {found} answers")
            }
            Self::SameIdentity { node } => write!(
                f,
                "it has the same node id {node}: the data directory was copied, or the seed list leads back to this \
                 node; delete the copied data directory"
            ),
            Self::IdentityInUse { node, other_address } => write!(
                f,
                "another process with node id {node} is running at {other_address}: the data directory was copied; \
                 delete the copy, it will join as a new node"
            ),
            Self::OldIncarnation { node, incarnation, seen } => write!(
                f,
                "node {node} says it is at start number {incarnation}, but start number {seen} was seen: an old copy of \
                 its data directory was put back; delete it, the node will join as a new one"
            ),
            Self::Lacks { features, version } => {
                write!(f, "it (version {version}) lacks {}, which this node needs; upgrade it", features.join(", "))
            }
            Self::MustHave { features, version } => write!(
                f,
                "this node lacks {}, which the other (version {version}) needs; upgrade this node",
                features.join(", ")
            ),
            Self::Busy => f.write_str("it has too many connections"),
        }
    }
}

/// The identities that call this node.
#[derive(Debug, Default)]
pub struct Callers {
    seen: HashMap<NodeId, Seen>,
}

#[derive(Debug)]
struct Seen {
    incarnation: u64,
    address: String,
    /// Connections open now.
    open: usize,
}

impl Callers {
    /// Admits a caller, or says why not. Every admission is followed by one [`Callers::left`].
    pub fn admit(&mut self, local: &Local, hello: &Hello) -> Result<Caller, Refusal> {
        let version = env!("CARGO_PKG_VERSION").to_owned();
        let lacking = missing(&hello.requires, PROVIDED.iter().copied());
        if !lacking.is_empty() {
            return Err(Refusal::Lacks { features: lacking, version });
        }
        let must: Vec<String> = REQUIRED.iter().map(|&f| f.to_owned()).collect();
        let lacking = missing(&must, hello.provides.iter().map(String::as_str));
        if !lacking.is_empty() {
            return Err(Refusal::MustHave { features: lacking, version });
        }
        if let Some(wanted) = hello.wanted.filter(|wanted| *wanted != local.node) {
            return Err(Refusal::NotThisNode { wanted, found: local.node });
        }
        // A node that goes through its seed list calls itself: same identity, same start, same address.
        let myself = hello.node == local.node;
        if myself && (hello.incarnation != local.incarnation || hello.address != local.address) {
            return Err(Refusal::SameIdentity { node: local.node });
        }
        if let (Some(yours), Some(mine)) = (hello.cluster, local.cluster())
            && yours != mine
            && hello.settled
            && local.is_settled()
        {
            return Err(Refusal::OtherCluster { yours, mine });
        }
        let seen = self.seen.entry(hello.node).or_insert_with(|| Seen {
            incarnation: hello.incarnation,
            address: hello.address.clone(),
            open: 0,
        });
        if seen.address != hello.address && seen.open > 0 {
            return Err(Refusal::IdentityInUse { node: hello.node, other_address: seen.address.clone() });
        }
        if hello.incarnation < seen.incarnation {
            return Err(Refusal::OldIncarnation {
                node: hello.node,
                incarnation: hello.incarnation,
                seen: seen.incarnation,
            });
        }
        seen.incarnation = hello.incarnation;
        seen.address.clone_from(&hello.address);
        seen.open += 1;
        Ok(Caller {
            node: hello.node,
            incarnation: hello.incarnation,
            address: hello.address.clone(),
            cluster: hello.cluster,
        })
    }

    pub fn left(&mut self, node: NodeId) {
        if let Some(seen) = self.seen.get_mut(&node) {
            seen.open = seen.open.saturating_sub(1);
        }
    }
}

fn missing<'a>(wanted: &[String], have: impl Iterator<Item = &'a str> + Clone) -> Vec<String> {
    wanted.iter().filter(|w| !have.clone().any(|h| h == w.as_str())).cloned().collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    const X: ClusterId = ClusterId([1; 16]);
    const Y: ClusterId = ClusterId([2; 16]);

    fn server() -> Local {
        let local = Local::new(1, 5, "a:1", Some(X));
        local.settle();
        local
    }

    fn hello(node: NodeId, incarnation: u64, address: &str, cluster: Option<ClusterId>) -> Hello {
        let local = Local::new(node, incarnation, address, cluster);
        local.settle();
        Hello::new(&local, Lane::Consensus, None)
    }

    #[test]
    fn one_cluster_or_none_yet() {
        let mut callers = Callers::default();
        assert!(callers.admit(&server(), &hello(2, 1, "b:1", Some(X))).is_ok());
        assert!(callers.admit(&server(), &hello(3, 1, "c:1", None)).is_ok());
        let refusal = callers.admit(&server(), &hello(4, 1, "d:1", Some(Y))).unwrap_err();
        assert_eq!(refusal, Refusal::OtherCluster { yours: Y, mine: X });
        assert!(refusal.to_string().contains("thalweg.seeds"), "{refusal}");
        // Who holds nothing yet may still change its cluster.
        let pristine = Local::new(1, 5, "a:1", Some(X));
        assert!(callers.admit(&pristine, &hello(4, 1, "d:1", Some(Y))).is_ok());
    }

    #[test]
    fn the_node_that_was_meant() {
        let mut callers = Callers::default();
        let mut hello = hello(2, 1, "b:1", Some(X));
        hello.wanted = Some(1);
        assert!(callers.admit(&server(), &hello).is_ok());
        hello.wanted = Some(9);
        assert_eq!(callers.admit(&server(), &hello).unwrap_err(), Refusal::NotThisNode { wanted: 9, found: 1 });
    }

    #[test]
    fn copied_data_directories_are_told_apart() {
        let mut callers = Callers::default();
        // The copy of the node that is called itself; the node itself is let through.
        assert!(callers.admit(&server(), &hello(1, 5, "a:1", Some(X))).is_ok());
        assert_eq!(
            callers.admit(&server(), &hello(1, 5, "z:1", Some(X))).unwrap_err(),
            Refusal::SameIdentity { node: 1 }
        );
        // Two processes with one identity.
        assert!(callers.admit(&server(), &hello(2, 3, "b:1", Some(X))).is_ok());
        assert_eq!(
            callers.admit(&server(), &hello(2, 3, "z:1", Some(X))).unwrap_err(),
            Refusal::IdentityInUse { node: 2, other_address: "b:1".into() }
        );
        // The node has ended and comes back from elsewhere, later, and not with an older copy.
        callers.left(2);
        assert!(callers.admit(&server(), &hello(2, 4, "z:1", Some(X))).is_ok());
        callers.left(2);
        assert_eq!(
            callers.admit(&server(), &hello(2, 3, "z:1", Some(X))).unwrap_err(),
            Refusal::OldIncarnation { node: 2, incarnation: 3, seen: 4 }
        );
    }

    #[test]
    fn a_restart_is_admitted_while_the_old_connections_linger() {
        let mut callers = Callers::default();
        assert!(callers.admit(&server(), &hello(2, 3, "b:1", Some(X))).is_ok());
        assert!(callers.admit(&server(), &hello(2, 4, "b:1", Some(X))).is_ok());
    }

    #[test]
    fn builds_that_do_not_fit_are_refused_early() {
        let mut callers = Callers::default();
        let mut newer = hello(2, 1, "b:1", Some(X));
        newer.requires.push("time-travel".into());
        let refusal = callers.admit(&server(), &newer).unwrap_err();
        assert!(refusal.to_string().contains("time-travel"), "{refusal}");
        let mut older = hello(2, 1, "b:1", Some(X));
        older.provides.clear();
        assert!(matches!(callers.admit(&server(), &older).unwrap_err(), Refusal::MustHave { .. }));
    }
}

//! What kind of deployment answers, and facts about it.

use std::sync::Arc;

use bson::{Document, Timestamp, doc};
use mongodb::error::Result;
use mongodb::options::{ReadPreference, SelectionCriteria};
use mongodb::{Client, Database};

/// The server's name for "you are talking to a router".
const ROUTER: &str = "isdbgrid";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Cluster {
    ReplicaSet(Arc<str>),
    /// Behind routers, or behind a load balancer.
    Sharded,
    /// Has no change streams.
    Standalone,
}

impl Cluster {
    fn of(hello: &Document) -> Self {
        if let Ok(name) = hello.get_str("setName") {
            return Self::ReplicaSet(name.into());
        }
        // A load balancer announces its service instead of a router.
        if hello.get_str("msg").is_ok_and(|m| m == ROUTER) || hello.contains_key("serviceId") {
            return Self::Sharded;
        }
        Self::Standalone
    }
}

/// Asks any server of the deployment. One that belongs to a replica set not yet initiated answers
/// nothing useful; the driver does not choose it and the call times out.
pub(crate) async fn detect(client: &Client) -> Result<Cluster> {
    hello(&client.database("admin")).await.map(|reply| Cluster::of(&reply))
}

/// Cluster time of the last operation. `None`: the server does not tell.
pub(crate) async fn operation_time(db: &Database) -> Result<Option<Timestamp>> {
    Ok(hello(db).await?.get_timestamp("operationTime").ok())
}

async fn hello(db: &Database) -> Result<Document> {
    let any = || SelectionCriteria::ReadPreference(ReadPreference::Nearest { options: None });
    match db.run_command(doc! {"hello": 1}).selection_criteria(any()).await {
        // Servers before 5.0 may know the older name only.
        Err(e) if matches!(*e.kind, mongodb::error::ErrorKind::Command(_)) => {
            db.run_command(doc! {"isMaster": 1}).selection_criteria(any()).await
        }
        answer => answer,
    }
}

/// The server's version, e.g. `6.0.5`.
pub(crate) async fn version(client: &Client) -> Result<String> {
    let reply = client.database("admin").run_command(doc! {"buildInfo": 1}).await?;
    Ok(reply.get_str("version").unwrap_or("?").to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_told_apart_by_their_hello() {
        let member = doc! {"setName": "rs0", "isWritablePrimary": false, "secondary": true};
        assert_eq!(Cluster::of(&member), Cluster::ReplicaSet("rs0".into()));
        assert_eq!(Cluster::of(&doc! {"msg": "isdbgrid", "isWritablePrimary": true}), Cluster::Sharded);
        assert_eq!(Cluster::of(&doc! {"isWritablePrimary": true}), Cluster::Standalone);
    }
}

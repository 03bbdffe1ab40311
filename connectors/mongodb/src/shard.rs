//! Shards of a cluster as `config.shards` lists them, and the connection string of each.
//!
//! A shard's identity is its replica set's name. Shard connection strings are built where they are
//! used and never stored: they may carry the router's credentials.

use std::collections::BTreeMap;
use std::sync::Arc;

use bson::Document;
use futures::TryStreamExt;
use mongodb::Client;
use mongodb::error::Result;
use tracing::warn;

/// Options of the router's connection string that say who the client is: left out when
/// `mongodb.user` names the user.
const IDENTITY: &[&str] = &["authsource", "authmechanism", "authmechanismproperties"];

/// One replica set of a sharded cluster.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Shard {
    /// Replica set name: what offsets and tasks are keyed by.
    pub(crate) name: Arc<str>,
    /// `_id` of the shard: what some older offsets are keyed by.
    pub(crate) id: Arc<str>,
    /// `host:port` list, comma-separated.
    pub(crate) hosts: Arc<str>,
}

impl Shard {
    /// From the fields `_id` and `host` of a shard document; the latter is `rsA/h1:27018,h2:27018`.
    /// `None`: no replica set.
    pub(crate) fn parse(id: &str, host: &str) -> Option<Self> {
        let (name, hosts) = host.trim().split_once('/')?;
        let complete = !name.is_empty() && !hosts.is_empty();
        complete.then(|| Self { name: name.into(), id: id.into(), hosts: hosts.into() })
    }

    /// The connection string: `params` is appended as it is; what the router's string says about
    /// users and TLS is carried over unless `params` or the property `mongodb.user` supplies it.
    pub(crate) fn uri(&self, router: &str, params: &str, user_is_set: bool) -> String {
        let (user_info, options, srv) = split(router);
        let mut uri = String::from("mongodb://");
        if let Some(user_info) = user_info.filter(|_| !user_is_set) {
            uri.push_str(user_info);
            uri.push('@');
        }
        uri.push_str(&self.hosts);
        let mut uri = with_replica_set(&uri, &self.name);
        uri = with_params(uri, params);
        let supplied: Vec<String> = names(params).collect();
        for option in options.split('&').filter(|o| !o.is_empty()) {
            let name = option.split('=').next().unwrap_or_default().to_ascii_lowercase();
            let identity = IDENTITY.contains(&name.as_str());
            let tls = name == "ssl" || name.starts_with("tls");
            if (tls || identity && !user_is_set) && !supplied.contains(&name) {
                uri = with_params(uri, option);
            }
        }
        let tls_is_decided = |o: &str| names(o).any(|n| n == "tls" || n == "ssl");
        if srv && !tls_is_decided(options) && !tls_is_decided(params) {
            uri = with_params(uri, "tls=true");
        }
        uri
    }
}

/// Lower-case option names of a query string.
fn names(options: &str) -> impl Iterator<Item = String> {
    options.split('&').filter_map(|o| o.split('=').next()).filter(|n| !n.is_empty()).map(str::to_ascii_lowercase)
}

/// `(user info, options, is SRV)` of a connection string.
fn split(uri: &str) -> (Option<&str>, &str, bool) {
    let (scheme, rest) = uri.split_once("://").unwrap_or(("", uri));
    let (before, options) = rest.split_once('?').unwrap_or((rest, ""));
    let user_info = before.rsplit_once('@').map(|(user_info, _)| user_info);
    (user_info, options, scheme.eq_ignore_ascii_case("mongodb+srv"))
}

/// Appends `replicaSet=<name>`, percent-encoded.
pub(crate) fn with_replica_set(uri: &str, name: &str) -> String {
    let mut encoded = String::from("replicaSet=");
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    with_params(uri.to_owned(), &encoded)
}

/// Appends a raw parameter string with the separator that the end of `uri` asks for.
fn with_params(mut uri: String, params: &str) -> String {
    let params = params.trim();
    if params.is_empty() {
        return uri;
    }
    uri.push_str(match uri.as_str() {
        u if u.ends_with('?') => "",
        u if u.ends_with('/') => "?",
        u if !u.contains('?') => "/?",
        _ => "&",
    });
    uri.push_str(params);
    uri
}

/// The usable shards of a cluster in the order of their names, asked through a router.
///
/// Needs the privilege to read `config.shards`.
pub(crate) async fn read_shards(router: &Client) -> Result<Vec<Shard>> {
    let documents = router.database("config").collection::<Document>("shards").find(Document::new()).await?;
    let documents: Vec<Document> = documents.try_collect().await?;
    let mut shards = BTreeMap::new();
    for document in documents {
        let id = document.get_str("_id").unwrap_or("?");
        match Shard::parse(id, document.get_str("host").unwrap_or_default()) {
            Some(shard) => drop(shards.insert(shard.name.clone(), shard)),
            None => warn!(shard = id, "shard is not a valid replica set, skipped"),
        }
    }
    Ok(shards.into_values().collect())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const ROUTER: &str = "mongodb://r1:27017/";

    #[test]
    fn connection_strings_of_shards() {
        let uri = |host: &str, params: &str| Shard::parse("s", host).map(|s| s.uri(ROUTER, params, false));
        assert_eq!(uri("rsA/h1:27018,h2:27018", "").as_deref(), Some("mongodb://h1:27018,h2:27018/?replicaSet=rsA"));
        assert_eq!(
            uri("rsA/h1:27018", "readPreference=secondaryPreferred&maxStalenessSeconds=90").as_deref(),
            Some("mongodb://h1:27018/?replicaSet=rsA&readPreference=secondaryPreferred&maxStalenessSeconds=90")
        );
        for unusable in ["h9:27018", "", "  ", "/h1:27018", "rsA/"] {
            assert_eq!(uri(unusable, "w=1"), None, "{unusable}");
        }
    }

    #[test]
    fn the_replica_set_goes_where_the_end_asks_for_it() {
        for (uri, expected) in [
            ("mongodb://h/?", "mongodb://h/?replicaSet=r%2Fs%201"),
            ("mongodb://h/", "mongodb://h/?replicaSet=r%2Fs%201"),
            ("mongodb://h", "mongodb://h/?replicaSet=r%2Fs%201"),
            ("mongodb://h/?a=b", "mongodb://h/?a=b&replicaSet=r%2Fs%201"),
        ] {
            assert_eq!(with_replica_set(uri, "r/s 1"), expected);
        }
    }

    #[test]
    fn users_and_tls_of_the_router_reach_the_shards() {
        let shard = Shard::parse("s", "rsA/h1:1").unwrap();
        let router = "mongodb://u:p%40@r1:1/app?authSource=x&tls=true&tlsCAFile=/ca.pem&readPreference=secondary";
        assert_eq!(
            shard.uri(router, "", false),
            "mongodb://u:p%40@h1:1/?replicaSet=rsA&authSource=x&tls=true&tlsCAFile=/ca.pem"
        );
        assert_eq!(
            shard.uri(router, "AuthSource=y&tls=false", false),
            "mongodb://u:p%40@h1:1/?replicaSet=rsA&AuthSource=y&tls=false&tlsCAFile=/ca.pem"
        );
        assert_eq!(
            shard.uri(router, "", true),
            "mongodb://h1:1/?replicaSet=rsA&tls=true&tlsCAFile=/ca.pem",
            "mongodb.user supplies the user"
        );
        assert_eq!(
            shard.uri("mongodb+srv://u:p@c.example.net", "", false),
            "mongodb://u:p@h1:1/?replicaSet=rsA&tls=true",
            "SRV means TLS"
        );
        assert_eq!(
            shard.uri("mongodb+srv://u:p@c.example.net/?tls=false", "", false),
            "mongodb://u:p@h1:1/?replicaSet=rsA&tls=false"
        );
    }
}

//! From a configuration to a client of the driver.
//!
//! Settings come in three layers, the later winning: single properties, `mongodb.user` and its
//! companions, and everything that the connection string says explicitly. One client serves one
//! generation of one partition, so its pool is small and dies with it. Nothing here connects: the
//! driver does so with the first operation. Connection strings and passwords are never logged.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bson::oid::ObjectId;
use mongodb::event::EventHandler;
use mongodb::event::sdam::{SdamEvent, TopologyDescription};
use mongodb::options::{ClientOptions, ConnectionString, Credential, ServerAddress, Tls, TlsOptions};
use mongodb::{Client, ServerType};
use parking_lot::Mutex;
use thalweg_core::pkcs12::Purpose;
use thalweg_core::progress::PartitionProgress;

use crate::keystore::PemFile;
use crate::options::{ConnectionConfig, Store, StoreFormat};

/// Beside the readers of a snapshot: the stream, and short commands.
const SPARE_CONNECTIONS: u32 = 4;

/// Options of connection strings that other drivers know and this one does not. They tune what the
/// connector does differently anyway, so a string that has them still works.
const FOREIGN_OPTIONS: &[&str] =
    &["compressors", "maxlifetimems", "timeoutms", "waitqueuemultiple", "zlibcompressionlevel"];

/// Places where systems keep the certificates they trust.
const SYSTEM_ROOTS: &[&str] = &[
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// Parses a connection string, leaving out what only other drivers know.
pub(crate) fn parse(uri: &str) -> mongodb::error::Result<ConnectionString> {
    let uri = uri.trim();
    let Some((address, options)) = uri.split_once('?') else { return ConnectionString::parse(uri) };
    let known = |option: &&str| {
        let name = option.split('=').next().unwrap_or_default().to_ascii_lowercase();
        !FOREIGN_OPTIONS.contains(&name.as_str())
    };
    let options: Vec<&str> = options.split('&').filter(known).collect();
    if options.is_empty() {
        return ConnectionString::parse(address);
    }
    ConnectionString::parse(format!("{address}?{}", options.join("&")))
}

/// What the TLS properties ask for that cannot be done, as property and text. Without I/O.
pub(crate) fn check_tls(config: &ConnectionConfig) -> Vec<(&'static str, String)> {
    let mut faults = Vec::new();
    let stores = [
        ("mongodb.ssl.keystore.type", "mongodb.ssl.keystore", &config.tls.keystore),
        ("mongodb.ssl.truststore.type", "mongodb.ssl.truststore", &config.tls.truststore),
    ];
    for (format_property, property, store) in stores {
        if store.as_ref().is_none_or(|s| s.format != StoreFormat::Jks) {
            continue;
        }
        let advice = format!(
            "JKS stores are not read. Convert it (keytool -importkeystore -srckeystore store.jks -destkeystore \
             store.p12 -deststoretype PKCS12), set {property} to the new file and {format_property} to PKCS12"
        );
        faults.push((format_property, advice));
    }
    if config.tls.allow_invalid_hostnames {
        let advice = "The check of the host name cannot be left out by itself. Use a certificate that names the host, \
                      or leave out all checks with tlsAllowInvalidCertificates=true in mongodb.connection.string";
        faults.push(("mongodb.ssl.invalid.hostname.allowed", advice.to_owned()));
    }
    faults
}

/// Builds the client for `uri`: the configured connection string, or that of one shard.
///
/// `readers` is how many cursors run at once; `watched` counts elections. Errors are the driver's: a
/// string it cannot read, a certificate file it cannot use, a name that DNS does not know.
pub(crate) async fn client(
    config: &ConnectionConfig,
    uri: &str,
    readers: usize,
    watched: Option<Arc<PartitionProgress>>,
) -> mongodb::error::Result<Client> {
    let mut string = parse(uri)?;
    // The driver refuses the option; see `socket_timeout`.
    #[allow(deprecated)]
    {
        string.socket_timeout = None;
    }
    let mut options = ClientOptions::parse(string).await?;
    options.connect_timeout = options.connect_timeout.or(Some(config.connect_timeout));
    options.server_selection_timeout = options.server_selection_timeout.or(Some(config.server_selection_timeout));
    options.heartbeat_freq = options.heartbeat_freq.or(Some(config.heartbeat_frequency));
    options.app_name =
        options.app_name.or_else(|| Some(concat!("thalweg-mongodb/", env!("CARGO_PKG_VERSION")).to_owned()));
    let pool = u32::try_from(readers).unwrap_or(1).saturating_add(SPARE_CONNECTIONS);
    options.max_pool_size = options.max_pool_size.or(Some(pool));
    if options.credential.is_none() {
        options.credential = config.user.as_ref().map(|user| {
            let mut credential = Credential::default();
            credential.username = Some(user.clone());
            credential.password = config.password.as_ref().map(|p| p.reveal().to_owned());
            credential.source = Some(config.auth_source.clone());
            credential
        });
    }
    let stores = Stores::read(config).await?;
    options.tls = tls(config, &stores, options.tls);
    if let Some(progress) = watched {
        let elections = Elections { progress, last: Mutex::new(None) };
        options.sdam_event_handler = Some(EventHandler::callback(move |event| elections.see(&event)));
    }
    // Reads the files of the stores.
    let client = Client::with_options(options);
    drop(stores);
    client
}

/// The files of the key stores, while a client is being built.
#[derive(Default)]
struct Stores {
    identity: Option<PemFile>,
    authorities: Option<PemFile>,
}

impl Stores {
    async fn read(config: &ConnectionConfig) -> mongodb::error::Result<Self> {
        let file = async |store: &Option<Store>, purpose: Purpose| match store {
            Some(store) => PemFile::of(store.clone(), purpose).await.map(Some).map_err(mongodb::error::Error::custom),
            None => Ok(None),
        };
        Ok(Self {
            identity: file(&config.tls.keystore, Purpose::Identity).await?,
            authorities: file(&config.tls.truststore, Purpose::Authorities).await?,
        })
    }
}

/// Limit for one operation: `socketTimeoutMS` of the connection string, else the property.
pub(crate) fn socket_timeout(config: &ConnectionConfig, uri: &str) -> Option<Duration> {
    #[allow(deprecated)]
    let explicit = parse(uri).ok().and_then(|s| s.socket_timeout);
    Some(explicit.unwrap_or(config.socket_timeout)).filter(|t| !t.is_zero())
}

fn tls(config: &ConnectionConfig, stores: &Stores, explicit: Option<Tls>) -> Option<Tls> {
    let mut options = match explicit {
        Some(Tls::Enabled(options)) => options,
        None if config.tls.enabled => TlsOptions::default(),
        other => return other,
    };
    let path = |file: &Option<PemFile>| file.as_ref().map(|f| f.path().to_owned());
    options.cert_key_file_path = options.cert_key_file_path.or_else(|| path(&stores.identity));
    options.ca_file_path = options.ca_file_path.or_else(|| path(&stores.authorities)).or_else(system_roots);
    Some(Tls::Enabled(options))
}

/// The file with the system's own certificates; `None`: the driver's built-in list serves.
fn system_roots() -> Option<PathBuf> {
    let named = std::env::var_os("SSL_CERT_FILE").map(PathBuf::from);
    named.into_iter().chain(SYSTEM_ROOTS.iter().map(PathBuf::from)).find(|path| Path::is_file(path))
}

/// Counts the changes of primary that the driver's monitor reports.
struct Elections {
    progress: Arc<PartitionProgress>,
    last: Mutex<Option<Primary>>,
}

/// A primary is another one when its term differs, even on the same host.
#[derive(Debug, PartialEq, Eq)]
struct Primary {
    address: ServerAddress,
    term: Option<ObjectId>,
}

impl Elections {
    fn see(&self, event: &SdamEvent) {
        let SdamEvent::TopologyDescriptionChanged(event) = event else { return };
        let Some(now) = primary(&event.new_description) else { return };
        let mut last = self.last.lock();
        if last.as_ref().is_some_and(|last| *last != now) {
            PartitionProgress::count(&self.progress.elections, 1);
            tracing::info!(primary = %now.address, "another primary was elected");
        }
        *last = Some(now);
    }
}

fn primary(topology: &TopologyDescription) -> Option<Primary> {
    let servers = topology.servers();
    let (address, _) = servers.into_iter().find(|(_, server)| server.server_type() == ServerType::RsPrimary)?;
    Some(Primary { address: address.clone(), term: topology.max_election_id() })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use thalweg_config::{Properties, Secret};

    use super::*;
    use crate::options::MongoConfig;

    fn config(pairs: &[(&str, &str)]) -> ConnectionConfig {
        let mut properties = Properties::from([("topic.prefix", "p"), ("mongodb.connection.string", "mongodb://h/")]);
        for (name, value) in pairs {
            properties.set(*name, *value);
        }
        MongoConfig::parse(&properties).unwrap().connection
    }

    #[test]
    fn strings_written_for_other_drivers_are_read() {
        let string = parse(" mongodb://h/?compressors=zlib&replicaSet=a&maxLifeTimeMS=5&socketTimeoutMS=7 ").unwrap();
        assert_eq!(string.replica_set.as_deref(), Some("a"));
        assert!(parse("mongodb://h/?compressors=zlib").is_ok());
        assert!(parse("mongodb://h/?nonsense=1").is_err());
        assert!(parse("h:27017").is_err());
    }

    #[test]
    fn the_string_wins_over_the_timeout_property() {
        let config = config(&[("mongodb.socket.timeout.ms", "20")]);
        assert_eq!(socket_timeout(&config, "mongodb://h/"), Some(Duration::from_millis(20)));
        assert_eq!(socket_timeout(&config, "mongodb://h/?socketTimeoutMS=7"), Some(Duration::from_millis(7)));
        assert_eq!(socket_timeout(&config, "mongodb://h/?socketTimeoutMS=0"), None);
    }

    #[tokio::test]
    async fn later_layers_win() {
        let user = config(&[("mongodb.user", "u"), ("mongodb.password", "secret"), ("mongodb.ssl.enabled", "true")]);
        assert_eq!(user.password, Some(Secret::new("secret")));
        // The client exposes no options; that they are accepted together is what can be seen.
        client(&user, "mongodb://h/?connectTimeoutMS=5", 1, None).await.unwrap();
        client(&user, "mongodb://other:pw@h/?authSource=x&tls=false", 1, None).await.unwrap();
        assert_eq!(tls(&user, &Stores::default(), Some(Tls::Disabled)), Some(Tls::Disabled));
        let pem = std::env::temp_dir();
        let explicit = TlsOptions::builder().ca_file_path(pem.clone()).build();
        let Some(Tls::Enabled(merged)) = tls(&user, &Stores::default(), Some(Tls::Enabled(explicit))) else {
            unreachable!()
        };
        assert_eq!(merged.ca_file_path, Some(pem));
        assert_eq!(tls(&config(&[]), &Stores::default(), None), None);
    }

    #[test]
    fn what_cannot_be_done_is_refused_with_advice() {
        let file = std::env::current_exe().unwrap().display().to_string();
        let faults = check_tls(&config(&[
            ("mongodb.ssl.keystore", &file),
            ("mongodb.ssl.truststore", &file),
            ("mongodb.ssl.truststore.type", "jks"),
            ("mongodb.ssl.invalid.hostname.allowed", "true"),
        ]));
        let properties: Vec<&str> = faults.iter().map(|(p, _)| *p).collect();
        assert_eq!(properties, ["mongodb.ssl.truststore.type", "mongodb.ssl.invalid.hostname.allowed"]);
        assert!(faults[0].1.contains("keytool"));
        assert!(
            check_tls(&config(&[("mongodb.ssl.keystore", &file), ("mongodb.ssl.keystore.type", "PEM")])).is_empty()
        );
    }
}

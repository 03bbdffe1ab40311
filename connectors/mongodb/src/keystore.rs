//! PKCS12 stores of the Java world as the PEM files that the driver reads.
//!
//! A store is decrypted in memory. What is in it lies in a temporary file that only its owner may read,
//! and only while a client is being built: the driver reads it then and never again. It does not: read
//! JKS, which is refused at validation with advice.

use std::fmt;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;
use thalweg_core::pkcs12::{self, Purpose, Unreadable};

use crate::options::{Store, StoreFormat};

/// The property that names the store.
pub(crate) fn property(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Identity => "mongodb.ssl.keystore",
        Purpose::Authorities => "mongodb.ssl.truststore",
    }
}

/// A store that cannot be used; travels inside the driver's error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unusable {
    pub(crate) purpose: Purpose,
    path: String,
    why: String,
}

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { purpose, path, why } = self;
        write!(f, "{} {path} cannot be used: {why}", property(*purpose))
    }
}

/// A file for the driver.
#[derive(Debug)]
pub(crate) enum PemFile {
    /// The user's own.
    Given(PathBuf),
    /// Made for the driver; deleted with this value.
    Made(NamedTempFile),
}

impl PemFile {
    /// A PEM file is taken as it is. Decrypting a store takes a while: not on a thread of the runtime.
    pub(crate) async fn of(store: Store, purpose: Purpose) -> Result<Self, Unusable> {
        if store.format == StoreFormat::Pem {
            return Ok(Self::Given(PathBuf::from(store.path)));
        }
        let path = store.path.clone();
        let made = tokio::task::spawn_blocking(move || Self::made_of(&store, purpose)).await;
        made.unwrap_or_else(|broken| Err(Unusable { purpose, path, why: format!("reading it broke off: {broken}") }))
    }

    fn made_of(store: &Store, purpose: Purpose) -> Result<Self, Unusable> {
        let unusable = |why: String| Unusable { purpose, path: store.path.clone(), why };
        let data = std::fs::read(&store.path).map_err(|e| unusable(e.to_string()))?;
        let password = store.password.as_ref().map_or("", |p| p.reveal());
        let text = pkcs12::pem(&data, password, purpose).map_err(|why| {
            unusable(match why {
                Unreadable::Closed(e) => format!(
                    "it is not a PKCS12 store that {}.password opens ({e}). Look at it with: keytool -list -storetype \
                     PKCS12 -keystore {}",
                    property(purpose),
                    store.path
                ),
                empty => format!("it {empty}"),
            })
        })?;
        let write = || -> std::io::Result<NamedTempFile> {
            let mut file = NamedTempFile::with_prefix("thalweg-")?;
            file.write_all(text.as_bytes())?;
            Ok(file)
        };
        let made = write().map_err(|e| {
            unusable(format!("no temporary file for the driver can be made in {}: {e}", std::env::temp_dir().display()))
        })?;
        Ok(Self::Made(made))
    }

    pub(crate) fn path(&self) -> &Path {
        match self {
            Self::Given(path) => path,
            Self::Made(file) => file.path(),
        }
    }
}

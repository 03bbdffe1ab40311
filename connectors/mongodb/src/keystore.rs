//! PKCS12 stores of the Java world as the PEM files that the driver reads.
//!
//! A store is decrypted in memory. What is in it lies in a temporary file that only its owner may read,
//! and only while a client is being built: the driver reads it then and never again. It does not: read
//! JKS, which is refused at validation with advice.

use std::fmt;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use p12_keystore::{KeyStore, KeyStoreEntry, Pkcs12ImportPolicy};
use tempfile::NamedTempFile;

use crate::options::{Store, StoreFormat};

/// What a store is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The client's own key, and the certificates that vouch for it.
    Identity,
    /// Certificates of the authorities that are trusted.
    Authorities,
}

impl Purpose {
    pub(crate) fn property(self) -> &'static str {
        match self {
            Self::Identity => "mongodb.ssl.keystore",
            Self::Authorities => "mongodb.ssl.truststore",
        }
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
        write!(f, "{} {path} cannot be used: {why}", purpose.property())
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
        let policy = match purpose {
            Purpose::Identity => Pkcs12ImportPolicy::Strict,
            // Also certificates that the store does not mark as trusted: OpenSSL never does.
            Purpose::Authorities => Pkcs12ImportPolicy::Raw,
        };
        let store = KeyStore::from_pkcs12(&data, password, policy).map_err(|e| {
            unusable(format!(
                "it is not a PKCS12 store that {}.password opens ({e}). Look at it with: keytool -list -storetype \
                 PKCS12 -keystore {}",
                purpose.property(),
                store.path
            ))
        })?;
        let text = match purpose {
            Purpose::Identity => identity(&store),
            Purpose::Authorities => authorities(&store),
        };
        let text = text.map_err(|why| unusable(why.to_owned()))?;
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

fn identity(store: &KeyStore) -> Result<String, &'static str> {
    let (_, chain) = store.private_key_chain().ok_or("it holds no private key with its certificate")?;
    let mut text = String::new();
    for certificate in chain.certs() {
        pem("CERTIFICATE", certificate.as_der(), &mut text);
    }
    pem("PRIVATE KEY", chain.key().as_der(), &mut text);
    Ok(text)
}

fn authorities(store: &KeyStore) -> Result<String, &'static str> {
    let mut text = String::new();
    for (_, entry) in store.entries() {
        if let KeyStoreEntry::Certificate(certificate) = entry {
            pem("CERTIFICATE", certificate.as_der(), &mut text);
        }
    }
    if text.is_empty() { Err("it holds no certificate") } else { Ok(text) }
}

/// Appends one section, in lines as RFC 7468 wants them.
fn pem(label: &str, der: &[u8], out: &mut String) {
    const LINE: usize = 64;
    let encoded = BASE64.encode(der);
    out.push_str(&format!("-----BEGIN {label}-----\n"));
    let mut rest = encoded.as_str();
    while !rest.is_empty() {
        let (line, behind) = rest.split_at(rest.len().min(LINE));
        out.push_str(line);
        out.push('\n');
        rest = behind;
    }
    out.push_str(&format!("-----END {label}-----\n"));
}

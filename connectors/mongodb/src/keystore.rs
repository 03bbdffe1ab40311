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

/// A file for the driver. Deleted with this value if it was made for it.
#[derive(Debug)]
pub(crate) struct PemFile {
    path: PathBuf,
    made: Option<NamedTempFile>,
}

impl PemFile {
    /// Reads the store, which blocks. A PEM file is taken as it is.
    pub(crate) fn of(store: &Store, purpose: Purpose) -> Result<Self, Unusable> {
        if store.format == StoreFormat::Pem {
            return Ok(Self { path: PathBuf::from(&store.path), made: None });
        }
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
        Ok(Self { path: made.path().to_owned(), made: Some(made) })
    }

    pub(crate) fn path(&self) -> &Path {
        self.made.as_ref().map_or(&self.path, NamedTempFile::path)
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

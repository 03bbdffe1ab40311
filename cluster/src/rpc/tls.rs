//! TLS between nodes: mutual, from PEM files.
//!
//! Invariants: both sides show a certificate that the CA file vouches for, and the certificate of
//! the node that is called bears the host of its address. The cryptography is ring's, named here,
//! so that no process-wide choice is needed.
//!
//! It does not: read Java key stores, or notice that a file has changed; restart the node for that.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// Where the PEM files are.
#[derive(Debug, Clone)]
pub struct TlsFiles {
    /// Certificates that vouch for the other nodes.
    pub ca: PathBuf,
    /// This node's certificate, followed by intermediate ones.
    pub certificate: PathBuf,
    pub key: PathBuf,
}

#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("cannot use {what} file {}: {why}; it must be PEM and readable by the user of this process", path.display())]
    File { what: &'static str, path: PathBuf, why: String },
    #[error("the certificate {} and the key {} do not make a usable identity: {why}", certificate.display(), key.display())]
    Identity { certificate: PathBuf, key: PathBuf, why: String },
    #[error("{host} in address {address} is neither a host name nor an IP address")]
    Name { host: String, address: String },
}

#[derive(Clone)]
pub struct Tls {
    pub(super) acceptor: TlsAcceptor,
    pub(super) connector: TlsConnector,
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tls")
    }
}

impl Tls {
    pub fn load(files: &TlsFiles) -> Result<Self, TlsError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut roots = RootCertStore::empty();
        for certificate in certificates("CA", &files.ca)? {
            roots.add(certificate).map_err(|e| file_error("CA", &files.ca, &e))?;
        }
        let roots = Arc::new(roots);
        let identity = certificates("certificate", &files.certificate)?;
        let key = PrivateKeyDer::from_pem_file(&files.key).map_err(|e| file_error("key", &files.key, &e))?;
        let unusable = |e: &dyn std::fmt::Display| TlsError::Identity {
            certificate: files.certificate.clone(),
            key: files.key.clone(),
            why: e.to_string(),
        };
        let verifier = WebPkiClientVerifier::builder_with_provider(roots.clone(), provider.clone())
            .build()
            .map_err(|e| file_error("CA", &files.ca, &e))?;
        let server = ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|e| unusable(&e))?
            .with_client_cert_verifier(verifier)
            .with_single_cert(identity.clone(), key.clone_key())
            .map_err(|e| unusable(&e))?;
        let client = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|e| unusable(&e))?
            .with_root_certificates(roots)
            .with_client_auth_cert(identity, key)
            .map_err(|e| unusable(&e))?;
        Ok(Self { acceptor: Arc::new(server).into(), connector: Arc::new(client).into() })
    }

    /// The name that the certificate of the node at `address` must bear.
    pub(super) fn server_name(address: &str) -> Result<ServerName<'static>, TlsError> {
        let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
        let host = host.trim_start_matches('[').trim_end_matches(']');
        ServerName::try_from(host.to_owned())
            .map_err(|_| TlsError::Name { host: host.to_owned(), address: address.to_owned() })
    }
}

pub(crate) fn certificates(what: &'static str, path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let found: Vec<_> = CertificateDer::pem_file_iter(path)
        .map_err(|e| file_error(what, path, &e))?
        .collect::<Result<_, _>>()
        .map_err(|e| file_error(what, path, &e))?;
    if found.is_empty() {
        return Err(file_error(what, path, &"it holds no certificate"));
    }
    Ok(found)
}

pub(crate) fn file_error(what: &'static str, path: &Path, why: &dyn std::fmt::Display) -> TlsError {
    TlsError::File { what, path: path.to_owned(), why: why.to_string() }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    #[test]
    fn names_are_hosts_or_addresses() {
        for good in ["node-1.example:7070", "10.0.0.1:7070", "[::1]:7070", "localhost"] {
            Tls::server_name(good).unwrap_or_else(|e| panic!("{good}: {e}"));
        }
        assert!(Tls::server_name("no blanks:7070").is_err());
    }

    #[test]
    fn unusable_files_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let files = TlsFiles {
            ca: dir.path().join("ca.pem"),
            certificate: dir.path().join("node.pem"),
            key: dir.path().join("node.key"),
        };
        let error = Tls::load(&files).unwrap_err().to_string();
        assert!(error.contains("ca.pem"), "{error}");
        std::fs::write(&files.ca, "nothing").unwrap();
        let error = Tls::load(&files).unwrap_err().to_string();
        assert!(error.contains("ca.pem") && error.contains("PEM"), "{error}");
    }
}

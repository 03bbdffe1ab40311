//! TLS of `https` listeners, from PEM files.

use std::sync::Arc;

use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use thalweg_config::node::{ClientAuth, RestTls};
use tokio_rustls::TlsAcceptor;

use crate::rpc::tls::{TlsError, certificates, file_error};

/// Reads key and certificates.
///
/// # Errors
/// A file that is missing or no PEM; a key that does not fit its certificate.
pub fn acceptor(tls: &RestTls) -> Result<TlsAcceptor, TlsError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let identity = certificates("key store", &tls.key_store)?;
    let key = PrivateKeyDer::from_pem_file(&tls.key_store).map_err(|e| file_error("key store", &tls.key_store, &e))?;
    let unusable = |e: &dyn std::fmt::Display| file_error("key store", &tls.key_store, e);
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|e| unusable(&e))?;
    let builder = match (&tls.trust_store, tls.client_auth) {
        (Some(path), ClientAuth::Requested | ClientAuth::Required) => {
            let mut roots = RootCertStore::empty();
            for certificate in certificates("trust store", path)? {
                roots.add(certificate).map_err(|e| file_error("trust store", path, &e))?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            let verifier =
                if tls.client_auth == ClientAuth::Requested { verifier.allow_unauthenticated() } else { verifier };
            builder.with_client_cert_verifier(verifier.build().map_err(|e| file_error("trust store", path, &e))?)
        }
        _ => builder.with_no_client_auth(),
    };
    let config = builder.with_single_cert(identity, key).map_err(|e| unusable(&e))?;
    Ok(Arc::new(config).into())
}

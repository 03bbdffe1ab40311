//! The server's certificate, and TLS as TDS 7.4 and TDS 8.0 want it.

use std::sync::Arc;

use anyhow::{Context, Result};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::version::{TLS12, TLS13};
use rustls::{ServerConfig, SupportedProtocolVersion};

/// Protocol that TDS 8.0 names in its TLS handshake.
const STRICT_PROTOCOL: &[u8] = b"tds/8.0";

/// A certificate with its key, in PEM.
#[derive(Clone)]
pub struct Certificate {
    /// The server's certificate, and those that lead to the authority's.
    pub chain: String,
    pub key: String,
}

impl Certificate {
    /// A certificate that nobody but itself signs, as SQL Server makes one when it is given none.
    pub fn self_signed(names: &[&str]) -> Result<Self> {
        let names = names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>();
        let pair = rcgen::generate_simple_self_signed(names).context("no certificate could be made")?;
        Ok(Self { chain: pair.cert.pem(), key: pair.signing_key.serialize_pem() })
    }
}

/// TLS of both kinds.
pub(crate) struct Tls {
    /// Inside of pre-login packets. TLS 1.3 is not offered there: its tickets come after the handshake,
    /// when nothing is wrapped in packets any more. [MS-TDS] "Encryption" likewise has TLS 1.3 for TDS 8.0 only.
    pub(crate) wrapped: Arc<ServerConfig>,
    /// From the first byte on.
    pub(crate) strict: Arc<ServerConfig>,
}

impl Tls {
    pub(crate) fn new(certificate: &Certificate) -> Result<Self> {
        let chain = CertificateDer::pem_slice_iter(certificate.chain.as_bytes())
            .collect::<Result<Vec<_>, _>>()
            .context("the certificate is not in PEM")?;
        let key = PrivateKeyDer::from_pem_slice(certificate.key.as_bytes()).context("the key is not in PEM")?;
        let config = |versions: &[&'static SupportedProtocolVersion]| {
            ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
                .with_protocol_versions(versions)?
                .with_no_client_auth()
                .with_single_cert(chain.clone(), key.clone_key())
        };
        let mut strict = config(&[&TLS13, &TLS12]).context("the certificate does not fit its key")?;
        strict.alpn_protocols = vec![STRICT_PROTOCOL.to_vec()];
        let wrapped = config(&[&TLS12]).context("the certificate does not fit its key")?;
        Ok(Self { wrapped: Arc::new(wrapped), strict: Arc::new(strict) })
    }
}

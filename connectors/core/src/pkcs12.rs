//! PKCS12 stores of the Java world as PEM text.
//!
//! All in memory. It does not: read files, or JKS.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use p12_keystore::{KeyStore, KeyStoreEntry, Pkcs12ImportPolicy};

/// What a store is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// This client's own key, and the certificates that vouch for it.
    Identity,
    /// Certificates of the authorities that are trusted.
    Authorities,
}

/// Why a store gives nothing. The last two say what is missing, behind the store's name.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// The data is none, or the password is another one.
    #[error("{0}")]
    Closed(p12_keystore::error::Error),
    #[error("holds no private key with its certificate")]
    NoKey,
    #[error("holds no certificate")]
    NoCertificate,
}

/// The sections that `purpose` asks for. Takes a while: not for a thread of the runtime.
pub fn pem(data: &[u8], password: &str, purpose: Purpose) -> Result<String, Unreadable> {
    let policy = match purpose {
        Purpose::Identity => Pkcs12ImportPolicy::Strict,
        // Also certificates that the store does not mark as trusted: OpenSSL never does.
        Purpose::Authorities => Pkcs12ImportPolicy::Raw,
    };
    let store = KeyStore::from_pkcs12(data, password, policy).map_err(Unreadable::Closed)?;
    let mut text = String::new();
    match purpose {
        Purpose::Identity => {
            let (_, chain) = store.private_key_chain().ok_or(Unreadable::NoKey)?;
            for certificate in chain.certs() {
                section("CERTIFICATE", certificate.as_der(), &mut text);
            }
            section("PRIVATE KEY", chain.key().as_der(), &mut text);
        }
        Purpose::Authorities => {
            for (_, entry) in store.entries() {
                if let KeyStoreEntry::Certificate(certificate) = entry {
                    section("CERTIFICATE", certificate.as_der(), &mut text);
                }
            }
            if text.is_empty() {
                return Err(Unreadable::NoCertificate);
            }
        }
    }
    Ok(text)
}

/// Appends one section, in lines as RFC 7468 wants them.
fn section(label: &str, der: &[u8], out: &mut String) {
    const LINE: usize = 64;
    let encoded = STANDARD.encode(der);
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

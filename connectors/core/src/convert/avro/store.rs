//! Certificates and keys for the registry: PEM as it is, PKCS12 stores of the Java world as PEM.
//!
//! All in memory. It does not read JKS, or keys that are encrypted in themselves.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use p12_keystore::{KeyStore, KeyStoreEntry, Pkcs12ImportPolicy};
use thalweg_config::{Secret, Settings};

/// What it is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// This client's own key, and the certificates that vouch for it.
    Identity,
    /// Certificates of the authorities that are trusted.
    Authorities,
}

/// Where it comes from.
#[derive(Debug)]
pub(super) enum Store {
    File { purpose: Purpose, path: String, password: Option<Secret> },
    Inline { purpose: Purpose, pem: Secret },
}

impl Store {
    /// What the options name; what stands in them comes before a file.
    pub(super) fn of(settings: &Settings, purpose: Purpose) -> Option<Self> {
        let (location, password) = match purpose {
            Purpose::Identity => ("schema.registry.ssl.keystore.location", "schema.registry.ssl.keystore.password"),
            Purpose::Authorities => {
                ("schema.registry.ssl.truststore.location", "schema.registry.ssl.truststore.password")
            }
        };
        let inline = match purpose {
            Purpose::Identity => settings
                .secret("schema.registry.ssl.keystore.key")
                .zip(settings.secret("schema.registry.ssl.keystore.certificate.chain"))
                .map(|(key, chain)| Secret::new(format!("{}\n{}\n", key.reveal(), chain.reveal()))),
            Purpose::Authorities => settings.secret("schema.registry.ssl.truststore.certificates").cloned(),
        };
        if let Some(pem) = inline {
            return Some(Self::Inline { purpose, pem });
        }
        let path = settings.text(location)?.to_owned();
        Some(Self::File { purpose, path, password: settings.secret(password).cloned() })
    }

    /// The option that names it.
    pub(super) fn option(&self) -> &'static str {
        match self {
            Self::File { purpose: Purpose::Identity, .. } => "schema.registry.ssl.keystore.location",
            Self::File { purpose: Purpose::Authorities, .. } => "schema.registry.ssl.truststore.location",
            Self::Inline { purpose: Purpose::Identity, .. } => "schema.registry.ssl.keystore.key",
            Self::Inline { purpose: Purpose::Authorities, .. } => "schema.registry.ssl.truststore.certificates",
        }
    }

    /// # Errors
    /// Why it cannot be used.
    pub(super) fn pem(&self) -> Result<Secret, String> {
        let (purpose, path, password) = match self {
            Self::Inline { pem, .. } => return Ok(pem.clone()),
            Self::File { purpose, path, password } => (*purpose, path, password),
        };
        let data = std::fs::read(path).map_err(|e| format!("{path}: {e}"))?;
        if data.starts_with(&[0xFE, 0xED, 0xFE, 0xED]) {
            return Err(format!(
                "{path} is a JKS store. Convert it: keytool -importkeystore -srckeystore {path} -destkeystore \
                 store.p12 -deststoretype PKCS12"
            ));
        }
        // DER begins with a sequence.
        if data.first() != Some(&0x30) {
            return String::from_utf8(data).map(Secret::new).map_err(|_| format!("{path} is neither PEM nor PKCS12"));
        }
        let policy = match purpose {
            Purpose::Identity => Pkcs12ImportPolicy::Strict,
            // Also certificates that the store does not mark as trusted: OpenSSL never does.
            Purpose::Authorities => Pkcs12ImportPolicy::Raw,
        };
        let password = password.as_ref().map_or("", |p| p.reveal());
        let store = KeyStore::from_pkcs12(&data, password, policy)
            .map_err(|e| format!("{path} is no PKCS12 store that its password option opens ({e})"))?;
        let mut text = String::new();
        match purpose {
            Purpose::Identity => {
                let (_, chain) = store
                    .private_key_chain()
                    .ok_or_else(|| format!("{path} holds no private key with its certificate"))?;
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
            }
        }
        Ok(Secret::new(text))
    }
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

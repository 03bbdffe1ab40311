//! Certificates and keys for the registry: PEM as it is, PKCS12 stores of the Java world as PEM.
//!
//! All in memory. It does not read JKS, or keys that are encrypted in themselves.

use thalweg_config::{Secret, Settings};

use crate::pkcs12::{self, Purpose, Unreadable};

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
        let password = password.as_ref().map_or("", |p| p.reveal());
        pkcs12::pem(&data, password, purpose).map(Secret::new).map_err(|why| match why {
            Unreadable::Closed(e) => format!("{path} is no PKCS12 store that its password option opens ({e})"),
            empty => format!("{path} {empty}"),
        })
    }
}

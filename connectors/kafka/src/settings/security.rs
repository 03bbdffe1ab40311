//! TLS and SASL: Java's stores and login configuration as PEM files and plain credentials.
//!
//! PEM works as text or file, a PKCS#12 key store as file. Java key stores and Kerberos or OAuth
//! logins cannot be used; each is refused with the way out.

use super::jaas::{self, LoginModule};
use super::{Build, Given, pem};

const TO_PEM: &str =
    "export the certificates as PEM (keytool -exportcert -rfc, or openssl pkcs12 -in store.p12 -out store.pem) and set";

/// How a store is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Store {
    Pem,
    Pkcs12,
    Jks,
}

impl Build {
    pub(super) fn security(&mut self) {
        let tls = self.protocol();
        self.sasl();
        self.trust(tls);
        self.key();
        if let Some(given) = self.given.remove("ssl.endpoint.identification.algorithm") {
            let value = if given.value.is_empty() { "none".to_owned() } else { given.value.to_ascii_lowercase() };
            self.put("ssl.endpoint.identification.algorithm", value, &given.origin);
        }
    }

    /// Whether the connection uses TLS.
    fn protocol(&mut self) -> bool {
        let Some(given) = self.given.remove("security.protocol") else { return false };
        let value = given.value.to_ascii_lowercase();
        let tls = value.ends_with("ssl");
        self.put("security.protocol", value, &given.origin);
        tls
    }

    fn sasl(&mut self) {
        let mechanism = self.given.remove("sasl.mechanism");
        let login = self.given.remove("sasl.jaas.config");
        if let Some(given) = &mechanism {
            match given.value.to_ascii_uppercase().as_str() {
                name @ ("PLAIN" | "SCRAM-SHA-256" | "SCRAM-SHA-512") => {
                    self.put("sasl.mechanism", name.to_owned(), &given.origin);
                }
                _ => self.problem(
                    &given.origin,
                    "only PLAIN, SCRAM-SHA-256 and SCRAM-SHA-512 are supported; use one of them or TLS client certificates",
                ),
            }
        }
        let Some(given) = login else { return };
        let parsed = match jaas::parse(&given.value) {
            Ok(parsed) => parsed,
            Err(error) => return self.problem(&given.origin, error.to_string()),
        };
        match (parsed.module, &mechanism) {
            (LoginModule::Plain, None) => self.put("sasl.mechanism", "PLAIN".to_owned(), &given.origin),
            (LoginModule::Scram, None) => {
                self.problem(
                    &given.origin,
                    "ScramLoginModule needs sasl.mechanism, which must be SCRAM-SHA-256 or SCRAM-SHA-512",
                );
            }
            (module, Some(mechanism)) => {
                let scram = mechanism.value.to_ascii_uppercase().starts_with("SCRAM");
                if scram != (module == LoginModule::Scram) {
                    self.problem(&given.origin, "the login module does not fit sasl.mechanism");
                }
            }
        }
        self.put("sasl.username", parsed.username, &given.origin);
        self.put("sasl.password", parsed.password.reveal().to_owned(), &given.origin);
    }

    fn trust(&mut self, tls: bool) {
        let kind = self.given.remove("ssl.truststore.type");
        let location = self.given.remove("ssl.truststore.location");
        let certificates = self.given.remove("ssl.truststore.certificates");
        // PEM trust stores have no password; one that is left over does no harm.
        self.given.remove("ssl.truststore.password");
        if let Some(given) = certificates {
            self.pem_text("ssl.ca.pem", &given);
        } else if let Some(given) = location {
            match store(kind.as_ref(), &given.value) {
                Some(Store::Pem) => self.put("ssl.ca.location", given.value, &given.origin),
                Some(Store::Pkcs12 | Store::Jks) => self.problem(
                    &given.origin,
                    format!("only PEM trust stores are supported; {TO_PEM} ssl.truststore.type=PEM"),
                ),
                None => self.store_type_problem(kind.as_ref()),
            }
        } else if tls {
            // The bundled TLS library does not know where this system keeps its certificates.
            self.put_default("ssl.ca.location", "probe");
        }
    }

    fn key(&mut self) {
        let kind = self.given.remove("ssl.keystore.type");
        let location = self.given.remove("ssl.keystore.location");
        let password = self.given.remove("ssl.keystore.password");
        let chain = self.given.remove("ssl.keystore.certificate.chain");
        let key = self.given.remove("ssl.keystore.key");
        if let Some(given) = chain {
            self.pem_text("ssl.certificate.pem", &given);
        }
        if let Some(given) = key {
            self.pem_text("ssl.key.pem", &given);
        }
        let Some(given) = location else { return };
        match store(kind.as_ref(), &given.value) {
            // One file holds the certificate chain and the key.
            Some(Store::Pem) => {
                self.put("ssl.certificate.location", given.value.clone(), &given.origin);
                self.put("ssl.key.location", given.value, &given.origin);
            }
            Some(Store::Pkcs12) => {
                self.put("ssl.keystore.location", given.value, &given.origin);
                match password {
                    Some(password) => self.put("ssl.keystore.password", password.value, &password.origin),
                    None => self.problem(&given.origin, "a PKCS12 key store needs ssl.keystore.password"),
                }
            }
            Some(Store::Jks) => self.problem(
                &given.origin,
                format!("Java key stores are not supported; {TO_PEM} ssl.keystore.type=PEM, or PKCS12 for a .p12 file"),
            ),
            None => self.store_type_problem(kind.as_ref()),
        }
    }

    fn pem_text(&mut self, name: &str, given: &Given) {
        match pem::normalise(&given.value) {
            Some(text) => self.put(name, text, &given.origin),
            None => self.problem(&given.origin, "no complete PEM block (-----BEGIN ...----- to -----END ...-----)"),
        }
    }

    fn store_type_problem(&mut self, kind: Option<&Given>) {
        if let Some(kind) = kind {
            self.problem(&kind.origin, "the store type must be PEM, PKCS12 or JKS");
        }
    }
}

/// The declared type; without one, what the file's name says. Java's own default is JKS. `None` for
/// a type that nobody knows.
fn store(kind: Option<&Given>, location: &str) -> Option<Store> {
    let declared = kind.map(|k| k.value.to_ascii_uppercase()).filter(|k| !k.is_empty());
    match declared.as_deref() {
        Some("PEM") => Some(Store::Pem),
        Some("PKCS12") => Some(Store::Pkcs12),
        Some("JKS") => Some(Store::Jks),
        Some(_) => None,
        None => {
            let name = location.to_ascii_lowercase();
            Some(if [".pem", ".crt", ".cer"].iter().any(|e| name.ends_with(e)) {
                Store::Pem
            } else if [".p12", ".pfx"].iter().any(|e| name.ends_with(e)) {
                Store::Pkcs12
            } else {
                Store::Jks
            })
        }
    }
}

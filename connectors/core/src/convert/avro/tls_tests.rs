//! A registry that shows a certificate and asks for one, with stores in every form.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Arc;

use p12_keystore::{Certificate, KeyStore, KeyStoreEntry, PrivateKey, PrivateKeyChain};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tempfile::TempDir;
use thalweg_config::Properties;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::super::Role;
use super::options::OPTIONS;
use super::registry::Registry;
use crate::error::{Error, Result};

const PASSWORD: &str = "verysecret";

struct Authority {
    dir: TempDir,
    issuer: Issuer<'static, KeyPair>,
    root: CertificateDer<'static>,
}

impl Authority {
    fn new() -> Self {
        let dir = TempDir::new().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "authority of a test");
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        let authority = Self { dir, issuer: Issuer::new(params, key), root: certificate.der().clone() };
        authority.file("ca.pem", certificate.pem().as_bytes());
        let mut store = KeyStore::new();
        store.add_entry("ca", KeyStoreEntry::Certificate(Certificate::from_der(&authority.root).unwrap()));
        authority.file("ca.p12", &store.writer(PASSWORD).write().unwrap());
        authority.file("ca.jks", &[0xFE, 0xED, 0xFE, 0xED, 0, 0, 0, 2]);
        let (certificate, key) = authority.issue("client");
        authority.file("client.pem", format!("{}{}", key.serialize_pem(), certificate.pem()).as_bytes());
        let mut store = KeyStore::new();
        let chain = [Certificate::from_der(certificate.der()).unwrap()];
        let chain = PrivateKeyChain::new("own", PrivateKey::from_der(&key.serialize_der()).unwrap(), chain);
        store.add_entry("own", KeyStoreEntry::PrivateKeyChain(chain));
        authority.file("client.p12", &store.writer(PASSWORD).write().unwrap());
        authority
    }

    fn issue(&self, host: &str) -> (rcgen::Certificate, KeyPair) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![host.to_owned()]).unwrap();
        (params.signed_by(&key, &self.issuer).unwrap(), key)
    }

    fn file(&self, name: &str, content: &[u8]) {
        std::fs::write(self.dir.path().join(name), content).unwrap();
    }

    fn path(&self, name: &str) -> String {
        self.dir.path().join(name).display().to_string()
    }

    /// A registry that gives the id 7 to whom it trusts.
    async fn registry(&self) -> String {
        let (certificate, key) = self.issue("localhost");
        let mut roots = RootCertStore::empty();
        roots.add(self.root.clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let clients = WebPkiClientVerifier::builder_with_provider(roots.into(), provider.clone()).build().unwrap();
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_client_cert_verifier(clients)
            .with_single_cert(vec![certificate.der().clone()], PrivateKeyDer::try_from(key.serialize_der()).unwrap())
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let Ok(mut stream) = acceptor.accept(stream).await else { continue };
                let mut request = [0; 4096];
                let _ = stream.read(&mut request).await;
                let answer = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 8\r\n\r\n{\"id\":7}";
                let _ = stream.write_all(answer).await;
                let _ = stream.shutdown().await;
            }
        });
        format!("https://localhost:{port}")
    }
}

async fn ask(url: &str, options: &[(&str, String)]) -> Result<i32> {
    let mut config = Properties::from([("converter.type", "value"), ("schema.registry.url", url)]);
    for (key, value) in options {
        config.set(format!("schema.registry.ssl.{key}"), value.clone());
    }
    let validation = OPTIONS.validate(&config);
    if let Some(error) = Error::invalid_config(&validation) {
        return Err(error);
    }
    Registry::from_settings(&validation.settings, Role::Value.prefix())?.id("s", "\"string\"").await
}

#[tokio::test]
async fn stores_of_every_form_are_used() {
    let authority = Authority::new();
    let url = authority.registry().await;
    for (trust, key) in [("ca.pem", "client.pem"), ("ca.p12", "client.p12")] {
        let options = [
            ("truststore.location", authority.path(trust)),
            ("truststore.password", PASSWORD.to_owned()),
            ("keystore.location", authority.path(key)),
            ("keystore.password", PASSWORD.to_owned()),
        ];
        assert_eq!(ask(&url, &options).await.unwrap(), 7, "{trust}");
        assert!(ask(&url, &options[..2]).await.is_err(), "without a certificate of its own");
        assert!(ask(&url, &options[2..]).await.is_err(), "an unknown authority");
        assert!(ask(&url.replace("localhost", "127.0.0.1"), &options).await.is_err(), "another host");
    }
}

#[tokio::test]
async fn stores_that_cannot_be_read_are_named_without_their_password() {
    let authority = Authority::new();
    for (store, password, text) in [
        ("ca.jks", PASSWORD, "keytool -importkeystore"),
        ("ca.p12", "othersecret", "no PKCS12 store that its password option opens"),
        ("none.pem", PASSWORD, "No such file"),
    ] {
        let path = authority.path(store);
        let options = [("truststore.location", path.clone()), ("truststore.password", password.to_owned())];
        let error = ask("https://localhost:1", &options).await.unwrap_err();
        assert!(error.message.contains("value.converter.schema.registry.ssl.truststore.location"), "{}", error.message);
        assert!(error.message.contains(&path) && error.message.contains(text), "{}", error.message);
        assert!(!error.trace().contains("secret"), "{}", error.trace());
    }
    let options = [("keystore.location", authority.path("ca.pem"))];
    let error = ask("https://localhost:1", &options).await.unwrap_err();
    assert!(error.message.contains("no key with its certificate"), "{}", error.message);
}

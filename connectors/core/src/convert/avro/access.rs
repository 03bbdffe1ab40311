//! How the schema registry is reached: addresses, login, TLS.
//!
//! Invariant: user, password and token are in no address, text or error. It does not ask anything.

use std::time::Duration;

use reqwest::{Certificate, Client, Identity, Proxy, RequestBuilder, Url, redirect};
use thalweg_config::{Secret, Settings};

use super::store::Store;
use crate::error::{Error, ErrorKind, Phase, Result};
use crate::pkcs12::Purpose;

/// One address of the registry.
pub(super) struct Base {
    /// Without user and password.
    pub(super) url: Url,
    login: Login,
}

#[derive(Clone)]
enum Login {
    None,
    Basic(String, Secret),
    Bearer(Secret),
}

pub(super) struct Access {
    pub(super) client: Client,
    /// At least one.
    pub(super) bases: Vec<Base>,
}

impl Base {
    pub(super) fn authorized(&self, request: RequestBuilder) -> RequestBuilder {
        match &self.login {
            Login::None => request,
            Login::Basic(user, password) => request.basic_auth(user, Some(password.reveal())),
            Login::Bearer(token) => request.bearer_auth(token.reveal()),
        }
    }
}

impl Access {
    /// `prefix` is that of the options, for messages. Reads the files of stores.
    pub(super) fn from_settings(settings: &Settings, prefix: &str) -> Result<Self> {
        let urls = settings.list("schema.registry.url");
        let mut bases = Vec::with_capacity(urls.len());
        for url in urls {
            let (url, own) =
                address(url).map_err(|text| Error::config(format!("{prefix}schema.registry.url: {text}")))?;
            let login = login(settings).unwrap_or(own);
            bases.push(Base { url, login });
        }
        if bases.is_empty() {
            return Err(Error::config(format!("{prefix}schema.registry.url names no address")));
        }
        let connect = settings.millis("http.connect.timeout.ms");
        let mut builder = Client::builder()
            .connect_timeout(connect)
            .timeout(connect + settings.millis("http.read.timeout.ms"))
            .pool_idle_timeout(Duration::from_secs(60))
            // A question must not become another one on its way.
            .redirect(redirect::Policy::none());
        builder = match settings.text("proxy.host") {
            Some(host) => {
                let port = settings.opt_int("proxy.port").map(|port| format!(":{port}")).unwrap_or_default();
                let proxy = Proxy::all(format!("http://{host}{port}"))
                    .map_err(|e| Error::config(format!("{prefix}proxy.host is no host")).because(&e))?;
                builder.proxy(proxy)
            }
            None => builder.no_proxy(),
        };
        let unusable = |option: &str, text: String| {
            Error::new(ErrorKind::Tls, Phase::Start, format!("{prefix}{option} cannot be used: {text}"))
        };
        if let Some(store) = Store::of(settings, Purpose::Authorities) {
            let pem = store.pem().map_err(|text| unusable(store.option(), text))?;
            let all = Certificate::from_pem_bundle(pem.reveal().as_bytes())
                .map_err(|e| unusable(store.option(), e.without_url().to_string()))?;
            if all.is_empty() {
                return Err(unusable(store.option(), "it holds no certificate".to_owned()));
            }
            builder = all.into_iter().fold(builder.tls_built_in_root_certs(false), |b, c| b.add_root_certificate(c));
        }
        if let Some(store) = Store::of(settings, Purpose::Identity) {
            let pem = store.pem().map_err(|text| unusable(store.option(), text))?;
            let identity = Identity::from_pem(pem.reveal().as_bytes())
                .map_err(|_| unusable(store.option(), "it is no key with its certificate".to_owned()))?;
            builder = builder.identity(identity);
        }
        let client = builder.build().map_err(|e| {
            Error::new(ErrorKind::Tls, Phase::Start, "the client of the schema registry cannot be made").because(&e)
        })?;
        Ok(Self { client, bases })
    }
}

/// An address, and the login that stands in it.
fn address(text: &str) -> Result<(Url, Login), String> {
    const FORM: &str = "an address is http:// or https://, a host, and if need be a port and a path";
    let mut url = Url::parse(text.trim()).map_err(|_| FORM.to_owned())?;
    if !matches!(url.scheme(), "http" | "https") || url.host().is_none() || url.cannot_be_a_base() {
        return Err(FORM.to_owned());
    }
    let plain = |text: &str| percent_decoded(text);
    let login = match (url.username(), url.password()) {
        ("", None) => Login::None,
        (user, password) => Login::Basic(plain(user), Secret::new(plain(password.unwrap_or_default()))),
    };
    if url.set_username("").and_then(|()| url.set_password(None)).is_err() {
        return Err(FORM.to_owned());
    }
    url.set_query(None);
    url.set_fragment(None);
    Ok((url, login))
}

fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, behind)) = rest.split_first() {
        let hex = behind.get(..2).and_then(|two| std::str::from_utf8(two).ok());
        match hex.and_then(|two| u8::from_str_radix(two, 16).ok()).filter(|_| first == b'%') {
            Some(byte) => {
                bytes.push(byte);
                rest = &behind[2..];
            }
            None => {
                bytes.push(first);
                rest = behind;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// What the options say, apart from the addresses.
fn login(settings: &Settings) -> Option<Login> {
    if settings.is_set("bearer.auth.credentials.source") {
        return Some(Login::Bearer(settings.secret("bearer.auth.token")?.clone()));
    }
    if settings.text_or_empty("basic.auth.credentials.source") == "USER_INFO" {
        let (user, password) = settings.secret("basic.auth.user.info")?.reveal().split_once(':')?;
        return Some(Login::Basic(user.to_owned(), Secret::new(password)));
    }
    None
}

pub(super) fn check_urls(text: &str) -> Result<(), String> {
    let mut urls = text.split(',').map(str::trim).filter(|url| !url.is_empty()).peekable();
    if urls.peek().is_none() {
        return Err("at least one address is needed".to_owned());
    }
    urls.try_for_each(|url| address(url).map(drop))
}

pub(super) fn check_login(settings: &Settings) -> Vec<(&'static str, String)> {
    let mut problems = Vec::new();
    if settings.text_or_empty("basic.auth.credentials.source") == "USER_INFO" {
        let complete = settings.secret("basic.auth.user.info").is_some_and(|info| info.reveal().contains(':'));
        if !complete {
            let text = "with basic.auth.credentials.source=USER_INFO it has to be user:password";
            problems.push(("basic.auth.user.info", text.to_owned()));
        }
    }
    if settings.is_set("bearer.auth.credentials.source") && !settings.is_set("bearer.auth.token") {
        problems.push(("bearer.auth.token", "bearer.auth.credentials.source=STATIC_TOKEN needs it".to_owned()));
    }
    problems
}

pub(super) fn check_stores(settings: &Settings) -> Vec<(&'static str, String)> {
    let has = |name: &str| settings.is_set(name);
    let mut problems = Vec::new();
    if has("schema.registry.ssl.keystore.key") != has("schema.registry.ssl.keystore.certificate.chain") {
        let text = "a key and its certificate chain belong together; set both";
        problems.push(("schema.registry.ssl.keystore.key", text.to_owned()));
    }
    problems
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_login_never_stays_in_an_address() {
        let (url, login) = address(" https://us%40er:p%3Aw@registry:8081/apis/v7 ").unwrap();
        assert_eq!(url.as_str(), "https://registry:8081/apis/v7");
        let Login::Basic(user, password) = login else { unreachable!() };
        assert_eq!((&*user, password.reveal()), ("us@er", "p:w"));
        assert!(matches!(address("http://registry").unwrap().1, Login::None));
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for bad in ["", " , ", "registry:8081", "ftp://x", "http://", "http://a,nonsense"] {
            assert!(check_urls(bad).is_err(), "{bad}");
        }
        assert_eq!(check_urls("http://a:8081, https://b/x"), Ok(()));
    }
}

//! The REST part of a node's configuration: listeners, what is advertised, TLS, headers.

use std::path::PathBuf;

use super::build::{Builder, Errors, check_file};
use super::{Address, AdminListeners, ClientAuth, HeaderAction, Listener, ResponseHeader, RestConfig, RestTls, Scheme};
use crate::rule::split_plain_list;

const REST_PORT: u16 = 8083;

impl Builder<'_> {
    fn listeners(&self, name: &str, errors: &mut Errors<'_>) -> Vec<Listener> {
        let mut listeners = Vec::new();
        for text in self.s.list(name) {
            match text.parse() {
                Ok(listener) => listeners.push(listener),
                Err(why) => errors.add(
                    name,
                    format!("'{text}' is no listener: {why}"),
                    "write http://host:port or https://host:port; without a host it listens at all interfaces",
                ),
            }
        }
        listeners
    }

    pub(super) fn rest(&self, errors: &mut Errors<'_>, notes: &mut Vec<String>) -> RestConfig {
        const ADVERTISED: &str = "rest.advertised.listener";
        let before = errors.list.len();
        let mut listeners = self.listeners("listeners", errors);
        let old = self.properties.get("rest.host.name").is_some() || self.properties.get("rest.port").is_some();
        if old && self.properties.get("listeners").is_some() {
            notes.push("rest.host.name and rest.port have no effect, because listeners is set".to_owned());
        } else if old {
            let port = self.s.opt_int("rest.port").and_then(|p| u16::try_from(p).ok()).unwrap_or(REST_PORT);
            let address = Address::new(self.some("rest.host.name").unwrap_or_default(), port);
            listeners = vec![Listener { scheme: Scheme::Http, address }];
        }
        if listeners.is_empty() && errors.list.len() == before {
            errors.add(
                "listeners",
                "it names no listener",
                "write http://host:port, or remove the option for http://:8083",
            );
        }
        let wanted = self.some(ADVERTISED);
        let chosen = listeners.iter().find(|l| wanted.as_deref().is_none_or(|w| w == l.scheme.name()));
        if let (None, Some(wanted), false) = (chosen, &wanted, listeners.is_empty()) {
            errors.add(ADVERTISED, format!("no listener is {wanted}"), "add one to listeners, or remove the option");
        }
        let base = chosen.cloned().unwrap_or(Listener { scheme: Scheme::Http, address: Address::new("", REST_PORT) });
        let host = self.some("rest.advertised.host.name").unwrap_or_else(|| match base.address.is_wildcard() {
            true => self.host.clone(),
            false => base.address.host.clone(),
        });
        let port = self.s.opt_int("rest.advertised.port").and_then(|p| u16::try_from(p).ok());
        let advertised =
            Listener { scheme: base.scheme, address: Address::new(host, port.unwrap_or(base.address.port)) };
        let admin = match self.properties.get("admin.listeners") {
            None => AdminListeners::Same,
            Some(_) if self.s.list("admin.listeners").is_empty() => AdminListeners::Off,
            Some(_) => AdminListeners::Own(self.listeners("admin.listeners", errors)),
        };
        let own = if let AdminListeners::Own(own) = &admin { own.as_slice() } else { &[] };
        let https = listeners.iter().chain(own).any(|l| l.scheme == Scheme::Https);
        RestConfig {
            tls: if https { self.rest_tls(errors) } else { None },
            basic_auth_file: self.file("rest.auth.basic.file", errors),
            allow_origin: self.some("access.control.allow.origin").unwrap_or_default(),
            allow_methods: self.some("access.control.allow.methods").unwrap_or_default(),
            response_headers: self.response_headers(errors),
            reported_version: self.some("rest.reported.version").unwrap_or_default(),
            listeners,
            advertised,
            admin,
        }
    }

    /// Settings of `https` listeners: with their prefix, or else the plain ones.
    fn rest_tls(&self, errors: &mut Errors<'_>) -> Option<RestTls> {
        let find = |key: &str| {
            let prefixed = format!("listeners.https.{key}");
            let name = if self.properties.get(&prefixed).is_some() { prefixed } else { key.to_owned() };
            let value = self.properties.get(&name).map(str::trim).filter(|v| !v.is_empty()).map(str::to_owned);
            (name, value)
        };
        let store = |which: &str, errors: &mut Errors<'_>| {
            let (name, path) = find(&format!("ssl.{which}.location"));
            let path = path.map(PathBuf::from)?;
            let (type_name, kind) = find(&format!("ssl.{which}.type"));
            if !kind.as_deref().is_some_and(|k| k.eq_ignore_ascii_case("PEM")) {
                errors.add(
                    &type_name,
                    format!("Java key stores are not read ({})", kind.as_deref().unwrap_or("JKS")),
                    "convert the store (openssl pkcs12 -in store.p12 -nodes -out store.pem), name the new file and set the type to PEM",
                );
            }
            check_file(&name, &path, errors);
            Some(path)
        };
        let key_store = store("keystore", errors);
        let trust_store = store("truststore", errors);
        let (auth_name, auth) = find("ssl.client.auth");
        let client_auth = match auth.as_deref().unwrap_or("none") {
            "none" => ClientAuth::None,
            "requested" => ClientAuth::Requested,
            "required" => ClientAuth::Required,
            other => {
                errors.add(&auth_name, format!("'{other}' is unknown"), "write one of none, requested, required");
                ClientAuth::None
            }
        };
        if client_auth != ClientAuth::None && trust_store.is_none() {
            errors.add(
                "listeners.https.ssl.truststore.location",
                "client certificates cannot be checked without authorities",
                "add the PEM file with them, or set ssl.client.auth=none",
            );
        }
        if key_store.is_none() {
            errors.add(
                "listeners.https.ssl.keystore.location",
                "an https listener needs a key and a certificate",
                "add the PEM file with both, and listeners.https.ssl.keystore.type=PEM",
            );
        }
        Some(RestTls { key_store: key_store?, trust_store, client_auth })
    }

    fn response_headers(&self, errors: &mut Errors<'_>) -> Vec<ResponseHeader> {
        const NAME: &str = "response.http.headers.config";
        let mut headers = Vec::new();
        for entry in split_plain_list(&self.some(NAME).unwrap_or_default()) {
            let parsed = entry.split_once(':').and_then(|(left, value)| {
                let (action, name) = left.trim().split_once(char::is_whitespace)?;
                let action = match action.to_ascii_lowercase().as_str() {
                    "set" => HeaderAction::Set,
                    "add" => HeaderAction::Add,
                    "setdate" => HeaderAction::SetDate,
                    "adddate" => HeaderAction::AddDate,
                    _ => return None,
                };
                let (name, value) = (name.trim().to_owned(), value.trim().to_owned());
                let plain =
                    !name.is_empty() && !name.contains(char::is_whitespace) && !value.contains(char::is_control);
                let date =
                    !matches!(action, HeaderAction::SetDate | HeaderAction::AddDate) || value.parse::<i64>().is_ok();
                (plain && date).then_some(ResponseHeader { action, name, value })
            });
            match parsed {
                Some(header) => headers.push(header),
                None => errors.add(
                    NAME,
                    format!("'{entry}' is no header"),
                    "write \"action name: value\" with one of the actions set, add, setDate, addDate; dates are milliseconds since 1970",
                ),
            }
        }
        headers
    }
}

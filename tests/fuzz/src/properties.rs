//! Configurations as users write them, up to the typed form of the MongoDB connector's.
//!
//! Promised: no panic. What was read from properties is read again from what Java would store. A flat JSON
//! object of texts is read as any JSON reader reads it. References that were resolved are put back, whatever
//! stands around them. A configuration that passes the check has a typed form, and no message of the check
//! shows a password. Nothing is read from files outside of a provider's paths.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde_json::Value as Json;
use thalweg_config::parse::file::connector_file;
use thalweg_config::parse::{Reading, json, properties};
use thalweg_config::{Properties, Providers, Validation, connector, mask, validate_reply};
use thalweg_mongodb::fields::FieldSelector;
use thalweg_mongodb::namespace::Namespace;
use thalweg_mongodb::options::{self, MongoConfig};

const PASSWORD: &str = "pa55-of-this-t3st";

/// One input.
pub fn run(data: &[u8]) {
    let _ = connector_file(data);
    if let Ok(reading) = properties::read(data) {
        let stored: String = reading.properties.iter().map(|(k, v)| store(k, v)).collect();
        let again = properties::parse(&stored).expect("what Java stores");
        assert_eq!(again.properties, reading.properties);
        checks(&reading);
    }
    let Ok(text) = std::str::from_utf8(data) else { return };
    let _ = (json::config_patch(text), json::create_request(text));
    let flat = json::config_map(text);
    if let Some(expected) = plain(text) {
        assert_eq!(flat.as_ref().expect("a flat object").properties, expected);
    }
    if let Ok(reading) = &flat {
        checks(reading);
    }
    let masked = mask::text(text);
    assert!(masked.len() <= 4 * text.len() + 8);
}

/// The object, if another reader finds texts only.
fn plain(text: &str) -> Option<Properties> {
    let Json::Object(members) = serde_json::from_str(text).ok()? else { return None };
    members.into_iter().map(|(key, value)| Some((key, value.as_str()?.to_owned()))).collect()
}

/// As Java stores a property.
fn store(key: &str, value: &str) -> String {
    let escape = |text: &str, key: bool| {
        let mut out = String::new();
        for (at, c) in text.chars().enumerate() {
            match c {
                ' ' if key || at == 0 => out.push_str("\\ "),
                '\t' => out.push_str("\\t"),
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                '\u{c}' => out.push_str("\\f"),
                '=' | ':' | '#' | '!' | '\\' => out.extend(['\\', c]),
                c if (' '..='~').contains(&c) => out.push(c),
                c => out.extend(c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04X}"))),
            }
        }
        out
    };
    format!("{}={}\n", escape(key, true), escape(value, false))
}

fn providers() -> &'static Providers {
    static MADE: OnceLock<Providers> = OnceLock::new();
    MADE.get_or_init(|| {
        let folder = std::env::temp_dir().join("thalweg-fuzz-properties");
        std::fs::create_dir_all(&folder).expect("a folder");
        std::fs::write(folder.join("s.properties"), "a=first of the file\nb=x\n").expect("a file");
        let folder = folder.to_string_lossy().into_owned();
        let package = "org.apache.kafka.common.config.provider";
        let worker: Properties = [
            ("config.providers", "env,file,dir".to_owned()),
            ("config.providers.env.class", format!("{package}.EnvVarConfigProvider")),
            ("config.providers.file.class", format!("{package}.FileConfigProvider")),
            ("config.providers.file.param.allowed.paths", folder.clone()),
            ("config.providers.dir.class", format!("{package}.DirectoryConfigProvider")),
            ("config.providers.dir.param.allowed.paths", folder),
        ]
        .into_iter()
        .map(|(k, v)| (k.to_owned(), v))
        .collect();
        let variables = [("A", "value of A"), ("B", "${env:A}"), ("E", ""), ("U", "\u{e9}\u{1f600}"), ("S", "ab")];
        let environment: BTreeMap<_, _> = variables.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect();
        Providers::new(&worker, &environment).expect("good declarations")
    })
}

fn checks(reading: &Reading) {
    let raw = &reading.properties;
    let resolution = providers().resolve(raw);
    assert_eq!(&resolution.references.hide(raw, &resolution.properties), raw);
    let hidden: Vec<_> = mask::properties(raw);
    assert_eq!(hidden.len(), raw.iter().count());
    let reads_users = |properties: &Properties| properties.iter().any(|(_, value)| value.contains("root:x:0:0"));
    assert!(reads_users(raw) || !reads_users(&resolution.properties), "/etc/passwd is outside of the allowed paths");

    // The whole check takes a millisecond: so only for what has an option, and one part of it each time.
    if !raw.iter().any(|(key, _)| is_known(key)) {
        return;
    }
    let mut whole = resolution.properties;
    match raw.iter().map(|(key, value)| key.len() + value.len()).sum::<usize>() % 4 {
        0 => {
            let mut validation = framework(&whole);
            reading.report(&mut validation);
            resolution.references.hide_validation(&mut validation);
            let _ = validate_reply(&validation, "c");
        }
        1 => typed(&whole),
        2 => {
            // With what is required, so that the rest counts.
            whole.set("topic.prefix", "shop");
            whole.set("mongodb.connection.string", "mongodb://h/?replicaSet=rs0");
            typed(&whole);
        }
        _ => secret(whole),
    }
}

fn is_known(key: &str) -> bool {
    options::TABLE.option(key).is_some()
        || connector::FRAMEWORK.option(key).is_some()
        || connector::OPEN_PREFIXES.iter().chain(options::TABLE.open_prefixes).any(|prefix| key.starts_with(prefix))
}

/// No message may say the password of another option.
fn secret(mut whole: Properties) {
    if whole.iter().any(|(key, value)| key.contains(PASSWORD) || value.contains(PASSWORD)) {
        return;
    }
    whole.set("mongodb.password", PASSWORD);
    whole.set("mongodb.connection.string", format!("mongodb://u:{PASSWORD}@h/?replicaSet=rs0"));
    let validation = framework(&whole);
    for text in validation.messages().iter().chain(&validation.warnings) {
        assert!(!text.contains(PASSWORD), "{text}");
    }
    if let Err(error) = MongoConfig::parse(&whole) {
        assert!(!format!("{error} {error:?}").contains(PASSWORD));
    }
    assert!(!mask::properties(&whole).iter().any(|(_, value)| value.contains(PASSWORD)));
}

fn framework(properties: &Properties) -> Validation {
    let mut validation = connector::validate(properties, &Properties::new()).merge(options::validate(properties));
    validation.conclude(connector::is_strict(properties));
    validation
}

fn typed(properties: &Properties) {
    let good = options::validate(properties).is_valid();
    let config = MongoConfig::parse(properties);
    assert_eq!(good, config.is_ok(), "{:?}", config.err());
    let Ok(config) = config else { return };
    let fields: &FieldSelector = &config.events.fields;
    if let Some(rules) = fields.rules(&Namespace::new("shop", "orders")) {
        let _ = rules.told("a.b.0.c".to_owned());
        let _ = rules.document(&bson::rawdoc! {"_id": 1, "a": {"b": [{"c": 1}, 2]}, "x.y": 1}.into_bytes());
        let _ = rules.updated(&bson::rawdoc! {"a.b.0.c": 1, "a": {"b": 1}, "x": null}.into_bytes());
    }
}

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use proptest::prelude::*;

use super::*;
use crate::option::{OptionDef, OptionKind, OptionTable};

fn environment() -> BTreeMap<String, String> {
    [("DB_PASSWORD", "p4ss word"), ("DB_USER", "joe"), ("HOME", "/home/joe"), ("EMPTY", "")]
        .map(|(k, v)| (k.to_owned(), v.to_owned()))
        .into()
}

fn providers(pairs: &[(&str, &str)]) -> Result<Providers, Vec<ProviderError>> {
    let mut worker = Properties::from([
        ("config.providers", "file, env,dir"),
        ("config.providers.file.class", FILE),
        ("config.providers.env.class", "EnvVarConfigProvider"),
        ("config.providers.dir.class", DIRECTORY),
    ]);
    for (k, v) in pairs {
        worker.set(*k, *v);
    }
    Providers::new(&worker, &environment())
}

fn resolve(providers: &Providers, value: &str) -> (String, Vec<String>) {
    let resolution = providers.resolve(&Properties::from([("k", value)]));
    (resolution.properties.get("k").unwrap().to_owned(), resolution.warnings)
}

#[test]
fn all_three_providers() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("s.properties");
    std::fs::write(&file, "user=joe\npassword = a\\=b:c\n").unwrap();
    std::fs::write(dir.path().join("token"), "t0ken\n").unwrap();
    let (dir, file) = (dir.path().display(), file.display());
    let p = providers(&[]).unwrap();
    for (given, expected) in [
        (format!("${{file:{file}:password}}"), "a=b:c"),
        (format!("x${{file:{file}:user}}y${{env:DB_USER}}z"), "xjoeyjoez"),
        (format!("${{dir:{dir}:token}}"), "t0ken\n"),
        ("${env:DB_PASSWORD}".to_owned(), "p4ss word"),
        ("${env::DB_USER}".to_owned(), "joe"),
        ("${env:any:DB_USER}".to_owned(), "joe"),
        ("${env:EMPTY}".to_owned(), ""),
        ("${topic} ${env:DB_USER} $1 {".to_owned(), "${topic} joe $1 {"),
    ] {
        let (value, warnings) = resolve(&p, &given);
        assert_eq!(value, expected, "{given}");
        assert_eq!(warnings, [""; 0], "{given}");
    }
}

#[test]
fn what_is_not_resolved_stays_and_names_the_option() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("bad.properties"), "a=\\u1").unwrap();
    std::fs::write(dir.path().join("big"), vec![b'x'; (MAX_FILE + 1) as usize]).unwrap();
    std::fs::write(dir.path().join("latin"), b"\xe9").unwrap();
    let dir = dir.path().display();
    let p = providers(&[]).unwrap();
    for (given, why) in [
        ("${vault:a:b}".to_owned(), "no provider 'vault' is declared"),
        ("${env:NOPE}".to_owned(), "no variable 'NOPE'"),
        ("${file:/no/such/file:k}".to_owned(), "/no/such/file cannot be read"),
        (format!("${{file:{dir}/bad.properties:k}}"), "line 1"),
        (format!("${{file:{dir}:k}}"), "is no file"),
        ("${file:k}".to_owned(), "names no path"),
        (format!("${{dir:{dir}:big}}"), "longer than"),
        (format!("${{dir:{dir}:latin}}"), "not UTF-8"),
        (format!("${{dir:{dir}/x:../latin}}"), "no name of a file"),
        (format!("${{dir:{dir}:}}"), "no name of a file"),
    ] {
        let (value, warnings) = resolve(&p, &given);
        assert_eq!(value, given);
        assert_eq!(warnings.len(), 1);
        assert!(warnings[0].contains("option 'k'") && warnings[0].contains(why), "{warnings:?}");
    }
    let (value, warnings) = resolve(&Providers::default(), "${env:DB_USER}");
    assert_eq!((value.as_str(), warnings.len()), ("${env:DB_USER}", 1));
}

#[test]
fn providers_read_only_what_they_may() {
    let dir = tempfile::tempdir().unwrap();
    let (inside, outside) = (dir.path().join("in"), dir.path().join("inside-not"));
    for d in [&inside, &outside] {
        std::fs::create_dir(d).unwrap();
        std::fs::write(d.join("s"), "k=v").unwrap();
    }
    let allowed = inside.display().to_string();
    let p = providers(&[
        ("config.providers.file.param.allowed.paths", &allowed),
        ("config.providers.dir.param.allowed.paths", &format!("/other,{allowed}")),
        ("config.providers.env.param.allowlist.pattern", "DB_.*"),
    ])
    .unwrap();
    assert_eq!(resolve(&p, &format!("${{file:{allowed}/s:k}}")).0, "v");
    assert_eq!(resolve(&p, &format!("${{dir:{allowed}/x/..:s}}")).0, "k=v");
    assert_eq!(resolve(&p, "${env:DB_USER}").0, "joe");
    for refused in [
        format!("${{file:{}/s:k}}", outside.display()),
        format!("${{file:{allowed}/../inside-not/s:k}}"),
        format!("${{dir:{}:s}}", outside.display()),
        "${env:HOME}".to_owned(),
    ] {
        let (value, warnings) = resolve(&p, &refused);
        assert_eq!(value, refused);
        assert_eq!(warnings.len(), 1);
    }
}

#[test]
fn wrong_declarations_name_their_option() {
    for (pair, key) in [
        (("config.providers", "file,x"), "config.providers.x.class"),
        (("config.providers.file.class", "a.Vault"), "config.providers.file.class"),
        (("config.providers.file.param.allowed.paths", "relative"), "config.providers.file.param.allowed.paths"),
        (("config.providers.env.param.allowlist.pattern", "("), "config.providers.env.param.allowlist.pattern"),
    ] {
        let errors = providers(&[pair]).unwrap_err();
        assert_eq!(errors.len(), 1);
        assert_eq!(errors[0].key, key);
    }
}

#[test]
fn resolved_values_are_not_resolved_again() {
    let mut variables = environment();
    variables.insert("TRICK".to_owned(), "${env:DB_PASSWORD}".to_owned());
    let worker = Properties::from([("config.providers", "env"), ("config.providers.env.class", ENVIRONMENT)]);
    let p = Providers::new(&worker, &variables).unwrap();
    assert_eq!(resolve(&p, "${env:TRICK}").0, "${env:DB_PASSWORD}");
}

#[test]
fn run_06_secrets_become_references_again() {
    let raw = Properties::from([
        ("mongodb.connection.string", "mongodb://${env:DB_USER}:${env:DB_PASSWORD}@h/"),
        ("mongodb.password", "${env:DB_PASSWORD}"),
        ("${env:DB_USER}", "keys stay"),
        ("topic.prefix", "is p4ss word by chance"),
    ]);
    let p = providers(&[]).unwrap();
    let resolution = p.resolve(&raw);
    assert_eq!(resolution.properties.get("mongodb.connection.string"), Some("mongodb://joe:p4ss word@h/"));
    assert_eq!(resolution.properties.get("${env:DB_USER}"), Some("keys stay"));
    assert_eq!(resolution.references.hide(&raw, &resolution.properties), raw);

    // A task's configuration: one option is derived, one is new.
    let mut task = resolution.properties.clone();
    task.set("mongodb.connection.string", "mongodb://joe:p4ss word@shard1/?x=1");
    task.set("shard.password", "p4ss word");
    let stored = resolution.references.hide(&raw, &task);
    assert_eq!(
        stored.get("mongodb.connection.string"),
        Some("mongodb://joe:${env:DB_PASSWORD}@shard1/?x=1"),
        "values of less than four characters are no secrets"
    );
    assert_eq!(stored.get("shard.password"), Some("${env:DB_PASSWORD}"));
    assert_eq!(p.resolve(&stored).properties, task);

    for shown in [format!("{resolution:?}"), format!("{p:?}")] {
        assert!(!shown.contains("p4ss"), "{shown}");
    }
    assert_eq!(resolution.references.hide_in("cannot use p4ss word"), "cannot use ${env:DB_PASSWORD}");
}

#[test]
fn run_06_validation_shows_references() {
    const TABLE: OptionTable = OptionTable {
        title: "t",
        options: &[
            OptionDef::new("limit", OptionKind::Int, "").framework(),
            OptionDef::new("text", OptionKind::String, "").framework(),
            OptionDef::new("mode", OptionKind::String, "").check(|v| Err(format!("{v} is wrong"))),
        ],
        open_prefixes: &[],
        cross_checks: &[],
    };
    let raw = Properties::from([
        ("limit", "${env:DB_PASSWORD}"),
        ("text", "a ${env:DB_PASSWORD}"),
        ("mode", "${env:DB_PASSWORD}"),
    ]);
    let resolution = providers(&[]).unwrap().resolve(&raw);
    let mut validation = TABLE.validate(&resolution.properties);
    assert!(validation.messages().join(" ").contains("p4ss"));
    resolution.references.hide_validation(&mut validation);
    let reply = crate::validate_reply(&validation, "x").to_string();
    assert!(!reply.contains("p4ss"), "{reply}");
    assert_eq!(validation.option("text").unwrap().value.as_deref(), Some("a ${env:DB_PASSWORD}"));
    assert_eq!(
        validation.messages(),
        [
            "Invalid value ${env:DB_PASSWORD} for configuration limit: Not a number of type INT",
            "The 'mode' value is invalid: ${env:DB_PASSWORD} is wrong",
        ]
    );
}

/// Kafka's own description of a reference.
const KAFKA: &str = r"\$\{([^}]*?):(([^}]*?):)?([^}]*?)\}";

proptest! {
    #[test]
    fn references_are_found_as_kafka_finds_them(text in "[${}:ab/]{0,16}") {
        let kafka = fancy_regex::Regex::new(KAFKA).unwrap();
        let mut rest = text.as_str();
        loop {
            let ours = Reference::first(rest);
            let theirs = kafka.captures(rest).unwrap();
            let (Some((before, found, after)), Some(expected)) = (&ours, &theirs) else {
                prop_assert_eq!(ours.is_none(), theirs.is_none(), "{}", rest);
                break;
            };
            prop_assert_eq!(found.text, expected.get(0).unwrap().as_str());
            prop_assert_eq!(before.len(), expected.get(0).unwrap().start());
            prop_assert_eq!(found.provider, expected.get(1).unwrap().as_str());
            prop_assert_eq!(found.path, expected.get(3).map_or("", |m| m.as_str()));
            prop_assert_eq!(found.key, expected.get(4).unwrap().as_str());
            rest = after;
        }
    }

    #[test]
    fn hiding_undoes_resolving(values in proptest::collection::btree_map("[a-z]{1,3}", "([ab:]|\\$\\{env:DB_(USER|PASSWORD|NOPE)\\}|\\$\\{)*", 0..5)) {
        let raw: Properties = values.into_iter().collect();
        let resolution = providers(&[]).unwrap().resolve(&raw);
        prop_assert_eq!(resolution.references.hide(&raw, &resolution.properties), raw);
    }
}

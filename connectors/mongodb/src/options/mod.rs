//! The connector's options as data, the rules between them, and their typed form.
//!
//! Names, defaults and messages are Debezium's where it has them. What cannot be honoured is refused with
//! advice, or accepted with a warning where it changes nothing. Options of the framework (`name`,
//! converters, transformations) are not here.

mod checks;
mod config;
mod connection;
mod connector;
mod events;
mod removed;

use thalweg_config::RegexList;
use thalweg_config::debezium::DEBEZIUM_CHECKS;
use thalweg_config::rule::split_plain_list;
use thalweg_config::{OptionDef, OptionTable, Properties, Settings, Validation};
use thalweg_core::naming::NamingStrategy;

pub use config::*;

use crate::fields::{check_excludes, check_renames};
use crate::lenient_json::parse_document;
use crate::namespace::Namespace;

const FILTER_OVERRIDES: &str = "snapshot.collection.filter.overrides";
const PARTS: [&[OptionDef]; 4] = [connection::OPTIONS, connector::OPTIONS, events::OPTIONS, removed::OPTIONS];
const COUNT: usize = PARTS[0].len() + PARTS[1].len() + PARTS[2].len() + PARTS[3].len();

/// `internal.legacy.snapshot.max.threads` is published with the order of its newer name, so what
/// follows it in its group has one less than counted.
const SHARED_ORDER: usize = 14;

static OPTIONS: [OptionDef; COUNT] = {
    let mut all = [PARTS[0][0]; COUNT];
    let (mut part, mut at) = (0, 0);
    while part < PARTS.len() {
        let mut i = 0;
        while i < PARTS[part].len() {
            all[at] = PARTS[part][i];
            if part == 1 && i >= SHARED_ORDER {
                all[at] = all[at].order(i as i32);
            }
            at += 1;
            i += 1;
        }
        part += 1;
    }
    all
};

/// Every option of the connector, published ones in Debezium's order.
pub static TABLE: OptionTable = OptionTable {
    title: "MongoDB connector",
    options: &OPTIONS,
    open_prefixes: &["snapshot.collection.filter.overrides.", "signal.consumer.", "internal.mongodb.task."],
    cross_checks: &[
        name_lists,
        exclusive_lists,
        field_entries,
        scope_and_target,
        oversize,
        backoff,
        credentials,
        custom_snapshot,
        spread,
        naming,
        DEBEZIUM_CHECKS[0],
        DEBEZIUM_CHECKS[1],
    ],
};

fn naming(s: &Settings) -> Vec<(&'static str, String)> {
    NamingStrategy::from_settings(s).err().into_iter().collect()
}

fn spread(s: &Settings) -> Vec<(&'static str, String)> {
    let bare = s.bool("thalweg.snapshot.spread") && !s.bool("thalweg.snapshot.resume");
    let text = "tasks share what a snapshot has left to do, which is kept with thalweg.snapshot.resume=true only";
    if bare { vec![("thalweg.snapshot.spread", text.to_owned())] } else { Vec::new() }
}

/// The whole check without I/O: the table, then what it cannot know: the filters under
/// `snapshot.collection.filter.overrides.`, and empty names, which lists leave out.
pub fn validate(properties: &Properties) -> Validation {
    let mut validation = TABLE.validate(properties);
    for name in split_plain_list(properties.get(FILTER_OVERRIDES).unwrap_or("")) {
        if Namespace::parse(&name).is_none() {
            validation.invalid(FILTER_OVERRIDES, &format!("'{name}' is not <databaseName>.<collectionName>"));
            continue;
        }
        let property = format!("{FILTER_OVERRIDES}.{name}");
        match properties.get(&property).map(parse_document) {
            None => validation.warnings.push(format!("'{property}' is not set: snapshots read all of {name}")),
            Some(Ok(_)) => {}
            Some(Err(e)) => validation.invalid(FILTER_OVERRIDES, &format!("{property} is not a query filter: {e}")),
        }
    }
    if validation.settings.text_or_empty("filters.match.mode") == "literal" {
        for name in NAME_LISTS.into_iter().flat_map(|(include, exclude)| [include, exclude]) {
            let text = properties.get(name).unwrap_or("").trim();
            if !text.is_empty() && text.trim_end_matches(',').split(',').any(|entry| entry.trim().is_empty()) {
                validation.invalid(name, &format!("{name} contains empty values"));
            }
        }
    }
    for (option, what) in
        [("signal.enabled.channels", "no signals come"), ("notification.enabled.channels", "nothing is told")]
    {
        if config::entries(&validation.settings, option).iter().any(|channel| channel.eq_ignore_ascii_case("jmx")) {
            validation.warnings.push(format!("'{option}' names jmx, which is not there: {what} that way"));
        }
    }
    validation
}

const NAME_LISTS: [(&str, &str); 2] =
    [("database.include.list", "database.exclude.list"), ("collection.include.list", "collection.exclude.list")];

fn exclusive_lists(s: &Settings) -> Vec<(&'static str, String)> {
    NAME_LISTS
        .into_iter()
        .filter(|(include, exclude)| !config::entries(s, include).is_empty() && !config::entries(s, exclude).is_empty())
        .map(|(include, exclude)| (exclude, format!("\"{include}\" is already specified")))
        .collect()
}

fn field_entries(s: &Settings) -> Vec<(&'static str, String)> {
    let of = |name: &'static str, check: fn(&str) -> Vec<String>| {
        check(s.text_or_empty(name)).into_iter().map(move |fault| (name, fault))
    };
    of("field.exclude.list", check_excludes).chain(of("field.renames", check_renames)).collect()
}

/// Entries compile as patterns, or are names, as `filters.match.mode` wants them.
fn name_lists(s: &Settings) -> Vec<(&'static str, String)> {
    let literal = s.text_or_empty("filters.match.mode") == "literal";
    let fault = |name: &str| {
        let entries = config::entries(s, name);
        if literal {
            let odd = entries.iter().find(|e| name.starts_with("collection.") && Namespace::parse(e).is_none())?;
            return Some(format!("'{odd}' is not <databaseName>.<collectionName>"));
        }
        RegexList::new(&entries).err().map(|e| e.to_string())
    };
    let names = NAME_LISTS.into_iter().flat_map(|(include, exclude)| [include, exclude]);
    names.filter_map(|name| fault(name).map(|text| (name, text))).collect()
}

fn scope_and_target(s: &Settings) -> Vec<(&'static str, String)> {
    let scope = s.text_or_empty("capture.scope");
    let target = s.text_or_empty("capture.target").trim();
    let fault = match scope {
        "deployment" => return Vec::new(),
        _ if target.is_empty() => format!("A value is required when capture.scope is {scope}"),
        "collection" if Namespace::parse(target).is_none() => {
            "<databaseName>.<collectionName> is expected when capture.scope is collection".into()
        }
        _ => return Vec::new(),
    };
    vec![("capture.target", fault)]
}

fn oversize(s: &Settings) -> Vec<(&'static str, String)> {
    let skip = s.text_or_empty("cursor.oversize.handling.mode") == "skip";
    if !skip || s.int("cursor.oversize.skip.threshold") > 0 {
        return Vec::new();
    }
    vec![(
        "cursor.oversize.skip.threshold",
        "A positive size in bytes is required when cursor.oversize.handling.mode is skip".into(),
    )]
}

fn backoff(s: &Settings) -> Vec<(&'static str, String)> {
    if s.int("connect.backoff.max.delay.ms") >= s.int("connect.backoff.initial.delay.ms") {
        return Vec::new();
    }
    vec![("connect.backoff.max.delay.ms", "Must not be less than connect.backoff.initial.delay.ms".into())]
}

fn credentials(s: &Settings) -> Vec<(&'static str, String)> {
    let user = s.text("mongodb.user").is_some_and(|u| !u.trim().is_empty());
    let password = s.secret("mongodb.password").is_some_and(|p| !p.reveal().is_empty());
    if user || !password {
        return Vec::new();
    }
    vec![("mongodb.user", "A user name is required because mongodb.password is set".into())]
}

fn custom_snapshot(s: &Settings) -> Vec<(&'static str, String)> {
    const BUILT_IN: [&str; 6] = ["always", "initial_only", "configuration_based", "when_needed", "initial", "no_data"];
    if s.text_or_empty("snapshot.mode") != "custom" {
        return Vec::new();
    }
    let name = s.text_or_empty("snapshot.mode.custom.name").trim();
    if BUILT_IN.contains(&name) {
        return Vec::new();
    }
    if name.is_empty() {
        let text = "snapshot.mode.custom.name cannot be empty when snapshot.mode 'custom' is defined";
        return vec![("snapshot.mode.custom.name", text.to_owned())];
    }
    vec![(
        "snapshot.mode.custom.name",
        format!("custom snapshotters are not supported; use one of {}", BUILT_IN.join(", ")),
    )]
}

#[cfg(test)]
mod tests;

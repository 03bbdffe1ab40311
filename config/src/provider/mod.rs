//! References `${provider:path:key}` in values: resolved where a connector runs, put back where its
//! configuration is stored or shown.
//!
//! Invariants: names of options are not expanded; what cannot be resolved stays as it stands, with a
//! warning that names the option; resolved values are not resolved again; nothing here prints one.
//! Which providers exist, and what they may read, is the worker's configuration (`config.providers`).

mod dir;
mod env;
mod file;
mod references;

use std::collections::BTreeMap;

pub use references::References;

use crate::properties::Properties;
use crate::rule::split_plain_list;
use crate::value::class_called;

/// The most bytes that are read from one file.
const MAX_FILE: u64 = 1 << 20;

const CLASSES: &[&str] = &[FILE, DIRECTORY, ENVIRONMENT];
const FILE: &str = "org.apache.kafka.common.config.provider.FileConfigProvider";
const DIRECTORY: &str = "org.apache.kafka.common.config.provider.DirectoryConfigProvider";
const ENVIRONMENT: &str = "org.apache.kafka.common.config.provider.EnvVarConfigProvider";

/// The declared providers, by the name that references use.
#[derive(Debug, Clone, Default)]
pub struct Providers {
    providers: BTreeMap<String, Provider>,
}

#[derive(Debug, Clone)]
enum Provider {
    File(file::FileProvider),
    Directory(dir::DirectoryProvider),
    Environment(env::EnvironmentProvider),
}

/// A declaration that cannot be used: the option, and what is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {text}")]
pub struct ProviderError {
    pub key: String,
    pub text: String,
}

/// What [`Providers::resolve`] made of a configuration.
#[derive(Debug, Clone, Default)]
pub struct Resolution {
    pub properties: Properties,
    /// One for each reference that stays as it stands.
    pub warnings: Vec<String>,
    /// What was resolved, to be put back before anything is stored or shown.
    pub references: References,
}

impl Providers {
    /// The providers that `worker` declares. `environment` is this process's.
    ///
    /// # Errors
    /// Every declaration that cannot be used.
    pub fn new(worker: &Properties, environment: &BTreeMap<String, String>) -> Result<Self, Vec<ProviderError>> {
        let mut providers = BTreeMap::new();
        let mut errors = Vec::new();
        for name in split_plain_list(worker.get("config.providers").unwrap_or("")) {
            match Provider::declared(worker, environment, &name) {
                Ok(provider) => {
                    providers.insert(name, provider);
                }
                Err(error) => errors.push(error),
            }
        }
        if errors.is_empty() { Ok(Self { providers }) } else { Err(errors) }
    }

    /// Replaces the references in the values of `raw`.
    pub fn resolve(&self, raw: &Properties) -> Resolution {
        let mut resolution = Resolution::default();
        let mut files = Files::default();
        for (key, value) in raw.iter() {
            let mut resolved = String::new();
            let mut rest = value;
            while let Some((before, reference, after)) = Reference::first(rest) {
                resolved.push_str(before);
                match self.look_up(&reference, &mut files) {
                    Ok(value) => {
                        resolution.references.add(reference.text, &value);
                        resolved.push_str(&value);
                    }
                    Err(why) => {
                        let text = reference.text;
                        resolution.warnings.push(format!("{text} in option '{key}' is not resolved: {why}"));
                        resolved.push_str(text);
                    }
                }
                rest = after;
            }
            resolved.push_str(rest);
            if resolved != value {
                resolution.references.add_option(key, value, &resolved);
            }
            resolution.properties.set(key, resolved);
        }
        resolution
    }

    fn look_up(&self, reference: &Reference<'_>, files: &mut Files) -> Result<String, String> {
        match self.providers.get(reference.provider) {
            None => Err(format!("no provider '{}' is declared in config.providers", reference.provider)),
            Some(Provider::File(provider)) => provider.look_up(reference.path, reference.key, files),
            Some(Provider::Directory(provider)) => provider.look_up(reference.path, reference.key),
            Some(Provider::Environment(provider)) => provider.look_up(reference.key),
        }
    }
}

impl Provider {
    fn declared(
        worker: &Properties,
        environment: &BTreeMap<String, String>,
        name: &str,
    ) -> Result<Self, ProviderError> {
        let key = format!("config.providers.{name}.class");
        let wrong = |text: String| ProviderError { key: key.clone(), text };
        let known = CLASSES.join(", ");
        let class = worker.get(&key).map(str::trim).filter(|c| !c.is_empty()).ok_or_else(|| {
            wrong(format!("is not set although config.providers names '{name}'; set it to one of {known}"))
        })?;
        let parameter = |name_of: &str| {
            let key = format!("config.providers.{name}.param.{name_of}");
            let value = worker.get(&key).filter(|v| !v.trim().is_empty());
            (key, value)
        };
        match class_called(CLASSES, class) {
            Some(FILE) => Ok(Self::File(file::FileProvider::new(AllowedPaths::new(parameter("allowed.paths"))?))),
            Some(DIRECTORY) => {
                Ok(Self::Directory(dir::DirectoryProvider::new(AllowedPaths::new(parameter("allowed.paths"))?)))
            }
            Some(ENVIRONMENT) => {
                env::EnvironmentProvider::new(parameter("allowlist.pattern"), environment).map(Self::Environment)
            }
            _ => Err(wrong(format!("'{class}' is no provider of this build; known are {known}"))),
        }
    }
}

/// One reference inside a value.
struct Reference<'a> {
    /// `${...}` as it stands there.
    text: &'a str,
    provider: &'a str,
    path: &'a str,
    key: &'a str,
}

impl<'a> Reference<'a> {
    /// The first reference in `text`, and what stands before and behind it. As Kafka reads it: from
    /// `${` to the next `}`, with one or two parts before the key, which may hold colons itself.
    fn first(text: &'a str) -> Option<(&'a str, Self, &'a str)> {
        let mut from = 0;
        loop {
            let begin = from + text[from..].find("${")?;
            let end = begin + text[begin..].find('}')?;
            let inner = &text[begin + 2..end];
            let Some((provider, rest)) = inner.split_once(':') else {
                from = begin + 2;
                continue;
            };
            let (path, key) = rest.split_once(':').unwrap_or(("", rest));
            let reference = Self { text: &text[begin..=end], provider, path, key };
            return Some((&text[..begin], reference, &text[end + 1..]));
        }
    }
}

/// Property files that were read while one configuration is resolved.
#[derive(Default)]
struct Files(BTreeMap<String, Result<Properties, String>>);

/// Directories and files that a provider may read below; empty: everything.
#[derive(Debug, Clone, Default)]
struct AllowedPaths(Vec<std::path::PathBuf>);

impl AllowedPaths {
    fn new((key, value): (String, Option<&str>)) -> Result<Self, ProviderError> {
        let mut paths = Vec::new();
        for path in split_plain_list(value.unwrap_or("")) {
            let path = std::path::PathBuf::from(path);
            if !path.is_absolute() {
                let text = format!("'{}' is no absolute path; write it from the root", path.display());
                return Err(ProviderError { key, text });
            }
            paths.push(normalized(&path));
        }
        Ok(Self(paths))
    }

    /// `path` without `.` and `..`, if it may be read.
    fn admit(&self, path: &str) -> Result<std::path::PathBuf, String> {
        if path.is_empty() {
            return Err("it names no path".to_owned());
        }
        let path = normalized(std::path::Path::new(path));
        if self.0.is_empty() || self.0.iter().any(|allowed| path.starts_with(allowed)) {
            return Ok(path);
        }
        Err(format!("{} is not below the provider's allowed.paths", path.display()))
    }
}

/// The path with `.` and `..` worked out by name. Links are followed when the file is opened: secrets
/// mounted by Kubernetes are links.
fn normalized(path: &std::path::Path) -> std::path::PathBuf {
    use std::path::Component;
    let mut out = std::path::PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir if matches!(out.components().next_back(), Some(Component::Normal(_))) => {
                out.pop();
            }
            Component::ParentDir if out.has_root() => {}
            other => out.push(other),
        }
    }
    out
}

/// The contents of a file of bounded size.
fn read_bounded(path: &std::path::Path) -> Result<Vec<u8>, String> {
    use std::io::Read;
    let failed = |error: std::io::Error| format!("{} cannot be read: {error}", path.display());
    // Asked before opening, because opening a pipe would wait for its writer.
    if !std::fs::metadata(path).map_err(failed)?.is_file() {
        return Err(format!("{} is no file", path.display()));
    }
    let mut bytes = Vec::new();
    std::fs::File::open(path).map_err(failed)?.take(MAX_FILE + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(format!("{} is longer than {MAX_FILE} bytes", path.display()));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests;

//! Environment variables: `${env:NAME}`, as they were when the process started. A path does not count.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use fancy_regex::Regex;

use super::ProviderError;

#[derive(Clone)]
pub(super) struct EnvironmentProvider {
    /// Only variables that were allowed at start.
    variables: Arc<BTreeMap<String, String>>,
    restricted: bool,
}

impl EnvironmentProvider {
    pub(super) fn new(
        (key, pattern): (String, Option<&str>),
        environment: &BTreeMap<String, String>,
    ) -> Result<Self, ProviderError> {
        let Some(pattern) = pattern else {
            return Ok(Self { variables: Arc::new(environment.clone()), restricted: false });
        };
        let wrong = |error: fancy_regex::Error| ProviderError {
            key: key.clone(),
            text: format!("'{pattern}' is no regular expression: {error}"),
        };
        let whole = Regex::new(&format!(r"\A(?:{pattern})\z")).map_err(wrong)?;
        let mut variables = BTreeMap::new();
        for (name, value) in environment {
            if whole.is_match(name).map_err(wrong)? {
                variables.insert(name.clone(), value.clone());
            }
        }
        Ok(Self { variables: Arc::new(variables), restricted: true })
    }

    /// The value, or why there is none.
    pub(super) fn look_up(&self, key: &str) -> Result<String, String> {
        self.variables.get(key).cloned().ok_or_else(|| {
            let hint = if self.restricted { ", or allowlist.pattern excludes it" } else { "" };
            format!("the environment has no variable '{key}'{hint}")
        })
    }
}

impl fmt::Debug for EnvironmentProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EnvironmentProvider").field("restricted", &self.restricted).finish_non_exhaustive()
    }
}

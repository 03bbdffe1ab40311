//! Keys of Java property files: `${file:/path/to.properties:key}`.

use super::{AllowedPaths, Files, read_bounded};
use crate::parse;
use crate::properties::Properties;

#[derive(Debug, Clone)]
pub(super) struct FileProvider {
    allowed: AllowedPaths,
}

impl FileProvider {
    pub(super) fn new(allowed: AllowedPaths) -> Self {
        Self { allowed }
    }

    /// The value, or why there is none.
    pub(super) fn look_up(&self, path: &str, key: &str, files: &mut Files) -> Result<String, String> {
        let admitted = self.allowed.admit(path)?;
        let file = files.0.entry(path.to_owned()).or_insert_with(|| Self::read(&admitted));
        let properties = file.as_ref().map_err(Clone::clone)?;
        properties.get(key).map(str::to_owned).ok_or_else(|| format!("{} has no key '{key}'", admitted.display()))
    }

    fn read(path: &std::path::Path) -> Result<Properties, String> {
        let bytes = read_bounded(path)?;
        match parse::properties::read(&bytes) {
            Ok(reading) => Ok(reading.properties),
            Err(error) => Err(format!("{}: {error}", path.display())),
        }
    }
}

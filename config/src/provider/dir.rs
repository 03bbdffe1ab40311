//! Files of a directory, each one a value: `${dir:/var/secrets:password}`. The value is the whole
//! content, with a line break at its end if there is one, as in Kafka.

use super::{AllowedPaths, read_bounded};

#[derive(Debug, Clone)]
pub(super) struct DirectoryProvider {
    allowed: AllowedPaths,
}

impl DirectoryProvider {
    pub(super) fn new(allowed: AllowedPaths) -> Self {
        Self { allowed }
    }

    /// The value, or why there is none.
    pub(super) fn look_up(&self, path: &str, key: &str) -> Result<String, String> {
        let directory = self.allowed.admit(path)?;
        if key.is_empty() || key == "." || key == ".." || key.contains(['/', '\\']) {
            return Err(format!("'{key}' is no name of a file in {}", directory.display()));
        }
        let file = directory.join(key);
        String::from_utf8(read_bounded(&file)?).map_err(|_| format!("{} is not UTF-8", file.display()))
    }
}

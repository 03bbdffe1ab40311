//! Very long strings inside a message, as recordings keep them: beginning, length and hash.

use std::fmt::Write;

use sha2::{Digest, Sha256};

use super::text::{exchange, read};

/// In characters, of the text and of a value in it.
const LONG: usize = 60_000;
const BEGINNING: usize = 500;

/// The text, with every value in it that is too long in its short form.
pub(super) fn shortened(text: String) -> String {
    if text.len() <= LONG {
        return text;
    }
    let Some(root) = read(&text) else { return text };
    let mut places = Vec::new();
    root.scalars(&mut |node| {
        let value = node.of(&text);
        let length = value.chars().count();
        if length > LONG {
            let hash = Sha256::digest(value).iter().fold(String::new(), |mut hex, byte| {
                let _ = write!(hex, "{byte:02x}");
                hex
            });
            let beginning: String = value.chars().take(BEGINNING).collect();
            let short = format!("{beginning}… {length} characters, sha256 {hash}");
            places.push((node.span.clone(), serde_json::Value::String(short).to_string()));
        }
    });
    exchange(&text, places)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_values_keep_their_beginning_length_and_hash() {
        let text = format!(r#"{{"a":"{}","b":1}}"#, "ä".repeat(60_000));
        let short = shortened(text);
        assert!(short.starts_with(r#"{"a":"\"ää"#) && short.ends_with(r#"","b":1}"#), "{short}");
        assert!(short.contains("… 60002 characters, sha256 6d13fcdf"), "{short}");
        assert_eq!(shortened("x".into()), "x");
    }
}

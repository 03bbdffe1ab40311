//! Names in Avro schemas: what is valid, and what becomes of the rest.
//!
//! It does not know Debezium's name adjustment, which happens before a record exists.

use super::super::fault::{Fault, Outcome};

/// Where the converter's own names are: unnamed structs, entries of maps.
pub(super) const OWN_NAMESPACE: &str = "io.confluent.connect.avro";

/// A full name in its two parts.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct FullName {
    /// Empty: none.
    pub(super) namespace: String,
    pub(super) name: String,
}

impl FullName {
    pub(super) fn own(name: String) -> Self {
        Self { namespace: OWN_NAMESPACE.to_owned(), name }
    }

    /// Of a Connect schema's name: the part behind the last dot, and what is before it.
    pub(super) fn of(full: &str, scrub: bool) -> Outcome<Self> {
        let mut parts = Vec::new();
        for part in full.split('.') {
            match part {
                part if is_valid(part) => parts.push(part.to_owned()),
                part if scrub => parts.push(scrubbed(part)),
                part => {
                    return Err(Fault::new(format!(
                        "the schema name {full:?} is not valid in Avro because of {part:?}; set \
                         schema.name.adjustment.mode=avro in the connector"
                    )));
                }
            }
        }
        let name = parts.pop().unwrap_or_default();
        Ok(Self { namespace: parts.join("."), name })
    }

    pub(super) fn full(&self) -> String {
        if self.namespace.is_empty() { self.name.clone() } else { format!("{}.{}", self.namespace, self.name) }
    }
}

pub(super) fn field_name(name: &str, scrub: bool) -> Outcome<String> {
    match name {
        name if is_valid(name) => Ok(name.to_owned()),
        name if scrub => Ok(scrubbed(name)),
        name => Err(Fault::new(format!(
            "the field name {name:?} is not valid in Avro; set field.name.adjustment.mode=avro in the connector"
        ))),
    }
}

fn is_valid(part: &str) -> bool {
    let mut bytes = part.bytes();
    bytes.next().is_some_and(|b| b == b'_' || b.is_ascii_alphabetic())
        && bytes.all(|b| b == b'_' || b.is_ascii_alphanumeric())
}

/// `scrub.invalid.names`: encoded as in the query of a URL, an `x` before what may not be first, and
/// everything else that is invalid becomes `_`.
fn scrubbed(part: &str) -> String {
    let mut encoded = String::with_capacity(part.len() + 8);
    for byte in part.bytes() {
        match byte {
            b'.' | b'-' | b'*' | b'_' => encoded.push(char::from(byte)),
            byte if byte.is_ascii_alphanumeric() => encoded.push(char::from(byte)),
            b' ' => encoded.push('+'),
            byte => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    if !encoded.starts_with(|c: char| c == '_' || c.is_ascii_alphabetic()) {
        encoded.insert(0, 'x');
    }
    encoded.chars().map(|c| if c == '_' || c.is_ascii_alphanumeric() { c } else { '_' }).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_full_name_is_split_at_its_last_dot() {
        let name = FullName::of("srv.inv.c.Value", false).unwrap();
        assert_eq!((&*name.namespace, &*name.name), ("srv.inv.c", "Value"));
        assert_eq!(name.full(), "srv.inv.c.Value");
        let name = FullName::of("Key", false).unwrap();
        assert_eq!((&*name.namespace, &*name.name, &*name.full()), ("", "Key", "Key"));
    }

    #[test]
    fn invalid_names_are_refused_with_the_option_that_helps() {
        for bad in ["my-srv.c.Value", "a..b", "", "1a.Value", "a.ü"] {
            let error = FullName::of(bad, false).unwrap_err().to_error();
            assert!(error.message.contains("schema.name.adjustment.mode=avro"), "{bad}");
        }
        let error = field_name("a.b", false).unwrap_err().to_error();
        assert!(error.message.contains("field.name.adjustment.mode=avro"));
    }

    #[test]
    fn names_are_scrubbed_on_demand() {
        assert_eq!(FullName::of("my-srv.c.Value", true).unwrap().full(), "my_srv.c.Value");
        assert_eq!(field_name("1 ü", true).unwrap(), "x1__C3_BC");
        assert_eq!(field_name("a", true).unwrap(), "a");
        assert_eq!(field_name("", true).unwrap(), "x");
    }
}

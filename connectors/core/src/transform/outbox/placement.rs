//! Where further fields of an outbox row go: `field:header|envelope|partition[:alias]`.

use std::sync::Arc;

use thalweg_config::rule::split_plain_list;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Header,
    /// Beside the payload.
    Envelope,
    /// Number of the partition.
    Partition,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Placement {
    pub(super) field: Box<str>,
    pub(super) place: Place,
    pub(super) name: Arc<str>,
}

impl Placement {
    /// # Errors
    /// The text for the option's message.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let parts: Vec<&str> = text.split(':').map(str::trim).collect();
        let (field, place, name) = match *parts.as_slice() {
            [field, place] => (field, place, field),
            [field, place, name] => (field, place, name),
            _ => return Err(format!("'{text}' is not field:place or field:place:name")),
        };
        if field.is_empty() || name.is_empty() {
            return Err(format!("'{text}' has a part without a name"));
        }
        let place = match place.to_ascii_lowercase().as_str() {
            "header" => Place::Header,
            "envelope" => Place::Envelope,
            "partition" => Place::Partition,
            _ => return Err(format!("'{text}': the place must be one of header, envelope, partition")),
        };
        Ok(Self { field: field.into(), place, name: name.into() })
    }

    /// As the check of an option.
    pub(super) fn check(text: &str) -> Result<(), String> {
        split_plain_list(text).iter().try_for_each(|item| Self::parse(item).map(|_| ()))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn texts() {
        let parsed = Placement::parse("type: Header :eventType").unwrap();
        assert_eq!(parsed, Placement { field: "type".into(), place: Place::Header, name: "eventType".into() });
        assert_eq!(&*Placement::parse("a:envelope").unwrap().name, "a");
        assert_eq!(Placement::parse("p:partition").unwrap().place, Place::Partition);
        assert!(Placement::check("a:header, b:envelope:c").is_ok());
        for (wrong, why) in [("a", "is not field"), ("a:b:c:d", "is not field"), ("a:x", "one of"), (":header", "name")]
        {
            assert!(Placement::check(wrong).unwrap_err().contains(why), "{wrong}");
        }
    }
}

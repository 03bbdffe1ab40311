//! What a rule of a user makes of a column's values and of their schema.

use std::sync::Arc;

use super::column::Column;
use super::digest::SaltedDigest;
use crate::record::{Schema, Text, Type, Value};

/// A rule, whatever column it is for.
#[derive(Debug, Clone)]
pub(super) enum Mapping {
    /// To so many characters (UTF-16 units, as Java counts them) or bytes.
    Truncate(usize),
    /// To a text that says nothing.
    Mask(Arc<str>),
    Digest(SaltedDigest),
    /// The type that the column has in the database goes into the schema.
    PropagateType,
}

impl Mapping {
    /// Adds to the schema of the column's field.
    pub(super) fn describe(&self, column: &Column, schema: Schema) -> Schema {
        match self {
            Self::Truncate(most) if !may_exceed(column, *most) => schema,
            Self::Truncate(most) => schema.parameter("truncateLength", most.to_string()),
            Self::Mask(_) | Self::Digest(_) => schema.parameter("masked", "true"),
            Self::PropagateType => describe_source(column, schema),
        }
    }

    /// What to do with the values of the column. `None`: nothing.
    pub(super) fn of_values(&self, column: &Column, schema: &Schema) -> Option<ValueMapping> {
        let masks = column.is_text() && schema.ty == Type::String;
        match self {
            Self::Truncate(most) => may_exceed(column, *most).then_some(ValueMapping::Truncate(*most)),
            Self::Mask(text) => masks.then(|| ValueMapping::Mask(text.clone())),
            Self::Digest(digest) => {
                let most = column.length.and_then(|length| usize::try_from(length).ok()).filter(|length| *length > 0);
                masks.then(|| ValueMapping::Digest(digest.clone(), most))
            }
            Self::PropagateType => None,
        }
    }
}

/// Whether values can be longer than this: also if nothing is known of their length.
fn may_exceed(column: &Column, most: usize) -> bool {
    column.length.and_then(|length| usize::try_from(length).ok()).is_none_or(|length| length > most)
}

fn describe_source(column: &Column, schema: Schema) -> Schema {
    let parameter = |schema: Schema, key: &str, value: Option<String>| match value {
        Some(value) => schema.parameter(format!("__debezium.source.column.{key}"), value),
        None => schema,
    };
    let comment = column.comment.as_deref().filter(|comment| !comment.is_empty());
    let schema = parameter(schema, "type", Some(column.type_name.to_uppercase()));
    let schema = parameter(schema, "length", column.length.map(|length| length.to_string()));
    let schema = parameter(schema, "scale", column.scale.map(|scale| scale.to_string()));
    let schema = parameter(schema, "comment", comment.map(str::to_owned));
    parameter(schema, "name", Some(column.name.to_string()))
}

/// A rule as it is for one column.
#[derive(Debug, Clone)]
pub(super) enum ValueMapping {
    Truncate(usize),
    Mask(Arc<str>),
    /// And how much of the digits the column has room for.
    Digest(SaltedDigest, Option<usize>),
}

impl ValueMapping {
    pub(super) fn apply(&self, value: Value) -> Value {
        match (self, value) {
            // Also in place of null, which would tell something.
            (Self::Mask(mask), _) => Value::text(mask.clone()),
            (Self::Truncate(most), Value::String(text)) => Value::String(truncated(text, *most)),
            (Self::Truncate(most), Value::Bytes(mut bytes)) => {
                bytes.truncate(*most);
                Value::Bytes(bytes)
            }
            (Self::Digest(digest, most), Value::String(text)) => {
                let mut hex = digest.hex(&text.as_str());
                hex.truncate(most.unwrap_or(usize::MAX));
                Value::text(hex)
            }
            (Self::Truncate(_) | Self::Digest(..), other) => other,
        }
    }
}

/// The first UTF-16 units. A character of two units of which only one has room is left out: half of one is no
/// text.
fn truncated(text: Text, most: usize) -> Text {
    let cut = {
        let text = text.as_str();
        let mut units = 0;
        let end = text.char_indices().find(|(_, c)| {
            units += c.len_utf16();
            units > most
        });
        end.map(|(end, _)| text[..end].to_owned())
    };
    cut.map_or(text, Text::from)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use bytes::Bytes;

    use super::super::column::jdbc;
    use super::super::digest::Form;
    use super::*;

    fn varchar(length: Option<i32>) -> Column {
        Column { length, ..Column::new("c", 1, jdbc::VARCHAR, "varchar").nullable() }
    }

    fn parameters(mapping: &Mapping, column: &Column) -> Vec<(String, String)> {
        let schema = mapping.describe(column, Schema::string());
        schema.parameters.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect()
    }

    fn mapped(mapping: &Mapping, column: &Column, value: Value) -> Value {
        match mapping.of_values(column, &Schema::string()) {
            Some(mapping) => mapping.apply(value),
            None => value,
        }
    }

    #[test]
    fn truncation_counts_like_java_and_keeps_characters_whole() {
        for (text, most, expected) in [
            ("alphabet", 3, "alp"),
            ("al", 3, "al"),
            ("", 3, ""),
            ("ab😀c", 3, "ab"),
            ("ab😀c", 4, "ab😀"),
            ("äöüß", 3, "äöü"),
        ] {
            assert_eq!(mapped(&Mapping::Truncate(most), &varchar(None), Value::text(text)), Value::text(expected));
        }
        let bytes = Value::Bytes(Bytes::from_static(b"abcd"));
        assert_eq!(mapped(&Mapping::Truncate(3), &varchar(None), bytes), Value::Bytes(Bytes::from_static(b"abc")));
        assert_eq!(mapped(&Mapping::Truncate(3), &varchar(None), Value::Null), Value::Null);
    }

    #[test]
    fn truncation_is_for_columns_that_can_be_longer() {
        for (length, applies) in [(None, true), (Some(-1), true), (Some(4), true), (Some(3), false)] {
            let column = varchar(length);
            assert_eq!(mapped(&Mapping::Truncate(3), &column, Value::text("abcd")) == Value::text("abc"), applies);
            assert_eq!(parameters(&Mapping::Truncate(3), &column).len(), usize::from(applies));
        }
        assert_eq!(parameters(&Mapping::Truncate(3), &varchar(None)), [("truncateLength".into(), "3".into())]);
    }

    #[test]
    fn sql_30_masks_and_digests() {
        let mask = Mapping::Mask("****".into());
        for value in [Value::text("alpha"), Value::Null] {
            assert_eq!(mapped(&mask, &varchar(Some(10)), value), Value::text("****"));
        }
        assert_eq!(mapped(&Mapping::Mask("".into()), &varchar(None), Value::text("a")), Value::text(""));
        let number = Column::new("n", 1, jdbc::INTEGER, "int");
        assert_eq!(mapped(&mask, &number, Value::Int32(1)), Value::Int32(1));
        assert_eq!(parameters(&mask, &varchar(None)), [("masked".into(), "true".into())]);

        let digest = Mapping::Digest(SaltedDigest::new("SHA-256", Form::Plain, "pepper7").unwrap());
        let full = "b8a5b85e0323c5301e57b02996c1fb8fb581a698967903c7ea7d17ce1c4052c2";
        for (length, expected) in [(Some(255), full), (None, full), (Some(20), &full[..20]), (Some(0), full)] {
            assert_eq!(mapped(&digest, &varchar(length), Value::text("alpha")), Value::text(expected));
        }
        assert_eq!(mapped(&digest, &varchar(None), Value::Null), Value::Null);
        assert_eq!(parameters(&digest, &varchar(None)), [("masked".into(), "true".into())]);
    }

    #[test]
    fn a_source_type_names_what_is_known() {
        let mut column = Column::new("amount", 1, jdbc::DECIMAL, "decimal").sized(5).scaled(2);
        column.comment = Some("in euro".into());
        let expected =
            [("type", "DECIMAL"), ("length", "5"), ("scale", "2"), ("comment", "in euro"), ("name", "amount")]
                .map(|(key, value)| (format!("__debezium.source.column.{key}"), value.to_owned()));
        assert_eq!(parameters(&Mapping::PropagateType, &column), expected);
        let bare = Column::new("b", 1, jdbc::BIT, "bit");
        assert_eq!(parameters(&Mapping::PropagateType, &bare).len(), 2);
        assert_eq!(mapped(&Mapping::PropagateType, &bare, Value::Bool(true)), Value::Bool(true));
    }
}

//! Every transform and predicate there is, under the names that Kafka Connect has for them.
//!
//! It does not load code: the lists are closed.

use thalweg_config::{OptionTable, Settings};

use super::predicate::{self, Predicate};
use super::side::Side::{Key, Value};
use super::{
    Made, Transform, cast, drop_headers, extract_field, filter, flatten, header_from, hoist_field, insert_field,
    insert_header, mask_field, regex_router, replace_field, schema_metadata, timestamp_converter, timestamp_router,
    value_to_key,
};
use crate::error::Result;

/// A transform's class.
#[derive(Debug)]
pub struct TransformClass {
    pub class: &'static str,
    /// Options below `transforms.<name>.`.
    pub options: &'static OptionTable,
    make: fn(&Settings) -> Made,
}

/// A predicate's class.
#[derive(Debug)]
pub struct PredicateClass {
    pub class: &'static str,
    /// Options below `predicates.<name>.`.
    pub options: &'static OptionTable,
    make: fn(&Settings) -> Result<Predicate>,
}

impl TransformClass {
    /// From settings without errors.
    pub(super) fn make(&self, settings: &Settings) -> Result<Box<dyn Transform>> {
        (self.make)(settings)
    }
}

impl PredicateClass {
    /// From settings without errors.
    pub(super) fn make(&self, settings: &Settings) -> Result<Predicate> {
        (self.make)(settings)
    }
}

macro_rules! transform {
    ($name:literal, $module:ident, $make:expr) => {
        TransformClass {
            class: concat!("org.apache.kafka.connect.transforms.", $name),
            options: &$module::OPTIONS,
            make: $make,
        }
    };
}

macro_rules! predicate {
    ($name:literal, $options:ident, $make:expr) => {
        PredicateClass {
            class: concat!("org.apache.kafka.connect.transforms.predicates.", $name),
            options: &predicate::$options,
            make: $make,
        }
    };
}

/// In the order of their names.
pub static TRANSFORMS: &[TransformClass] = &[
    transform!("Cast$Key", cast, |s| cast::Cast::make(Key, s)),
    transform!("Cast$Value", cast, |s| cast::Cast::make(Value, s)),
    transform!("DropHeaders", drop_headers, drop_headers::DropHeaders::make),
    transform!("ExtractField$Key", extract_field, |s| extract_field::ExtractField::make(Key, s)),
    transform!("ExtractField$Value", extract_field, |s| extract_field::ExtractField::make(Value, s)),
    transform!("Filter", filter, |_| Ok(Box::new(filter::Filter))),
    transform!("Flatten$Key", flatten, |s| flatten::Flatten::make(Key, s)),
    transform!("Flatten$Value", flatten, |s| flatten::Flatten::make(Value, s)),
    transform!("HeaderFrom$Key", header_from, |s| header_from::HeaderFrom::make(Key, s)),
    transform!("HeaderFrom$Value", header_from, |s| header_from::HeaderFrom::make(Value, s)),
    transform!("HoistField$Key", hoist_field, |s| hoist_field::HoistField::make(Key, s)),
    transform!("HoistField$Value", hoist_field, |s| hoist_field::HoistField::make(Value, s)),
    transform!("InsertField$Key", insert_field, |s| insert_field::InsertField::make(Key, s)),
    transform!("InsertField$Value", insert_field, |s| insert_field::InsertField::make(Value, s)),
    transform!("InsertHeader", insert_header, insert_header::InsertHeader::make),
    transform!("MaskField$Key", mask_field, |s| mask_field::MaskField::make(Key, s)),
    transform!("MaskField$Value", mask_field, |s| mask_field::MaskField::make(Value, s)),
    transform!("RegexRouter", regex_router, regex_router::RegexRouter::make),
    transform!("ReplaceField$Key", replace_field, |s| replace_field::ReplaceField::make(Key, s)),
    transform!("ReplaceField$Value", replace_field, |s| replace_field::ReplaceField::make(Value, s)),
    transform!("SetSchemaMetadata$Key", schema_metadata, |s| schema_metadata::SetSchemaMetadata::make(Key, s)),
    transform!("SetSchemaMetadata$Value", schema_metadata, |s| schema_metadata::SetSchemaMetadata::make(Value, s)),
    transform!("TimestampConverter$Key", timestamp_converter, |s| timestamp_converter::TimestampConverter::make(
        Key, s
    )),
    transform!("TimestampConverter$Value", timestamp_converter, |s| timestamp_converter::TimestampConverter::make(
        Value, s
    )),
    transform!("TimestampRouter", timestamp_router, timestamp_router::TimestampRouter::make),
    transform!("ValueToKey", value_to_key, value_to_key::ValueToKey::make),
];

/// In the order of their names.
pub static PREDICATES: &[PredicateClass] = &[
    predicate!("HasHeaderKey", HEADER_OPTIONS, Predicate::has_header_key),
    predicate!("RecordIsTombstone", TOMBSTONE_OPTIONS, Predicate::record_is_tombstone),
    predicate!("TopicNameMatches", TOPIC_OPTIONS, Predicate::topic_name_matches),
];

fn is_called(class: &str, name: &str) -> bool {
    class == name || class.rsplit('.').next() == Some(name)
}

/// The class called `name`: its full name, or what is behind the last dot of it.
///
/// # Errors
/// The text for the option's message.
pub fn transform_called(name: &str) -> Result<&'static TransformClass, String> {
    let name = name.trim();
    if let Some(class) = TRANSFORMS.iter().find(|c| is_called(c.class, name)) {
        return Ok(class);
    }
    let sided = |side: &str| TRANSFORMS.iter().any(|c| is_called(c.class, &format!("{name}${side}")));
    if sided("Key") && sided("Value") {
        return Err(format!("Class {name} works on one side of a record; take {name}$Key or {name}$Value"));
    }
    if name.starts_with("io.debezium.") {
        return Err(format!("Class {name} is not supported yet"));
    }
    Err(format!("Class {name} could not be found."))
}

/// As [`transform_called`], for predicates.
pub fn predicate_called(name: &str) -> Result<&'static PredicateClass, String> {
    let name = name.trim();
    let found = PREDICATES.iter().find(|c| is_called(c.class, name));
    found.ok_or_else(|| format!("Class {name} could not be found."))
}

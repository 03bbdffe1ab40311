//! Every transform and predicate there is, under the names that Kafka Connect and Debezium have for them.
//!
//! A connector brings the transforms that are only for its records; a node knows them all. It does not
//! load code: the lists are closed.

use thalweg_config::{OptionTable, Settings};

use super::predicate::{self, Predicate};
use super::side::Side::{Key, Value};
use super::{
    Made, Transform, cast, changed_fields, condition_filter, content_router, drop_headers, extract_field,
    extract_new_record_state, filter, flatten, header_from, header_to_value, hoist_field, insert_field, insert_header,
    logical_topic_router, mask_field, outbox, partition_routing, regex_router, replace_field, schema_change_filter,
    schema_metadata, timestamp_converter, timestamp_router, value_to_key,
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
    /// `make` gets settings without errors.
    pub const fn new(class: &'static str, options: &'static OptionTable, make: fn(&Settings) -> Made) -> Self {
        Self { class, options, make }
    }

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
        TransformClass::new(concat!("org.apache.kafka.connect.transforms.", $name), &$module::OPTIONS, $make)
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

macro_rules! debezium {
    ($name:literal, $options:expr, $make:expr) => {
        TransformClass::new(concat!("io.debezium.transforms.", $name), &$options, $make)
    };
}

/// Those that need no connector of their own, in the order of their names.
pub static TRANSFORMS: &[TransformClass] = &[
    debezium!(
        "ByLogicalTableRouter",
        logical_topic_router::FORMER_OPTIONS,
        logical_topic_router::LogicalTopicRouter::make
    ),
    debezium!("ContentBasedRouter", content_router::OPTIONS, content_router::ContentRouter::make),
    debezium!("ExtractChangedRecordState", changed_fields::OPTIONS, changed_fields::ChangedFields::make),
    debezium!(
        "ExtractNewRecordState",
        extract_new_record_state::OPTIONS,
        extract_new_record_state::ExtractNewRecordState::make
    ),
    debezium!("Filter", condition_filter::OPTIONS, condition_filter::ConditionFilter::make),
    debezium!("HeaderToValue", header_to_value::OPTIONS, header_to_value::HeaderToValue::make),
    debezium!("SchemaChangeEventFilter", schema_change_filter::OPTIONS, schema_change_filter::SchemaChangeFilter::make),
    debezium!("ToLogicalTopicRouter", logical_topic_router::OPTIONS, logical_topic_router::LogicalTopicRouter::make),
    debezium!("outbox.EventRouter", outbox::OPTIONS, outbox::EventRouter::make),
    debezium!("partitions.PartitionRouting", partition_routing::OPTIONS, partition_routing::PartitionRouting::make),
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

/// Classes of Debezium that there are not: name behind `io.debezium.`, and what to do instead.
const REFUSED: &[(&str, &str)] = &[
    ("transforms.tracing.ActivateTracingSpan", "there are no traces; remove the transform"),
    ("transforms.openlineage.OpenLineage", "lineage is not reported; remove the transform"),
    ("transforms.TimezoneConverter", "convert times in the consumer"),
    ("transforms.ExtractSchemaToNewRecord", "take the schema from the topic of schema changes or from the registry"),
    ("transforms.VectorToJsonConverter", "convert vectors in the consumer"),
    ("transforms.GeometryFormatTransformer", "convert geometries in the consumer"),
    ("transforms.SwapGeometryCoordinates", "swap coordinates in the consumer"),
    (
        "transforms.EnforceRecordSize",
        "raise max.request.size and the topic's max.message.bytes, or set errors.tolerance=all",
    ),
];

/// The transforms that a node knows: the core's and those of its connectors.
#[derive(Debug, Clone)]
pub struct TransformClasses {
    /// In the order of their names.
    known: Vec<&'static TransformClass>,
}

impl Default for TransformClasses {
    fn default() -> Self {
        Self { known: TRANSFORMS.iter().collect() }
    }
}

fn simple_name(class: &str) -> &str {
    class.rsplit('.').next().unwrap_or(class)
}

impl TransformClasses {
    /// With those of one more connector.
    #[must_use]
    pub fn with(mut self, classes: &'static [TransformClass]) -> Self {
        for class in classes {
            if !self.known.iter().any(|known| known.class == class.class) {
                self.known.push(class);
            }
        }
        self.known.sort_by_key(|class| class.class);
        self
    }

    pub fn iter(&self) -> impl Iterator<Item = &'static TransformClass> + '_ {
        self.known.iter().copied()
    }

    /// The class called `name`: its full name, or what is behind the last dot of it. Of two classes with
    /// such a name Kafka Connect's own is meant.
    ///
    /// # Errors
    /// The text for the option's message.
    pub fn called(&self, name: &str) -> Result<&'static TransformClass, String> {
        let name = name.trim();
        if let Some(class) = self.iter().find(|c| c.class == name) {
            return Ok(class);
        }
        let short = |name: &str| self.iter().filter(|c| simple_name(c.class) == name).max_by_key(|c| c.class);
        if let Some(class) = short(name) {
            return Ok(class);
        }
        if self.has_sides(name) {
            return Err(format!("Class {name} works on one side of a record; take {name}$Key or {name}$Value"));
        }
        let refused = REFUSED.iter().find(|(class, _)| name.strip_prefix("io.debezium.") == Some(class));
        if let Some((_, advice)) = refused {
            return Err(format!("Class {name} is not supported: {advice}"));
        }
        Err(format!("Class {name} could not be found."))
    }

    /// Whether there is a class of this name for each side of a record.
    fn has_sides(&self, name: &str) -> bool {
        let sided = |side: &str| {
            let sided = format!("{name}${side}");
            self.iter().any(|class| class.class == sided || simple_name(class.class) == simple_name(&sided))
        };
        sided("Key") && sided("Value")
    }

    /// The message for the full name of a class that is there for each side of a record only.
    pub(super) fn abstract_class(&self, name: &str) -> Option<String> {
        let name = name.trim();
        let is_full = self.iter().any(|class| class.class.strip_suffix("$Key") == Some(name));
        (is_full && self.has_sides(name))
            .then(|| format!("This class is abstract and cannot be created. Did you mean {name}$Key, {name}$Value?"))
    }
}

/// The predicate called `name`, as [`TransformClasses::called`].
///
/// # Errors
/// The text for the option's message.
pub fn predicate_called(name: &str) -> Result<&'static PredicateClass, String> {
    let name = name.trim();
    let found = PREDICATES.iter().find(|c| c.class == name || simple_name(c.class) == name);
    found.ok_or_else(|| format!("Class {name} could not be found."))
}

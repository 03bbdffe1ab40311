//! Which converter a configuration means, its options, and how it is made.
//!
//! It does not load code: the list of classes is closed.

use thalweg_config::{Importance, Naming, OptionDef, OptionKind, OptionTable, Properties, Settings, Validation, Width};

use super::Converter;
use super::avro::{self, AvroConverter};
use super::json::JsonConverter;
use super::primitive::{Primitive, PrimitiveConverter};
use super::text::{SimpleHeaderConverter, StringConverter};
use crate::error::{Error, Result};

/// What a converter is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Key,
    Value,
    Header,
}

/// What a class can convert.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    Everything,
    KeysAndValues,
    Headers,
}

type Make = fn(Role, &Settings) -> Result<Box<dyn Converter>>;

/// A converter class.
#[derive(Debug)]
pub struct ConverterClass {
    pub class: &'static str,
    /// Accepted besides the full name.
    pub aliases: &'static [&'static str],
    /// Options below `key.converter.`, `value.converter.` or `header.converter.`.
    pub options: &'static OptionTable,
    pub place: Place,
    make: Make,
}

/// Groups, widths and importance below are those that Kafka Connect 4.3 publishes.
pub(super) const fn option(name: &'static str, kind: OptionKind, doc: &'static str) -> OptionDef {
    OptionDef::new(name, kind, doc).importance(Importance::Low).group("").framework()
}

/// Filled in by [`Role::validate`]; the converters do not ask for it.
pub(super) const TYPE: OptionDef =
    option(CONVERTER_TYPE, OptionKind::String, "Key, value or header; follows from the place of the converter.")
        .exactly(&["key", "value", "header"])
        .width(Width::None)
        .required();
const CONVERTER_TYPE: &str = "converter.type";

pub(super) const VERSION: OptionDef =
    option("plugin.version", OptionKind::String, "Accepted for compatibility and without effect.")
        .inert("a node has exactly one version of every plugin")
        .unpublished();

const SCHEMAS: &str = "Schemas";
const SERIALIZATION: &str = "Serialization";

static JSON_OPTIONS: OptionTable = OptionTable {
    title: "JsonConverter",
    options: &[
        TYPE,
        option("schemas.enable", OptionKind::Boolean, "Write each payload together with its schema.")
            .default("true")
            .importance(Importance::High)
            .group(SCHEMAS)
            .display("Enable Schemas")
            .order(0),
        option("schemas.cache.size", OptionKind::Int, "Accepted for compatibility: a schema keeps its own text.")
            .default("1000")
            .at_least(0)
            .inert("the text of a schema is kept as long as the schema")
            .importance(Importance::High)
            .group(SCHEMAS)
            .display("Schema Cache Size")
            .order(1),
        option(
            "schema.content",
            OptionKind::String,
            "Accepted for compatibility and without effect: it is the schema of what a sink reads.",
        )
        .inert("it is for sinks only")
        .importance(Importance::High)
        .group(SCHEMAS)
        .display("Schema Content")
        .order(2),
        option(
            "decimal.format",
            OptionKind::String,
            "How decimals are written: BASE64 (bytes of the unscaled number) or NUMERIC (a JSON number with all digits).",
        )
        .default("BASE64")
        .one_of(&["NUMERIC", "BASE64"])
        .group(SERIALIZATION)
        .display("Decimal Format")
        .order(0),
        option(
            "replace.null.with.default",
            OptionKind::Boolean,
            "Write the default of a field in place of a null. false: null is written as null.",
        )
        .default("true")
        .group(SERIALIZATION)
        .display("Replace null with default")
        .order(1),
        VERSION,
    ],
    open_prefixes: &[],
    cross_checks: &[],
};

static STRING_OPTIONS: OptionTable = OptionTable {
    title: "StringConverter",
    options: &[
        TYPE,
        option("converter.encoding", OptionKind::String, "Encoding of the text. Only UTF-8 is supported.")
            .default("UTF-8")
            .one_of(&["UTF-8", "UTF8"])
            .importance(Importance::High)
            .display("Encoding")
            .aliases(&["encoding"]),
        VERSION,
    ],
    open_prefixes: &[],
    cross_checks: &[],
};

static NO_OPTIONS: OptionTable = OptionTable {
    title: "Converters without options",
    options: &[TYPE, VERSION],
    open_prefixes: &[],
    cross_checks: &[],
};

/// The converter of headers that needs nothing is published with nothing.
static HEADER_OPTIONS: OptionTable = OptionTable {
    title: "SimpleHeaderConverter",
    options: &[TYPE.unpublished(), VERSION],
    open_prefixes: &[],
    cross_checks: &[],
};

const fn primitive(class: &'static str, aliases: &'static [&'static str], make: Make) -> ConverterClass {
    ConverterClass { class, aliases, options: &NO_OPTIONS, place: Place::Everything, make }
}

/// Every class there is.
pub static CLASSES: &[ConverterClass] = &[
    ConverterClass {
        class: "org.apache.kafka.connect.json.JsonConverter",
        aliases: &["JsonConverter", "Json"],
        options: &JSON_OPTIONS,
        place: Place::Everything,
        make: |_, settings| Ok(Box::new(JsonConverter::from_settings(settings))),
    },
    ConverterClass {
        class: "io.confluent.connect.avro.AvroConverter",
        aliases: &["AvroConverter", "Avro"],
        options: &avro::options::OPTIONS,
        place: Place::KeysAndValues,
        make: |role, settings| Ok(Box::new(AvroConverter::from_settings(role, settings)?)),
    },
    ConverterClass {
        class: "org.apache.kafka.connect.storage.StringConverter",
        aliases: &["StringConverter", "String"],
        options: &STRING_OPTIONS,
        place: Place::Everything,
        make: |_, _| Ok(Box::new(StringConverter)),
    },
    primitive(
        "org.apache.kafka.connect.converters.ByteArrayConverter",
        &["ByteArrayConverter", "ByteArray"],
        |_, _| Ok(Box::new(PrimitiveConverter(Primitive::ByteArray))),
    ),
    primitive("org.apache.kafka.connect.converters.ShortConverter", &["ShortConverter", "Short"], |_, _| {
        Ok(Box::new(PrimitiveConverter(Primitive::Short)))
    }),
    primitive("org.apache.kafka.connect.converters.IntegerConverter", &["IntegerConverter", "Integer"], |_, _| {
        Ok(Box::new(PrimitiveConverter(Primitive::Integer)))
    }),
    primitive("org.apache.kafka.connect.converters.LongConverter", &["LongConverter", "Long"], |_, _| {
        Ok(Box::new(PrimitiveConverter(Primitive::Long)))
    }),
    primitive("org.apache.kafka.connect.converters.FloatConverter", &["FloatConverter", "Float"], |_, _| {
        Ok(Box::new(PrimitiveConverter(Primitive::Float)))
    }),
    primitive("org.apache.kafka.connect.converters.DoubleConverter", &["DoubleConverter", "Double"], |_, _| {
        Ok(Box::new(PrimitiveConverter(Primitive::Double)))
    }),
    primitive("org.apache.kafka.connect.converters.BooleanConverter", &["BooleanConverter", "Boolean"], |_, _| {
        Ok(Box::new(PrimitiveConverter(Primitive::Boolean)))
    }),
    ConverterClass {
        class: "org.apache.kafka.connect.storage.SimpleHeaderConverter",
        aliases: &["SimpleHeaderConverter", "SimpleHeader", "Simple"],
        options: &HEADER_OPTIONS,
        place: Place::Headers,
        make: |_, _| Ok(Box::new(SimpleHeaderConverter)),
    },
];

/// Known elsewhere, not here; the advice says what to take. The packages below it have changed with releases.
const APICURIO: &str = "io.apicurio.";

impl Role {
    pub const ALL: [Self; 3] = [Self::Key, Self::Value, Self::Header];

    /// The option that names the class.
    pub const fn property(self) -> &'static str {
        match self {
            Self::Key => "key.converter",
            Self::Value => "value.converter",
            Self::Header => "header.converter",
        }
    }

    /// What its options start with.
    pub const fn prefix(self) -> &'static str {
        match self {
            Self::Key => "key.converter.",
            Self::Value => "value.converter.",
            Self::Header => "header.converter.",
        }
    }

    /// Value of the option `converter.type`.
    const fn converter_type(self) -> &'static str {
        match self {
            Self::Key => "key",
            Self::Value => "value",
            Self::Header => "header",
        }
    }

    const fn default_class(self) -> Option<&'static str> {
        match self {
            Self::Header => Some("org.apache.kafka.connect.storage.SimpleHeaderConverter"),
            Self::Key | Self::Value => None,
        }
    }

    fn takes(self, class: &ConverterClass) -> bool {
        match class.place {
            Place::Everything => true,
            Place::KeysAndValues => self != Self::Header,
            Place::Headers => self == Self::Header,
        }
    }

    /// The class called `name`.
    ///
    /// # Errors
    /// A text for the message of [`Role::property`], without its standard beginning.
    pub fn class(self, name: &str) -> Result<&'static ConverterClass, String> {
        let name = name.trim();
        let found = CLASSES.iter().find(|c| c.class == name || c.aliases.contains(&name));
        match found.filter(|class| self.takes(class)) {
            Some(class) => Ok(class),
            None if name.starts_with(APICURIO) => Err(format!(
                "Apicurio's own converters and their format are not supported ({name}); for Avro use \
                 io.confluent.connect.avro.AvroConverter, which works with Apicurio's registry as well: set \
                 {}schema.registry.url to its address with the path /apis/ccompat/v7, and consumers to Confluent's format",
                self.prefix()
            )),
            None => {
                let known: Vec<_> = CLASSES.iter().filter(|class| self.takes(class)).map(|class| class.class).collect();
                Err(format!("Class {name} could not be found; supported are {}", known.join(", ")))
            }
        }
    }

    /// The class in force, and the properties that hold its options (below [`Role::prefix`]).
    pub fn choose<'a>(
        self,
        connector: &'a Properties,
        worker: &'a Properties,
    ) -> Result<(&'static ConverterClass, &'a Properties)> {
        let (name, holder) = match (connector.get(self.property()), worker.get(self.property())) {
            (Some(name), _) => (name, connector),
            (None, Some(name)) => (name, worker),
            (None, None) => match self.default_class() {
                Some(name) => (name, worker),
                None => {
                    return Err(Error::config(format!(
                        "neither the connector nor the node names a {}",
                        self.property()
                    ))
                    .advise(format!("set {} in the connector or in the node's configuration", self.property())));
                }
            },
        };
        let class = self.class(name).map_err(|text| {
            Error::config(format!("Invalid value {name} for configuration {}: {text}", self.property()))
        })?;
        Ok((class, holder))
    }

    /// Checks the options of the converter in force; rows have their full names.
    pub fn validate(self, connector: &Properties, worker: &Properties) -> Result<Validation> {
        let (class, holder) = self.choose(connector, worker)?;
        Ok(self.check(class, holder))
    }

    fn check(self, class: &ConverterClass, holder: &Properties) -> Validation {
        let property = format!("{}{CONVERTER_TYPE}", self.prefix());
        if holder.get(&property).is_some() {
            return class.options.validate_named(Naming::Apart, self.prefix(), holder);
        }
        let mut complete = holder.clone();
        complete.set(property, self.converter_type());
        class.options.validate_named(Naming::Apart, self.prefix(), &complete)
    }

    pub(super) fn make(self, connector: &Properties, worker: &Properties) -> Result<Box<dyn Converter>> {
        let (class, holder) = self.choose(connector, worker)?;
        if std::ptr::eq(holder, worker) {
            // As in Kafka Connect they do not count; there it happens in silence.
            for key in connector.below(self.prefix()).iter().map(|(key, _)| key) {
                tracing::warn!(
                    option = format!("{}{key}", self.prefix()),
                    "option without effect: the connector does not name the converter itself"
                );
            }
        }
        let validation = self.check(class, holder);
        for warning in &validation.warnings {
            tracing::warn!(converter = self.property(), "{warning}");
        }
        match Error::invalid_config(&validation) {
            Some(error) => Err(error),
            None => (class.make)(self, &validation.settings),
        }
    }
}

#[cfg(test)]
#[path = "classes_tests.rs"]
mod tests;

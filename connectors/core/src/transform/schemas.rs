//! Schemas that several transforms give to the fields they make.
//!
//! Each exists once per process, so that converters find their text.

use std::sync::{Arc, LazyLock};

use crate::record::Schema;

macro_rules! shared {
    ($name:ident, $schema:expr) => {
        pub(super) fn $name(optional: bool) -> Arc<Schema> {
            static REQUIRED: LazyLock<Arc<Schema>> = LazyLock::new(|| Arc::new($schema));
            static OPTIONAL: LazyLock<Arc<Schema>> = LazyLock::new(|| Arc::new($schema.optional()));
            if optional { OPTIONAL.clone() } else { REQUIRED.clone() }
        }
    };
}

shared!(string, Schema::string());
shared!(int32, Schema::int32());
shared!(int64, Schema::int64());
shared!(boolean, Schema::boolean());
shared!(float64, Schema::new(crate::record::Type::Float64));
shared!(bytes, Schema::bytes());
shared!(date, Schema::int32().named("org.apache.kafka.connect.data.Date").versioned(1));
shared!(time, Schema::int32().named("org.apache.kafka.connect.data.Time").versioned(1));
shared!(timestamp, Schema::int64().named("org.apache.kafka.connect.data.Timestamp").versioned(1));

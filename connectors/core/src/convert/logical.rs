//! Kafka Connect's own logical types, recognised by schema name.

use crate::record::Schema;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Logical {
    Decimal,
    /// Days since the epoch.
    Date,
    /// Milliseconds of the day.
    Time,
    /// Milliseconds since the epoch.
    Timestamp,
}

impl Logical {
    pub(crate) fn of(schema: &Schema) -> Option<Self> {
        match schema.name.as_deref()?.strip_prefix("org.apache.kafka.connect.data.")? {
            "Decimal" => Some(Self::Decimal),
            "Date" => Some(Self::Date),
            "Time" => Some(Self::Time),
            "Timestamp" => Some(Self::Timestamp),
            _ => None,
        }
    }
}

/// Parameter `scale` of a Decimal schema.
pub(crate) fn decimal_scale(schema: &Schema) -> Result<i32, String> {
    let scale = schema.parameters.iter().find(|(key, _)| &**key == "scale").map(|(_, value)| value);
    let scale = scale.ok_or("the Decimal schema has no parameter scale")?;
    scale.parse().map_err(|_| format!("the Decimal schema's parameter scale is not a number: {scale}"))
}

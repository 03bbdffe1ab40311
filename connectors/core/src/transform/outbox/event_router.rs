//! `EventRouter`: the outbox is a table.

use thalweg_config::{OptionTable, Settings};

use super::names::{OPTION_COUNT, OutboxNames, check, options};
use super::router::OutboxRouter;
use crate::error::Result;
use crate::record::{Datum, Record};
use crate::transform::change_event::processed_ms;
use crate::transform::fault::invalid;
use crate::transform::options::table;
use crate::transform::{Fate, Made, Transform, object};

const NAMES: OutboxNames = OutboxNames {
    id: "table.field.event.id",
    id_default: "id",
    key: "table.field.event.key",
    key_default: Some("aggregateid"),
    key_aliases: &["table.field.payload.id"],
    kind: "table.field.event.type",
    payload: "table.field.event.payload",
    payload_aliases: &["table.field.payload"],
    timestamp: "table.field.event.timestamp",
    schema_version: "table.field.event.schema.version",
    placement: "table.fields.additional.placement",
    missing: "table.field.additional.missing",
    missing_aliases: &["table.fields.additional.error.on.missing"],
    invalid_operation: "table.op.invalid.behavior",
    invalid_operation_aliases: &["debezium.op.invalid.behavior"],
    expand: "table.expand.json.payload",
    null_fields: "table.json.payload.null.behavior",
};

const ALL: [thalweg_config::OptionDef; OPTION_COUNT] = options(&NAMES);

pub(in crate::transform) static OPTIONS: OptionTable = table("EventRouter", &ALL, &[check]);

pub(in crate::transform) struct EventRouter(OutboxRouter);

impl EventRouter {
    pub(in crate::transform) fn make(settings: &Settings) -> Made {
        Ok(Box::new(Self(OutboxRouter::from_settings(settings, &NAMES)?)))
    }
}

impl Transform for EventRouter {
    fn apply(&mut self, record: &mut Record) -> Result<Fate> {
        if let Some(fate) = self.0.fate_of_others(record)? {
            return Ok(fate);
        }
        let Some(schema) = record.value.schema.clone() else { return Ok(Fate::Keep) };
        let values = object::fields(&schema, &mut record.value.value, "reading an outbox event")?;
        let processed = processed_ms(&schema, values);
        let at = schema.field_index("after").ok_or_else(|| invalid("the change event has no field after"))?;
        let row = Datum::new(schema.fields()[at].schema.clone(), std::mem::take(&mut values[at]));
        self.0.route(record, row, processed)?;
        Ok(Fate::Keep)
    }
}

#[cfg(test)]
#[path = "../tests/event_router.rs"]
mod tests;

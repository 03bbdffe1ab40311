//! The way of one record through the format.
//!
//! Keeps at most one record back: the delete of a row that changes its key, until the create that comes
//! with it. [`Repstance::end_of_batch`] lets it go as a delete if there is none.

use std::collections::HashSet;
use std::sync::Arc;

use thalweg_config::Properties;

use super::ddl::{self, Tables};
use super::envelope::{Envelope, Fields, NEW_KEY, OLD_KEY, header_key, place};
use super::options::{Rules, ddl_topic, is_chosen};
use super::{Members, cut, identity, member, name};
use crate::convert::{Converter, JsonConverter};
use crate::error::Result;
use crate::position::{ChangeId, PositionCodec};
use crate::record::{Datum, Header, Headers, Record, Schema, Value};

/// Topics of which it is logged that messages were cut.
const TOLD: usize = 1_000;

struct Held {
    delete: Record,
    /// What it becomes if no create follows.
    messages: Vec<Record>,
}

/// Makes the messages of one task.
pub struct Repstance {
    rules: Rules,
    ddl_topic: Arc<str>,
    /// What a connector writes for a column that the change does not have.
    placeholder: Box<str>,
    /// The delete of a row whose key changes.
    held: Option<Held>,
    tables: Tables,
    /// Headers with the last lsn, and what they were made of.
    headers: Option<(Headers, Headers)>,
    text: Arc<Schema>,
    json: JsonConverter,
    scratch: Vec<u8>,
    told: HashSet<Arc<str>>,
}

impl Repstance {
    /// `None` if the connector has another format. References resolved.
    pub fn from_config(config: &Properties) -> Option<Self> {
        is_chosen(config).then(|| Self {
            rules: Rules::read(config),
            ddl_topic: ddl_topic(config).unwrap_or_default().into(),
            placeholder: config.get("unavailable.value.placeholder").unwrap_or("__debezium_unavailable_value").into(),
            held: None,
            tables: Tables::default(),
            headers: None,
            text: Arc::new(Schema::string()),
            json: JsonConverter { schemas: false, ..JsonConverter::with_schemas() },
            scratch: Vec::new(),
            told: HashSet::new(),
        })
    }

    /// Whether a record waits for the one behind it: its position must not count yet.
    pub fn holds_back(&self) -> bool {
        self.held.is_some()
    }

    /// Appends the messages of a record. All messages of a change carry the change's position and follow
    /// each other.
    ///
    /// # Errors
    /// The record cannot be told in this format. What was held back before it is in `out` nevertheless, and
    /// nothing of the record.
    pub fn apply(&mut self, codec: &dyn PositionCodec, record: &Record, out: &mut Vec<Record>) -> Result<()> {
        if record.value.is_none() && !record.key.is_none() {
            // A tombstone of the connector: the format makes its own.
            return Ok(());
        }
        let change = Envelope::of(record);
        let op = change.map(|change| change.op()).unwrap_or_default();
        let old_key = if op == "c" { header_key(record, OLD_KEY) } else { None };
        if let (Some(change), Some(old_key)) = (&change, &old_key) {
            let held = self.held.take_if(|held| held.delete.topic == record.topic && held.delete.key == *old_key);
            out.append(&mut self.end_of_batch());
            return self.key_change(codec, record, change, old_key, held.map(|held| held.delete), out);
        }
        out.append(&mut self.end_of_batch());
        match change {
            Some(change) if op == "d" && header_key(record, NEW_KEY).is_some() => {
                let mut messages = Vec::new();
                self.change(codec, record, &change, &op, &mut messages)?;
                self.held = Some(Held { delete: record.clone(), messages });
            }
            Some(change) if op == "t" => self.truncate(codec, record, &change, out),
            Some(change) => self.change(codec, record, &change, &op, out)?,
            None if record.value.schema.as_ref().is_some_and(|s| is_schema_change(s)) => {
                self.definition(codec, record, out)?;
            }
            None => out.push(record.clone()),
        }
        Ok(())
    }

    /// Lets go what is held back.
    pub fn end_of_batch(&mut self) -> Vec<Record> {
        self.held.take().map(|held| held.messages).unwrap_or_default()
    }

    /// Everything but a change of key.
    fn change(
        &mut self,
        codec: &dyn PositionCodec,
        record: &Record,
        change: &Envelope<'_>,
        op: &str,
        out: &mut Vec<Record>,
    ) -> Result<()> {
        let key = change.key(&record.key)?;
        let mut before = change.image("before", &self.placeholder)?;
        let mut after = change.image("after", &self.placeholder)?;
        if let (Some(key), true) = (&key, before.is_null() && matches!(op, "u" | "d")) {
            before = Value::Map(key.clone());
        }
        let mut shortened = None;
        if let (Some(key), "u", true) = (&key, op, after.is_null()) {
            after = change.described(key)?.unwrap_or_default();
            shortened = change.truncated_arrays();
        }
        let message = self.message(codec, record, change, op, key, before, after, shortened)?;
        let tombstone = (op == "d" && self.rules.tombstones).then(|| message.key.clone()).filter(|key| !key.is_none());
        let tombstone = tombstone.map(|key| Record { key, value: Datum::none(), ..message.clone() });
        out.push(message);
        out.extend(tombstone);
        Ok(())
    }

    fn key_change(
        &mut self,
        codec: &dyn PositionCodec,
        record: &Record,
        change: &Envelope<'_>,
        old_key: &Datum,
        delete: Option<Record>,
        out: &mut Vec<Record>,
    ) -> Result<()> {
        let key = change.key(&record.key)?;
        let old_key = change.key(old_key)?;
        let image = match delete.as_ref().and_then(Envelope::of) {
            Some(delete) => delete.image("before", &self.placeholder)?,
            None => Value::Null,
        };
        let before = if image.is_null() { old_key.clone().map_or(Value::Null, Value::Map) } else { image };
        let after = change.image("after", &self.placeholder)?;
        let message = self.message(codec, record, change, "u", key, before, after, None)?;
        let tombstone = old_key.filter(|_| self.rules.tombstones).map(|key| Record {
            key: free(Value::Map(self.with_table(key, &change.table()))),
            value: Datum::none(),
            ..message.clone()
        });
        out.push(message);
        out.extend(tombstone);
        Ok(())
    }

    #[allow(clippy::too_many_arguments)]
    fn message(
        &mut self,
        codec: &dyn PositionCodec,
        record: &Record,
        change: &Envelope<'_>,
        op: &str,
        key: Option<Members>,
        before: Value,
        after: Value,
        shortened: Option<Value>,
    ) -> Result<Record> {
        let mut id = codec.change_id(&record.position);
        let table = change.table();
        let columns: Vec<String> = key.iter().flatten().filter_map(|(column, _)| text_of(column)).collect();
        let key = key.map_or_else(Datum::none, |key| free(Value::Map(self.with_table(key, &table))));
        let key_size = if key.is_none() { 0 } else { self.size(&key)? };
        let loaded = op == "r";
        let seq = match (loaded, key.is_none()) {
            (false, _) => name(std::mem::take(&mut id.seq)),
            (true, false) => name(identity::of_loaded_row(&table, &self.scratch)),
            // Rows without a key may be equal.
            (true, true) => Value::Null,
        };
        let mut source = source(&change.source, &id, seq, loaded);
        source.extend(shortened.map(|arrays| member("truncatedArrays", arrays)));
        let mut value = vec![
            member("before", before),
            member("after", after),
            member("source", Value::Map(source)),
            member("op", name(op.to_owned())),
            member("ts_ms", change.fields.value("ts_ms")),
        ];
        if self.rules.most > 0 {
            self.limit(record, &mut value, &columns, key_size)?;
        }
        Ok(Record {
            topic: record.topic.clone(),
            partition: record.partition,
            key,
            value: free(Value::Map(value)),
            headers: self.headers(record, id),
            timestamp: record.timestamp,
            position: record.position.clone(),
        })
    }

    fn limit(&mut self, record: &Record, value: &mut Members, columns: &[String], key_size: usize) -> Result<()> {
        let most = self.rules.most.saturating_sub(key_size);
        let bound = value.iter().map(|(_, part)| cut::bound(part)).fold(64, usize::saturating_add);
        if bound <= most {
            return Ok(());
        }
        let (json, scratch) = (&mut self.json, &mut self.scratch);
        let size = |value: &Members| {
            scratch.clear();
            json.convert(&record.topic, None, &Value::Map(value.clone()), scratch)?;
            Ok(scratch.len())
        };
        let named = cut::fit(value, columns, most, size)?;
        if !named.is_empty() && self.told.len() < TOLD && self.told.insert(record.topic.clone()) {
            tracing::warn!(
                topic = %record.topic,
                columns = ?named,
                "strings of a row are cut because its message would be larger than \
                 thalweg.repstance.max.message.bytes; further ones of this topic are not logged, every message names its own"
            );
        }
        Ok(())
    }

    /// Size as JSON, which stays in `scratch`.
    fn size(&mut self, datum: &Datum) -> Result<usize> {
        self.scratch.clear();
        self.json.convert(&"".into(), None, &datum.value, &mut self.scratch)?;
        Ok(self.scratch.len())
    }

    fn with_table(&self, mut key: Members, table: &str) -> Members {
        if self.rules.table_in_key {
            key.insert(0, member("__table", name(table.to_owned())));
        }
        key
    }

    /// The record's headers behind the lsn, without those of a changed key. Neighbours share them.
    fn headers(&mut self, record: &Record, id: ChangeId) -> Headers {
        if let Some((of, made)) = &self.headers
            && Arc::ptr_eq(of, &record.headers)
            && made.first().and_then(|header| text_of(&header.value)).is_some_and(|lsn| lsn == id.lsn)
        {
            return made.clone();
        }
        let mut made = vec![Header { name: "lsn".into(), schema: Some(self.text.clone()), value: name(id.lsn) }];
        let others = record.headers.iter().filter(|h| ![OLD_KEY, NEW_KEY].contains(&&*h.name));
        made.extend(others.cloned());
        let made = Arc::new(made);
        self.headers = Some((record.headers.clone(), made.clone()));
        made
    }

    fn truncate(&mut self, codec: &dyn PositionCodec, record: &Record, change: &Envelope<'_>, out: &mut Vec<Record>) {
        let event = self.tables.truncated(change.table());
        let id = codec.change_id(&record.position);
        let source = source(&change.source, &id, name(id.seq.clone()), false);
        out.push(self.event(record, event, id, source, change.fields.value("ts_ms"), None));
    }

    fn definition(&mut self, codec: &dyn PositionCodec, record: &Record, out: &mut Vec<Record>) -> Result<()> {
        let Some(schema) = &record.value.schema else { return Ok(()) };
        let Some(value) = Fields::of(schema, &record.value.value) else {
            return super::odd("thalweg.format=repstance: a schema change is no struct");
        };
        let Some(block) = value.record("source") else {
            return super::odd("thalweg.format=repstance: a schema change has no source");
        };
        let statement = ddl::statement(&value);
        for (at, event) in self.tables.changed(&value)?.into_iter().enumerate() {
            let id = codec.change_id(&record.position);
            let seq = if at == 0 { id.seq.clone() } else { format!("{}.{at}", id.seq) };
            let loaded = block.text("snapshot").is_some_and(|snapshot| snapshot != "false");
            let source = source(&block, &id, name(seq), loaded);
            out.push(self.event(record, event, id, source, value.value("ts_ms"), statement.clone()));
        }
        Ok(())
    }

    fn event(
        &mut self,
        record: &Record,
        event: ddl::Event,
        id: ChangeId,
        source: Members,
        ts_ms: Value,
        statement: Option<String>,
    ) -> Record {
        Record {
            topic: self.ddl_topic.clone(),
            partition: Some(0),
            key: free(Value::Map(event.key())),
            value: free(Value::Map(event.value(Value::Map(source), ts_ms, statement))),
            headers: self.headers(record, id),
            timestamp: record.timestamp,
            position: record.position.clone(),
        }
    }
}

fn is_schema_change(schema: &Schema) -> bool {
    schema.name.as_deref().is_some_and(|name| name.ends_with(".SchemaChangeValue"))
}

fn source(block: &Fields<'_>, id: &ChangeId, seq: Value, loaded: bool) -> Members {
    let (schema, table) = place(block);
    vec![
        member("lsn", name(id.lsn.clone())),
        member("seq", seq),
        member("snapshot", name(if loaded { "true" } else { "false" })),
        member("ts_ms", block.value("ts_ms")),
        member("connector", block.value("connector")),
        member("db", block.value("db")),
        member("schema", name(schema)),
        member("table", name(table)),
    ]
}

fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.as_str().into_owned()),
        _ => None,
    }
}

fn free(value: Value) -> Datum {
    Datum { schema: None, value }
}

#[cfg(test)]
#[path = "tests/golden.rs"]
mod golden;

//! `io.confluent.connect.avro.AvroConverter`: a value and the id of its schema.
//!
//! The usual record finds its schema by pointer where the one before left it. A schema that is met
//! first is asked for at the registry: `convert` says so, `prepare` does it. What the registry refused is
//! refused for a while without asking, because with tolerated errors each record would ask again.
//!
//! Invariants: at most `schemas.cache.config` ids are held; a schema's id depends on topic and schema
//! only. It does not: repeat a failed question, or wait longer than the registry's time limits.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use thalweg_config::Settings;

use super::super::fault::Fault;
use super::super::{Converter, Role, Written};
use super::binary::{Writer, effective};
use super::registry::Registry;
use super::schema::{SchemaOptions, avro_schema};
use super::subject::SubjectStrategy;
use crate::error::{Error, ErrorKind, Result};
use crate::record::{Schema, Value};

/// First byte of a message.
const MAGIC: u8 = 0;
/// How long a refusal counts.
const REFUSED_FOR: Duration = Duration::from_secs(30);

pub struct AvroConverter {
    role: Role,
    options: SchemaOptions,
    strategy: SubjectStrategy,
    keep_nulls: bool,
    capacity: usize,
    registry: Registry,
    last: Option<Known>,
    known: HashMap<Arc<str>, Vec<Known>>,
    /// Entries of `known`.
    count: usize,
    /// What is to be asked for.
    wanted: Option<(Arc<str>, Arc<Schema>)>,
    refused: Option<Refused>,
}

/// A schema that has an id. Held, so that its address cannot be another schema's meanwhile.
#[derive(Clone)]
struct Known {
    topic: Arc<str>,
    schema: Arc<Schema>,
    id: i32,
}

struct Refused {
    topic: Arc<str>,
    schema: Arc<Schema>,
    until: Instant,
    error: Error,
}

impl AvroConverter {
    pub(in super::super) fn from_settings(role: Role, settings: &Settings) -> Result<Self> {
        let strategy = match role {
            Role::Key => "key.subject.name.strategy",
            Role::Value | Role::Header => "value.subject.name.strategy",
        };
        Ok(Self {
            role,
            options: SchemaOptions {
                meta: settings.bool("connect.meta.data"),
                scrub: settings.bool("scrub.invalid.names"),
            },
            strategy: SubjectStrategy::from_option(settings.text_or_empty(strategy)),
            keep_nulls: settings.bool("ignore.default.for.nullables"),
            capacity: usize::try_from(settings.int("schemas.cache.config")).unwrap_or(1).max(1),
            registry: Registry::from_settings(settings, role.prefix())?,
            last: None,
            known: HashMap::new(),
            count: 0,
            wanted: None,
            refused: None,
        })
    }

    fn id(&mut self, topic: &Arc<str>, schema: &Arc<Schema>) -> Option<i32> {
        let is_last = |last: &&Known| {
            Arc::ptr_eq(&last.schema, schema) && (Arc::ptr_eq(&last.topic, topic) || last.topic == *topic)
        };
        if let Some(last) = self.last.as_ref().filter(is_last) {
            return Some(last.id);
        }
        let of_topic = self.known.get_mut(topic)?;
        let at = of_topic
            .iter()
            .position(|known| Arc::ptr_eq(&known.schema, schema))
            .or_else(|| of_topic.iter().position(|known| known.schema == *schema))?;
        let known = of_topic.get_mut(at)?;
        // The next record most likely has this one.
        known.schema = schema.clone();
        let id = known.id;
        self.last = Some(known.clone());
        Some(id)
    }

    fn remember(&mut self, known: Known) {
        if self.count >= self.capacity {
            self.known.clear();
            self.count = 0;
        }
        self.known.entry(known.topic.clone()).or_default().push(known.clone());
        self.count += 1;
        self.last = Some(known);
    }

    /// The refusal that still counts.
    fn refusal(&mut self, topic: &Arc<str>, schema: &Arc<Schema>) -> Option<Error> {
        let refused = self.refused.as_ref()?;
        if Instant::now() >= refused.until {
            self.refused = None;
            return None;
        }
        let same = refused.topic == *topic && (Arc::ptr_eq(&refused.schema, schema) || refused.schema == *schema);
        same.then(|| refused.error.clone())
    }
}

#[async_trait]
impl Converter for AvroConverter {
    fn class(&self) -> &'static str {
        "io.confluent.connect.avro.AvroConverter"
    }

    /// A null that no default replaces is a Kafka null, whatever the schema.
    fn convert(
        &mut self,
        topic: &Arc<str>,
        schema: Option<&Arc<Schema>>,
        value: &Value,
        out: &mut Vec<u8>,
    ) -> Result<Written> {
        let Some(schema) = schema else {
            return match value {
                Value::Null => Ok(Written::Null),
                _ => Err(Fault::new("Avro needs a schema, and the record has none").to_error()),
            };
        };
        if effective(schema, value, self.keep_nulls).map_err(|fault| fault.to_error())?.is_none() {
            return Ok(Written::Null);
        }
        let Some(id) = self.id(topic, schema) else {
            if let Some(error) = self.refusal(topic, schema) {
                return Err(error);
            }
            self.wanted = Some((topic.clone(), schema.clone()));
            return Ok(Written::Waiting);
        };
        let start = out.len();
        out.push(MAGIC);
        out.extend_from_slice(&id.to_be_bytes());
        match (Writer { out, keep_nulls: self.keep_nulls }).value(schema, value) {
            Ok(()) => Ok(Written::Bytes),
            Err(fault) => {
                out.truncate(start);
                Err(fault.to_error())
            }
        }
    }

    async fn prepare(&mut self) -> Result<()> {
        let Some((topic, schema)) = self.wanted.clone() else { return Ok(()) };
        let asked = async {
            let avro = avro_schema(&schema, self.options).map_err(|fault| fault.to_error())?;
            let subject = self.strategy.subject(&topic, self.role, avro.record.as_deref());
            let subject = subject.map_err(|fault| fault.to_error())?;
            self.registry.id(&subject, &avro.text).await
        };
        let asked = asked.await;
        self.wanted = None;
        match asked {
            Ok(id) => {
                self.remember(Known { topic, schema, id });
                Ok(())
            }
            Err(error) => {
                if error.kind == ErrorKind::ValueInvalid {
                    let until = Instant::now() + REFUSED_FOR;
                    self.refused = Some(Refused { topic, schema, until, error: error.clone() });
                }
                Err(error)
            }
        }
    }
}

#[cfg(test)]
#[path = "converter_tests.rs"]
mod tests;

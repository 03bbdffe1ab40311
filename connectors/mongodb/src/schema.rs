//! Names and schemas of collections, made on first sight and kept.
//!
//! All envelopes share the schemas of their parts, so converters find the cached text of each. The
//! look-up per event compares bytes with the collection of the event before and allocates nothing.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use thalweg_core::Error;
use thalweg_core::envelope::{json_text, source_schema, transaction_block};
use thalweg_core::naming::TopicNaming;
use thalweg_core::record::Schema;

use crate::extended_json::push_lossy;
use crate::fields::{FieldRules, FieldSelector};
use crate::filter::NamespaceFilter;
use crate::namespace::Namespace;
use crate::options::MongoConfig;

/// Collections that are kept; beyond, all are forgotten and made again.
const KEPT: usize = 10_000;

/// Fields of the envelope by position.
pub(crate) mod envelope {
    pub(crate) const SOURCE: usize = 3;
    pub(crate) const TRANSACTION: usize = 6;
}

/// Fields of `source` by position.
pub(crate) mod source {
    pub(crate) const SNAPSHOT: usize = 4;
}

/// What the records of one collection have in common.
#[derive(Debug)]
pub struct Collection {
    pub namespace: Namespace,
    /// `database.collection`, as transaction metadata names it.
    pub full_name: Arc<str>,
    /// Whether the include and exclude lists let it pass.
    pub captured: bool,
    pub topic: Arc<str>,
    pub key: Arc<Schema>,
    pub value: Arc<Schema>,
    /// Fields that are left out or renamed.
    pub fields: Option<FieldRules>,
}

/// The collections of a task.
pub struct Collections {
    filter: Arc<NamespaceFilter>,
    fields: FieldSelector,
    naming: TopicNaming,
    source: Arc<Schema>,
    known: HashMap<Vec<u8>, Arc<Collection>>,
    /// Of the last look-up: events come in runs.
    last: Option<Arc<Collection>>,
    scratch: Vec<u8>,
}

impl Collections {
    /// `per_shard`: events name the replica set they come from.
    pub fn new(config: &MongoConfig, filter: Arc<NamespaceFilter>, per_shard: bool) -> Self {
        Self {
            filter,
            fields: config.events.fields.clone(),
            naming: TopicNaming::new(config.naming.clone()),
            source: Arc::new(mongo_source(per_shard)),
            known: HashMap::new(),
            last: None,
            scratch: Vec::new(),
        }
    }

    /// The collection of an event. Errors: an include or exclude list that cannot be evaluated.
    pub fn of(&mut self, db: &[u8], collection: &[u8]) -> Result<Arc<Collection>, Error> {
        if let Some(last) = &self.last
            && last.namespace.db.as_bytes() == db
            && last.namespace.coll.as_bytes() == collection
        {
            return Ok(last.clone());
        }
        self.scratch.clear();
        self.scratch.extend_from_slice(db);
        self.scratch.push(0);
        self.scratch.extend_from_slice(collection);
        let found = match self.known.get(&self.scratch) {
            Some(known) => known.clone(),
            None => {
                let made = Arc::new(self.make(db, collection)?);
                if self.known.len() >= KEPT {
                    self.known.clear();
                }
                self.known.insert(self.scratch.clone(), made.clone());
                made
            }
        };
        self.last = Some(found.clone());
        Ok(found)
    }

    fn make(&self, db: &[u8], collection: &[u8]) -> Result<Collection, Error> {
        let name = |bytes: &[u8]| {
            let mut text = String::new();
            push_lossy(bytes, &mut text);
            text
        };
        let namespace = Namespace::new(name(db), name(collection));
        let captured = self.filter.captures(&namespace)?;
        let names = self.naming.collection(&[&namespace.db, &namespace.coll]);
        Ok(Collection {
            captured,
            topic: names.topic.clone(),
            key: Arc::new(Schema::record([("id", Schema::string())]).named(names.key.clone())),
            value: Arc::new(envelope_schema(self.source.clone()).named(names.envelope.clone())),
            full_name: namespace.to_string().into(),
            fields: if captured { self.fields.rules(&namespace) } else { None },
            namespace,
        })
    }
}

fn envelope_schema(source: Arc<Schema>) -> Schema {
    Schema::record([
        ("before", json_text()),
        ("after", json_text()),
        ("updateDescription", update_description()),
        ("source", source),
        ("op", Arc::new(Schema::string().optional())),
        ("ts_ms", Arc::new(Schema::int64().optional())),
        ("transaction", transaction_block()),
    ])
}

fn update_description() -> Arc<Schema> {
    static SCHEMA: LazyLock<Arc<Schema>> = LazyLock::new(|| {
        let truncated = Schema::record([("field", Schema::string()), ("size", Schema::int32())])
            .named("io.debezium.connector.mongodb.changestream.truncatedarray")
            .versioned(1);
        let fields = [
            ("removedFields", Arc::new(Schema::array(Schema::string()).optional())),
            ("updatedFields", json_text()),
            ("truncatedArrays", Arc::new(Schema::array(truncated).optional())),
        ];
        let schema = Schema::record(fields).named("io.debezium.connector.mongodb.changestream.updatedescription");
        Arc::new(schema.versioned(1).optional())
    });
    SCHEMA.clone()
}

fn mongo_source(per_shard: bool) -> Schema {
    let shard = per_shard.then(|| ("rs", Schema::string()));
    let own = [
        ("collection", Schema::string()),
        ("ord", Schema::int32()),
        ("lsid", Schema::string().optional()),
        ("txnNumber", Schema::int64().optional()),
        ("wallTime", Schema::int64().optional()),
    ];
    source_schema("io.debezium.connector.mongo.Source", shard.into_iter().chain(own))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use thalweg_config::Properties;

    use super::*;

    fn collections(more: &[(&str, &str)]) -> Collections {
        let base = [("mongodb.connection.string", "mongodb://h/?replicaSet=rs0"), ("topic.prefix", "shop")];
        let properties: Properties = base.iter().chain(more).map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        let config = MongoConfig::parse(&properties).unwrap();
        let filter = Arc::new(NamespaceFilter::new(&config.filters).unwrap());
        Collections::new(&config, filter, false)
    }

    #[test]
    fn names_and_decisions_are_kept() {
        let mut collections = collections(&[("collection.include.list", "inv.a")]);
        let a = collections.of(b"inv", b"a").unwrap();
        let b = collections.of(b"inv", b"b").unwrap();
        assert!(a.captured && !b.captured);
        assert!(Arc::ptr_eq(&a, &collections.of(b"inv", b"a").unwrap()));
        assert!(Arc::ptr_eq(&a, &collections.of(b"inv", b"a").unwrap()));
        assert_eq!((&*a.topic, a.key.name.as_deref()), ("shop.inv.a", Some("shop.inv.a.Key")));
        // The separator cannot be part of a name.
        assert_eq!(collections.of(b"inv.a", b"b").unwrap().namespace.to_string(), "inv.a.b");
    }

    #[test]
    fn mgo_10_t_60_odd_names() {
        let mut collections = collections(&[("schema.name.adjustment.mode", "avro")]);
        for (name, topic, schema) in [
            ("my@coll", "shop.inv.my_coll", "shop.inv.my_coll.Envelope"),
            ("ünï", "shop.inv._n_", "shop.inv._n_.Envelope"),
            ("a-b$c", "shop.inv.a-b_c", "shop.inv.a_b_c.Envelope"),
        ] {
            let made = collections.of(b"inv", name.as_bytes()).unwrap();
            assert_eq!((&*made.topic, made.value.name.as_deref()), (topic, Some(schema)));
        }
        // A name that Kafka takes and Avro does not stays unless that is asked for.
        let dashed = self::collections(&[]).of(b"inv", b"a-b").unwrap();
        assert_eq!(dashed.value.name.as_deref(), Some("shop.inv.a-b.Envelope"));
        let as_it_is = self::collections(&[]).of(b"inv", b"a.b$c").unwrap();
        assert_eq!(
            (&*as_it_is.topic, as_it_is.value.name.as_deref()),
            ("shop.inv.a.b_c", Some("shop.inv.a.b_c.Envelope")),
            "the schema is named after the topic"
        );
        let odd = collections.of(b"inv", b"a\xFF").unwrap();
        assert_eq!(&*odd.namespace.coll, "a\u{fffd}");
    }

    #[test]
    fn positions_of_fields() {
        let made = collections(&[]).of(b"inv", b"a").unwrap();
        assert_eq!(made.value.field_index("source"), Some(envelope::SOURCE));
        assert_eq!(made.value.field_index("transaction"), Some(envelope::TRANSACTION));
        let source = &made.value.fields()[envelope::SOURCE].schema;
        assert_eq!(source.field_index("snapshot"), Some(source::SNAPSHOT));
        assert_eq!(source.field_index("rs"), None);
        assert_eq!(mongo_source(true).field_index("rs"), Some(9));
    }
}

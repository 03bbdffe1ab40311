//! Every rule of the format as a file: records of a connector, and the messages that become of them.
//!
//! A file has `options`, a `table` (columns with Connect types and names; or `documents`), `batches` of
//! changes and the `messages` expected, members in their order. `at` is the position, `lsn/seq`. In texts
//! `repeat:x:3` stands for `xxx`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::{Map, Value as Json, json};

use super::*;
use crate::envelope::{json_text, snapshot_marker};
use crate::position::{OffsetMap, Position};
use crate::record::{Field, Type};

struct Texts;

impl PositionCodec for Texts {
    fn to_offset(&self, _: &Position) -> OffsetMap {
        OffsetMap::new()
    }
    fn from_offset(&self, _: &OffsetMap) -> Result<Position, String> {
        Ok(Position::default())
    }
    fn check_partition(&self, _: &Map<String, Json>) -> Result<(), String> {
        Ok(())
    }
    fn change_id(&self, position: &Position) -> ChangeId {
        let text = String::from_utf8(position.place.to_vec()).unwrap();
        let (lsn, seq) = text.split_once('/').unwrap();
        ChangeId { lsn: lsn.to_owned(), seq: seq.to_owned() }
    }
}

fn text(text: &str) -> String {
    match text.strip_prefix("repeat:").and_then(|rest| rest.rsplit_once(':')) {
        Some((what, times)) => what.repeat(times.parse().unwrap()),
        None => text.to_owned(),
    }
}

/// Expected values with their texts written out.
fn expanded(json: &Json) -> Json {
    match json {
        Json::String(it) => Json::String(text(it)),
        Json::Array(items) => items.iter().map(expanded).collect(),
        Json::Object(members) => Json::Object(members.iter().map(|(k, v)| (k.clone(), expanded(v))).collect()),
        other => other.clone(),
    }
}

struct Table<'a>(&'a Json);

impl Table<'_> {
    fn documents(&self) -> bool {
        self.0["documents"].as_bool().unwrap_or(false)
    }

    fn schema(&self, columns: impl Iterator<Item = Json>) -> Arc<Schema> {
        let field = |column: Json| {
            let ty = match column["type"].as_str().unwrap() {
                "int32" => Type::Int32,
                "int64" => Type::Int64,
                "float64" => Type::Float64,
                "boolean" => Type::Boolean,
                "string" => Type::String,
                "bytes" | "decimal" => Type::Bytes,
                other => panic!("type {other}"),
            };
            let mut schema = Schema::new(ty).optional();
            if column["type"] == "decimal" {
                let scale = column["scale"].to_string();
                schema = schema.named("org.apache.kafka.connect.data.Decimal").parameter("scale", scale);
            }
            if let Some(default) = column["default"].as_str() {
                schema = schema.defaulting(Value::text(default.to_owned()));
            }
            Field { name: column["name"].as_str().unwrap().into(), schema: Arc::new(schema) }
        };
        Arc::new(Schema::new(Type::Struct(columns.map(field).collect())).optional().named("shop.Value"))
    }

    fn row(&self) -> Arc<Schema> {
        if self.documents() {
            return json_text();
        }
        self.schema(self.0["columns"].as_array().unwrap().iter().cloned())
    }

    fn key(&self) -> Option<Arc<Schema>> {
        if self.documents() {
            return Some(Arc::new(Schema::record([("id", Schema::string())])));
        }
        let keys = self.0["key"].as_array()?.clone();
        let columns = self.0["columns"].as_array().unwrap().iter();
        Some(self.schema(columns.filter(|column| keys.contains(&column["name"])).cloned()))
    }

    fn value(&self, schema: &Schema, json: &Json) -> Value {
        match (&schema.ty, json) {
            (_, Json::Null) => Value::Null,
            (Type::String, Json::Object(_)) => Value::text(expanded(json).to_string()),
            (Type::String, Json::String(it)) => Value::text(text(it)),
            (Type::Bytes, Json::String(it)) if it.starts_with("repeat:") => Value::Bytes(text(it).into_bytes().into()),
            (Type::Bytes, Json::String(it)) => Value::Bytes(STANDARD.decode(it).unwrap().into()),
            (Type::Int32, _) => Value::Int32(json.as_i64().unwrap().try_into().unwrap()),
            (Type::Int64, _) => Value::Int64(json.as_i64().unwrap()),
            (Type::Float64, _) => Value::Float64(json.as_f64().unwrap()),
            (Type::Boolean, _) => Value::Bool(json.as_bool().unwrap()),
            (Type::Array(items), Json::Array(all)) => Value::Array(all.iter().map(|v| self.value(items, v)).collect()),
            (Type::Struct(fields), _) => {
                Value::Struct(fields.iter().map(|f| self.value(&f.schema, &json[&*f.name])).collect())
            }
            other => panic!("{other:?}"),
        }
    }

    fn datum(&self, schema: Arc<Schema>, json: &Json) -> Datum {
        Datum { value: self.value(&schema, json), schema: Some(schema) }
    }

    /// The key of a document is its `_id` as text.
    fn key_datum(&self, json: &Json) -> Datum {
        match self.key() {
            None => Datum::none(),
            Some(schema) if self.documents() => {
                Datum::new(schema, Value::Struct(vec![Value::text(expanded(&json["_id"]).to_string())]))
            }
            Some(schema) => self.datum(schema, json),
        }
    }

    fn source(&self) -> Schema {
        let text = || Schema::string().optional();
        let names: &[&str] = if self.documents() { &["db", "collection"] } else { &["db", "schema", "table"] };
        let common =
            [("connector", Arc::new(text())), ("ts_ms", Arc::new(Schema::int64())), ("snapshot", snapshot_marker())];
        let own = names.iter().map(|name| (*name, Arc::new(text())));
        Schema::record(common.into_iter().chain(own)).named("io.debezium.connector.x.Source")
    }

    fn source_value(&self, change: &Json) -> Json {
        let mut source = self.0["source"].clone();
        source["ts_ms"] = json!(1000);
        source["snapshot"] = change["snapshot"].clone();
        source
    }

    fn envelope(&self, change: &Json) -> Datum {
        let update = Schema::record([
            ("removedFields", Arc::new(Schema::array(Schema::string()).optional())),
            ("updatedFields", json_text()),
            (
                "truncatedArrays",
                Arc::new(
                    Schema::array(Schema::record([("field", Schema::string()), ("size", Schema::int32())])).optional(),
                ),
            ),
        ]);
        let mut fields = vec![("before", self.row()), ("after", self.row())];
        if self.documents() {
            fields.push(("updateDescription", Arc::new(update.optional())));
        }
        fields.extend([
            ("source", Arc::new(self.source())),
            ("op", Arc::new(Schema::string().optional())),
            ("ts_ms", Arc::new(Schema::int64().optional())),
        ]);
        let schema = Arc::new(Schema::record(fields).named("shop.Envelope"));
        let mut value = change.clone();
        value["source"] = self.source_value(change);
        value["ts_ms"] = json!(2000);
        self.datum(schema, &value)
    }

    fn definition(&self, change: &Json) -> Datum {
        let text = || Arc::new(Schema::string().optional());
        let number = || Arc::new(Schema::int32().optional());
        let flag = || Arc::new(Schema::boolean().optional());
        let column = Schema::record([
            ("name", text()),
            ("jdbcType", number()),
            ("typeName", text()),
            ("typeExpression", text()),
            ("length", number()),
            ("scale", number()),
            ("position", number()),
            ("optional", flag()),
            ("autoIncremented", flag()),
        ]);
        let table = Arc::new(
            Schema::record([
                ("primaryKeyColumnNames", Schema::array(Schema::string()).optional()),
                ("columns", Schema::array(column)),
            ])
            .optional(),
        );
        let item = Schema::record([
            ("type", text()),
            ("id", text()),
            ("previousId", text()),
            ("table", table.clone()),
            ("previous", table),
        ]);
        let schema = Schema::record([
            ("source", Arc::new(self.source())),
            ("ts_ms", Arc::new(Schema::int64())),
            ("ddl", text()),
            ("tableChanges", Arc::new(Schema::array(item))),
        ]);
        let mut value = change.clone();
        value["source"] = self.source_value(change);
        value["ts_ms"] = json!(2000);
        self.datum(Arc::new(schema.named("io.debezium.connector.x.SchemaChangeValue")), &value)
    }

    fn record(&self, change: &Json) -> Record {
        let topic = change["topic"].as_str().or(self.0["topic"].as_str()).unwrap();
        let row = [&change["key"], &change["after"], &change["before"]].into_iter().find(|row| !row.is_null());
        let mut record = Record {
            topic: topic.into(),
            partition: None,
            key: row.map_or_else(Datum::none, |row| self.key_datum(row)),
            value: Datum::none(),
            headers: Headers::default(),
            timestamp: None,
            position: Position::new(Bytes::copy_from_slice(change["at"].as_str().unwrap().as_bytes())),
        };
        if change["tableChanges"].is_array() {
            record.value = self.definition(change);
        } else if change["heartbeat"].is_number() {
            let schema =
                Arc::new(Schema::record([("ts_ms", Schema::int64())]).named("io.debezium.connector.common.Heartbeat"));
            record.value = self.datum(schema, &json!({"ts_ms": change["heartbeat"]}));
        } else if change["op"].is_string() {
            record.value = self.envelope(change);
        }
        let header = |name: &'static str, member: &str| {
            let key = change.get(member)?;
            let Datum { schema, value } = self.key_datum(key);
            Some(Header { name: name.into(), schema, value })
        };
        let mut headers: Vec<Header> = header(NEW_KEY, "newkey").into_iter().chain(header(OLD_KEY, "oldkey")).collect();
        if let Some(run) = change["run"].as_str() {
            let (schema, value) = (Some(Arc::new(Schema::string())), Value::text(run.to_owned()));
            headers.push(Header { name: "__debezium.context.runId".into(), schema, value });
        }
        record.headers = Arc::new(headers);
        record
    }
}

fn written(datum: &Datum) -> Option<String> {
    let mut out = Vec::new();
    let mut json = JsonConverter { schemas: false, ..JsonConverter::with_schemas() };
    json.convert_datum(&"t".into(), datum, &mut out).unwrap();
    (!datum.is_none()).then(|| String::from_utf8(out).unwrap())
}

fn shown(record: &Record) -> String {
    let texts = record.headers.iter().map(|h| (h.name.to_string(), Json::String(text_of(&h.value).unwrap())));
    let headers = Json::Object(texts.collect());
    let at = String::from_utf8(record.position.place.to_vec()).unwrap();
    let [key, value] = [&record.key, &record.value].map(|datum| written(datum).unwrap_or("null".to_owned()));
    let partition = record.partition.map_or("any".to_owned(), |n| n.to_string());
    format!("{} {partition} {at} {headers}\n  {key}\n  {value}", record.topic)
}

fn expected(message: &Json, file: &str) -> String {
    let member = |name: &str| expanded(&message[name]).to_string();
    let partition = message["partition"].as_i64().map_or("any".to_owned(), |n| n.to_string());
    let at = message["at"].as_str().expect(file);
    let topic = message["topic"].as_str().expect(file);
    format!("{topic} {partition} {at} {}\n  {}\n  {}", member("headers"), member("key"), member("value"))
}

fn run(file: &Json) -> Vec<Record> {
    let options = file["options"].as_object().cloned().unwrap_or_default();
    let mut config = Properties::from([("thalweg.format", "repstance"), ("topic.prefix", "shop")]);
    for (key, value) in options {
        config.set(key, value.as_str().unwrap());
    }
    let mut format = Repstance::from_config(&config).unwrap();
    let table = Table(&file["table"]);
    let mut out = Vec::new();
    for batch in file["batches"].as_array().unwrap() {
        for change in batch.as_array().unwrap() {
            format.apply(&Texts, &table.record(change), &mut out).unwrap();
        }
        out.append(&mut format.end_of_batch());
        assert!(!format.holds_back());
    }
    out
}

#[test]
fn cnv_06_every_rule_has_its_messages() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/repstance/tests/data");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 14, "{files:?}");
    for path in files {
        let file: Json = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        let name = path.file_name().unwrap().to_str().unwrap();
        let made: Vec<String> = run(&file).iter().map(shown).collect();
        let wanted: Vec<String> =
            file["messages"].as_array().unwrap().iter().map(|message| expected(message, name)).collect();
        for (made, wanted) in made.iter().zip(&wanted) {
            assert!(made == wanted, "{name}:\n{}\nexpected\n{}", start(made), start(wanted));
        }
        assert_eq!(made.len(), wanted.len(), "{name}: {made:#?}");
        // Read again, by another task: the same.
        assert_eq!(run(&file).iter().map(shown).collect::<Vec<_>>(), made, "{name}");
    }
}

fn start(text: &str) -> String {
    text.chars().take(3_000).collect()
}

/// The measure that the format's description gives: two long values are cut to the same length, and the
/// message is just within its limit.
#[test]
fn cnv_05_large_values_are_cut_to_one_length() {
    let columns = json!([
        {"name": "id", "type": "int32"}, {"name": "body", "type": "string"},
        {"name": "bin", "type": "bytes"}, {"name": "note", "type": "string"},
    ]);
    let row = json!({"id": 1, "body": "repeat:x:3000000", "bin": "repeat:y:2000000", "note": "repeat:\":100000"});
    let source = json!({"connector": "sqlserver", "db": "d", "schema": "dbo", "table": "doc"});
    let table = json!({"topic": "t", "columns": columns, "key": ["id"], "source": source});
    for (most, both) in [(980_000, false), (980_000, true), (300_000, false), (2_000, true)] {
        let mut change = json!({"at": "1/1", "op": "c", "after": row});
        if both {
            change["op"] = json!("u");
            change["before"] = row.clone();
        }
        let limit = most.to_string();
        let options = json!({"thalweg.repstance.max.message.bytes": limit});
        let file = json!({"table": table, "batches": [[change]], "options": options});
        let record = run(&file).remove(0);
        let (key, value) = (written(&record.key).unwrap(), written(&record.value).unwrap());
        let size = key.len() + value.len();
        assert!(size <= most && size > most - 16, "{size} of {most}");
        let value: Json = serde_json::from_str(&value).unwrap();
        let after = &value["after"];
        let length = |column: &str| Json::to_string(&after[column]).len() - 2;
        assert!(length("body").abs_diff(length("bin")) < 8, "{} {}", length("body"), length("bin"));
        assert!(after["body"].as_str().unwrap().bytes().all(|b| b == b'x'));
        assert!(STANDARD.decode(after["bin"].as_str().unwrap()).unwrap().iter().all(|b| *b == b'y'));
        let cut: Vec<&str> =
            value["source"]["truncated"].as_array().unwrap().iter().map(|c| c.as_str().unwrap()).collect();
        if length("note") == 200_000 {
            assert_eq!(cut, ["bin", "body"]);
        } else {
            assert_eq!(cut, ["bin", "body", "note"]);
        }
        assert_eq!(most == 980_000 && !both, length("note") == 200_000, "{}", length("note"));
        if both {
            assert_eq!(value["before"], value["after"], "alike in both images");
        }
    }
    // What fits stays whole.
    let change = json!({"at": "1/1", "op": "c", "after": {"id": 1, "body": "repeat:z:400000"}});
    let options = json!({"thalweg.repstance.max.message.bytes": "1000000"});
    let record = run(&json!({"table": table, "batches": [[change]], "options": options})).remove(0);
    let value: Json = serde_json::from_str(&written(&record.value).unwrap()).unwrap();
    assert_eq!(value["after"]["body"].as_str().map(str::len), Some(400_000));
    assert_eq!(value["source"].get("truncated"), None);
}

#[test]
fn what_cannot_be_cut_enough_is_an_error() {
    let columns = json!([{"name": "id", "type": "string"}, {"name": "n", "type": "int32"}]);
    let source = json!({"connector": "sqlserver", "db": "d", "schema": "dbo", "table": "doc"});
    let table = json!({"topic": "t", "columns": columns, "key": ["id"], "source": source});
    let change = json!({"at": "1/1", "op": "c", "after": {"id": "repeat:k:2000", "n": 1}});
    let config = Properties::from([("thalweg.format", "repstance"), ("thalweg.repstance.max.message.bytes", "3000")]);
    let mut format = Repstance::from_config(&config).unwrap();
    let error = format.apply(&Texts, &Table(&table).record(&change), &mut Vec::new()).unwrap_err();
    assert_eq!(error.kind, crate::error::ErrorKind::MessageTooLarge);
    assert!(error.advice().contains("thalweg.repstance.max.message.bytes") && !error.message.contains("kkk"));
}

#[test]
fn an_odd_record_is_an_error_and_what_was_held_back_is_still_there() {
    let source = json!({"connector": "mongodb", "db": "inv", "collection": "c"});
    let table = json!({"topic": "shop.inv.c", "documents": true, "source": source});
    let table = Table(&table);
    let mut format = Repstance::from_config(&Properties::from([("thalweg.format", "repstance")])).unwrap();
    let mut out = Vec::new();
    let delete = json!({"at": "1/1", "op": "d", "before": {"_id": 1}, "newkey": {"_id": 2}});
    format.apply(&Texts, &table.record(&delete), &mut out).unwrap();
    assert!(out.is_empty() && format.holds_back());
    let mut odd = table.record(&json!({"at": "1/2", "op": "c", "after": {"_id": 3}}));
    odd.key =
        Datum::new(Arc::new(Schema::record([("id", Schema::string())])), Value::Struct(vec![Value::text("{secret")]));
    let error = format.apply(&Texts, &odd, &mut out).unwrap_err();
    assert!(!error.message.contains("secret"), "{}", error.message);
    assert_eq!(out.len(), 2, "the delete and its tombstone");
    assert!(!format.holds_back());
}

//! Changes of structures as records for consumers (`include.schema.changes`).
//!
//! They go to the topic that is called like the source, in the form of the schema history with a schema of its
//! own: members without a value are null. A change is told only after the history has it, so that no consumer
//! knows a structure that a restart forgets. It does not decide which changes are told.

use std::sync::{Arc, LazyLock};

use super::column::Column;
use super::table::Table;
use super::table_json::{ChangeKind, TableChange};
use crate::naming::sanitized_topic;
use crate::position::Position;
use crate::record::{Datum, Headers, Record, Schema, Text, Value};

fn column_schema() -> Schema {
    let text = Arc::new(Schema::string());
    let number = Arc::new(Schema::int32());
    let opt_text = Arc::new(Schema::string().optional());
    let opt_number = Arc::new(Schema::int32().optional());
    let flag = Arc::new(Schema::boolean().optional());
    let fields = [
        ("name", text.clone()),
        ("jdbcType", number.clone()),
        ("nativeType", opt_number.clone()),
        ("typeName", text),
        ("typeExpression", opt_text.clone()),
        ("charsetName", opt_text.clone()),
        ("length", opt_number.clone()),
        ("scale", opt_number),
        ("position", number),
        ("optional", flag.clone()),
        ("autoIncremented", flag.clone()),
        ("generated", flag),
        ("comment", opt_text.clone()),
        ("defaultValueExpression", opt_text),
        ("enumValues", Arc::new(Schema::array(Schema::string()).optional())),
    ];
    Schema::record(fields).named("io.debezium.connector.schema.Column").versioned(1)
}

/// Schema of one change.
fn change_schema() -> Arc<Schema> {
    static SCHEMA: LazyLock<Arc<Schema>> = LazyLock::new(|| {
        let table = [
            ("defaultCharsetName", Schema::string().optional()),
            ("primaryKeyColumnNames", Schema::array(Schema::string()).optional()),
            ("columns", Schema::array(column_schema())),
            ("comment", Schema::string().optional()),
        ];
        let table = Schema::record(table).named("io.debezium.connector.schema.Table").versioned(1).optional();
        let change = [("type", Schema::string()), ("id", Schema::string()), ("table", table)];
        Arc::new(Schema::record(change).named("io.debezium.connector.schema.Change").versioned(1))
    });
    SCHEMA.clone()
}

fn opt_text(text: Option<&str>) -> Value {
    Value::or_null(text, |text| Value::text(text.to_owned()))
}

fn column_value(column: &Column) -> Value {
    let shared = |text: &Arc<str>| Value::text(text.clone());
    let texts = |texts: &Vec<String>| Value::Array(texts.iter().map(|text| Value::text(text.clone())).collect());
    Value::Struct(vec![
        shared(&column.name),
        Value::Int32(column.jdbc_type),
        Value::or_null(column.native_type, Value::Int32),
        shared(&column.type_name),
        opt_text(column.type_expression.as_deref()),
        opt_text(column.charset_name.as_deref()),
        Value::or_null(column.length, Value::Int32),
        Value::or_null(column.scale, Value::Int32),
        Value::Int32(column.position),
        Value::Bool(column.optional),
        Value::Bool(column.auto_incremented),
        Value::Bool(column.generated),
        opt_text(column.comment.as_deref()),
        Value::or_null(column.default.expression(), shared),
        Value::or_null(column.enum_values.as_ref(), texts),
    ])
}

fn table_value(table: &Table) -> Value {
    Value::Struct(vec![
        opt_text(table.default_charset_name.as_deref()),
        Value::Array(table.primary_key().iter().map(|name| Value::text(name.clone())).collect()),
        Value::Array(table.columns().iter().map(column_value).collect()),
        opt_text(table.comment.as_deref()),
    ])
}

fn change_value(change: &TableChange) -> Value {
    let table = match change.kind {
        ChangeKind::Drop => Value::Null,
        ChangeKind::Create | ChangeKind::Alter => table_value(&change.table),
    };
    Value::Struct(vec![Value::text(change.kind.as_str()), Value::text(change.table.id.quoted()), table])
}

/// What a record tells.
#[derive(Debug)]
pub struct SchemaChange<'a> {
    /// The source block.
    pub source: Value,
    /// When the change is processed, in milliseconds since the epoch.
    pub ts_ms: i64,
    pub database_name: &'a str,
    pub schema_name: Option<&'a str>,
    /// The statement, or what a source says instead; `None` in a snapshot.
    pub ddl: Option<&'a str>,
    pub changes: &'a [TableChange],
}

/// Makes the records of a source.
#[derive(Debug)]
pub struct SchemaChangeTopic {
    topic: Arc<str>,
    key: Arc<Schema>,
    value: Arc<Schema>,
}

impl SchemaChangeTopic {
    /// `prefix`: `topic.prefix`. `connector`: the part of schema names, e.g. `sqlserver`. `source`: schema of the
    /// source block.
    pub fn new(prefix: &str, connector: &str, source: Arc<Schema>) -> Self {
        let name = |kind: &str| format!("io.debezium.connector.{connector}.SchemaChange{kind}");
        let text = Arc::new(Schema::string().optional());
        let value = [
            ("source", source),
            ("ts_ms", Arc::new(Schema::int64())),
            ("databaseName", text.clone()),
            ("schemaName", text.clone()),
            ("ddl", text),
            ("tableChanges", Arc::new(Schema::array(change_schema()))),
        ];
        let key = Schema::record([("databaseName", Schema::string())]);
        Self {
            topic: sanitized_topic(prefix).into(),
            key: Arc::new(key.named(name("Key")).versioned(1)),
            value: Arc::new(Schema::record(value).named(name("Value")).versioned(1)),
        }
    }

    /// In partition 0, so that changes of all tables stay in order.
    pub fn record(&self, change: SchemaChange<'_>, position: Position) -> Record {
        let database: Text = change.database_name.to_owned().into();
        let value = vec![
            change.source,
            Value::Int64(change.ts_ms),
            Value::String(database.clone()),
            opt_text(change.schema_name),
            opt_text(change.ddl),
            Value::Array(change.changes.iter().map(change_value).collect()),
        ];
        Record {
            topic: self.topic.clone(),
            partition: Some(0),
            key: Datum::new(self.key.clone(), Value::Struct(vec![Value::String(database)])),
            value: Datum::new(self.value.clone(), Value::Struct(value)),
            headers: Headers::default(),
            timestamp: None,
            position,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use serde_json::{Value as Json, json};

    use super::super::column::{ColumnDefault, jdbc};
    use super::super::fixture::json as message;
    use super::super::table_id::TableId;
    use super::*;

    fn record(ddl: Option<&str>, changes: &[TableChange]) -> Record {
        let source = Arc::new(Schema::record([("db", Schema::string())]));
        let topic = SchemaChangeTopic::new("s1", "sqlserver", source);
        let change = SchemaChange {
            source: Value::Struct(vec![Value::text("shop")]),
            ts_ms: 1_700_000_000_500,
            database_name: "shop",
            schema_name: Some("dbo"),
            ddl,
            changes,
        };
        topic.record(change, Position::default())
    }

    fn item() -> Table {
        let mut id = Column::new("id", 1, jdbc::INTEGER, "int identity").sized(10).scaled(0);
        id.default = ColumnDefault::Expression("((1))".into());
        let mut kind = Column::new("kind", 2, jdbc::CHAR, "char").nullable();
        kind.enum_values = Some(vec!["a".into(), "b".into()]);
        Table::new(TableId::new(Some("shop"), Some("dbo"), "item"), vec![id, kind], vec!["id".into()]).unwrap()
    }

    #[test]
    fn sql_42_a_change_with_everything_in_it() {
        let record = record(Some("N/A"), &[TableChange::new(ChangeKind::Alter, item())]);
        let column = |name: &str, jdbc_type: i32, ty: &str, position: i32| {
            json!({"name": name, "jdbcType": jdbc_type, "nativeType": null, "typeName": ty, "typeExpression": ty,
                "charsetName": null, "length": null, "scale": null, "position": position, "optional": false,
                "autoIncremented": false, "generated": false, "comment": null, "defaultValueExpression": null,
                "enumValues": null})
        };
        let mut id = column("id", 4, "int identity", 1);
        (id["length"], id["scale"], id["defaultValueExpression"]) = (json!(10), json!(0), json!("((1))"));
        let mut kind = column("kind", 1, "char", 2);
        (kind["optional"], kind["enumValues"]) = (json!(true), json!(["a", "b"]));
        let expected = json!({
            "source": {"db": "shop"}, "ts_ms": 1_700_000_000_500_i64, "databaseName": "shop", "schemaName": "dbo",
            "ddl": "N/A",
            "tableChanges": [{"type": "ALTER", "id": "\"shop\".\"dbo\".\"item\"", "table": {
                "defaultCharsetName": null, "primaryKeyColumnNames": ["id"], "columns": [id, kind], "comment": null}}],
        });
        // With the order of members.
        assert_eq!(message(&record.value, false).to_string(), expected.to_string());
        assert_eq!((&*record.topic, record.partition, record.headers.len()), ("s1", Some(0), 0));
        assert_eq!(
            message(&record.key, true),
            json!({"schema": {"type": "struct", "fields": [{"type": "string", "optional": false, "field": "databaseName"}],
                "optional": false, "name": "io.debezium.connector.sqlserver.SchemaChangeKey", "version": 1},
                "payload": {"databaseName": "shop"}})
        );
    }

    #[test]
    fn a_snapshot_has_no_statement_and_a_dropped_table_no_structure() {
        let changes = [TableChange::new(ChangeKind::Create, item()), TableChange::new(ChangeKind::Drop, item())];
        let value = message(&record(None, &changes).value, false);
        assert_eq!(value["ddl"], Json::Null);
        assert_eq!(value["tableChanges"][0]["type"], "CREATE");
        assert_eq!(value["tableChanges"][1], json!({"type": "DROP", "id": "\"shop\".\"dbo\".\"item\"", "table": null}));
    }

    #[test]
    fn schemas_have_their_names_and_versions() {
        let schema = message(&record(None, &[]).value, true)["schema"].clone();
        let names = |schema: &Json| (schema["name"].clone(), schema["version"].clone());
        assert_eq!(names(&schema), (json!("io.debezium.connector.sqlserver.SchemaChangeValue"), json!(1)));
        let change = &schema["fields"][5]["items"];
        assert_eq!(names(change), (json!("io.debezium.connector.schema.Change"), json!(1)));
        let table = &change["fields"][2];
        assert_eq!(names(table), (json!("io.debezium.connector.schema.Table"), json!(1)));
        assert_eq!(table["optional"], true);
        let column = &table["fields"][2]["items"];
        assert_eq!(names(column), (json!("io.debezium.connector.schema.Column"), json!(1)));
        assert_eq!(column["fields"].as_array().unwrap().len(), 15);
    }
}

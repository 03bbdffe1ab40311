//! Schemas and rows of tables under the options that shape them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use serde_json::{Value as Json, json};

use super::super::cell::Decimal;
use super::super::fixture::{builder, json as message, table};
use super::super::moment::{Date, TimeOfDay, Timestamp};
use super::*;
use crate::error::ErrorKind;
use crate::record::Datum;

fn row(schema: &TableSchema, cells: &[Cell]) -> Json {
    message(&Datum::new(schema.row_schema().clone(), schema.row(cells).unwrap()), false)
}

fn key(schema: &TableSchema, cells: &[Cell]) -> Json {
    message(&Datum::new(schema.key_schema().unwrap().clone(), schema.key(cells).unwrap()), false)
}

/// Fields of a schema as the JSON converter shows them.
fn fields(schema: &Arc<Schema>) -> Json {
    let optional = Schema { optional: true, ..Schema::clone(schema) };
    message(&Datum::new(optional.into(), Value::Null), true)["schema"]["fields"].clone()
}

fn names(schema: &Schema) -> Vec<&str> {
    schema.fields().iter().map(|field| &*field.name).collect()
}

#[test]
fn the_schemas_of_a_table() {
    let schema = builder(&[]).build(&table("item", &["id int", "qty int?=7", "name varchar?"], &["id"])).unwrap();
    assert_eq!(names(&schema.envelope), ["before", "after", "source", "transaction", "op", "ts_ms", "ts_us", "ts_ns"]);
    let [before, after] = [0, 1].map(|at| schema.envelope.fields()[at].schema.clone());
    assert!(Arc::ptr_eq(&before, &after) && Arc::ptr_eq(&before, schema.row_schema()));
    assert_eq!(
        (schema.envelope.name.as_deref(), schema.envelope.version),
        (Some("s1.shop.dbo.item.Envelope"), Some(2))
    );
    assert!(!schema.envelope.optional && schema.row_schema().optional);
    assert_eq!(schema.row_schema().name.as_deref(), Some("s1.shop.dbo.item.Value"));
    assert_eq!((&*schema.topic, &*schema.full_name), ("s1.shop.dbo.item", "shop.dbo.item"));
    assert_eq!(
        fields(schema.row_schema()),
        json!([
            {"type": "int32", "optional": false, "field": "id"},
            {"type": "int32", "optional": true, "default": 7, "field": "qty"},
            {"type": "string", "optional": true, "field": "name"},
        ])
    );
    let cells = [Cell::Int(7), Cell::Int(1), Cell::Null];
    assert_eq!(
        message(&Datum::new(schema.key_schema().unwrap().clone(), schema.key(&cells).unwrap()), true),
        json!({"schema": {"type": "struct", "fields": [{"type": "int32", "optional": false, "field": "id"}],
            "optional": false, "name": "s1.shop.dbo.item.Key"}, "payload": {"id": 7}})
    );
    assert_eq!(row(&schema, &cells), json!({"id": 7, "qty": 1, "name": null}));
}

#[test]
fn sql_28_a_table_without_a_key() {
    let schema = builder(&[]).build(&table("kl", &["a int?", "b varchar?"], &[])).unwrap();
    assert!(schema.key_schema().is_none());
    assert_eq!(schema.key(&[Cell::Int(1), Cell::Null]).unwrap(), Value::Null);
}

#[test]
fn t_06_key_columns_keep_whether_they_may_be_null() {
    let schema = builder(&[]).build(&table("u", &["a int?", "b int"], &["a", "b"])).unwrap();
    let optional: Vec<bool> = schema.key_schema().unwrap().fields().iter().map(|f| f.schema.optional).collect();
    assert_eq!(optional, [true, false]);
    assert_eq!(key(&schema, &[Cell::Null, Cell::Int(2)]), json!({"a": null, "b": 2}));
}

#[test]
fn excluded_columns_stay_in_the_key() {
    let items = table("item", &["id int", "qty int", "note varchar?"], &["id"]);
    let schema = builder(&[("column.exclude.list", r"dbo\.item\.(id|note)")]).build(&items).unwrap();
    let cells = [Cell::Int(1), Cell::Int(2), Cell::text("x")];
    assert_eq!((key(&schema, &cells), row(&schema, &cells)), (json!({"id": 1}), json!({"qty": 2})));
}

#[test]
fn sql_29_a_chosen_key_has_the_written_order() {
    let items = table("item", &["id int", "x varchar?"], &["id"]);
    let schema = builder(&[("message.key.columns", "shop.dbo.item:x,id")]).build(&items).unwrap();
    assert_eq!(names(schema.key_schema().unwrap()), ["x", "id"]);
    assert_eq!(key(&schema, &[Cell::Int(1), Cell::text("a")]), json!({"x": "a", "id": 1}));
}

#[test]
fn sql_30_keys_are_never_masked() {
    let people = table("p", &["name varchar", "note varchar?", "age int?"], &["name"]);
    let schema = builder(&[("column.mask.with.3.chars", r"dbo\.p\..*")]).build(&people).unwrap();
    let cells = [Cell::text("ann"), Cell::Null, Cell::Int(4)];
    assert_eq!(key(&schema, &cells), json!({"name": "ann"}));
    assert_eq!(row(&schema, &cells), json!({"name": "***", "note": "***", "age": 4}));
    let shown = fields(schema.row_schema());
    assert!((0..3).all(|at| shown[at]["parameters"]["masked"] == "true"));
    assert!(schema.key_schema().unwrap().fields()[0].schema.parameters.is_empty());
}

#[test]
fn sql_39_columns_of_other_types_are_left_out() {
    let odd = table("u", &["id int", "v sql_variant?", "n int"], &["id", "v"]);
    let schema = builder(&[]).build(&odd).unwrap();
    let cells = [Cell::Int(1), Cell::text("ignored"), Cell::Int(3)];
    assert_eq!((key(&schema, &cells), row(&schema, &cells)), (json!({"id": 1}), json!({"id": 1, "n": 3})));
    let only = builder(&[]).build(&table("v", &["v sql_variant"], &["v"])).unwrap();
    assert!(only.key_schema().is_none());
}

#[test]
fn defaults_are_in_the_encoding_of_values() {
    let mut priced = table("d", &["price decimal=5", "note varchar?='a'", "bad decimal=x", "no int="], &[]);
    let mut columns = priced.columns().to_vec();
    (columns[0].length, columns[0].scale) = (Some(10), Some(2));
    priced = Table::new(priced.id, columns, Vec::new()).unwrap();
    let schema = builder(&[]).build(&priced).unwrap();
    let defaults: Vec<Json> =
        fields(schema.row_schema()).as_array().unwrap().iter().map(|field| field["default"].clone()).collect();
    assert_eq!(defaults, [json!("AfQ="), json!("a"), Json::Null, Json::Null]);
}

#[test]
fn null_where_none_may_be() {
    let strict = table("s", &["a int=3", "b varchar", "c decimal", "d varchar?='x'"], &["a"]);
    let schema = builder(&[]).build(&strict).unwrap();
    let nulls = [Cell::Null, Cell::Null, Cell::Null, Cell::Null];
    let Value::Struct(values) = schema.row(&nulls).unwrap() else { panic!() };
    assert_eq!(values[..2], [Value::Int32(3), Value::text("")]);
    assert_eq!(values[3], Value::Null, "a default is not put in place of a null that may be");
    assert_eq!(schema.key(&nulls).unwrap(), Value::Struct(vec![Value::Int32(3)]));
    assert_eq!((schema.take_replaced(), schema.take_replaced()), (3, 0));
}

#[test]
fn sql_06_what_cannot_be_converted_is_never_made_up() {
    let far = Timestamp { date: Date::new(9999, 12, 31).unwrap(), time: TimeOfDay::MIDNIGHT };
    let far = [Cell::Int(1), Cell::Timestamp(far)];
    let build = |mode, ty: &str| {
        let options = [("event.converting.failure.handling.mode", mode)];
        builder(&options).build(&table("v", &["id int", &format!("until {ty}")], &["id"])).unwrap()
    };
    for mode in ["warn", "skip"] {
        assert_eq!(row(&build(mode, "datetime2?"), &far), json!({"id": 1, "until": null}), "{mode}");
    }
    for schema in [build("fail", "datetime2?"), build("warn", "datetime2"), build("skip", "datetime2")] {
        let error = schema.row(&far).unwrap_err();
        assert_eq!(error.kind, ErrorKind::ValueInvalid);
        assert!(error.message.starts_with("table shop.dbo.v, column 'until': 9999-12-31T00:00:00 is outside"));
        assert_eq!(key(&schema, &far), json!({"id": 1}));
    }
}

#[test]
fn a_key_that_cannot_be_converted_is_an_error_in_every_mode() {
    let loose = table("k", &["a int?"], &["a"]);
    let schema = builder(&[("event.converting.failure.handling.mode", "skip")]).build(&loose).unwrap();
    let wide = [Cell::Int(1 << 40)];
    assert_eq!(row(&schema, &wide), json!({"a": null}));
    assert!(schema.key(&wide).unwrap_err().message.ends_with("a number does not fit into 32 bits"));
}

#[test]
fn rows_of_another_structure_are_refused() {
    let schema = builder(&[]).build(&table("item", &["id int", "qty int"], &["id"])).unwrap();
    for cells in [vec![Cell::Int(1)], vec![Cell::Int(1), Cell::Int(2), Cell::Decimal(Decimal::new(1, 0))]] {
        for error in [schema.row(&cells).unwrap_err(), schema.key(&cells).unwrap_err()] {
            assert_eq!(error.kind, ErrorKind::SchemaChanged);
            assert_eq!(error.message, format!("a row of table shop.dbo.item has {} values for 2 columns", cells.len()));
        }
    }
}

#[test]
fn cnv_03_names_of_schemas_and_fields() {
    let odd = table("1st-item", &["my col#b int", "9th int?"], &["my col#b"]);
    let avro = [("field.name.adjustment.mode", "avro"), ("schema.name.adjustment.mode", "avro")];
    let schema = builder(&avro).build(&odd).unwrap();
    assert_eq!(names(schema.row_schema()), ["my_col_b", "_9th"]);
    assert_eq!(names(schema.key_schema().unwrap()), ["my_col_b"]);
    assert_eq!(schema.row_schema().name.as_deref(), Some("s1.shop.dbo.1st_item.Value"));
    assert_eq!(&*schema.topic, "s1.shop.dbo.1st-item");
    assert_eq!(names(builder(&[]).build(&odd).unwrap().row_schema()), ["my col#b", "9th"]);

    let clash = builder(&avro).build(&table("c", &["a b int", "a#b int"], &[])).unwrap_err();
    assert_eq!(
        clash.message,
        "table shop.dbo.c: fields 'a b' and 'a#b' both become 'a_b' by field.name.adjustment.mode"
    );
}

#[test]
fn comments_become_docs() {
    let mut item = table("item", &["id int"], &["id"]);
    let mut columns = item.columns().to_vec();
    columns[0].comment = Some("of the thing".into());
    item = Table::new(item.id, columns, vec!["id".into()]).unwrap();
    let schema = builder(&[]).build(&item).unwrap();
    for shape in [schema.row_schema(), schema.key_schema().unwrap()] {
        assert_eq!(fields(shape)[0]["doc"], "of the thing");
    }
}

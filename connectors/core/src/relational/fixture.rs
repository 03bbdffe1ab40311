//! A source of tests: types by name, and tables of few columns.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Arc;

use thalweg_config::Properties;
use thalweg_config::rule::split_list;

use super::cell::{Cell, Decimal};
use super::column::{Column, ColumnDefault, jdbc};
use super::column_filter::ColumnFilter;
use super::column_mappers::ColumnMappers;
use super::message_key::MessageKeys;
use super::modes::ValueModes;
use super::schema_builder::{ColumnTypes, SchemaBuilder};
use super::table::Table;
use super::table_filter::NameLists;
use super::table_id::{NameForm, TableId};
use super::table_schema::ConvertingFailures;
use super::value_type::{Placeholder, TextKind, ValueType};
use crate::convert::{Converter, JsonConverter};
use crate::envelope::source_schema;
use crate::naming::{NameAdjustment, NamingRules, TopicNaming};
use crate::record::{Datum, Schema};

pub(super) const FORMS: &[NameForm] = &[NameForm::Full, NameForm::WithoutCatalog];

/// Knows a handful of types, and defaults that are whole numbers or stand in quotes.
pub(super) struct TestTypes;

impl ColumnTypes for TestTypes {
    fn value_type(&self, column: &Column) -> Option<ValueType> {
        let scale = column.scale.unwrap_or(0) as i16;
        match &*column.type_name {
            "int" => Some(ValueType::Int32),
            "varchar" => Some(ValueType::Text(TextKind::Plain)),
            "varbinary" => Some(ValueType::Bytes),
            "decimal" => Some(ValueType::Decimal { precision: column.length.unwrap_or(18) as u16, scale }),
            "datetime2" => Some(ValueType::Timestamp { fraction: column.scale.unwrap_or(7) as u8 }),
            _ => None,
        }
    }

    fn default_value(&self, column: &Column) -> Option<Cell> {
        let text = column.default.expression()?;
        match text.strip_prefix('\'') {
            Some(text) => Some(Cell::text(text.trim_end_matches('\'').to_owned())),
            None if &*column.type_name == "decimal" => Some(Cell::Decimal(Decimal::new(text.parse().ok()?, 0))),
            None => text.parse().ok().map(Cell::Int),
        }
    }
}

/// `name type` with `?` behind the type for a column that may be null, and `=` and a default.
pub(super) fn column(text: &str, position: i32) -> Column {
    let (text, default) = text.split_once('=').map_or((text, None), |(text, default)| (text, Some(default)));
    let (name, ty) = text.rsplit_once(' ').unwrap();
    let (ty, optional) = ty.strip_suffix('?').map_or((ty, false), |ty| (ty, true));
    let number = match ty {
        "int" => jdbc::INTEGER,
        "varbinary" => jdbc::VARBINARY,
        "decimal" => jdbc::DECIMAL,
        "datetime2" => jdbc::TIMESTAMP,
        "sql_variant" => jdbc::OTHER,
        _ => jdbc::VARCHAR,
    };
    let mut column = Column::new(name, position, number, ty);
    column.optional = optional;
    column.default = default.map_or(ColumnDefault::None, |text| ColumnDefault::Expression(text.into()));
    column
}

pub(super) fn table(name: &str, columns: &[&str], key: &[&str]) -> Table {
    let columns = columns.iter().zip(1..).map(|(text, position)| column(text, position));
    let id = TableId::new(Some("shop"), Some("dbo"), name);
    Table::new(id, columns.collect(), key.iter().map(|name| (*name).into()).collect()).unwrap()
}

/// With these options set, which may be any that shape rows.
pub(super) fn builder(options: &[(&str, &str)]) -> SchemaBuilder {
    let properties: Properties = options.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    let list = |name: &str| split_list(properties.get(name).unwrap_or_default());
    let columns = NameLists { include: list("column.include.list"), exclude: list("column.exclude.list") };
    let source = source_schema("io.debezium.connector.test.Source", [("table", Schema::string())]);
    SchemaBuilder {
        types: Box::new(TestTypes),
        columns: ColumnFilter::new(&columns, &[NameForm::WithoutCatalog]).unwrap(),
        keys: MessageKeys::parse(properties.get("message.key.columns").unwrap_or_default(), FORMS).unwrap(),
        mappers: ColumnMappers::new(&properties, FORMS).unwrap(),
        modes: ValueModes::default(),
        placeholder: Placeholder::new("__debezium_unavailable_value").unwrap(),
        failures: ConvertingFailures::from_option(
            properties.get("event.converting.failure.handling.mode").unwrap_or("warn"),
        ),
        field_names: NameAdjustment::from_option(properties.get("field.name.adjustment.mode").unwrap_or("none")),
        naming: TopicNaming::new(NamingRules {
            schema_names: NameAdjustment::from_option(properties.get("schema.name.adjustment.mode").unwrap_or("none")),
            ..NamingRules::new("s1")
        }),
        topic_form: NameForm::Full,
        source: Arc::new(source),
    }
}

/// The message of a datum, with or without its schema.
pub(super) fn json(datum: &Datum, schemas: bool) -> serde_json::Value {
    let mut out = Vec::new();
    let mut converter = JsonConverter { schemas, ..JsonConverter::with_schemas() };
    converter.convert_datum(&"t".into(), datum, &mut out).unwrap();
    serde_json::from_slice(&out).unwrap_or(serde_json::Value::Null)
}

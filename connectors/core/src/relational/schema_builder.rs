//! Makes the schemas of a table from its structure and the user's choices.

use std::sync::Arc;

use super::cell::Cell;
use super::column::Column;
use super::column_filter::ColumnFilter;
use super::column_mappers::ColumnMappers;
use super::message_key::MessageKeys;
use super::modes::ValueModes;
use super::table::Table;
use super::table_id::NameForm;
use super::table_schema::{ConvertingFailures, FieldPlan, Shape, TableSchema};
use super::value_type::{Conversion, Placeholder, ValueType};
use crate::envelope::transaction_block;
use crate::error::Result;
use crate::naming::{NameAdjustment, TopicNaming};
use crate::record::{Field, Schema, Type, Value};

/// What a database's columns hold.
pub trait ColumnTypes: Send + Sync {
    /// `None`: messages have nothing for this type, the column is left out.
    fn value_type(&self, column: &Column) -> Option<ValueType>;

    /// The column's default as a value. `None`: it has none, or it is no constant. Which constants are
    /// understood is the connector's matter, and so is a word about one that is not.
    fn default_value(&self, column: &Column) -> Option<Cell>;
}

/// The user's choices, and the connector's part.
pub struct SchemaBuilder {
    pub types: Box<dyn ColumnTypes>,
    pub columns: ColumnFilter,
    pub keys: MessageKeys,
    pub mappers: ColumnMappers,
    pub modes: ValueModes,
    pub placeholder: Placeholder,
    pub failures: ConvertingFailures,
    /// `field.name.adjustment.mode`.
    pub field_names: NameAdjustment,
    pub naming: TopicNaming,
    /// Which parts of a table's name are in its topic.
    pub topic_form: NameForm,
    /// Schema of the source block.
    pub source: Arc<Schema>,
}

impl SchemaBuilder {
    /// The schemas of a table. Columns that are left out because of their type are told of.
    ///
    /// # Errors
    /// Two fields that get one name, or an expression of a list that cannot be decided.
    pub fn build(&self, table: &Table) -> Result<TableSchema> {
        let names = self.naming.collection(&table.id.parts(self.topic_form));
        let conversions = self.conversions(table);
        let in_row = self.columns.columns(table)?;
        let in_row: Vec<usize> = (0..table.columns().len()).filter(|at| in_row[*at]).collect();
        let row =
            self.shape(table, &conversions, &in_row, true, |schema| schema.named(names.row.clone()).optional())?;
        let in_key = self.keys.columns(table)?;
        let key = self.shape(table, &conversions, &in_key, false, |schema| schema.named(names.key.clone()))?;
        let envelope = envelope_schema(&row.schema, &self.source).named(names.envelope.clone()).versioned(2);
        Ok(TableSchema {
            id: table.id.clone(),
            full_name: table.id.to_string().into(),
            topic: names.topic.clone(),
            envelope: Arc::new(envelope),
            key: Some(key).filter(|key| !key.fields.is_empty()),
            row,
            width: table.columns().len(),
        })
    }

    /// Of each column, as far as messages have something for its type.
    fn conversions(&self, table: &Table) -> Vec<Option<Conversion>> {
        let conversion = |column: &Column| {
            let Some(ty) = self.types.value_type(column) else {
                let (jdbc_type, name) = (column.jdbc_type, &column.name);
                tracing::warn!(table = %table.id, type_name = %column.type_name, "Unexpected JDBC type '{jdbc_type}' for column '{name}' that will be ignored");
                return None;
            };
            Some(Conversion::new(ty, self.modes, self.placeholder.clone()))
        };
        table.columns().iter().map(conversion).collect()
    }

    /// The struct of some columns; `finish` adds what is no matter of its fields.
    fn shape(
        &self,
        table: &Table,
        conversions: &[Option<Conversion>],
        indexes: &[usize],
        is_row: bool,
        finish: impl FnOnce(Schema) -> Schema,
    ) -> Result<Shape> {
        let (mut schemas, mut plans) = (Vec::new(), Vec::new());
        for index in indexes {
            let column = &table.columns()[*index];
            let Some(conversion) = &conversions[*index] else { continue };
            let failures = if is_row { self.failures } else { ConvertingFailures::Fail };
            let mut plan = FieldPlan::new(*index, column, conversion.clone(), failures);
            let mut schema = conversion.schema();
            if let Some(mapping) = self.mappers.mapping(&table.id, column)? {
                if is_row {
                    plan.mapping = mapping.of_values(column, &schema);
                    schema = mapping.describe(column, schema);
                } else if mapping.of_values(column, &schema).is_some() {
                    tracing::warn!(table = %table.id, column = %column.name, "a column of the key is masked or cut in rows only");
                }
            }
            plan.default = self.default(table, column, conversion);
            if let Some(default) = &plan.default {
                schema = schema.defaulting(default.clone());
            }
            if let Some(comment) = &column.comment {
                schema = schema.documented(comment.clone());
            }
            schema.optional = column.optional;
            schemas.push(Arc::new(schema));
            plans.push(plan);
        }
        let names = self.field_names.field_names(plans.iter().map(|plan| &*plan.column)).map_err(|mut error| {
            error.message = format!("table {}: {}", table.id, error.message);
            error
        })?;
        let fields = names.into_iter().zip(schemas).map(|(name, schema)| Field { name, schema });
        Ok(Shape { schema: Arc::new(finish(Schema::new(Type::Struct(fields.collect())))), fields: plans })
    }

    fn default(&self, table: &Table, column: &Column, conversion: &Conversion) -> Option<Value> {
        let cell = self.types.default_value(column)?;
        match conversion.value(&cell) {
            Ok(value) => Some(value).filter(|value| !value.is_null()),
            Err(text) => {
                tracing::warn!(table = %table.id, column = %column.name, "the column's default is left out: {text}");
                None
            }
        }
    }
}

fn envelope_schema(row: &Arc<Schema>, source: &Arc<Schema>) -> Schema {
    let time = Arc::new(Schema::int64().optional());
    let members = [
        ("before", row.clone()),
        ("after", row.clone()),
        ("source", source.clone()),
        ("transaction", transaction_block()),
        ("op", Arc::new(Schema::string())),
        ("ts_ms", time.clone()),
        ("ts_us", time.clone()),
        ("ts_ns", time),
    ];
    Schema::record(members)
}

#[cfg(test)]
#[path = "schema_builder_tests.rs"]
mod tests;

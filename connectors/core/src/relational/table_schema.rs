//! Schemas of a table's messages, and rows as values of them.
//!
//! Made once per structure and shared by all of its events, so that converters find their cached texts:
//! `before` and `after` have one schema. Invariant: a row has as many cells as the table has columns, in their
//! order; another one is refused, because its values would get under wrong names.
//!
//! A cell that cannot be converted becomes null where a null may be, and is told of; where none may be, and in
//! keys, it is an error. A null where none may be becomes the column's default or its zero, as in Debezium: it
//! comes from rows that are older than the structure. It does not decide what becomes of an event that has no
//! row.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::cell::Cell;
use super::column::Column;
use super::mapping::ValueMapping;
use super::table_id::TableId;
use super::value_type::Conversion;
use crate::error::{Error, ErrorKind, Phase, Result};
use crate::record::{Schema, Value};

/// `event.converting.failure.handling.mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ConvertingFailures {
    /// An error, whatever the column.
    Fail,
    /// Null, and a line in the log.
    #[default]
    Warn,
    /// Null.
    Skip,
}

impl ConvertingFailures {
    /// From the canonical text of the option.
    pub fn from_option(text: &str) -> Self {
        match text {
            "fail" => Self::Fail,
            "skip" => Self::Skip,
            _ => Self::Warn,
        }
    }
}

/// A column as a field of a struct.
#[derive(Debug)]
pub(super) struct FieldPlan {
    /// Where the cell stands in a row.
    pub(super) index: usize,
    pub(super) column: Arc<str>,
    pub(super) conversion: Conversion,
    pub(super) mapping: Option<ValueMapping>,
    pub(super) optional: bool,
    /// As the schema has it.
    pub(super) default: Option<Value>,
    pub(super) failures: ConvertingFailures,
    /// Cells that were replaced.
    replaced: AtomicU64,
}

impl FieldPlan {
    pub(super) fn new(index: usize, column: &Column, conversion: Conversion, failures: ConvertingFailures) -> Self {
        Self {
            index,
            column: column.name.clone(),
            conversion,
            mapping: None,
            optional: column.optional,
            default: None,
            failures,
            replaced: AtomicU64::new(0),
        }
    }

    fn value(&self, table: &TableId, cell: &Cell) -> Result<Value> {
        let value = match self.conversion.value(cell) {
            Ok(Value::Null) if !self.optional => {
                self.tell(table, "null came for a column that is not null");
                self.default.clone().unwrap_or_else(|| self.conversion.zero())
            }
            Ok(value) => value,
            Err(text) if self.failures == ConvertingFailures::Fail || !self.optional => {
                let message = format!("table {table}, column '{}': {text}", self.column);
                return Err(Error::new(ErrorKind::ValueInvalid, Phase::Stream, message));
            }
            Err(text) => {
                self.tell(table, &text);
                Value::Null
            }
        };
        Ok(match &self.mapping {
            Some(mapping) => mapping.apply(value),
            None => value,
        })
    }

    /// Tells of the first replaced cell, and then whenever their number has doubled: all rows may have one.
    fn tell(&self, table: &TableId, text: &str) {
        let count = self.replaced.fetch_add(1, Ordering::Relaxed) + 1;
        if count.is_power_of_two() && self.failures != ConvertingFailures::Skip {
            tracing::warn!(%table, column = %self.column, count, "a value was replaced: {text}");
        }
    }
}

/// Some columns of a table as a struct.
#[derive(Debug)]
pub(super) struct Shape {
    pub(super) schema: Arc<Schema>,
    pub(super) fields: Vec<FieldPlan>,
}

impl Shape {
    fn value(&self, table: &TableId, cells: &[Cell]) -> Result<Value> {
        let cell = |field: &FieldPlan| cells.get(field.index).unwrap_or(&Cell::Null);
        let values: Result<Vec<Value>> = self.fields.iter().map(|field| field.value(table, cell(field))).collect();
        values.map(Value::Struct)
    }
}

/// What the events of a table have in common.
#[derive(Debug)]
pub struct TableSchema {
    pub id: TableId,
    /// The whole name, as transaction metadata has it.
    pub full_name: Arc<str>,
    pub topic: Arc<str>,
    /// Of all events.
    pub envelope: Arc<Schema>,
    pub(super) key: Option<Shape>,
    pub(super) row: Shape,
    /// Columns of the table.
    pub(super) width: usize,
}

impl TableSchema {
    /// `None`: the table has no key.
    pub fn key_schema(&self) -> Option<&Arc<Schema>> {
        self.key.as_ref().map(|key| &key.schema)
    }

    /// Of the rows in events.
    pub fn row_schema(&self) -> &Arc<Schema> {
        &self.row.schema
    }

    /// The key of a row; null without a key.
    ///
    /// # Errors
    /// A row of another structure, or a cell that cannot be converted.
    pub fn key(&self, cells: &[Cell]) -> Result<Value> {
        self.check(cells)?;
        self.key.as_ref().map_or(Ok(Value::Null), |key| key.value(&self.id, cells))
    }

    /// A row as events have it.
    ///
    /// # Errors
    /// A row of another structure, or a cell that cannot be converted and for which nothing can stand.
    pub fn row(&self, cells: &[Cell]) -> Result<Value> {
        self.check(cells)?;
        self.row.value(&self.id, cells)
    }

    /// Cells of rows that had to be replaced since the last call.
    pub fn take_replaced(&self) -> u64 {
        self.row.fields.iter().map(|field| field.replaced.swap(0, Ordering::Relaxed)).sum()
    }

    fn check(&self, cells: &[Cell]) -> Result<()> {
        if cells.len() == self.width {
            return Ok(());
        }
        let message = format!("a row of table {} has {} values for {} columns", self.id, cells.len(), self.width);
        Err(Error::new(ErrorKind::SchemaChanged, Phase::Stream, message)
            .advise("restart the task: it reads the structure of the table again"))
    }
}

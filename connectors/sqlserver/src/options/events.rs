//! What records look like.

use std::sync::Arc;

use thalweg_config::{Properties, Settings};
use thalweg_core::event_failure::FailureMode;
use thalweg_core::naming::{NameAdjustment, NamingRules, TopicNaming};
use thalweg_core::record::Schema;
use thalweg_core::relational::column_filter::ColumnFilter;
use thalweg_core::relational::column_mappers::ColumnMappers;
use thalweg_core::relational::message_key::MessageKeys;
use thalweg_core::relational::modes::ValueModes;
use thalweg_core::relational::schema_builder::SchemaBuilder;
use thalweg_core::relational::table::Table;
use thalweg_core::relational::table_filter::NameLists;
use thalweg_core::relational::table_id::NameForm;
use thalweg_core::relational::table_schema::ConvertingFailures;
use thalweg_core::relational::value_type::Placeholder;
use thalweg_core::{Error, repstance};

use super::TABLE_FORMS;
use crate::offsets::Layout;
use crate::types::SqlServerTypes;

/// Forms of a table's name that rules about single columns may have.
const RULE_FORMS: &[NameForm] = &[NameForm::WithoutCatalog, NameForm::Full];

#[derive(Debug, Clone)]
pub struct EventConfig {
    pub naming: NamingRules,
    pub tombstones: bool,
    /// `skip.messages.without.change`.
    pub skip_unchanged: bool,
    pub extended_headers: bool,
    /// `include.schema.changes`.
    pub schema_changes: bool,
    /// `source.version`.
    pub reported_version: Arc<str>,
    pub on_failure: FailureMode,
    /// `provide.transaction.metadata`.
    pub transactions: bool,
    columns: NameLists,
    keys: String,
    modes: ValueModes,
    placeholder: Placeholder,
    converting: ConvertingFailures,
    field_names: NameAdjustment,
    layout: Layout,
    /// Rules whose names hold parameters.
    properties: Properties,
}

impl EventConfig {
    /// # Errors
    /// A naming strategy or placeholder that cannot be used.
    pub fn new(s: &Settings, properties: &Properties, layout: Layout) -> Result<Self, Error> {
        let version = s.text("source.version.reported").map(str::trim).filter(|text| !text.is_empty());
        Ok(Self {
            naming: NamingRules::from_settings(s).map_err(|(name, text)| Error::config(format!("{name}: {text}")))?,
            tombstones: s.bool("tombstones.on.delete") && !repstance::is_chosen(properties),
            skip_unchanged: s.bool("skip.messages.without.change"),
            extended_headers: s.bool("extended.headers.enabled"),
            schema_changes: s.bool("include.schema.changes"),
            reported_version: version.unwrap_or(env!("CARGO_PKG_VERSION")).into(),
            on_failure: FailureMode::from_settings(s),
            transactions: s.bool("provide.transaction.metadata"),
            columns: NameLists::of(s, "column"),
            keys: s.text_or_empty("message.key.columns").to_owned(),
            modes: ValueModes::from_settings(s),
            placeholder: Placeholder::new(s.text_or_empty("unavailable.value.placeholder")).map_err(Error::config)?,
            converting: ConvertingFailures::from_option(s.text_or_empty("event.converting.failure.handling.mode")),
            field_names: NameAdjustment::from_option(s.text_or_empty("field.name.adjustment.mode")),
            layout,
            properties: properties.clone(),
        })
    }

    /// What makes the schemas of tables; `source`: of the source block.
    ///
    /// # Errors
    /// A list that cannot be compiled.
    pub fn schema_builder(&self, source: Arc<Schema>) -> Result<SchemaBuilder, Error> {
        Ok(SchemaBuilder {
            types: Box::new(SqlServerTypes::default()),
            columns: self.column_filter()?,
            keys: MessageKeys::parse(&self.keys, RULE_FORMS).map_err(Error::config)?,
            mappers: ColumnMappers::new(&self.properties, RULE_FORMS)?,
            modes: self.modes,
            placeholder: self.placeholder.clone(),
            failures: self.converting,
            field_names: self.field_names,
            naming: TopicNaming::new(self.naming.clone()),
            topic_form: match self.layout {
                Layout::ByDatabase => NameForm::Full,
                Layout::Single => NameForm::WithoutCatalog,
            },
            source,
        })
    }

    /// Where the columns of a table's key stand among its columns.
    ///
    /// # Errors
    /// An expression that cannot be decided.
    pub fn key_columns(&self, table: &Table) -> Result<Vec<usize>, Error> {
        MessageKeys::parse(&self.keys, RULE_FORMS).map_err(Error::config)?.columns(table)
    }

    /// `column.include.list` and `column.exclude.list`.
    ///
    /// # Errors
    /// A list that cannot be compiled.
    pub fn column_filter(&self) -> Result<ColumnFilter, Error> {
        ColumnFilter::new(&self.columns, TABLE_FORMS)
    }
}

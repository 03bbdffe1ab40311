//! Which tables are captured: include and exclude lists over databases, schemas and tables.
//!
//! A table passes if all of its parts do: a table list does not bring back what the list of schemas or
//! databases leaves out. Tables for signals pass every list, by their exact names. It does not know which
//! tables there are.

use thalweg_config::Settings;

use super::table_id::{NameForm, TableId};
use crate::error::{Error, Result};
use crate::filter::{MatchMode, NameFilter};

/// An include and an exclude list, of which at most one has entries.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NameLists {
    pub include: Vec<String>,
    pub exclude: Vec<String>,
}

impl NameLists {
    /// The options `<kind>.include.list` and `<kind>.exclude.list`.
    pub fn of(settings: &Settings, kind: &str) -> Self {
        let list = |which: &str| settings.list(&format!("{kind}.{which}.list")).to_vec();
        Self { include: list("include"), exclude: list("exclude") }
    }

    /// # Errors
    /// Both lists given, or an entry that is no regular expression.
    pub fn compile(&self) -> Result<NameFilter> {
        NameFilter::new(MatchMode::Regex, &self.include, &self.exclude).map_err(Error::config)
    }
}

/// Whether the table passes a filter over any of these forms of its name.
///
/// # Errors
/// An expression that cannot be decided.
pub fn passes_table(filter: &NameFilter, id: &TableId, forms: &[NameForm]) -> Result<bool> {
    filter.passes_any(forms.iter().map(|form| id.text(*form)))
}

/// The lists of a connector.
#[derive(Debug)]
pub struct TableFilter {
    databases: NameFilter,
    schemas: NameFilter,
    tables: NameFilter,
    forms: &'static [NameForm],
    is_builtin: Option<fn(&TableId) -> bool>,
    signals: Vec<TableId>,
}

impl TableFilter {
    /// `forms`: which forms of a name the table lists are matched against.
    ///
    /// # Errors
    /// As [`NameLists::compile`].
    pub fn new(
        databases: &NameLists,
        schemas: &NameLists,
        tables: &NameLists,
        forms: &'static [NameForm],
    ) -> Result<Self> {
        Ok(Self {
            databases: databases.compile()?,
            schemas: schemas.compile()?,
            tables: tables.compile()?,
            forms,
            is_builtin: None,
            signals: Vec::new(),
        })
    }

    /// Leaves out the tables that belong to the database itself (`table.ignore.builtin`).
    pub fn without_builtin(mut self, is_builtin: fn(&TableId) -> bool) -> Self {
        self.is_builtin = Some(is_builtin);
        self
    }

    /// Tables that pass every list (`signal.data.collection`).
    pub fn with_signals(mut self, tables: Vec<TableId>) -> Self {
        self.signals = tables;
        self
    }

    pub fn is_signals(&self, id: &TableId) -> bool {
        self.signals.contains(id)
    }

    /// Whether tables of this one's database may be captured.
    ///
    /// # Errors
    /// As [`TableFilter::captures`].
    pub fn captures_database(&self, id: &TableId) -> Result<bool> {
        self.databases.passes(id.catalog().unwrap_or_default())
    }

    /// Whether changes of this table are captured.
    ///
    /// # Errors
    /// An expression that cannot be decided for a name.
    pub fn captures(&self, id: &TableId) -> Result<bool> {
        Ok(self.is_signals(id) || self.is_listed(id)?)
    }

    /// Whether the lists let the table pass: one for signals is captured in any case, but not told unless it is
    /// listed, too.
    ///
    /// # Errors
    /// As [`TableFilter::captures`].
    pub fn is_listed(&self, id: &TableId) -> Result<bool> {
        if self.is_builtin.is_some_and(|is_builtin| is_builtin(id)) {
            return Ok(false);
        }
        Ok(self.captures_database(id)?
            && self.schemas.passes(id.schema().unwrap_or_default())?
            && passes_table(&self.tables, id, self.forms)?)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use thalweg_config::rule::split_list;

    use super::*;

    fn include(list: &str) -> NameLists {
        NameLists { include: split_list(list), ..NameLists::default() }
    }

    fn exclude(list: &str) -> NameLists {
        NameLists { exclude: split_list(list), ..NameLists::default() }
    }

    fn filter(databases: NameLists, schemas: NameLists, tables: NameLists) -> TableFilter {
        TableFilter::new(&databases, &schemas, &tables, &[NameForm::WithoutCatalog]).unwrap()
    }

    fn captures(filter: &TableFilter, parts: [&str; 3]) -> bool {
        filter.captures(&TableId::new(Some(parts[0]), Some(parts[1]), parts[2])).unwrap()
    }

    #[test]
    fn sql_32_schema_lists() {
        let all = NameLists::default;
        for (schemas, passing) in [(exclude("s1"), ["s2", "dbo"].as_slice()), (include("S1"), &["s1"])] {
            let filter = filter(all(), schemas, all());
            for schema in ["s1", "s2", "dbo"] {
                assert_eq!(captures(&filter, ["db", schema, "t"]), passing.contains(&schema), "{schema}");
            }
        }
    }

    #[test]
    fn sql_31_table_lists_ignore_case_and_the_database() {
        let filter = filter(NameLists::default(), NameLists::default(), include("DBO.orders"));
        assert!(captures(&filter, ["TestDB", "dbo", "Orders"]));
        assert!(!captures(&filter, ["TestDB", "dbo", "Orders2"]));
        assert!(!captures(&filter, ["dbo", "orders", "x"]));
    }

    #[test]
    fn sql_02_odd_names_by_escaped_expressions() {
        let list = include(r"ops \['a'\]\.CRN UK\$Ledger 50%");
        let filter = filter(NameLists::default(), NameLists::default(), list);
        assert!(captures(&filter, ["db", "ops ['a']", "CRN UK$Ledger 50%"]));
    }

    #[test]
    fn every_list_counts_and_a_table_list_brings_nothing_back() {
        let both = filter(include("a"), include("s"), include("s.t, x.t"));
        assert!(captures(&both, ["a", "s", "t"]));
        assert!(!captures(&both, ["b", "s", "t"]));
        assert!(!captures(&both, ["a", "x", "t"]));
    }

    #[test]
    fn tables_of_the_database_itself_and_tables_for_signals() {
        let signals = TableId::new(Some("db"), Some("dbo"), "debezium_signal");
        let filter = filter(NameLists::default(), NameLists::default(), exclude(r"dbo\..*"))
            .without_builtin(|id| id.table().starts_with("sys"))
            .with_signals(vec![signals.clone()]);
        assert!(!captures(&filter, ["db", "s", "systables"]));
        assert!(captures(&filter, ["db", "s", "t"]));
        assert!(captures(&filter, ["db", "dbo", "debezium_signal"]) && filter.is_signals(&signals));
        assert!(!captures(&filter, ["db", "dbo", "Debezium_Signal"]));
    }

    #[test]
    fn cfg_02_lists_that_exclude_each_other_are_refused() {
        let both = NameLists { include: split_list("a"), exclude: split_list("b") };
        let none = NameLists::default();
        assert!(TableFilter::new(&none, &none, &both, &[NameForm::Full]).is_err());
        assert!(TableFilter::new(&none, &include("[a"), &none, &[NameForm::Full]).unwrap_err().message.contains("[a"));
    }
}

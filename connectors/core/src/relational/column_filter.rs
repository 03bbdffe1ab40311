//! Which columns the rows in messages have (`column.include.list`, `column.exclude.list`).
//!
//! It decides about rows only: keys keep their columns, and so does the schema history.

use super::table::Table;
use super::table_filter::NameLists;
use super::table_id::NameForm;
use crate::error::Result;
use crate::filter::NameFilter;

#[derive(Debug)]
pub struct ColumnFilter {
    names: NameFilter,
    is_include: bool,
    forms: &'static [NameForm],
}

impl ColumnFilter {
    /// `forms`: which forms of a table's name stand in front of the column's.
    ///
    /// # Errors
    /// As [`NameLists::compile`].
    pub fn new(lists: &NameLists, forms: &'static [NameForm]) -> Result<Self> {
        Ok(Self { names: lists.compile()?, is_include: !lists.include.is_empty(), forms })
    }

    /// For each column of the table whether it is in the row. An include list that names none of them is taken
    /// for a mistake: there is a warning, and all columns are in.
    ///
    /// # Errors
    /// An expression that cannot be decided.
    pub fn columns(&self, table: &Table) -> Result<Vec<bool>> {
        if self.names.passes_all() {
            return Ok(vec![true; table.columns().len()]);
        }
        let prefixes: Vec<String> = self.forms.iter().map(|form| table.id.text(*form)).collect();
        let passes = |name: &str| self.names.passes_any(prefixes.iter().map(|prefix| format!("{prefix}.{name}")));
        let passing: Result<Vec<bool>> = table.columns().iter().map(|column| passes(&column.name)).collect();
        let passing = passing?;
        if self.is_include && !passing.contains(&true) {
            tracing::warn!(table = %table.id, "column.include.list names no column of the table; all are captured");
            return Ok(vec![true; passing.len()]);
        }
        Ok(passing)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use thalweg_config::rule::split_list;

    use super::super::column::{Column, jdbc};
    use super::super::table_id::TableId;
    use super::*;

    fn columns(include: &str, exclude: &str, forms: &'static [NameForm]) -> Vec<bool> {
        let names = ["id", "black", "white"];
        let columns = names.into_iter().zip(1..).map(|(name, at)| Column::new(name, at, jdbc::INTEGER, "int"));
        let table = Table::new(TableId::new(Some("db"), Some("dbo"), "k"), columns.collect(), Vec::new()).unwrap();
        let lists = NameLists { include: split_list(include), exclude: split_list(exclude) };
        ColumnFilter::new(&lists, forms).unwrap().columns(&table).unwrap()
    }

    #[test]
    fn sql_23_columns_by_list() {
        let forms: &[NameForm] = &[NameForm::WithoutCatalog];
        assert_eq!(columns("dbo.k.id, DBO.K.White", "", forms), [true, false, true]);
        assert_eq!(columns("", r"dbo\.k\.(black|white)", forms), [true, false, false]);
        assert_eq!(columns("", "", forms), [true; 3]);
        assert_eq!(columns("", "db.dbo.k.id", forms), [true; 3]);
        assert_eq!(
            columns("", "db.dbo.k.id, db.k.black", &[NameForm::Full, NameForm::WithoutSchema]),
            [false, false, true]
        );
    }

    #[test]
    fn sql_21_an_include_list_that_matches_nothing_leaves_nothing_out() {
        let forms: &[NameForm] = &[NameForm::WithoutCatalog];
        assert_eq!(columns("nosuch", "", forms), [true; 3]);
        assert_eq!(columns("", ".*", forms), [false; 3]);
    }
}

//! Keys of messages that a user chose (`message.key.columns`).
//!
//! An item is `<table>:<column>,<column>`, items have semicolons between them. Table and columns are regular
//! expressions that match whole names in any case. A key has the columns in the order in which they are
//! listed. Without an item for it a table keeps its primary key.

use thalweg_config::RegexList;

use super::table::Table;
use super::table_id::NameForm;
use crate::error::{Error, Result};

/// What an item looks like, as messages show it.
const ITEM: &str = r"^\s*([^:]+):([^:,]+(,[^:,]+)*)\s*$";

#[derive(Debug, Default)]
pub struct MessageKeys {
    items: Vec<Item>,
    forms: &'static [NameForm],
}

#[derive(Debug)]
struct Item {
    text: String,
    table: RegexList,
    columns: Vec<RegexList>,
}

impl MessageKeys {
    /// `forms`: which forms of a table's name an item may have.
    ///
    /// # Errors
    /// The text for the message of the option.
    pub fn parse(text: &str, forms: &'static [NameForm]) -> Result<Self, String> {
        let items = text.split(';').filter(|item| !item.trim().is_empty());
        Ok(Self { items: items.map(item).collect::<Result<_, _>>()?, forms })
    }

    /// Check for the option.
    ///
    /// # Errors
    /// As [`MessageKeys::parse`].
    pub fn check(text: &str) -> Result<(), String> {
        Self::parse(text, &[]).map(drop)
    }

    /// Where the columns of the table's key stand among its columns: those of the first to the last item that is
    /// for the table, or of the primary key. Columns that are listed but not there are told of.
    ///
    /// # Errors
    /// An expression that cannot be decided.
    pub fn columns(&self, table: &Table) -> Result<Vec<usize>> {
        let mut key = Vec::new();
        for item in &self.items {
            if !self.is_for(item, table)? {
                continue;
            }
            for pattern in &item.columns {
                let before = key.len();
                for (at, column) in table.columns().iter().enumerate() {
                    if pattern.matches(&column.name).map_err(undecidable)? && !key.contains(&at) {
                        key.push(at);
                    }
                }
                if key.len() == before {
                    let column = pattern.items().next().unwrap_or_default();
                    tracing::warn!(table = %table.id, column, item = item.text, "message.key.columns names a column that adds nothing to the key");
                }
            }
        }
        Ok(if key.is_empty() { table.primary_key_indexes() } else { key })
    }

    fn is_for(&self, item: &Item, table: &Table) -> Result<bool> {
        for form in self.forms {
            if item.table.matches(&table.id.text(*form)).map_err(undecidable)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

fn item(text: &str) -> Result<Item, String> {
    let malformed = || format!("{text} has an invalid format (expecting '{ITEM}')");
    let (table, columns) = text.trim().split_once(':').ok_or_else(malformed)?;
    let columns: Vec<&str> = columns.split(',').map(str::trim).collect();
    if table.trim().is_empty() || columns.iter().any(|column| column.is_empty() || column.contains(':')) {
        return Err(malformed());
    }
    let pattern = |text: &str| RegexList::new(&[text.trim().to_owned()]).map_err(|e| e.to_string());
    Ok(Item {
        text: text.trim().to_owned(),
        table: pattern(table)?,
        columns: columns.into_iter().map(pattern).collect::<Result<_, _>>()?,
    })
}

fn undecidable(error: thalweg_config::rule::RegexListError) -> Error {
    Error::config(format!("message.key.columns: {error}"))
        .advise("write the expression without nested repetitions, or name the table literally")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::super::column::{Column, jdbc};
    use super::super::table_id::TableId;
    use super::*;

    const FORMS: &[NameForm] = &[NameForm::Full, NameForm::WithoutCatalog];

    fn table(name: &str, columns: &[&str]) -> Table {
        let columns = columns.iter().zip(1..).map(|(name, at)| Column::new(name, at, jdbc::INTEGER, "int"));
        Table::new(TableId::new(Some("inv"), Some("dbo"), name), columns.collect(), vec!["id".into()]).unwrap()
    }

    #[test]
    fn sql_29_all_spellings_in_the_written_order() {
        let (a, b) = (table("a", &["id", "x"]), table("b", &["id"]));
        for text in ["dbo.a:x,id;", "inv.dbo.a:x,id", "(.*).a: x , id", "DBO\\.A:X,ID", " dbo.a:x ; dbo.(a|c):id "] {
            let keys = MessageKeys::parse(text, FORMS).unwrap();
            assert_eq!(keys.columns(&a).unwrap(), [1, 0], "{text}");
            assert_eq!(keys.columns(&b).unwrap(), [0], "{text}");
        }
    }

    #[test]
    fn columns_that_are_not_there_or_twice_add_nothing() {
        let keys = MessageKeys::parse("dbo.a:nosuch,x,x;dbo.b:nosuch", FORMS).unwrap();
        assert_eq!(keys.columns(&table("a", &["id", "x"])).unwrap(), [1]);
        assert_eq!(keys.columns(&table("b", &["x", "id"])).unwrap(), [1]);
        let keys = MessageKeys::parse("dbo.a:p.*", FORMS).unwrap();
        assert_eq!(keys.columns(&table("a", &["id", "p1", "p2"])).unwrap(), [1, 2]);
        assert_eq!(MessageKeys::default().columns(&table("a", &["x", "id"])).unwrap(), [1]);
    }

    #[test]
    fn items_of_another_form_are_refused() {
        for text in ["dbo.a", ":id", "dbo.a:", "dbo.a:x,,y", "a:b:c"] {
            let error = MessageKeys::check(&format!("ok:id;{text}")).unwrap_err();
            assert_eq!(error, format!("{text} has an invalid format (expecting '{ITEM}')"));
        }
        assert!(MessageKeys::check("[a:id").unwrap_err().contains("Unclosed character class"));
        assert_eq!(MessageKeys::check(" ; "), Ok(()));
    }
}

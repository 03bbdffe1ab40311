//! Statements of the user's with which snapshots read tables (`snapshot.select.statement.overrides`).
//!
//! The option lists tables; the statement of each is an option of its own, called like the list, a dot, and the
//! table as it is written there. It does not look into statements.

use std::collections::HashMap;
use std::sync::Arc;

use thalweg_config::rule::split_plain_list;
use thalweg_config::{Properties, Validation};

use super::table_id::{NameForm, TableId, TwoParts};
use crate::error::{Error, Result};

const OVERRIDES: &str = "snapshot.select.statement.overrides";

#[derive(Debug, Clone, Default)]
pub struct SelectOverrides {
    /// By the table's name as it was given, without quotes and in lower case.
    statements: HashMap<String, Arc<str>>,
}

/// What the list says.
#[derive(Default)]
struct Reading {
    overrides: SelectOverrides,
    faults: Vec<String>,
    /// Tables without a statement.
    missing: Vec<String>,
}

impl SelectOverrides {
    /// `two`: what a table's name of two parts lacks. A table without a statement is told of, and read as usual.
    ///
    /// # Errors
    /// All entries that name no table.
    pub fn new(properties: &Properties, two: TwoParts) -> Result<Self> {
        let reading = read(properties, two);
        if !reading.faults.is_empty() {
            let text = reading.faults.join("; ");
            return Err(Error::config(format!("The '{OVERRIDES}' value is invalid: {text}")));
        }
        for table in &reading.missing {
            tracing::warn!("{}", without_statement(table));
        }
        Ok(reading.overrides)
    }

    /// Attaches what is wrong with the list, and warns of tables without a statement.
    pub fn validate(properties: &Properties, two: TwoParts, validation: &mut Validation) {
        let reading = read(properties, two);
        for text in &reading.faults {
            validation.invalid(OVERRIDES, text);
        }
        validation.warnings.extend(reading.missing.iter().map(|table| without_statement(table)));
    }

    /// The statement for a table. One for its whole name counts more than one for a shorter form; case does not
    /// count.
    pub fn statement(&self, id: &TableId) -> Option<&Arc<str>> {
        let forms = [NameForm::Full, NameForm::WithoutCatalog];
        forms.iter().find_map(|form| self.statements.get(&id.text(*form).to_lowercase()))
    }
}

fn without_statement(table: &str) -> String {
    format!("Detected {OVERRIDES} for {table} but no statement property {OVERRIDES}.{table} defined")
}

fn read(properties: &Properties, two: TwoParts) -> Reading {
    let mut reading = Reading::default();
    for entry in split_plain_list(properties.get(OVERRIDES).unwrap_or_default()) {
        let id = match TableId::parse(&entry, two) {
            Ok(id) => id,
            Err(error) => {
                reading.faults.push(error.to_string());
                continue;
            }
        };
        match properties.get(&format!("{OVERRIDES}.{entry}")).map(str::trim).filter(|text| !text.is_empty()) {
            Some(statement) => {
                let name = id.text(NameForm::Full).to_lowercase();
                reading.overrides.statements.insert(name, statement.into());
            }
            None => reading.missing.push(entry),
        }
    }
    reading
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use thalweg_config::{OptionDef, OptionKind, OptionTable};

    use super::*;

    static TABLE: OptionTable = OptionTable {
        title: "t",
        options: &[OptionDef::new(OVERRIDES, OptionKind::String, "")],
        open_prefixes: &[],
        cross_checks: &[],
    };

    fn id(table: &str) -> TableId {
        TableId::new(Some("shop"), Some("dbo"), table)
    }

    fn overrides(options: &[(&str, &str)]) -> SelectOverrides {
        let properties = options.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        SelectOverrides::new(&properties, TwoParts::SchemaAndTable).unwrap()
    }

    #[test]
    fn sql_04_statements_for_tables_in_any_spelling() {
        let given = overrides(&[
            (OVERRIDES, " dbo.a , [dbo].[b c] , \"Shop\".dbo.D, dbo.e"),
            ("snapshot.select.statement.overrides.dbo.a", "SELECT * FROM dbo.a WHERE dead=0"),
            ("snapshot.select.statement.overrides.[dbo].[b c]", " SELECT * FROM [dbo].[b c] WHERE id=2 "),
            ("snapshot.select.statement.overrides.\"Shop\".dbo.D", "SELECT 4"),
            ("snapshot.select.statement.overrides.dbo.unlisted", "SELECT 5"),
        ]);
        for (table, statement) in [
            ("a", Some("SELECT * FROM dbo.a WHERE dead=0")),
            ("b c", Some("SELECT * FROM [dbo].[b c] WHERE id=2")),
            ("d", Some("SELECT 4")),
            ("e", None),
            ("unlisted", None),
        ] {
            assert_eq!(given.statement(&id(table)).map(|text| &**text), statement, "{table}");
        }
    }

    #[test]
    fn the_longer_name_counts() {
        let given = overrides(&[
            (OVERRIDES, "shop.dbo.a, dbo.a"),
            ("snapshot.select.statement.overrides.dbo.a", "SELECT 'short'"),
            ("snapshot.select.statement.overrides.shop.dbo.a", "SELECT 'long'"),
        ]);
        assert_eq!(&**given.statement(&id("a")).unwrap(), "SELECT 'long'");
    }

    #[test]
    fn what_is_wrong_or_missing_is_told() {
        let properties = Properties::from([(OVERRIDES, "dbo.a, a.b.c.d, [x")]);
        let mut validation = TABLE.validate(&properties);
        SelectOverrides::validate(&properties, TwoParts::SchemaAndTable, &mut validation);
        assert_eq!(
            validation.messages(),
            [
                "The 'snapshot.select.statement.overrides' value is invalid: 'a.b.c.d' is no name of a table: it has more than three parts",
                "The 'snapshot.select.statement.overrides' value is invalid: '[x' is no name of a table: a quote is not closed",
            ]
        );
        assert_eq!(
            validation.warnings,
            [
                "Detected snapshot.select.statement.overrides for dbo.a but no statement property snapshot.select.statement.overrides.dbo.a defined"
            ]
        );
        assert!(SelectOverrides::new(&properties, TwoParts::SchemaAndTable).is_err());
    }
}

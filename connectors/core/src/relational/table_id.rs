//! Names of tables: up to three parts, and the text forms that lists, messages and records use.
//!
//! A part is never empty, and catalog or schema may be missing. Case counts; lists that ignore it do so by
//! themselves.

use std::fmt;
use std::sync::Arc;

/// A table by catalog (database), schema (owner) and name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableId {
    catalog: Option<Arc<str>>,
    schema: Option<Arc<str>>,
    table: Arc<str>,
}

/// Which part of a two-part name is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TwoParts {
    /// `schema.table`.
    SchemaAndTable,
    /// `catalog.table`.
    CatalogAndTable,
}

/// Which parts of a name a list is matched against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameForm {
    /// `catalog.schema.table`.
    Full,
    /// `schema.table`.
    WithoutCatalog,
    /// `catalog.table`.
    WithoutSchema,
}

/// A text that names no table.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is no name of a table: {fault}")]
pub struct TableIdError {
    text: String,
    fault: &'static str,
}

impl TableId {
    /// Empty parts count as missing.
    pub fn new(catalog: Option<&str>, schema: Option<&str>, table: &str) -> Self {
        let part = |part: Option<&str>| part.filter(|p| !p.is_empty()).map(Arc::from);
        Self { catalog: part(catalog), schema: part(schema), table: table.into() }
    }

    /// From one to three parts with dots between them. Blanks around a part do not count. A part may stand in
    /// double or single quotes, backticks or square brackets, with its closing sign doubled inside.
    ///
    /// # Errors
    /// No part, an empty one, more than three, or a quote that is not closed.
    pub fn parse(text: &str, two: TwoParts) -> Result<Self, TableIdError> {
        let fault = |fault| TableIdError { text: text.to_owned(), fault };
        let parts = parts(text).map_err(fault)?;
        match parts.as_slice() {
            [table] => Ok(Self::new(None, None, table)),
            [schema, table] if two == TwoParts::SchemaAndTable => Ok(Self::new(None, Some(schema), table)),
            [catalog, table] => Ok(Self::new(Some(catalog), None, table)),
            [catalog, schema, table] => Ok(Self::new(Some(catalog), Some(schema), table)),
            _ => Err(fault("it has more than three parts")),
        }
    }

    pub fn catalog(&self) -> Option<&str> {
        self.catalog.as_deref()
    }
    pub fn schema(&self) -> Option<&str> {
        self.schema.as_deref()
    }
    pub fn table(&self) -> &str {
        &self.table
    }

    /// The parts that there are, of those that the form has.
    pub fn parts(&self, form: NameForm) -> Vec<&str> {
        let catalog = self.catalog().filter(|_| form != NameForm::WithoutCatalog);
        let schema = self.schema().filter(|_| form != NameForm::WithoutSchema);
        [catalog, schema, Some(self.table())].into_iter().flatten().collect()
    }

    /// [`TableId::parts`] with dots between them and no quotes.
    pub fn text(&self, form: NameForm) -> String {
        self.parts(form).join(".")
    }

    /// All parts in double quotes, as records about structures name tables.
    pub fn quoted(&self) -> String {
        let quoted = |part: &str| format!("\"{}\"", part.replace('"', "\"\""));
        self.parts(NameForm::Full).into_iter().map(quoted).collect::<Vec<_>>().join(".")
    }
}

/// [`NameForm::Full`].
impl fmt::Display for TableId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text(NameForm::Full))
    }
}

fn parts(text: &str) -> Result<Vec<String>, &'static str> {
    let mut parts = Vec::new();
    let mut rest = text;
    loop {
        let (part, behind) = part(rest.trim_start())?;
        if part.is_empty() {
            return Err("a part is empty");
        }
        parts.push(part);
        match behind.trim_start().strip_prefix('.') {
            Some(next) => rest = next,
            None if behind.trim().is_empty() => return Ok(parts),
            None => return Err("a dot is missing behind a quote"),
        }
    }
}

/// The first part, and what is behind it.
fn part(text: &str) -> Result<(String, &str), &'static str> {
    let close = match text.chars().next() {
        Some(quote @ ('"' | '\'' | '`')) => quote,
        Some('[') => ']',
        _ => {
            let end = text.find('.').unwrap_or(text.len());
            return Ok((text[..end].trim_end().to_owned(), &text[end..]));
        }
    };
    let mut part = String::new();
    let mut chars = text.char_indices().skip(1).peekable();
    while let Some((at, c)) = chars.next() {
        if c == close && chars.next_if(|(_, next)| *next == close).is_none() {
            return Ok((part, &text[at + 1..]));
        }
        part.push(c);
    }
    Err("a quote is not closed")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use proptest::prelude::*;

    use super::*;

    fn parse(text: &str) -> TableId {
        TableId::parse(text, TwoParts::SchemaAndTable).unwrap()
    }

    #[test]
    fn names_of_one_to_three_parts() {
        assert_eq!(parse("t"), TableId::new(None, None, "t"));
        assert_eq!(parse("s.t"), TableId::new(None, Some("s"), "t"));
        assert_eq!(TableId::parse("c.t", TwoParts::CatalogAndTable).unwrap(), TableId::new(Some("c"), None, "t"));
        assert_eq!(parse(" c . s.t "), TableId::new(Some("c"), Some("s"), "t"));
        assert_eq!(TableId::new(Some(""), Some("s"), "t"), parse("s.t"));
    }

    #[test]
    fn sql_04_quoted_parts_and_blanks() {
        assert_eq!(parse("[dbo].[b c]"), TableId::new(None, Some("dbo"), "b c"));
        assert_eq!(parse(r#" "a.b" . [x]].y] . `z``` "#), TableId::new(Some("a.b"), Some("x].y"), "z`"));
        assert_eq!(parse("'it''s'.t\"x"), TableId::new(None, Some("it's"), "t\"x"));
    }

    #[test]
    fn what_is_no_name_says_why() {
        for (text, fault) in [
            ("", "a part is empty"),
            ("a..b", "a part is empty"),
            ("a.", "a part is empty"),
            ("a.\"\"", "a part is empty"),
            ("\"a\"b.c", "a dot is missing behind a quote"),
            ("a.[b", "a quote is not closed"),
            ("a.b.c.d", "it has more than three parts"),
        ] {
            let error = TableId::parse(text, TwoParts::SchemaAndTable).unwrap_err();
            assert_eq!(error.to_string(), format!("'{text}' is no name of a table: {fault}"));
        }
    }

    #[test]
    fn forms() {
        let id = parse("Shop.dbo.item");
        assert_eq!(id.text(NameForm::Full), "Shop.dbo.item");
        assert_eq!(id.text(NameForm::WithoutCatalog), "dbo.item");
        assert_eq!(id.text(NameForm::WithoutSchema), "Shop.item");
        assert_eq!(id.quoted(), r#""Shop"."dbo"."item""#);
        assert_eq!(parse("t").text(NameForm::WithoutCatalog), "t");
    }

    proptest! {
        #[test]
        fn a_quoted_name_reads_back(catalog in "\\PC{0,8}", schema in "\\PC{1,8}", table in "\\PC{1,8}") {
            let id = TableId::new(Some(&catalog), Some(&schema), &table);
            prop_assert_eq!(TableId::parse(&id.quoted(), TwoParts::SchemaAndTable).unwrap(), id);
        }

        #[test]
        fn any_text_is_read_without_panic(text in "[\"'`\\[\\]. aé]{0,12}") {
            if let Ok(id) = TableId::parse(&text, TwoParts::SchemaAndTable) {
                prop_assert!(!id.table().is_empty());
            }
        }
    }
}

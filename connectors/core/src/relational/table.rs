//! The structure of a table, and of all tables that a task knows.
//!
//! Invariants: columns stand in the order of their positions and have different names; columns of the primary
//! key are columns of the table, in the order of the key. It does not know what a database has of which table.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use super::column::Column;
use super::table_id::TableId;

/// Something that the database tells of a table beside its columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attribute {
    pub name: String,
    pub value: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    pub id: TableId,
    columns: Vec<Column>,
    primary_key: Vec<Arc<str>>,
    pub default_charset_name: Option<String>,
    pub comment: Option<String>,
    pub attributes: Vec<Attribute>,
}

impl Table {
    /// Columns are put in the order of their positions.
    ///
    /// # Errors
    /// Two columns of one name, or a key column that is none.
    pub fn new(id: TableId, mut columns: Vec<Column>, primary_key: Vec<Arc<str>>) -> Result<Self, String> {
        columns.sort_by_key(|column| column.position);
        let mut names = HashSet::new();
        if let Some(twice) = columns.iter().find(|column| !names.insert(&column.name)) {
            return Err(format!("table {id} has two columns named '{}'", twice.name));
        }
        if let Some(missing) = primary_key.iter().find(|name| !names.contains(name)) {
            return Err(format!("table {id} has no column '{missing}', which its primary key names"));
        }
        Ok(Self { id, columns, primary_key, default_charset_name: None, comment: None, attributes: Vec::new() })
    }

    /// A table of which nothing but the name is known: one that was dropped.
    pub fn bare(id: TableId) -> Self {
        Self {
            id,
            columns: Vec::new(),
            primary_key: Vec::new(),
            default_charset_name: None,
            comment: None,
            attributes: Vec::new(),
        }
    }

    pub fn columns(&self) -> &[Column] {
        &self.columns
    }
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|column| &*column.name == name)
    }
    /// Names of the key's columns; empty without a key.
    pub fn primary_key(&self) -> &[Arc<str>] {
        &self.primary_key
    }
    /// Where the columns of the primary key stand among all.
    pub fn primary_key_indexes(&self) -> Vec<usize> {
        let index = |name: &Arc<str>| self.columns.iter().position(|column| column.name == *name);
        self.primary_key.iter().filter_map(index).collect()
    }
}

/// The tables of a source, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tables {
    by_id: BTreeMap<TableId, Arc<Table>>,
}

impl Tables {
    pub fn get(&self, id: &TableId) -> Option<&Arc<Table>> {
        self.by_id.get(id)
    }
    /// Instead of what was known of the table before.
    pub fn put(&mut self, table: Table) {
        self.by_id.insert(table.id.clone(), Arc::new(table));
    }
    pub fn remove(&mut self, id: &TableId) -> Option<Arc<Table>> {
        self.by_id.remove(id)
    }
    /// In the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Table>> {
        self.by_id.values()
    }
    pub fn len(&self) -> usize {
        self.by_id.len()
    }
    pub fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }
    /// Forgets the tables for which `keep` is false.
    ///
    /// # Errors
    /// Those of `keep`; nothing is forgotten then.
    pub fn retain<E>(&mut self, keep: impl Fn(&TableId) -> Result<bool, E>) -> Result<(), E> {
        let kept: Result<Vec<_>, E> = self.by_id.keys().map(|id| Ok((id.clone(), keep(id)?))).collect();
        for (id, _) in kept?.into_iter().filter(|(_, keep)| !keep) {
            self.by_id.remove(&id);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::super::column::jdbc;
    use super::*;

    fn id() -> TableId {
        TableId::new(Some("shop"), Some("dbo"), "item")
    }

    #[test]
    fn columns_follow_their_positions_and_keys_their_own_order() {
        let columns = vec![
            Column::new("b", 2, jdbc::INTEGER, "int"),
            Column::new("c", 3, jdbc::INTEGER, "int"),
            Column::new("a", 1, jdbc::INTEGER, "int"),
        ];
        let table = Table::new(id(), columns, vec!["c".into(), "a".into()]).unwrap();
        let names: Vec<&str> = table.columns().iter().map(|c| &*c.name).collect();
        assert_eq!(names, ["a", "b", "c"]);
        assert_eq!(table.primary_key_indexes(), [2, 0]);
    }

    #[test]
    fn damage_is_named() {
        let twice = vec![Column::new("a", 1, jdbc::INTEGER, "int"), Column::new("a", 2, jdbc::INTEGER, "int")];
        assert_eq!(Table::new(id(), twice, Vec::new()).unwrap_err(), "table shop.dbo.item has two columns named 'a'");
        let error = Table::new(id(), Vec::new(), vec!["x".into()]).unwrap_err();
        assert_eq!(error, "table shop.dbo.item has no column 'x', which its primary key names");
    }

    #[test]
    fn t_05_columns_that_differ_by_case_are_different() {
        let columns = vec![Column::new("a", 1, jdbc::INTEGER, "int"), Column::new("A", 2, jdbc::INTEGER, "int")];
        let table = Table::new(id(), columns, vec!["A".into()]).unwrap();
        assert_eq!(table.primary_key_indexes(), [1]);
    }

    #[test]
    fn tables_that_are_not_kept_are_forgotten() {
        let mut tables = Tables::default();
        for name in ["a", "b", "c"] {
            tables.put(Table::bare(TableId::new(None, None, name)));
        }
        assert_eq!(tables.retain(|id| if id.table() == "c" { Err("c") } else { Ok(false) }), Err("c"));
        assert_eq!(tables.len(), 3);
        tables.retain(|id| Ok::<_, ()>(id.table() != "b")).unwrap();
        let names: Vec<&str> = tables.iter().map(|table| table.id.table()).collect();
        assert_eq!(names, ["a", "c"]);
    }
}

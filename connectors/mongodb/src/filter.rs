//! Which databases and collections are captured: the client's side of the include and exclude lists.
//!
//! The server filters the change stream by the same lists (`pipeline`); this filter is applied to
//! everything that arrives and to the collections of a snapshot, so both agree. Regular expressions
//! match the whole name and ignore case; literal entries are exact, in stream and snapshot alike.
//! The databases `admin`, `config` and `local` are never captured.
//!
//! Results are cached by the caller per collection; nothing here runs per event.

use std::collections::HashMap;

use bson::Document;
use thalweg_core::Error;
pub use thalweg_core::filter::MatchMode;
use thalweg_core::filter::NameFilter;
use thalweg_core::signal::{Condition, SnapshotRequest};

use crate::lenient_json::parse_document;
use crate::namespace::Namespace;

/// An include or an exclude list; there is never both for one kind of name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum NameList {
    #[default]
    All,
    Include(Vec<String>),
    Exclude(Vec<String>),
}

/// The lists as configured.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FilterLists {
    pub mode: MatchMode,
    pub databases: NameList,
    /// Entries over `db.collection`.
    pub collections: NameList,
    /// Passes every list.
    pub signals: Option<Namespace>,
}

impl NameList {
    fn compile(&self, mode: MatchMode) -> Result<NameFilter, Error> {
        let (include, exclude): (&[String], &[String]) = match self {
            Self::All => (&[], &[]),
            Self::Include(entries) => (entries, &[]),
            Self::Exclude(entries) => (&[], entries),
        };
        NameFilter::new(mode, include, exclude).map_err(Error::config)
    }
}

impl FilterLists {
    /// The lists that limit what is captured, by option.
    pub fn set(&self) -> String {
        let option = |kind: &str, list: &NameList| match list {
            NameList::All => None,
            NameList::Include(entries) => Some(format!("{kind}.include.list={}", entries.join(","))),
            NameList::Exclude(entries) => Some(format!("{kind}.exclude.list={}", entries.join(","))),
        };
        let set = [option("database", &self.databases), option("collection", &self.collections)];
        set.into_iter().flatten().collect::<Vec<_>>().join(" ")
    }
}

/// The compiled lists. Errors: a pattern that does not compile, or that the engine gives up on.
#[derive(Debug)]
pub struct NamespaceFilter {
    databases: NameFilter,
    collections: NameFilter,
    signals: Option<Namespace>,
}

impl NamespaceFilter {
    pub fn new(lists: &FilterLists) -> Result<Self, Error> {
        Ok(Self {
            databases: lists.databases.compile(lists.mode)?,
            collections: lists.collections.compile(lists.mode)?,
            signals: lists.signals.clone(),
        })
    }

    /// Whether collections of this database may be captured.
    pub fn captures_database(&self, name: &str) -> Result<bool, Error> {
        if matches!(name, "admin" | "config" | "local") {
            return Ok(false);
        }
        self.databases.passes(name)
    }

    /// Whether changes of this collection are captured. The signal collection always is.
    pub fn captures(&self, namespace: &Namespace) -> Result<bool, Error> {
        if self.is_signals(namespace) {
            return Ok(true);
        }
        Ok(self.captures_database(&namespace.db)? && self.collections.passes(&namespace.to_string())?)
    }

    pub fn is_signals(&self, namespace: &Namespace) -> bool {
        self.signals.as_ref() == Some(namespace)
    }
}

/// Which captured collections a snapshot reads, by `snapshot.include.collection.list` or by a signal, and
/// what of them.
#[derive(Debug)]
pub struct SnapshotSelection {
    names: NameFilter,
    /// Conditions of a signal, by full name.
    conditions: HashMap<String, Document>,
}

impl SnapshotSelection {
    /// No entries select everything. Entries are regular expressions whatever the match mode.
    pub fn new(entries: &[String]) -> Result<Self, Error> {
        let names = NameFilter::new(MatchMode::Regex, entries, &[]).map_err(Error::config)?;
        Ok(Self { names, conditions: HashMap::new() })
    }

    /// What a signal asks for; its conditions name their collections literally.
    pub fn asked(request: &SnapshotRequest) -> Result<Self, Error> {
        let condition = |c: &Condition| match parse_document(&c.filter) {
            Ok(filter) => Ok((c.collection.clone(), filter)),
            Err(e) => {
                let text = format!("the additional condition for {} is not a query filter", c.collection);
                Err(Error::config(text).because(&e))
            }
        };
        let conditions = request.conditions.iter().map(condition).collect::<Result<_, _>>()?;
        Ok(Self { conditions, ..Self::new(&request.collections)? })
    }

    pub fn selects(&self, namespace: &Namespace) -> Result<bool, Error> {
        self.names.passes(&namespace.to_string())
    }

    pub fn condition(&self, namespace: &Namespace) -> Option<&Document> {
        self.conditions.get(&namespace.to_string())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use thalweg_config::rule::split_plain_list as split_list;
    use thalweg_core::ErrorKind;

    use super::*;

    fn lists(mode: MatchMode, databases: NameList, collections: NameList) -> FilterLists {
        FilterLists { mode, databases, collections, signals: None }
    }

    fn include(text: &str) -> NameList {
        NameList::Include(split_list(text))
    }

    fn exclude(text: &str) -> NameList {
        NameList::Exclude(split_list(text))
    }

    fn captured(lists: &FilterLists, names: &[&str]) -> Vec<bool> {
        let filter = NamespaceFilter::new(lists).unwrap();
        names.iter().map(|n| filter.captures(&Namespace::parse(n).unwrap()).unwrap()).collect()
    }

    #[test]
    fn mgo_01_blanks_in_lists() {
        let lists = lists(MatchMode::Regex, include("inv, crm"), include(" inv.a ,\n   inv.b  ,, "));
        assert_eq!(captured(&lists, &["inv.a", "inv.b", "inv.c", "crm.a"]), [true, true, false, false]);
    }

    #[test]
    fn patterns_match_whole_names_and_ignore_case() {
        let lists1 = lists(MatchMode::Regex, include("db1"), NameList::All);
        assert_eq!(captured(&lists1, &["db1.a", "DB1.a", "mydb1.a", "db12.a"]), [true, true, false, false]);
        let lists2 = lists(MatchMode::Regex, exclude("db1"), NameList::All);
        assert_eq!(
            captured(&lists2, &["db1.a", "db12.a", "admin.a", "config.a", "local.a"]),
            [false, true, false, false, false]
        );
        let lists3 = lists(MatchMode::Regex, NameList::All, include(r"s\.(?!tmp_).*"));
        assert_eq!(captured(&lists3, &["s.orders", "s.tmp_1", "t.orders"]), [true, false, false]);
        let lists4 = lists(MatchMode::Regex, NameList::All, exclude(r"s\.(.)\1,s.q"));
        assert_eq!(captured(&lists4, &["s.aa", "s.ab", "s.q"]), [false, true, false]);
    }

    #[test]
    fn mgo_22_literal_names_are_exact() {
        let lists = lists(MatchMode::Literal, NameList::All, include("inv.a.b,inv.a+b"));
        assert_eq!(captured(&lists, &["inv.a.b", "inv.a+b", "inv.axb", "inv.A.b"]), [true, true, false, false]);
    }

    #[test]
    fn mgo_21_signal_collection_passes_every_list() {
        let mut with = lists(MatchMode::Regex, include("inv"), NameList::All);
        with.signals = Namespace::parse("ops.signals");
        assert_eq!(captured(&with, &["inv.a", "ops.signals", "ops.other"]), [true, true, false]);
    }

    #[test]
    fn snapshot_selection_by_pattern() {
        let all = SnapshotSelection::new(&[]).unwrap();
        let some = SnapshotSelection::new(&split_list("db.A.*")).unwrap();
        let name = |n: &str| Namespace::parse(n).unwrap();
        assert!(all.selects(&name("db.b")).unwrap());
        assert!(some.selects(&name("db.abc")).unwrap());
        assert!(!some.selects(&name("db.b")).unwrap());
    }

    #[test]
    fn a_bad_pattern_is_a_configuration_error() {
        let error = NamespaceFilter::new(&lists(MatchMode::Regex, include("("), NameList::All)).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Config);
        assert!(error.message.contains("Unclosed group"));
    }

    #[test]
    fn cfg_02_the_lists_are_named_as_options() {
        let exclude = NameList::Exclude(vec!["a".into(), "b".into()]);
        let set = |databases, collections| lists(MatchMode::Regex, databases, collections).set();
        assert_eq!(
            set(exclude, NameList::Include(vec!["x\\.y".into()])),
            "database.exclude.list=a,b collection.include.list=x\\.y"
        );
        assert_eq!(set(NameList::All, NameList::All), "");
    }
}

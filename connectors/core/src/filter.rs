//! Include and exclude lists over names, with decisions kept.
//!
//! Regular expressions match the whole name and ignore case; literal entries are exact. It does not
//! know what a name is made of: the connector builds the text that its lists are matched against.

use std::collections::{HashMap, HashSet};

use parking_lot::Mutex;
use thalweg_config::RegexList;

use crate::error::{Error, ErrorKind, Phase, Result};

/// Decisions kept per filter.
const KEPT: usize = 10_000;

/// How entries are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MatchMode {
    #[default]
    Regex,
    Literal,
}

#[derive(Debug)]
enum Entries {
    Regex(RegexList),
    Literal(HashSet<String>),
}

impl Entries {
    fn new(mode: MatchMode, entries: &[String]) -> Result<Self, String> {
        match mode {
            MatchMode::Regex => RegexList::new(entries).map(Self::Regex).map_err(|e| e.to_string()),
            // The only escape that a list knows is the comma.
            MatchMode::Literal => Ok(Self::Literal(entries.iter().map(|e| e.replace("\\,", ",")).collect())),
        }
    }
    fn contain(&self, name: &str) -> Result<bool, String> {
        match self {
            Self::Regex(list) => list.matches(name).map_err(|e| e.to_string()),
            Self::Literal(names) => Ok(names.contains(name)),
        }
    }
}

#[derive(Debug)]
enum Rule {
    All,
    Include(Entries),
    Exclude(Entries),
}

/// An include or an exclude list, or neither.
#[derive(Debug)]
pub struct NameFilter {
    rule: Rule,
    decisions: Mutex<HashMap<String, bool>>,
}

impl NameFilter {
    /// Passes everything.
    pub fn all() -> Self {
        Self::of(Rule::All)
    }

    /// From the items of the two lists (an empty list is none), as the option parser gives them: `\,`
    /// still escaped.
    ///
    /// # Errors
    /// The text for the message of the option: an entry that is no regular expression, or both
    /// lists given.
    pub fn new(mode: MatchMode, include: &[String], exclude: &[String]) -> Result<Self, String> {
        match (include.is_empty(), exclude.is_empty()) {
            (true, true) => Ok(Self::all()),
            (false, true) => Ok(Self::of(Rule::Include(Entries::new(mode, include)?))),
            (true, false) => Ok(Self::of(Rule::Exclude(Entries::new(mode, exclude)?))),
            (false, false) => Err("an include list and an exclude list cannot both be set".to_owned()),
        }
    }

    fn of(rule: Rule) -> Self {
        Self { rule, decisions: Mutex::default() }
    }

    pub fn passes_all(&self) -> bool {
        matches!(self.rule, Rule::All)
    }

    /// Whether `name` passes.
    ///
    /// # Errors
    /// An expression that takes too many steps for this name. Nothing is assumed then: leaving the
    /// name out would lose changes.
    pub fn passes(&self, name: &str) -> Result<bool> {
        let (entries, include) = match &self.rule {
            Rule::All => return Ok(true),
            Rule::Include(entries) => (entries, true),
            Rule::Exclude(entries) => (entries, false),
        };
        let mut decisions = self.decisions.lock();
        if let Some(known) = decisions.get(name) {
            return Ok(*known);
        }
        let contained = entries.contain(name).map_err(|text| {
            Error::new(ErrorKind::Config, Phase::Stream, text)
                .advise("write the expression without nested repetitions, or name the tables literally")
        })?;
        if decisions.len() >= KEPT {
            decisions.clear();
        }
        decisions.insert(name.to_owned(), contained == include);
        Ok(contained == include)
    }

    /// Whether something with several spellings of its name passes: on a list is what has one of them there.
    ///
    /// # Errors
    /// As [`NameFilter::passes`].
    pub fn passes_any<S: AsRef<str>>(&self, spellings: impl IntoIterator<Item = S>) -> Result<bool> {
        let unlisted = !matches!(self.rule, Rule::Include(_));
        for name in spellings {
            if self.passes(name.as_ref())? != unlisted {
                return Ok(!unlisted);
            }
        }
        Ok(unlisted)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use thalweg_config::rule::split_list;

    use super::*;

    fn include(mode: MatchMode, list: &str) -> NameFilter {
        NameFilter::new(mode, &split_list(list), &[]).unwrap()
    }

    /// MGO-01: blanks and line breaks in lists.
    #[test]
    fn mgo_01_blanks_and_empty_items() {
        let filter = include(MatchMode::Regex, " inv.a ,\n   inv.b ,, ");
        for (name, passes) in [("inv.a", true), ("inv.b", true), ("inv.c", false), ("INV.A", true), ("xinv.a", false)] {
            assert_eq!(filter.passes(name).unwrap(), passes, "{name}");
        }
    }

    /// MGO-22: literal entries are exact.
    #[test]
    fn mgo_22_literal_mode() {
        let filter = include(MatchMode::Literal, "inv.a.b,inv.a+b,inv.x\\,y");
        for (name, passes) in
            [("inv.a.b", true), ("inv.a+b", true), ("inv.axb", false), ("inv.A.B", false), ("inv.x,y", true)]
        {
            assert_eq!(filter.passes(name).unwrap(), passes, "{name}");
        }
    }

    /// CFG-04: an escaped comma stays part of its item.
    #[test]
    fn cfg_04_escaped_comma() {
        let filter = include(MatchMode::Regex, r"a\,b, db\.(?!tmp_).*");
        for (name, passes) in [("a,b", true), ("a", false), ("db.x", true), ("db.tmp_x", false)] {
            assert_eq!(filter.passes(name).unwrap(), passes, "{name}");
        }
    }

    #[test]
    fn exclude_and_all() {
        let filter = NameFilter::new(MatchMode::Regex, &[], &split_list("a.*")).unwrap();
        assert!(!filter.passes("abc").unwrap() && filter.passes("xyz").unwrap());
        assert!(!filter.passes("abc").unwrap(), "from memory");
        assert!(!filter.passes_all());
        assert!(NameFilter::all().passes("anything").unwrap() && NameFilter::all().passes_all());
        let both = ["a".to_owned()];
        assert!(NameFilter::new(MatchMode::Regex, &both, &both).is_err());
        assert!(NameFilter::new(MatchMode::Regex, &["[a".to_owned()], &[]).unwrap_err().contains("[a"));
    }

    #[test]
    fn one_of_several_spellings_is_enough_to_be_on_a_list() {
        let list = split_list("db.s.t, x.y");
        let included = NameFilter::new(MatchMode::Regex, &list, &[]).unwrap();
        let excluded = NameFilter::new(MatchMode::Regex, &[], &list).unwrap();
        for (spellings, listed) in [(["db.s.t", "s.t"], true), (["db.x.y", "x.y"], true), (["db.s.u", "s.u"], false)] {
            assert_eq!(included.passes_any(spellings).unwrap(), listed);
            assert_eq!(excluded.passes_any(spellings).unwrap(), !listed);
            assert!(NameFilter::all().passes_any(spellings).unwrap());
        }
    }

    #[test]
    fn an_undecidable_expression_is_an_error() {
        let filter = include(MatchMode::Regex, r"(a|a|aa)*\1b(?=c)");
        assert_eq!(filter.passes(&"a".repeat(60)).unwrap_err().kind, ErrorKind::Config);
    }

    #[test]
    fn memory_is_bounded() {
        let filter = include(MatchMode::Literal, "n5");
        for n in 0..3 * KEPT {
            filter.passes(&format!("n{n}")).unwrap();
        }
        assert!(filter.decisions.lock().len() <= KEPT);
        assert!(filter.passes("n5").unwrap());
    }
}

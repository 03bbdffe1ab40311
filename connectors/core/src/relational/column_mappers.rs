//! The rules of a user for values of columns: cut, masked, digested, or described by their source's type.
//!
//! A rule is an option whose name holds its parameters and whose value lists the columns. Each list is
//! matched against the forms of a column's name. Of several rules for one column the first counts, in this
//! order: cut, masked by asterisks, source type by column, source type by type, digest of the serialised text,
//! digest of the text; within a kind, by the name of the option. Keys are not touched.
//!
//! Nothing that is logged shows a salt.

use thalweg_config::{Properties, RegexList, Validation};

use super::column::Column;
use super::digest::{Form, SaltedDigest};
use super::mapping::Mapping;
use super::table_id::{NameForm, TableId};
use crate::error::{Error, Result};

/// What the names of these options begin with; for the open prefixes of an option table.
pub const MAPPER_PREFIXES: &[&str] = &["column.truncate.to.", "column.mask.with.", "column.mask.hash."];

const TRUNCATE: &str = "column.truncate.to.<n>.chars";
const MASK: &str = "column.mask.with.<n>.chars";
const DIGEST: &str = "column.mask.hash.[v2.]<algorithm>.with.salt.<salt>";
const SOURCE_TYPE: &str = "column.propagate.source.type";
const SOURCE_TYPE_BY_TYPE: &str = "datatype.propagate.source.type";

/// More asterisks would fill messages.
const MOST_ASTERISKS: usize = 65_536;

/// In the order in which they count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Truncate,
    Mask,
    SourceType,
    SourceTypeByType,
    DigestSerialized,
    DigestPlain,
}

impl Rank {
    /// The option, without what is secret in its name.
    const fn option(self) -> &'static str {
        match self {
            Self::Truncate => TRUNCATE,
            Self::Mask => MASK,
            Self::SourceType => SOURCE_TYPE,
            Self::SourceTypeByType => SOURCE_TYPE_BY_TYPE,
            Self::DigestSerialized | Self::DigestPlain => DIGEST,
        }
    }
}

#[derive(Debug)]
struct Rule {
    rank: Rank,
    columns: RegexList,
    mapping: Mapping,
}

#[derive(Debug, Default)]
pub struct ColumnMappers {
    /// In the order in which they count.
    rules: Vec<Rule>,
    forms: &'static [NameForm],
}

/// What is wrong with an option, for its message.
type Fault = (String, String);

impl ColumnMappers {
    /// The rules of a configuration. `forms`: which forms of a table's name stand in front of the column's.
    ///
    /// # Errors
    /// All rules that are wrong.
    pub fn new(properties: &Properties, forms: &'static [NameForm]) -> Result<Self> {
        let (rules, faults) = read(properties);
        let texts: Vec<String> =
            faults.iter().map(|(option, text)| format!("The '{}' value is invalid: {text}", shown(option))).collect();
        if texts.is_empty() { Ok(Self { rules, forms }) } else { Err(Error::config(texts.join("; "))) }
    }

    /// Attaches what is wrong with the rules of a configuration to their options. The lists of
    /// the propagated types are checked by the option table.
    pub fn validate(properties: &Properties, validation: &mut Validation) {
        for (option, text) in read(properties).1 {
            if option != SOURCE_TYPE && option != SOURCE_TYPE_BY_TYPE {
                validation.invalid(&option, &text);
            }
        }
    }

    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// The rule for a column; more than one is told of, because the others have no effect.
    pub(super) fn mapping(&self, id: &TableId, column: &Column) -> Result<Option<&Mapping>> {
        let mut found: Option<&Rule> = None;
        for rule in &self.rules {
            if !self.is_for(rule, id, column)? {
                continue;
            }
            if let Some(first) = found {
                let (counts, ignored) = (first.rank.option(), rule.rank.option());
                tracing::warn!(table = %id, column = %column.name, counts, ignored, "two rules are for one column; the first counts");
                break;
            }
            found = Some(rule);
        }
        Ok(found.map(|rule| &rule.mapping))
    }

    fn is_for(&self, rule: &Rule, id: &TableId, column: &Column) -> Result<bool> {
        let last = if rule.rank == Rank::SourceTypeByType { &column.type_name } else { &column.name };
        for form in self.forms {
            let name = format!("{}.{last}", id.text(*form));
            if rule.columns.matches(&name).map_err(|e| Error::config(format!("{}: {e}", rule.rank.option())))? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// The option's name without a salt.
fn shown(option: &str) -> &str {
    option.find(".with.salt.").map_or(option, |at| &option[..at])
}

fn read(properties: &Properties) -> (Vec<Rule>, Vec<Fault>) {
    let (mut rules, mut faults) = (Vec::new(), Vec::new());
    for (option, value) in properties.iter() {
        let rule = mapping(option).and_then(|mapping| {
            let Some((rank, mapping)) = mapping else { return Ok(None) };
            let columns = RegexList::parse(value).map_err(|e| e.to_string())?;
            Ok(Some(Rule { rank, columns, mapping }))
        });
        match rule {
            Ok(rule) => rules.extend(rule),
            Err(text) => faults.push((option.to_owned(), text)),
        }
    }
    rules.sort_by_key(|rule| rule.rank);
    (rules, faults)
}

/// What an option's name asks for; `None`: it is no rule.
fn mapping(option: &str) -> Result<Option<(Rank, Mapping)>, String> {
    if option == SOURCE_TYPE {
        return Ok(Some((Rank::SourceType, Mapping::PropagateType)));
    }
    if option == SOURCE_TYPE_BY_TYPE {
        return Ok(Some((Rank::SourceTypeByType, Mapping::PropagateType)));
    }
    if let Some(rest) = option.strip_prefix("column.truncate.to.") {
        let most = count(rest, TRUNCATE)?;
        if most == 0 {
            return Err("A positive, non-zero integer value is expected".to_owned());
        }
        return Ok(Some((Rank::Truncate, Mapping::Truncate(most))));
    }
    if let Some(rest) = option.strip_prefix("column.mask.with.") {
        let asterisks = count(rest, MASK)?;
        if asterisks > MOST_ASTERISKS {
            return Err(format!("at most {MOST_ASTERISKS} characters are possible"));
        }
        return Ok(Some((Rank::Mask, Mapping::Mask("*".repeat(asterisks).into()))));
    }
    if let Some(rest) = option.strip_prefix("column.mask.hash.") {
        let (rank, form, rest) = match rest.strip_prefix("v2.") {
            Some(rest) => (Rank::DigestPlain, Form::Plain, rest),
            None => (Rank::DigestSerialized, Form::Serialized, rest),
        };
        let parts = rest.split_once(".with.salt.").filter(|(_, salt)| !salt.is_empty());
        let (algorithm, salt) = parts.ok_or_else(|| format!("{DIGEST} is expected"))?;
        return Ok(Some((rank, Mapping::Digest(SaltedDigest::new(algorithm, form, salt)?))));
    }
    Ok(None)
}

/// The number in an option's name.
fn count(rest: &str, form: &str) -> Result<usize, String> {
    let digits = rest.strip_suffix(".chars").filter(|digits| digits.bytes().all(|b| b.is_ascii_digit()));
    digits.and_then(|digits| digits.parse().ok()).ok_or_else(|| format!("{form} is expected"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::super::column::jdbc;
    use super::*;
    use crate::record::Schema;

    const FORMS: &[NameForm] = &[NameForm::Full, NameForm::WithoutCatalog];

    /// The first parameter that the rule for a text column adds to its schema.
    fn added(options: &[(&str, &str)], column: &str) -> Option<String> {
        let properties = options.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        let mappers = ColumnMappers::new(&properties, FORMS).unwrap();
        let column = Column::new(column, 1, jdbc::VARCHAR, "varchar");
        let id = TableId::new(Some("inv"), Some("dbo"), "a");
        let mapping = mappers.mapping(&id, &column).unwrap()?;
        let schema = mapping.describe(&column, Schema::string());
        schema.parameters.first().map(|(key, value)| format!("{key}={value}"))
    }

    #[test]
    fn sql_30_rules_match_short_and_long_names() {
        let options = [
            ("column.mask.with.4.chars", "inv.dbo.a.n"),
            ("column.truncate.to.3.chars", "DBO.a.m"),
            ("column.mask.hash.v2.SHA-256.with.salt.pepper7", "dbo.a.h,dbo.b.h"),
        ];
        assert_eq!(added(&options, "n").unwrap(), "masked=true");
        assert_eq!(added(&options, "m").unwrap(), "truncateLength=3");
        assert_eq!(added(&options, "h").unwrap(), "masked=true");
        assert_eq!(added(&options, "x"), None);
    }

    #[test]
    fn the_first_kind_of_rule_counts() {
        let digest = ("column.mask.hash.MD5.with.salt.s", "dbo.a.c");
        let by_column = ("column.propagate.source.type", "dbo.a.c");
        let by_type = ("datatype.propagate.source.type", r"dbo\.a\.VARCHAR");
        let mask = ("column.mask.with.1.chars", "dbo.a.c");
        let cut = ("column.truncate.to.20.chars", "dbo.a.c");
        let source = "__debezium.source.column.type=VARCHAR";
        assert_eq!(added(&[digest], "c").unwrap(), "masked=true");
        assert_eq!(added(&[digest, by_type], "c").unwrap(), source);
        assert_eq!(added(&[digest, by_column, by_type], "c").unwrap(), source);
        assert_eq!(added(&[by_column, mask], "c").unwrap(), "masked=true");
        assert_eq!(added(&[mask, cut, digest], "c").unwrap(), "truncateLength=20");
    }

    #[test]
    fn a_salt_may_hold_anything_and_is_not_shown() {
        let options = Properties::from([("column.mask.hash.SHA-1.with.salt.a.with.salt.b=,c", "dbo.a.c")]);
        let mappers = ColumnMappers::new(&options, FORMS).unwrap();
        assert!(!mappers.is_empty() && !format!("{mappers:?}").contains("salt.b"));
    }

    #[test]
    fn wrong_rules_are_named() {
        for (option, value, expected) in [
            ("column.truncate.to.0.chars", "a", "A positive, non-zero integer value is expected"),
            ("column.truncate.to.x.chars", "a", "column.truncate.to.<n>.chars is expected"),
            ("column.truncate.to..chars", "a", "column.truncate.to.<n>.chars is expected"),
            ("column.mask.with.-1.chars", "a", "column.mask.with.<n>.chars is expected"),
            ("column.mask.with.99999999999999999999999.chars", "a", "column.mask.with.<n>.chars is expected"),
            ("column.mask.with.70000.chars", "a", "at most 65536 characters are possible"),
            ("column.mask.hash.MD5", "a", "column.mask.hash.[v2.]<algorithm>.with.salt.<salt> is expected"),
            ("column.mask.hash.v2.X.with.salt.s", "a", "'X' is no algorithm for digests"),
            ("column.mask.with.1.chars", "[a", "A comma-separated list of valid regular expressions is expected"),
        ] {
            let properties = Properties::from([(option, value)]);
            let error = ColumnMappers::new(&properties, FORMS).unwrap_err();
            let start = |option: &str| format!("The '{option}' value is invalid: {expected}");
            assert!(error.message.starts_with(&start(shown(option))), "{}", error.message);
            let mut validation = Validation::default();
            ColumnMappers::validate(&properties, &mut validation);
            assert!(validation.messages()[0].starts_with(&start(option)), "{:?}", validation.messages());
        }
        assert!(ColumnMappers::new(&Properties::from([("column.mask.with.0.chars", "a")]), FORMS).is_ok());
    }
}

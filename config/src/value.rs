//! One value: from the user's text to a [`Parsed`], with every complaint about it.
//!
//! It does not look at other options and does not know prefixes.

use std::borrow::Cow;

use crate::mask;
use crate::option::{OptionDef, OptionKind, Rule, Wording};
use crate::rule;
use crate::secret::{HIDDEN, Secret};
use crate::settings::Parsed;

/// A value that was looked at. `parsed` is usable even with errors: the default where the text is
/// of the wrong kind, the given number where it is out of range.
#[derive(Debug)]
pub(crate) struct Checked {
    pub(crate) parsed: Parsed,
    /// Text form of the value, `[hidden]` for secrets; `None` when absent or of the wrong kind.
    pub(crate) text: Option<String>,
    pub(crate) errors: Vec<Complaint>,
    pub(crate) warnings: Vec<String>,
}

/// One thing that is wrong with a value.
#[derive(Debug)]
pub(crate) struct Complaint {
    /// Without the standard beginning of a message.
    text: String,
    subject: Subject,
}

/// What a complaint is about, as Kafka Connect looks at values: first at the text, for its kind, then, with
/// the option's own rule, at what was made of it, which is null if nothing could be.
#[derive(Debug)]
enum Subject {
    /// The text as it was given, or its absence.
    Given,
    /// What was made of it, as Java shows it.
    Made(String),
    Null,
}

impl Complaint {
    /// About the value as it was given.
    pub(crate) fn given(text: impl Into<String>) -> Self {
        Self { text: text.into(), subject: Subject::Given }
    }

    /// Whether the option's own rule says it.
    pub(crate) fn is_of_rule(&self) -> bool {
        !matches!(self.subject, Subject::Given)
    }
}

const EMPTY_LIST: &str = "Empty list";

/// Checks `given` (`None`: not set) against `def`.
pub(crate) fn check(def: &OptionDef, given: Option<&str>) -> Checked {
    let mut checked = Checked { parsed: Parsed::Absent, text: None, errors: Vec::new(), warnings: Vec::new() };
    let Some(given) = given else {
        match def.default {
            Some(default) => (checked.parsed, checked.text) = default_of(def, default),
            None if def.required => {
                checked.errors.push(Complaint::given(def.missing_text.unwrap_or("A value is required")));
                checked.errors.extend(about_null(def));
            }
            None => {}
        }
        return checked;
    };
    // Connect trims every text of its own options before anything else looks at it.
    let given = match (def.wording, def.kind) {
        (Wording::Framework, OptionKind::String | OptionKind::Password) => given.trim(),
        _ => given,
    };
    if def.required && def.missing_text.is_none() && def.wording == Wording::Connector && given.trim().is_empty() {
        checked.errors.push(Complaint::given("A value is required"));
        return checked;
    }
    match parse(def, given) {
        Ok((parsed, old)) => {
            if let Some((old, new)) = old {
                checked.warnings.push(format!("value '{old}' of '{}' is an older name of '{new}'", def.name));
            }
            checked.text = text_of(def, &parsed);
            let subject = |parsed: &Parsed| match def.wording {
                Wording::Connector => Subject::Given,
                Wording::Framework => Subject::Made(shown(parsed, given)),
            };
            let broken = broken_rule(def, given, &parsed);
            checked.errors.extend(broken.map(|text| Complaint { text, subject: subject(&parsed) }));
            checked.parsed = parsed;
        }
        Err(errors) => {
            checked.errors = errors;
            if let Some(default) = def.default {
                checked.parsed = default_of(def, default).0;
            }
        }
    }
    if is_enumeration(def) {
        // The framework shows a word as it was spelled, also a wrong one.
        checked.text = Some(if is_hidden(def) { HIDDEN.to_owned() } else { given.trim().to_owned() });
    }
    checked
}

fn default_of(def: &OptionDef, default: &str) -> (Parsed, Option<String>) {
    match parse(def, default) {
        Ok((parsed, _)) => (parsed, Some(default.to_owned())),
        Err(_) => {
            debug_assert!(false, "the default of {} is invalid", def.name);
            (Parsed::Absent, None)
        }
    }
}

type OldName = (&'static str, &'static str);

/// One word of several, in the framework.
fn is_enumeration(def: &OptionDef) -> bool {
    let words = matches!(def.rule, Rule::OneOf(_) | Rule::Exactly(_));
    words && def.kind == OptionKind::String && def.wording == Wording::Framework
}

/// What the rule of a framework's option says where nothing could be made of the text, or there is none.
fn about_null(def: &OptionDef) -> Option<Complaint> {
    if def.wording == Wording::Connector {
        return None;
    }
    let text = match def.rule {
        // An option that need not be set may be null.
        Rule::Range(..) if def.required || def.default.is_some() => "Value must be non-null".to_owned(),
        Rule::OneOf(values) | Rule::Exactly(values) if def.required => one_of(def, values),
        Rule::NotEmpty => EMPTY_LIST.to_owned(),
        _ => return None,
    };
    Some(Complaint { text, subject: Subject::Null })
}

/// A value as Java shows it inside of a message.
fn shown(parsed: &Parsed, given: &str) -> String {
    match parsed {
        Parsed::List(items) => format!("[{}]", items.join(", ")),
        _ => given.trim().to_owned(),
    }
}

/// The value, and the older spelling that it was given in.
fn parse(def: &OptionDef, given: &str) -> Result<(Parsed, Option<OldName>), Vec<Complaint>> {
    let trimmed = given.trim();
    match def.kind {
        OptionKind::Boolean if trimmed.eq_ignore_ascii_case("true") => Ok((Parsed::Bool(true), None)),
        OptionKind::Boolean if trimmed.eq_ignore_ascii_case("false") => Ok((Parsed::Bool(false), None)),
        OptionKind::Boolean => Err(wrong_kind(def, given)),
        OptionKind::Short | OptionKind::Int | OptionKind::Long => {
            let (min, max) = bounds_of(def.kind);
            match trimmed.parse::<i64>() {
                Ok(number) if (min..=max).contains(&number) => Ok((Parsed::Int(number), None)),
                _ => Err(wrong_kind(def, given)),
            }
        }
        OptionKind::Double => match trimmed.parse::<f64>() {
            Ok(number) if number.is_finite() => Ok((Parsed::Double(number), None)),
            _ => Err(wrong_kind(def, given)),
        },
        OptionKind::Password => Ok((Parsed::Secret(Secret::new(given)), None)),
        OptionKind::String | OptionKind::Class => {
            let (text, old) = canonical(def, given)?;
            Ok((Parsed::Text(text), old))
        }
        OptionKind::List => {
            let items = match def.rule {
                Rule::Regexes => rule::split_list(given),
                _ => rule::split_plain_list(given),
            };
            let mut old = None;
            let mut list = Vec::with_capacity(items.len());
            for item in items {
                let (text, old_item) = canonical(def, &item)?;
                old = old.or(old_item);
                list.push(text);
            }
            Ok((Parsed::List(list), old))
        }
    }
}

fn bounds_of(kind: OptionKind) -> (i64, i64) {
    match kind {
        OptionKind::Short => (i64::from(i16::MIN), i64::from(i16::MAX)),
        OptionKind::Int => (i64::from(i32::MIN), i64::from(i32::MAX)),
        _ => (i64::MIN, i64::MAX),
    }
}

/// A text in the table's spelling, for enumerations and classes.
fn canonical(def: &OptionDef, given: &str) -> Result<(String, Option<OldName>), Vec<Complaint>> {
    let trimmed = given.trim();
    match def.rule {
        Rule::OneOf(values) => {
            let old = def.value_aliases.iter().find(|(old, _)| old.eq_ignore_ascii_case(trimmed)).copied();
            let wanted = old.map_or(trimmed, |(_, new)| new);
            match values.iter().find(|v| v.eq_ignore_ascii_case(wanted)) {
                Some(value) => Ok(((*value).to_owned(), old)),
                None => Err(vec![not_one_of(def, values, trimmed)]),
            }
        }
        Rule::Exactly(values) => match values.iter().find(|v| **v == trimmed) {
            Some(value) => Ok(((*value).to_owned(), None)),
            None => Err(vec![not_one_of(def, values, trimmed)]),
        },
        Rule::Class(classes) => {
            let old = def.value_aliases.iter().find(|(old, _)| *old == trimmed).copied();
            let wanted = old.map_or(trimmed, |(_, new)| new);
            match class_called(classes, wanted) {
                Some(class) => Ok((class.to_owned(), old)),
                None => Err(vec![Complaint::given(format!("Class {trimmed} could not be found."))]),
            }
        }
        _ if def.kind == OptionKind::Class => Ok((trimmed.to_owned(), None)),
        _ => {
            let old = def.value_aliases.iter().find(|(old, _)| *old == trimmed).copied();
            Ok((old.map_or(given, |(_, new)| new).to_owned(), old))
        }
    }
}

fn not_one_of(def: &OptionDef, values: &[&str], trimmed: &str) -> Complaint {
    let subject = match def.wording {
        Wording::Connector => Subject::Given,
        Wording::Framework => Subject::Made(trimmed.to_owned()),
    };
    Complaint { text: one_of(def, values), subject }
}

fn one_of(def: &OptionDef, values: &[&str]) -> String {
    let values = values.join(", ");
    match (def.wording, def.rule) {
        (Wording::Connector, _) => format!("Value must be one of {values}"),
        (Wording::Framework, Rule::Exactly(_)) => format!("String must be one of: {values}"),
        (Wording::Framework, _) => format!("String must be one of (case insensitive): {values}"),
    }
}

/// The class of `classes` that `name` means: the full name, or the simple name with or without the
/// suffix that says what it is, if only one class has it.
pub fn class_called<'a>(classes: &'a [&'a str], name: &str) -> Option<&'a str> {
    if let Some(class) = classes.iter().find(|c| **c == name) {
        return Some(class);
    }
    let mut found = classes.iter().filter(|class| {
        let simple = class.rsplit('.').next().unwrap_or(class);
        let short = ["Connector", "HeaderConverter", "Converter", "Predicate"]
            .iter()
            .find_map(|suffix| simple.strip_suffix(suffix))
            .unwrap_or(simple);
        !name.is_empty() && (simple == name || short == name)
    });
    match (found.next(), found.next()) {
        (Some(class), None) => Some(class),
        _ => None,
    }
}

/// The text for a value of the wrong kind. Debezium goes on to apply the option's own rule to what it
/// could not read; tools count its messages, so both are there.
fn wrong_kind(def: &OptionDef, given: &str) -> Vec<Complaint> {
    if def.wording == Wording::Framework {
        let kind = Complaint::given(match def.kind {
            OptionKind::Boolean => "Expected value to be either true or false".to_owned(),
            kind => format!("Not a number of type {}", kind.name()),
        });
        return std::iter::once(kind).chain(about_null(def)).collect();
    }
    let kind = match def.kind {
        OptionKind::Boolean => "Either 'true' or 'false' is expected",
        OptionKind::Short => "A short value is expected",
        OptionKind::Long => "A long value is expected",
        OptionKind::Double => "A double value is expected",
        _ => "An integer is expected",
    };
    let own = match def.rule {
        Rule::Range(min, max) => Some(range_text(def, min, max)),
        Rule::Check(check) => check(given).err(),
        _ => None,
    };
    std::iter::once(kind.to_owned()).chain(own).map(Complaint::given).collect()
}

fn range_text(def: &OptionDef, min: Option<i64>, max: Option<i64>) -> String {
    if let Some(text) = def.range_text {
        return text.to_owned();
    }
    match (min, max) {
        (Some(1), None) if def.wording == Wording::Connector => {
            "A positive, non-zero integer value is expected".to_owned()
        }
        (Some(0), None) if def.wording == Wording::Connector => "An non-negative integer is expected".to_owned(),
        (Some(min), None) => format!("Value must be at least {min}"),
        (None, Some(max)) => format!("Value must be no more than {max}"),
        (Some(min), Some(max)) => format!("Value must be between {min} and {max}"),
        (None, None) => "Value is out of range".to_owned(),
    }
}

/// What the rule says about a value of the right kind.
fn broken_rule(def: &OptionDef, given: &str, parsed: &Parsed) -> Option<String> {
    match (def.rule, parsed) {
        (Rule::Range(min, max), Parsed::Int(number)) => {
            let inside = min.is_none_or(|m| *number >= m) && max.is_none_or(|m| *number <= m);
            (!inside).then(|| range_text(def, min, max))
        }
        (Rule::Range(min, max), Parsed::Double(number)) => {
            let inside = min.is_none_or(|m| *number >= m as f64) && max.is_none_or(|m| *number <= m as f64);
            (!inside).then(|| range_text(def, min, max))
        }
        (Rule::NotEmpty, Parsed::List(items)) => items.is_empty().then(|| EMPTY_LIST.to_owned()),
        (Rule::Regexes, Parsed::List(items)) => rule::RegexList::new(items).err().map(|e| e.to_string()),
        (Rule::Check(check), _) => check(given).err().map(|text| without_secret(def, given, text)),
        _ => None,
    }
}

fn without_secret(def: &OptionDef, given: &str, text: String) -> String {
    if !is_hidden(def) || given.is_empty() {
        return text;
    }
    mask::text(&text.replace(given, HIDDEN))
}

fn is_hidden(def: &OptionDef) -> bool {
    def.kind == OptionKind::Password || mask::is_secret(def.name)
}

fn text_of(def: &OptionDef, parsed: &Parsed) -> Option<String> {
    let text = match parsed {
        Parsed::Absent => return None,
        Parsed::Secret(_) => HIDDEN.to_owned(),
        Parsed::Bool(b) => b.to_string(),
        Parsed::Int(i) => i.to_string(),
        Parsed::Double(d) => d.to_string(),
        Parsed::Text(t) => t.clone(),
        Parsed::List(l) => l.join(","),
    };
    Some(if is_hidden(def) && !text.is_empty() { HIDDEN.to_owned() } else { text })
}

/// The whole message about option `name`.
pub(crate) fn message(def: &OptionDef, name: &str, given: Option<&str>, complaint: &Complaint) -> String {
    let text = &complaint.text;
    match (def.wording, given, &complaint.subject) {
        (Wording::Connector, ..) => format!("The '{name}' value is invalid: {text}"),
        (Wording::Framework, None, Subject::Given) if def.required => {
            format!("Missing required configuration \"{name}\" which has no default value.")
        }
        (Wording::Framework, _, Subject::Made(_)) if def.whole_texts => text.replace("{name}", def.name),
        (Wording::Framework, _, subject) => {
            let about = match subject {
                Subject::Given => given,
                Subject::Made(made) => Some(made.as_str()),
                Subject::Null => None,
            };
            let shown = match about {
                None => "null".into(),
                Some(_) if is_hidden(def) || mask::is_secret(name) => HIDDEN.into(),
                // An address may have a login in it.
                Some(given) if given.contains("://") => mask::text(given).into(),
                Some(given) => Cow::Borrowed(given),
            };
            format!("Invalid value {shown} for configuration {name}: {text}")
        }
    }
}

//! One value: from the user's text to a [`Parsed`], with every complaint about it.
//!
//! It does not look at other options and does not know prefixes.

use std::borrow::Cow;

use crate::mask;
use crate::option::{OptionDef, OptionKind, Rule, Wording};
use crate::rule;
use crate::secret::Secret;
use crate::settings::Parsed;

/// A value that was looked at. `parsed` is usable even with errors: the default where the text is
/// of the wrong kind, the given number where it is out of range.
#[derive(Debug)]
pub(crate) struct Checked {
    pub(crate) parsed: Parsed,
    /// Text form of the value, `[hidden]` for secrets; `None` when absent or of the wrong kind.
    pub(crate) text: Option<String>,
    /// Texts without the standard prefix.
    pub(crate) errors: Vec<String>,
    pub(crate) warnings: Vec<String>,
}

const HIDDEN: &str = "[hidden]";

/// Checks `given` (`None`: not set) against `def`.
pub(crate) fn check(def: &OptionDef, given: Option<&str>) -> Checked {
    let mut checked = Checked { parsed: Parsed::Absent, text: None, errors: Vec::new(), warnings: Vec::new() };
    let Some(given) = given else {
        match def.default {
            Some(default) => (checked.parsed, checked.text) = default_of(def, default),
            None if def.required => {
                checked.errors.push(def.missing_text.unwrap_or("A value is required").to_owned());
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
        checked.errors.push("A value is required".to_owned());
        return checked;
    }
    match parse(def, given) {
        Ok((parsed, old)) => {
            if let Some((old, new)) = old {
                checked.warnings.push(format!("value '{old}' of '{}' is an older name of '{new}'", def.name));
            }
            checked.text = text_of(def, &parsed);
            checked.errors.extend(broken_rule(def, given, &parsed));
            checked.parsed = parsed;
        }
        Err(errors) => {
            checked.errors = errors;
            if let Some(default) = def.default {
                checked.parsed = default_of(def, default).0;
            }
        }
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

/// The value, and the older spelling that it was given in.
fn parse(def: &OptionDef, given: &str) -> Result<(Parsed, Option<OldName>), Vec<String>> {
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
fn canonical(def: &OptionDef, given: &str) -> Result<(String, Option<OldName>), Vec<String>> {
    let trimmed = given.trim();
    match def.rule {
        Rule::OneOf(values) => {
            let old = def.value_aliases.iter().find(|(old, _)| old.eq_ignore_ascii_case(trimmed)).copied();
            let wanted = old.map_or(trimmed, |(_, new)| new);
            match values.iter().find(|v| if def.exact { **v == wanted } else { v.eq_ignore_ascii_case(wanted) }) {
                Some(value) => Ok(((*value).to_owned(), old)),
                None => {
                    let lead = match def.wording {
                        Wording::Connector => "Value must be one of",
                        Wording::Framework => "String must be one of:",
                    };
                    Err(vec![format!("{lead} {}", values.join(", "))])
                }
            }
        }
        Rule::Class(classes) => {
            let old = def.value_aliases.iter().find(|(old, _)| *old == trimmed).copied();
            let wanted = old.map_or(trimmed, |(_, new)| new);
            match class_called(classes, wanted) {
                Some(class) => Ok((class.to_owned(), old)),
                None => Err(vec![format!("Class {trimmed} could not be found.")]),
            }
        }
        _ if def.kind == OptionKind::Class => Ok((trimmed.to_owned(), None)),
        _ => {
            let old = def.value_aliases.iter().find(|(old, _)| *old == trimmed).copied();
            Ok((old.map_or(given, |(_, new)| new).to_owned(), old))
        }
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
fn wrong_kind(def: &OptionDef, given: &str) -> Vec<String> {
    if def.wording == Wording::Framework {
        return vec![match def.kind {
            OptionKind::Boolean => "Expected value to be either true or false".to_owned(),
            kind => format!("Not a number of type {}", kind.name()),
        }];
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
    std::iter::once(kind.to_owned()).chain(own).collect()
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

/// The whole message for `text` about option `name` (with its prefix).
pub(crate) fn message(def: &OptionDef, name: &str, given: Option<&str>, text: &str) -> String {
    match (def.wording, given) {
        (Wording::Connector, _) => format!("The '{name}' value is invalid: {text}"),
        (Wording::Framework, None) if def.required => {
            format!("Missing required configuration \"{name}\" which has no default value.")
        }
        (Wording::Framework, Some(_)) if def.whole_texts => text.replace("{name}", def.name),
        (Wording::Framework, given) => {
            let shown = match given {
                None => "null".into(),
                Some(_) if is_hidden(def) || mask::is_secret(name) => HIDDEN.into(),
                // An address may have a login in it.
                Some(given) if given.contains("://") => mask::text(given).into(),
                Some(given) if def.kind == OptionKind::List => {
                    format!("[{}]", rule::split_list(given).join(", ")).into()
                }
                Some(given) => Cow::Borrowed(given),
            };
            format!("Invalid value {shown} for configuration {name}: {text}")
        }
    }
}

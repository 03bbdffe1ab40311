//! Checking [`Properties`] against [`OptionTable`]s and turning them into [`Settings`].
//!
//! One table checks one component. A connector's configuration is checked by several: the
//! framework's, the connector's, those of its converters and transformations under their prefixes.
//! Their results are merged into one [`Validation`]; only then is a key unknown, namely to all.
//! Invariants: no error is dropped; a message never shows a password.
//!
//! It does not resolve references, connect to anything, or log.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::alias;
use crate::option::{OptionDef, OptionKind, OptionTable, Rule, Standing, Wording};
use crate::properties::Properties;
use crate::settings::{Parsed, Settings};
use crate::value::{self, Complaint};

/// Everything known about one option after checking: the rows of a `config/validate` answer.
#[derive(Debug, Clone)]
pub struct ValidatedOption {
    pub def: OptionDef,
    /// Name with the prefix under which the table was used (`value.converter.schemas.enable`).
    pub name: String,
    /// Text form of the resolved value; secrets are `[hidden]`.
    pub value: Option<String>,
    /// Text form of the default; differs from the table's after [`Validation::default_to`].
    pub default: Option<String>,
    /// Published with the option's definition; `false`: nobody defines it, see
    /// [`ValidatedOption::undefined`].
    pub is_defined: bool,
    /// The table's, unless the option belongs to something that the user named (`Transforms: route`).
    pub group: Cow<'static, str>,
    pub display_name: Cow<'static, str>,
    /// Position inside the group, as published.
    pub order: i32,
    pub errors: Vec<String>,
    /// All errors together count as one, as those of converters do in Kafka Connect.
    pub counts_once: bool,
    pub recommended: Vec<String>,
    pub visible: bool,
}

/// Stands in for the definition that an option of nobody has not.
const UNDEFINED: OptionDef = OptionDef::new("", OptionKind::String, "").framework().group("");

impl ValidatedOption {
    /// The row of a key that has a value or an error, but no definition.
    pub fn undefined(name: &str, value: Option<&str>) -> Self {
        Self {
            def: UNDEFINED,
            name: name.to_owned(),
            value: value.map(str::to_owned),
            default: None,
            is_defined: false,
            group: Cow::Borrowed(""),
            display_name: Cow::Borrowed(""),
            order: -1,
            errors: Vec::new(),
            counts_once: false,
            recommended: Vec::new(),
            visible: true,
        }
    }
}

/// By which name the messages of a table under a prefix call its options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Naming {
    /// With the prefix.
    Full,
    /// As Kafka Connect has it for options that are put among those of a connector: what an option's own
    /// rule says names it without the prefix.
    Embedded,
    /// As Kafka Connect has it for what is checked by itself, before the prefix is put in front.
    Apart,
}

/// Outcome of a check. `settings` is complete only if there are no errors.
#[derive(Debug, Clone, Default)]
pub struct Validation {
    pub options: Vec<ValidatedOption>,
    /// Accepted but worth saying: old names, inert options, unknown keys with the nearest known one.
    pub warnings: Vec<String>,
    pub settings: Settings,
    /// What the tables together say about each key that was given.
    keys: BTreeMap<String, Verdict>,
    /// The prefix under which the table was used; empty for a whole configuration.
    prefix: String,
}

/// What a table says about a key; of several tables the greatest counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Verdict {
    /// Another table may know it.
    Unknown,
    /// Under a prefix that this table leaves to others.
    Open,
    /// Under this table's own prefix, and yet unknown.
    Foreign,
    Known,
}

impl Validation {
    /// What `error_count` means in Kafka Connect: the number of messages, except for
    /// [`ValidatedOption::counts_once`].
    pub fn error_count(&self) -> usize {
        let count = |row: &ValidatedOption| if row.counts_once { row.errors.len().min(1) } else { row.errors.len() };
        self.options.iter().map(count).sum()
    }
    pub fn is_valid(&self) -> bool {
        self.options.iter().all(|row| row.errors.is_empty())
    }
    /// All messages in definition order.
    pub fn messages(&self) -> Vec<String> {
        self.options.iter().flat_map(|o| o.errors.iter().cloned()).collect()
    }
    /// The row of option `name` (with its prefix).
    pub fn option(&self, name: &str) -> Option<&ValidatedOption> {
        self.options.iter().find(|o| o.name == name)
    }
    /// Attaches `text` to option `name` with the option's standard prefix.
    pub fn invalid(&mut self, name: &str, text: &str) {
        let message = match self.option(name) {
            Some(row) if row.def.wording == Wording::Framework => {
                let given = Some(row.value.as_deref().unwrap_or("null"));
                value::message(&row.def, name, given, &Complaint::given(text))
            }
            _ => format!("The '{name}' value is invalid: {text}"),
        };
        self.error(name, message);
    }
    /// Attaches a complete message to option `name`. A name that no table knows gets a row without a
    /// definition in front of all others, so that no error is lost.
    pub fn error(&mut self, name: &str, message: String) {
        if let Some(row) = self.options.iter_mut().find(|row| row.name == name) {
            row.errors.push(message);
            return;
        }
        let mut row = ValidatedOption::undefined(name, None);
        row.errors.push(message);
        let at = self.options.iter().take_while(|row| !row.is_defined).count();
        self.options.insert(at, row);
    }

    /// Gives an option that is not set a default that only the caller knows (the worker's converter, or one
    /// that another option decides).
    pub fn default_to(&mut self, name: &str, text: &str) {
        let Some(row) = self.options.iter_mut().find(|o| o.name == name) else { return };
        let unset = !self.keys.contains_key(name) && row.errors.is_empty();
        row.default = Some(text.to_owned());
        if unset {
            row.value = Some(text.to_owned());
            let checked = value::check(&row.def, Some(text));
            if self.prefix.is_empty() && name == row.def.name {
                self.settings.insert(row.def.name, checked.parsed);
            }
        }
    }

    /// As [`Validation::default_to`], for an option that can have no other value (a plugin's version):
    /// it is recommended as well.
    pub fn only_value(&mut self, name: &str, text: &str) {
        self.default_to(name, text);
        if let Some(row) = self.options.iter_mut().find(|o| o.name == name) {
            row.recommended = vec![text.to_owned()];
        }
    }

    /// Joins the results of two tables over the same configuration: rows in order, of rows with one
    /// name the first with the errors of both. Settings of tables under a prefix stay with them,
    /// because their names are only unique below the prefix.
    #[must_use]
    pub fn merge(mut self, other: Self) -> Self {
        for row in other.options {
            match self.options.iter_mut().find(|o| o.name == row.name) {
                Some(first) => {
                    for error in row.errors {
                        if !first.errors.contains(&error) {
                            first.errors.push(error);
                        }
                    }
                }
                None => self.options.push(row),
            }
        }
        for warning in other.warnings {
            if !self.warnings.contains(&warning) {
                self.warnings.push(warning);
            }
        }
        for (key, verdict) in other.keys {
            let stored = self.keys.entry(key).or_insert(verdict);
            *stored = verdict.max(*stored);
        }
        if other.prefix == self.prefix {
            self.settings.extend(other.settings);
        }
        self
    }

    /// Keys that no table knows. To be asked after everything was merged.
    pub fn unknown_keys(&self) -> impl Iterator<Item = &str> {
        self.keys
            .iter()
            .filter(|(_, verdict)| matches!(verdict, Verdict::Unknown | Verdict::Foreign))
            .map(|(key, _)| key.as_str())
    }

    /// Reports the unknown keys, each with the nearest known name: as warnings, or as errors at the
    /// option `thalweg.config.strict`, if that is set. To be called once, after everything was merged.
    pub fn conclude(&mut self, strict: bool) {
        let texts: Vec<String> = self
            .unknown_keys()
            .map(|key| match self.nearest(key) {
                Some(known) => format!("'{key}' is no known option; did you mean '{known}'?"),
                None => format!("'{key}' is no known option and has no effect"),
            })
            .collect();
        for text in texts {
            if strict {
                self.error(crate::connector::STRICT, text);
            } else {
                self.warnings.push(text);
            }
        }
    }

    /// The known name with the fewest typing errors, if there are few.
    fn nearest(&self, key: &str) -> Option<&str> {
        let allowed = (key.chars().count() / 5).max(2);
        // So many characters differ at least: it spares the comparison, which is long for a long key.
        let length = key.to_lowercase().chars().count();
        let near = |name: &&str| name.chars().count().abs_diff(length) <= allowed;
        let names = self.options.iter().map(|o| o.name.as_str()).filter(near);
        names.map(|name| (distance(key, name), name)).filter(|(d, _)| *d <= allowed).min().map(|(_, name)| name)
    }
}

/// Typing errors between two names: characters inserted, left out, replaced, or swapped with their
/// neighbour (optimal string alignment).
fn distance(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.to_lowercase().chars().collect();
    let b: Vec<char> = b.to_lowercase().chars().collect();
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let change = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = change.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

impl OptionTable {
    /// Checks `properties` (references already resolved) against this table. Unknown keys are
    /// reported by [`Validation::conclude`].
    pub fn validate(&self, properties: &Properties) -> Validation {
        self.validate_under("", properties)
    }

    /// As [`OptionTable::validate`], for the keys that start with `prefix`; rows and messages have
    /// the prefix, settings have not.
    pub fn validate_under(&self, prefix: &str, properties: &Properties) -> Validation {
        self.validate_named(Naming::Full, prefix, properties)
    }

    /// As [`OptionTable::validate_under`], with messages that call the options as `naming` says.
    pub fn validate_named(&self, naming: Naming, prefix: &str, properties: &Properties) -> Validation {
        let alias::Canonical { properties: given, warnings, old_names } =
            alias::canonical(&properties.below(prefix), self);
        let mut validation = Validation { prefix: prefix.to_owned(), ..Validation::default() };
        validation.warnings.extend(warnings.into_iter().map(|w| under(prefix, w)));

        for (def, order) in self.options.iter().zip(self.orders()) {
            let row = check_option(def, order, (naming, prefix), given.get(def.name), &mut validation);
            validation.options.push(row);
        }
        for check in self.cross_checks {
            for (name, text) in check(&validation.settings) {
                validation.invalid(&format!("{prefix}{name}"), &text);
            }
        }
        for (key, _) in given.iter() {
            let verdict = if self.option(key).is_some() {
                Verdict::Known
            } else if self.is_open(key) {
                Verdict::Open
            } else if prefix.is_empty() {
                Verdict::Unknown
            } else {
                Verdict::Foreign
            };
            validation.keys.insert(format!("{prefix}{key}"), verdict);
        }
        validation.keys.extend(old_names.into_iter().map(|old| (format!("{prefix}{old}"), Verdict::Known)));
        validation
    }
}

fn under(prefix: &str, warning: String) -> String {
    if prefix.is_empty() { warning } else { format!("under '{prefix}': {warning}") }
}

fn check_option(
    def: &'static OptionDef,
    order: i32,
    (naming, prefix): (Naming, &str),
    given: Option<&str>,
    validation: &mut Validation,
) -> ValidatedOption {
    let name = format!("{prefix}{}", def.name);
    let mut row = ValidatedOption {
        def: *def,
        value: None,
        default: def.default.map(str::to_owned),
        is_defined: true,
        group: Cow::Borrowed(def.group),
        display_name: Cow::Borrowed(def.display_name),
        order,
        errors: Vec::new(),
        counts_once: naming == Naming::Apart,
        recommended: match (def.rule, def.wording) {
            (Rule::OneOf(values), Wording::Connector) => values.iter().map(|v| (*v).to_owned()).collect(),
            (Rule::Class(classes), _) => classes.iter().map(|v| (*v).to_owned()).collect(),
            _ => Vec::new(),
        },
        visible: def.visible,
        name,
    };
    match (def.standing, given) {
        // An empty value asks for nothing.
        (Standing::Refused(advice), Some(text)) if !text.trim().is_empty() => {
            row.errors.push(match def.wording {
                Wording::Connector => value::message(def, &row.name, given, &Complaint::given(advice)),
                Wording::Framework => format!("Configuration {} is not supported: {advice}", row.name),
            });
            validation.settings.insert(def.name, Parsed::Absent);
            return row;
        }
        (Standing::Inert(why), Some(_)) => {
            validation.warnings.push(format!("option '{}' has no effect: {why}", row.name));
        }
        (Standing::Older(newer), Some(_)) => {
            let text = format!("option '{}' is an older one; '{prefix}{newer}' says the same today", row.name);
            validation.warnings.push(text);
        }
        _ => {}
    }
    if given.is_some() {
        validation.settings.note_given(def.name);
    }
    let checked = value::check(def, given);
    row.errors.extend(checked.errors.iter().map(|complaint| {
        let called = match naming {
            Naming::Full => row.name.as_str(),
            Naming::Embedded if !complaint.is_of_rule() => row.name.as_str(),
            Naming::Embedded | Naming::Apart => def.name,
        };
        value::message(def, called, given, complaint)
    }));
    row.value = checked.text;
    validation.warnings.extend(checked.warnings.into_iter().map(|w| under(prefix, w)));
    validation.settings.insert(def.name, checked.parsed);
    row
}

#[cfg(test)]
#[path = "validate_tests.rs"]
mod tests;

//! One configuration option as data: the single source from which parsing, validation messages,
//! `config/validate` replies and the option reference are derived.
//!
//! Invariant: an [`OptionDef`] is a constant; nothing here depends on a running system. Checks that
//! need a connection belong to the connector ([`thalweg-core`'s `Connector::check`]).

use crate::settings::Settings;

/// Kafka Connect's option types, as `config/validate` spells them (`connect` REST, ConfigKeyInfo).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptionKind {
    Boolean,
    String,
    Int,
    Short,
    Long,
    Double,
    List,
    Class,
    Password,
}

impl OptionKind {
    /// Upper-case name used on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Boolean => "BOOLEAN",
            Self::String => "STRING",
            Self::Int => "INT",
            Self::Short => "SHORT",
            Self::Long => "LONG",
            Self::Double => "DOUBLE",
            Self::List => "LIST",
            Self::Class => "CLASS",
            Self::Password => "PASSWORD",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Importance {
    High,
    Medium,
    Low,
}

impl Importance {
    pub const fn name(self) -> &'static str {
        match self {
            Self::High => "HIGH",
            Self::Medium => "MEDIUM",
            Self::Low => "LOW",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Width {
    None,
    Short,
    Medium,
    Long,
}

impl Width {
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "NONE",
            Self::Short => "SHORT",
            Self::Medium => "MEDIUM",
            Self::Long => "LONG",
        }
    }
}

/// What happens to an option that is parsed. `Inert` options are accepted for compatibility and
/// warned about when set; they must say so in their documentation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    Active,
    /// Accepted, no effect; the text says why.
    Inert(&'static str),
    /// Has an effect while the newer option that the text names is not set; one warning when set.
    Older(&'static str),
    /// Refused with this advice when present.
    Refused(&'static str),
}

/// Whose wording an option's error messages have. Tools compare them, so both are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wording {
    /// `The '<name>' value is invalid: <text>`: options of a connector.
    Connector,
    /// `Invalid value <value> for configuration <name>: <text>`: options of the framework, the
    /// worker, converters and transformations.
    Framework,
}

/// A rule over one value's text, already known to be of the option's kind.
#[derive(Debug, Clone, Copy)]
pub enum Rule {
    /// Any value of the kind.
    Any,
    /// Inclusive bounds for INT, SHORT, LONG, DOUBLE.
    Range(Option<i64>, Option<i64>),
    /// Enumeration (of every item, for a LIST): compared trimmed and case-insensitively. Messages list the
    /// values as they stand here: `Value must be one of a, b`, or, of the framework,
    /// `String must be one of (case insensitive): A, B`, where Kafka Connect has upper case in the order of a
    /// hash set.
    OneOf(&'static [&'static str]),
    /// Enumeration of the framework where case counts. Message: `String must be one of: a, b`.
    Exactly(&'static [&'static str]),
    /// LIST with at least one item, also where the list is absent. Message: `Empty list`.
    NotEmpty,
    /// LIST of regular expressions; `\,` inside an item stays as it is.
    Regexes,
    /// Full class names. The simple name, and the simple name without its kind (`Converter`), are
    /// accepted too and become the full name.
    Class(&'static [&'static str]),
    /// Free check; the error text is the whole message after the standard prefix.
    Check(fn(&str) -> Result<(), String>),
}

/// One option. Build with [`OptionDef::new`] and the chained `const` setters.
#[derive(Debug, Clone, Copy)]
pub struct OptionDef {
    pub name: &'static str,
    pub kind: OptionKind,
    /// Text form of the default; `None` together with `required` means there is none.
    pub default: Option<&'static str>,
    pub required: bool,
    pub rule: Rule,
    pub importance: Importance,
    pub width: Width,
    /// Empty: published as null.
    pub group: &'static str,
    /// Empty: published as null.
    pub display_name: &'static str,
    pub doc: &'static str,
    /// Older names that are accepted when `name` is absent, each with one warning.
    pub aliases: &'static [&'static str],
    /// Enumeration values accepted besides those of [`Rule::OneOf`]: `(old, new)`, one warning each.
    pub value_aliases: &'static [(&'static str, &'static str)],
    pub standing: Standing,
    /// Published by `config/validate` and `GET /connector-plugins/{p}/config`.
    pub published: bool,
    pub dependents: &'static [&'static str],
    pub wording: Wording,
    /// Position inside the group as published; `None`: counted.
    pub order: Option<i32>,
    /// Published as hidden from forms.
    pub visible: bool,
    /// Text for a value outside of [`Rule::Range`], instead of the usual one.
    pub range_text: Option<&'static str>,
    /// Text for a required option that is absent, instead of `A value is required`.
    pub missing_text: Option<&'static str>,
    /// The texts of [`Rule::Check`] are whole messages, in which `{name}` is the option's name.
    pub whole_texts: bool,
}

impl OptionDef {
    /// Neither required nor defaulted, importance and width medium, group `Connector`.
    pub const fn new(name: &'static str, kind: OptionKind, doc: &'static str) -> Self {
        Self {
            name,
            kind,
            default: None,
            required: false,
            rule: Rule::Any,
            importance: Importance::Medium,
            width: Width::Medium,
            group: "Connector",
            display_name: name,
            doc,
            aliases: &[],
            value_aliases: &[],
            standing: Standing::Active,
            published: true,
            dependents: &[],
            wording: Wording::Connector,
            order: None,
            visible: true,
            range_text: None,
            missing_text: None,
            whole_texts: false,
        }
    }
    pub const fn default(mut self, text: &'static str) -> Self {
        self.default = Some(text);
        self
    }
    pub const fn required(mut self) -> Self {
        self.required = true;
        self
    }
    pub const fn rule(mut self, rule: Rule) -> Self {
        self.rule = rule;
        self
    }
    pub const fn one_of(mut self, values: &'static [&'static str]) -> Self {
        self.rule = Rule::OneOf(values);
        self
    }
    pub const fn exactly(mut self, values: &'static [&'static str]) -> Self {
        self.rule = Rule::Exactly(values);
        self
    }
    pub const fn at_least(mut self, min: i64) -> Self {
        self.rule = Rule::Range(Some(min), None);
        self
    }
    pub const fn check(mut self, check: fn(&str) -> Result<(), String>) -> Self {
        self.rule = Rule::Check(check);
        self
    }
    pub const fn importance(mut self, importance: Importance) -> Self {
        self.importance = importance;
        self
    }
    pub const fn width(mut self, width: Width) -> Self {
        self.width = width;
        self
    }
    pub const fn group(mut self, group: &'static str) -> Self {
        self.group = group;
        self
    }
    pub const fn display(mut self, display_name: &'static str) -> Self {
        self.display_name = display_name;
        self
    }
    pub const fn aliases(mut self, aliases: &'static [&'static str]) -> Self {
        self.aliases = aliases;
        self
    }
    pub const fn value_aliases(mut self, pairs: &'static [(&'static str, &'static str)]) -> Self {
        self.value_aliases = pairs;
        self
    }
    pub const fn inert(mut self, why: &'static str) -> Self {
        self.standing = Standing::Inert(why);
        self
    }
    /// Kept for older configurations; `newer` is the option that says the same today.
    pub const fn older(mut self, newer: &'static str) -> Self {
        self.standing = Standing::Older(newer);
        self
    }
    pub const fn refused(mut self, advice: &'static str) -> Self {
        self.standing = Standing::Refused(advice);
        self
    }
    pub const fn unpublished(mut self) -> Self {
        self.published = false;
        self
    }
    /// Error messages and published value as Kafka Connect's own options have them.
    pub const fn framework(mut self) -> Self {
        self.wording = Wording::Framework;
        self
    }
    pub const fn order(mut self, order: i32) -> Self {
        self.order = Some(order);
        self
    }
    pub const fn invisible(mut self) -> Self {
        self.visible = false;
        self
    }
    pub const fn range_text(mut self, text: &'static str) -> Self {
        self.range_text = Some(text);
        self
    }
    pub const fn missing_text(mut self, text: &'static str) -> Self {
        self.missing_text = Some(text);
        self
    }
    pub const fn whole_texts(mut self) -> Self {
        self.whole_texts = true;
        self
    }
    pub const fn dependents(mut self, names: &'static [&'static str]) -> Self {
        self.dependents = names;
        self
    }
}

/// A rule over several options. Returns `(option name, text)` pairs; the text gets the standard
/// prefix. Runs even if single values have errors, so that a user sees everything at once: a value
/// of the wrong kind, or outside of its enumeration, then reads as the default, and a number
/// outside of its range as it was given.
pub type CrossCheck = fn(&Settings) -> Vec<(&'static str, String)>;

/// The options of one component (worker, framework part of a connector, one connector class, ...).
#[derive(Debug, Clone, Copy)]
pub struct OptionTable {
    /// Shown as the heading in the option reference.
    pub title: &'static str,
    pub options: &'static [OptionDef],
    /// Keys under these prefixes are somebody else's (`producer.override.`, `topic.creation.`):
    /// accepted here without a warning.
    pub open_prefixes: &'static [&'static str],
    pub cross_checks: &'static [CrossCheck],
}

impl OptionTable {
    /// The option called `name` (no aliases).
    pub fn option(&self, name: &str) -> Option<&'static OptionDef> {
        self.options.iter().find(|o| o.name == name)
    }

    /// Whether `name` lies under a prefix that is somebody else's.
    pub fn is_open(&self, name: &str) -> bool {
        self.open_prefixes.iter().any(|p| name.starts_with(p))
    }

    /// Position of each option inside its group as published, in the order of `options`.
    pub fn orders(&self) -> Vec<i32> {
        let mut counts: Vec<(&str, i32)> = Vec::new();
        let mut orders = Vec::with_capacity(self.options.len());
        for option in self.options {
            let counted = match counts.iter_mut().find(|(group, _)| *group == option.group) {
                _ if !option.published => 0,
                Some((_, count)) => {
                    *count += 1;
                    *count
                }
                None => {
                    counts.push((option.group, 1));
                    1
                }
            };
            orders.push(option.order.unwrap_or(if option.group.is_empty() { -1 } else { counted }));
        }
        orders
    }
}

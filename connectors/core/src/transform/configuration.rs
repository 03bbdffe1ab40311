//! The options of transforms and predicates, checked, and the chain that follows from them.
//!
//! The options that every transform has (`type`, `predicate`, `negate`) are here, the others in the
//! table of the class. What is unknown to both is reported together with the other unknown options.
//! Groups, places and messages are those of Kafka Connect, which puts the options of a name among
//! those of the connector.

use thalweg_config::connector::MOST_NAMES;
use thalweg_config::rule::split_plain_list;
use thalweg_config::{
    Importance, Naming, OptionDef, OptionKind, OptionTable, Properties, Settings, ValidatedOption, Validation, Width,
};

use super::chain::{Chain, Condition, Step};
use super::classes::{PREDICATES, PredicateClass, TransformClass, TransformClasses, predicate_called};
use super::options::option;
use crate::error::{Error, Result};

const fn class(doc: &'static str) -> OptionDef {
    option(TYPE, OptionKind::Class, Importance::High, doc).required().width(Width::Long).order(0)
}

const fn version(doc: &'static str) -> OptionDef {
    option(VERSION, OptionKind::String, Importance::High, doc)
        .width(Width::Long)
        .order(1)
        .inert("a node has exactly one version of every plugin")
}

const TYPE: &str = "type";
const VERSION: &str = "plugin.version";

/// Every other key is the class's.
static TRANSFORM: OptionTable = OptionTable {
    title: "Options of every transformation",
    options: &[
        class("Class of the transformation."),
        version("Accepted for compatibility and without effect."),
        option(
            "predicate",
            OptionKind::String,
            Importance::Medium,
            "Name of a predicate: the transformation is for records for which it is true. Unset: for all.",
        ),
        option(
            "negate",
            OptionKind::Boolean,
            Importance::Medium,
            "Whether the transformation is for the records for which the predicate is false.",
        )
        .default("false"),
    ],
    open_prefixes: &[""],
    cross_checks: &[],
};

/// Every other key is the class's.
static PREDICATE: OptionTable = OptionTable {
    title: "Options of every predicate",
    options: &[class("Class of the predicate."), version("Accepted for compatibility and without effect.")],
    open_prefixes: &[""],
    cross_checks: &[],
};

/// What a list names.
#[derive(Clone, Copy)]
enum Kind {
    Transform,
    Predicate,
}

impl Kind {
    const fn list(self) -> &'static str {
        match self {
            Self::Transform => "transforms",
            Self::Predicate => "predicates",
        }
    }

    fn prefix(self, name: &str) -> String {
        format!("{}.{name}.", self.list())
    }

    /// The group of all options of one name.
    fn group(self, name: &str) -> String {
        match self {
            Self::Transform => format!("Transforms: {name}"),
            Self::Predicate => format!("Predicates: {name}"),
        }
    }

    /// The interface's name in Java.
    const fn interface(self) -> &'static str {
        match self {
            Self::Transform => "Transformation",
            Self::Predicate => "Predicate",
        }
    }
}

/// The names of a list, each once: that it has them twice, or too many, is reported with the list.
fn names(config: &Properties, kind: Kind) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for name in split_plain_list(config.get(kind.list()).unwrap_or_default()).into_iter().take(MOST_NAMES) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// What the configuration says about one transform.
struct StepOptions {
    name: String,
    /// Its own options; those of every transform are under its name as well.
    own: Option<(&'static TransformClass, Settings)>,
    /// A predicate's name and whether it is turned round.
    condition: Option<(String, bool)>,
}

/// What the configuration says about one predicate.
struct PredicateOptions {
    name: String,
    own: Option<(&'static PredicateClass, Settings)>,
}

/// Everything that the configuration says about transforms, and what is wrong with it.
#[derive(Default)]
struct Reading {
    /// Rows have their full names.
    validation: Validation,
    steps: Vec<StepOptions>,
    predicates: Vec<PredicateOptions>,
}

/// One name of a list while its options are looked at.
struct Entry<'a> {
    kind: Kind,
    name: &'a str,
    prefix: String,
    validation: Validation,
}

impl<'a> Entry<'a> {
    fn new(kind: Kind, name: &'a str, config: &Properties) -> Self {
        let prefix = kind.prefix(name);
        let table = match kind {
            Kind::Transform => &TRANSFORM,
            Kind::Predicate => &PREDICATE,
        };
        let validation = table.validate_under(&prefix, config);
        Self { kind, name, prefix, validation }
    }

    fn at(&self, option: &str) -> String {
        format!("{}{option}", self.prefix)
    }

    /// The predicate that is asked for, and whether it is turned round.
    fn condition(&mut self, config: &Properties, predicates: &[String]) -> Option<(String, bool)> {
        let (predicate, negate) = (self.at("predicate"), self.at("negate"));
        let wanted = config.get(&predicate).map(|text| text.trim().to_owned());
        let negated = config.get(&negate).is_some();
        if wanted.is_none() && negated {
            let text = format!(
                "Config '{negate}' was provided but there is no config '{predicate}' defining a predicate to be negated."
            );
            self.validation.error(&self.at(TYPE), text);
        }
        let wanted = wanted.filter(|wanted| negated || !wanted.is_empty())?;
        if !predicates.contains(&wanted) {
            self.validation.invalid(&predicate, &format!("Predicate '{wanted}' is not in the list of predicates"));
        }
        Some((wanted, self.validation.settings.bool("negate")))
    }

    /// The class that `type` names, which is shown by its full name.
    fn class<C>(
        &mut self,
        classes: &TransformClasses,
        find: impl Fn(&str) -> Result<C, String>,
        full_name: fn(&C) -> &'static str,
    ) -> Option<C> {
        let given = self.validation.settings.text(TYPE)?.to_owned();
        let (class, shown) = match find(&given) {
            Ok(class) => {
                let full_name = full_name(&class).to_owned();
                (Some(class), Some(full_name))
            }
            Err(text) => (None, self.no_class(classes, &given, &text)),
        };
        self.row(TYPE, |row| row.value = shown);
        class
    }

    /// Reports at `type` that it names none of these classes. Gives the class that it names instead, about which
    /// Kafka Connect has words of its own.
    fn no_class(&mut self, classes: &TransformClasses, given: &str, text: &str) -> Option<String> {
        let at = self.at(TYPE);
        let other = match self.kind {
            Kind::Transform => predicate_called(given).map(|class| class.class),
            Kind::Predicate => classes.called(given).map(|class| class.class),
        };
        let (message, shown) = match (other, classes.abstract_class(given)) {
            (Ok(other), _) => {
                let interface = self.kind.interface();
                (format!("Class class {other} does not implement the {interface} interface"), other.to_owned())
            }
            (Err(_), Some(text)) => (text, given.trim().to_owned()),
            (Err(_), None) => {
                self.validation.invalid(&at, text);
                // It is looked for before anything else is said about the option.
                self.row(TYPE, |row| row.errors.rotate_right(1));
                return None;
            }
        };
        // Of a class that is there, only the first fault is told.
        if self.validation.option(&at).is_some_and(|row| row.errors.is_empty()) {
            self.validation.error(&at, message);
        }
        Some(shown)
    }

    fn row(&mut self, option: &str, change: impl FnOnce(&mut ValidatedOption)) {
        let name = self.at(option);
        if let Some(row) = self.validation.options.iter_mut().find(|row| row.name == name) {
            change(row);
        }
    }

    /// Settings of a class's own options. Kafka Connect's own classes have rules, and Debezium's none there, so
    /// only what is wrong with the former has its words.
    fn own(&mut self, class: &str, options: &OptionTable, config: &Properties) -> Settings {
        let naming = if class.starts_with("org.apache.kafka.") { Naming::Embedded } else { Naming::Full };
        let mut own = options.validate_named(naming, &self.prefix, config);
        let settings = std::mem::take(&mut own.settings);
        self.validation = std::mem::take(&mut self.validation).merge(own);
        settings
    }

    /// The rows as Kafka Connect publishes them: all in one group, `type` and version first, then the others in
    /// the order of their own groups and places, of what is required, of importance and of names. Without
    /// a class there are no others.
    fn finish(mut self, recommended: Vec<String>, has_class: bool) -> Validation {
        let group = self.kind.group(self.name);
        let (interface, name) = (self.kind.interface(), self.name);
        self.row(TYPE, |row| {
            row.recommended = recommended;
            row.display_name = format!("{interface} type for {name}").into();
        });
        self.row(VERSION, |row| row.display_name = format!("{interface} version for {name}").into());
        let mut groups: Vec<&str> = Vec::new();
        for row in &self.validation.options {
            if !groups.contains(&row.def.group) {
                groups.push(row.def.group);
            }
        }
        let rank = |group: &str| if group.is_empty() { None } else { groups.iter().position(|g| *g == group) };
        let (first, others) = self.validation.options.split_at_mut(FIRST);
        others.sort_by_cached_key(|row| {
            let def = &row.def;
            (!def.published, rank(def.group), row.order, !def.required, def.importance, def.name)
        });
        for (order, row) in others.iter_mut().enumerate() {
            row.order = i32::try_from(FIRST + order).unwrap_or(i32::MAX);
            row.def.published &= has_class;
        }
        for row in first.iter_mut().chain(others) {
            row.group = match row.def.group {
                "" => group.clone().into(),
                own => format!("{group}: {own}").into(),
            };
        }
        self.validation
    }
}

/// `type` and the version.
const FIRST: usize = 2;

fn read(config: &Properties, classes: &TransformClasses) -> Reading {
    let mut reading = Reading::default();
    let predicates = names(config, Kind::Predicate);
    for name in names(config, Kind::Transform) {
        let mut entry = Entry::new(Kind::Transform, &name, config);
        let condition = entry.condition(config, &predicates);
        let class = entry.class(classes, |name| classes.called(name), |class| class.class);
        let own = class.map(|class| (class, entry.own(class.class, class.options, config)));
        let recommended = classes.iter().map(|class| class.class.to_owned()).collect();
        reading.absorb(entry.finish(recommended, own.is_some()));
        reading.steps.push(StepOptions { name, own, condition });
    }
    for name in predicates {
        let mut entry = Entry::new(Kind::Predicate, &name, config);
        let class = entry.class(classes, predicate_called, |class| class.class);
        let own = class.map(|class| (class, entry.own(class.class, class.options, config)));
        let recommended = PREDICATES.iter().map(|class| class.class.to_owned()).collect();
        reading.absorb(entry.finish(recommended, own.is_some()));
        reading.predicates.push(PredicateOptions { name, own });
    }
    reading
}

impl Reading {
    fn absorb(&mut self, validation: Validation) {
        self.validation = std::mem::take(&mut self.validation).merge(validation);
    }
}

/// Checks the options of all transforms and predicates; rows have their full names.
pub fn validate(config: &Properties, classes: &TransformClasses) -> Validation {
    read(config, classes).validation
}

/// The chain of a configuration.
pub(super) fn chain(config: &Properties, classes: &TransformClasses) -> Result<Chain> {
    let reading = read(config, classes);
    if let Some(error) = Error::invalid_config(&reading.validation) {
        return Err(error);
    }
    for warning in &reading.validation.warnings {
        tracing::warn!("{warning}");
    }
    let steps: Result<Vec<Step>> = reading.steps.iter().map(|step| make(step, &reading.predicates)).collect();
    Ok(Chain::new(steps?))
}

fn make(step: &StepOptions, predicates: &[PredicateOptions]) -> Result<Step> {
    let StepOptions { name, own, condition } = step;
    let (class, settings) = own.as_ref().ok_or_else(|| Error::config(format!("transform '{name}' has no class")))?;
    let condition = condition.as_ref().map(|(predicate, negate)| {
        let found = predicates.iter().find(|p| p.name == *predicate).and_then(|p| p.own.as_ref());
        let (class, settings) = found.ok_or_else(|| Error::config(format!("predicate '{predicate}' has no class")))?;
        Ok(Condition { predicate: class.make(settings)?, class: class.class, negate: *negate })
    });
    let (transform, condition) = (class.make(settings)?, condition.transpose()?);
    Ok(Step { name: name.as_str().into(), class: class.class, transform, condition })
}

#[cfg(test)]
#[path = "tests/configuration.rs"]
mod tests;

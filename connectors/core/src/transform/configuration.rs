//! The options of transforms and predicates, checked, and the chain that follows from them.
//!
//! The options that every transform has (`type`, `predicate`, `negate`) are here, the others in the
//! table of the class. What is unknown to both is reported together with the other unknown options.

use thalweg_config::connector::MOST_NAMES;
use thalweg_config::rule::split_plain_list;
use thalweg_config::{Importance, OptionDef, OptionKind, OptionTable, Properties, Settings, Validation, Width};

use super::chain::{Chain, Condition, Step};
use super::classes::{PredicateClass, TransformClass, TransformClasses, predicate_called};
use crate::error::{Error, Result};

const fn option(name: &'static str, kind: OptionKind, importance: Importance, doc: &'static str) -> OptionDef {
    OptionDef::new(name, kind, doc).framework().importance(importance).width(Width::Long)
}

const VERSION: OptionDef =
    option("plugin.version", OptionKind::String, Importance::Medium, "Accepted for compatibility and without effect.")
        .inert("a node has exactly one version of every plugin")
        .unpublished();

/// Every other key is the class's.
static TRANSFORM: OptionTable = OptionTable {
    title: "Options of every transformation",
    options: &[
        option("type", OptionKind::Class, Importance::High, "Class of the transformation.")
            .required()
            .group("Transforms")
            .display("Transformation type"),
        VERSION.group("Transforms"),
        option(
            "predicate",
            OptionKind::String,
            Importance::Medium,
            "Name of a predicate: the transformation is for records for which it is true. Unset: for all.",
        )
        .default("")
        .group("Transforms")
        .display("Predicate"),
        option(
            "negate",
            OptionKind::Boolean,
            Importance::Medium,
            "Whether the transformation is for the records for which the predicate is false.",
        )
        .default("false")
        .group("Transforms")
        .display("Negate"),
    ],
    open_prefixes: &[""],
    cross_checks: &[],
};

/// Every other key is the class's.
static PREDICATE: OptionTable = OptionTable {
    title: "Options of every predicate",
    options: &[
        option("type", OptionKind::Class, Importance::High, "Class of the predicate.")
            .required()
            .group("Predicates")
            .display("Predicate type"),
        VERSION.group("Predicates"),
    ],
    open_prefixes: &[""],
    cross_checks: &[],
};

const TRANSFORMS: &str = "transforms";
const PREDICATES: &str = "predicates";

fn prefix(list: &str, name: &str) -> String {
    format!("{list}.{name}.")
}

/// The names of a list, each once: that it has them twice, or too many, is reported with the list.
fn names(config: &Properties, list: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for name in split_plain_list(config.get(list).unwrap_or_default()).into_iter().take(MOST_NAMES) {
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

impl Reading {
    fn absorb(&mut self, validation: Validation) {
        self.validation = std::mem::take(&mut self.validation).merge(validation);
    }

    /// Settings of a class's own options.
    fn own(&mut self, options: &OptionTable, prefix: &str, config: &Properties) -> Settings {
        let mut own = options.validate_under(prefix, config);
        let settings = std::mem::take(&mut own.settings);
        self.absorb(own);
        settings
    }
}

/// The class that `type` names. A wrong name is reported there.
fn class_of<C>(step: &mut Validation, prefix: &str, find: impl Fn(&str) -> Result<C, String>) -> Option<C> {
    let name = step.settings.text("type").map(str::to_owned)?;
    find(&name).map_err(|text| step.invalid(&format!("{prefix}type"), &text)).ok()
}

fn read(config: &Properties, classes: &TransformClasses) -> Reading {
    let mut reading = Reading::default();
    let predicates = names(config, PREDICATES);
    for name in names(config, TRANSFORMS) {
        let prefix = prefix(TRANSFORMS, &name);
        let mut step = TRANSFORM.validate_under(&prefix, config);
        let wanted = step.settings.text_or_empty("predicate").trim().to_owned();
        if wanted.is_empty() && config.get(&format!("{prefix}negate")).is_some() {
            step.invalid(&format!("{prefix}negate"), &format!("there is no {prefix}predicate to be negated"));
        }
        if !wanted.is_empty() && !predicates.contains(&wanted) {
            step.invalid(
                &format!("{prefix}predicate"),
                &format!("Predicate '{wanted}' is not in the list of predicates"),
            );
        }
        let class = class_of(&mut step, &prefix, |name| classes.called(name));
        let condition = (!wanted.is_empty()).then(|| (wanted, step.settings.bool("negate")));
        reading.absorb(step);
        let own = class.map(|class| (class, reading.own(class.options, &prefix, config)));
        reading.steps.push(StepOptions { name, own, condition });
    }
    for name in predicates {
        let prefix = prefix(PREDICATES, &name);
        let mut predicate = PREDICATE.validate_under(&prefix, config);
        let class = class_of(&mut predicate, &prefix, predicate_called);
        reading.absorb(predicate);
        let own = class.map(|class| (class, reading.own(class.options, &prefix, config)));
        reading.predicates.push(PredicateOptions { name, own });
    }
    reading
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

//! The options of transforms and predicates, checked, and the chain that follows from them.
//!
//! The options that every transform has (`type`, `predicate`, `negate`) are here, the others in the
//! table of the class. What is unknown to both is reported together with the other unknown options.

use thalweg_config::rule::split_plain_list;
use thalweg_config::{Importance, OptionDef, OptionKind, OptionTable, Properties, Validation, Width};

use super::chain::{Chain, Condition, Step};
use super::classes::{PredicateClass, TransformClass, predicate_called, transform_called};
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
            .check(|name| transform_called(name).map(|_| ()))
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
            .check(|name| predicate_called(name).map(|_| ()))
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

/// The names of a list, each once: that it has them twice is reported with the list.
fn names(config: &Properties, list: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for name in split_plain_list(config.get(list).unwrap_or_default()) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

fn transform_class(config: &Properties, name: &str) -> Option<&'static TransformClass> {
    config.get(&format!("{TRANSFORMS}.{name}.type")).and_then(|class| transform_called(class).ok())
}

fn predicate_class(config: &Properties, name: &str) -> Option<&'static PredicateClass> {
    config.get(&format!("{PREDICATES}.{name}.type")).and_then(|class| predicate_called(class).ok())
}

/// Checks the options of all transforms and predicates; rows have their full names.
pub fn validate(config: &Properties) -> Validation {
    let mut all = Validation::default();
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
        all = all.merge(step);
        if let Some(class) = transform_class(config, &name) {
            all = all.merge(class.options.validate_under(&prefix, config));
        }
    }
    for name in &predicates {
        let prefix = prefix(PREDICATES, name);
        all = all.merge(PREDICATE.validate_under(&prefix, config));
        if let Some(class) = predicate_class(config, name) {
            all = all.merge(class.options.validate_under(&prefix, config));
        }
    }
    all
}

/// The chain of a configuration.
pub(super) fn chain(config: &Properties) -> Result<Chain> {
    let validation = validate(config);
    if let Some(error) = Error::invalid_config(&validation) {
        return Err(error);
    }
    for warning in &validation.warnings {
        tracing::warn!("{warning}");
    }
    let steps: Result<Vec<Step>> = names(config, TRANSFORMS).iter().map(|name| step(config, name)).collect();
    Ok(Chain::new(steps?))
}

fn step(config: &Properties, name: &str) -> Result<Step> {
    let missing = || Error::config(format!("transform '{name}' has no class"));
    let class = transform_class(config, name).ok_or_else(missing)?;
    let prefix = prefix(TRANSFORMS, name);
    let own = TRANSFORM.validate_under(&prefix, config).settings;
    let transform = class.make(&class.options.validate_under(&prefix, config).settings)?;
    let condition = match own.text_or_empty("predicate").trim() {
        "" => None,
        predicate => Some(condition(config, predicate, own.bool("negate"))?),
    };
    Ok(Step { name: name.into(), class: class.class, transform, condition })
}

fn condition(config: &Properties, name: &str, negate: bool) -> Result<Condition> {
    let missing = || Error::config(format!("predicate '{name}' has no class"));
    let class = predicate_class(config, name).ok_or_else(missing)?;
    let settings = class.options.validate_under(&prefix(PREDICATES, name), config).settings;
    Ok(Condition { predicate: class.make(&settings)?, class: class.class, negate })
}

#[cfg(test)]
#[path = "tests/configuration.rs"]
mod tests;

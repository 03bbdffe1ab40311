//! What the tests of the transforms share.
#![allow(clippy::unwrap_used)]
use thalweg_config::Properties;
use thalweg_core::transform::{Chain, TransformClasses};

use super::CLASSES;

/// A chain of one transform of this class, with the name `t`.
pub(super) fn configuration(class: &str, options: &[(&str, &str)]) -> Properties {
    let mut config = Properties::from([("transforms", "t"), ("transforms.t.type", class)]);
    for (name, value) in options {
        config.set(format!("transforms.t.{name}"), *value);
    }
    config
}

pub(super) fn chain(class: &str, options: &[(&str, &str)]) -> Chain {
    Chain::from_config(&configuration(class, options), &TransformClasses::default().with(CLASSES)).unwrap()
}

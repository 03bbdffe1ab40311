//! `custom.sanitize.pattern`: names of options whose values a user wants hidden.
//!
//! Values of options that are secret by themselves ([`crate::mask`]) are hidden whatever the pattern says:
//! it adds to them. No configuration is logged, so what is left are the answers and messages of a check.

use fancy_regex::Regex;

use crate::properties::Properties;
use crate::validate::Validation;

const OPTION: &str = "custom.sanitize.pattern";
const HIDDEN: &str = "[hidden]";

/// Hides in `validation` the values of the options of `config` that its pattern names: as a whole, in any
/// case. A pattern that is none hides nothing; it is an error of its own option.
pub fn hide(validation: &mut Validation, config: &Properties) {
    let Some(pattern) = config.get(OPTION).map(str::trim).filter(|pattern| !pattern.is_empty()) else { return };
    let Ok(pattern) = Regex::new(&format!("(?i)^(?:{pattern})$")) else { return };
    for (name, value) in config.iter() {
        // What cannot be decided is hidden.
        if name == OPTION || value.trim().is_empty() || !pattern.is_match(name).unwrap_or(true) {
            continue;
        }
        // A message may quote an item of a list.
        let quoted = [value, value.trim()].into_iter().chain(value.split(',').map(str::trim).filter(|i| !i.is_empty()));
        let hide_in = |text: &mut String| *text = quoted.clone().fold(text.clone(), |t, part| t.replace(part, HIDDEN));
        if let Some(row) = validation.options.iter_mut().find(|row| row.name == name) {
            row.value = Some(HIDDEN.to_owned());
            row.errors.iter_mut().for_each(hide_in);
        }
        validation.warnings.iter_mut().filter(|warning| warning.contains(name)).for_each(hide_in);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::option::{OptionDef, OptionKind, OptionTable};

    const TABLE: OptionTable = OptionTable {
        title: "Test",
        options: &[
            OptionDef::new("shop.pin", OptionKind::Int, "doc"),
            OptionDef::new("shop.list", OptionKind::List, "doc").one_of(&["a"]),
            OptionDef::new("shop.open", OptionKind::Int, "doc"),
            OptionDef::new(OPTION, OptionKind::String, "doc"),
        ],
        open_prefixes: &[],
        cross_checks: &[],
    };

    fn checked(pattern: &str) -> Validation {
        let config = Properties::from([
            ("shop.pin", " 12x4 "),
            ("shop.list", "a, q7q"),
            ("shop.open", "98y6"),
            (OPTION, pattern),
        ]);
        let mut validation = TABLE.validate(&config);
        assert_eq!(validation.error_count(), 3);
        hide(&mut validation, &config);
        validation
    }

    #[test]
    fn named_values_are_in_no_answer_and_others_stay() {
        let validation = checked(r".*\.PIN|.*list");
        for (name, secret) in [("shop.pin", "12x4"), ("shop.list", "q7q")] {
            let row = validation.option(name).unwrap();
            assert_eq!(row.value.as_deref(), Some("[hidden]"));
            assert!(row.errors[0].contains(name) && !row.errors[0].contains(secret), "{:?}", row.errors);
        }
        assert_ne!(validation.option("shop.open").unwrap().value.as_deref(), Some("[hidden]"));
    }

    #[test]
    fn a_part_of_a_name_and_a_wrong_pattern_name_nothing() {
        for pattern in ["shop", "[", " "] {
            assert!(checked(pattern).options.iter().all(|row| row.value.as_deref() != Some("[hidden]")), "{pattern}");
        }
    }
}

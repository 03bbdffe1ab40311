//! `custom.sanitize.pattern`: names of options whose values a user wants hidden.
//!
//! Values of options that are secret by themselves ([`crate::mask`]) are hidden whatever the pattern says:
//! it adds to them. No configuration is logged, so what is left are the answers and messages of a check.

use fancy_regex::Regex;

use crate::alias;
use crate::properties::Properties;
use crate::secret::HIDDEN;
use crate::validate::{ValidatedOption, Validation};

const OPTION: &str = "custom.sanitize.pattern";

/// Hides in `validation` the values of the options of `config` that its pattern names, by their present or
/// their older names: as a whole, in any case. A pattern that is none hides nothing; it is an error of its own option.
pub fn hide(validation: &mut Validation, config: &Properties) {
    let Some(pattern) = config.get(OPTION).map(str::trim).filter(|pattern| !pattern.is_empty()) else { return };
    let Ok(pattern) = Regex::new(&format!("(?i)^(?:{pattern})$")) else { return };
    // What cannot be decided is hidden.
    let names = |name: &str| name != OPTION && pattern.is_match(name).unwrap_or(true);
    for (name, value) in config.iter().filter(|(_, value)| !value.trim().is_empty()) {
        let is_it = |row: &&mut ValidatedOption| row.name == name || alias::is_older(name, &row.def);
        let row = validation.options.iter_mut().find(is_it);
        if !names(name) && !row.as_ref().is_some_and(|row| names(&row.name)) {
            continue;
        }
        // A message may quote an item of a list.
        let quoted = [value, value.trim()].into_iter().chain(value.split(',').map(str::trim));
        let hide_in =
            |text: &mut String| *text = quoted.clone().fold(std::mem::take(text), |t, part| without(&t, part));
        let mut known = vec![name.to_owned()];
        if let Some(row) = row {
            row.value = Some(HIDDEN.to_owned());
            row.errors.iter_mut().for_each(hide_in);
            known.push(row.name.clone());
        }
        let tells = |warning: &&mut String| known.iter().any(|name| warning.contains(name));
        validation.warnings.iter_mut().filter(tells).for_each(hide_in);
    }
}

/// The text without `part`, where that is no piece of a longer word: an item may be a single letter.
fn without(text: &str, part: &str) -> String {
    if part.is_empty() {
        return text.to_owned();
    }
    let joins =
        |a: Option<char>, b: Option<char>| a.zip(b).is_some_and(|(a, b)| a.is_alphanumeric() && b.is_alphanumeric());
    let (mut hidden, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find(part) {
        let (before, behind) = (&rest[..at], &rest[at + part.len()..]);
        let left = before.chars().next_back().or_else(|| hidden.chars().next_back());
        let is_piece = joins(left, part.chars().next()) || joins(part.chars().next_back(), behind.chars().next());
        hidden.push_str(before);
        hidden.push_str(if is_piece { part } else { HIDDEN });
        rest = behind;
    }
    hidden + rest
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
            OptionDef::new("shop.new", OptionKind::Int, "doc").aliases(&["shop.old"]),
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

    #[test]
    fn an_older_name_means_the_option_and_the_other_way_round() {
        for pattern in [r"shop\.old", r"shop\.new"] {
            let given = Properties::from([("shop.old", "77y"), (OPTION, pattern)]);
            let canonical = alias::canonical(&given, &TABLE);
            let mut validation = TABLE.validate(&canonical.properties);
            validation.warnings.push("'shop.old' is 77y".to_owned());
            hide(&mut validation, &given);
            let row = validation.option("shop.new").unwrap();
            assert_eq!(row.value.as_deref(), Some(HIDDEN), "{pattern}");
            let told = format!("{:?} {:?}", row.errors, validation.warnings);
            assert!(!told.contains("77y"), "{pattern}: {told}");
        }
    }

    #[test]
    fn an_item_of_a_letter_does_not_spoil_the_message() {
        assert_eq!(
            without("Value a must be one of a, ab, but is a", "a"),
            "Value [hidden] must be one of [hidden], ab, but is [hidden]"
        );
        assert_eq!(without("1 of 11: 1.", "1"), "[hidden] of 11: [hidden].");
        assert_eq!(without("x=äa, a", "a"), "x=äa, [hidden]");
        assert_eq!((without("as it is", "").as_str(), without("aaa", "aa").as_str()), ("as it is", "aaa"));
    }
}

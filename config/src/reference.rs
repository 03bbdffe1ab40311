//! Option tables as pages of the reference, in Markdown.
//!
//! The text depends on the tables alone, so that a page in the repository can be compared with what
//! this build would write.

use std::fmt::Write;

use crate::option::{OptionDef, OptionTable, Rule, Standing};

/// One page: a heading and, for each group in order of appearance, a section with its options.
pub fn markdown(table: &OptionTable) -> String {
    let mut out = format!("# {}\n", table.title);
    let mut groups: Vec<&str> = Vec::new();
    for option in table.options {
        if !groups.contains(&option.group) {
            groups.push(option.group);
        }
    }
    for group in groups {
        let heading = if group.is_empty() { "Options" } else { group };
        // Writing to a string cannot fail.
        let _ = write!(out, "\n## {heading}\n");
        for option in table.options.iter().filter(|o| o.group == group) {
            section(&mut out, option);
        }
    }
    let others: Vec<String> = table.open_prefixes.iter().filter(|p| !p.is_empty()).map(|p| format!("`{p}`")).collect();
    if !others.is_empty() {
        let _ = write!(out, "\nOptions that begin with {} are passed on to what they configure.\n", others.join(", "));
    }
    out
}

/// A class on a page of several: its names and its options.
#[derive(Debug)]
pub struct Class<'a> {
    pub names: Vec<&'a str>,
    pub table: &'a OptionTable,
}

/// One page for several classes: a heading, a text about all of them, and for each its names and options.
pub fn classes(title: &str, about: &str, classes: &[Class<'_>]) -> String {
    let mut out = format!("# {title}\n\n{about}\n");
    for Class { names, table } in classes {
        // Writing to a string cannot fail.
        let _ = write!(out, "\n## {}\n\n{}\n", table.title, codes(names));
        if table.options.is_empty() {
            out.push_str("\nNo options.\n");
        }
        for option in table.options {
            section(&mut out, option);
        }
    }
    out
}

fn section(out: &mut String, option: &OptionDef) {
    let _ = write!(out, "\n### `{}`\n\n{}\n\n", option.name, option.doc);
    let mut row = |name: &str, text: String| {
        let _ = writeln!(out, "- {name}: {text}");
    };
    row("Type", option.kind.name().to_ascii_lowercase());
    match option.default {
        Some("") => row("Default", "empty".to_owned()),
        Some(default) => row("Default", code(default)),
        None if option.required => row("Default", "none, required".to_owned()),
        None => row("Default", "not set".to_owned()),
    }
    match option.rule {
        Rule::OneOf(values) | Rule::Exactly(values) => row("Values", codes(values)),
        Rule::Class(values) => row("Classes", codes(values)),
        Rule::Range(Some(min), Some(max)) => row("Values", format!("{min} to {max}")),
        Rule::Range(Some(min), None) => row("Values", format!("at least {min}")),
        Rule::Range(None, Some(max)) => row("Values", format!("at most {max}")),
        Rule::Regexes => row("Values", "regular expressions that match whole names in any case".to_owned()),
        Rule::NotEmpty => row("Values", "at least one".to_owned()),
        Rule::Range(None, None) | Rule::Any | Rule::Check(_) => {}
    }
    if !option.value_aliases.is_empty() {
        let pairs: Vec<String> =
            option.value_aliases.iter().map(|(old, new)| format!("{} for {}", code(old), code(new))).collect();
        row("Older values", pairs.join(", "));
    }
    if !option.aliases.is_empty() {
        row("Older names", codes(option.aliases));
    }
    row("Importance", option.importance.name().to_ascii_lowercase());
    match option.standing {
        Standing::Active => {}
        Standing::Inert(why) => row("Effect", format!("none: {why}")),
        Standing::Older(newer) => row("Effect", format!("older option, for {}", code(newer))),
        Standing::Refused(advice) => row("Effect", format!("refused: {advice}")),
    }
}

fn codes(values: &[&str]) -> String {
    values.iter().map(|v| code(v)).collect::<Vec<_>>().join(", ")
}

/// Text as code; one more backtick around it than it has in a row.
fn code(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    if longest == 0 { format!("`{text}`") } else { format!("{fence} {text} {fence}") }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;
    use crate::option::{Importance, OptionKind};
    use crate::{connector, node};

    #[test]
    fn a_page() {
        const TABLE: OptionTable = OptionTable {
            title: "Things",
            options: &[
                OptionDef::new("a.b", OptionKind::String, "What it is for.")
                    .default("x")
                    .one_of(&["x", "y"])
                    .value_aliases(&[("z", "y")])
                    .aliases(&["old.a"])
                    .importance(Importance::High)
                    .group("First"),
                OptionDef::new("c", OptionKind::Int, "A number.").at_least(1).group(""),
                OptionDef::new("d", OptionKind::Class, "Not any more.").default("`").inert("gone").group("First"),
                OptionDef::new("e", OptionKind::Boolean, "As it was once.").older("a.b").group(""),
            ],
            open_prefixes: &["p."],
            cross_checks: &[],
        };
        let expected = "# Things

## First

### `a.b`

What it is for.

- Type: string
- Default: `x`
- Values: `x`, `y`
- Older values: `z` for `y`
- Older names: `old.a`
- Importance: high

### `d`

Not any more.

- Type: class
- Default: `` ` ``
- Importance: medium
- Effect: none: gone

## Options

### `c`

A number.

- Type: int
- Default: not set
- Values: at least 1
- Importance: medium

### `e`

As it was once.

- Type: boolean
- Default: not set
- Importance: medium
- Effect: older option, for `a.b`

Options that begin with `p.` are passed on to what they configure.
";
        assert_eq!(markdown(&TABLE), expected);
    }

    #[test]
    fn a_page_of_classes() {
        const TABLE: OptionTable = OptionTable {
            title: "Thing",
            options: &[OptionDef::new("c", OptionKind::Int, "A number.")],
            open_prefixes: &[],
            cross_checks: &[],
        };
        const EMPTY: OptionTable = OptionTable { title: "Other", options: &[], ..TABLE };
        let expected = "# Things

What they are for.

## Thing

`p.Thing$Key`, `p.Thing$Value`

### `c`

A number.

- Type: int
- Default: not set
- Importance: medium

## Other

`p.Other`

No options.
";
        let list = [
            Class { names: vec!["p.Thing$Key", "p.Thing$Value"], table: &TABLE },
            Class { names: vec!["p.Other"], table: &EMPTY },
        ];
        assert_eq!(classes("Things", "What they are for.", &list), expected);
    }

    #[test]
    fn every_option_is_on_its_page_and_documented() {
        for table in [&connector::FRAMEWORK, &node::WORKER] {
            let page = markdown(table);
            for option in table.options {
                assert_eq!(page.matches(&format!("\n### `{}`\n", option.name)).count(), 1, "{}", option.name);
                assert!(option.doc.ends_with('.'), "{}", option.name);
            }
        }
    }
}

//! A connector's configuration tried against the live source, on one screen.
//!
//! Says what would run, what is wrong, what is doubtful, and what to do next. Changes nothing.

use std::fmt::Write;
use std::time::Duration;

use thalweg_actors::Registry;
use thalweg_config::Properties;

use crate::api::{ApiError, Checked, check};

/// A configuration that was tried.
pub struct Report {
    pub text: String,
    pub is_valid: bool,
}

/// Tries `raw`; `worker` gives the defaults of converters.
///
/// # Errors
/// The configuration names no connector class that this build has.
pub async fn report(
    registry: &Registry,
    worker: &Properties,
    name: &str,
    raw: &Properties,
    deadline: Duration,
) -> Result<Report, ApiError> {
    let checked = check(registry, worker, raw, deadline).await?;
    Ok(Report { text: render(name, raw, &checked), is_valid: checked.validation.is_valid() })
}

fn render(name: &str, raw: &Properties, checked: &Checked) -> String {
    let mut text = String::new();
    let class = raw.get("connector.class").unwrap_or("?");
    let _ = writeln!(text, "Connector {name} ({class})\n");
    for (fact, value) in &checked.report.facts {
        let _ = writeln!(text, "  {fact:<16} {value}");
    }
    section(&mut text, "Tasks", &checked.report.tasks);
    let errors: Vec<String> = checked.validation.messages();
    section(&mut text, "Errors", &errors);
    let warnings: Vec<String> = checked
        .validation
        .warnings
        .iter()
        .chain(&checked.report.warnings)
        .chain(&checked.unresolved)
        .cloned()
        .collect();
    section(&mut text, "Warnings", &warnings);
    let verdict = match (errors.len(), checked.report.tasks.len()) {
        (0, tasks) => format!("Valid: {tasks} task(s) would run."),
        (1, _) => "Not valid: correct the error above and check again.".to_owned(),
        (n, _) => format!("Not valid: correct the {n} errors above and check again."),
    };
    let _ = writeln!(text, "\n{verdict}");
    text
}

fn section(text: &mut String, title: &str, lines: &[String]) {
    if lines.is_empty() {
        return;
    }
    let _ = writeln!(text, "\n{title}");
    for line in lines {
        let _ = writeln!(text, "  - {}", line.replace('\n', "\n    "));
    }
}

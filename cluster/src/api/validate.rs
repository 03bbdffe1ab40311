//! Checking a connector's configuration: the framework's options, the connector's, its converters',
//! its transforms', and then the live source.

use std::time::Duration;

use thalweg_actors::Registry;
use thalweg_config::parse::Reading;
use thalweg_config::provider::Resolution;
use thalweg_config::{Properties, Validation, sanitize};
use thalweg_core::convert::Role;
use thalweg_core::delivery::DeliveryMode;
use thalweg_core::naming::NameAdjustment;
use thalweg_core::source::CheckReport;

use super::{Api, ApiError, ApiResult};
use crate::raft::command::Delivery;

/// Longest check of one configuration, inside the request's own limit.
const DEADLINE: Duration = Duration::from_secs(80);

/// A configuration and everything that was found about it.
pub struct Checked {
    pub validation: Validation,
    /// Empty if the source was not asked because the configuration alone is wrong.
    pub report: CheckReport,
    /// References that stay as they stand.
    pub unresolved: Vec<String>,
}

impl Checked {
    /// What is doubtful and yet accepted.
    pub fn warnings(&self) -> Vec<String> {
        self.validation.warnings.iter().chain(&self.report.warnings).cloned().collect()
    }
}

/// Checks `raw` without talking to the source; `worker` gives the defaults of converters and of the
/// delivery. Reads the files that references name.
fn options(registry: &Registry, worker: &Properties, raw: &Properties) -> ApiResult<(Checked, Resolution)> {
    let connector = registry.connector_of(raw).map_err(|e| ApiError::bad_request(e.message))?;
    let resolution = registry.providers().resolve(raw);
    let config = &resolution.properties;
    let mut validation = thalweg_config::connector::validate(config, worker);
    validation.only_value("connector.plugin.version", connector.plugin().version);
    for role in Role::ALL {
        if let Ok((class, _)) = role.choose(&Properties::new(), worker) {
            validation.default_to(role.property(), class.class);
        }
        if role.choose(config, worker).is_ok() {
            validation.only_value(&format!("{}plugin.version", role.prefix()), reported_version(worker));
        }
    }
    let format = thalweg_core::repstance::check(config);
    format.problems.iter().for_each(|(option, text)| validation.invalid(option, text));
    validation.warnings.extend(format.warnings);
    validation.warnings.extend(thalweg_core::tolerance::Tolerance::warnings(config));
    exactly_once(config, &mut validation);
    // Kafka Connect counts them among its own options, which come before those of the connector.
    let mut transforms = thalweg_core::transform::validate(config, registry.transforms());
    versions(&mut transforms, connector.plugin().version, reported_version(worker));
    validation = validation.merge(transforms);
    validation = validation.merge(connector.validate(config));
    let field_names = NameAdjustment::default_for_fields(config);
    if field_names != NameAdjustment::None {
        validation.default_to("field.name.adjustment.mode", field_names.as_option());
    }
    let producers = registry.producers();
    validation = validation.merge(producers.options().validate(config));
    validation = validation.merge(producers.overrides(config));
    for role in [Role::Header, Role::Key, Role::Value] {
        match role.validate(config, worker) {
            // Options of the worker's converter are no options of the connector, except for their errors.
            Ok(options) if config.get(role.property()).is_none() && options.is_valid() => {}
            Ok(options) => validation = validation.merge(options),
            // Where the framework's own option has not said so already.
            Err(error) if validation.option(role.property()).is_some_and(|o| o.errors.is_empty()) => {
                validation.error(role.property(), error.message);
            }
            Err(_) => {}
        }
    }
    let delivery = producers.check(config, delivery_mode(raw, worker));
    for (option, text) in delivery.problems {
        // What the framework's own options say already is not said twice.
        if validation.option(&option).is_none_or(|o| o.errors.is_empty()) {
            validation.invalid(&option, &text);
        }
    }
    validation.warnings.extend(delivery.warnings);
    validation.conclude(thalweg_config::connector::is_strict(config));
    sanitize::hide(&mut validation, config);
    resolution.references.hide_validation(&mut validation);
    let unresolved = resolution.warnings.clone();
    Ok((Checked { validation, report: CheckReport::default(), unresolved }, resolution))
}

/// What Kafka Connect says of a worker without exactly-once delivery, which every node is.
fn exactly_once(config: &Properties, validation: &mut Validation) {
    const SUPPORT: &str = "exactly.once.support";
    const BOUNDARY: &str = "transaction.boundary";
    let is = |option: &str, value: &str| config.get(option).is_some_and(|v| v.trim().eq_ignore_ascii_case(value));
    if is(SUPPORT, "required") {
        validation.error(SUPPORT, "This worker does not have exactly-once source support enabled.".to_owned());
        validation.warnings.push(format!(
            "{SUPPORT}=required cannot be met; with 'requested' and thalweg.delivery=fenced stale owners are kept out, \
             and changes may repeat after a failure"
        ));
    }
    if is(BOUNDARY, "connector") {
        let text = "The connector does not support connector-defined transaction boundaries with the given \
                    configuration. Please reconfigure it to use a different transaction boundary definition.";
        validation.error(BOUNDARY, text.to_owned());
    }
}

/// The version of each transform and predicate: Debezium's come with the connector, the others with Kafka
/// Connect.
fn versions(transforms: &mut Validation, of_connector: &str, of_connect: &str) {
    let classes =
        transforms.options.iter().filter_map(|row| Some((row.name.strip_suffix(".type")?, row.value.as_deref()?)));
    let versions: Vec<(String, &str)> = classes
        .map(|(name, class)| {
            let version = if class.starts_with("io.debezium.") { of_connector } else { of_connect };
            (format!("{name}.plugin.version"), version)
        })
        .collect();
    for (option, version) in versions {
        transforms.only_value(&option, version);
    }
}

/// [`options`] on a thread of its own, because files may be slow.
async fn options_aside(registry: &Registry, worker: &Properties, raw: &Properties) -> ApiResult<(Checked, Resolution)> {
    let (registry, worker, raw) = (registry.clone(), worker.clone(), raw.clone());
    let checking = tokio::task::spawn_blocking(move || options(&registry, &worker, &raw));
    checking.await.map_err(|e| ApiError::internal(format!("The check of the configuration broke off: {e}")))?
}

/// The mode in which tasks of this configuration run, as the planner reads it.
fn delivery_mode(raw: &Properties, worker: &Properties) -> DeliveryMode {
    const OPTION: &str = "thalweg.delivery";
    let named = |config: &Properties| config.get(OPTION).and_then(Delivery::named);
    named(raw).or_else(|| named(worker)).unwrap_or(Delivery::Fenced).into()
}

/// Version of Kafka Connect, and with it of its converters, that tools are told.
fn reported_version(worker: &Properties) -> &str {
    const OPTION: &str = "rest.reported.version";
    let known = thalweg_config::node::WORKER.option(OPTION).and_then(|o| o.default);
    worker.get(OPTION).or(known).unwrap_or_default()
}

/// Checks `raw`, with the source if nothing forbids to connect.
pub async fn check(
    registry: &Registry,
    worker: &Properties,
    raw: &Properties,
    deadline: Duration,
) -> ApiResult<Checked> {
    let (mut checked, resolution) = options_aside(registry, worker, raw).await?;
    let connector = registry.connector_of(raw).map_err(|e| ApiError::bad_request(e.message))?;
    checked.report = connector.check(&resolution.properties, &mut checked.validation, deadline).await;
    sanitize::hide(&mut checked.validation, &resolution.properties);
    resolution.references.hide_validation(&mut checked.validation);
    Ok(checked)
}

impl Api {
    pub(super) async fn check_options(&self, raw: &Properties) -> ApiResult<Checked> {
        Ok(options_aside(&self.registry, &self.worker, raw).await?.0)
    }

    pub(super) async fn check(&self, raw: &Properties) -> ApiResult<Checked> {
        check(&self.registry, &self.worker, raw, DEADLINE).await
    }

    /// Checks what was read for a write: every error in one message. Gives what is doubtful.
    pub(super) async fn require_valid(&self, reading: &Reading) -> ApiResult<Vec<String>> {
        let raw = &reading.properties;
        let checked = self.check(raw).await.map_err(|error| beside(reading, error))?;
        let messages: Vec<String> = checked.validation.messages().into_iter().chain(reading.messages()).collect();
        if messages.is_empty() {
            let warnings = checked.warnings();
            for warning in warnings.iter().chain(&checked.unresolved).chain(&reading.warnings) {
                tracing::warn!(connector = raw.get("name"), warning, "configuration accepted with a warning");
            }
            return Ok(warnings);
        }
        for warning in checked.warnings() {
            tracing::warn!(connector = raw.get("name"), warning, "configuration refused; beside its errors");
        }
        Err(ApiError::bad_request(format!(
            "Connector configuration is invalid and contains the following {} error(s):\n{}\nYou can also find the above \
             list of errors at the endpoint `/connector-plugins/{{connectorType}}/config/validate`",
            checked.validation.error_count() + reading.problems.len(),
            messages.join("\n")
        )))
    }
}

/// The error that ended a check, together with the values that are none.
fn beside(reading: &Reading, error: ApiError) -> ApiError {
    match reading.clone().checked() {
        Ok(_) => error,
        Err(problems) => ApiError::new(error.status, format!("{problems}\n{}", error.message)),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use thalweg_core::transform::TransformClasses;

    use super::*;

    #[test]
    fn a_transform_has_the_version_of_who_brings_it() {
        let config = Properties::from([
            ("transforms", "a,b,c"),
            ("transforms.a.type", "RegexRouter"),
            ("transforms.b.type", "io.debezium.transforms.ExtractNewRecordState"),
            ("transforms.c.type", "no.such.Class"),
        ]);
        let mut rows = thalweg_core::transform::validate(&config, &TransformClasses::default());
        versions(&mut rows, "3.6", "4.3");
        let row = |name: &str| rows.option(&format!("transforms.{name}.plugin.version")).unwrap();
        for (name, version) in [("a", Some("4.3")), ("b", Some("3.6")), ("c", None)] {
            let row = row(name);
            assert_eq!((row.default.as_deref(), row.value.as_deref()), (version, version), "{name}");
            assert_eq!(row.recommended, version.into_iter().collect::<Vec<_>>(), "{name}");
        }
    }

    #[test]
    fn exactly_once_is_refused_in_the_words_of_kafka_connect() {
        let messages = |option: &str, value: &str| {
            let config = Properties::from([("name", "c"), ("connector.class", "x"), (option, value)]);
            let mut validation = thalweg_config::connector::validate(&config, &Properties::new());
            exactly_once(&config, &mut validation);
            validation.messages()
        };
        assert_eq!(
            messages("exactly.once.support", "Required"),
            ["This worker does not have exactly-once source support enabled."]
        );
        assert!(
            messages("transaction.boundary", "connector")[0]
                .starts_with("The connector does not support connector-defined")
        );
        for value in ["poll", "interval"] {
            assert_eq!(messages("transaction.boundary", value), [""; 0]);
        }
        assert_eq!(messages("exactly.once.support", "requested"), [""; 0]);
    }
}

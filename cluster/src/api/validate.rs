//! Checking a connector's configuration: the framework's options, the connector's, its converters',
//! its transforms', and then the live source.

use std::time::Duration;

use thalweg_actors::Registry;
use thalweg_config::{Properties, Validation};
use thalweg_core::convert::Role;
use thalweg_core::delivery::DeliveryMode;
use thalweg_core::source::CheckReport;
use thalweg_core::transform::Chain;

use super::{Api, ApiError, ApiResult};

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

/// Checks `raw` without talking to the source; `worker` gives the defaults of converters.
pub fn check_options(registry: &Registry, worker: &Properties, raw: &Properties) -> ApiResult<Checked> {
    let connector = registry.connector_of(raw).map_err(|e| ApiError::bad_request(e.message))?;
    let resolution = registry.providers().resolve(raw);
    let config = &resolution.properties;
    let mut validation = thalweg_config::connector::validate(config);
    validation.only_value("connector.plugin.version", connector.plugin().version);
    for role in Role::ALL {
        if let Ok((class, _)) = role.choose(&Properties::new(), worker) {
            validation.default_to(role.property(), class.class);
        }
        if role.choose(config, worker).is_ok() {
            validation.only_value(&format!("{}plugin.version", role.prefix()), reported_version(worker));
        }
    }
    validation = validation.merge(connector.validate(config));
    for role in Role::ALL {
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
    let producers = registry.producers();
    validation = validation.merge(producers.options().validate(config));
    let mode = if config.get("thalweg.delivery").is_some_and(|m| m.trim().eq_ignore_ascii_case("plain")) {
        DeliveryMode::Plain
    } else {
        DeliveryMode::Fenced
    };
    let delivery = producers.check(config, mode);
    for (option, text) in delivery.problems {
        // What the framework's own options say already is not said twice.
        if validation.option(&option).is_none_or(|o| o.errors.is_empty()) {
            validation.invalid(&option, &text);
        }
    }
    validation.warnings.extend(delivery.warnings);
    if config.get("exactly.once.support").is_some_and(|v| v.trim().eq_ignore_ascii_case("required")) {
        let text = "exactly-once delivery is not supported yet; with 'requested' and thalweg.delivery=fenced stale \
                    owners are kept out, and changes may repeat after a failure";
        validation.invalid("exactly.once.support", text);
    }
    if let Err(error) = Chain::check(config) {
        validation.error("transforms", error);
    }
    validation.conclude(thalweg_config::connector::is_strict(config));
    resolution.references.hide_validation(&mut validation);
    Ok(Checked { validation, report: CheckReport::default(), unresolved: resolution.warnings })
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
    let mut checked = check_options(registry, worker, raw)?;
    let connector = registry.connector_of(raw).map_err(|e| ApiError::bad_request(e.message))?;
    let resolution = registry.providers().resolve(raw);
    checked.report = connector.check(&resolution.properties, &mut checked.validation, deadline).await;
    resolution.references.hide_validation(&mut checked.validation);
    Ok(checked)
}

impl Api {
    pub(super) fn check_options(&self, raw: &Properties) -> ApiResult<Checked> {
        check_options(&self.registry, &self.worker, raw)
    }

    pub(super) async fn check(&self, raw: &Properties) -> ApiResult<Checked> {
        check(&self.registry, &self.worker, raw, DEADLINE).await
    }

    /// Checks `raw` for a write: every error in one message.
    pub(super) async fn require_valid(&self, raw: &Properties) -> ApiResult<()> {
        let checked = self.check(raw).await?;
        for warning in checked.validation.warnings.iter().chain(&checked.unresolved) {
            tracing::warn!(connector = raw.get("name"), warning, "configuration accepted with a warning");
        }
        let messages = checked.validation.messages();
        if messages.is_empty() {
            return Ok(());
        }
        Err(ApiError::bad_request(format!(
            "Connector configuration is invalid and contains the following {} error(s):\n{}\nYou can also find the above \
             list of errors at the endpoint `/connector-plugins/{{connectorType}}/config/validate`",
            messages.len(),
            messages.join("\n")
        )))
    }
}

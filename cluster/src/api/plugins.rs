//! What this build can run, and how a configuration for it looks.

use serde_json::{Value, json};
use thalweg_actors::Registry;
use thalweg_config::parse::Reading;
use thalweg_config::{OptionTable, Properties, config_keys, validate_reply};
use thalweg_core::convert::Role;
use thalweg_core::transform;

use super::{Api, ApiError, ApiResult};

impl Api {
    /// `GET /connector-plugins`.
    pub fn plugins(&self, connectors_only: bool) -> Value {
        let connectors = self.registry.connectors().iter().map(|c| {
            let plugin = c.plugin();
            json!({"class": plugin.class, "type": "source", "version": plugin.version})
        });
        let mut all: Vec<Value> = connectors.collect();
        if !connectors_only {
            let version = &self.reported_version;
            let converters = thalweg_config::connector::CONVERTERS.iter();
            all.extend(converters.map(|class| json!({"class": class, "type": "converter", "version": version})));
            let headers = thalweg_config::connector::HEADER_CONVERTERS.iter();
            all.extend(headers.map(|class| json!({"class": class, "type": "header_converter", "version": version})));
            let predicates = transform::PREDICATES.iter().map(|c| (c.class, "predicate"));
            let transforms = self.registry.transforms().iter().map(|c| (c.class, "transformation"));
            let others = predicates.chain(transforms);
            all.extend(others.map(|(class, kind)| json!({"class": class, "type": kind, "version": version})));
        }
        Value::Array(all)
    }

    /// `GET /connector-plugins/{plugin}/config`.
    pub fn plugin_config(&self, plugin: &str) -> ApiResult {
        if let Ok(connector) = self.registry.find(plugin) {
            let version = connector.plugin().version;
            // The connector's own first: so Kafka Connect lists them here, and only here.
            let tables: [&OptionTable; 2] = [connector.options(), &thalweg_config::connector::FRAMEWORK];
            return Ok(config_keys(&tables, &[("connector.plugin.version", version)]));
        }
        let converter = Role::ALL.iter().find_map(|role| role.class(plugin).ok()).map(|class| class.options);
        let transform = || self.registry.transforms().called(plugin).ok().map(|class| class.options);
        let predicate = || transform::predicate_called(plugin).ok().map(|class| class.options);
        match converter.or_else(transform).or_else(predicate) {
            Some(options) => Ok(config_keys(&[options], &[])),
            None => Err(ApiError::not_found(format!("Unknown plugin {plugin}."))),
        }
    }

    /// `PUT /connector-plugins/{plugin}/config/validate`.
    pub async fn validate(&self, plugin: &str, reading: Reading) -> ApiResult {
        let config: &Properties = &reading.properties;
        let Some(class) = config.get("connector.class").map(str::to_owned) else {
            return Err(ApiError::bad_request(Registry::no_class(config).message));
        };
        if !is_of(&class, plugin) {
            return Err(ApiError::bad_request(format!(
                "Included connector type {class} does not match request type {plugin}"
            )));
        }
        let mut checked = self.check(config).await?;
        reading.report(&mut checked.validation);
        Ok(validate_reply(&checked.validation, &class))
    }
}

/// Whether a configuration with this class is one of the plugin that a request names: by an end of the name.
fn is_of(class: &str, plugin: &str) -> bool {
    without_suffix(class).ends_with(without_suffix(plugin))
}

/// A class or an alias as Kafka Connect compares them: without the word that says what it is.
fn without_suffix(class: &str) -> &str {
    class.strip_suffix("Connector").filter(|rest| !rest.is_empty()).unwrap_or(class)
}

#[cfg(test)]
mod tests {
    use super::is_of;

    #[test]
    fn a_request_type_is_an_end_of_the_class() {
        const FULL: &str = "io.debezium.connector.mongodb.MongoDbConnector";
        for plugin in [FULL, "MongoDbConnector", "MongoDb", "mongodb.MongoDb", "Db", "DbConnector"] {
            assert!(is_of(FULL, plugin), "{plugin}");
        }
        assert!(is_of("MongoDb", "MongoDbConnector") && is_of("MongoDbConnector", "MongoDb"));
        for (class, plugin) in [("MongoDb", FULL), (FULL, "mongoDb"), (FULL, "Connector"), (FULL, "MySql")] {
            assert!(!is_of(class, plugin), "{class} {plugin}");
        }
    }
}

//! What a node can run: connector classes by name with the transforms they bring, the way to Kafka, and
//! the providers that resolve `${...}` references.
//!
//! Filled once by the binary with the concrete connectors; the actors and the cluster know them
//! through the traits of `thalweg-core` only.

use std::sync::Arc;

use thalweg_config::Properties;
use thalweg_config::provider::Providers;
use thalweg_core::Error;
use thalweg_core::delivery::ProducerFactory;
use thalweg_core::source::{Connector, Plugin};
use thalweg_core::transform::TransformClasses;

#[derive(Clone)]
pub struct Registry {
    connectors: Vec<Arc<dyn Connector>>,
    transforms: TransformClasses,
    producers: Arc<dyn ProducerFactory>,
    providers: Providers,
}

impl Registry {
    pub fn new(producers: Arc<dyn ProducerFactory>, providers: Providers) -> Self {
        Self { connectors: Vec::new(), transforms: TransformClasses::default(), producers, providers }
    }

    #[must_use]
    pub fn with(mut self, connector: Arc<dyn Connector>) -> Self {
        self.transforms = self.transforms.with(connector.transforms());
        self.connectors.push(connector);
        self
    }

    pub fn connectors(&self) -> &[Arc<dyn Connector>] {
        &self.connectors
    }

    /// The transforms of all connectors and those that need none.
    pub fn transforms(&self) -> &TransformClasses {
        &self.transforms
    }

    pub fn producers(&self) -> &Arc<dyn ProducerFactory> {
        &self.producers
    }

    pub fn providers(&self) -> &Providers {
        &self.providers
    }

    /// The connector known as `name`: its full class name, a name it declares, its simple class name,
    /// or that without the ending `Connector`. The error is Connect's text.
    pub fn find(&self, name: &str) -> Result<&Arc<dyn Connector>, Error> {
        let exact = self.connectors.iter().find(|c| {
            let plugin = c.plugin();
            plugin.class == name || plugin.aliases.contains(&name)
        });
        if let Some(connector) = exact {
            return Ok(connector);
        }
        let mut short = self.connectors.iter().filter(|c| is_short_name(c.plugin(), name));
        match (short.next(), short.next()) {
            (Some(connector), None) => Ok(connector),
            _ => Err(self.unknown(name)),
        }
    }

    /// The connector that a configuration names.
    pub fn connector_of(&self, config: &Properties) -> Result<&Arc<dyn Connector>, Error> {
        match config.get("connector.class") {
            Some(class) => self.find(class.trim()),
            None => Err(Self::no_class(config)),
        }
    }

    /// For a configuration without `connector.class`. Kafka Connect's text, with the names of the
    /// properties in place of the whole configuration: values may be secrets.
    pub fn no_class(config: &Properties) -> Error {
        let names: Vec<&str> = config.iter().map(|(name, _)| name).collect();
        Error::config(format!("Connector config {{{}}} contains no connector type", names.join(", ")))
            .advise("Set connector.class to one of the classes that GET /connector-plugins lists.")
    }

    fn unknown(&self, name: &str) -> Error {
        let known: Vec<_> = self.connectors.iter().map(|c| c.plugin().class).collect();
        Error::config(format!(
            "Failed to find any class that implements Connector and which name matches {name}, available connectors are: {}",
            known.join(", ")
        ))
    }
}

fn is_short_name(plugin: &Plugin, name: &str) -> bool {
    let simple = plugin.class.rsplit('.').next().unwrap_or(plugin.class);
    simple == name || simple.strip_suffix("Connector") == Some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_without_a_class_is_refused_without_its_values() {
        let config = Properties::from([("name", "c"), ("mongodb.password", "secret")]);
        assert_eq!(
            Registry::no_class(&config).message,
            "Connector config {mongodb.password, name} contains no connector type"
        );
    }
}

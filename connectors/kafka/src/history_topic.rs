//! The topic of a schema history: made if it is missing, looked at if it is there.
//!
//! It is made with one partition and kept without limit. One that somebody else made is used as it is; what would
//! lose records is told. Records in other partitions than the first are an error: nobody can say where among the
//! others they belong.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, ResourceSpecifier, TopicReplication};
use rdkafka::config::FromClientConfigAndContext;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode as Code};
use thalweg_core::error::Result;
use thalweg_core::relational::history::HistoryTopic;
use thalweg_core::{Error, ErrorKind, Phase};
use tokio::runtime::Handle;
use tracing::{info, warn};

use crate::embedded;
use crate::errors;
use crate::history::Clients;
use crate::topics::{blocking, check_name};
use crate::trouble::PlainContext;

const FOREVER: &str = "9223372036854775807";
/// Between two looks at a topic that was just made.
const LOOK: Duration = Duration::from_millis(20);

type Looker = BaseConsumer<PlainContext>;
type Admin = AdminClient<PlainContext>;

/// # Errors
/// The topic cannot be made, or not be used.
pub(crate) async fn prepare(topic: Arc<HistoryTopic>, clients: Clients) -> Result<()> {
    check_name(&topic.topic)?;
    let runtime = Handle::current();
    blocking(move || {
        if let Some(made) = embedded::make_topic(&topic.bootstrap, &topic.topic, 1) {
            return made;
        }
        // Unlike a producer it does not make brokers create what it asks for.
        let looker: Looker = clients
            .consumer
            .create_with_context(PlainContext::new("schema history"))
            .map_err(|e| failed(&topic, "looked at", &e))?;
        let admin = Admin::from_config_and_context(&clients.admin, PlainContext::new("schema history"))
            .map_err(|e| failed(&topic, "looked at", &e))?;
        match partitions(&looker, &topic)? {
            0 => create(&runtime, &admin, &looker, &topic),
            found => {
                check_partitions(&looker, &topic, found)?;
                check_settings(&runtime, &admin, &topic);
                Ok(())
            }
        }
    })
    .await
}

fn failed(topic: &HistoryTopic, what: &str, error: &KafkaError) -> Error {
    errors::client(Phase::Start, format!("the schema history topic {} cannot be {what}", topic.topic), error)
}

/// How many the topic has; none: it is not there.
fn partitions(looker: &Looker, topic: &HistoryTopic) -> Result<usize> {
    let metadata = looker
        .fetch_metadata(Some(&topic.topic), topic.query_timeout)
        .map_err(|e| looker.client().context().trouble.enrich(failed(topic, "looked at", &e)))?;
    let Some(found) = metadata.topics().first() else { return Ok(0) };
    match found.error().map(Code::from) {
        None => Ok(found.partitions().len()),
        // With the last one it is about to come.
        Some(Code::UnknownTopicOrPartition | Code::UnknownTopic | Code::LeaderNotAvailable) => Ok(0),
        Some(code) => {
            let what = format!("the schema history topic {} cannot be looked at", topic.topic);
            Err(errors::coded(Phase::Start, what, code))
        }
    }
}

fn create(runtime: &Handle, admin: &Admin, looker: &Looker, topic: &HistoryTopic) -> Result<()> {
    // The brokers' own replication factor.
    let new = NewTopic::new(&topic.topic, 1, TopicReplication::Fixed(-1))
        .set("cleanup.policy", "delete")
        .set("retention.ms", FOREVER)
        .set("retention.bytes", "-1");
    let within = Some(topic.create_timeout);
    let options = AdminOptions::new().request_timeout(within).operation_timeout(within);
    let made = runtime.block_on(admin.create_topics([&new], &options)).map_err(|e| failed(topic, "made", &e))?;
    match made.into_iter().find_map(|result| result.err()).map(|(_, code)| code) {
        None => info!(topic = topic.topic, "schema history topic created"),
        Some(Code::TopicAlreadyExists) => {}
        Some(code) => {
            let what = format!("the schema history topic {} cannot be made", topic.topic);
            return Err(errors::coded(Phase::Start, what, code).advise(
                "give the user the right to create it, or create it with one partition, cleanup.policy=delete and retention.ms=-1; then restart the task",
            ));
        }
    }
    let end = Instant::now() + topic.create_timeout;
    while partitions(looker, topic)? == 0 || looker.fetch_watermarks(&topic.topic, 0, topic.query_timeout).is_err() {
        if Instant::now() >= end {
            let message = format!("the schema history topic {} was made and is not there yet", topic.topic);
            return Err(Error::new(ErrorKind::BrokerUnavailable, Phase::Start, message));
        }
        // The timer has to be made inside of the runtime.
        runtime.block_on(async { tokio::time::sleep(LOOK).await });
    }
    Ok(())
}

fn check_partitions(looker: &Looker, topic: &HistoryTopic, found: usize) -> Result<()> {
    if found > 1 {
        warn!(
            topic = topic.topic,
            partitions = found,
            "a schema history topic should have one partition; only the first is used"
        );
    }
    for partition in (1..).take(found.saturating_sub(1)) {
        let (low, high) = looker
            .fetch_watermarks(&topic.topic, partition, topic.query_timeout)
            .map_err(|e| failed(topic, "looked at", &e))?;
        if low < high {
            let message = format!(
                "the schema history topic {} has {found} partitions and records in partition {partition}: their order among the others is unknown",
                topic.topic
            );
            return Err(Error::config(message).advise(
                "name a topic with one partition in schema.history.internal.kafka.topic; set snapshot.mode=recovery if its records cannot be brought there in order",
            ));
        }
    }
    Ok(())
}

/// Tells of settings that lose records. The topic may be used by somebody who must not see them.
fn check_settings(runtime: &Handle, admin: &Admin, topic: &HistoryTopic) {
    let name = topic.topic.as_str();
    let options = AdminOptions::new().request_timeout(Some(topic.query_timeout));
    let asked = runtime.block_on(admin.describe_configs([&ResourceSpecifier::Topic(name)], &options));
    let settings = match asked.map(|mut answers| answers.pop()) {
        Ok(Some(Ok(settings))) => settings,
        Ok(Some(Err(code))) => {
            return warn!(topic = name, %code, "the settings of the schema history topic cannot be looked at");
        }
        Ok(None) => return,
        Err(error) => {
            return warn!(topic = name, %error, "the settings of the schema history topic cannot be looked at");
        }
    };
    for (setting, value) in loses(|setting| settings.get(setting).and_then(|entry| entry.value.as_deref())) {
        warn!(
            topic = name,
            setting,
            value,
            "the schema history topic loses records by this setting; set cleanup.policy=delete, retention.ms=-1, retention.bytes=-1"
        );
    }
}

/// Settings with values by which records get lost.
fn loses<'a>(value: impl Fn(&str) -> Option<&'a str>) -> Vec<(&'static str, &'a str)> {
    let is_lossy = |setting: &str, value: &str| match setting {
        "cleanup.policy" => value.trim() != "delete",
        "retention.ms" => !matches!(value.trim(), "-1" | FOREVER),
        _ => value.trim() != "-1",
    };
    let settings = ["cleanup.policy", "retention.ms", "retention.bytes"];
    settings.into_iter().filter_map(|s| value(s).filter(|value| is_lossy(s, value)).map(|value| (s, value))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_lose_records_are_known() {
        let of = |policy, ms, bytes| {
            loses(move |setting| match setting {
                "cleanup.policy" => Some(policy),
                "retention.ms" => ms,
                _ => Some(bytes),
            })
        };
        assert!(of("delete", Some("-1"), "-1").is_empty());
        assert!(of("delete", Some(FOREVER), "-1").is_empty());
        assert!(of("delete", None, "-1").is_empty());
        assert_eq!(of("compact", Some("-1"), "-1"), [("cleanup.policy", "compact")]);
        assert_eq!(of("compact,delete", Some("604800000"), "7").len(), 3);
    }
}

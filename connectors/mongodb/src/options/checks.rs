//! Rules over the text of single options.
//!
//! A message is what follows `The '<name>' value is invalid: `. No message repeats a value that may
//! hold a secret.

use thalweg_config::rule::split_plain_list as split_list;
use thalweg_core::naming::NAMING_STRATEGIES;

use crate::lenient_json::parse_documents;

pub(super) const DEFAULT_AUTH_PROVIDER: &str = "io.debezium.connector.mongodb.connection.DefaultMongoDbAuthProvider";

type Check = Result<(), String>;

pub(super) fn connection_string(text: &str) -> Check {
    crate::connect::parse(text).map(drop).map_err(|_| "Invalid connection string".into())
}

pub(super) fn shard_params(text: &str) -> Check {
    let text = text.trim();
    let pair = |part: &str| part.split_once('=').is_some_and(|(k, v)| !k.trim().is_empty() && !v.trim().is_empty());
    if text.is_empty() || text.split('&').all(pair) { Ok(()) } else { Err("key=value(&key=value)* is expected".into()) }
}

pub(super) fn auth_provider(text: &str) -> Check {
    if text.trim() == DEFAULT_AUTH_PROVIDER {
        return Ok(());
    }
    Err("not supported, put the credentials/authMechanism into mongodb.connection.string".into())
}

/// A cluster time, or -1. Below 2^32 there are no seconds in it: no server has such a time, and plain
/// seconds end up there by mistake.
pub(super) fn start_time(text: &str) -> Check {
    match text.trim().parse::<i64>() {
        Ok(time) if time != -1 && time >> 32 <= 0 => {
            Err("-1 or a cluster time is expected: seconds since 1970, times 4294967296, plus the increment".into())
        }
        // What is no number is refused by its kind.
        _ => Ok(()),
    }
}

pub(super) fn pipeline(text: &str) -> Check {
    if text.trim().is_empty() {
        return Ok(());
    }
    parse_documents(text).map(drop).map_err(|e| format!("Change stream pipeline JSON is invalid: {e}"))
}

pub(super) fn skipped_operations(text: &str) -> Check {
    let items = split_list(text);
    if let Some(odd) = items.iter().find(|i| !["c", "u", "d", "t", "r", "none"].contains(&i.to_lowercase().as_str())) {
        return Err(format!("Invalid operation '{odd}': c, u, d, t, r or none is expected"));
    }
    if items.len() > 1 && items.iter().any(|i| i.eq_ignore_ascii_case("none")) {
        return Err("'none' cannot be combined with other operations".into());
    }
    Ok(())
}

pub(super) fn topic_naming(class: &str) -> Check {
    if NAMING_STRATEGIES.contains(&class.trim()) {
        return Ok(());
    }
    Err(format!("{class} is not supported; write one of {}", NAMING_STRATEGIES.join(", ")))
}

pub(super) const TRANSACTION_FACTORY: &str = "io.debezium.pipeline.txmetadata.DefaultTransactionMetadataFactory";

pub(super) fn transaction_factory(class: &str) -> Check {
    if class.trim() == TRANSACTION_FACTORY {
        return Ok(());
    }
    Err(format!("{class} is not supported; remove the property: the metadata is Debezium's default one"))
}

/// There is one in Debezium, and it reads columns of tables.
pub(super) fn post_processors(text: &str) -> Check {
    if split_list(text).is_empty() {
        return Ok(());
    }
    Err("there are no post processors for MongoDB (io.debezium.processors.reselect.ReselectColumnsPostProcessor reads \
         columns of tables again); remove the property. capture.mode says what an update shows of its document"
        .into())
}

pub(super) fn signal_collection(text: &str) -> Check {
    let items = split_list(text);
    if items.len() > 1 || items.iter().any(|i| crate::namespace::Namespace::parse(i).is_none()) {
        return Err("exactly one collection as <databaseName>.<collectionName> is expected".into());
    }
    Ok(())
}

pub(super) fn signal_channels(text: &str) -> Check {
    let items = split_list(text);
    if let Some(odd) =
        items.iter().find(|i| !["source", "kafka", "file", "rest", "jmx"].contains(&i.to_lowercase().as_str()))
    {
        return Err(format!("Value must be one of source, kafka, file, rest, jmx, but is {odd}"));
    }
    Ok(())
}

pub(super) fn notification_channels(text: &str) -> Check {
    let items = split_list(text);
    if let Some(odd) = items.iter().find(|i| !["sink", "log", "jmx"].contains(&i.to_lowercase().as_str())) {
        return Err(format!("Value must be one of sink, log, jmx, but is {odd}"));
    }
    Ok(())
}

//! The names of partitions, and which stored offset a database starts from.
//!
//! Each database is a partition `{server, database}`. In the older layout of a single database it is `{server}`
//! alone. A single database finds its offset under either name, so that a connector can be moved from one layout
//! to the other; of several databases nobody could say which one the short name means.

use std::sync::Arc;

use serde_json::{Map, Value as Json};
use thalweg_core::Error;
use thalweg_core::position::{self, OffsetReader, SourcePartition};

use crate::position::{SqlServerCodec, SqlServerPosition};

const SERVER: &str = "server";
const DATABASE: &str = "database";

/// How a connector names its topics and partitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// With the database in them.
    ByDatabase,
    /// Without it; for one database only.
    Single,
}

/// The partition of a database, whose name is spelt as the server spells it.
pub fn partition(layout: Layout, prefix: &str, database: &str) -> SourcePartition {
    match layout {
        Layout::ByDatabase => SourcePartition::new([(SERVER, prefix), (DATABASE, database)]),
        Layout::Single => SourcePartition::new([(SERVER, prefix)]),
    }
}

/// Checks a partition that somebody wrote.
///
/// # Errors
/// What is expected.
pub fn check_partition(partition: &Map<String, Json>) -> Result<(), String> {
    let is_text = |name: &str| partition.get(name).and_then(Json::as_str).is_some_and(|text| !text.is_empty());
    let known = |name: &String| name == SERVER || name == DATABASE;
    let complete = is_text(SERVER) && (is_text(DATABASE) || !partition.contains_key(DATABASE));
    if complete && partition.keys().all(known) {
        return Ok(());
    }
    Err("a partition is {\"server\": <topic.prefix>, \"database\": <name>}, the latter not with database.dbname".into())
}

/// Whether a task of a connector with these databases looks for a position of the partition.
///
/// # Errors
/// Why none does.
pub fn check_owner(
    partition: &SourcePartition,
    prefix: &str,
    databases: &[String],
    layout: Layout,
) -> Result<(), String> {
    let map = partition.to_map();
    let text = |name: &str| map.get(name).and_then(Json::as_str);
    if text(SERVER) != Some(prefix) {
        return Err(format!("no task looks for it: the server is named {prefix} (topic.prefix)"));
    }
    match text(DATABASE) {
        // Databases are compared as the server does it: mostly without regard to case.
        Some(name) if databases.iter().any(|database| database.eq_ignore_ascii_case(name)) => Ok(()),
        Some(name) => Err(format!("no task looks for it: database {name} is not captured")),
        None if databases.len() == 1 => Ok(()),
        None if layout == Layout::Single => Ok(()),
        None => Err("no task looks for it: with several databases a partition names one".to_owned()),
    }
}

/// A position that is stored.
#[derive(Debug)]
pub struct Found {
    pub position: SqlServerPosition,
    /// Under the partition's own name: whoever takes over finds it there.
    pub own: bool,
}

/// The stored offsets of one connector.
pub struct StoredOffsets {
    pub reader: Arc<dyn OffsetReader>,
    pub prefix: Arc<str>,
    pub layout: Layout,
    /// The connector has one database.
    pub is_only: bool,
}

impl StoredOffsets {
    /// Of a database; `None`: nothing is stored.
    ///
    /// # Errors
    /// Something is stored that is no position of this connector.
    pub fn of(&self, database: &str) -> Result<Option<Found>, Error> {
        let under = |layout| self.read(&partition(layout, &self.prefix, database));
        if let Some(position) = under(self.layout)? {
            return Ok(Some(Found { position, own: true }));
        }
        if !self.is_only {
            return Ok(None);
        }
        let other = match self.layout {
            Layout::ByDatabase => Layout::Single,
            Layout::Single => Layout::ByDatabase,
        };
        let position = under(other)?;
        if position.is_some() {
            tracing::warn!(database, "going on from the offset that is stored in the other layout of partitions");
        }
        Ok(position.map(|position| Found { position, own: false }))
    }

    fn read(&self, partition: &SourcePartition) -> Result<Option<SqlServerPosition>, Error> {
        let stored = position::stored(&SqlServerCodec, &*self.reader, partition)?;
        Ok(stored.and_then(|position| SqlServerPosition::decode(&position)))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use std::collections::BTreeMap;

    use serde_json::json;
    use thalweg_core::position::OffsetMap;
    use thalweg_core::{ErrorKind, Policy};

    use super::*;

    struct Offsets(BTreeMap<String, OffsetMap>);

    impl OffsetReader for Offsets {
        fn offset(&self, partition: &SourcePartition) -> Option<OffsetMap> {
            self.0.get(&**partition.canonical()).cloned()
        }
    }

    fn stored(layout: Layout, is_only: bool, offsets: &[(Json, Json)]) -> StoredOffsets {
        let entry = |(partition, offset): &(Json, Json)| {
            let partition = SourcePartition::from_map(partition.as_object().unwrap());
            (partition.canonical().to_string(), offset.as_object().unwrap().clone())
        };
        let reader = Arc::new(Offsets(offsets.iter().map(entry).collect()));
        StoredOffsets { reader, prefix: "s1".into(), layout, is_only }
    }

    fn at(serial: i64) -> Json {
        json!({"commit_lsn": "0000002a:000003b8:0003", "change_lsn": "NULL", "event_serial_no": serial})
    }

    fn serial(stored: &StoredOffsets, database: &str) -> Option<(i64, bool)> {
        stored.of(database).unwrap().map(|found| (found.position.serial, found.own))
    }

    #[test]
    fn t_49_one_database_is_found_under_both_names() {
        let (long, short) = (json!({"database": "shop", "server": "s1"}), json!({"server": "s1"}));
        let both = [(long.clone(), at(1)), (short.clone(), at(2))];
        assert_eq!(serial(&stored(Layout::ByDatabase, true, &both), "shop"), Some((1, true)));
        assert_eq!(serial(&stored(Layout::Single, true, &both), "shop"), Some((2, true)));
        assert_eq!(serial(&stored(Layout::ByDatabase, true, &both[1..]), "shop"), Some((2, false)));
        assert_eq!(serial(&stored(Layout::Single, true, &both[..1]), "shop"), Some((1, false)));
        assert_eq!(serial(&stored(Layout::ByDatabase, true, &[]), "shop"), None);
        assert_eq!(serial(&stored(Layout::ByDatabase, true, &both[..1]), "crm"), None);
    }

    #[test]
    fn sql_33_of_several_databases_each_has_its_own() {
        let both = [(json!({"server": "s1", "database": "d1"}), at(1)), (json!({"server": "s1"}), at(2))];
        let several = stored(Layout::ByDatabase, false, &both);
        assert_eq!(serial(&several, "d1"), Some((1, true)));
        assert_eq!(serial(&several, "d3"), None, "a database that was added is new");
    }

    #[test]
    fn what_cannot_be_read_is_not_taken_for_nothing() {
        let odd = stored(Layout::Single, true, &[(json!({"server": "s1"}), json!({"commit_lsn": "abc"}))]);
        let error = odd.of("shop").unwrap_err();
        assert_eq!((error.kind, error.policy()), (ErrorKind::Codec, Policy::NeedsUser));
    }

    #[test]
    fn partitions_have_a_server_and_may_have_a_database() {
        let check = |partition: Json| check_partition(partition.as_object().unwrap());
        assert_eq!(check(json!({"server": "s1", "database": "shop"})), Ok(()));
        assert_eq!(check(json!({"server": "s1"})), Ok(()));
        for odd in [
            json!({}),
            json!({"database": "d"}),
            json!({"server": ""}),
            json!({"server": "s", "database": null}),
            json!({"server": "s", "rs": "x"}),
        ] {
            assert!(check(odd).is_err());
        }
    }
}

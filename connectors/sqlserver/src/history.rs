//! The history of structures of one database: its records, and how they relate to positions.
//!
//! A structure counts from the first commit on that its capture instance has changes of; one that a snapshot found
//! counts from the snapshot's place. Both numbers of a place are compared: the change's alone would lose structures
//! behind an idle stop.

use thalweg_core::Error;
use thalweg_core::envelope::SourceTime;
use thalweg_core::position::{OffsetMap, SourcePartition};
use thalweg_core::relational::history::{HistoryOrder, HistoryRecord, Resumed, SchemaHistory};
use thalweg_core::relational::table::Table;
use thalweg_core::relational::table_filter::TableFilter;
use thalweg_core::relational::table_json::{ChangeKind, TableChange};

use crate::position::SqlServerPosition;

/// Orders records by their place.
pub(crate) struct ByPlace;

impl HistoryOrder for ByPlace {
    fn is_at_or_before(&self, recorded: &OffsetMap, stored: &OffsetMap) -> bool {
        let place = |offset: &OffsetMap| SqlServerPosition::from_offset(offset).ok().map(|position| position.place);
        match (place(recorded), place(stored)) {
            (Some(recorded), Some(stored)) => recorded <= stored,
            // A record whose position cannot be read is of an older release: what it says was true once.
            (None, _) => true,
            (Some(_), None) => false,
        }
    }

    /// The layout of partitions may have changed since.
    fn is_of(&self, record: &HistoryRecord, partition: &SourcePartition) -> bool {
        if record.source == *partition {
            return true;
        }
        let (ours, theirs) = (partition.to_map(), record.source.to_map());
        let name = |map: &OffsetMap, member: &str| map.get(member).and_then(|v| v.as_str()).map(str::to_owned);
        let same_server = name(&ours, "server") == name(&theirs, "server");
        let database = name(&theirs, "database").or_else(|| record.database_name.clone());
        same_server && name(&ours, "database").is_none_or(|ours| database.as_deref() == Some(&*ours))
    }
}

/// The history of a database, with what its records have in common.
pub(crate) struct DatabaseHistory {
    pub(crate) history: SchemaHistory,
    pub(crate) partition: SourcePartition,
    pub(crate) database: String,
}

impl DatabaseHistory {
    /// What a task starts with that has delivered up to `position` (`None`: nothing yet).
    ///
    /// # Errors
    /// As [`SchemaHistory::resume`].
    pub(crate) async fn resume(
        &mut self,
        position: Option<&SqlServerPosition>,
        filter: &TableFilter,
        rebuilds: bool,
    ) -> Result<Resumed, Error> {
        let stops: Vec<_> = position.map(|p| (self.partition.clone(), p.to_offset())).into_iter().collect();
        self.history.resume(&stops, &ByPlace, filter, rebuilds).await
    }

    /// Writes down a structure. When this returns, it counts.
    ///
    /// # Errors
    /// Those of the store.
    pub(crate) async fn record(
        &mut self,
        kind: ChangeKind,
        table: &Table,
        position: &SqlServerPosition,
        ddl: Option<&str>,
        filter: &TableFilter,
    ) -> Result<(), Error> {
        let record = HistoryRecord {
            source: self.partition.clone(),
            position: position.to_offset(),
            ts_ms: Some(SourceTime::now().ms),
            database_name: Some(self.database.clone()),
            schema_name: table.id.schema().map(str::to_owned),
            ddl: ddl.map(str::to_owned),
            changes: Some(vec![TableChange::new(kind, table.clone())]),
        };
        self.history.record(record, filter).await
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    fn counts(recorded: serde_json::Value, stored: serde_json::Value) -> bool {
        ByPlace.is_at_or_before(recorded.as_object().unwrap(), stored.as_object().unwrap())
    }

    #[test]
    fn t_17_structures_behind_an_idle_stop_count() {
        let at = |commit: &str, change: &str| json!({"commit_lsn": commit, "change_lsn": change});
        let (early, late) = ("00000001:00000001:0001", "00000002:00000001:0001");
        assert!(counts(at(early, "00000001:00000001:0009"), at(late, "NULL")));
        assert!(counts(at(early, "NULL"), at(early, "NULL")));
        assert!(!counts(at(late, "NULL"), at(early, "00000009:00000001:0001")));
        let snapshot = json!({"snapshot": "INITIAL", "snapshot_completed": false, "commit_lsn": early});
        assert!(counts(snapshot, at(early, "NULL")));
        assert!(counts(json!({"odd": 1}), at(early, "NULL")));
    }

    #[test]
    fn t_50_records_are_found_in_both_layouts() {
        let record = |source: &[(&str, &str)], name: Option<&str>| HistoryRecord {
            source: SourcePartition::new(source.iter().copied()),
            position: OffsetMap::new(),
            ts_ms: None,
            database_name: name.map(str::to_owned),
            schema_name: None,
            ddl: None,
            changes: None,
        };
        let long = SourcePartition::new([("server", "s1"), ("database", "shop")]);
        let short = SourcePartition::new([("server", "s1")]);
        let own = record(&[("server", "s1"), ("database", "shop")], Some("shop"));
        assert!(ByPlace.is_of(&own, &long) && ByPlace.is_of(&own, &short));
        let older = record(&[("server", "s1")], Some("shop"));
        assert!(ByPlace.is_of(&older, &long) && ByPlace.is_of(&older, &short));
        for other in [
            record(&[("server", "s1"), ("database", "crm")], Some("crm")),
            record(&[("server", "s1")], Some("crm")),
            record(&[("server", "s1")], None),
            record(&[("server", "s2"), ("database", "shop")], Some("shop")),
        ] {
            assert!(!ByPlace.is_of(&other, &long));
        }
    }
}

//! One record of a schema history: the text that Debezium writes, and reads.

use serde_json::{Map, Value as Json, json};

use crate::position::{OffsetMap, SourcePartition};
use crate::relational::table_id::TwoParts;
use crate::relational::table_json::TableChange;

/// Changes of structures that count behind a position.
#[derive(Debug, Clone, PartialEq)]
pub struct HistoryRecord {
    /// Whose log the position is of.
    pub source: SourcePartition,
    pub position: OffsetMap,
    /// When the record was made.
    pub ts_ms: Option<i64>,
    pub database_name: Option<String>,
    pub schema_name: Option<String>,
    /// The statement, where a source has it.
    pub ddl: Option<String>,
    /// `None` in records of versions that only kept statements.
    pub changes: Option<Vec<TableChange>>,
}

/// Why a text is no record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// It is something else: a damaged line, somebody else's message.
    #[error("no JSON object with source and position")]
    Foreign,
    /// It is one, but a structure in it cannot be read.
    #[error("{0}")]
    Unreadable(String),
}

impl HistoryRecord {
    /// Compact JSON. Names and statement are left out where there is none.
    pub fn to_text(&self) -> String {
        let mut out = Map::new();
        out.insert("source".into(), Json::Object(self.source.to_map()));
        out.insert("position".into(), Json::Object(self.position.clone()));
        if let Some(ts_ms) = self.ts_ms {
            out.insert("ts_ms".into(), ts_ms.into());
        }
        let texts = [("databaseName", &self.database_name), ("schemaName", &self.schema_name), ("ddl", &self.ddl)];
        for (name, text) in texts {
            if let Some(text) = text {
                out.insert(name.into(), json!(text));
            }
        }
        if let Some(changes) = &self.changes {
            out.insert("tableChanges".into(), changes.iter().map(TableChange::to_json).collect());
        }
        Json::Object(out).to_string()
    }

    /// `two`: what a table's name of two parts lacks.
    ///
    /// # Errors
    /// See [`RecordError`].
    pub fn parse(text: &[u8], two: TwoParts) -> Result<Self, RecordError> {
        let Ok(Json::Object(map)) = serde_json::from_slice::<Json>(text) else { return Err(RecordError::Foreign) };
        let object = |name: &str| map.get(name).and_then(Json::as_object);
        let (Some(source), Some(position)) = (object("source"), object("position")) else {
            return Err(RecordError::Foreign);
        };
        let text = |name: &str| map.get(name).and_then(Json::as_str).map(str::to_owned);
        let changes = match map.get("tableChanges") {
            None | Some(Json::Null) => None,
            Some(Json::Array(changes)) => {
                let changes: Result<Vec<_>, _> = changes.iter().map(|json| TableChange::from_json(json, two)).collect();
                Some(changes.map_err(|e| RecordError::Unreadable(e.to_string()))?)
            }
            Some(_) => return Err(RecordError::Unreadable("tableChanges is not a list".to_owned())),
        };
        Ok(Self {
            source: SourcePartition::from_map(source),
            position: position.clone(),
            ts_ms: map.get("ts_ms").and_then(Json::as_i64),
            database_name: text("databaseName"),
            schema_name: text("schemaName"),
            ddl: text("ddl"),
            changes,
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    fn parse(text: &str) -> Result<HistoryRecord, RecordError> {
        HistoryRecord::parse(text.as_bytes(), TwoParts::SchemaAndTable)
    }

    /// As the SQL Server connector of Debezium writes it.
    const STREAMED: &str = r#"{"source":{"server":"s1","database":"shop"},"position":{"commit_lsn":"00000027:00000ac0:0003","change_lsn":"00000027:00000ac0:0002","event_serial_no":1},"ts_ms":1700000000500,"databaseName":"shop","schemaName":"dbo","ddl":"N/A","tableChanges":[{"type":"ALTER","id":"\"shop\".\"dbo\".\"item\"","table":{"defaultCharsetName":null,"primaryKeyColumnNames":["id"],"columns":[{"name":"id","jdbcType":4,"typeName":"int identity","typeExpression":"int identity","charsetName":null,"length":10,"scale":0,"position":1,"optional":false,"autoIncremented":false,"generated":false,"comment":null,"hasDefaultValue":false}],"attributes":[]},"comment":null}]}"#;

    #[test]
    fn a_record_reads_and_writes_as_debezium_has_it() {
        let record = parse(STREAMED).unwrap();
        assert_eq!(record.source, SourcePartition::new([("database", "shop"), ("server", "s1")]));
        assert_eq!(record.position["event_serial_no"], 1);
        assert_eq!((record.ts_ms, record.ddl.as_deref()), (Some(1_700_000_000_500), Some("N/A")));
        assert_eq!(record.changes.as_ref().unwrap().len(), 1);
        assert_eq!(record.to_text(), STREAMED);
    }

    #[test]
    fn a_record_of_a_snapshot_has_no_statement() {
        let text = r#"{"source":{"server":"s1"},"position":{"commit_lsn":"1","snapshot":true,"snapshot_completed":false},"ts_ms":1,"databaseName":"shop","schemaName":"dbo","tableChanges":[]}"#;
        assert_eq!(parse(text).unwrap().to_text(), text);
        let explicit = text.replace(r#""tableChanges""#, r#""ddl":null,"tableChanges""#);
        assert_eq!(parse(&explicit).unwrap(), parse(text).unwrap());
    }

    #[test]
    fn records_of_old_versions_may_have_a_statement_only() {
        let old =
            parse(r#"{"source":{"server":"s"},"position":{},"databaseName":"d","ddl":"create table t"}"#).unwrap();
        assert_eq!((old.ts_ms, old.changes), (None, None));
    }

    #[test]
    fn what_is_no_record_is_told_from_what_is_damaged() {
        for text in ["", "x", "[]", "{}", r#"{"source":{}}"#, r#"{"source":{},"position":1}"#] {
            assert_eq!(parse(text).unwrap_err(), RecordError::Foreign, "{text}");
        }
        let damaged = |changes: &str| {
            parse(&format!(r#"{{"source":{{}},"position":{{}},"tableChanges":{changes}}}"#)).unwrap_err()
        };
        assert_eq!(damaged("1"), RecordError::Unreadable("tableChanges is not a list".to_owned()));
        assert_eq!(damaged("[{}]"), RecordError::Unreadable("tableChanges.type is missing".to_owned()));
    }
}

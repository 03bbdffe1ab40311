#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use proptest::prelude::*;
use serde_json::json;

use super::*;

fn lsn(text: &str) -> Lsn {
    Lsn::parse(text).unwrap()
}

fn read(offset: Json) -> Result<SqlServerPosition, String> {
    SqlServerPosition::from_offset(offset.as_object().unwrap())
}

fn written(offset: Json) -> String {
    Json::Object(read(offset).unwrap().to_offset()).to_string()
}

const COMMIT: &str = "0000002a:000003b8:0003";
const CHANGE: &str = "0000002a:000003b8:0002";

#[test]
fn sql_13_a_position_is_commit_change_and_serial_number() {
    for text in [
        // Of a snapshot, of the stream, and of an idle database.
        r#"{"snapshot":"INITIAL","snapshot_completed":false,"commit_lsn":"0000002a:000001a0:0038","change_lsn":"NULL","event_serial_no":1}"#,
        r#"{"snapshot":"INITIAL","snapshot_completed":true,"commit_lsn":"0000002a:000001a0:0038","change_lsn":"NULL","event_serial_no":1}"#,
        r#"{"commit_lsn":"0000002a:000003b8:0003","change_lsn":"0000002a:000003b8:0002","event_serial_no":2}"#,
        r#"{"commit_lsn":"0000002a:000005e0:0005","change_lsn":"NULL","event_serial_no":0}"#,
        r#"{"snapshot":"INITIAL","snapshot_completed":false,"undelivered":true,"commit_lsn":"NULL","change_lsn":"NULL","event_serial_no":1}"#,
        // With a transaction that is open, and an incremental snapshot under way.
        r#"{"commit_lsn":"0000002a:000003b8:0003","change_lsn":"0000002a:000003b8:0002","event_serial_no":2,"transaction_id":"0000002a:000003b8:0003","transaction_data_collection_order_shop.dbo.item":3}"#,
        r#"{"snapshot":"INCREMENTAL","snapshot_completed":true,"commit_lsn":"0000002a:000003b8:0003","change_lsn":"0000002a:000003b8:0002","event_serial_no":2,"incremental_snapshot_correlation_id":"x","more":[1,2]}"#,
    ] {
        let position = read(serde_json::from_str(text).unwrap()).unwrap();
        assert_eq!(Json::Object(position.to_offset()).to_string(), text);
        assert_eq!(SqlServerPosition::decode(&position.encode()).as_ref(), Some(&position), "{text}");
    }
}

#[test]
fn t_50_older_forms_of_offsets_are_read() {
    let today = format!(r#"{{"commit_lsn":"{COMMIT}","change_lsn":"{CHANGE}","event_serial_no":0}}"#);
    assert_eq!(written(json!({"commit_lsn": "0000002A000003B80003", "change_lsn": CHANGE})), today);
    let idle = format!(r#"{{"commit_lsn":"{COMMIT}","change_lsn":"NULL","event_serial_no":4}}"#);
    assert_eq!(written(json!({"commit_lsn": COMMIT, "change_lsn": null, "event_serial_no": "4"})), idle);
    let copied = |more: Json| {
        let mut offset = json!({"commit_lsn": COMMIT});
        offset.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let position = read(offset).unwrap();
        (position.snapshot, position.completed)
    };
    let initial = Some(SnapshotKind::Initial);
    assert_eq!(copied(json!({"snapshot": true, "snapshot_completed": true})), (initial, true));
    assert_eq!(copied(json!({"snapshot": "true"})), (initial, false));
    assert_eq!(copied(json!({"snapshot": "initial", "snapshot_completed": "true"})), (initial, true));
    assert_eq!(copied(json!({"snapshot": "false"})), (None, false));
    assert_eq!(copied(json!({"snapshot": false})), (None, false));
    assert_eq!(copied(json!({"snapshot": "BLOCKING"})), (Some(SnapshotKind::Blocking), false));
}

#[test]
fn what_cannot_be_read_names_its_member() {
    for (offset, expected) in [
        (
            json!({"commit_lsn": "abc"}),
            "Source offset 'commit_lsn' parameter value \"abc\" could not be converted to an LSN",
        ),
        (json!({"commit_lsn": COMMIT, "change_lsn": 7}), "'change_lsn' parameter value 7 could not"),
        (json!({"commit_lsn": COMMIT, "event_serial_no": -1}), "'event_serial_no' parameter value -1 could not"),
        (json!({"commit_lsn": COMMIT, "snapshot": "SOMETIMES"}), "to one of INITIAL, BLOCKING, INCREMENTAL"),
        (json!({"commit_lsn": COMMIT, "snapshot": 1}), "'snapshot' parameter value 1"),
        (
            json!({"commit_lsn": COMMIT, "snapshot_completed": "maybe"}),
            "'snapshot_completed' parameter value \"maybe\"",
        ),
        (json!({"sec": 4, "ord": 1}), "Source offset has no 'commit_lsn'"),
        (json!({"commit_lsn": "NULL", "change_lsn": CHANGE}), "a 'change_lsn' but no 'commit_lsn'"),
        (json!({"commit_lsn": COMMIT, "transaction_id": 5}), "'transaction_id' parameter value 5"),
    ] {
        let fault = read(offset).unwrap_err();
        assert!(fault.contains(expected), "{fault}");
    }
}

#[test]
fn sql_40_the_end_of_a_snapshot_is_behind_its_commit() {
    let completed = read(json!({"commit_lsn": COMMIT, "snapshot": "INITIAL", "snapshot_completed": true})).unwrap();
    assert!(completed.is_behind_commit() && !completed.is_unfinished());
    // An incremental snapshot says that it is complete together with a place inside of a transaction.
    let within =
        json!({"commit_lsn": COMMIT, "change_lsn": CHANGE, "snapshot": "INCREMENTAL", "snapshot_completed": true});
    assert!(!read(within).unwrap().is_behind_commit());
    let begun = read(json!({"commit_lsn": COMMIT, "snapshot": true, "snapshot_completed": false})).unwrap();
    assert!(begun.is_unfinished() && !begun.is_behind_commit());
}

#[test]
fn places_rise_with_commit_and_then_change() {
    let (low, high) = (lsn(CHANGE), lsn(COMMIT));
    let rising = [
        Place::default(),
        Place::at_commit(Some(low)),
        Place::new(low, low),
        Place::new(low, high),
        Place::at_commit(Some(high)),
        Place::new(high, low),
    ];
    assert!(rising.is_sorted_by(|a, b| a < b));
}

#[test]
fn ids_of_changes_rise_with_the_log() {
    let id = |change: &str, serial| {
        let position = SqlServerPosition::at(Place::new(lsn(COMMIT), lsn(change)), serial).encode();
        let stored = SqlServerCodec.from_offset(&SqlServerCodec.to_offset(&position)).unwrap();
        assert_eq!(SqlServerCodec.change_id(&stored), SqlServerCodec.change_id(&position));
        SqlServerCodec.change_id(&position)
    };
    let ids = [id(CHANGE, 1), id(CHANGE, 2), id(CHANGE, 10), id(COMMIT, 1)];
    assert!(ids.iter().all(|id| id.lsn == COMMIT));
    assert!(ids.is_sorted_by(|a, b| a.seq < b.seq), "{ids:?}");
}

fn any_lsn() -> impl Strategy<Value = Option<Lsn>> {
    proptest::option::of(any::<[u8; 10]>().prop_map(Lsn::new))
}

#[test]
fn bytes_behind_a_position_are_somebody_elses() {
    let bytes = SqlServerPosition::at(Place { commit: None, change: None }, 1).encode().place;
    assert!(SqlServerPosition::decode(&Position::new(bytes.clone())).is_some());
    let longer = [&bytes[..], &[0]].concat();
    assert_eq!(SqlServerPosition::decode(&Position::new(longer.into())), None);
}

proptest! {
    #[test]
    fn bytes_and_offset_say_the_same(commit: [u8; 10], change in any_lsn(), serial in 0..i64::MAX, kind in 0..4_usize, completed: bool) {
        let place = Place { commit: Some(Lsn::new(commit)), change };
        let mut position = SqlServerPosition::at(place, serial);
        if let Some(at) = kind.checked_sub(1) {
            position = position.in_snapshot(KINDS[at].0, completed);
        }
        prop_assert_eq!(SqlServerPosition::decode(&position.encode()), Some(position.clone()));
        prop_assert_eq!(SqlServerPosition::from_offset(&position.to_offset()), Ok(position));
    }

    #[test]
    fn bytes_of_somebody_else_do_no_harm(bytes: Vec<u8>) {
        let position = Position::new(bytes.into());
        if let Some(read) = SqlServerPosition::decode(&position) {
            prop_assert_eq!(read.encode(), position);
        }
    }
}

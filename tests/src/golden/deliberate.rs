//! Differences that are meant to be: what was recorded there is a fault that no user relies on, or what we
//! say is more. Each row names one place and why; the same rows, in the words of a user, are in
//! `docs/differences.md`.
//!
//! A row has to be true: a difference that it names and that does not occur is a fault.

use std::collections::BTreeSet;

use serde_json::Value;

use super::compare::{body, places};
use super::difference::Difference;
use super::mask::fits;
use super::recording::{Answered, Outcome, Recording};

/// One row. In texts, `*` stands for any text.
pub struct Deliberate {
    recording: &'static str,
    what: What,
    reason: &'static str,
}

enum What {
    /// Differences in this place, with this path, where ours is like this; so many times.
    Differs { place: &'static str, path: &'static str, got: &'static str, times: usize },
    /// Our answer to the call with this number. Members of the body that are not named are not compared.
    Answers { call: usize, status: u16, body: &'static str },
    /// The validation that the call with this number asks for finds these faults and no other: property, and
    /// the message behind its general beginning.
    Finds { call: usize, errors: &'static [(&'static str, &'static str)] },
}

use What::{Answers, Differs, Finds};

pub const DELIBERATE: &[Deliberate] = &[
    Deliberate {
        recording: "database-exclude-list",
        what: Differs { place: "topic ${prefix}.${db2}.c1", path: "", got: "no topic", times: 1 },
        reason: "a database that is excluded is excluded from the stream, too",
    },
    Deliberate {
        recording: "snapshot-views-and-capped",
        what: Differs { place: "topic ${prefix}.${db}.system.views", path: "", got: "no topic", times: 1 },
        reason: "a system collection that never streams is not copied",
    },
    Deliberate {
        recording: "snapshot-views-and-capped",
        what: Differs { place: "topic ${prefix}.${db}.v", path: "", got: "no topic", times: 1 },
        reason: "a view, which never streams, is not copied",
    },
    Deliberate {
        recording: "snapshot-views-and-capped",
        what: Differs {
            place: "topic ${prefix}.${db}.cap message 0 value",
            path: ".source.snapshot",
            got: "\"last\"",
            times: 1,
        },
        reason: "without the view behind it, this is the last document of the snapshot",
    },
    Deliberate {
        recording: "create-duplicate-and-get",
        what: Differs {
            place: "call * body",
            path: ".${name}.status.warnings",
            got: "[*no changes will be captured*]",
            times: 2,
        },
        reason: WARNINGS,
    },
    Deliberate {
        recording: "lifecycle",
        what: Differs { place: "call * body", path: ".warnings", got: "[*no changes will be captured*]", times: 8 },
        reason: WARNINGS,
    },
    Deliberate {
        recording: "smt-by-logical-table-router-envelope",
        what: Differs { place: "topic ${prefix}.${db}.all", path: "", got: "2 messages", times: 1 },
        reason: ENVELOPES,
    },
    Deliberate {
        recording: "smt-by-logical-table-router-envelope",
        what: Differs { place: "status", path: ".tasks[0]", got: "\"RUNNING\"", times: 1 },
        reason: ENVELOPES,
    },
    Deliberate {
        recording: "smt-by-logical-table-router-envelope",
        what: Differs { place: "offsets", path: ".length", got: "1", times: 1 },
        reason: ENVELOPES,
    },
    Deliberate {
        recording: "http-level",
        what: Differs { place: "call * content type", path: "", got: "application/json", times: 7 },
        reason: "an answer with a JSON body says so",
    },
    Deliberate {
        recording: "failed-task",
        what: Differs { place: "call * body", path: "*.progress", got: "{*${db}.c1: 1 of about 1 rows*}", times: 3 },
        reason: "the status tells how far a snapshot has come",
    },
    Deliberate {
        recording: "offsets-unchecked",
        what: Answers {
            call: 2,
            status: 400,
            body: r#"{"error_code": 400, "message": "The partition {\"wrong\":\"x\"} is not valid: the partition needs the member 'server_id' with the connector's topic.prefix"}"#,
        },
        reason: "a partition that no connector could have written is refused",
    },
    Deliberate {
        recording: "offsets-unchecked",
        what: Answers {
            call: 3,
            status: 200,
            body: r#"{"offsets": [{"partition": {"server_id": "${prefix}"}, "offset": {"sec": -1, "ord": -1, "resume_token": "<text>"}}]}"#,
        },
        reason: "the refused change left the offset as it was",
    },
    Deliberate {
        recording: "offsets-unchecked",
        what: Answers {
            call: 4,
            status: 400,
            body: r#"{"error_code": 400, "message": "The offset for partition {\"server_id\":\"${prefix}\"} is not valid: Source offset 'sec' parameter value \"abc\" could not be converted to an integer"}"#,
        },
        reason: "an offset that no connector could have written is refused",
    },
    Deliberate {
        recording: "validate-good",
        what: Differs {
            place: "call 0 *",
            path: ".configs[*].value",
            got: "{\"name\":\"internal.legacy.snapshot.max.threads\",*\"errors\":[]*}",
            times: 1,
        },
        reason: "every property has a value",
    },
    gap(
        0,
        &[
            ("capture.mode.full.update.type", "Value must be one of lookup, post_image"),
            ("capture.scope", "Value must be one of deployment, database, collection"),
            ("filters.match.mode", "Value must be one of regex, literal"),
            ("cursor.oversize.handling.mode", "Value must be one of fail, skip, split"),
            (
                "capture.mode",
                "Value must be one of change_streams, change_streams_update_full, change_streams_with_pre_image, change_streams_update_full_with_pre_image",
            ),
        ],
        "snapshot.mode=never works, and the modes that Debezium does not check are checked",
    ),
    gap(1, &[("capture.target", "A value is required when capture.scope is database")], CHECKED),
    gap(
        2,
        &[("cursor.pipeline", "Change stream pipeline JSON is invalid: a field name is expected at offset 2")],
        CHECKED,
    ),
    gap(
        3,
        &[(
            "cursor.oversize.skip.threshold",
            "A positive size in bytes is required when cursor.oversize.handling.mode is skip",
        )],
        CHECKED,
    ),
    gap(4, &[("mongodb.user", "A user name is required because mongodb.password is set")], NO_500),
    gap(
        5,
        &[(
            "field.renames",
            "a.b has invalid format (expecting <databaseName>.<collectionName>.<fieldName>.<nestedFieldName>:<newNestedFieldName>)",
        )],
        "the message names the property that it is about",
    ),
    gap(
        6,
        &[
            ("signal.data.collection", "exactly one collection as <databaseName>.<collectionName> is expected"),
            ("signal.enabled.channels", "Value must be one of source, kafka, file, rest, jmx, but is nope"),
        ],
        CHECKED,
    ),
    gap(
        7,
        &[
            ("schema.name.adjustment.mode", "Value must be one of none, avro_unicode, avro"),
            ("field.name.adjustment.mode", "Value must be one of none, avro_unicode, avro"),
        ],
        NO_500,
    ),
    gap(8, &[("skipped.operations", "Invalid operation 'x': c, u, d, t, r or none is expected")], NO_500),
    gap(
        9,
        &[(
            "topic.delimiter",
            "# has invalid format (only the underscore, hyphen, dot and alphanumeric characters are allowed)",
        )],
        CHECKED,
    ),
    gap(10, &[("capture.start.op.time", "A long value is expected")], CHECKED),
    gap(
        11,
        &[(
            "mongodb.authentication.class",
            "not supported, put the credentials/authMechanism into mongodb.connection.string",
        )],
        NO_500,
    ),
    gap(12, &[], "mongodb.connection.mode=replica_set works"),
];

const ENVELOPES: &str = "the router renames topic and schemas of whole change events instead of failing at them";
const WARNINGS: &str = "the status shows what a look at the source warned of: the lists let nothing pass";
const CHECKED: &str = "the property is checked";
const NO_500: &str = "a wrong value is an error on its property, not a failed validation";

const fn gap(call: usize, errors: &'static [(&'static str, &'static str)], reason: &'static str) -> Deliberate {
    Deliberate { recording: "validate-gaps", what: Finds { call, errors }, reason }
}

pub(super) struct Explained {
    pub(super) left: Vec<Difference>,
    pub(super) deliberate: usize,
    pub(super) stale: Vec<String>,
}

/// Takes out the differences that a row names.
pub(super) fn explain(recording: &Recording, got: &Outcome, differences: Vec<Difference>) -> Explained {
    let name = recording.scenario.name.as_str();
    let rows: Vec<&Deliberate> = DELIBERATE.iter().filter(|row| row.recording == name).collect();
    by(&rows, recording, got, differences)
}

fn by(rows: &[&Deliberate], recording: &Recording, got: &Outcome, mut left: Vec<Difference>) -> Explained {
    let (all, mut stale) = (left.len(), Vec::new());
    for Deliberate { what, reason, .. } in rows {
        let before = left.len();
        match what {
            Differs { place, path, got, times } => {
                left.retain(|d| !(fits(place, &d.place) && fits(path, &d.path) && fits(got, &d.got)));
                let found = before - left.len();
                if found != *times {
                    stale.push(format!("{place}{path} is {got}, {times} times, but {found} are so ({reason})"));
                }
            }
            Answers { call, status, body } => {
                let ours = answered(recording, got, *call, *status, body);
                stale.extend(take_call(recording, *call, ours, &mut left).map(|e| format!("{e} ({reason})")));
            }
            Finds { call, errors } => {
                let ours = found(recording, got, *call, errors);
                stale.extend(take_call(recording, *call, ours, &mut left).map(|e| format!("{e} ({reason})")));
            }
        }
    }
    Explained { deliberate: all - left.len(), left, stale }
}

/// Takes out the differences of a call whose answer is as the row says; else tells why the row is not true.
fn take_call(
    recording: &Recording,
    call: usize,
    as_the_row_says: Result<(), String>,
    left: &mut Vec<Difference>,
) -> Option<String> {
    let place = places(&recording.scenario).into_iter().nth(call).unwrap_or_default();
    if let Err(error) = as_the_row_says {
        return Some(format!("{place}: {error}"));
    }
    let before = left.len();
    left.retain(|d| !d.place.starts_with(&format!("{place} ")));
    (before == left.len()).then(|| format!("{place} has the recorded answer"))
}

/// The body of our answer to a call, if its status is this.
fn our_body(recording: &Recording, got: &Outcome, call: usize, status: u16) -> Result<Value, String> {
    let Outcome::Answers { answers } = got else { return Err("there are no answers".into()) };
    let answer: &Answered = answers.get(call).ok_or("there is no such call")?;
    let there = body(&recording.scenario, call, answer);
    if answer.status == status { Ok(there) } else { Err(format!("the answer is {} {there}", answer.status)) }
}

/// Whether our answer to a call is the one that a row tells.
fn answered(recording: &Recording, got: &Outcome, call: usize, status: u16, members: &str) -> Result<(), String> {
    let there = our_body(recording, got, call, status)?;
    let members: Value = serde_json::from_str(members).map_err(|error| error.to_string())?;
    for (name, value) in members.as_object().into_iter().flatten() {
        if there.get(name) != Some(value) {
            return Err(format!("{name} is {}", there.get(name).unwrap_or(&Value::Null)));
        }
    }
    Ok(())
}

/// Whether a validation finds exactly these faults.
fn found(recording: &Recording, got: &Outcome, call: usize, errors: &[(&str, &str)]) -> Result<(), String> {
    let there = our_body(recording, got, call, 200)?;
    let expected: BTreeSet<String> =
        errors.iter().map(|(name, text)| format!("The '{name}' value is invalid: {text}")).collect();
    let configs = there["configs"].as_array().into_iter().flatten();
    let ours: Vec<&Value> = configs.flat_map(|c| c["errors"].as_array().into_iter().flatten()).collect();
    let as_set: BTreeSet<String> = ours.iter().filter_map(|text| Some(text.as_str()?.to_owned())).collect();
    if as_set == expected && ours.len() == errors.len() && there["error_count"] == errors.len() {
        return Ok(());
    }
    Err(format!("{} errors: {ours:?}", there["error_count"]))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::recording::load;
    use super::*;

    fn one(what: What, differences: &[(&str, &str, &str)]) -> (usize, usize, usize) {
        let recording = json!({
            "format": 1, "versions": "",
            "scenario": {"name": "n", "kind": "rest", "description": "", "connector": {}, "setup": [],
                "steps": [{"call": {"method": "GET", "path": "/x"}}]},
            "recorded": {"answers": []},
        });
        let got = json!({"answers": [{"status": 400, "content_type": null, "body": {"a": 1, "b": 2}}]});
        let (recording, got) = (serde_json::from_value(recording), serde_json::from_value(got));
        let differences = differences
            .iter()
            .map(|(place, path, got)| Difference { path: (*path).to_owned(), ..Difference::new(*place, "", got) });
        let row = Deliberate { recording: "n", what, reason: "r" };
        let explained = by(&[&row], &recording.expect("a recording"), &got.expect("an outcome"), differences.collect());
        (explained.left.len(), explained.deliberate, explained.stale.len())
    }

    #[test]
    fn a_row_takes_out_what_it_names_and_nothing_else() {
        let differences = [("p", ".a", "1"), ("p", ".a", "2"), ("p", ".b", "1"), ("q", ".a", "1")];
        let row = |times| Differs { place: "p", path: ".a", got: "*", times };
        assert_eq!(one(row(2), &differences), (2, 2, 0));
        assert_eq!(one(row(1), &differences), (2, 2, 1), "one more than the row says");
        assert_eq!(one(row(3), &[]), (0, 0, 1), "a row that is not true any more");
    }

    #[test]
    fn a_row_tells_another_answer_exactly() {
        let differences =
            [("call 0 GET /x body", ".a", "1"), ("call 0 GET /x status", "", "400"), ("call 1 GET", "", "")];
        let row = |status, body| Answers { call: 0, status, body };
        assert_eq!(one(row(400, r#"{"a":1}"#), &differences), (1, 2, 0));
        assert_eq!(one(row(400, r#"{"a":2}"#), &differences), (3, 0, 1));
        assert_eq!(one(row(401, "{}"), &differences), (3, 0, 1));
        assert_eq!(one(row(400, "{}"), &differences[2..]), (1, 0, 1), "nothing differs there");
    }

    #[test]
    fn lists_name_recordings_that_exist() -> anyhow::Result<()> {
        let names: BTreeSet<String> = load()?.into_iter().map(|r| r.scenario.name).collect();
        let unknown: Vec<&str> =
            DELIBERATE.iter().map(|row| row.recording).filter(|name| !names.contains(*name)).collect();
        assert!(unknown.is_empty(), "{unknown:?}");
        Ok(())
    }
}

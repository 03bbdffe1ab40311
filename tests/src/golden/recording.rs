//! The format of a recording. Unknown members are errors: a step or a mask that this runner does not know
//! must not be passed over.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use serde_json::{Map, Value};

const FORMAT: u32 = 1;

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recording {
    format: u32,
    pub scenario: Scenario,
    /// What was recorded, in words.
    pub versions: String,
    pub recorded: Outcome,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    pub name: String,
    pub description: String,
    #[serde(default)]
    pub kind: Kind,
    /// The connector's configuration, with placeholders.
    pub connector: Map<String, Value>,
    /// Before the connector is created.
    pub setup: Vec<Step>,
    pub steps: Vec<Step>,
    #[serde(default)]
    pub masks: Vec<ExtraMask>,
    /// Topics whose order follows from a hash.
    #[serde(default)]
    pub unordered_topics: Vec<String>,
    /// Topics that never fall quiet, and how many of their messages count.
    #[serde(default)]
    pub sampled_topics: BTreeMap<String, usize>,
    /// Seconds without a message after which nothing more is expected.
    pub quiet_s: Option<f64>,
    /// The topic of the documents that `wait_streaming` writes.
    pub probe_topic: Option<String>,
    /// Why the recorded behaviour is a fault of the recorded system.
    pub fault: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    #[default]
    Messages,
    Rest,
}

/// A mask that only one scenario needs: a value at a path, or a pattern in the text.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExtraMask {
    /// A name in which `*` stands for any text.
    pub topic: String,
    pub part: Part,
    pub path: Option<String>,
    pub class: Option<Class>,
    pub regex: Option<String>,
    pub replace: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Part {
    Key,
    Value,
}

/// How a value is hidden.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// A positive integer.
    Int,
    /// A text that is numbered in the order of its first appearance in the topic.
    Id,
    /// A text that is a UUID.
    Uuid,
    /// Any text.
    Text,
    /// An array whose order means nothing; hides no value.
    Set,
}

/// One step; the first member names it.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub enum Step {
    Insert {
        insert: String,
        docs: Vec<Value>,
        db: Option<String>,
    },
    Update {
        update: String,
        filter: Value,
        change: Value,
    },
    Replace {
        replace: String,
        filter: Value,
        doc: Value,
    },
    Delete {
        delete: String,
        filter: Value,
        #[serde(default)]
        many: bool,
    },
    Command {
        command: Value,
        db: Option<String>,
    },
    DropDatabase {
        drop_database: String,
    },
    Transaction {
        transaction: Vec<Step>,
        #[serde(default)]
        abort: bool,
    },
    Wait {
        wait: usize,
    },
    Streaming {
        wait_streaming: Value,
    },
    Sleep {
        sleep: f64,
    },
    State {
        state: States,
    },
    Reconfigure {
        reconfigure: Map<String, Value>,
    },
    Restart {
        restart: String,
    },
    Pause {
        pause: Value,
    },
    Resume {
        resume: Value,
    },
    Stop {
        stop: Value,
    },
    Call {
        call: Call,
    },
    Until {
        until: Until,
    },
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct States {
    pub connector: String,
    pub tasks: Vec<String>,
}

/// A REST call whose answer is kept.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call {
    pub method: String,
    pub path: String,
    pub body: Option<Value>,
    /// Sent as it is, in place of `body`.
    pub raw_body: Option<String>,
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    pub keep: Option<Keep>,
    /// Members of the body to hide, by name.
    #[serde(default)]
    pub masks: BTreeMap<String, Class>,
    /// Patterns in the body's texts and what stands for them.
    #[serde(default)]
    pub regex_masks: Vec<(String, String)>,
}

/// The part of a long body that a call is about.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Keep {
    /// Objects of a list that have these members.
    Where(Map<String, Value>),
    /// Members of an object.
    Names(Vec<String>),
    /// Elements of a list, by themselves or by their name.
    Items(Vec<String>),
    /// Properties of a validation's answer.
    Configs(Vec<String>),
    /// Of a validation's answer, what is wrong.
    ErrorsOnly(bool),
}

/// A GET that is repeated until its answer is so.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Until {
    pub path: String,
    pub at: Vec<Value>,
    pub equals: Option<Value>,
    pub status: Option<u16>,
}

/// What came out of a run: of a recording or of ours.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub enum Outcome {
    Messages {
        topics: BTreeMap<String, Vec<Message>>,
        /// States of connector and tasks; null if there is no connector.
        status: Value,
        /// The committed offsets, after the connector was stopped.
        offsets: Value,
    },
    Answers {
        answers: Vec<Answered>,
    },
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Message {
    pub partition: i32,
    pub key: Option<String>,
    /// None: a tombstone.
    pub value: Option<String>,
    pub headers: Vec<(String, Option<String>)>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answered {
    pub status: u16,
    pub content_type: Option<String>,
    pub body: Value,
}

/// Every recording of the checkout, by name.
pub fn load() -> Result<Vec<Recording>> {
    let mut all = Vec::new();
    for folder in ["mongodb", "rest"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden").join(folder);
        for entry in std::fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
            let path = entry?.path();
            all.push(read(&path).with_context(|| path.display().to_string())?);
        }
    }
    all.sort_by(|a, b| a.scenario.name.cmp(&b.scenario.name));
    Ok(all)
}

fn read(path: &Path) -> Result<Recording> {
    let recording: Recording = serde_json::from_slice(&std::fs::read(path)?)?;
    let name = &recording.scenario.name;
    if recording.format != FORMAT {
        bail!("format {} instead of {FORMAT}", recording.format);
    }
    if path.file_stem().is_none_or(|stem| stem != name.as_str()) {
        bail!("the file holds the scenario {name}");
    }
    Ok(recording)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_that_is_not_known_is_an_error() {
        let step = |text| serde_json::from_str::<Step>(text);
        assert!(matches!(step(r#"{"wait": 3}"#), Ok(Step::Wait { wait: 3 })));
        assert!(matches!(step(r#"{"pause": null}"#), Ok(Step::Pause { .. })));
        assert!(step(r#"{"wait": 3, "timeout_s": 1}"#).is_err());
        assert!(step(r#"{"create_topic": "t"}"#).is_err());
    }

    #[test]
    fn the_checkout_has_recordings_of_both_kinds() -> Result<()> {
        let all = load()?;
        assert!(all.iter().any(|r| r.scenario.kind == Kind::Rest));
        assert!(all.iter().any(|r| r.scenario.kind == Kind::Messages));
        Ok(())
    }
}

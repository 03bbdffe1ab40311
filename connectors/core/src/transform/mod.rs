//! Transforms: where a record may be changed, dropped or multiplied between source and converter.
//!
//! No transform is built in yet; a configuration that names one is refused, because a record without
//! it would be another record. An empty [`Chain`] is what the encoder asks for with
//! [`Chain::is_empty`] and then passes by.
//!
//! Invariants: a transform never changes a position; an error leaves nothing in the output.

use thalweg_config::Properties;
use thalweg_config::rule::split_plain_list;

use crate::error::{Error, Result};
use crate::record::Record;

/// Changes records. Owned by one encoder.
pub trait Transform: Send {
    /// Full class name, for error reports.
    fn class(&self) -> &'static str;

    /// Appends what becomes of the record: nothing drops it. All results stand for the one source
    /// event: its position counts when the last of them is delivered.
    fn apply(&mut self, record: Record, out: &mut Vec<Record>) -> Result<()>;
}

/// The transforms of a connector in their order.
#[derive(Default)]
pub struct Chain {
    steps: Vec<Box<dyn Transform>>,
    /// Output of the step before, kept for its memory.
    between: Vec<Record>,
}

impl Chain {
    pub fn new(steps: Vec<Box<dyn Transform>>) -> Self {
        Self { steps, between: Vec::new() }
    }

    /// Whether the configuration's transforms can be built; the text for the message of the option
    /// `transforms` if not.
    pub fn check(config: &Properties) -> Result<(), String> {
        let names = split_plain_list(config.get("transforms").unwrap_or_default());
        let Some(first) = names.first() else { return Ok(()) };
        let class = config.get(&format!("transforms.{first}.type")).unwrap_or("no type given");
        Err(format!("transforms are not supported yet: {} ({first}: {class})", names.join(", ")))
    }

    pub fn from_config(config: &Properties) -> Result<Self> {
        Self::check(config).map_err(|text| {
            Error::config(format!("The 'transforms' value is invalid: {text}"))
                .advise("remove transforms from the connector and apply them behind Kafka")
        })?;
        Ok(Self::default())
    }

    /// Nothing to do: the encoder takes the record as it is.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Appends what becomes of the record. On an error, which names the class that failed, `out` is
    /// as it was.
    pub fn apply(&mut self, record: Record, out: &mut Vec<Record>) -> Result<(), ChainError> {
        let start = out.len();
        out.push(record);
        for step in &mut self.steps {
            self.between.extend(out.drain(start..));
            for record in self.between.drain(..) {
                if let Err(error) = step.apply(record, out) {
                    out.truncate(start);
                    return Err(ChainError { class: step.class(), error });
                }
            }
        }
        Ok(())
    }
}

/// A transform that failed.
#[derive(Debug)]
pub struct ChainError {
    pub class: &'static str,
    pub error: Error,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use crate::error::{ErrorKind, Phase};
    use crate::position::Position;
    use crate::record::{Datum, Headers};

    fn record(topic: &str) -> Record {
        Record {
            topic: topic.into(),
            partition: None,
            key: Datum::none(),
            value: Datum::none(),
            headers: Headers::default(),
            timestamp: None,
            position: Position::default(),
        }
    }

    /// Drops `drop`, fails at `fail`, doubles the rest with its letter.
    struct Letter(&'static str);

    impl Transform for Letter {
        fn class(&self) -> &'static str {
            self.0
        }
        fn apply(&mut self, record: Record, out: &mut Vec<Record>) -> Result<()> {
            if record.topic.starts_with("fail") {
                out.push(record);
                return Err(Error::new(ErrorKind::ValueInvalid, Phase::Convert, "no"));
            }
            if !record.topic.starts_with("drop") {
                for n in 0..2 {
                    let topic = format!("{}{}{n}", record.topic, self.0);
                    out.push(Record { topic: topic.into(), ..record.clone() });
                }
            }
            Ok(())
        }
    }

    fn topics(records: &[Record]) -> Vec<&str> {
        records.iter().map(|r| &*r.topic).collect()
    }

    #[test]
    fn steps_run_in_order_and_may_drop_and_multiply() {
        let mut chain = Chain::new(vec![Box::new(Letter("a")), Box::new(Letter("b"))]);
        let mut out = vec![record("kept")];
        chain.apply(record("t"), &mut out).unwrap();
        chain.apply(record("drop"), &mut out).unwrap();
        assert_eq!(topics(&out), ["kept", "ta0b0", "ta0b1", "ta1b0", "ta1b1"]);
        let failed = chain.apply(record("fail"), &mut out).unwrap_err();
        assert_eq!((failed.class, &*failed.error.message), ("a", "no"));
        assert_eq!(out.len(), 5);
        chain.apply(record("u"), &mut out).unwrap();
        assert_eq!(out.len(), 9, "nothing of the failed record was left inside");
    }

    #[test]
    fn an_empty_chain_changes_nothing() {
        let mut chain = Chain::from_config(&Properties::from([("transforms", " , ")])).unwrap();
        assert!(chain.is_empty());
        let mut out = Vec::new();
        chain.apply(record("t"), &mut out).unwrap();
        assert_eq!(topics(&out), ["t"]);
    }

    #[test]
    fn configured_transforms_are_refused_by_name() {
        let config = Properties::from([
            ("transforms", "route, unwrap"),
            ("transforms.route.type", "org.apache.kafka.connect.transforms.RegexRouter"),
        ]);
        assert_eq!(
            Chain::check(&config).unwrap_err(),
            "transforms are not supported yet: route, unwrap (route: org.apache.kafka.connect.transforms.RegexRouter)"
        );
        let error = Chain::from_config(&config).err().unwrap();
        assert_eq!(error.kind, ErrorKind::Config);
        assert!(error.message.starts_with("The 'transforms' value is invalid: transforms are not supported yet"));
    }
}

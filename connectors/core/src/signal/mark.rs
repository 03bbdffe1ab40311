//! Where signals of channels outside of the source stand, and how far a stored offset contains them.
//!
//! A signal is confirmed to its channel when an offset is stored that contains what followed from it. Whoever
//! takes over before that hears it again, and knows from the offset that it was followed. Per channel the
//! last one is kept and no list: signals of a channel are followed in its order.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value as Json, json};
use tracing::warn;

use super::Signal;
use crate::position::OffsetMap;

/// Member of an offset that says which signals were followed, as JSON text.
pub const FOLLOWED: &str = "thalweg_signals";

/// Place of a signal in its channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// Its name in `signal.enabled.channels`.
    pub channel: &'static str,
    /// What the numbers count: the messages of a topic, the lines of a file.
    pub series: Arc<str>,
    /// Rises within the series.
    pub number: i64,
    /// When the signal was given, in milliseconds since 1970, where the channel knows it; else 0. A topic
    /// that is created again counts from 0 under its old name.
    pub time_ms: i64,
}

/// A signal from outside of the source.
#[derive(Debug, Clone, PartialEq)]
pub struct Received {
    /// `None`: a task begins to listen behind this mark. Kept by whoever has followed none before, so that
    /// its successor does not begin at a place that other tasks have moved on.
    pub signal: Option<Signal>,
    pub mark: Mark,
}

/// The last signals that were followed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Followed {
    /// By channel: series, number, and the latest time in the series.
    last: BTreeMap<String, (Arc<str>, i64, i64)>,
}

impl Followed {
    pub fn note(&mut self, mark: &Mark) {
        let before = self.last.get(mark.channel).filter(|(series, ..)| *series == mark.series);
        let time_ms = before.map_or(mark.time_ms, |(.., time_ms)| mark.time_ms.max(*time_ms));
        self.last.insert(mark.channel.to_owned(), (mark.series.clone(), mark.number, time_ms));
    }

    /// Whether the signal was followed, or one that stood behind it.
    pub fn contains(&self, mark: &Mark) -> bool {
        self.last.get(mark.channel).is_some_and(|(series, number, time_ms)| {
            *series == mark.series && mark.number <= *number && mark.time_ms <= *time_ms
        })
    }

    /// The number of the last signal of this series that was followed.
    pub fn number(&self, channel: &str, series: &str) -> Option<i64> {
        self.last.get(channel).filter(|(known, ..)| **known == *series).map(|(_, number, _)| *number)
    }

    /// Whether the signal is the last one of its channel that was followed.
    pub fn ends_with(&self, mark: &Mark) -> bool {
        let last = self.last.get(mark.channel);
        last.is_some_and(|(series, number, _)| *series == mark.series && *number == mark.number)
    }

    pub fn forget(&mut self, channel: &str) {
        self.last.remove(channel);
    }

    pub fn is_empty(&self) -> bool {
        self.last.is_empty()
    }

    /// Writes the member [`FOLLOWED`], if there is anything to say.
    pub fn add_to_offset(&self, offset: &mut OffsetMap) {
        if !self.last.is_empty() {
            let member = |(channel, (series, number, time_ms)): (&String, &(Arc<str>, i64, i64))| {
                (channel.clone(), json!([&**series, number, time_ms]))
            };
            let members: serde_json::Map<String, Json> = self.last.iter().map(member).collect();
            offset.insert(FOLLOWED.into(), Json::Object(members).to_string().into());
        }
    }

    /// What an offset says. If it cannot be read, that is a warning: signals that are heard again are
    /// followed again then.
    pub fn from_offset(offset: &OffsetMap) -> Self {
        let Some(text) = offset.get(FOLLOWED) else { return Self::default() };
        let read = text.as_str().and_then(|text| serde_json::from_str::<BTreeMap<String, _>>(text).ok());
        let Some(last) = read else {
            warn!("the member {FOLLOWED} of the stored offset cannot be read; signals may be followed twice");
            return Self::default();
        };
        let last = last.into_iter().map(|(channel, (series, number, time_ms)): (_, (String, i64, i64))| {
            (channel, (series.into(), number, time_ms))
        });
        Self { last: last.collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(channel: &'static str, series: &str, number: i64, time_ms: i64) -> Mark {
        Mark { channel, series: series.into(), number, time_ms }
    }

    #[test]
    fn what_stands_at_or_before_the_last_one_was_followed() {
        let mut followed = Followed::default();
        assert!(followed.is_empty() && !followed.contains(&mark("kafka", "t", 0, 0)));
        followed.note(&mark("kafka", "t", 16, 2_000));
        // The clocks of those who write differ.
        followed.note(&mark("kafka", "t", 17, 1_990));
        followed.note(&mark("file", "a", 3, 0));
        for (known, mark) in [
            (true, mark("kafka", "t", 16, 2_000)),
            (true, mark("kafka", "t", 17, 1_990)),
            (false, mark("kafka", "t", 18, 2_000)),
            (false, mark("kafka", "u", 1, 0)),
            (true, mark("file", "a", 3, 0)),
            (false, mark("file", "b", 1, 0)),
        ] {
            assert_eq!(followed.contains(&mark), known, "{mark:?}");
        }
        assert!(followed.ends_with(&mark("kafka", "t", 17, 1_990)));
        assert!(!followed.ends_with(&mark("kafka", "t", 16, 2_000)) && !followed.ends_with(&mark("file", "b", 3, 0)));
        // A topic that was created again begins with 0.
        assert!(!followed.contains(&mark("kafka", "t", 0, 3_000)));
        followed.note(&mark("kafka", "t", 0, 3_000));
        assert!(!followed.contains(&mark("kafka", "t", 1, 3_001)));
        followed.forget("kafka");
        assert!(!followed.contains(&mark("kafka", "t", 0, 3_000)) && !followed.is_empty());
    }

    #[test]
    fn an_offset_keeps_it() {
        let mut followed = Followed::default();
        let mut offset = OffsetMap::new();
        followed.add_to_offset(&mut offset);
        assert!(offset.is_empty() && Followed::from_offset(&offset).is_empty());
        followed.note(&mark("kafka", "shop-signal", 16, 2_000));
        followed.note(&mark("file", "0-a", 3, 0));
        followed.add_to_offset(&mut offset);
        assert_eq!(offset[FOLLOWED], r#"{"file":["0-a",3,0],"kafka":["shop-signal",16,2000]}"#);
        assert_eq!(Followed::from_offset(&offset), followed);
        for odd in [json!(1), json!("{"), json!("{\"kafka\":1}")] {
            offset.insert(FOLLOWED.into(), odd);
            assert!(Followed::from_offset(&offset).is_empty());
        }
    }
}

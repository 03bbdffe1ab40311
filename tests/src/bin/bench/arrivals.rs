//! Counting what arrives in topics, without being in the broker's way meanwhile.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::message::Message;
use rdkafka::{ClientConfig, Offset, TopicPartitionList};
use tokio_util::sync::CancellationToken;

/// Everything is to be there within this.
const DEADLINE: Duration = Duration::from_secs(300);
/// Between two looks at the ends of the topics.
const LOOK: Duration = Duration::from_millis(25);
/// Nothing more comes when the ends have stood still for so long: commit markers count there, too, so
/// the ends alone do not say how many messages there are.
const STILL: Duration = Duration::from_millis(250);

/// Topics of one partition, and where each ended when this was made.
pub struct Arrivals {
    bootstrap: String,
    topics: Vec<(String, i64)>,
    deadline: Duration,
}

impl Arrivals {
    /// Of a topic from its beginning, there or not.
    pub fn of_new(bootstrap: String, topic: &str) -> Self {
        Self { bootstrap, topics: vec![(topic.to_owned(), 0)], deadline: DEADLINE }
    }

    /// Of existing topics from their present ends.
    pub async fn from_here(bootstrap: String, topics: Vec<String>) -> Result<Self> {
        let topics = topics.into_iter().map(|t| (t, 0)).collect();
        let mut arrivals = Self { bootstrap, topics, deadline: DEADLINE };
        tokio::task::spawn_blocking(move || {
            let ends = arrivals.ends(&consumer(&arrivals.bootstrap)?).context("asking for the ends of the topics")?;
            for ((_, from), end) in arrivals.topics.iter_mut().zip(ends) {
                *from = end;
            }
            Ok(arrivals)
        })
        .await?
    }

    /// Waits for so long instead of the usual time.
    pub fn patient(self, deadline: Duration) -> Self {
        Self { deadline, ..self }
    }

    /// Waits until so many messages are there; gives append times of the first and the last in ms
    /// since the epoch.
    pub async fn wait(self, messages: usize) -> Result<(i64, i64)> {
        let given_up = CancellationToken::new();
        let _guard = given_up.clone().drop_guard();
        tokio::task::spawn_blocking(move || self.count(messages, &given_up)).await?
    }

    fn ends(&self, probe: &BaseConsumer) -> Result<Vec<i64>> {
        let mut list = TopicPartitionList::new();
        for (topic, _) in &self.topics {
            list.add_partition_offset(topic, 0, Offset::End)?;
        }
        // One request for all of them.
        let found = probe.offsets_for_times(list, Duration::from_secs(5))?;
        let end = |(topic, _): &(String, i64)| match found.find_partition(topic, 0).map(|p| p.offset()) {
            Some(Offset::Offset(end)) => end,
            _ => 0,
        };
        Ok(self.topics.iter().map(end).collect())
    }

    /// Looks at the ends first, which costs the broker little, then reads everything back.
    fn count(&self, messages: usize, given_up: &CancellationToken) -> Result<(i64, i64)> {
        let probe = consumer(&self.bootstrap)?;
        let end = Instant::now() + self.deadline;
        let (mut arrived, mut since) = (0, Instant::now());
        while arrived < messages as i64 || since.elapsed() < STILL {
            if Instant::now() > end || given_up.is_cancelled() {
                bail!("{} holds {arrived} of {messages} messages after {:?}", self.named(), self.deadline);
            }
            std::thread::park_timeout(LOOK);
            // The topic may not be there yet.
            let Ok(ends) = self.ends(&probe) else { continue };
            let now = ends.iter().zip(&self.topics).map(|(end, (_, from))| end - from).sum();
            if now != arrived {
                (arrived, since) = (now, Instant::now());
            }
        }
        drop(probe);
        let consumer = consumer(&self.bootstrap)?;
        let mut list = TopicPartitionList::new();
        for (topic, from) in &self.topics {
            list.add_partition_offset(topic, 0, Offset::Offset(*from))?;
        }
        consumer.assign(&list)?;
        let (mut first, mut last, mut seen) = (i64::MAX, 0, 0);
        while seen < messages {
            match consumer.poll(Duration::from_secs(1)) {
                Some(Ok(message)) => {
                    let time = message.timestamp().to_millis().context("no append time")?;
                    first = first.min(time);
                    last = last.max(time);
                    seen += 1;
                }
                Some(Err(e)) => bail!("reading {} back: {e}", self.named()),
                None if Instant::now() > end || given_up.is_cancelled() => {
                    bail!("{} gave {seen} of {messages} messages", self.named())
                }
                None => {}
            }
        }
        Ok((first, last))
    }

    fn named(&self) -> String {
        match &self.topics[..] {
            [(topic, _)] => topic.clone(),
            topics => format!("{} and others, {} topics,", topics.first().map_or("", |t| &t.0), topics.len()),
        }
    }
}

fn consumer(bootstrap: &str) -> Result<BaseConsumer> {
    Ok(ClientConfig::new()
        .set("bootstrap.servers", bootstrap)
        .set("group.id", "bench")
        .set("enable.auto.commit", "false")
        .set("queued.max.messages.kbytes", "16384")
        .create()?)
}

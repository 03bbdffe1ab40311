//! One run of a scenario: its steps in order, and what came out.
//!
//! A wait that ends in vain is noted and the run goes on: what is missing then shows as a difference. After
//! the first one, later waits are short.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use reqwest::Method;
use serde_json::{Map, Value, json};
use thalweg_services::{Rest, until};

use super::call;
use super::names::Names;
use super::observe::Observer;
use super::recording::{Answered, Kind, Message, Outcome, Scenario, States, Step};
use super::replay::Surroundings;
use super::shorten::shortened;
use super::write::Writer;

const MESSAGES: Duration = Duration::from_secs(25);
const STATE: Duration = Duration::from_secs(40);
/// After a wait in vain.
const LATE: Duration = Duration::from_secs(3);
/// Within this time a stream that runs shows a probe.
const PROBE: Duration = Duration::from_millis(400);
const QUIET_SECONDS: f64 = 2.0;

pub(super) struct Run<'a> {
    scenario: &'a Scenario,
    names: Names,
    rest: &'a Rest,
    writer: Writer,
    observer: Observer,
    connector: String,
    config: Map<String, Value>,
    probes: String,
    /// Messages that the steps have waited for.
    expected: usize,
    late: bool,
    /// What was waited for in vain.
    pub(super) notes: Vec<String>,
    answers: Vec<Answered>,
}

impl<'a> Run<'a> {
    pub(super) async fn new(scenario: &'a Scenario, surroundings: &'a Surroundings) -> Result<Self> {
        let names = Names::new(&surroundings.uri, &surroundings.bootstrap);
        let steady = scenario.sampled_topics.keys().map(|topic| names.fill(topic));
        Ok(Self {
            observer: Observer::new(&surroundings.bootstrap, &names.fill("${prefix}"), steady)?,
            writer: Writer::new(&surroundings.uri, names.clone()).await?,
            rest: &surroundings.rest,
            connector: names.fill("/connectors/${name}"),
            config: names.fill_members(&scenario.connector),
            probes: names.fill(scenario.probe_topic.as_deref().unwrap_or("${prefix}.${db}.probe")),
            names,
            scenario,
            expected: 0,
            late: false,
            notes: Vec::new(),
            answers: Vec::new(),
        })
    }

    pub(super) async fn perform(&mut self) -> Result<Outcome> {
        let scenario = self.scenario;
        for step in &scenario.setup {
            self.step(step).await?;
        }
        if scenario.kind == Kind::Messages {
            self.create().await?;
        }
        for step in &scenario.steps {
            self.step(step).await?;
        }
        if scenario.kind == Kind::Rest {
            return Ok(Outcome::Answers { answers: std::mem::take(&mut self.answers) });
        }
        let quiet = Duration::from_secs_f64(scenario.quiet_s.unwrap_or(QUIET_SECONDS));
        self.observer.read_until_quiet(quiet).await?;
        let status = self.states().await?;
        let offsets = self.stored_offsets().await?;
        Ok(Outcome::Messages { topics: self.topics(), status, offsets })
    }

    /// Removes what the run made.
    pub(super) async fn clean_up(&self) -> Result<()> {
        for name in ["${name}", "${other}"] {
            self.rest.delete(&self.names.fill(&format!("/connectors/{name}"))).await?;
        }
        for database in ["${db}", "${db2}"] {
            self.writer.drop_database(database).await?;
        }
        self.observer.delete_topics().await
    }

    fn topics(&self) -> std::collections::BTreeMap<String, Vec<Message>> {
        let mut topics = self.observer.topics();
        topics.remove(self.probes.as_str());
        let blank = |text: &Option<String>| text.as_deref().map(|text| self.names.blank(text));
        let blanked = topics.into_iter().map(|(topic, messages)| {
            let topic = self.names.blank(topic);
            let most = self.scenario.sampled_topics.get(&topic).copied().unwrap_or(usize::MAX);
            let messages = messages.into_iter().take(most).map(|m| Message {
                partition: m.partition,
                key: blank(&m.key),
                value: blank(&m.value).map(shortened),
                headers: m.headers.iter().map(|(name, value)| (name.clone(), blank(value))).collect(),
            });
            let messages = messages.collect();
            (topic, messages)
        });
        blanked.collect()
    }

    async fn states(&self) -> Result<Value> {
        let (code, status) = self.rest.get(&format!("{}/status", self.connector)).await?;
        if code != 200 {
            return Ok(Value::Null);
        }
        let tasks: Vec<&Value> = status["tasks"].as_array().into_iter().flatten().map(|task| &task["state"]).collect();
        Ok(json!({"connector": status["connector"]["state"], "tasks": tasks}))
    }

    async fn stored_offsets(&mut self) -> Result<Value> {
        if self.states().await?.is_null() {
            return Ok(Value::Null);
        }
        self.must(Method::PUT, "/stop", None).await?;
        self.await_states("STOPPED", &[]).await?;
        let (code, mut body) = self.rest.get(&format!("{}/offsets", self.connector)).await?;
        Ok(if code == 200 { self.names.blank_all(&body["offsets"].take()) } else { json!({"status": code}) })
    }

    async fn step(&mut self, step: &Step) -> Result<()> {
        if self.writer.write(step).await? {
            return Ok(());
        }
        match step {
            Step::Wait { wait } => self.await_messages(*wait).await,
            Step::Streaming { .. } => self.await_stream().await,
            Step::Sleep { sleep } => {
                // Part of what was recorded: time in which something could come that must not.
                self.observer.read_until(Duration::from_secs_f64(*sleep), |_| false).await?;
                Ok(())
            }
            Step::State { state: States { connector, tasks } } => {
                self.await_states(connector, &tasks.iter().map(String::as_str).collect::<Vec<_>>()).await
            }
            Step::Reconfigure { reconfigure } => {
                self.config.extend(self.names.fill_members(reconfigure));
                let config = Value::from(self.config.clone());
                self.must(Method::PUT, "/config", Some(&config)).await?;
                self.await_states("RUNNING", &["RUNNING"]).await
            }
            Step::Restart { restart } => {
                self.must(Method::POST, &format!("/restart{restart}"), None).await?;
                self.await_states("RUNNING", &["RUNNING"]).await
            }
            Step::Pause { .. } => {
                self.must(Method::PUT, "/pause", None).await?;
                self.await_states("PAUSED", &["PAUSED"]).await
            }
            Step::Resume { .. } => {
                self.must(Method::PUT, "/resume", None).await?;
                self.await_states("RUNNING", &["RUNNING"]).await
            }
            Step::Stop { .. } => {
                self.must(Method::PUT, "/stop", None).await?;
                self.await_states("STOPPED", &[]).await
            }
            Step::Call { call } => {
                let answer = call::call(self.rest, &self.names, call).await?;
                self.answers.push(answer);
                Ok(())
            }
            Step::Until { until } => {
                if let Err(error) = call::await_answer(self.rest, &self.names, until).await {
                    self.notes.push(format!("{error:#}"));
                }
                Ok(())
            }
            other => bail!("a step that belongs into a transaction or is not known: {other:?}"),
        }
    }

    async fn must(&self, method: Method, path: &str, body: Option<&Value>) -> Result<()> {
        let path = format!("{}{path}", self.connector);
        let (status, answer) = self.rest.call(method.clone(), &path, body).await?;
        if status >= 300 {
            bail!("{method} {}: {status} {answer}", self.names.blank(&path));
        }
        Ok(())
    }

    async fn create(&mut self) -> Result<()> {
        let name = self.names.fill("${name}");
        self.rest.create(&name, self.config.clone().into()).await?;
        // A task that fails at once is a result like any other.
        let settled = until("the task runs or has failed", STATE, || async {
            let states = self.states().await?;
            let over = states["connector"] == "RUNNING"
                && states["tasks"].as_array().is_some_and(|t| t.len() == 1 && (t[0] == "RUNNING" || t[0] == "FAILED"));
            if over { Ok(Some(())) } else { bail!("states are {states}") }
        });
        if let Err(error) = settled.await {
            self.in_vain(format!("{error:#}"));
        }
        Ok(())
    }

    fn in_vain(&mut self, note: String) {
        self.late = true;
        self.notes.push(note);
    }

    async fn await_states(&mut self, connector: &str, tasks: &[&str]) -> Result<()> {
        let wanted = json!({"connector": connector, "tasks": tasks});
        let limit = if self.late { LATE } else { STATE };
        let what = format!("states are {wanted}");
        let reached = until(&what, limit, || async {
            let states = self.states().await?;
            if states == wanted { Ok(Some(())) } else { bail!("states are {states}") }
        });
        if let Err(error) = reached.await {
            self.in_vain(format!("{error:#}"));
        }
        Ok(())
    }

    async fn await_messages(&mut self, further: usize) -> Result<()> {
        self.expected += further;
        let limit = if self.late { LATE } else { MESSAGES };
        let (expected, probes) = (self.expected, self.probes.clone());
        if !self.observer.read_until(limit, |o| o.count_without(&probes) >= expected).await? {
            let count = self.observer.count_without(&probes);
            self.in_vain(format!("{expected} messages were expected so far, {count} came"));
        }
        Ok(())
    }

    /// Writes documents until one arrives, so that nothing written later is missed.
    async fn await_stream(&mut self) -> Result<()> {
        let end = Instant::now() + if self.late { LATE } else { MESSAGES };
        let (probes, before) = (self.probes.clone(), self.observer.count(&self.probes));
        let mut number = i64::from(fastrand::u32(..)) << 20;
        while Instant::now() < end {
            number += 1;
            self.writer.probe("probe", number).await?;
            if self.observer.read_until(PROBE, |o| o.count(&probes) > before).await? {
                return Ok(());
            }
        }
        self.in_vain("the stream did not begin".into());
        Ok(())
    }
}

//! `topic.creation.*`: which new topic gets how many partitions, replicas and which configuration.
//!
//! Rules are Kafka Connect's. They apply once any property under `topic.creation.` is set (and the
//! worker allows it); the `default` group takes every topic that no other group wants. Expressions
//! match whole names, case counts. Topic configurations of the default group are not inherited.
//!
//! The topic of definitions in the format `repstance` has one partition whatever the rules say, because
//! its order is that of the source. The topic of dead letters has one as well, its own number of replicas,
//! and is created without any rules.
//!
//! It does not: talk to a broker or check that a topic configuration exists.

use fancy_regex::Regex;
use thalweg_config::Properties;
use thalweg_config::connector::creates_topics;
use thalweg_config::rule::{java_pattern, split_list};
use thalweg_core::repstance;

use crate::settings::SettingProblem;

const PREFIX: &str = "topic.creation.";
const GROUPS: &str = "topic.creation.groups";
const DEFAULT: &str = "default";
const FACTOR: &str = "replication.factor";
const PARTITIONS: &str = "partitions";

/// How a new topic is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicSpec {
    /// -1: the brokers' default.
    pub replication: i32,
    /// -1: the brokers' default.
    pub partitions: i32,
    /// Topic configuration, e.g. `cleanup.policy`.
    pub config: Vec<(String, String)>,
}

impl TopicSpec {
    /// Whether the topic would refuse records without a key.
    pub fn is_compacted(&self) -> bool {
        self.config.iter().any(|(k, v)| k == "cleanup.policy" && v.split(',').any(|p| p.trim() == "compact"))
    }
}

#[derive(Debug)]
struct Group {
    include: Regex,
    exclude: Option<Regex>,
    spec: TopicSpec,
}

/// The rules of one connector.
#[derive(Debug)]
pub struct TopicRules {
    groups: Vec<Group>,
    /// `None`: other topics are left to the broker.
    default: Option<TopicSpec>,
    /// Topics with one partition, by name.
    single: Vec<(String, TopicSpec)>,
    /// Worth telling the user once.
    pub warnings: Vec<String>,
}

impl TopicRules {
    /// `None` if topics are left to the broker's automatic creation.
    ///
    /// # Errors
    /// Every property that is wrong or missing.
    pub fn parse(worker: &Properties, connector: &Properties) -> Result<Option<Self>, Vec<SettingProblem>> {
        let given = connector.below(PREFIX);
        if !creates_topics(worker) {
            return Ok(None);
        }
        let dead_letters = dead_letters(connector);
        if given.0.is_empty() {
            let single: Vec<_> = dead_letters.into_iter().collect();
            let rules = Self { groups: Vec::new(), default: None, single, warnings: Vec::new() };
            return Ok((!rules.single.is_empty()).then_some(rules));
        }
        let mut parser = Parser { given, problems: Vec::new(), warnings: Vec::new() };
        let mut rules = parser.rules();
        if let Some(rules) = &mut rules {
            let replication = rules.default.as_ref().map_or(-1, |spec| spec.replication);
            let single = |topic| (topic, TopicSpec { replication, partitions: 1, config: Vec::new() });
            rules.single.extend(dead_letters);
            rules.single.extend(repstance::ddl_topic(connector).map(single));
        }
        if parser.problems.is_empty() { Ok(rules) } else { Err(parser.problems) }
    }

    /// How `topic` is made if it does not exist; `None` if that is the broker's.
    ///
    /// # Errors
    /// An expression that needs too many steps for this name.
    pub fn spec(&self, topic: &str) -> Result<Option<&TopicSpec>, fancy_regex::Error> {
        if let Some((_, spec)) = self.single.iter().find(|(name, _)| name == topic) {
            return Ok(Some(spec));
        }
        for group in &self.groups {
            let excluded = match &group.exclude {
                Some(exclude) => exclude.is_match(topic)?,
                None => false,
            };
            if !excluded && group.include.is_match(topic)? {
                return Ok(Some(&group.spec));
            }
        }
        Ok(self.default.as_ref())
    }
}

/// The topic for records that are left out.
fn dead_letters(connector: &Properties) -> Option<(String, TopicSpec)> {
    let given = |name: &str| connector.get(name).map(str::trim).filter(|text| !text.is_empty());
    let topic = given("errors.deadletterqueue.topic.name")?;
    given("errors.tolerance").filter(|text| text.eq_ignore_ascii_case("all"))?;
    // What is no number is reported with the option.
    let replication =
        given("errors.deadletterqueue.topic.replication.factor").and_then(|n| n.parse().ok()).unwrap_or(3);
    Some((topic.to_owned(), TopicSpec { replication, partitions: 1, config: Vec::new() }))
}

struct Parser {
    /// Below `topic.creation.`; what is understood is removed.
    given: Properties,
    problems: Vec<SettingProblem>,
    warnings: Vec<String>,
}

impl Parser {
    fn rules(&mut self) -> Option<TopicRules> {
        let names = self.names();
        let replication = self.number(DEFAULT, FACTOR, None);
        let partitions = self.number(DEFAULT, PARTITIONS, None);
        for ignored in ["include", "exclude"] {
            if self.given.remove(&format!("{DEFAULT}.{ignored}")).is_some() {
                self.warnings
                    .push(format!("{PREFIX}{DEFAULT}.{ignored} is ignored: the default group takes every topic"));
            }
        }
        let (replication, partitions) = (replication.unwrap_or(-1), partitions.unwrap_or(-1));
        let config = self.config(DEFAULT);
        let default = Some(TopicSpec { replication, partitions, config });
        let mut groups = Vec::new();
        for name in names {
            let include = self.expressions(&name, "include");
            let exclude = self.expressions(&name, "exclude");
            let spec = TopicSpec {
                replication: self.number(&name, FACTOR, Some(replication)).unwrap_or(-1),
                partitions: self.number(&name, PARTITIONS, Some(partitions)).unwrap_or(-1),
                config: self.config(&name),
            };
            match include {
                Some(include) => groups.push(Group { include, exclude, spec }),
                None => self.missing(&name, "include", "a group needs the expressions of its topics"),
            }
        }
        for key in std::mem::take(&mut self.given).0.into_keys() {
            self.warnings.push(format!("{PREFIX}{key} is ignored: no such group in {GROUPS}"));
        }
        Some(TopicRules { groups, default, single: Vec::new(), warnings: std::mem::take(&mut self.warnings) })
    }

    fn names(&mut self) -> Vec<String> {
        let text = self.given.remove("groups").unwrap_or_default();
        let mut names: Vec<String> = Vec::new();
        for name in text.split(',').map(str::trim).filter(|n| !n.is_empty()) {
            if name == DEFAULT {
                self.warnings.push(format!("{GROUPS}: the group {DEFAULT} exists always and need not be listed"));
            } else if names.iter().any(|n| n == name) {
                self.problem(GROUPS.to_owned(), format!("the group {name} is listed twice"));
            } else {
                names.push(name.to_owned());
            }
        }
        names
    }

    fn number(&mut self, group: &str, what: &str, fallback: Option<i32>) -> Option<i32> {
        let key = format!("{group}.{what}");
        let Some(text) = self.given.remove(&key) else {
            if fallback.is_none() {
                self.missing(group, what, "required when topic.creation is used; -1 leaves it to the brokers");
            }
            return fallback;
        };
        let most = if what == FACTOR { i32::from(i16::MAX) } else { i32::MAX };
        match text.trim().parse::<i32>() {
            Ok(n) if n == -1 || (1..=most).contains(&n) => Some(n),
            _ => {
                self.problem(format!("{PREFIX}{key}"), "must be at least 1, or -1 for the brokers' default".to_owned());
                None
            }
        }
    }

    /// The expressions of a list as one that matches whole names; `None` if there are none.
    fn expressions(&mut self, group: &str, what: &str) -> Option<Regex> {
        let key = format!("{group}.{what}");
        let text = self.given.remove(&key)?;
        let items = split_list(&text);
        if items.is_empty() {
            return None;
        }
        // As the check of the option reads them.
        let patterns: Vec<String> = items.iter().map(|item| java_pattern(item)).collect();
        for (item, pattern) in items.iter().zip(&patterns) {
            if let Err(error) = Regex::new(pattern) {
                self.problem(format!("{PREFIX}{key}"), format!("the expression {item} is not valid: {error}"));
                // Something to go on with; the problem forbids its use.
                return Regex::new("$^").ok();
            }
        }
        Regex::new(&format!(r"\A(?:{})\z", patterns.join("|"))).ok()
    }

    /// Every other property of the group.
    fn config(&mut self, group: &str) -> Vec<(String, String)> {
        let prefix = format!("{group}.");
        let config: Vec<_> = self.given.below(&prefix).0.into_iter().map(|(k, v)| (k, v.trim().to_owned())).collect();
        for (key, _) in &config {
            self.given.remove(&format!("{prefix}{key}"));
        }
        config
    }

    fn missing(&mut self, group: &str, what: &str, reason: &str) {
        self.problem(format!("{PREFIX}{group}.{what}"), reason.to_owned());
    }

    fn problem(&mut self, key: String, reason: String) {
        self.problems.push(SettingProblem { key, reason });
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    fn parse(pairs: &[(&str, &str)]) -> Result<Option<TopicRules>, Vec<SettingProblem>> {
        let connector = pairs.iter().map(|(k, v)| (format!("topic.creation.{k}"), (*v).to_owned())).collect();
        TopicRules::parse(&Properties::new(), &connector)
    }

    fn keys(pairs: &[(&str, &str)]) -> Vec<String> {
        parse(pairs).unwrap_err().into_iter().map(|p| p.key).collect()
    }

    #[test]
    fn kfk_06_groups_in_their_order() {
        let rules = parse(&[
            ("groups", "compacted, default , inventory"),
            ("default.replication.factor", "3"),
            ("default.partitions", "10"),
            ("default.retention.ms", "1000"),
            ("default.include", "x"),
            ("compacted.include", "shop\\.keys\\..*, .*State"),
            ("compacted.exclude", "shop\\.keys\\.old"),
            ("compacted.cleanup.policy", "compact"),
            ("inventory.include", "shop\\..*"),
            ("inventory.partitions", " 20 "),
            ("inventory.replication.factor", "-1"),
            ("other.partitions", "1"),
        ])
        .unwrap()
        .unwrap();
        let spec = |topic: &str| rules.spec(topic).unwrap().unwrap().clone();
        let compacted = spec("shop.keys.a");
        assert!(compacted.is_compacted());
        assert_eq!((compacted.replication, compacted.partitions), (3, 10), "numbers fall back to the default group");
        assert_eq!(
            compacted.config,
            [("cleanup.policy".to_owned(), "compact".to_owned())],
            "its configuration does not"
        );
        assert_eq!(spec("orderState"), compacted);
        assert_eq!(spec("shop.keys.old").partitions, 20, "excluded from the first, wanted by the next");
        assert_eq!((spec("shop.x").replication, spec("shop.x").partitions), (-1, 20));
        assert_eq!(spec("SHOP.x").partitions, 10, "case counts");
        assert_eq!(spec("my.shop.x").partitions, 10, "whole names");
        assert_eq!(spec("a").config, [("retention.ms".to_owned(), "1000".to_owned())]);
        assert_eq!(rules.warnings.len(), 3, "{:?}", rules.warnings);
    }

    #[test]
    fn kfk_06_expressions_are_read_as_the_check_of_the_options_reads_them() {
        let rules = parse(&[
            ("groups", "quoted"),
            ("default.replication.factor", "1"),
            ("default.partitions", "1"),
            ("quoted.include", r"\Qa.b\E, \<c\>"),
            ("quoted.partitions", "7"),
        ])
        .unwrap()
        .unwrap();
        let partitions = |topic: &str| rules.spec(topic).unwrap().unwrap().partitions;
        assert_eq!((partitions("a.b"), partitions("<c>")), (7, 7));
        assert_eq!((partitions("axb"), partitions("c"), partitions("A.B")), (1, 1, 1));
    }

    #[test]
    fn kfk_06_what_is_missing_or_wrong_is_named() {
        assert_eq!(
            keys(&[("groups", "a")]),
            [
                "topic.creation.default.replication.factor",
                "topic.creation.default.partitions",
                "topic.creation.a.include"
            ]
        );
        assert_eq!(
            keys(&[("default.replication.factor", "0"), ("default.partitions", "many")]),
            ["topic.creation.default.replication.factor", "topic.creation.default.partitions"]
        );
        let ok = [("default.replication.factor", "1"), ("default.partitions", "1")];
        assert_eq!(keys(&[&ok[..], &[("groups", "a,a"), ("a.include", ".*")]].concat()), ["topic.creation.groups"]);
        assert_eq!(keys(&[&ok[..], &[("groups", "a"), ("a.include", "(")]].concat()), ["topic.creation.a.include"]);
        assert_eq!(keys(&[&ok[..], &[("groups", "a"), ("a.include", " , ")]].concat()), ["topic.creation.a.include"]);
    }

    #[test]
    fn dead_letters_have_a_topic_of_their_own() {
        let mut connector = Properties::from([("errors.deadletterqueue.topic.name", "dead")]);
        assert!(TopicRules::parse(&Properties::new(), &connector).unwrap().is_none(), "nothing is left out");
        connector.set("errors.tolerance", "all");
        let rules = TopicRules::parse(&Properties::new(), &connector).unwrap().unwrap();
        let spec = |replication| TopicSpec { replication, partitions: 1, config: Vec::new() };
        assert_eq!(rules.spec("dead").unwrap(), Some(&spec(3)));
        assert_eq!(rules.spec("other").unwrap(), None, "left to the broker");
        connector.set("errors.deadletterqueue.topic.replication.factor", "1");
        connector.set("topic.creation.default.partitions", "5");
        connector.set("topic.creation.default.replication.factor", "2");
        let rules = TopicRules::parse(&Properties::new(), &connector).unwrap().unwrap();
        assert_eq!(rules.spec("dead").unwrap(), Some(&spec(1)));
        assert_eq!(rules.spec("other").unwrap().unwrap().partitions, 5);
        let worker = Properties::from([("topic.creation.enable", "false")]);
        assert!(TopicRules::parse(&worker, &connector).unwrap().is_none());
    }

    #[test]
    fn definitions_have_one_partition() {
        let given = [
            ("topic.creation.default.partitions", "10"),
            ("topic.creation.default.replication.factor", "3"),
            ("topic.creation.default.cleanup.policy", "compact"),
            ("topic.prefix", "shop"),
        ];
        let spec = |format: &str| {
            let mut connector = Properties::from(given);
            connector.set("thalweg.format", format);
            let rules = TopicRules::parse(&Properties::new(), &connector).unwrap().unwrap();
            rules.spec("shop.ddl").unwrap().unwrap().clone()
        };
        assert_eq!(spec("repstance"), TopicSpec { replication: 3, partitions: 1, config: Vec::new() });
        assert_eq!(spec("debezium").partitions, 10);
    }

    #[test]
    fn without_properties_or_against_the_worker_nothing_is_created() {
        assert!(parse(&[]).unwrap().is_none());
        let worker = Properties::from([("topic.creation.enable", "false")]);
        let connector = Properties::from([("topic.creation.default.partitions", "1")]);
        assert!(TopicRules::parse(&worker, &connector).unwrap().is_none());
    }
}

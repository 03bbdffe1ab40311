//! Names of topics and schemas.
//!
//! A topic is the prefix and the parts of a collection's name joined by the delimiter, with every
//! character that Kafka refuses replaced; its schemas are named after it. Names are made once per
//! collection and kept, as far as the bound goes; two collections that come out as one name are
//! reported once.
//!
//! It does not: create topics.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use thalweg_config::{Properties, Settings};

use crate::convert::Role;
use crate::error::{Error, ErrorKind, Phase, Result};
use crate::transform::java_regex::{JavaRegex, Replacement};

/// Longest topic name that Kafka takes.
const MAX_TOPIC_LENGTH: usize = 249;

/// How the characters of schema and field names are made fit for Avro
/// (`schema.name.adjustment.mode`, `field.name.adjustment.mode`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NameAdjustment {
    #[default]
    None,
    /// Invalid characters become `_`; a leading digit gets a `_` before it.
    Avro,
    /// Invalid characters, and `_` itself, become `_u` and their UTF-16 code in hex.
    AvroUnicode,
}

/// Values of the two options, in the order in which they are listed.
pub const ADJUSTMENTS: &[&str] = &["none", "avro", "avro_unicode"];

impl NameAdjustment {
    /// From the canonical text of the option; anything unknown is `None`.
    pub fn from_option(text: &str) -> Self {
        match text {
            "avro" => Self::Avro,
            "avro_unicode" => Self::AvroUnicode,
            _ => Self::None,
        }
    }

    /// What `field.name.adjustment.mode` is if it is not set: with Avro named in the connector's own
    /// configuration names become valid in Avro. The node's converter does not count, as in Debezium.
    pub fn default_for_fields(connector: &Properties) -> Self {
        let is_avro = |role: Role| {
            let class = connector.get(role.property()).and_then(|name| role.class(name).ok());
            class.is_some_and(|class| class.class.ends_with(".AvroConverter"))
        };
        if is_avro(Role::Key) || is_avro(Role::Value) { Self::Avro } else { Self::None }
    }

    /// The canonical text of the option.
    pub const fn as_option(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Avro => "avro",
            Self::AvroUnicode => "avro_unicode",
        }
    }

    /// A schema name; dots are its separators and stay.
    pub fn schema_name<'a>(self, name: &'a str) -> Cow<'a, str> {
        self.adjust(name, true)
    }

    /// A field name; a dot is as invalid as any other character.
    pub fn field_name<'a>(self, name: &'a str) -> Cow<'a, str> {
        self.adjust(name, false)
    }

    /// The field names of one struct.
    ///
    /// # Errors
    /// Two fields that come out as one; the error names both.
    pub fn field_names<'a>(self, names: impl IntoIterator<Item = &'a str>) -> Result<Vec<Arc<str>>> {
        let mut origins: HashMap<Arc<str>, &str> = HashMap::new();
        let mut adjusted = Vec::new();
        for name in names {
            let result: Arc<str> = self.field_name(name).into();
            if let Some(earlier) = origins.insert(result.clone(), name) {
                let message =
                    format!("fields '{earlier}' and '{name}' both become '{result}' by field.name.adjustment.mode");
                return Err(Error::new(ErrorKind::Config, Phase::Start, message)
                    .advise("exclude or rename one of the fields, or choose another field.name.adjustment.mode"));
            }
            adjusted.push(result);
        }
        Ok(adjusted)
    }

    fn adjust(self, name: &str, dots: bool) -> Cow<'_, str> {
        if self == Self::None {
            return Cow::Borrowed(name);
        }
        let valid = |at: usize, b: u8| match b {
            b'_' => self == Self::Avro,
            b'.' => at > 0 && dots,
            b => b.is_ascii_alphabetic() || (at > 0 && b.is_ascii_digit()),
        };
        if name.bytes().enumerate().all(|(at, b)| valid(at, b)) {
            return Cow::Borrowed(name);
        }
        let mut out = String::with_capacity(name.len() + 8);
        for (at, c) in name.char_indices() {
            match u8::try_from(c) {
                Ok(b) if b.is_ascii() && valid(at, b) => out.push(c),
                _ if self == Self::AvroUnicode => {
                    push_codes(c, &mut out);
                }
                _ => {
                    out.extend(std::iter::repeat_n('_', c.len_utf16()));
                    if at == 0 && c.is_ascii_digit() {
                        out.push(c);
                    }
                }
            }
        }
        Cow::Owned(out)
    }
}

/// The UTF-16 code of a character, as Debezium writes it where the character itself is not allowed.
fn push_codes(c: char, out: &mut String) {
    for unit in c.encode_utf16(&mut [0; 2]) {
        // Up to two hex digits are filled to four, three stay three.
        let hex = format!("{unit:x}");
        out.push_str(if hex.len() <= 2 { "_u00" } else { "_u" });
        out.push_str(&hex);
    }
}

/// Classes that `topic.naming.strategy` may name.
pub const NAMING_STRATEGIES: [&str; 6] = [
    "io.debezium.schema.SchemaTopicNamingStrategy",
    "io.debezium.schema.DefaultTopicNamingStrategy",
    "io.debezium.schema.SchemaRegexTopicNamingStrategy",
    "io.debezium.schema.DefaultRegexTopicNamingStrategy",
    "io.debezium.schema.SchemaUnicodeTopicNamingStrategy",
    "io.debezium.schema.DefaultUnicodeTopicNamingStrategy",
];

/// How the topic of a collection is named (`topic.naming.strategy`). Other topics are not concerned.
#[derive(Debug, Clone, Default)]
pub enum NamingStrategy {
    /// Characters that Kafka refuses become `_`.
    #[default]
    Plain,
    /// They, and `_` itself, become `_u` and their UTF-16 code in hex.
    Unicode,
    /// As the plain one, and then by an expression.
    Regex(Arc<TopicRoute>),
}

impl NamingStrategy {
    /// From the options of a connector.
    ///
    /// # Errors
    /// The option at fault and the text about it.
    pub fn from_settings(s: &Settings) -> Result<Self, (&'static str, String)> {
        let text = |name| s.text_or_empty(name);
        Self::new(text("topic.naming.strategy").trim(), text("topic.regex"), text("topic.replacement"))
    }

    /// From the class and the options `topic.regex` and `topic.replacement`, which only some classes read.
    ///
    /// # Errors
    /// The option at fault and the text about it.
    pub fn new(class: &str, regex: &str, replacement: &str) -> Result<Self, (&'static str, String)> {
        if class.ends_with("UnicodeTopicNamingStrategy") {
            return Ok(Self::Unicode);
        }
        if !class.ends_with("RegexTopicNamingStrategy") {
            return Ok(Self::Plain);
        }
        if regex.trim().is_empty() {
            return Err(("topic.regex", "A value is required".to_owned()));
        }
        if replacement.trim().is_empty() {
            return Err(("topic.replacement", "topic.replacement must be non-empty if topic.regex is set.".to_owned()));
        }
        let regex = JavaRegex::new(regex).map_err(|text| ("topic.regex", text))?;
        let replacement = Replacement::new(replacement, &regex).map_err(|text| ("topic.replacement", text))?;
        Ok(Self::Regex(Arc::new(TopicRoute { regex, replacement })))
    }
}

/// Another name for topics that an expression matches as a whole.
#[derive(Debug)]
pub struct TopicRoute {
    regex: JavaRegex,
    replacement: Replacement,
}

impl TopicRoute {
    /// The new name; the old one if the expression does not match, or leaves nothing of it.
    fn topic(&self, name: &str) -> Arc<str> {
        match self.regex.replaced(name, &self.replacement) {
            Ok(Some(routed)) if !routed.is_empty() => routed.into(),
            Ok(Some(_)) => {
                tracing::warn!(topic = name, "topic.replacement leaves no name; the topic keeps its own");
                name.into()
            }
            Ok(None) => name.into(),
            Err(error) => {
                tracing::warn!(topic = name, %error, "topic.regex cannot be decided; the topic keeps its name");
                name.into()
            }
        }
    }
}

/// A name that Kafka takes and from which the original one follows.
fn unicode_topic(name: &str) -> String {
    let mut out = String::with_capacity(name.len() + 16);
    for c in name.chars() {
        if c.is_ascii_alphanumeric() || matches!(c, '.' | '-') {
            out.push(c);
        } else {
            push_codes(c, &mut out);
        }
    }
    out.truncate(MAX_TOPIC_LENGTH);
    out
}

/// A topic name that Kafka takes: characters outside of `[A-Za-z0-9._-]` become `_` (one per UTF-16
/// unit), `.` and `..` are replaced, and what is too long is cut.
pub fn sanitized_topic(name: &str) -> Cow<'_, str> {
    let valid = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
    match name {
        "." => return Cow::Borrowed("_"),
        ".." => return Cow::Borrowed("__"),
        _ if name.len() <= MAX_TOPIC_LENGTH && name.bytes().all(valid) => return Cow::Borrowed(name),
        _ => {}
    }
    let mut out = String::with_capacity(name.len());
    for c in name.chars() {
        match u8::try_from(c) {
            Ok(b) if valid(b) => out.push(c),
            _ => out.extend(std::iter::repeat_n('_', c.len_utf16())),
        }
    }
    out.truncate(MAX_TOPIC_LENGTH);
    Cow::Owned(out)
}

/// The settings behind the names.
#[derive(Debug, Clone)]
pub struct NamingRules {
    /// `topic.prefix`.
    pub prefix: Arc<str>,
    /// `topic.delimiter`.
    pub delimiter: String,
    /// `topic.heartbeat.prefix`.
    pub heartbeat_prefix: String,
    /// `topic.heartbeat.name`: the whole name, instead of one made from prefixes.
    pub heartbeat_name: Option<String>,
    /// `topic.transaction`.
    pub transaction: String,
    /// `schema.name.adjustment.mode`.
    pub schema_names: NameAdjustment,
    /// `topic.naming.strategy`.
    pub strategy: NamingStrategy,
    /// `topic.cache.size`: collections whose names are kept.
    pub cache_size: usize,
}

impl NamingRules {
    /// Debezium's defaults.
    pub fn new(prefix: impl Into<Arc<str>>) -> Self {
        Self {
            prefix: prefix.into(),
            delimiter: ".".to_owned(),
            heartbeat_prefix: "__debezium-heartbeat".to_owned(),
            heartbeat_name: None,
            transaction: "transaction".to_owned(),
            schema_names: NameAdjustment::None,
            strategy: NamingStrategy::Plain,
            cache_size: 10_000,
        }
    }

    /// From the options that all connectors have.
    ///
    /// # Errors
    /// Name and message of the option that is wrong.
    pub fn from_settings(s: &Settings) -> Result<Self, (&'static str, String)> {
        let text = |name: &str| s.text(name).map(str::trim).filter(|t| !t.is_empty()).map(str::to_owned);
        Ok(Self {
            delimiter: s.text_or_empty("topic.delimiter").to_owned(),
            heartbeat_prefix: text("topic.heartbeat.prefix")
                .or_else(|| text("heartbeat.topics.prefix"))
                .unwrap_or_default(),
            heartbeat_name: text("topic.heartbeat.name"),
            transaction: s.text_or_empty("topic.transaction").to_owned(),
            schema_names: NameAdjustment::from_option(s.text_or_empty("schema.name.adjustment.mode")),
            strategy: NamingStrategy::from_settings(s)?,
            ..Self::new(s.text_or_empty("topic.prefix"))
        })
    }
}

/// Names of one collection or table.
#[derive(Debug, PartialEq, Eq)]
pub struct CollectionNames {
    pub topic: Arc<str>,
    /// Schema of the key, `<topic>.Key` adjusted.
    pub key: Arc<str>,
    /// Schema of a row, `<topic>.Value` adjusted.
    pub row: Arc<str>,
    /// Schema of the envelope, `<topic>.Envelope` adjusted.
    pub envelope: Arc<str>,
}

/// Makes names and keeps them. Shared by the readers of a task; asked once per collection.
pub struct TopicNaming {
    rules: NamingRules,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    /// By the parts, joined with a character that no name has.
    collections: HashMap<String, Arc<CollectionNames>>,
    /// Who had a topic or a schema name first.
    origins: HashMap<Arc<str>, String>,
}

/// Two collections with one name.
#[derive(Debug, PartialEq, Eq)]
struct Collision {
    name: Arc<str>,
    first: String,
    second: String,
}

impl TopicNaming {
    pub fn new(rules: NamingRules) -> Self {
        Self { rules, known: Mutex::default() }
    }

    pub fn rules(&self) -> &NamingRules {
        &self.rules
    }

    /// Names for a collection given by the parts of its own name (`[db, collection]`).
    pub fn collection(&self, parts: &[&str]) -> Arc<CollectionNames> {
        let (names, collisions) = self.look_up(parts);
        // An expression brings collections together on purpose.
        let by_chance = !matches!(self.rules.strategy, NamingStrategy::Regex(_));
        for Collision { name, first, second } in collisions.into_iter().filter(|_| by_chance) {
            tracing::warn!(%name, first, second, "two collections have the same name in kafka");
        }
        names
    }

    fn look_up(&self, parts: &[&str]) -> (Arc<CollectionNames>, Vec<Collision>) {
        let key = parts.join("\0");
        let mut known = self.known.lock();
        if let Some(names) = known.collections.get(&key) {
            return (names.clone(), Vec::new());
        }
        if known.collections.len() >= self.rules.cache_size.max(1) {
            *known = Known::default();
        }
        let names = Arc::new(self.make(parts));
        let own = parts.join(".");
        let mut collisions = Vec::new();
        let topic = (names.topic.clone(), own.clone());
        // Equal topics have equal schema names; only different ones are worth a word of their own.
        let schema = (names.envelope.clone(), names.topic.to_string());
        for (name, origin) in [topic, schema] {
            match known.origins.get(&name) {
                Some(first) if *first != origin => {
                    collisions.push(Collision { name, first: first.clone(), second: origin });
                }
                Some(_) => {}
                None => {
                    known.origins.insert(name, origin);
                }
            }
        }
        known.collections.insert(key, names.clone());
        (names, collisions)
    }

    fn make(&self, parts: &[&str]) -> CollectionNames {
        let mut full = self.rules.prefix.to_string();
        for part in parts {
            full.push_str(&self.rules.delimiter);
            full.push_str(part);
        }
        let topic: Arc<str> = match &self.rules.strategy {
            NamingStrategy::Plain => sanitized_topic(&full).into(),
            NamingStrategy::Unicode => unicode_topic(&full).into(),
            NamingStrategy::Regex(route) => route.topic(&sanitized_topic(&full)),
        };
        let schema = |kind: &str| Arc::from(self.rules.schema_names.schema_name(&format!("{topic}.{kind}")));
        CollectionNames { key: schema("Key"), row: schema("Value"), envelope: schema("Envelope"), topic }
    }

    /// `topic.heartbeat.name`, or `<topic.heartbeat.prefix>.<topic.prefix>`.
    pub fn heartbeat(&self) -> Arc<str> {
        let NamingRules { heartbeat_name, heartbeat_prefix, delimiter, prefix, .. } = &self.rules;
        match heartbeat_name {
            Some(name) => sanitized_topic(name).into(),
            None => sanitized_topic(&format!("{heartbeat_prefix}{delimiter}{prefix}")).into(),
        }
    }

    /// `<topic.prefix>.<topic.transaction>`.
    pub fn transaction(&self) -> Arc<str> {
        let NamingRules { transaction, delimiter, prefix, .. } = &self.rules;
        sanitized_topic(&format!("{prefix}{delimiter}{transaction}")).into()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use proptest::prelude::*;

    use super::*;

    fn naming(adjustment: NameAdjustment) -> TopicNaming {
        TopicNaming::new(NamingRules { schema_names: adjustment, ..NamingRules::new("p") })
    }

    /// Collection names and what they became, as recorded from Debezium 3.6.1.
    #[test]
    fn field_names_are_fit_for_avro_if_the_connector_itself_writes_it() {
        let mode =
            |property: &str, class: &str| NameAdjustment::default_for_fields(&Properties::from([(property, class)]));
        assert_eq!(mode("value.converter", "io.confluent.connect.avro.AvroConverter"), NameAdjustment::Avro);
        assert_eq!(mode("key.converter", "AvroConverter"), NameAdjustment::Avro);
        assert_eq!(mode("key.converter", "JsonConverter"), NameAdjustment::None);
        assert_eq!(mode("name", "AvroConverter"), NameAdjustment::None);
    }

    #[test]
    fn mgo_10_odd_names_as_recorded() {
        let plain = naming(NameAdjustment::None);
        let avro = naming(NameAdjustment::Avro);
        for (collection, topic, adjusted_key) in [
            ("1digit", "p.d.1digit", "p.d.1digit.Key"),
            ("UPPER_x", "p.d.UPPER_x", "p.d.UPPER_x.Key"),
            ("漢字", "p.d.__", "p.d.__.Key"),
            ("ümlaut sp", "p.d._mlaut_sp", "p.d._mlaut_sp.Key"),
            ("a.b c+d", "p.d.a.b_c_d", "p.d.a.b_c_d.Key"),
            ("with-dash", "p.d.with-dash", "p.d.with_dash.Key"),
        ] {
            let names = plain.collection(&["d", collection]);
            assert_eq!((&*names.topic, &*names.key), (topic, format!("{topic}.Key").as_str()));
            let names = avro.collection(&["d", collection]);
            assert_eq!((&*names.topic, &*names.key), (topic, adjusted_key));
        }
        assert_eq!(&*plain.collection(&["inv", "my@coll"]).topic, "p.inv.my_coll");
        assert_eq!(&*plain.collection(&["d", "😀"]).topic, "p.d.__");
    }

    #[test]
    fn topics_by_an_expression_or_with_codes() {
        let naming = |class: &str, regex: &str, replacement: &str| {
            let strategy = NamingStrategy::new(class, regex, replacement)?;
            Ok::<_, (&str, String)>(TopicNaming::new(NamingRules { strategy, ..NamingRules::new("p_x") }))
        };
        let regex = naming(NAMING_STRATEGIES[3], r"(.*)\.(orders)_\d+", "$1.$2").unwrap();
        let names = regex.collection(&["d", "orders_1"]);
        assert_eq!((&*names.topic, &*names.key), ("p_x.d.orders", "p_x.d.orders.Key"));
        assert_eq!(regex.collection(&["d", "orders_2"]).topic, names.topic);
        assert_eq!(&*regex.collection(&["d", "orders_x"]).topic, "p_x.d.orders_x");
        assert_eq!(&*naming(NAMING_STRATEGIES[2], ".*(z)?", "$1").unwrap().collection(&["d", "c"]).topic, "p_x.d.c");
        let unicode = naming(NAMING_STRATEGIES[4], "", "").unwrap();
        assert_eq!(&*unicode.collection(&["d", "ümlaut sp漢"]).topic, "p_u005fx.d._u00fcmlaut_u0020sp_u6f22");
        assert_eq!(&*unicode.heartbeat(), "__debezium-heartbeat.p_x");
        assert_eq!(&*naming(NAMING_STRATEGIES[0], "(", "").unwrap().collection(&["d", "a b"]).topic, "p_x.d.a_b");
        let fault = |regex, replacement| naming(NAMING_STRATEGIES[3], regex, replacement).err().unwrap().0;
        assert_eq!((fault("", "a"), fault("(", "a")), ("topic.regex", "topic.regex"));
        assert_eq!((fault("a", " "), fault("a", "$1")), ("topic.replacement", "topic.replacement"));
    }

    #[test]
    fn the_delimiter_and_the_other_topics() {
        let rules = NamingRules { delimiter: "-".to_owned(), ..NamingRules::new("p.eu-1_x") };
        let naming = TopicNaming::new(rules.clone());
        assert_eq!(&*naming.collection(&["db", "c1"]).topic, "p.eu-1_x-db-c1");
        assert_eq!(&*naming.collection(&["db", "c1"]).envelope, "p.eu-1_x-db-c1.Envelope");
        assert_eq!(&*naming.heartbeat(), "__debezium-heartbeat-p.eu-1_x");
        assert_eq!(&*naming.transaction(), "p.eu-1_x-transaction");
        let named = TopicNaming::new(NamingRules { heartbeat_name: Some("beats".to_owned()), ..rules });
        assert_eq!(&*named.heartbeat(), "beats");
        assert_eq!(&*TopicNaming::new(NamingRules::new("shop")).heartbeat(), "__debezium-heartbeat.shop");
    }

    #[test]
    fn t_91_topic_limits() {
        assert_eq!(sanitized_topic("."), "_");
        assert_eq!(sanitized_topic(".."), "__");
        assert_eq!(sanitized_topic("..."), "...");
        assert_eq!(sanitized_topic(&"a".repeat(249)).len(), 249);
        assert_eq!(sanitized_topic(&"é".repeat(400)), "_".repeat(249));
    }

    #[test]
    fn cnv_03_adjustment_of_schema_and_field_names() {
        use NameAdjustment::{Avro, AvroUnicode, None};
        for (name, avro, unicode) in [
            ("0srv.shop.1st.orders.Key", "_0srv.shop.1st.orders.Key", "_u0030srv.shop.1st.orders.Key"),
            ("p.ünïcode.Value", "p._n_code.Value", "p._u00fcn_u00efcode.Value"),
            ("a-b", "a_b", "a_u002db"),
            ("_x", "_x", "_u005fx"),
            ("a_b", "a_b", "a_u005fb"),
            ("ą漢😀", "____", "_u105_u6f22_ud83d_ude00"),
            ("", "", ""),
        ] {
            assert_eq!(None.schema_name(name), name);
            assert_eq!(Avro.schema_name(name), avro);
            assert_eq!(AvroUnicode.schema_name(name), unicode);
        }
        assert_eq!(Avro.field_name("my col#b"), "my_col_b");
        assert_eq!(Avro.field_name("a.b"), "a_b");
        assert_eq!(Avro.field_name("1a"), "_1a");
        assert_eq!(AvroUnicode.field_name("a.b"), "a_u002eb");
        assert_eq!(None.field_name("my col#b"), "my col#b");
        for (text, mode) in ADJUSTMENTS.iter().zip([None, Avro, AvroUnicode]) {
            assert_eq!(mode.as_option(), *text);
            assert_eq!(NameAdjustment::from_option(text), mode);
        }
    }

    #[test]
    fn cnv_03_fields_that_collide_are_named() {
        let names = ["id", "a#b", "a b"];
        assert_eq!(NameAdjustment::None.field_names(names).unwrap().len(), 3);
        assert_eq!(NameAdjustment::AvroUnicode.field_names(names).unwrap()[1], "a_u0023b".into());
        let error = NameAdjustment::Avro.field_names(names).unwrap_err();
        assert!(error.message.contains("'a#b'") && error.message.contains("'a b'") && error.message.contains("'a_b'"));
    }

    #[test]
    fn mgo_10_a_collision_is_reported_once_with_both_names() {
        let naming = naming(NameAdjustment::None);
        assert!(naming.look_up(&["inv", "my@coll"]).1.is_empty());
        let (names, collisions) = naming.look_up(&["inv", "my#coll"]);
        assert_eq!(
            collisions,
            [Collision {
                name: "p.inv.my_coll".into(),
                first: "inv.my@coll".to_owned(),
                second: "inv.my#coll".to_owned()
            }]
        );
        assert_eq!(&*names.topic, "p.inv.my_coll");
        assert!(naming.look_up(&["inv", "my#coll"]).1.is_empty());
        let avro = self::naming(NameAdjustment::Avro);
        assert!(avro.look_up(&["d", "a-b"]).1.is_empty());
        let (_, collisions) = avro.look_up(&["d", "a_b"]);
        assert_eq!(&*collisions[0].name, "p.d.a_b.Envelope");
        assert_eq!((&*collisions[0].first, &*collisions[0].second), ("p.d.a-b", "p.d.a_b"));
    }

    #[test]
    fn names_are_kept_up_to_the_bound() {
        let naming = TopicNaming::new(NamingRules { cache_size: 3, ..NamingRules::new("p") });
        let first = naming.collection(&["d", "a"]);
        assert!(Arc::ptr_eq(&first, &naming.collection(&["d", "a"])));
        for n in 0..20 {
            naming.collection(&["d", &n.to_string()]);
            let known = naming.known.lock();
            assert!(known.collections.len() <= 3 && known.origins.len() <= 6);
        }
        assert_eq!(naming.collection(&["d", "a"]), first);
    }

    proptest! {
        #[test]
        fn every_topic_is_valid(name in "\\PC{1,300}") {
            let topic = sanitized_topic(&name);
            prop_assert!(!topic.is_empty() && topic.len() <= 249 && topic != "." && topic != "..");
            prop_assert!(topic.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b)));
            prop_assert_eq!(sanitized_topic(&topic), topic.clone());
        }

        #[test]
        fn adjusted_field_names_are_avro_names(name in "\\PC{1,40}") {
            for mode in [NameAdjustment::Avro, NameAdjustment::AvroUnicode] {
                let adjusted = mode.field_name(&name);
                prop_assert!(adjusted.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_'));
                prop_assert!(!adjusted.as_bytes()[0].is_ascii_digit());
            }
        }

        /// With `avro_unicode` nothing collides, unless a character has a three-digit code.
        #[test]
        fn avro_unicode_keeps_names_apart(a in "[a-z_.#-]{0,6}", b in "[a-z_.#-]{0,6}") {
            let mode = NameAdjustment::AvroUnicode;
            prop_assert_eq!(a == b, mode.field_name(&a) == mode.field_name(&b));
        }
    }
}

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use super::*;
use crate::error::ErrorKind;
use crate::transform::classes;
use crate::transform::support::{faults, free, json, value};

fn properties(pairs: &[(&str, &str)]) -> Properties {
    pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
}

/// Row and message of every error.
fn errors(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    let validation = validate(&properties(pairs), &TransformClasses::default());
    let rows = validation.options.iter();
    rows.flat_map(|row| row.errors.iter().map(|e| (row.name.clone(), e.clone()))).collect()
}

fn at(name: &str, message: &str) -> (String, String) {
    (name.to_owned(), message.to_owned())
}

#[test]
fn nothing_configured_is_nothing_to_check() {
    let validation = validate(&Properties::new(), &TransformClasses::default());
    assert!(validation.options.is_empty() && validation.is_valid());
}

#[test]
fn errors_stand_at_their_properties() {
    assert_eq!(
        errors(&[
            ("transforms", "route, gone"),
            ("transforms.route.type", "RegexRouter"),
            ("transforms.route.regex", "(a")
        ]),
        [
            at(
                "transforms.route.regex",
                "Invalid value (a for configuration regex: Invalid regex: Unclosed group near index 2\n(a"
            ),
            at(
                "transforms.route.replacement",
                "Missing required configuration \"transforms.route.replacement\" which has no default value."
            ),
            at(
                "transforms.gone.type",
                "Missing required configuration \"transforms.gone.type\" which has no default value."
            ),
        ]
    );
    assert_eq!(
        errors(&[("predicates", "p"), ("predicates.p.type", "TopicNameMatches")]),
        [at(
            "predicates.p.pattern",
            "Missing required configuration \"predicates.p.pattern\" which has no default value."
        )]
    );
}

#[test]
fn unknown_classes() {
    let of = |class: &str| errors(&[("transforms", "t"), ("transforms.t.type", class)]).remove(0);
    assert_eq!(
        of("no.such.Class"),
        at(
            "transforms.t.type",
            "Invalid value no.such.Class for configuration transforms.t.type: Class no.such.Class could not be found."
        )
    );
    let cast = "org.apache.kafka.connect.transforms.Cast";
    let text = format!("This class is abstract and cannot be created. Did you mean {cast}$Key, {cast}$Value?");
    assert_eq!(of(cast).1, text);
    assert!(of("Cast").1.contains("take Cast$Key or"));
    let refused = of("io.debezium.transforms.tracing.ActivateTracingSpan").1;
    assert!(refused.ends_with("is not supported: there are no traces; remove the transform"), "{refused}");
    let class = "Class class org.apache.kafka.connect.transforms";
    assert_eq!(
        errors(&[("predicates", "p"), ("predicates.p.type", "RegexRouter")]),
        [at("predicates.p.type", &format!("{class}.RegexRouter does not implement the Predicate interface"))]
    );
    assert_eq!(
        of("HasHeaderKey"),
        at(
            "transforms.t.type",
            &format!("{class}.predicates.HasHeaderKey does not implement the Transformation interface")
        )
    );
}

#[test]
fn predicates_must_be_there() {
    let filter = [("transforms", "f"), ("transforms.f.type", "Filter")];
    let with = |more: &[(&str, &str)]| errors(&[&filter, more].concat());
    assert_eq!(with(&[]), []);
    let unknown = with(&[("transforms.f.predicate", "p")]);
    assert_eq!(
        unknown,
        [at(
            "transforms.f.predicate",
            "Invalid value p for configuration transforms.f.predicate: Predicate 'p' is not in the list of predicates"
        )]
    );
    assert_eq!(
        with(&[("transforms.f.negate", "true")]),
        [at(
            "transforms.f.type",
            "Config 'transforms.f.negate' was provided but there is no config 'transforms.f.predicate' defining a \
             predicate to be negated."
        )]
    );
    let empty = ("transforms.f.predicate", " ");
    assert_eq!(with(&[empty]), []);
    assert_eq!(with(&[empty, ("transforms.f.negate", "true")])[0].0, "transforms.f.predicate");
    let wrong = with(&[
        ("transforms.f.predicate", "p"),
        ("transforms.f.negate", "x"),
        ("predicates", "p"),
        ("predicates.p.type", "RecordIsTombstone"),
    ]);
    assert_eq!(
        wrong[0].1,
        "Invalid value x for configuration transforms.f.negate: Expected value to be either true or false"
    );
}

#[test]
fn unknown_options_are_unknown_keys() {
    let validation = validate(
        &properties(&[
            ("transforms", "f"),
            ("transforms.f.type", "Filter"),
            ("transforms.f.colour", "red"),
            ("transforms.f.plugin.version", "1"),
            ("predicates", "p"),
            ("predicates.p.type", "HasHeaderKey"),
            ("predicates.p.name", "n"),
            ("predicates.p.nam", "n"),
        ]),
        &TransformClasses::default(),
    );
    assert!(validation.is_valid());
    assert_eq!(validation.unknown_keys().collect::<Vec<_>>(), ["predicates.p.nam", "transforms.f.colour"]);
}

#[test]
fn names_of_classes() {
    let known = TransformClasses::default();
    for class in classes::TRANSFORMS {
        assert_eq!(known.called(class.class).unwrap().class, class.class);
        let simple = class.class.rsplit('.').next().unwrap();
        assert_eq!(known.called(simple).unwrap().class.rsplit('.').next(), Some(simple));
        assert_eq!(simple.split('$').next().unwrap(), class.options.title);
        assert!(class.options.options.iter().all(|option| option.doc.ends_with('.')), "{}", class.class);
    }
    for class in classes::PREDICATES {
        assert_eq!(predicate_called(class.options.title).unwrap().class, class.class);
    }
    assert!(classes::TRANSFORMS.is_sorted_by_key(|c| c.class) && classes::PREDICATES.is_sorted_by_key(|c| c.class));
    assert_eq!(known.called("Filter").unwrap().class, "org.apache.kafka.connect.transforms.Filter");
}

#[test]
fn a_connector_brings_classes() {
    static OPTIONS: OptionTable = OptionTable { title: "Own", options: &[], open_prefixes: &[], cross_checks: &[] };
    static OWN: &[TransformClass] = &[
        TransformClass::new("com.example.Own", &OPTIONS, |_| Ok(Box::new(crate::transform::filter::Filter))),
        TransformClass::new("com.example.Filter", &OPTIONS, |_| Ok(Box::new(crate::transform::filter::Filter))),
    ];
    let known = TransformClasses::default().with(OWN).with(OWN);
    assert_eq!(known.iter().count(), classes::TRANSFORMS.len() + 2);
    assert!(known.iter().is_sorted_by_key(|class| class.class));
    assert_eq!(known.called("Own").unwrap().class, "com.example.Own");
    assert_eq!(known.called("com.example.Filter").unwrap().class, "com.example.Filter");
    assert_eq!(known.called("Filter").unwrap().class, "org.apache.kafka.connect.transforms.Filter");
    let config = properties(&[("transforms", "t"), ("transforms.t.type", "com.example.Own")]);
    assert!(validate(&config, &known).is_valid() && Chain::from_config(&config, &known).is_ok());
    assert!(!validate(&config, &TransformClasses::default()).is_valid());
}

#[test]
fn options_are_published_as_kafka_connect_does() {
    let regex = TransformClasses::default().called("RegexRouter").unwrap().options;
    let keys = thalweg_config::config_keys(&[regex], &[]);
    assert_eq!(keys[0]["name"], "regex");
    assert_eq!(keys[0]["importance"], "HIGH");
    assert_eq!(keys[0]["group"], serde_json::Value::Null);
    assert_eq!(keys[0]["order_in_group"], -1);
    assert_eq!(keys[0]["width"], "NONE");
    assert_eq!(keys[0]["required"], true);
    assert_eq!(keys.as_array().unwrap().len(), 2);
}

fn row<'a>(reply: &'a serde_json::Value, name: &str) -> &'a serde_json::Value {
    let rows = reply["configs"].as_array().unwrap();
    rows.iter().find(|row| row["definition"]["name"] == name).unwrap_or_else(|| panic!("no row {name}: {rows:?}"))
}

#[test]
fn rows_are_those_of_kafka_connect() {
    let config = properties(&[
        ("transforms", "a,b"),
        ("transforms.a.type", "RegexRouter"),
        ("transforms.a.regex", "x"),
        ("transforms.a.replacement", "y"),
        ("transforms.b.type", "no.such.Class"),
        ("transforms.b.predicate", "p"),
        ("predicates", "p"),
        ("predicates.p.type", "TopicNameMatches"),
        ("predicates.p.pattern", "z"),
    ]);
    let reply = thalweg_config::validate_reply(&validate(&config, &TransformClasses::default()), "x");
    assert_eq!(reply["groups"], serde_json::json!(["Transforms: a", "Transforms: b", "Predicates: p"]));
    let rows: Vec<String> = reply["configs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| {
            let d = &row["definition"];
            format!("{} {} {} {} {}", d["name"], d["group"], d["order_in_group"], d["display_name"], d["width"])
        })
        .map(|row| row.replace('"', ""))
        .collect();
    assert_eq!(
        rows,
        [
            "transforms.a.type Transforms: a 0 Transformation type for a LONG",
            "transforms.a.plugin.version Transforms: a 1 Transformation version for a LONG",
            "transforms.a.regex Transforms: a 2 regex NONE",
            "transforms.a.replacement Transforms: a 3 replacement NONE",
            "transforms.a.negate Transforms: a 4 negate NONE",
            "transforms.a.predicate Transforms: a 5 predicate NONE",
            "transforms.b.type Transforms: b 0 Transformation type for b LONG",
            "transforms.b.plugin.version Transforms: b 1 Transformation version for b LONG",
            "predicates.p.type Predicates: p 0 Predicate type for p LONG",
            "predicates.p.plugin.version Predicates: p 1 Predicate version for p LONG",
            "predicates.p.pattern Predicates: p 2 pattern NONE",
        ]
    );
    let kind = row(&reply, "transforms.a.type");
    assert_eq!(kind["value"]["value"], "org.apache.kafka.connect.transforms.RegexRouter");
    let recommended = kind["value"]["recommended_values"].as_array().unwrap();
    assert_eq!(recommended.len(), classes::TRANSFORMS.len());
    assert_eq!(recommended[0], "io.debezium.transforms.ByLogicalTableRouter");
    assert_eq!(row(&reply, "transforms.b.type")["value"]["value"], serde_json::Value::Null);
    let predicates = &row(&reply, "predicates.p.type")["value"]["recommended_values"];
    assert_eq!(predicates[0], "org.apache.kafka.connect.transforms.predicates.HasHeaderKey");
    let predicate = row(&reply, "transforms.a.predicate");
    assert_eq!(
        (&predicate["definition"]["default_value"], &predicate["value"]["value"]),
        (&serde_json::Value::Null, &serde_json::Value::Null)
    );
}

#[test]
fn options_of_single_classes() {
    type Case<'a> = (&'a str, &'a [(&'a str, &'a str)], &'a str);
    let wrong: &[Case<'_>] = &[
        ("RegexRouter", &[("regex", "a"), ("replacement", "$1")], "transforms.t.replacement: Invalid replacement"),
        (
            "ReplaceField$Key",
            &[("renames", "a")],
            "Invalid value [a] for configuration renames: Invalid rename mapping: a",
        ),
        ("InsertField$Key", &[], "No field insertion configured"),
        (
            "InsertField$Key",
            &[("static.field", "f")],
            "transforms.t.static.value: No value specified for static field: f",
        ),
        (
            "InsertField$Key",
            &[("offset.field", "f"), ("topic.field", "t")],
            "transforms.t.offset.field is not supported",
        ),
        (
            "ValueToKey",
            &[("fields", "")],
            "Configuration 'fields' must not be empty. Valid values include: any non-empty value",
        ),
        ("ExtractField$Value", &[("field", "`a"), ("field.syntax.version", "V2")], "Incomplete backtick pair"),
        ("ExtractField$Value", &[("field", "a"), ("field.syntax.version", "V3")], "configuration field.syntax.version"),
        ("TimestampConverter$Key", &[("target.type", "string")], "transforms.t.format"),
        ("TimestampConverter$Key", &[("target.type", "unix"), ("format", "ww")], "pattern letter 'w'"),
        ("TimestampConverter$Key", &[("target.type", "x")], "configuration target.type: String must be one of"),
        (
            "Cast$Key",
            &[("spec", "int32,a:int8")],
            "Cast transformations that specify a type to cast the entire value to may only specify a single cast",
        ),
        (
            "Cast$Key",
            &[("spec", "a:bytes")],
            "Cast transformation does not support casting to BYTES; supported types are [INT8, INT16, INT32, INT64, FLOAT32, FLOAT64, BOOLEAN, STRING]",
        ),
        (
            "Cast$Key",
            &[("spec", "a:x")],
            "Invalid value java.lang.IllegalArgumentException: No enum constant org.apache.kafka.connect.data.Schema.Type.X for configuration Invalid type found in casting spec: x",
        ),
        (
            "Cast$Key",
            &[("spec", "a:b:c")],
            "Invalid value [a:b:c] for configuration renames: Invalid rename mapping: a:b:c",
        ),
        ("ValueToKey", &[("fields", "a,a")], "Configuration 'fields' values must not be duplicated."),
        ("MaskField$Key", &[("fields", "a,,b")], "Configuration 'fields' values must not be empty."),
        ("DropHeaders", &[("headers", "")], "Configuration 'headers' must not be empty."),
        ("ReplaceField$Key", &[("exclude", "a,b,a")], "Configuration 'exclude' values must not be duplicated."),
        ("HeaderFrom$Key", &[("fields", ""), ("headers", "")], "Invalid value [] for configuration"),
        ("HeaderFrom$Key", &[("fields", "a"), ("headers", "c"), ("operation", "Move")], "one of: move, copy"),
        ("TimestampConverter$Key", &[("target.type", "timestamp")], "one of: string, unix, Date, Time, Timestamp"),
        (
            "TimestampConverter$Key",
            &[("target.type", "unix"), ("unix.precision", "Seconds")],
            "one of: nanoseconds, microseconds, milliseconds, seconds",
        ),
        ("MaskField$Key", &[("fields", "a"), ("replacement", "  ")], "String must be non-empty"),
        ("Cast$Key", &[("spec", "")], "Must specify at least one field to cast."),
        ("SetSchemaMetadata$Key", &[], "Neither schema name nor version configured"),
        ("SetSchemaMetadata$Key", &[("schema.version", "x")], "Not a number of type INT"),
        ("MaskField$Key", &[("fields", "a"), ("replacement", "")], "String must be non-empty"),
        ("HeaderFrom$Key", &[("fields", "a,b"), ("headers", "c"), ("operation", "move")], "same number of elements"),
        ("HeaderFrom$Key", &[("fields", "a"), ("headers", "c"), ("operation", "x")], "move, copy"),
        ("DropHeaders", &[], "transforms.t.headers"),
        ("InsertHeader", &[("header", "h")], "transforms.t.value.literal"),
        ("TimestampRouter", &[("timestamp.format", "uu")], "pattern letter 'u'"),
        ("HoistField$Key", &[], "transforms.t.field"),
    ];
    for (class, options, expected) in wrong {
        let found = faults(class, options);
        assert!(found.iter().any(|text| text.contains(expected)), "{class} {options:?}: {found:?}");
    }
}

#[test]
fn what_connect_takes_is_taken() {
    for (class, options) in [
        ("ReplaceField$Key", &[("renames", "a:b:,:c"), ("include", "")][..]),
        ("Cast$Key", &[("spec", "a: INT8 ,b:string:")]),
        ("HeaderFrom$Key", &[("fields", "a,a"), ("headers", "b,b"), ("operation", " move ")]),
        ("TimestampConverter$Key", &[("target.type", " Timestamp ")]),
        ("ExtractField$Key", &[("field", "a"), ("field.syntax.version", "v2")]),
    ] {
        assert_eq!(faults(class, options), Vec::<String>::new(), "{class}");
    }
}

#[test]
fn texts_lose_the_blanks_around_them() {
    let config = properties(&[
        ("transforms", "t"),
        ("transforms.t.type", "InsertField$Value"),
        ("transforms.t.static.field", " site "),
        ("transforms.t.static.value", " eu "),
    ]);
    let validation = validate(&config, &TransformClasses::default());
    assert_eq!(validation.option("transforms.t.static.value").unwrap().value.as_deref(), Some("eu"));
    let mut chain = Chain::from_config(&config, &TransformClasses::default()).unwrap();
    assert_eq!(json(&value(&mut chain, free(vec![]))), r#"{"site":"eu"}"#);
}

#[test]
fn a_chain_is_not_made_from_errors() {
    let error = Chain::from_config(&properties(&[("transforms", "t")]), &TransformClasses::default()).err().unwrap();
    assert_eq!(error.kind, ErrorKind::Config);
    assert!(error.message.contains("transforms.t.type"));
}

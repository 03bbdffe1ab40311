#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use proptest::prelude::*;

use super::*;

fn place(result: Result<impl std::fmt::Debug, ParseError>) -> (usize, usize, String) {
    match result.unwrap_err() {
        ParseError::Place { line, column, text } => (line, column, text),
        other => panic!("{other:?}"),
    }
}

#[test]
fn scalars_become_their_text() {
    let reading =
        config_map(r#" {"a": 1, "b": true, "c": 1.50, "d": "x\n\u00e9\ud83d\ude00\/", "e": -1E+5, "f": ""} "#).unwrap();
    let expected =
        Properties::from([("a", "1"), ("b", "true"), ("c", "1.50"), ("d", "x\né😀/"), ("e", "-1E+5"), ("f", "")]);
    assert_eq!(reading.checked().unwrap().properties, expected);
    assert_eq!(config_map("{}").unwrap(), Reading::default());
}

#[test]
fn run_02_null_and_nested_values_are_problems_of_their_keys() {
    let text = "{\"ok\": \"1\",\n \"n\": null, \"l\": [1, \"]\", {}],\n  \"o\": {\"x\": [{}]}}";
    let reading = config_map(text).unwrap();
    assert_eq!(reading.properties, Properties::from([("ok", "1")]));
    let found: Vec<(&str, usize, usize)> =
        reading.problems.iter().map(|p| (p.key.as_str(), p.line, p.column)).collect();
    assert_eq!(found, [("n", 2, 2), ("l", 2, 13), ("o", 3, 3)]);
    assert_eq!(reading.problems[0].text, NULL_VALUE);
    let message = reading.clone().checked().unwrap_err().to_string();
    assert!(message.contains("line 2, column 13: 'l': An array can not be supplied"), "{message}");

    let mut validation =
        crate::connector::validate(&Properties::from([("name", "x"), ("connector.class", "y")]), &Properties::new());
    let nulls = config_map(r#"{"tasks.max": null, "mystery": null}"#).unwrap();
    nulls.report(&mut validation);
    assert_eq!(validation.option("tasks.max").unwrap().errors, [NULL_VALUE]);
    assert_eq!(validation.option("mystery").unwrap().errors, [NULL_VALUE], "a row of its own");
    assert_eq!(validation.option("name").unwrap().errors, [""; 0]);
    assert!(nulls.messages().any(|m| m == format!("'mystery': {NULL_VALUE}")));
}

#[test]
fn the_last_of_two_equal_keys_counts() {
    let reading = config_map("{\"a\": null,\n\"a\": 2}").unwrap();
    assert_eq!(reading.properties.get("a"), Some("2"));
    assert!(reading.problems.is_empty());
    assert_eq!(reading.warnings, ["'a' is set in line 1 and again in line 2; the last one counts"]);
    let reading = config_map(r#"{"a": 2, "a": null}"#).unwrap();
    assert_eq!(reading.properties.get("a"), None);
    assert_eq!(reading.problems.len(), 1);
}

#[test]
fn errors_have_line_and_column() {
    for (text, line, column) in [
        ("", 1, 1),
        ("[]", 1, 1),
        ("\"x\"", 1, 1),
        ("{\"a\": 1", 1, 8),
        ("{\"a\" 1}", 1, 6),
        ("{\n  a: 1}", 2, 3),
        ("{\n  \"é\": x}", 2, 8),
        ("{\"a\": 01}", 1, 7),
        ("{\"a\": 1.}", 1, 7),
        ("{\"a\": .5}", 1, 7),
        ("{\"a\": +5}", 1, 7),
        ("{\"a\": 1,}", 1, 9),
        ("{\"a\": \"x}", 1, 7),
        ("{\"a\": \"\\x\"}", 1, 8),
        ("{\"a\": \"\\ud83d\"}", 1, 8),
        ("{\"a\": \"\\u12\"}", 1, 8),
        ("{\"a\": \"x\ny\"}", 1, 9),
        ("{\"a\": [1}", 1, 9),
        ("{\"a\": [1", 1, 7),
        ("{\"a\": 1} x", 1, 10),
        ("{\"a\": nulls}", 1, 7),
    ] {
        let (l, c, message) = place(config_map(text));
        // The place of a line break inside a text is where the next token is looked for.
        let expected = if text.contains("x\ny") { (2, 1) } else { (line, column) };
        assert_eq!((l, c), expected, "{text:?}: {message}");
    }
}

#[test]
fn deep_nesting_costs_nothing() {
    let text = format!("{{\"a\": {}{}}}", "[".repeat(200_000), "]".repeat(200_000));
    assert_eq!(config_map(&text).unwrap().problems.len(), 1);
}

#[test]
fn create_bodies() {
    let request = create_request(r#"{"name": " x ", "config": {"tasks.max": 1}, "initial_state": "stopped"}"#).unwrap();
    assert_eq!(request.name.as_deref(), Some("x"));
    assert_eq!(request.initial_state.as_deref(), Some("stopped"));
    assert_eq!(request.config.properties.get("tasks.max"), Some("1"));
    assert_eq!(create_request(r#"{"name": null, "config": {}}"#).unwrap().name, None);

    assert!(create_request(r#"{"name": "x"}"#).unwrap_err().to_string().contains("'config'"));
    assert!(place(create_request(r#"{"config": [], "name": "x"}"#)).2.contains("'config' must be an object"));
    assert_eq!(place(create_request(r#"{"config": {}, "unknown": 1}"#)).1, 16);
    assert!(place(create_request(r#"{"config": {}, "name": ["x"]}"#)).2.contains("'name'"));
    for text in ["", "null", "[]", "{not json"] {
        assert!(create_request(text).is_err(), "{text}");
    }
}

/// Nearly as large as the REST interface takes it: neither places nor problems may cost a walk per key.
#[test]
fn many_wrong_values_are_told_with_their_places() {
    const COUNT: usize = 200_000;
    let members = |value: &str| (0..COUNT).map(|n| format!("\"{n:06}\":{value},")).collect::<String>();
    let text = format!("{{\n{}\n \"\u{e9}\":1,\"z\":null}}", members("null"));
    let reading = config_map(&text).unwrap();
    assert_eq!((reading.problems.len(), reading.warnings.len()), (COUNT + 1, 0));
    let last = reading.problems.last().unwrap();
    assert_eq!((last.key.as_str(), last.line, last.column), ("z", 3, 8));
    let before = &reading.problems[COUNT - 1];
    assert_eq!((before.key.as_str(), before.line, before.column), ("199999", 2, 199_999 * 14 + 1));

    let again = format!("{{{}{}\"z\":1}}", members("null"), members("[]"));
    let reading = config_map(&again).unwrap();
    assert_eq!((reading.problems.len(), reading.warnings.len()), (COUNT, COUNT));
    assert!(reading.problems.iter().all(|p| p.text.contains("array")));
}

#[test]
fn patches_take_keys_away() {
    let patch = config_patch(r#"{"a": null, "b": 2}"#).unwrap();
    assert_eq!(patch, BTreeMap::from([("a".to_owned(), None), ("b".to_owned(), Some("2".to_owned()))]));
    assert_eq!(place(config_patch(r#"{"a": {}}"#)).1, 2);
}

proptest! {
    #[test]
    fn agrees_with_a_general_reader(map in proptest::collection::btree_map("\\PC{0,8}", "(\\PC|[\\n\\t\"\\\\]){0,12}", 0..6)) {
        let text = serde_json::to_string_pretty(&map).unwrap();
        let reading = config_map(&text).unwrap();
        prop_assert_eq!(reading.properties.0, map);
    }

    #[test]
    fn rejects_what_a_general_reader_rejects(text in "[{}\\[\\]\",:a1.e\\\\ -]{0,24}") {
        let ours = config_map(&text).is_ok_and(|r| r.problems.is_empty());
        let theirs = serde_json::from_str::<BTreeMap<String, serde_json::Value>>(&text)
            .is_ok_and(|m| m.values().all(|v| !v.is_null() && !v.is_array() && !v.is_object()));
        // A number too large for a double is text to us.
        prop_assert!(ours == theirs || text.contains('e'), "{}", text);
    }

    #[test]
    fn any_text_is_read_without_panic(text in "(\\PC|[{}\\[\\]\":,\\\\u0-9]){0,60}") {
        let _ = config_map(&text);
        let _ = create_request(&text);
        let _ = config_patch(&text);
    }
}

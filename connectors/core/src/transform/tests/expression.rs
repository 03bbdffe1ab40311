#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::record::{Datum, Header, Schema};
use crate::transform::support::{change, heartbeat, map};

fn record() -> Record {
    let mut record = change('u');
    record.headers = Arc::new(vec![Header { name: "h".into(), schema: None, value: Value::text("x") }]);
    record
}

fn shown(text: &str, record: &Record) -> String {
    let expression = match Expression::parse(text) {
        Ok(expression) => expression,
        Err(error) => return format!("wrong: {error}"),
    };
    match evaluate(&expression, record) {
        Ok(Item::Bool(flag)) => flag.to_string(),
        Ok(Item::Int(n)) => n.to_string(),
        Ok(Item::Double(n)) => format!("{n:?}"),
        Ok(Item::Text(text)) => format!("'{text}'"),
        Ok(other) => other.kind().to_owned(),
        Err(error) => format!("refused: {}", error.message),
    }
}

#[test]
fn conditions_of_the_manual() {
    let record = record();
    for (text, expected) in [
        ("value.op == 'u' && value.before.id == 2", "false"),
        ("value.op == 'u' && value.before.id == 1", "true"),
        ("value.source.table in ['t', 'other']", "true"),
        ("!(value.source.table in ['other'])", "true"),
        ("value.op != \"u\" || value.after.name == 'new'", "true"),
        ("topic == 'top' ? 'left' : 'right'", "'left'"),
        ("'p.' + topic + '.' + value.source.table", "'p.top.t'"),
        ("headers['h'] == 'x' && header.h == 'x' && headers['gone'] == null", "true"),
        ("valueSchema.name.endsWith('.Envelope') && valueSchema.version == 2", "true"),
        ("keySchema.name", "'s.t.Key'"),
        ("key.id + 1", "2"),
        ("value.ts_ms >= 5 && value.ts_ms <= 5.0 && value.ts_ms < 5.5 && value.ts_ms > -1", "true"),
        ("value.after.name.matches('^n.w$') && !value.after.name.matches('N')", "true"),
        ("value.after.name.startsWith('n') && value.after.name.contains('e')", "true"),
        ("size(value.after.name) == 3 && value.after.name.size() == size([1, 2, 3,])", "true"),
        ("has(value.after) && has(value.after.name) && !has(value.transaction) && !has(value.gone)", "true"),
        (r"'a\.b\'' == 'a\.b\''", "true"),
        ("true || value.gone == 1", "true"),
        ("1 == 1.0 && 1 != '1' && null == null && [1, 'a'] == [1.0, 'a']", "true"),
        ("[1, 2][1] - 1", "wrong: unexpected text behind the expression at offset 10"),
        ("1.5e1 + 1", "16.0"),
        ("- key.id", "-1"),
        ("-9223372036854775807 < 0", "true"),
    ] {
        assert_eq!(shown(text, &record), expected, "{text}");
    }
}

#[test]
fn nulls_and_what_is_not_there() {
    let created = change('c');
    assert_eq!(shown("value.before.id == 1", &created), "false");
    assert_eq!(shown("value.before.id", &created), "null");
    assert_eq!(shown("value.before.id > 1 || value.before.name.contains('x') || 1 in value.before", &created), "false");
    assert_eq!(shown("value.op == 'c'", &heartbeat()), "refused: Field does not exist: op");
    assert_eq!(shown("has(value.op) && value.op == 'c'", &heartbeat()), "false");
    let tombstone = Record { value: Datum::none(), ..change('d') };
    assert_eq!(shown("value == null && value.op == null && valueSchema.name == null", &tombstone), "true");
    let free = Record {
        value: Datum { schema: None, value: map(vec![("l", Value::Array(vec![Value::Int32(7)]))]) },
        ..change('c')
    };
    assert_eq!(shown("value.l[0] == 7 && 7 in value['l'] && value.gone == null && size(value) == 1", &free), "true");
    assert_eq!(shown("value.l[1]", &free), "refused: the list has no element 1");
    assert_eq!(shown("[1][-1]", &free), "refused: the list has no element -1");
    let nested = Schema::array(Schema::record([("a", Schema::int32())]));
    let list = Value::Array(vec![Value::Struct(vec![Value::Int32(3)])]);
    let held = Record { value: Datum::new(Arc::new(nested), list), ..change('c') };
    assert_eq!(shown("value[0].a", &held), "3");
}

#[test]
fn what_does_not_fit() {
    for (text, expected) in [
        ("topic && true", "refused: a boolean is expected, found: a text"),
        ("topic < 1", "refused: a text and a number have no order"),
        ("topic + 1", "refused: a text and a number cannot be added"),
        ("topic.x", "refused: a text has no field x"),
        ("value[true]", "refused: a boolean cannot be an index"),
        ("1 in topic", "refused: in needs a list, found: a text"),
        ("size(1)", "refused: size is not for a number"),
        ("value.matches('a')", "refused: matches is not for a struct"),
        ("topic.contains(1)", "refused: a function of texts is not for a text"),
        ("9223372036854775807 + 1", "refused: a number is too large"),
        ("valueSchema.gone", "refused: Field does not exist: gone"),
        ("", "wrong: a value is expected, but the expression ends at offset 0"),
        ("value.", "wrong: the name of a field is expected at offset 6"),
        (
            "op == 'u'",
            "wrong: 'op' is not known; there are key, value, keySchema, valueSchema, topic, header, headers at offset 0",
        ),
        ("'open", "wrong: the text that starts here is not closed at offset 0"),
        ("topic.upper()", "wrong: the function upper is not known at offset 12"),
        ("has(topic)", "wrong: has asks for a field at offset 10"),
        ("(1", "wrong: ')' is expected at offset 2"),
        ("99999999999999999999", "wrong: '99999999999999999999' is not a number at offset 0"),
        ("topic.matches(topic)", "wrong: the expression of matches must be a text in quotes at offset 20"),
        ("#", "wrong: a value is expected at offset 0"),
    ] {
        assert_eq!(shown(text, &record()), expected, "{text}");
    }
    assert!(shown("topic.matches('(')", &record()).contains("Invalid regex"));
    assert!(shown(&"(".repeat(5_000), &record()).contains("nested too deeply"));
    assert!(shown(&"!".repeat(5_000), &record()).contains("nested too deeply"));
    assert!(shown(&"-".repeat(5_000), &record()).contains("nested too deeply"));
}

proptest! {
    #[test]
    fn any_text_is_an_expression_or_an_error(text in "[a-z ()\\[\\].!?:+'\"0-9&|=<>\\\\,-]{0,24}") {
        shown(&text, &record());
    }

    #[test]
    fn any_mix_of_words(words in proptest::collection::vec(
        prop_oneof![Just("value"), Just(".op"), Just("=="), Just("'u'"), Just("&&"), Just("!"), Just("("), Just(")"),
            Just("in"), Just("["), Just("]"), Just("1"), Just("-"), Just("has("), Just("?"), Just(":"), Just("+")], 0..12)) {
        shown(&words.join(" "), &record());
    }
}

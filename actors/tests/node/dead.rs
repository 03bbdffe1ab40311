//! Records that are left out and told of in a topic of their own.

use std::sync::Arc;

use thalweg_actors::ErrorView;
use thalweg_actors::port::Assignment;
use thalweg_core::position::Position;
use thalweg_core::record::{Datum, Headers, Record, Schema, Value};

use crate::support::broker::Landed;
use crate::support::{Stage, heartbeats, run, task_unit, until, view};

const LONG: usize = 1000;

fn task(stage: &Stage) -> Assignment {
    let mut task = stage.task(1);
    for (option, value) in [
        ("value.converter", "org.apache.kafka.connect.json.JsonConverter"),
        ("value.converter.schemas.enable", "false"),
        ("errors.tolerance", "all"),
        ("errors.max.retries", "0"),
        ("errors.deadletterqueue.topic.name", "dead"),
    ] {
        task.config.set(option, value);
    }
    task
}

fn letters(stage: &Stage) -> Vec<Landed> {
    stage.broker.landed().into_iter().filter(|message| message.topic == "dead").collect()
}

fn header<'a>(letter: &'a Landed, name: &str) -> Option<&'a str> {
    letter.headers.iter().find(|(header, _)| header == name).map(|(_, text)| &**text)
}

/// Runs the task until it has committed so far; what it counted.
async fn committed(stage: &Stage, events: u64) -> ErrorView {
    let node = stage.node();
    node.reconcile(vec![task(stage)]);
    until("all is committed", || (stage.cluster.stored("p") == Some(events)).then_some(())).await;
    view(&node, &task_unit()).unwrap().errors
}

#[test]
fn what_cannot_be_converted_goes_to_the_topic_for_it() {
    let stage = Stage::of(40);
    for event in [0, 23, 39] {
        stage.script.set_value(event, Value::Int32(7));
    }
    run(async {
        let errors = committed(&stage, 40).await;
        assert_eq!((errors.total_records_skipped, errors.deadletterqueue_produce_requests), (3, 3));
        assert_eq!(errors.deadletterqueue_produce_failures, 0);
        assert_eq!((stage.broker.sent(), stage.broker.opened()), (40, 1));
    });
    let letters = letters(&stage);
    assert_eq!(letters.len(), 3);
    let letter = &letters[1];
    assert_eq!((&*letter.key, &*letter.value), ("p/3", "7"), "the key as it was converted, the value as JSON");
    for (name, expected) in [
        ("__connect.errors.topic", "t.p"),
        ("__connect.errors.connector.name", "shop"),
        ("__connect.errors.task.id", "0"),
        ("__connect.errors.stage", "VALUE_CONVERTER"),
        ("__connect.errors.class.name", "org.apache.kafka.connect.json.JsonConverter"),
        ("__connect.errors.exception.class.name", "org.apache.kafka.connect.errors.DataException"),
        ("__thalweg.errors.source.partition", r#"{"server":"p"}"#),
        ("__thalweg.errors.source.offset", r#"{"at":24}"#),
    ] {
        assert_eq!(header(letter, name), Some(expected), "{name}");
    }
    assert!(header(letter, "__connect.errors.exception.message").unwrap().contains("Invalid type"));
}

#[test]
fn without_context_headers_there_are_none() {
    let stage = Stage::of(1);
    stage.script.set_value(0, Value::Int32(7));
    run(async {
        let node = stage.node();
        let mut task = task(&stage);
        task.config.set("errors.deadletterqueue.context.headers.enable", "false");
        node.reconcile(vec![task]);
        until("all is committed", || (stage.cluster.stored("p") == Some(1)).then_some(())).await;
    });
    assert!(letters(&stage)[0].headers.is_empty());
}

#[test]
fn the_position_moves_behind_the_answer_to_the_dead_letter() {
    let stage = Stage::of(3);
    stage.script.set_value(1, Value::Int32(7));
    stage.broker.rules(|rules| rules.hold = true);
    run(async {
        let node = stage.node();
        node.reconcile(vec![task(&stage)]);
        until("all is sent", || (stage.broker.sent() == 3).then_some(())).await;
        stage.broker.answer(2);
        stage.broker.answer(0);
        until("the first is committed", || (stage.cluster.stored("p") == Some(1)).then_some(())).await;
        heartbeats(5).await;
        assert_eq!(stage.cluster.stored("p"), Some(1));
        stage.broker.answer(1);
        until("all is committed", || (stage.cluster.stored("p") == Some(3)).then_some(())).await;
    });
}

/// Too large for the client, or for the broker: the letter has no value, and the key that it had.
#[test]
fn a_message_that_is_too_large_has_a_letter_without_it() {
    for at_the_client in [true, false] {
        let stage = Stage::of(40);
        for event in [0, 23, 39] {
            stage.script.set_value(event, Value::text("x".repeat(LONG)));
        }
        stage.broker.rules(|rules| {
            rules.client_limit = at_the_client.then_some(100);
            rules.broker_limit = Some(100);
        });
        run(async {
            let errors = committed(&stage, 40).await;
            assert!(errors.total_records_skipped >= 3, "{errors:?}");
        });
        let letters = letters(&stage);
        for event in [0, 23, 39] {
            let offset = format!(r#"{{"at":{}}}"#, event + 1);
            let of_event = |l: &&Landed| header(l, "__thalweg.errors.source.offset") == Some(&offset);
            let letter = letters.iter().find(of_event).unwrap();
            assert_eq!((&*letter.key, &*letter.value), (&*format!("p/{}", event % 5), "null"));
            assert_eq!(header(letter, "__connect.errors.stage"), Some("KAFKA_PRODUCE"));
            let class = header(letter, "__connect.errors.exception.class.name");
            assert_eq!(class, Some("org.apache.kafka.common.errors.RecordTooLargeException"));
        }
    }
}

/// A dead letter that is itself too large, for the client or for the broker, goes without its value.
#[test]
fn a_letter_that_is_too_large_goes_without_its_value() {
    for at_the_client in [true, false] {
        let stage = Stage::of(5);
        stage.script.set_value(2, Value::Bytes(vec![0; LONG].into()));
        stage.broker.rules(|rules| {
            rules.client_limit = at_the_client.then_some(100);
            rules.broker_limit = Some(100);
        });
        run(async {
            let errors = committed(&stage, 5).await;
            assert!(errors.deadletterqueue_produce_failures >= 1, "{errors:?}");
        });
        let letters = letters(&stage);
        assert!(!letters.is_empty() && letters.iter().all(|l| l.value == "null" && l.key == "p/2"));
        assert_eq!(header(&letters[0], "__connect.errors.stage"), Some("VALUE_CONVERTER"));
    }
}

/// The client refuses the record when it has its number already, so its letter has the same. The broker
/// refuses the letter, which is found out only by sending it alone.
#[test]
fn a_letter_in_the_place_of_a_message_is_sent_alone_if_it_is_suspect() {
    let stage = Stage::of(40);
    let schema = Arc::new(Schema::string());
    let record = Record {
        topic: "t.p".into(),
        partition: None,
        key: Datum::new(schema.clone(), Value::text("k".repeat(LONG))),
        value: Datum::new(schema, Value::text("x".repeat(LONG))),
        headers: Headers::default(),
        timestamp: None,
        position: Position::default(),
    };
    stage.script.set_record(23, record);
    stage.broker.rules(|rules| {
        rules.client_limit = Some(LONG + 100);
        rules.broker_limit = Some(100);
    });
    run(async {
        let errors = committed(&stage, 40).await;
        assert!(errors.deadletterqueue_produce_failures >= 1, "{errors:?}");
    });
    let letters = letters(&stage);
    let of_record = |l: &&Landed| header(l, "__thalweg.errors.source.offset") == Some(r#"{"at":24}"#);
    let letter = letters.iter().find(of_record).unwrap();
    assert_eq!((&*letter.key, &*letter.value), ("null", "null"));
}

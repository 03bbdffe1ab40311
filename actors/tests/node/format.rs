//! Another format of messages: one change that becomes two messages is never half delivered.

use std::sync::Arc;

use thalweg_actors::port::Assignment;
use thalweg_core::position::Position;
use thalweg_core::record::{Datum, Header, Record, Schema, Value};

use crate::support::{Stage, heartbeats, run, until};

fn key(id: i32) -> Datum {
    Datum::new(Arc::new(Schema::record([("id", Schema::int32())])), Value::Struct(vec![Value::Int32(id)]))
}

/// A change of a row that has nothing but its key.
fn change(op: &'static str, id: i32, header: Option<(&str, i32)>) -> Record {
    let row = Arc::new(Schema::record([("id", Schema::int32())]).optional());
    let names = ["connector", "db", "schema", "table"];
    let source = Arc::new(Schema::record(names.map(|name| (name, Schema::string()))));
    let fields = [
        ("before", row.clone()),
        ("after", row),
        ("source", source),
        ("op", Arc::new(Schema::string())),
        ("ts_ms", Arc::new(Schema::int64())),
    ];
    let image = Value::Struct(vec![Value::Int32(id)]);
    let (before, after) = if op == "d" { (image, Value::Null) } else { (Value::Null, image) };
    let source = Value::Struct(["script", "d", "s", "t"].map(Value::text).to_vec());
    let value = Value::Struct(vec![before, after, source, Value::text(op), Value::Int64(1)]);
    let header = header.map(|(name, id)| {
        let Datum { schema, value } = key(id);
        Header { name: name.into(), schema, value }
    });
    Record {
        topic: "t.p".into(),
        partition: None,
        key: key(id),
        value: Datum::new(Arc::new(Schema::record(fields).named("t.p.Envelope")), value),
        headers: Arc::new(header.into_iter().collect()),
        timestamp: None,
        position: Position::default(),
    }
}

fn repstance(stage: &Stage) -> Assignment {
    let mut task = stage.task(1);
    task.config.remove("key.converter");
    task.config.remove("value.converter");
    task.config.set("thalweg.format", "repstance");
    task
}

fn texts(stage: &Stage) -> Vec<(String, String)> {
    stage.broker.landed().into_iter().map(|m| (m.key, m.value)).collect()
}

fn value(before: &str, after: &str, lsn: u32, op: &str) -> String {
    let source = format!(
        r#"{{"lsn":"{lsn}","seq":"0","snapshot":"false","ts_ms":null,"connector":"script","db":"d","schema":"s","table":"t"}}"#
    );
    format!(r#"{{"before":{before},"after":{after},"source":{source},"op":"{op}","ts_ms":1}}"#)
}

#[test]
fn a_change_of_key_counts_with_its_last_message_only() {
    let stage = Stage::of(4);
    let all = [
        change("c", 1, None),
        change("d", 1, Some(("__debezium.newkey", 2))),
        change("c", 2, Some(("__debezium.oldkey", 1))),
        change("c", 7, None),
    ];
    for (event, record) in (0..).zip(all) {
        stage.script.set_record(event, record);
    }
    stage.broker.rules(|rules| rules.hold = true);
    run(async {
        let node = stage.node();
        node.reconcile(vec![repstance(&stage)]);
        until("all is sent", || (stage.broker.sent() == 4).then_some(())).await;
        stage.broker.answer(0);
        until("the first is committed", || (stage.cluster.stored("p") == Some(1)).then_some(())).await;
        stage.broker.answer(1);
        heartbeats(5).await;
        assert_eq!(stage.cluster.stored("p"), Some(1), "the update without its tombstone");
        stage.broker.answer(2);
        until("the change is committed", || (stage.cluster.stored("p") == Some(3)).then_some(())).await;
        stage.broker.release();
        until("all is committed", || (stage.cluster.stored("p") == Some(4)).then_some(())).await;
    });
    let row = |id: u32| format!(r#"{{"id":{id}}}"#);
    assert_eq!(
        texts(&stage),
        [
            (row(1), value("null", &row(1), 1, "c")),
            (row(2), value(&row(1), &row(2), 3, "u")),
            (row(1), "null".to_owned()),
            (row(7), value("null", &row(7), 4, "c")),
        ]
    );
}

/// The halves of a change of key come in batches of their own: nothing is lost, and nothing waits.
#[test]
fn a_delete_without_its_create_is_sent_at_the_end_of_its_batch() {
    let stage = Stage::of(1);
    stage.script.set_record(0, change("d", 1, Some(("__debezium.newkey", 2))));
    run(async {
        let node = stage.node();
        node.reconcile(vec![repstance(&stage)]);
        until("it is committed", || (stage.cluster.stored("p") == Some(1)).then_some(())).await;
    });
    let row = r#"{"id":1}"#.to_owned();
    assert_eq!(texts(&stage), [(row.clone(), value(&row, "null", 1, "d")), (row, "null".to_owned())]);
}

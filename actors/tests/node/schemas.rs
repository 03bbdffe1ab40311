//! A converter that has to ask a schema registry: waiting for it holds nothing up but the records.

use std::time::{Duration, Instant};

use thalweg_actors::Wait;
use thalweg_actors::port::{Assignment, UnitState};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::support::{Stage, options, run, task_unit, until, until_state, view};

const GOOD: &str = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 8\r\n\r\n{\"id\":1}";
const BUSY: &str = "HTTP/1.1 503 Busy\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";

/// Gives the answers one by one, the last one for ever; without any it is silent.
async fn registry(answers: &'static [&'static str]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let mut held = Vec::new();
        for at in 0.. {
            let (mut stream, _) = listener.accept().await.unwrap();
            let Some(answer) = answers.get(at).or(answers.last()) else {
                held.push(stream);
                continue;
            };
            let mut request = [0; 4096];
            let _ = stream.read(&mut request).await;
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    url
}

fn with_registry(mut task: Assignment, url: &str) -> Assignment {
    // Of keys: by the values the stage knows the records again.
    task.config.set("key.converter", "io.confluent.connect.avro.AvroConverter");
    task.config.set("key.converter.schema.registry.url", url);
    task
}

#[test]
fn a_stop_does_not_wait_for_a_silent_registry() {
    let stage = Stage::of(10);
    run(async {
        let node = stage.node();
        let task = with_registry(stage.task(1), &registry(&[]).await);
        node.reconcile(vec![task.clone()]);
        until("it waits for the registry", || {
            view(&node, &task_unit()).filter(|view| view.encoder == Wait::SchemaRegistry)
        })
        .await;
        let asked = Instant::now();
        node.reconcile(vec![Assignment { revoked: true, ..task }]);
        until("it is released", || stage.cluster.released().first().cloned()).await;
        assert!(asked.elapsed() < options().stop_timeout + Duration::from_secs(2), "{:?}", asked.elapsed());
        assert_eq!(stage.broker.sent(), 0);
        stage.cluster.check();
    });
}

#[test]
fn a_busy_registry_is_asked_again_and_no_record_is_left_out() {
    let stage = Stage::of(10);
    run(async {
        let node = stage.node();
        let mut task = with_registry(stage.task(1), &registry(&[BUSY, BUSY, GOOD]).await);
        task.config.set("errors.tolerance", "all");
        node.reconcile(vec![task]);
        until("all is committed", || (stage.cluster.stored("p") == Some(10)).then_some(())).await;
        assert_eq!(stage.broker.landed()[9].key, "\0\0\0\0\u{1}\u{6}p/4");
        let view = until_state(&node, &task_unit(), UnitState::Running).await;
        assert_eq!(view.errors.total_records_skipped, 0);
        stage.cluster.check();
    });
}

/// With time for tries the same record goes on; the task is not built anew.
#[test]
fn errors_retry_timeout_counts_for_the_registry() {
    let stage = Stage::of(10);
    run(async {
        let node = stage.node();
        let mut task = with_registry(stage.task(1), &registry(&[BUSY, BUSY, GOOD]).await);
        task.config.set("errors.retry.timeout", "-1");
        node.reconcile(vec![task]);
        until("all is committed", || (stage.cluster.stored("p") == Some(10)).then_some(())).await;
        let view = view(&node, &task_unit()).unwrap();
        assert_eq!((view.errors.total_retries, view.counters.restarts, stage.broker.opened()), (2, 0, 1));
    });
}

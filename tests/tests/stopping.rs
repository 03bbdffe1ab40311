//! What holds up the end of a node, and what does not.

use std::time::{Duration, Instant};

use anyhow::Result;
use thalweg_tests::{Cluster, until};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::shared::{connector, kafka, mongo, unique, with};

const SOON: Duration = Duration::from_secs(30);

async fn connected(port: u16, sent: &str) -> Result<TcpStream> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
    stream.write_all(sent.as_bytes()).await?;
    Ok(stream)
}

#[tokio::test(flavor = "multi_thread")]
async fn run_17_idle_and_half_sent_connections_do_not_hold_up_a_stop() -> Result<()> {
    let (broker, set) = (kafka().await?, mongo().await?);
    let mut cluster = Cluster::start(3, &broker.bootstrap(), &[]).await?;
    let name = unique("idle");
    let config = with(connector(set, &name, "nothing"), &[("snapshot.mode", "no_data")]);
    cluster.rest()?.create(&name, config).await?;
    cluster.rest()?.awaits(&name, 1, "RUNNING").await?;
    let owner = cluster.owner(&name, 0).await?;
    let (port, other) = (cluster.nodes[owner].rest_port, cluster.nodes[(owner + 1) % 3].rest());

    let head = "POST /connectors HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n";
    let mut open = Vec::new();
    for _ in 0..5 {
        open.push(connected(port, "").await?);
    }
    open.push(connected(port, &head[..40]).await?);
    open.push(connected(port, &format!("{head}Content-Length: 1000\r\n\r\n{{\"name\":")).await?);
    // One that was answered and is kept; what came before it has been accepted by then.
    let mut kept = connected(port, "GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n").await?;
    let mut answer = [0; 1024];
    assert!(kept.read(&mut answer).await? > 0);
    open.push(kept);

    let asked = Instant::now();
    let path = format!("/connectors/{name}/status");
    let handed_over = until("another node runs the task", SOON, || async {
        let task = other.get(&path).await?.1["tasks"][0].clone();
        let elsewhere = !task["worker_id"].as_str().unwrap_or_default().ends_with(&format!(":{port}"));
        Ok((task["state"] == "RUNNING" && elsewhere).then(|| asked.elapsed()))
    });
    let stop = async {
        cluster.nodes[owner].stop().await?;
        anyhow::Ok(asked.elapsed())
    };
    let (handed_over, ended) = tokio::try_join!(handed_over, stop)?;
    assert!(handed_over < Duration::from_secs(4), "the task was handed over after {handed_over:?}");
    assert!(ended < Duration::from_secs(4), "the process ended after {ended:?}");
    for mut stream in open {
        let mut rest = Vec::new();
        // A reset is an end as well.
        let _ = stream.read_to_end(&mut rest).await;
        assert!(rest.is_empty(), "{}", String::from_utf8_lossy(&rest));
    }
    Ok(())
}

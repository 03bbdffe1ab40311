//! A client for the nodes of the demo: plain HTTP on the loopback address.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const LIMIT: Duration = Duration::from_secs(20);

pub(super) async fn get(port: u16, path: &str) -> Result<(u16, Value)> {
    call(port, "GET", path, None).await
}

/// Status and JSON body (null when empty).
pub(super) async fn call(port: u16, method: &str, path: &str, body: Option<&Value>) -> Result<(u16, Value)> {
    tokio::time::timeout(LIMIT, exchange(port, method, path, body)).await.context("no answer in time")?
}

async fn exchange(port: u16, method: &str, path: &str, body: Option<&Value>) -> Result<(u16, Value)> {
    let body = body.map(Value::to_string).unwrap_or_default();
    let mut link = TcpStream::connect(("127.0.0.1", port)).await?;
    let request = format!(
        "{method} {path} HTTP/1.0\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    link.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    link.read_to_string(&mut answer).await?;
    let Some((head, body)) = answer.split_once("\r\n\r\n") else {
        bail!("an answer without a head");
    };
    let status = head.split_whitespace().nth(1).and_then(|s| s.parse().ok()).context("an answer without a status")?;
    Ok((status, serde_json::from_str(body).unwrap_or(Value::Null)))
}

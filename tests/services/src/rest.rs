//! The REST interface as a client uses it.

use std::time::Duration;

use anyhow::{Result, bail};
use reqwest::Method;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, json};

use crate::wait::until;

/// What a call was answered.
#[derive(Debug, Clone)]
pub struct Answer {
    pub status: u16,
    pub content_type: Option<String>,
    /// Null when empty, a text if it is no JSON.
    pub body: Value,
}

#[derive(Clone)]
pub struct Rest {
    client: reqwest::Client,
    base: String,
}

impl Rest {
    pub fn new(port: u16) -> Self {
        let client = reqwest::Client::builder().timeout(Duration::from_secs(30)).build().unwrap_or_default();
        Self { client, base: format!("http://127.0.0.1:{port}") }
    }

    /// Sends the body as it is. Headers stand in place of the usual ones, which ask for JSON and send it.
    pub async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<String>,
    ) -> Result<Answer> {
        let mut all = HeaderMap::new();
        all.insert(ACCEPT, HeaderValue::from_static("application/json"));
        let mut request = self.client.request(method, format!("{}{path}", self.base));
        if let Some(body) = body {
            all.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            request = request.body(body);
        }
        for (name, value) in headers {
            all.insert(HeaderName::from_bytes(name.as_bytes())?, HeaderValue::from_str(value)?);
        }
        let response = request.headers(all).send().await?;
        let status = response.status().as_u16();
        let content_type = response.headers().get(CONTENT_TYPE).map(|v| String::from_utf8_lossy(v.as_bytes()).into());
        let text = response.text().await?;
        let body = serde_json::from_str(&text).unwrap_or(Value::String(text).take_if_empty());
        Ok(Answer { status, content_type, body })
    }

    /// Status and JSON body (null when empty).
    pub async fn call(&self, method: Method, path: &str, body: Option<&Value>) -> Result<(u16, Value)> {
        let answer = self.send(method, path, &[], body.map(Value::to_string)).await?;
        Ok((answer.status, answer.body))
    }

    pub async fn get(&self, path: &str) -> Result<(u16, Value)> {
        self.call(Method::GET, path, None).await
    }

    pub async fn put(&self, path: &str, body: Option<&Value>) -> Result<(u16, Value)> {
        self.call(Method::PUT, path, body).await
    }

    pub async fn post(&self, path: &str, body: Option<&Value>) -> Result<(u16, Value)> {
        self.call(Method::POST, path, body).await
    }

    pub async fn delete(&self, path: &str) -> Result<(u16, Value)> {
        self.call(Method::DELETE, path, None).await
    }

    /// Creates a connector; anything but 201 is an error.
    pub async fn create(&self, name: &str, config: Value) -> Result<()> {
        let (status, body) = self.post("/connectors", Some(&json!({"name": name, "config": config}))).await?;
        if status != 201 {
            bail!("creating {name}: {status} {body}");
        }
        Ok(())
    }

    /// Waits until the connector and its `tasks` tasks are in `state`.
    pub async fn awaits(&self, name: &str, tasks: usize, state: &str) -> Result<Value> {
        until(&format!("{name} is {state}"), Duration::from_secs(30), || async {
            let (_, status) = self.get(&format!("/connectors/{name}/status")).await?;
            let all = status["tasks"].as_array().cloned().unwrap_or_default();
            if all.len() == tasks && all.iter().all(|t| t["state"] == state) {
                return Ok(Some(status));
            }
            bail!("status is {status}")
        })
        .await
    }

    /// Waits until a position of the connector is stored: the first row of its offsets.
    pub async fn awaits_offset(&self, name: &str) -> Result<Value> {
        until(&format!("a position of {name} is stored"), Duration::from_secs(30), || async {
            let (_, offsets) = self.get(&format!("/connectors/{name}/offsets")).await?;
            Ok(offsets["offsets"].get(0).cloned())
        })
        .await
    }
}

trait TakeIfEmpty {
    fn take_if_empty(self) -> Value;
}

impl TakeIfEmpty for Value {
    fn take_if_empty(self) -> Value {
        if self.as_str() == Some("") { Value::Null } else { self }
    }
}

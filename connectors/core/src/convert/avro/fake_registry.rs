//! A schema registry on the loopback address that answers what a test says, and remembers what it was
//! asked. For tests only.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;

use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

#[derive(Debug, Clone)]
pub(super) enum Answer {
    Reply(u16, String),
    /// None at all.
    Silence,
}

#[derive(Debug, Clone)]
pub(super) struct Asked {
    /// Method, path and query.
    pub(super) line: String,
    pub(super) authorization: Option<String>,
    pub(super) body: String,
}

#[derive(Default)]
struct State {
    answers: VecDeque<Answer>,
    asked: Vec<Asked>,
}

pub(super) struct FakeRegistry {
    state: Arc<Mutex<State>>,
    port: u16,
    serving: JoinHandle<()>,
}

impl FakeRegistry {
    /// Gives the answers one by one, the last one for ever.
    pub(super) async fn start(answers: impl IntoIterator<Item = Answer>) -> Self {
        let state = Arc::new(Mutex::new(State { answers: answers.into_iter().collect(), asked: Vec::new() }));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = state.clone();
        let serving = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let shared = shared.clone();
                tokio::spawn(async move {
                    let service = service_fn(move |request| answer(shared.clone(), request));
                    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
                });
            }
        });
        Self { state, port, serving }
    }

    pub(super) async fn replying(status: u16, body: &str) -> Self {
        Self::start([Answer::Reply(status, body.to_owned())]).await
    }

    pub(super) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub(super) fn asked(&self) -> Vec<Asked> {
        self.state.lock().asked.clone()
    }
}

impl Drop for FakeRegistry {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn answer(state: Arc<Mutex<State>>, request: Request<Incoming>) -> Result<Response<String>, Infallible> {
    let line = format!("{} {}", request.method(), request.uri());
    let authorization = request.headers().get("authorization").map(|v| v.to_str().unwrap().to_owned());
    let mut incoming = request.into_body();
    let mut body = Vec::new();
    while let Some(frame) = poll_fn(|cx| Pin::new(&mut incoming).poll_frame(cx)).await {
        body.extend_from_slice(frame.unwrap().data_ref().unwrap());
    }
    let answer = {
        let mut state = state.lock();
        state.asked.push(Asked { line, authorization, body: String::from_utf8(body).unwrap() });
        if state.answers.len() > 1 { state.answers.pop_front() } else { state.answers.front().cloned() }
    };
    match answer {
        Some(Answer::Reply(status, body)) => Ok(Response::builder().status(status).body(body).unwrap()),
        Some(Answer::Silence) | None => std::future::pending().await,
    }
}

//! What is answered before a handler is asked, and how paths are read.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use axum::body::Body;
use axum::http::{Request, Response};
use serde_json::{Value, json};
use tower::ServiceExt;

use super::*;

fn routes() -> Router {
    let (_, api) = crate::api::tests::follower();
    let listener: Address = "http://127.0.0.1:8083".parse().unwrap();
    let config = RestConfig {
        listeners: vec![listener.clone()],
        advertised: listener.clone(),
        admin: AdminListeners::Same,
        tls: None,
        basic_auth_file: None,
        allow_origin: String::new(),
        allow_methods: String::new(),
        response_headers: Vec::new(),
        reported_version: String::new(),
    };
    Doors::new(&config).unwrap().router(&listener, Arc::new(api))
}

async fn ask(routes: &Router, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Response<Body> {
    let mut request = Request::builder().method(method).uri(path).header("Content-Length", body.len());
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    routes.clone().oneshot(request.body(Body::from(body.to_owned())).unwrap()).await.unwrap()
}

async fn status(method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> u16 {
    ask(&routes(), method, path, headers, body).await.status().as_u16()
}

async fn json_of(response: Response<Body>) -> Value {
    serde_json::from_slice(&axum::body::to_bytes(response.into_body(), 1 << 20).await.unwrap()).unwrap()
}

#[tokio::test]
async fn path_method_body_and_answer_are_looked_at_in_this_order() {
    let (html, text) = (("Accept", "text/html"), ("Content-Type", "text/plain"));
    type Case<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)], u16);
    let cases: &[Case<'_>] = &[
        ("GET", "/nothing", &[html, text], 404),
        ("GET", "/connectors/a/nothing", &[html], 404),
        ("DELETE", "/connectors", &[html, text], 405),
        ("PUT", "/connectors/a", &[text], 405),
        ("POST", "/connectors", &[html, text], 415),
        ("POST", "/connectors", &[text], 415),
        ("POST", "/connectors", &[html], 406),
        ("POST", "/connectors", &[], 400),
        ("PUT", "/admin/loggers/a", &[text], 415),
    ];
    for (method, path, headers, code) in cases {
        assert_eq!(status(method, path, headers, "{}").await, *code, "{method} {path} {headers:?}");
    }
    assert_eq!(status("GET", "/connectors", &[html], "").await, 406);
    assert_eq!(status("GET", "/connectors", &[text], "").await, 200, "there is no body");
    assert_eq!(status("GET", "/metrics", &[("Accept", "text/plain")], "").await, 200);
}

#[tokio::test]
async fn options_names_the_methods_of_the_path() {
    let allowed = async |path: &str| {
        let answer = ask(&routes(), "OPTIONS", path, &[], "").await;
        let header = |name: &str| answer.headers().get(name).map(|v| v.to_str().unwrap().to_owned());
        (answer.status().as_u16(), header("Allow"), header("Content-Type"))
    };
    let json = Some("application/json".to_owned());
    assert_eq!(allowed("/connectors").await, (200, Some("GET,HEAD,POST,OPTIONS".to_owned()), json.clone()));
    assert_eq!(allowed("/connectors/a/pause").await, (200, Some("PUT,OPTIONS".to_owned()), json.clone()));
    assert_eq!(allowed("/nothing").await, (404, None, json));
    let refused = ask(&routes(), "DELETE", "/connectors", &[], "").await;
    assert_eq!(
        (refused.status().as_u16(), &refused.headers()["Allow"]),
        (405, &"GET,HEAD,POST,OPTIONS".parse().unwrap())
    );
}

#[tokio::test]
async fn a_slash_at_the_end_of_a_path_does_not_count() {
    for path in ["/", "/connectors/", "/connector-plugins/", "/admin/loggers/", "/admin/loggers/root/", "/health/live/"]
    {
        assert_eq!(status("GET", path, &[], "").await, 200, "{path}");
    }
    let routes = routes();
    let missing = json_of(ask(&routes, "GET", "/connectors/a/status/?x=y", &[], "").await).await;
    assert_eq!(missing["message"], "No status found for connector a");
    assert_eq!(ask(&routes, "GET", "/connectors//", &[], "").await.status(), 404);
}

#[tokio::test]
async fn a_level_may_be_any_scalar() {
    let routes = routes();
    let put = async |body: Value| {
        let json = [("Content-Type", "application/json")];
        let answer = ask(&routes, "PUT", "/admin/loggers/a.b", &json, &body.to_string()).await;
        (answer.status().as_u16(), json_of(answer).await)
    };
    let (code, answer) = put(json!({"level": 5})).await;
    assert_eq!((code, &answer["message"]), (404, &json!("invalid log level '5'.")));
    for none in [json!({}), json!({"level": null}), json!({"level": {}})] {
        assert_eq!(put(none).await.0, 400);
    }
    assert_eq!(put(json!({"level": "debug"})).await, (200, json!(["a.b"])));
}

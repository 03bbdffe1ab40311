//! Who may use the REST interface, where `/admin` is served, and the headers of answers.

use anyhow::Result;
use reqwest::{Client, Method, Response};
use thalweg_tests::{Cluster, free_port};

use crate::shared::kafka;

async fn alone(extra: &[(&str, &str)]) -> Result<Cluster> {
    Cluster::start(1, &kafka().await?.bootstrap(), extra).await
}

async fn get(port: u16, path: &str) -> Result<Response> {
    Ok(reqwest::get(format!("http://127.0.0.1:{port}{path}")).await?)
}

#[tokio::test(flavor = "multi_thread")]
async fn with_a_file_of_users_only_they_come_in_and_probes_need_no_login() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let users = folder.path().join("users.properties");
    std::fs::write(&users, "joe: s3cret: with colon\n# nobody else\n")?;
    let cluster = alone(&[("rest.auth.basic.file", &users.display().to_string())]).await?;
    let port = cluster.nodes[0].rest_port;
    for path in ["/health/live", "/health/ready"] {
        assert_eq!(get(port, path).await?.status(), 200, "{path}");
    }
    let url = format!("http://127.0.0.1:{port}/connectors");
    let asked = Client::new();
    let refused = get(port, "/connectors").await?;
    assert_eq!(refused.status(), 401);
    assert!(refused.headers()["www-authenticate"].to_str()?.starts_with("Basic"));
    assert_eq!(refused.json::<serde_json::Value>().await?["error_code"], 401);
    for (name, word) in [("joe", "wrong"), ("joe", ""), ("jane", "s3cret: with colon"), ("", "")] {
        assert_eq!(asked.get(&url).basic_auth(name, Some(word)).send().await?.status(), 401, "{name}");
    }
    assert_eq!(asked.get(&url).basic_auth("joe", Some("s3cret: with colon")).send().await?.status(), 200);
    assert!(!cluster.nodes[0].log().contains("s3cret"));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn admin_is_served_where_it_is_configured_only() -> Result<()> {
    let own = free_port()?;
    let cluster = alone(&[("admin.listeners", &format!("http://127.0.0.1:{own}"))]).await?;
    let port = cluster.nodes[0].rest_port;
    assert_eq!(get(port, "/admin/loggers").await?.status(), 404);
    assert_eq!(get(port, "/connectors").await?.status(), 200);
    assert_eq!(get(own, "/admin/loggers").await?.status(), 200);
    assert_eq!(get(own, "/connectors").await?.status(), 404);
    let off = alone(&[("admin.listeners", "")]).await?;
    assert_eq!(get(off.nodes[0].rest_port, "/admin/loggers").await?.status(), 404);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn configured_headers_and_origins_are_in_the_answers() -> Result<()> {
    let headers = "set Strict-Transport-Security: max-age=1, add X-A: b:c, setDate Expires: 86400000";
    let settings = [
        ("response.http.headers.config", headers),
        ("access.control.allow.origin", "https://a.example, https://b.example"),
        ("access.control.allow.methods", "GET,PUT"),
    ];
    let cluster = alone(&settings).await?;
    let url = format!("http://127.0.0.1:{}/connectors", cluster.nodes[0].rest_port);
    let client = Client::new();
    let answer = client.get(&url).header("Origin", "https://b.example").send().await?;
    let header = |answer: &Response, name: &str| {
        answer.headers().get(name).and_then(|v| v.to_str().ok()).unwrap_or_default().to_owned()
    };
    assert_eq!(header(&answer, "strict-transport-security"), "max-age=1");
    assert_eq!(header(&answer, "x-a"), "b:c");
    assert_eq!(header(&answer, "expires"), "Fri, 02 Jan 1970 00:00:00 GMT");
    assert_eq!(header(&answer, "access-control-allow-origin"), "https://b.example");
    let stranger = client.get(&url).header("Origin", "https://c.example").send().await?;
    assert_eq!(header(&stranger, "access-control-allow-origin"), "");
    let asked = client
        .request(Method::OPTIONS, &url)
        .header("Origin", "https://a.example")
        .header("Access-Control-Request-Method", "PUT")
        .send()
        .await?;
    assert_eq!(asked.status(), 200);
    assert_eq!(header(&asked, "access-control-allow-methods"), "GET,PUT");
    Ok(())
}

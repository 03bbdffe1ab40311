//! Paths as JAX-RS reads them, in one place in front of the routing: one slash at the end does not count.

use axum::http::{Request, Uri};

/// The request with its path without a slash at the end; `/` stays.
pub(super) fn without_last_slash<B>(mut request: Request<B>) -> Request<B> {
    if let Some(shorter) = shortened(request.uri()) {
        *request.uri_mut() = shorter;
    }
    request
}

fn shortened(uri: &Uri) -> Option<Uri> {
    let path = uri.path().strip_suffix('/').filter(|path| !path.is_empty() && !path.ends_with('/'))?;
    let target = match uri.query() {
        Some(query) => format!("{path}?{query}"),
        None => path.to_owned(),
    };
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(target.parse().ok()?);
    Uri::from_parts(parts).ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    #[test]
    fn one_slash_at_the_end_does_not_count() {
        let of = |uri: &str| {
            let request = Request::builder().uri(uri).body(()).unwrap();
            without_last_slash(request).uri().to_string()
        };
        assert_eq!(of("/connectors/"), "/connectors");
        assert_eq!(of("/connectors/a%2F/status/?x=/"), "/connectors/a%2F/status?x=/");
        assert_eq!(of("http://host/connectors/"), "http://host/connectors");
        for same in ["/", "/connectors", "/connectors//", "/connectors/a%2F", "/connectors?expand=a/"] {
            assert_eq!(of(same), same);
        }
    }
}

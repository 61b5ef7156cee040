//! Who may call: a bearer token, if one is configured. Without one the service listens on loopback only.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::AUTHORIZATION;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use secrecy::ExposeSecret;

use super::error::Problem;
use crate::app::App;
use crate::domain::fingerprint;

pub(super) async fn require_token(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let Some(token) = &app.config.token else { return next.run(request).await };
    let header = request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let given = header.and_then(|value| {
        let (scheme, token) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
    });
    match given {
        Some(given) if same(given, token.expose_secret()) => next.run(request).await,
        _ => Problem::no_token().into_response(),
    }
}

/// Compares fingerprints, all of both, so that the time taken says nothing about where they differ.
fn same(a: &str, b: &str) -> bool {
    let (a, b) = (fingerprint(&[a.as_bytes()]), fingerprint(&[b.as_bytes()]));
    a.bytes().zip(b.bytes()).fold(0, |differing, (x, y)| differing | (x ^ y)) == 0
}

#[cfg(test)]
mod tests {
    #[test]
    fn only_the_same_token_is_the_same() {
        assert!(super::same("secret", "secret"));
        assert!(!super::same("secret", "secreT") && !super::same("", "secret"));
    }
}

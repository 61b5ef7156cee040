//! The door of every guarded route: whether the bearer token that a client sent opens it.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use axum::extract::{ConnectInfo, Request, State};
use axum::http::header::{AUTHORIZATION, HOST};
use axum::http::{HeaderMap, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::error::Problem;
use crate::app::{Admitted, App, Needs, Refused};

/// Lets a request through to the route, or answers for it.
pub(super) async fn require(State((app, needs)): State<(Arc<App>, Needs)>, request: Request, next: Next) -> Response {
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>();
    let peer = peer.map_or(IpAddr::V6(Ipv6Addr::UNSPECIFIED), |peer| peer.0.ip());
    match app.access.admit(bearer(request.headers()), peer, needs).await {
        Ok(Admitted::Open) if !is_local(request.headers(), request.uri()) => Problem::not_local().into_response(),
        Ok(Admitted::Open | Admitted::ByToken) => next.run(request).await,
        Err(Refused::NoToken) => Problem::no_token().into_response(),
        Err(Refused::Lacks(scope)) => Problem::lacks_scope(scope).into_response(),
        Err(Refused::TooManyGuesses { retry_after }) => {
            Problem::too_often("too many wrong tokens came from this address", retry_after).into_response()
        }
        Err(Refused::Journal(error)) => Problem::from(error).into_response(),
    }
}

/// The token in `Authorization: Bearer TOKEN`; of anything else in that header, the empty one, which opens nothing.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(AUTHORIZATION)?.to_str().unwrap_or("");
    let (scheme, token) = value.split_once(' ').unwrap_or((value, ""));
    Some(if scheme.eq_ignore_ascii_case("bearer") { token.trim() } else { "" })
}

/// Whether the client called this machine by a name of its own. A web page that had its own name resolved to this
/// machine's address sends that name.
fn is_local(headers: &HeaderMap, uri: &Uri) -> bool {
    let host = headers.get(HOST).and_then(|value| value.to_str().ok()).or(uri.host());
    let Some(host) = host else { return true };
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or(""),
        None => host.split(':').next().unwrap_or(""),
    };
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn a_bearer_token_is_read_and_another_scheme_is_a_wrong_token() {
        let read = |value: &'static str| {
            let headers = HeaderMap::from_iter([(AUTHORIZATION, HeaderValue::from_static(value))]);
            bearer(&headers).map(str::to_owned)
        };
        assert_eq!(["Bearer abc", "bearer  abc "].map(read), [Some("abc".into()), Some("abc".into())]);
        assert_eq!(["Basic abc", "abc", "Bearer"].map(read), [Some("".into()), Some("".into()), Some("".into())]);
        assert_eq!(bearer(&HeaderMap::new()), None);
    }

    #[test]
    fn only_names_of_this_machine_are_local() {
        let local = |host: &'static str| {
            is_local(&HeaderMap::from_iter([(HOST, HeaderValue::from_static(host))]), &Uri::from_static("/api/runs"))
        };
        assert!(["localhost", "LOCALHOST:8080", "127.0.0.1:8080", "[::1]:8080", "10.0.0.7"].into_iter().all(local));
        assert!(!["evil.example", "localhost.evil.example:8080", "127.0.0.1.evil.example", ""].into_iter().any(local));
        assert!(is_local(&HeaderMap::new(), &Uri::from_static("/api/runs")));
    }
}

//! Checks the bearer token of every guarded route.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use axum::extract::{ConnectInfo, Request, State};
use axum::http::header::{AUTHORIZATION, HOST};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, Method, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::error::Problem;
use super::problem_kind::Kind;
use crate::app::{Admitted, App, Refused, Requirement, Token, includes};
use crate::domain::Scope;

/// The token of a request, for handlers that outlive its check.
#[derive(Debug, Clone)]
pub(super) struct Caller {
    /// The id of the token, if it is one of the database.
    pub token: Option<String>,
    /// Its scopes; `None` for every scope.
    scopes: Option<Vec<Scope>>,
}

impl Caller {
    /// True if the token permits this scope.
    pub fn permits(&self, scope: Scope) -> bool {
        let of_token = self.scopes.as_deref();
        of_token.is_none_or(|scopes| includes(scopes, scope))
    }
}

/// Passes an authorized request to its route and rejects any other.
pub(super) async fn require(
    State((app, needs)): State<(Arc<App>, Requirement)>,
    mut request: Request,
    next: Next,
) -> Response {
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>();
    let peer = peer.map_or(IpAddr::V6(Ipv6Addr::UNSPECIFIED), |peer| peer.0.ip());
    let admitted = app
        .authenticator
        .admit(bearer(request.headers()), peer, needs);
    let (token, scopes) = match admitted.await {
        // Without tokens only this machine is served. Another name in `Host` means that a web page
        // from elsewhere sent the request.
        Ok(Admitted::Open) if !is_local(request.headers(), request.uri()) => {
            let detail = "without a token the service answers only to localhost and its addresses";
            return Problem::new(Kind::NotLocal, detail).into_response();
        }
        Ok(Admitted::Open) => (None, None),
        Ok(Admitted::ByToken(token, scopes)) => (Some(token), scopes),
        Err(Refused::NoToken) => {
            let detail = "send the header Authorization: Bearer TOKEN with a valid token";
            return Problem::new(Kind::NoToken, detail).into_response();
        }
        Err(Refused::Lacks(scopes)) => return Problem::lacks_scope(scopes).into_response(),
        Err(Refused::TooManyGuesses { retry_after }) => {
            let detail = "too many wrong tokens came from this address";
            return Problem::too_often(detail, retry_after).into_response();
        }
        Err(Refused::Journal(error)) => return Problem::from(error).into_response(),
    };
    if request.method() == Method::POST
        && let Err((whose, retry_after)) = app.client_rate.take(token.as_ref(), peer)
    {
        let seconds = retry_after.as_secs() + 1;
        let detail = format!("too many requests {whose}; again in {seconds} s");
        return Problem::too_often(detail, retry_after).into_response();
    }
    request.extensions_mut().insert(Caller {
        token: token.and_then(Token::id),
        scopes,
    });
    next.run(request).await
}

/// Returns the token in `Authorization: Bearer TOKEN`. Any other value of the header gives the
/// empty token, which is never valid.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(AUTHORIZATION)?.to_str().unwrap_or("");
    let (scheme, token) = value.split_once(' ').unwrap_or((value, ""));
    Some(if scheme.eq_ignore_ascii_case("bearer") {
        token.trim()
    } else {
        ""
    })
}

/// True if the request has a host name, and it is `localhost` or an IP address. A web page whose own
/// name resolves to this machine's address sends that name. An unreadable name is not local.
fn is_local(headers: &HeaderMap, uri: &Uri) -> bool {
    let hosts = headers.get_all(HOST).iter();
    let hosts: Vec<&str> = hosts.map(|host| host.to_str().unwrap_or("")).collect();
    let address = uri.authority().map(Authority::as_str);
    let is_one = hosts.len() < 2;
    let names: Vec<&str> = hosts.into_iter().chain(address).collect();
    is_one && !names.is_empty() && names.into_iter().all(names_this_machine)
}

/// True for `localhost` or an IP address, optionally with a port and nothing else.
fn names_this_machine(host: &str) -> bool {
    let (name, behind) = match host.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            Some((address, behind)) if address.parse::<Ipv6Addr>().is_ok() => ("localhost", behind),
            _ => return false,
        },
        None => host.split_at(host.find(':').unwrap_or(host.len())),
    };
    let port = behind.is_empty()
        || behind
            .strip_prefix(':')
            .is_some_and(|port| port.parse::<u16>().is_ok());
    port && (name.eq_ignore_ascii_case("localhost") || name.parse::<Ipv4Addr>().is_ok())
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
        for (value, token) in [
            ("Bearer abc", "abc"),
            ("bearer  abc ", "abc"),
            ("Basic abc", ""),
            ("abc", ""),
            ("Bearer", ""),
        ] {
            assert_eq!(read(value).as_deref(), Some(token), "{value}");
        }
        assert_eq!(bearer(&HeaderMap::new()), None);
    }
}

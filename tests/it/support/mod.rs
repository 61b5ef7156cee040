//! Shared code of the integration tests.
#![allow(
    dead_code,
    unused_imports,
    reason = "shared by many tests, of which each uses a part"
)]

pub mod app;
mod checked;
pub mod daemon;
mod dialect;
pub mod mix;
mod panels;
pub mod postgres;
pub mod program;
pub mod provider;
mod quarrels;
mod record;
pub mod replica;
pub mod replies;
pub mod script;
pub mod scripted;

mod thinking;
mod wire;

pub use app::{Got, Setup, TestApp, chat};
pub use provider::MockProvider;
pub use record::{Call, Ended};
pub use replies::{ReportBuilder, Scenario, report};
pub use script::{Fault, StepKey};

use reqwest::{Method, RequestBuilder, Url};

/// The HTTP client of the tests. It refuses every host but loopback.
#[derive(Debug, Clone)]
pub struct LoopbackClient(reqwest::Client);

/// Returns a client for servers that the test itself has started. It has no proxy, no redirects and
/// no timeout.
#[allow(
    clippy::disallowed_methods,
    reason = "the one client of the tests, and it leaves loopback never"
)]
pub fn client() -> LoopbackClient {
    // A second installation fails, which is harmless.
    let _ = rustls::crypto::ring::default_provider().install_default();
    // No keep-alive probes: with thousands of connections they come all at once. Loopback drops
    // what it cannot queue, and the kernel then assumes that the peer is dead.
    let inner = reqwest::Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .tcp_keepalive(None)
        .tcp_user_timeout(None)
        .build();
    LoopbackClient(inner.expect("an HTTP client"))
}

impl LoopbackClient {
    pub fn get(&self, url: impl AsRef<str>) -> RequestBuilder {
        self.request(Method::GET, url)
    }

    pub fn post(&self, url: impl AsRef<str>) -> RequestBuilder {
        self.request(Method::POST, url)
    }

    pub fn delete(&self, url: impl AsRef<str>) -> RequestBuilder {
        self.request(Method::DELETE, url)
    }

    /// Starts a request to a loopback address.
    ///
    /// # Panics
    /// Panics if the URL's host is not loopback.
    pub fn request(&self, method: Method, url: impl AsRef<str>) -> RequestBuilder {
        let url = Url::parse(url.as_ref()).expect("a URL");
        assert!(
            is_loopback(&url),
            "tests talk to loopback only, not to {url}"
        );
        self.0.request(method, url)
    }
}

fn is_loopback(url: &Url) -> bool {
    match url.host_str() {
        Some("localhost") => true,
        Some(host) => host
            .trim_matches(['[', ']'])
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback()),
        None => false,
    }
}

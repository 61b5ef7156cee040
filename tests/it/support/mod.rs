//! Shared code of the integration tests.
#![allow(
    dead_code,
    unused_imports,
    reason = "shared by many tests and a bench, of which each uses a part"
)]

pub mod app;
mod call;
pub mod mix;
mod mock;
pub mod postgres;
pub mod process;
mod scenario;
mod script;
mod truth;
mod vendor;
mod wire;

use std::time::Duration;

use reqwest::{Method, RequestBuilder, Url};

pub use app::{Got, Setup, TestApp, chat};
pub use call::{Call, step_of};
pub use mock::MockProvider;
pub use scenario::Scenario;
pub use script::{Canned, Fault};

/// The shipped config.
pub const SHIPPED: &str = include_str!("../../../llm.config.json");

/// Waits until the condition holds.
///
/// # Panics
/// Panics after 90 seconds.
pub async fn until(mut holds: impl AsyncFnMut() -> bool) {
    let polling = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let in_time = tokio::time::timeout(Duration::from_secs(90), polling).await;
    in_time.expect("the condition holds within 90 seconds");
}

/// The HTTP client of the tests. It refuses every host but loopback.
#[derive(Debug, Clone)]
pub struct LoopbackClient(reqwest::Client);

/// Returns a client for servers that the test itself has started. It has no proxy, no redirects and
/// no timeout.
#[allow(clippy::disallowed_methods, reason = "the one client of the tests")]
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
    LoopbackClient(inner.unwrap())
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

    /// Starts a request.
    ///
    /// # Panics
    /// Panics if the host is not loopback.
    pub fn request(&self, method: Method, url: impl AsRef<str>) -> RequestBuilder {
        let url = Url::parse(url.as_ref()).unwrap();
        let host = url.host_str().unwrap();
        assert!(
            ["localhost", "127.0.0.1", "[::1]"].contains(&host),
            "not to {url}"
        );
        self.0.request(method, url)
    }
}

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

use conclave::domain::RunId;

pub use app::{Got, Setup, TINY_PNG, TestApp, chat};
pub use call::{Call, step_of};
pub use mock::MockProvider;
pub use scenario::Scenario;
pub use script::Fault;

/// The question of scenarios in which the agents agree.
pub const QUESTION: &str = "What is the boiling point of water at sea level in Celsius?";

/// The shipped config.
pub const SHIPPED: &str = include_str!("../../../llm.config.json");

/// Waits until the condition holds.
///
/// # Panics
/// Panics after 90 seconds.
pub async fn until(mut holds: impl AsyncFnMut() -> bool) {
    for _ in 0..9000 {
        if holds().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the condition does not hold");
}

/// Executes statements on a database.
pub async fn execute<'e, D: sqlx::Database>(
    database: impl sqlx::Executor<'e, Database = D>,
    sql: impl Into<String>,
) {
    let statements = sqlx::raw_sql(sqlx::AssertSqlSafe(sql.into()));
    statements.execute(database).await.unwrap();
}

/// Sends a request.
pub async fn sent(request: reqwest::RequestBuilder) -> reqwest::Response {
    request.send().await.unwrap()
}

/// Sends a request, and returns the status of the response.
pub async fn status_of(request: reqwest::RequestBuilder) -> u16 {
    sent(request).await.status().as_u16()
}

/// Returns the run that a response names.
pub fn run_of(response: &reqwest::Response) -> RunId {
    let id = response.headers()["x-request-id"].to_str().unwrap();
    id.parse().unwrap()
}

/// Returns a client for servers that the test itself has started. It has no proxy, no redirects and
/// no timeout.
#[allow(clippy::disallowed_methods, reason = "the one client of the tests")]
pub fn client() -> reqwest::Client {
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
    inner.unwrap()
}

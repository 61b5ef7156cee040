//! The HTTP door: readers and submitters of runs. No handler works on a run itself.

mod api;
mod auth;
mod error;
mod request_id;
mod sse;

pub use api::chat::reply_body;

use std::sync::Arc;

use axum::extract::DefaultBodyLimit;
use axum::http::{HeaderName, HeaderValue};
use axum::routing::{get, post};
use axum::{Router, middleware};
use tokio::net::TcpListener;
use tower::ServiceBuilder;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::set_header::SetResponseHeaderLayer;

use crate::app::App;

/// Every route of the service.
pub fn router(app: Arc<App>) -> Router {
    let guarded = Router::new()
        .route("/api/chat", post(api::chat::post))
        .route("/api/quote", post(api::quote::post))
        .route("/api/runs", get(api::runs::list))
        .route("/api/runs/{id}", get(api::runs::show).delete(api::runs::cancel))
        .route("/api/runs/{id}/journal", get(api::runs::journal))
        .route("/api/runs/{id}/events", get(api::runs::events))
        .route("/metrics", get(api::metrics::metrics))
        .route_layer(middleware::from_fn_with_state(Arc::clone(&app), auth::require_token));
    let open = Router::new().route("/health", get(api::health::health)).route("/ready", get(api::health::ready));
    let constant = |name: &'static str, value: &'static str| {
        SetResponseHeaderLayer::if_not_present(HeaderName::from_static(name), HeaderValue::from_static(value))
    };
    guarded
        .merge(open)
        .fallback(error::no_such_page)
        .method_not_allowed_fallback(error::no_such_method)
        .layer(
            ServiceBuilder::new()
                .layer(middleware::from_fn(api::metrics::count))
                .layer(middleware::from_fn(request_id::assign))
                .layer(CatchPanicLayer::custom(error::panicked))
                .layer(constant("x-content-type-options", "nosniff"))
                .layer(constant("cache-control", "no-store"))
                .layer(constant("content-security-policy", "default-src 'none'; frame-ancestors 'none'"))
                .layer(constant("referrer-policy", "no-referrer"))
                .layer(DefaultBodyLimit::disable()),
        )
        .with_state(app)
}

/// Serves until `stop` resolves; connections that are open then may end their request.
///
/// # Errors
/// When the listener fails.
pub async fn serve(
    app: Arc<App>,
    listener: TcpListener,
    stop: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<()> {
    axum::serve(listener, router(app)).with_graceful_shutdown(stop).await
}

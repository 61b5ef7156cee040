//! The HTTP door: readers and submitters of runs. No handler works on a run itself.

mod api;
mod auth;
mod body;
mod connections;
mod error;
mod request_id;
mod sse;

pub use api::chat::reply_body;
pub use connections::serve;

use std::sync::Arc;
use std::time::Duration;

use axum::extract::DefaultBodyLimit;
use axum::http::{HeaderName, HeaderValue, Method, header};
use axum::routing::{get, post};
use axum::{Router, middleware};
use tower::ServiceBuilder;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::cors::{AllowOrigin, CorsLayer};
use tower_http::set_header::SetResponseHeaderLayer;

use crate::app::{App, Needs};
use crate::config::Config;
use crate::domain::Scope;

/// Every route of the service, behind the door that it needs.
pub fn router(app: Arc<App>) -> Router {
    let door = |needs: Needs| middleware::from_fn_with_state((Arc::clone(&app), needs), auth::require);
    let chat = Router::new()
        .route("/api/chat", post(api::chat::post))
        .route("/api/quote", post(api::quote::post))
        .route("/api/runs", get(api::runs::list))
        .route("/api/runs/{id}", get(api::runs::show).delete(api::runs::cancel))
        .route("/api/runs/{id}/journal", get(api::runs::journal))
        .route("/api/runs/{id}/events", get(api::runs::events))
        .route_layer(door(Needs::Scope(Scope::Chat)));
    let any_token = Router::new().route("/metrics", get(api::metrics::metrics)).route_layer(door(Needs::AnyToken));
    // Open to everybody: these say nothing of any run.
    let open = Router::new().route("/health", get(api::health::health)).route("/ready", get(api::health::ready));
    let constant = |name: &'static str, value: &'static str| {
        SetResponseHeaderLayer::if_not_present(HeaderName::from_static(name), HeaderValue::from_static(value))
    };
    chat.merge(any_token)
        .merge(open)
        .fallback(error::no_such_page)
        .method_not_allowed_fallback(error::no_such_method)
        .layer(
            // The first is the outermost: whatever answers further in, a panic or CORS included, these headers are on it.
            ServiceBuilder::new()
                .layer(middleware::from_fn(api::metrics::count))
                .layer(constant("x-content-type-options", "nosniff"))
                .layer(constant("cache-control", "no-store"))
                .layer(constant("content-security-policy", "default-src 'none'; frame-ancestors 'none'"))
                .layer(constant("referrer-policy", "no-referrer"))
                .layer(cors(&app.config))
                .layer(middleware::from_fn(request_id::assign))
                .layer(CatchPanicLayer::custom(error::panicked))
                .layer(DefaultBodyLimit::disable()),
        )
        .with_state(app)
}

/// Pages of other origins may call the API only if `CORS_ORIGINS` names them; never with cookies, of which there are none.
fn cors(config: &Config) -> CorsLayer {
    let origins: Vec<HeaderValue> =
        config.cors_origins.iter().filter_map(|origin| HeaderValue::from_str(origin).ok()).collect();
    if origins.is_empty() {
        return CorsLayer::new();
    }
    let name = HeaderName::from_static;
    CorsLayer::new()
        .allow_origin(AllowOrigin::list(origins))
        .allow_methods([Method::GET, Method::POST, Method::DELETE])
        .allow_headers([
            header::ACCEPT,
            header::AUTHORIZATION,
            header::CONTENT_TYPE,
            name("idempotency-key"),
            name("last-event-id"),
            name("prefer"),
            request_id::HEADER,
        ])
        .expose_headers([header::LOCATION, header::RETRY_AFTER, name("x-conclave-outcome"), request_id::HEADER])
        .max_age(Duration::from_secs(600))
}

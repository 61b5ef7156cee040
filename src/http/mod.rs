//! The HTTP door: readers and submitters of runs. No handler works on a run itself.

mod api;
mod auth;
mod error;
mod problem_kind;
mod reference;
mod request_id;
mod routes;
mod sse;

pub use api::chat::{Unread, question, reply_body};

use std::sync::Arc;

use axum::extract::DefaultBodyLimit;
use axum::http::{HeaderName, HeaderValue};
use axum::{Extension, Router, middleware};
use serde_json::Value;
use tokio::net::TcpListener;
use tower::ServiceBuilder;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::set_header::SetResponseHeaderLayer;

use crate::app::App;
use crate::config::Limits;
use reference::Reference;
use routes::{Access, Routes};

/// Every route that asks for a token, with the function that describes it.
fn guarded() -> Routes {
    Routes::of(Access::Scope("chat"))
        .post("/api/chat", api::chat::post, api::chat::about_post)
        .post("/api/quote", api::quote::post, api::quote::about_post)
        .get("/api/runs", api::runs::list, api::runs::about_list)
        .get("/api/runs/{id}", api::runs::show, api::runs::about_show)
        .delete("/api/runs/{id}", api::runs::cancel, api::runs::about_cancel)
        .get("/api/runs/{id}/journal", api::runs::journal, api::runs::about_journal)
        .get("/api/runs/{id}/events", api::runs::events, api::runs::about_events)
}

/// Every route that anybody may use.
fn open() -> Routes {
    Routes::of(Access::Open)
        .get("/health", api::health::health, api::health::about_health)
        .get("/ready", api::health::ready, api::health::about_ready)
        .get("/openapi.json", reference::document, reference::about_document)
        .get("/docs", reference::page, reference::about_page)
}

/// The OpenAPI document of the service.
pub fn document(limits: &Limits) -> Value {
    reference::assemble(&[&guarded(), &open()], limits)
}

/// The service.
pub fn router(app: Arc<App>) -> Router {
    let reference = Arc::new(Reference::of(&document(&app.config.policy.limits)));
    let token = middleware::from_fn_with_state(Arc::clone(&app), auth::require_token);
    let guarded = guarded().into_router().route_layer(token);
    let constant = |name: &'static str, value: &'static str| {
        SetResponseHeaderLayer::if_not_present(HeaderName::from_static(name), HeaderValue::from_static(value))
    };
    guarded
        .merge(open().into_router())
        .fallback(error::no_such_page)
        .method_not_allowed_fallback(error::no_such_method)
        .layer(
            ServiceBuilder::new()
                .layer(middleware::from_fn(request_id::assign))
                .layer(CatchPanicLayer::custom(error::panicked))
                .layer(constant("x-content-type-options", "nosniff"))
                .layer(constant("cache-control", "no-store"))
                .layer(constant("content-security-policy", "default-src 'none'; frame-ancestors 'none'"))
                .layer(constant("referrer-policy", "no-referrer"))
                .layer(DefaultBodyLimit::disable())
                .layer(Extension(reference)),
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

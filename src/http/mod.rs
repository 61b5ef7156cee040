//! The HTTP interface: submits and reads runs. No handler executes a run itself.

mod api;
mod auth;
mod body;
mod connections;
mod error;
mod headers;
mod problem_kind;
mod reference;
mod request_id;
mod routes;
mod sse;
mod unambiguous;
mod unsent;

pub use api::act::action;
pub use api::chat::question;
pub use api::reply_body::reply_body;
pub use body::Unread;
pub use connections::serve;
pub use sse::progress_event;

use std::sync::Arc;
use std::time::Duration;

use axum::extract::DefaultBodyLimit;
use axum::http::{HeaderName, HeaderValue, Method, header};
use axum::{Extension, Router, middleware};
use serde_json::Value;
use tower::ServiceBuilder;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::cors::{AllowOrigin, CorsLayer};
use tower_http::set_header::SetResponseHeaderLayer;

use crate::app::{App, Requirement};
use crate::config::{Config, Limits};
use crate::domain::Scope;
use reference::Reference;
use routes::Routes;

/// Returns the routes that require a token, grouped by requirement, each with the function that
/// describes it.
fn guarded() -> [Routes; 5] {
    let chat = Routes::needing(Requirement::Scope(Scope::Chat))
        .post("/api/chat", api::chat::post, api::chat::about_post)
        .post("/api/quote", api::quote::post, api::quote::about_post)
        .get("/api/runs", api::runs::list, api::runs::about_list)
        .delete("/api/runs/{id}", api::runs::cancel, api::runs::about_cancel)
        .post(
            "/api/runs/{id}/feedback",
            api::feedback::post,
            api::feedback::about_post,
        );
    let reads = Routes::needing(Requirement::AnyRunScope)
        .get("/api/runs/{id}", api::runs::show, api::runs::about_show)
        .get(
            "/api/runs/{id}/journal",
            api::runs::journal,
            api::runs::about_journal,
        )
        .get(
            "/api/runs/{id}/events",
            api::runs::events,
            api::runs::about_events,
        );
    let act = Routes::needing(Requirement::Scope(Scope::Act))
        .post("/api/act", api::act::post, api::act::about_post)
        .post(
            "/api/act/proposals/{id}/confirm",
            api::act::confirm,
            api::act::about_confirm,
        );
    let tools = tools(Routes::needing(Requirement::Scope(Scope::Tools)));
    let any = Routes::needing(Requirement::AnyToken).get(
        "/metrics",
        api::metrics::metrics,
        api::metrics::about_metrics,
    );
    [chat, reads, act, tools, any]
}

/// Adds the routes of tool plans.
fn tools(routes: Routes) -> Routes {
    routes
        .post("/api/plans", api::plans::post, api::plans::about_post)
        .post(
            "/api/plans/quote",
            api::plans::quote,
            api::plans::about_quote,
        )
        .get("/api/plans/{id}", api::plans::show, api::plans::about_get)
        .post(
            "/api/plans/{id}/authorize",
            api::plans::authorize,
            api::plans::about_authorize,
        )
        .get(
            "/api/executions/{id}",
            api::plans::execution,
            api::plans::about_execution,
        )
        .post(
            "/api/executions/{id}/undo",
            api::plans::undo,
            api::plans::about_undo,
        )
}

/// Returns the routes of tool plans for a command in the same process, which needs no token.
pub fn tools_here(app: Arc<App>) -> Router {
    tools(Routes::open()).into_router(&app).with_state(app)
}

/// Returns the routes that require no token. They reveal nothing about any run.
fn open() -> Routes {
    Routes::open()
        .get("/", reference::root, reference::about_root)
        .get("/health", api::health::health, api::health::about_health)
        .get("/ready", api::health::ready, api::health::about_ready)
        .get(
            "/openapi.json",
            reference::document,
            reference::about_document,
        )
        .get("/docs", reference::page, reference::about_page)
}

/// Returns the OpenAPI document of the service.
pub fn document(limits: &Limits) -> Value {
    let [chat, reads, act, tools, any] = guarded();
    reference::assemble(&[&chat, &reads, &act, &tools, &any, &open()], limits)
}

/// Builds the service: every route with the token check that it requires.
pub fn router(app: Arc<App>) -> Router {
    let reference = Arc::new(Reference::of(&document(&app.config.policy.limits)));
    let constant = |name: &'static str, value: &'static str| {
        SetResponseHeaderLayer::if_not_present(
            HeaderName::from_static(name),
            HeaderValue::from_static(value),
        )
    };
    guarded()
        .into_iter()
        .fold(open().into_router(&app), |all, group| {
            all.merge(group.into_router(&app))
        })
        .fallback(error::no_such_page)
        .method_not_allowed_fallback(error::no_such_method)
        .layer(
            // The first layer is the outermost. So every response has these headers, also that of a
            // panic or of CORS.
            ServiceBuilder::new()
                .layer(middleware::from_fn(api::metrics::count))
                .layer(constant("x-content-type-options", "nosniff"))
                .layer(constant("cache-control", "no-store"))
                .layer(constant(
                    "content-security-policy",
                    "default-src 'none'; frame-ancestors 'none'",
                ))
                .layer(constant("referrer-policy", "no-referrer"))
                .option_layer(cors(&app.config))
                .layer(middleware::from_fn_with_state(
                    app.clone(),
                    request_id::assign,
                ))
                .layer(middleware::from_fn_with_state(
                    app.clone(),
                    error::redact_secrets,
                ))
                .layer(CatchPanicLayer::custom(error::panicked))
                .layer(DefaultBodyLimit::disable())
                .layer(Extension(reference)),
        )
        .with_state(app)
}

/// Lets pages of other origins call the API only if `CORS_ORIGINS` names them. Cookies are never
/// allowed, because there are none.
fn cors(config: &Config) -> Option<CorsLayer> {
    let origins: Vec<HeaderValue> = config
        .cors_origins
        .iter()
        .filter_map(|origin| HeaderValue::from_str(origin).ok())
        .collect();
    if origins.is_empty() {
        return None;
    }
    let name = HeaderName::from_static;
    let layer = CorsLayer::new()
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
        .expose_headers([
            header::LOCATION,
            header::RETRY_AFTER,
            name("x-conclave-outcome"),
            request_id::HEADER,
        ])
        .max_age(Duration::from_secs(600));
    Some(layer)
}

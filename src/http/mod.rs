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
mod unsent;

pub use api::chat::question;
pub use api::reply_body::reply_body;
pub use body::Unread;
pub use connections::serve;
pub use sse::progress_event;

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{DefaultBodyLimit, Request};
use axum::http::{HeaderName, HeaderValue, Method, Version, header};
use axum::middleware::Next;
use axum::response::Response;
use axum::{Extension, Router, middleware};
use serde_json::Value;
use tower::ServiceBuilder;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::cors::{AllowOrigin, CorsLayer};
use tower_http::set_header::SetResponseHeaderLayer;

use crate::app::{App, Requirement};
use crate::config::{Config, Limits};
use crate::domain::Scope;
use api::{act, chat, feedback, health, metrics, plans, quote, runs};
use reference::Reference;
use routes::Routes;

/// Returns the routes that require a token, grouped by requirement.
fn guarded() -> [Routes; 6] {
    let questions = Routes::needing(Requirement::OneOf(&[Scope::Chat]))
        .post("/api/chat", chat::post)
        .post("/api/quote", quote::post)
        .post("/api/runs/{id}/feedback", feedback::post);
    let cancels = Routes::needing(Requirement::OneOf(&[Scope::Chat, Scope::Tools]))
        .delete("/api/runs/{id}", runs::cancel);
    let reads = Routes::needing(Requirement::OneOf(&[Scope::Chat, Scope::Act, Scope::Tools]))
        .get("/api/runs", runs::list)
        .get("/api/runs/{id}", runs::show)
        .get("/api/runs/{id}/journal", runs::journal)
        .get("/api/runs/{id}/events", runs::events);
    let actions = Routes::needing(Requirement::OneOf(&[Scope::Act]))
        .post("/api/act", act::post)
        .post("/api/act/proposals/{id}/confirm", act::confirm);
    let tools = tools(Routes::needing(Requirement::OneOf(&[Scope::Tools])));
    let any = Routes::needing(Requirement::AnyToken).get("/metrics", metrics::metrics);
    [questions, cancels, reads, actions, tools, any]
}

/// Adds the routes of tool plans.
fn tools(routes: Routes) -> Routes {
    routes
        .post("/api/plans", plans::post)
        .post("/api/plans/quote", plans::quote)
        .get("/api/plans/{id}", plans::show)
        .post("/api/plans/{id}/authorize", plans::authorize)
        .get("/api/executions/{id}", plans::execution)
        .post("/api/executions/{id}/undo", plans::undo)
}

/// Returns the routes of tool plans for a command in the same process, which needs no token.
pub fn tools_here(app: Arc<App>) -> Router {
    tools(Routes::open()).into_router(&app).with_state(app)
}

/// Returns the routes that require no token. They reveal nothing about any run.
fn open() -> Routes {
    Routes::open()
        .get("/", reference::root)
        .get("/health", health::health)
        .get("/ready", health::ready)
        .get("/openapi.json", reference::document)
        .get("/docs", reference::page)
}

/// Returns the OpenAPI document of the service.
pub fn document(limits: &Limits) -> Value {
    let routes: Vec<Routes> = guarded().into_iter().chain([open()]).collect();
    reference::assemble(&routes, limits)
}

/// Builds the service: every route with the token check that it requires.
pub fn router(app: Arc<App>) -> Router {
    let reference = Arc::new(Reference::new(app.config.policy.limits.clone()));
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
                .layer(middleware::from_fn(metrics::count))
                .layer(middleware::from_fn(announce_close))
                .layer(constant("x-content-type-options", "nosniff"))
                .layer(constant("cache-control", "no-store"))
                .layer(constant(
                    "content-security-policy",
                    "default-src 'none'; frame-ancestors 'none'",
                ))
                .layer(constant("referrer-policy", "no-referrer"))
                .layer(middleware::from_fn_with_state(
                    app.clone(),
                    request_id::assign,
                ))
                .option_layer(cors(&app.config))
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

/// Announces the end of a connection whose request is refused before its body is read, as RFC 9112,
/// section 9.6, asks. A client's next request would else fail.
async fn announce_close(request: Request, next: Next) -> Response {
    let headers = request.headers();
    let length = headers.get(header::CONTENT_LENGTH);
    let has_body = headers.contains_key(header::TRANSFER_ENCODING)
        || length.is_some_and(|length| length.as_bytes() != b"0");
    let may_close = has_body && request.version() <= Version::HTTP_11;
    let mut response = next.run(request).await;
    if may_close
        && matches!(
            response.status().as_u16(),
            401 | 403 | 404 | 405 | 413 | 415
        )
    {
        let close = HeaderValue::from_static("close");
        response.headers_mut().insert(header::CONNECTION, close);
    }
    response
}

/// Lets pages of other origins call the API only if `CORS_ORIGINS` names them. Cookies are never
/// allowed, because there are none.
fn cors(config: &Config) -> Option<CorsLayer> {
    let origins = config.cors_origins.iter();
    let origins: Vec<HeaderValue> = origins.flat_map(|origin| origin.parse()).collect();
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

//! The API reference: `/openapi.json`, generated from the types that the handlers read and write,
//! and `/docs`, the same document as a page.

pub(super) mod operation;
mod page;

use std::sync::{Arc, OnceLock};

use axum::Extension;
use axum::http::header::{ACCEPT, CONTENT_SECURITY_POLICY, CONTENT_TYPE, LOCATION, VARY};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};

use super::error::{Problem, ProblemBody};
use super::headers::wants;
use super::problem_kind::Kind;
use super::routes::Routes;
use crate::config::Limits;
use operation::{Content, Operation, Schemas};

/// The document and its page, rendered for the first request, so that a start does not wait for them.
pub(super) struct Reference {
    limits: Limits,
    rendered: OnceLock<Rendered>,
}

struct Rendered {
    document: String,
    page: String,
    /// The Content-Security-Policy of the page, which may load only its own style.
    policy: String,
}

impl Reference {
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            rendered: OnceLock::new(),
        }
    }

    fn rendered(&self) -> &Rendered {
        self.rendered.get_or_init(|| {
            let document = super::document(&self.limits);
            let (page, policy) = page::render(&document);
            Rendered {
                document: format!("{document:#}\n"),
                page,
                policy,
            }
        })
    }
}

/// Redirects a browser to the page. Any other client gets an error, because its base address is
/// probably wrong.
pub(super) async fn root(headers: HeaderMap) -> Response {
    let answer = if wants(&headers, ACCEPT.as_str(), "text/html") {
        (StatusCode::SEE_OTHER, [(LOCATION, "/docs")]).into_response()
    } else {
        let detail = "the API is under /api; GET /docs describes it for people, GET /openapi.json for programs";
        Problem::new(Kind::NoSuchPage, detail).into_response()
    };
    ([(VARY, "Accept")], answer).into_response()
}

pub(super) async fn document(Extension(reference): Extension<Arc<Reference>>) -> Response {
    let document = reference.rendered().document.clone();
    ([(CONTENT_TYPE, "application/json")], document).into_response()
}

pub(super) async fn page(Extension(reference): Extension<Arc<Reference>>) -> Response {
    let rendered = reference.rendered();
    let headers = [
        (CONTENT_TYPE, "text/html; charset=utf-8".to_owned()),
        (CONTENT_SECURITY_POLICY, rendered.policy.clone()),
    ];
    (headers, rendered.page.clone()).into_response()
}

pub(super) fn about_root(_: &mut Schemas) -> Operation {
    Operation::new("root", "service", "Redirect a browser to the reference")
        .about(
            "A browser, which accepts `text/html`, is sent to `/docs`. Any other client gets 404.",
        )
        .sample(" -H \"Accept: text/html\"")
        .answer(303, "The reference is at `/docs`", vec![], &["Location"])
        .problems(&[Kind::NoSuchPage])
}

pub(super) fn about_document(_: &mut Schemas) -> Operation {
    let schema = json!({ "type": "object", "required": ["openapi", "info", "paths"] });
    let example = json!({ "openapi": "3.1.1", "info": { "title": "Conclave", "version": "0.1.0" }, "paths": {} });
    Operation::new("openApi", "service", "The OpenAPI document")
        .about("The OpenAPI 3.1 document of the service, with the limits that it runs with.")
        .answer(
            200,
            "The document",
            vec![Content::json(schema, example)],
            &[],
        )
}

pub(super) fn about_page(_: &mut Schemas) -> Operation {
    Operation::new("docs", "service", "The reference as a page")
        .about("This document as one page. It loads nothing else and needs no script.")
        .answer(200, "The page", vec![Content::text("text/html")], &[])
}

/// Assembles the whole document.
pub(super) fn assemble(groups: &[&Routes], limits: &Limits) -> Value {
    let mut schemas = Schemas::new();
    // Every problem has this schema.
    let _ = schemas.answer::<ProblemBody>();
    let mut paths = Map::new();
    for group in groups {
        group.describe(&mut schemas, &mut paths);
    }
    let mut collected = schemas.collected();
    bound(&mut collected, limits);
    json!({
        "openapi": "3.1.1",
        "info": {
            "title": "Conclave",
            "version": env!("CARGO_PKG_VERSION"),
            "summary": "A committee of language models behind one request",
            "description": ABOUT,
            "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
        },
        "servers": [{ "url": "/" }],
        "tags": [
            { "name": "chat", "description": "Ask the committee, or what asking would cost." },
            { "name": "actions", "description": "Free text to one safe command." },
            { "name": "plans", "description": "Plans of tool calls: proposed by a model, authorized by a user, executed by tools." },
            { "name": "runs", "description": "What became of questions." },
            { "name": "service", "description": "The service itself. No token is needed." },
        ],
        "paths": paths,
        "components": {
            "schemas": collected,
            "parameters": {
                "X-Request-Id": {
                    "name": "X-Request-Id",
                    "in": "header",
                    "required": false,
                    "description": "The client's own id of the request. One of 1 to 128 letters, digits, dots, dashes \
                                    or underscores is kept beside the run; any other is ignored.",
                    "schema": { "type": "string" },
                },
            },
            "headers": headers(),
            "securitySchemes": {
                "bearer": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "A token with the scope that the operation names: chat, act, tools or admin. A \
                                    service that has no token configured listens on loopback only and asks for none.",
                },
            },
        },
    })
}

const ABOUT: &str = "\
Errors are problem details (RFC 9457) in `application/problem+json`; tell them apart by `type`. Every operation lists \
the ones that it can give. A path that no route has is 404 `urn:conclave:problem:no-such-page`; a method that the path \
does not have is 405 `urn:conclave:problem:no-such-method` with an `Allow` header.

Every answer carries `X-Request-Id`: the run's id once there is a run, else the client's own id or a fresh one.";

fn headers() -> Value {
    let header = |about: &str, required: bool, schema: Value| json!({ "description": about, "required": required, "schema": schema });
    let text = || json!({ "type": "string" });
    json!({
        "X-Request-Id": header("The run's id (a UUIDv7), or the id of the request.", true, text()),
        "X-Conclave-Outcome": header(
            "How the run ended. Not on a stream.",
            false,
            json!({ "enum": ["answered", "clarification", "heuristic"] }),
        ),
        "Location": header("The run, or the page.", true, json!({ "type": "string", "format": "uri-reference" })),
        "Preference-Applied": header("The preference that was honoured.", true, json!({ "const": "respond-async" })),
        "Retry-After": header("Seconds after which to try again.", true, json!({ "type": "integer", "minimum": 0 })),
        "WWW-Authenticate": header("The scheme to use.", true, text()),
    })
}

/// Replaces the default limits in the schemas with the configured ones.
fn bound(schemas: &mut Map<String, Value>, limits: &Limits) {
    let (chars, count) = (limits.message_chars, limits.attachments);
    for (body, place, limit) in [
        ("ChatBody", "/properties/message/maxLength", chars),
        ("ChatBody", "/properties/attachments/maxItems", count),
        ("ActBody", "/properties/message/maxLength", chars),
    ] {
        let body = schemas.get_mut(body);
        if let Some(value) = body.and_then(|body| body.pointer_mut(place)) {
            *value = json!(limit);
        }
    }
}

//! The API reference: `/openapi.json`, with the operations as `openapi.json` describes them and the
//! schemas of the types that the handlers read and write, and `/docs`, the same document as a page.

mod operation;
mod page;
mod schemas;

use std::sync::{Arc, OnceLock};

use axum::Extension;
use axum::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE, LOCATION, VARY};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};

use super::api::shapes::objects;
use super::error::Problem;
use super::headers::accepts;
use super::problem_kind::Kind;
use super::routes::Routes;
use crate::config::Limits;

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
    let answer = if accepts(&headers, "text/html") {
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

/// The document without what follows from the types, the routes and the kinds of problem. The
/// example of each schema is in `x-examples`, and the body of a stream of events in `x-stream`.
#[expect(
    clippy::expect_used,
    reason = "the file is part of the program, and the tests assemble the document"
)]
fn written() -> Value {
    serde_json::from_str(include_str!("openapi.json")).expect("openapi.json is JSON")
}

/// Assembles the whole document.
pub(super) fn assemble(groups: &[Routes], limits: &Limits) -> Value {
    let mut document = written();
    let mut stream = taken(&mut document, "x-stream");
    let mut events = objects(include_str!("../events.tsv"));
    events.retain(|name, _| !name.starts_with(':'));
    let names = events.keys().cloned().collect();
    set(&mut stream, "/schema/properties/event/enum", names);
    set(&mut stream, "/x-events", Value::Object(events));
    let examples = taken(&mut document, "x-examples");
    if let Some(Value::Object(paths)) = document.get_mut("paths") {
        for (path, method, needs) in groups.iter().flat_map(Routes::operations) {
            // A route without a description gives a document that is not valid.
            let item = paths.entry(path).or_insert_with(|| json!({}));
            let item = item.as_object_mut();
            let operation = item.map(|item| item.entry(method).or_insert(Value::Null));
            if let Some(Value::Object(operation)) = operation {
                operation::complete(operation, path, method, needs);
            }
        }
        for item in paths.values_mut() {
            fill(item, &stream, &examples);
        }
    }
    let mut schemas = schemas::all();
    bound(&mut schemas, limits);
    set(&mut document, "/components/schemas", Value::Object(schemas));
    let version = json!(env!("CARGO_PKG_VERSION"));
    set(&mut document, "/info/version", version);
    document
}

/// Sets a value that the file leaves open.
fn set(document: &mut Value, place: &str, value: Value) {
    if let Some(open) = document.pointer_mut(place) {
        *open = value;
    }
}

/// Removes a field of the document and returns it.
fn taken(document: &mut Value, name: &str) -> Value {
    let fields = document.as_object_mut();
    fields
        .and_then(|fields| fields.shift_remove(name))
        .unwrap_or_default()
}

/// Describes the streams in a part of the document, and gives every other body the example of its
/// schema if it has no example.
fn fill(part: &mut Value, stream: &Value, examples: &Value) {
    for (name, field) in part.as_object_mut().into_iter().flatten() {
        match name.as_str() {
            "text/event-stream" => field.clone_from(stream),
            "application/json" => {
                let schema = field.pointer("/schema/$ref").and_then(Value::as_str);
                let name = schema.and_then(|path| path.rsplit('/').next());
                let example = name.and_then(|name| examples.get(name));
                if let (Value::Object(content), Some(example)) = (field, example) {
                    content.entry("example").or_insert_with(|| example.clone());
                }
            }
            _ => fill(field, stream, examples),
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::RunState;

    #[test]
    fn the_file_names_only_kinds_of_problem_and_states_that_exist() {
        let written = written();
        let paths = written["paths"].as_object().unwrap().values();
        for operation in paths.flat_map(|path| path.as_object().unwrap().values()) {
            for kind in operation["x-problems"].as_array().into_iter().flatten() {
                assert!(kind.as_str().unwrap().parse::<Kind>().is_ok(), "{kind}");
            }
        }
        let parameters = &written["paths"]["/api/runs"]["get"]["parameters"];
        let parameters = parameters.as_array().unwrap();
        let outcome = parameters
            .iter()
            .find(|it| it["name"] == "outcome")
            .unwrap();
        assert_eq!(outcome["schema"]["enum"], json!(RunState::NAMES));
    }
}

//! Renders the document as a page on the server: one style, no script, nothing loaded.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use pulldown_cmark::{Event, Parser, html::push_html};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

const STYLE: &str = include_str!("page.css");

/// Returns the page, and the Content-Security-Policy that allows only its own style.
pub(super) fn render(document: &Value) -> (String, String) {
    let hash = STANDARD.encode(Sha256::digest(STYLE.as_bytes()));
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{hash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    let operations = operations(document);
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (text(at(document, "/info/title"))) " HTTP API" }
                style { (PreEscaped(STYLE)) }
            }
            body {
                nav aria-label="Routes" {
                    h1 { a href="#top" { (text(at(document, "/info/title"))) } }
                    p { "Version " (text(at(document, "/info/version"))) ". " a href="/openapi.json" { "openapi.json" } }
                    @for tag in list(&document["tags"]) {
                        h2 { (text(&tag["name"])) }
                        ul {
                            @for (path, method, operation) in operations.iter().filter(|o| has_tag(o.2, &tag["name"])) {
                                li { a href={ "#" (text(&operation["operationId"])) } { (route(method, path)) } }
                            }
                        }
                    }
                    h2 { "Schemas" }
                    ul {
                        @for name in keys(at(document, "/components/schemas")) {
                            li { a href={ "#schema-" (name) } { (name) } }
                        }
                    }
                }
                main id="top" {
                    (markdown(at(document, "/info/description")))
                    p { (text(at(document, "/components/securitySchemes/bearer/description"))) }
                    @for (path, method, operation) in &operations {
                        (section(document, path, method, operation))
                    }
                    h2 { "Schemas" }
                    @for name in keys(at(document, "/components/schemas")) {
                        section id={ "schema-" (name) } {
                            h3 { (name) }
                            (schema(&at(document, "/components/schemas")[name]))
                        }
                    }
                }
            }
        }
    };
    (page.into_string(), policy)
}

/// Returns path, method and operation in the order of the document.
fn operations(document: &Value) -> Vec<(&str, &str, &Value)> {
    let paths = document["paths"].as_object().into_iter().flatten();
    paths
        .flat_map(|(path, item)| {
            let methods = item.as_object().into_iter().flatten();
            methods.map(move |(method, operation)| (path.as_str(), method.as_str(), operation))
        })
        .collect()
}

fn section(document: &Value, path: &str, method: &str, operation: &Value) -> Markup {
    let body = at(operation, "/requestBody/content/application~1json");
    html! {
        section id=(text(&operation["operationId"])) {
            h2 { (route(method, path)) }
            p.summary { (text(&operation["summary"])) (access(operation)) }
            (markdown(&operation["description"]))
            @for sample in list(&operation["x-codeSamples"]) {
                pre tabindex="0" { code { (text(&sample["source"])) } }
            }
            h3 { "Parameters" }
            table {
                thead { tr { th { "name" } th { "in" } th { "value" } th { "meaning" } } }
                tbody {
                    @for parameter in list(&operation["parameters"]) {
                        @let parameter = followed(document, parameter);
                        tr {
                            td { code { (text(&parameter["name"])) } @if parameter["required"] == true { " (needed)" } }
                            td { (text(&parameter["in"])) }
                            td { (kind(&parameter["schema"])) }
                            td { (markdown(&parameter["description"])) }
                        }
                    }
                }
            }
            @if !body.is_null() {
                h3 { "Body" }
                p { code { "application/json" } ": " (kind(&body["schema"])) }
                (example(&body["example"]))
            }
            h3 { "Answers" }
            @for (status, answer) in operation["responses"].as_object().into_iter().flatten() {
                details open[status.starts_with('2')] {
                    summary { strong { (status) } " " (first_line(&answer["description"])) }
                    (markdown(&answer["description"]))
                    @for (media_type, content) in answer["content"].as_object().into_iter().flatten() {
                        p { code { (media_type) } ": " (kind(&content["schema"])) }
                        @if let Some(events) = content["x-events"].as_object() {
                            @for (name, data) in events {
                                details { summary { "event " code { (name) } } (schema(data)) }
                            }
                        }
                        (example(&content["example"]))
                    }
                    p { "Headers: " @for (name, header) in answer["headers"].as_object().into_iter().flatten() {
                        code title=(text(&followed(document, header)["description"])) { (name) } " "
                    } }
                }
            }
        }
    }
}

fn route(method: &str, path: &str) -> Markup {
    html! { code { span class={ "method " (method) } { (method.to_uppercase()) } " " (path) } }
}

fn access(operation: &Value) -> Markup {
    let scope = operation.pointer("/security/0/bearer/0");
    html! {
        @match scope {
            Some(scope) => { " Needs a token with the scope " code { (text(scope)) } "." }
            None => { " Needs no token." }
        }
    }
}

/// Renders a schema in a few words, with a link to its full description.
fn kind(schema: &Value) -> Markup {
    if let Some(name) = schema["$ref"]
        .as_str()
        .and_then(|path| path.rsplit('/').next())
    {
        return html! { a href={ "#schema-" (name) } { (name) } };
    }
    if let Some(first) = schema["allOf"].as_array().and_then(|all| all.first()) {
        return kind(first);
    }
    if let Some(any) = schema["anyOf"].as_array() {
        return html! { @for (i, one) in any.iter().enumerate() { @if i > 0 { " or " } (kind(one)) } };
    }
    if let Some(values) = schema["enum"].as_array() {
        return html! { @for (i, value) in values.iter().enumerate() { @if i > 0 { ", " } code { (text(value)) } } };
    }
    if !schema["const"].is_null() {
        return html! { code { (text(&schema["const"])) } };
    }
    let names: Vec<String> = match &schema["type"] {
        Value::Array(names) => names.iter().map(text).collect(),
        name => vec![text(name)],
    };
    let bounds = [
        "format",
        "minLength",
        "maxLength",
        "minItems",
        "maxItems",
        "minimum",
        "maximum",
        "pattern",
    ];
    html! {
        (names.join(" or "))
        @if schema["items"].is_object() { " of " (kind(&schema["items"])) }
        @for bound in bounds.into_iter().filter(|bound| !schema[*bound].is_null()) {
            ", " (bound) " " code { (text(&schema[bound])) }
        }
    }
}

/// Renders the fields of a schema, or its kind if it has no fields.
fn schema(schema: &Value) -> Markup {
    let needed = |name: &str| {
        list(&schema["required"])
            .iter()
            .any(|required| required == name)
    };
    html! {
        (markdown(&schema["description"]))
        @if let Some(fields) = schema["properties"].as_object() {
            table {
                thead { tr { th { "field" } th { "value" } th { "meaning" } } }
                tbody {
                    @for (name, field) in fields {
                        tr {
                            td { code { (name) } @if !needed(name) { " (optional)" } }
                            td { (kind(field)) }
                            td { (markdown(&field["description"])) }
                        }
                    }
                }
            }
            @if schema["additionalProperties"] == false { p { "No other field." } }
        } @else {
            p { (kind(schema)) }
        }
        @for one in list(&schema["oneOf"]) { (self::schema(one)) }
    }
}

fn example(value: &Value) -> Markup {
    let shown = match value {
        Value::Null => return html! {},
        Value::String(text) => text.clone(),
        other => format!("{other:#}"),
    };
    html! { pre tabindex="0" { code { (shown) } } }
}

/// Renders Markdown as HTML. Raw HTML in it is shown as text.
fn markdown(value: &Value) -> Markup {
    let Some(source) = value.as_str().filter(|source| !source.is_empty()) else {
        return html! {};
    };
    let safe = Parser::new(source).map(|event| match event {
        Event::Html(raw) | Event::InlineHtml(raw) => Event::Text(raw),
        other => other,
    });
    let mut rendered = String::new();
    push_html(&mut rendered, safe);
    PreEscaped(rendered)
}

fn first_line(value: &Value) -> String {
    let line = text(value)
        .lines()
        .next()
        .unwrap_or_default()
        .replace('`', "");
    line.trim_start_matches("- ").to_owned()
}

/// Returns the value at a JSON pointer, or null if there is none.
fn at<'a>(value: &'a Value, pointer: &str) -> &'a Value {
    value.pointer(pointer).unwrap_or(&Value::Null)
}

/// Returns the target of a reference, or the value itself if it is none.
fn followed<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    let target = value["$ref"]
        .as_str()
        .and_then(|path| document.pointer(path.trim_start_matches('#')));
    target.unwrap_or(value)
}

fn has_tag(operation: &Value, tag: &Value) -> bool {
    list(&operation["tags"]).contains(tag)
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn keys(value: &Value) -> impl Iterator<Item = &String> {
    value.as_object().into_iter().flat_map(|map| map.keys())
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(
        || {
            if value.is_null() {
                String::new()
            } else {
                value.to_string()
            }
        },
        str::to_owned,
    )
}

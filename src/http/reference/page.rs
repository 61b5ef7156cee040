//! Renders the document as a page on the server, by the template `page.html`: one style, no script,
//! nothing loaded.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{Environment, Error, UndefinedBehavior, Value as Shown, context};
use pulldown_cmark::{Event, Parser, html::push_html};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

const STYLE: &str = include_str!("page.css");

/// The limits of a value that the page shows.
const BOUNDS: [&str; 8] = [
    "format",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minimum",
    "maximum",
    "pattern",
];

/// Returns the page, and the Content-Security-Policy that allows only its own style.
pub(super) fn render(document: &Value) -> (String, String) {
    let hash = STANDARD.encode(Sha256::digest(STYLE.as_bytes()));
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{hash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    let page = rendered(document);
    (page.unwrap_or_else(|error| error.to_string()), policy)
}

fn rendered(document: &Value) -> Result<String, Error> {
    let mut environment = Environment::new();
    let mut syntax = SyntaxConfig::builder();
    environment.set_syntax(syntax.trim_blocks(true).lstrip_blocks(true).build()?);
    environment.set_undefined_behavior(UndefinedBehavior::Chainable);
    environment.set_auto_escape_callback(|_| minijinja::AutoEscape::Html);
    environment.add_filter("markdown", |source: Option<&str>| {
        Shown::from_safe_string(markdown(source.unwrap_or_default()))
    });
    environment.add_filter("pretty", |value: Shown| match value.as_str() {
        Some(text) => text.to_owned(),
        None => format!("{:#}", serde_json::to_value(&value).unwrap_or_default()),
    });
    let whole = document.clone();
    environment.add_filter("followed", move |value: Shown| {
        let target = value.get_attr("$ref").ok();
        let target = target.as_ref().and_then(Shown::as_str);
        let target = target.and_then(|path| whole.pointer(path.trim_start_matches('#')));
        target.map_or(value, shown)
    });
    environment.add_template("page", include_str!("page.html"))?;
    let values = context! { style => STYLE, bounds => BOUNDS, ..shown(document) };
    let page = environment.get_template("page")?.render(values)?;
    // A slash needs no escape.
    Ok(page.replace("&#x2f;", "/"))
}

/// Returns a value for the template, with the keys of an object in their order.
fn shown(value: &Value) -> Shown {
    match value {
        Value::Object(object) => Shown::make_object_map(
            object.clone(),
            |object| Box::new(object.keys().map(Shown::from)),
            |object, key| object.get(key.as_str()?).map(shown),
        ),
        Value::Array(items) => items.iter().map(shown).collect(),
        other => Shown::from(Serde(other)),
    }
}

/// Renders Markdown as HTML. Raw HTML in it is shown as text.
fn markdown(source: &str) -> String {
    let safe = Parser::new(source).map(|event| match event {
        Event::Html(raw) | Event::InlineHtml(raw) => Event::Text(raw),
        other => other,
    });
    let mut rendered = String::new();
    push_html(&mut rendered, safe);
    rendered
}

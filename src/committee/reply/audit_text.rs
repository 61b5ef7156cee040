//! Renders the audit appendix as Markdown, by the template `data/audit.md.jinja`.

use std::sync::LazyLock;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{Environment, Error, Value, context};

use crate::committee::reply::headings::AUDIT;
use crate::committee::reply::render::figure;
use crate::committee::reply::rounding::with_two_decimals;
use crate::domain::{shown_bound, shown_c_final, without_controls};
use crate::text::{self, one_line};

static TEMPLATES: LazyLock<Result<Environment<'static>, Error>> = LazyLock::new(templates);

fn templates() -> Result<Environment<'static>, Error> {
    let mut environment = Environment::new();
    environment.set_syntax(
        SyntaxConfig::builder()
            .trim_blocks(true)
            .lstrip_blocks(true)
            .keep_trailing_newline(true)
            .build()?,
    );
    environment.add_filter("line", |value: Value| line(&value));
    environment.add_filter("excerpt", |value: Value, max: usize| {
        text::excerpt(&line(&value), max)
    });
    environment.add_filter("cell", |value: Value| cell(&line(&value)));
    environment.add_filter("short", |value: Value| -> String {
        line(&value).chars().take(12).collect()
    });
    environment.add_filter("fixed", |value: Value, decimals: usize| {
        format!("{:.decimals$}", number(&value))
    });
    environment.add_filter("bound", |value: Value| shown_bound(number(&value)));
    environment.add_filter("feature", |value: Value| {
        feature(&value).unwrap_or_default()
    });
    environment.add_template("audit", include_str!("data/audit.md.jinja"))?;
    Ok(environment)
}

/// Renders the JSON audit as the appendix of a reply.
pub fn markdown(audit: &serde_json::Value) -> String {
    let pretty = |value| serde_json::to_string_pretty(value).unwrap_or_default();
    let estimate = with_two_decimals(audit["executionEstimate"].clone());
    let calls = audit.pointer("/budget/calls");
    let in_flight = calls.and_then(|calls| calls.as_array());
    let in_flight = in_flight.into_iter().flatten();
    let in_flight = in_flight.filter(|call| call["costUsd"].is_null());
    let reserved = in_flight.filter_map(|call| call["reservedUsd"].as_f64());
    let confidence = &audit["confidence"];
    let [reached, least] =
        ["c_final", "threshold"].map(|key| confidence.get(key).and_then(serde_json::Value::as_f64));
    let values = context! {
        c_final => shown_c_final(reached.unwrap_or(0.0), least.unwrap_or(0.0), 4),
        reserved_usd => reserved.sum::<f64>(),
        heading => AUDIT,
        plan_json => pretty(&audit["plan"]),
        estimate_json => pretty(&estimate),
        ..Value::from(Serde(audit))
    };
    let templates = TEMPLATES.as_ref().map_err(ToString::to_string);
    let text = templates.and_then(|templates| {
        let text = templates
            .get_template("audit")
            .and_then(|it| it.render(values));
        text.map_err(|error| format!("{error:#}"))
    });
    let text = text.unwrap_or_else(|error| {
        tracing::error!(error, "the audit appendix cannot be rendered");
        String::new()
    });
    without_controls(&text).into_owned()
}

/// Returns a string on one line, `-` for no value, or any other value as JSON.
fn line(value: &Value) -> String {
    if value.is_none() || value.is_undefined() {
        return "-".to_owned();
    }
    let json = || serde_json::to_string(value).unwrap_or_default();
    value.as_str().map_or_else(json, one_line)
}

/// Returns the text of a table cell, at most 60 characters. Replaces `|`, which would end the cell,
/// by `/`.
fn cell(line: &str) -> String {
    text::excerpt(&line.replace('|', "/"), 60)
}

fn number(value: &Value) -> f64 {
    f64::try_from(value.clone()).unwrap_or(0.0)
}

/// Renders a feature: its value and points. `None` if it has neither.
fn feature(feature: &Value) -> Option<String> {
    let name = line(&feature.get_attr("name").ok()?);
    let name = name.rsplit('.').next().unwrap_or_default();
    let value = figure(number(&feature.get_attr("value").ok()?));
    let points = number(&feature.get_attr("points").ok()?);
    match (value.as_str(), points == 0.0) {
        ("0", true) => None,
        (value, true) => Some(format!("{name} {value}")),
        (value, false) => Some(format!("{name} {value} ({points:+.1})")),
    }
}

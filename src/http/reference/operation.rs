//! Completes an operation of `openapi.json` with what follows from its route: what its token must
//! permit, and its problems.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::super::api::shapes::with;
use super::super::problem_kind::Kind;
use crate::app::Requirement;

/// The problems of a body that are found before its content is checked.
const OF_BODY: [Kind; 5] = [
    Kind::NotJson,
    Kind::WrongShape,
    Kind::TooSlow,
    Kind::TooLarge,
    Kind::WrongType,
];

/// Completes an operation. The file gives what does not follow from the route:
/// - `x-problems`: kinds of problem that not every operation like it has
/// - `x-curl`: arguments of `curl -s` after the address and the token
/// - `headers` of a response: names of headers that not every response has
pub(super) fn complete(
    operation: &mut Map<String, Value>,
    path: &str,
    method: &str,
    needs: Option<Requirement>,
) {
    let (security, of_token) = security(needs);
    let own = operation.shift_remove("x-problems").unwrap_or_default();
    let mut problems = vec![Kind::Internal];
    if operation.contains_key("requestBody") {
        problems.extend(OF_BODY);
    }
    problems.extend(words(&own).filter_map(|kind| kind.parse::<Kind>().ok()));
    problems.extend(of_token);
    if needs.is_some() && !problems.contains(&Kind::NoJournal) {
        // Tokens are looked up in the database of the journal.
        problems.push(Kind::NoJournal);
    }
    let mut by_status: BTreeMap<u16, Vec<Kind>> = BTreeMap::new();
    for kind in problems {
        let status = kind.text().status.as_u16();
        by_status.entry(status).or_default().push(kind);
    }
    if let Some(Value::Object(answers)) = operation.get_mut("responses") {
        for answer in answers.values_mut().filter_map(Value::as_object_mut) {
            let names = answer.shift_remove("headers").unwrap_or_default();
            answer.shift_insert(1, "headers".into(), header_references(words(&names)));
        }
        let problems = by_status.into_iter();
        answers
            .extend(problems.map(|(status, kinds)| (status.to_string(), problem(status, &kinds))));
    }
    if let Some(Value::Array(parameters)) = operation.get_mut("parameters") {
        // Every request may have the client's own id.
        let id = json!({ "$ref": "#/components/parameters/X-Request-Id" });
        parameters.insert(0, id);
    }
    operation.shift_insert(4, "security".into(), security);
    let token = match needs {
        None => "",
        Some(_) => " -H \"Authorization: Bearer $CONCLAVE_TOKEN\"",
    };
    let verb = if method == "delete" { " -X DELETE" } else { "" };
    let url = path.replace("{id}", "$RUN");
    let curl = operation.shift_remove("x-curl").unwrap_or_default();
    let curl = curl.as_str().unwrap_or_default();
    let source = format!("curl -s{verb} \"http://127.0.0.1:8080{url}\"{token}{curl}");
    let samples = json!([{ "lang": "Shell", "label": "curl", "source": source }]);
    operation.shift_insert(7, "x-codeSamples".into(), samples);
}

/// Returns the words in a list.
fn words(list: &Value) -> impl Iterator<Item = &str> {
    list.as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
}

/// Returns the security requirement of an operation, and the problems that come with it.
fn security(needs: Option<Requirement>) -> (Value, &'static [Kind]) {
    const OF_TOKEN: &[Kind] = &[Kind::NoToken, Kind::NotLocal, Kind::RateLimited];
    const OF_SCOPE: &[Kind] = &[
        Kind::NoToken,
        Kind::LacksScope,
        Kind::NotLocal,
        Kind::RateLimited,
    ];
    match needs {
        None => (json!([]), &[]),
        Some(Requirement::OneOf(scopes)) => {
            let scopes = scopes
                .iter()
                .map(|scope| json!({ "bearer": [scope.into_str()] }));
            (scopes.collect(), OF_SCOPE)
        }
        Some(Requirement::AnyToken) => (json!([{ "bearer": [] }]), OF_TOKEN),
    }
}

fn header_references<'a>(names: impl Iterator<Item = &'a str>) -> Value {
    let reference = |name: &str| {
        let target = format!("#/components/headers/{name}");
        (name.to_owned(), json!({ "$ref": target }))
    };
    std::iter::once("X-Request-Id")
        .chain(names)
        .map(reference)
        .collect()
}

/// Describes the response for the kinds of problem that share a status.
fn problem(status: u16, kinds: &[Kind]) -> Value {
    let lines: Vec<String> = kinds
        .iter()
        .map(|kind| format!("- `{}`: {}", kind.urn(), kind.text().when))
        .collect();
    let header = match status {
        401 | 403 => Some("WWW-Authenticate"),
        429 | 503 => Some("Retry-After"),
        _ => None,
    };
    let urns: Vec<String> = kinds.iter().map(|kind| kind.urn()).collect();
    let narrowed =
        json!({ "properties": { "type": { "enum": urns }, "status": { "const": status } } });
    let schema = json!({ "allOf": [{ "$ref": "#/components/schemas/Problem" }, narrowed] });
    let text = kinds.first().map(|kind| kind.text()).unwrap_or_default();
    let mut example = json!({
        "type": urns.first(), "title": text.title, "status": status, "detail": text.when,
        "requestId": "019b2c4e-7f00-7aa1-b2c3-0d4e5f607182",
    });
    if matches!(kinds.first(), Some(Kind::WrongShape | Kind::Invalid)) {
        let errors = json!([{ "pointer": "/user/id", "detail": "must not be empty" }]);
        example = with(example, "errors", errors);
    }
    json!({
        "description": lines.join("\n"),
        "headers": header_references(header.into_iter()),
        "content": { "application/problem+json": { "schema": schema, "example": example } },
    })
}

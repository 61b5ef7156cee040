//! Describes an operation in OpenAPI 3.1: its parameters, its body and its responses.

use std::collections::BTreeMap;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::super::api::shapes::with;
use super::super::problem_kind::Kind;
use crate::app::Requirement;

/// The schemas of the request and response types, collected under `#/components/schemas`. The two
/// directions differ: an optional field may be missing in a request and is null in a response.
pub(in crate::http) struct Schemas {
    requests: SchemaGenerator,
    answers: SchemaGenerator,
}

impl Schemas {
    pub(super) fn new() -> Self {
        let mut settings = SchemaSettings::draft2020_12();
        settings.definitions_path = "#/components/schemas".into();
        settings.meta_schema = None;
        Self {
            requests: settings.clone().for_deserialize().into_generator(),
            answers: settings.for_serialize().into_generator(),
        }
    }

    pub fn request<T: JsonSchema>(&mut self) -> Value {
        self.requests.subschema_for::<T>().to_value()
    }

    pub fn answer<T: JsonSchema>(&mut self) -> Value {
        self.answers.subschema_for::<T>().to_value()
    }

    /// Returns every schema by its name. A type that is used in both directions must have the same
    /// schema in both.
    pub(super) fn collected(mut self) -> Map<String, Value> {
        let mut all = self.requests.take_definitions(true);
        for (name, schema) in self.answers.take_definitions(true) {
            debug_assert!(
                all.get(&name).is_none_or(|known| *known == schema),
                "{name} differs by direction"
            );
            all.insert(name, schema);
        }
        all.sort_keys();
        all
    }
}

/// The body of a response in one media type.
pub(in crate::http) struct Content {
    media_type: &'static str,
    described: Value,
}

impl Content {
    pub fn json(schema: Value, example: Value) -> Self {
        Self {
            media_type: "application/json",
            described: Value::from_iter([("schema", schema), ("example", example)]),
        }
    }

    pub fn text(media_type: &'static str) -> Self {
        let described = json!({ "schema": { "type": "string" } });
        Self {
            media_type,
            described,
        }
    }

    /// Describes a stream of server-sent events. The schema and the example are those of one event.
    /// The extension field `events` has the data of each event by its name.
    pub fn events(schema: Value, example: Value, events: Value) -> Self {
        let described = [
            ("x-events", events),
            ("schema", schema),
            ("example", example),
        ];
        Self {
            media_type: "text/event-stream",
            described: Value::from_iter(described),
        }
    }

    fn into_entry(self) -> (String, Value) {
        (self.media_type.to_owned(), self.described)
    }
}

/// The description of an operation while it is built.
pub(in crate::http) struct Operation {
    id: &'static str,
    tag: &'static str,
    summary: &'static str,
    about: String,
    parameters: Vec<Value>,
    body: Option<Value>,
    answers: BTreeMap<u16, Value>,
    problems: Vec<Kind>,
    sample: String,
}

impl Operation {
    pub fn new(id: &'static str, tag: &'static str, summary: &'static str) -> Self {
        Self {
            id,
            tag,
            summary,
            about: String::new(),
            // Every request may have the client's own id.
            parameters: vec![json!({ "$ref": "#/components/parameters/X-Request-Id" })],
            body: None,
            answers: BTreeMap::new(),
            problems: vec![Kind::Internal],
            sample: String::new(),
        }
    }

    /// Sets the description, in Markdown.
    pub fn about(mut self, about: &str) -> Self {
        about.clone_into(&mut self.about);
        self
    }

    /// Sets the arguments of `curl -s` in the example. They follow the address and the token.
    pub fn sample(mut self, arguments: &str) -> Self {
        arguments.clone_into(&mut self.sample);
        self
    }

    pub fn path(self, name: &str, schema: Value, about: &str) -> Self {
        self.parameter("path", name, schema, about, true)
    }

    pub fn query(self, name: &str, schema: Value, about: &str) -> Self {
        self.parameter("query", name, schema, about, false)
    }

    pub fn header(self, name: &str, schema: Value, about: &str) -> Self {
        self.parameter("header", name, schema, about, false)
    }

    fn parameter(
        mut self,
        place: &str,
        name: &str,
        schema: Value,
        about: &str,
        required: bool,
    ) -> Self {
        let parameter =
            json!({ "name": name, "in": place, "required": required, "description": about });
        self.parameters.push(with(parameter, "schema", schema));
        self
    }

    pub fn body(mut self, schema: Value, example: Value) -> Self {
        let content = Map::from_iter([Content::json(schema, example).into_entry()]);
        self.body = Some(json!({ "required": true, "content": content }));
        self
    }

    /// Adds a response that is not a problem. `headers` are names under `components/headers`.
    pub fn answer(
        mut self,
        status: u16,
        about: &str,
        content: Vec<Content>,
        headers: &[&str],
    ) -> Self {
        let mut answer = json!({ "description": about, "headers": header_references(headers) });
        if !content.is_empty() {
            let content = content.into_iter().map(Content::into_entry);
            answer = with(answer, "content", content.collect::<Value>());
        }
        self.answers.insert(status, answer);
        self
    }

    /// Links the responses added so far to operations on the run whose id is at `expression`.
    pub fn leads_to(mut self, expression: &str, operations: &[&str]) -> Self {
        let link = |id: &str| json!({ "operationId": id, "parameters": { "id": expression } });
        let links = operations.iter().map(|id| ((*id).to_owned(), link(id)));
        let links: Map<String, Value> = links.collect();
        for answer in self.answers.values_mut() {
            answer["links"] = json!(links);
        }
        self
    }

    pub fn problems(mut self, kinds: &[Kind]) -> Self {
        self.problems.extend(kinds);
        self
    }

    /// Builds the operation object.
    pub(in crate::http) fn finish(
        mut self,
        path: &str,
        method: &str,
        needs: Option<Requirement>,
    ) -> Value {
        let (security, problems) = security(needs);
        self.problems.extend(problems);
        if needs.is_some() && !self.problems.contains(&Kind::NoJournal) {
            // Tokens are looked up in the database of the journal.
            self.problems.push(Kind::NoJournal);
        }
        let mut by_status: BTreeMap<u16, Vec<Kind>> = BTreeMap::new();
        for kind in self.problems {
            let status = kind.said().status.as_u16();
            by_status.entry(status).or_default().push(kind);
        }
        let mut answers = self.answers;
        let problems = by_status.into_iter();
        answers.extend(problems.map(|(status, kinds)| (status, problem(status, &kinds))));
        let answers = answers.into_iter();
        let answers: Map<String, Value> = answers
            .map(|(status, answer)| (status.to_string(), answer))
            .collect();
        let token = if needs.is_none() {
            ""
        } else {
            " -H \"Authorization: Bearer $CONCLAVE_TOKEN\""
        };
        let verb = if method == "delete" { " -X DELETE" } else { "" };
        let url = path.replace("{id}", "$RUN");
        let mut operation = json!({
            "operationId": self.id,
            "tags": [self.tag],
            "summary": self.summary,
            "description": self.about,
            "security": security,
            "parameters": self.parameters,
            "responses": answers,
            "x-codeSamples": [{
                "lang": "Shell",
                "label": "curl",
                "source": format!("curl -s{verb} \"http://127.0.0.1:8080{url}\"{token}{}", self.sample),
            }],
        });
        if let Some(body) = self.body {
            operation = with(operation, "requestBody", body);
        }
        operation
    }
}

/// Returns the security requirement of an operation, and the problems that come with it.
fn security(needs: Option<Requirement>) -> (Value, &'static [Kind]) {
    let of_token = &[Kind::NoToken, Kind::NotLocal, Kind::RateLimited];
    let of_scopes = &[
        Kind::NoToken,
        Kind::LacksScope,
        Kind::NotLocal,
        Kind::RateLimited,
    ];
    match needs {
        None => (json!([]), &[]),
        Some(Requirement::Scope(scope)) => (json!([{ "bearer": [scope.into_str()] }]), of_scopes),
        Some(Requirement::AnyRunScope) => (
            json!([{ "bearer": ["chat"] }, { "bearer": ["act"] }, { "bearer": ["tools"] }]),
            of_scopes,
        ),
        Some(Requirement::AnyToken) => (json!([{ "bearer": [] }]), of_token),
    }
}

fn header_references(names: &[&str]) -> Value {
    let all = std::iter::once(&"X-Request-Id").chain(names);
    let reference = |name: &&str| {
        let target = format!("#/components/headers/{name}");
        ((*name).to_owned(), json!({ "$ref": target }))
    };
    Value::Object(all.map(reference).collect())
}

/// Describes the response for the kinds of problem that share a status.
fn problem(status: u16, kinds: &[Kind]) -> Value {
    let lines: Vec<String> = kinds
        .iter()
        .map(|kind| format!("- `{}`: {}", kind.urn(), kind.said().when))
        .collect();
    let mut headers = vec![];
    if kinds.iter().any(|kind| kind.has_retry_after()) {
        headers.push("Retry-After");
    }
    if matches!(status, 401 | 403) {
        headers.push("WWW-Authenticate");
    }
    let urns: Vec<String> = kinds.iter().map(|kind| kind.urn()).collect();
    let narrowed =
        json!({ "properties": { "type": { "enum": urns }, "status": { "const": status } } });
    let schema = json!({ "allOf": [{ "$ref": "#/components/schemas/Problem" }, narrowed] });
    let title = kinds.first().map_or("", |kind| kind.said().title);
    let mut example = json!({
        "type": urns.first(), "title": title, "status": status, "detail": kinds.first().map(|k| k.said().when),
        "requestId": "019b2c4e-7f00-7aa1-b2c3-0d4e5f607182",
    });
    if matches!(kinds.first(), Some(Kind::WrongShape | Kind::Invalid)) {
        let errors = json!([{ "pointer": "/user/id", "detail": "must not be empty" }]);
        example = with(example, "errors", errors);
    }
    json!({
        "description": lines.join("\n"),
        "headers": header_references(&headers),
        "content": { "application/problem+json": { "schema": schema, "example": example } },
    })
}

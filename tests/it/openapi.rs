//! Tests `/openapi.json` and `/docs`: valid, complete, and consistent with the real answers.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use conclave::config::Limits;
use conclave::http;
use jsonschema::Validator;
use reqwest::Method;
use serde_json::{Value, json};

use crate::act;
use crate::support::{MockProvider, QUESTION, Scenario, TestApp, chat, sent};

const UNKNOWN_RUN: &str = "01890000-0000-7000-8000-000000000000";

static DOCUMENT: LazyLock<Value> = LazyLock::new(|| http::document(&Limits::default()));

/// Returns a validator for a schema of the document.
fn held(schema: &Value) -> Validator {
    let mut whole = schema.clone();
    whole["components"] = DOCUMENT["components"].clone();
    let options = jsonschema::draft202012::options().should_validate_formats(true);
    options.build(&whole).unwrap()
}

/// Checks a value against the schema of this name.
/// Fails unless a value has the documented shape of this name.
pub fn hold(name: &str, value: &Value) {
    let schema = json!({ "$ref": format!("#/components/schemas/{name}") });
    hold_by(&schema, value);
}

fn hold_by(schema: &Value, value: &Value) {
    let validator = held(schema);
    let errors = validator.iter_errors(value);
    let errors = errors.map(|e| format!("{}: {e}", e.instance_path()));
    assert_eq!(errors.collect::<Vec<_>>(), [""; 0], "{value:#}");
}

/// Returns path, method and operation.
fn operations() -> Vec<(String, String, Value)> {
    let paths = DOCUMENT["paths"].as_object().unwrap();
    let of = |(path, item): (&String, &Value)| {
        let methods = item.as_object().unwrap().clone();
        methods
            .into_iter()
            .map(|(method, operation)| (path.clone(), method, operation))
            .collect::<Vec<_>>()
    };
    paths.iter().flat_map(of).collect()
}

#[test]
fn the_document_is_valid_openapi_3_1() {
    let official: Value =
        serde_json::from_str(include_str!("../vendored/openapi-3.1.schema.json")).unwrap();
    let official = jsonschema::validator_for(&official).unwrap();
    let errors: Vec<String> = official
        .iter_errors(&DOCUMENT)
        .map(|e| format!("{}: {e}", e.instance_path()))
        .collect();
    assert_eq!(errors, Vec::<String>::new());
    assert!(
        official
            .iter_errors(&json!({ "openapi": "3.1.1", "info": {} }))
            .next()
            .is_some(),
        "it can say no"
    );
    for (name, schema) in DOCUMENT["components"]["schemas"].as_object().unwrap() {
        assert!(jsonschema::draft202012::meta::is_valid(schema), "{name}");
        held(schema);
    }
}

#[test]
fn every_example_in_the_document_is_valid_by_its_own_schema() {
    let mut seen = 0;
    for (_, _, operation) in operations() {
        let answers = operation["responses"].as_object().unwrap().values();
        let bodies = answers
            .chain([&operation["requestBody"]])
            .filter_map(|body| body["content"].as_object());
        for content in bodies
            .flat_map(|content| content.values())
            .filter(|content| !content["example"].is_null())
        {
            hold_by(&content["schema"], &content["example"]);
            seen += 1;
        }
    }
    assert!(seen > 50, "{seen} examples");
}

#[test]
fn every_operation_is_described_and_every_reference_resolves() {
    let ids: Vec<Value> = operations()
        .iter()
        .map(|(_, _, o)| o["operationId"].clone())
        .collect();
    let different: BTreeSet<String> = ids.iter().map(ToString::to_string).collect();
    assert_eq!(different.len(), ids.len());
    let text = DOCUMENT.to_string();
    for reference in text
        .split("\"$ref\":\"")
        .skip(1)
        .map(|rest| rest.split('"').next().unwrap())
    {
        assert!(
            DOCUMENT
                .pointer(reference.trim_start_matches('#'))
                .is_some(),
            "{reference}"
        );
    }
}

/// The operations with their statuses, and the schemas with their fields. A field that may be absent
/// ends in `?`.
#[test]
fn the_api_has_these_operations_and_fields() {
    let mut lines = vec![];
    for (path, method, operation) in operations() {
        let statuses = operation["responses"].as_object().unwrap().keys();
        let statuses = statuses.cloned().collect::<Vec<_>>().join(" ");
        lines.push(format!("{} {path}: {statuses}", method.to_uppercase()));
    }
    for (name, schema) in DOCUMENT["components"]["schemas"].as_object().unwrap() {
        let required = schema["required"].as_array().cloned().unwrap_or_default();
        let fields = schema["properties"].as_object().into_iter().flatten();
        let fields = fields.map(|(field, _)| {
            let mark = if required.iter().any(|one| one == field) {
                ""
            } else {
                "?"
            };
            format!(" {field}{mark}")
        });
        lines.push(format!("{name}:{}", fields.collect::<String>()));
    }
    insta::assert_snapshot!(lines.join("\n"));
}

/// The document has every route of `Routes`. A handler could still add one without `Routes`, so this
/// test reads the source as well.
#[test]
fn no_route_is_added_without_a_description() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/http");
    let mut folders = vec![root];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "rs")
                && !path.ends_with("http/routes.rs")
            {
                let text = std::fs::read_to_string(&path).unwrap();
                for hidden in [".route(", ".route_service(", ".nest(", ".nest_service("] {
                    assert!(!text.contains(hidden), "{}: {hidden}", path.display());
                }
            }
        }
    }
}

#[tokio::test]
async fn every_documented_route_exists_and_other_methods_get_405_with_allow() {
    let provider = MockProvider::start().await;
    let app = TestApp::start(&provider).await;
    let document: Value = app.get("/openapi.json").await.1;
    assert_eq!(document, *DOCUMENT);
    for (path, item) in document["paths"].as_object().unwrap() {
        let url = format!("{}{}", app.url, path.replace("{id}", UNKNOWN_RUN));
        let documented: BTreeSet<String> = item
            .as_object()
            .unwrap()
            .keys()
            .map(|m| m.to_uppercase())
            .collect();
        for method in [
            Method::GET,
            Method::POST,
            Method::PUT,
            Method::PATCH,
            Method::DELETE,
            Method::OPTIONS,
        ] {
            let response = sent(app.client.request(method.clone(), &url)).await;
            let (status, headers) = (response.status().as_u16(), response.headers().clone());
            let kind = headers
                .get("content-type")
                .map(|v| v.to_str().unwrap().to_owned())
                .unwrap_or_default();
            if documented.contains(method.as_str()) {
                assert_ne!(status, 405, "{method} {path}");
                assert!(
                    item[method.as_str().to_lowercase()]["responses"][status.to_string()]
                        .is_object()
                );
                continue;
            }
            assert_eq!(
                (status, kind.as_str()),
                (405, "application/problem+json"),
                "{method} {path}"
            );
            let allow: BTreeSet<String> = headers["allow"]
                .to_str()
                .unwrap()
                .split(',')
                .map(|m| m.trim().to_owned())
                .collect();
            let allowed: BTreeSet<String> = allow.into_iter().filter(|m| m != "HEAD").collect();
            assert_eq!(allowed, documented, "{path}");
        }
    }
}

#[tokio::test]
async fn real_answers_have_the_documented_shape_and_nothing_else() {
    let scenario = Scenario::converging().with(|scenario| {
        scenario.plan["language"] = json!("German");
        scenario.plan["demands"] = json!([{ "counted": "words", "atMost": 200 }]);
    });
    let message = scenario.message.clone();
    let provider = MockProvider::playing(scenario).await;
    let app = TestApp::start(&provider).await;
    let reply = app.ask("deep", &message).await;
    hold("Reply", &reply.body);
    let run = format!("/api/runs/{}", reply.run);
    hold("Run", &app.get(&run).await.1);
    hold("Journal", &app.get(&format!("{run}/journal")).await.1);
    hold("RunPage", &app.get("/api/runs?limit=1").await.1);
    let request = app
        .request("POST", "/api/quote")
        .json(&chat("ask", QUESTION));
    let quote = sent(request).await;
    hold("Quote", &quote.json().await.unwrap());
    for (path, status) in [
        ("/api/runs?limit=0", 400),
        ("/api/runs/%FF", 404),
        ("/nowhere", 404),
    ] {
        let (got, problem) = app.get(path).await;
        assert_eq!(got, status, "{path}");
        hold("Problem", &problem);
    }
    // Validates each event of the stream against its own schema.
    let stream = sent(app.client.get(format!("{}{run}/events", app.url)))
        .await
        .text()
        .await
        .unwrap();
    let events = &DOCUMENT["paths"]["/api/runs/{id}/events"]["get"]["responses"]["200"]["content"]
        ["text/event-stream"]["x-events"];
    let mut names = BTreeSet::new();
    for event in stream
        .split("\n\n")
        .filter(|event| event.contains("event:"))
    {
        let field = |name: &str| {
            event
                .lines()
                .find_map(|line| line.strip_prefix(name))
                .unwrap()
                .trim()
                .to_owned()
        };
        let name = field("event:");
        assert!(events[&name].is_object(), "{name} is not documented");
        hold_by(
            &events[&name],
            &serde_json::from_str(&field("data:")).unwrap(),
        );
        names.insert(name);
    }
    let all = [
        "agent.finished",
        "agent.started",
        "call",
        "cross_check",
        "cross_check.started",
        "fit",
        "gate",
        "plan",
        "plan.started",
        "reply",
        "round",
        "run",
        "score",
        "synthesis",
        "synthesis.finished",
    ];
    assert_eq!(names.iter().collect::<Vec<_>>(), all);
}

#[tokio::test]
async fn answers_to_actions_have_the_documented_shapes() {
    let provider = MockProvider::start().await;
    let proposal = json!({ "ok": true, "confidence": 0.3, "action": "roll", "args": { "expression": "1d6" }, "reason": "r",
                           "alternatives": [{ "action": "check", "args": { "ability": "dex" } }] });
    provider.reply_with("proposal", proposal);
    let app = TestApp::with(&provider, act::proposing()).await;
    for (message, shape) in [
        ("roll 2d6!", "ActionDone"),
        ("show my sheet", "ActionDeclined"),
        ("/roll x", "ActionDeclined"),
        ("hm, dice", "ActionProposal"),
    ] {
        let answer = act::act(&app, "ada", message).await;
        hold(shape, &answer.body);
        hold("ActionReply", &answer.body);
        hold(
            "Run",
            &app.get(&format!("/api/runs/{}", answer.run.unwrap()))
                .await
                .1,
        );
        if shape == "ActionProposal" {
            hold(
                "ActionProposal",
                &act::confirm(&app, "ada", &answer).await.body,
            );
        }
    }
    hold("RunPage", &app.get("/api/runs?kind=all").await.1);
}

#[tokio::test]
async fn a_clarification_and_its_continuation_have_the_documented_shape() {
    let scenario = Scenario::disagreeing();
    let message = scenario.message.clone();
    let provider = MockProvider::playing(scenario).await;
    let app = TestApp::start(&provider).await;
    let asked = app.ask("audit", &message).await;
    hold("Reply", &asked.body);
    let answered = app.ask("audit", "B").await;
    let (_, run) = app.get(&format!("/api/runs/{}", answered.run)).await;
    assert_eq!(run["continues"]["by"]["type"], "answer");
    hold("Run", &run);
}

#[tokio::test]
async fn the_reference_can_be_read_without_a_token_a_script_or_the_network() {
    let provider = MockProvider::start().await;
    let setup = crate::support::Setup::default().env("CONCLAVE_TOKEN", "t".repeat(32));
    let app = TestApp::with(&provider, setup).await;
    assert_eq!(app.get("/api/runs").await.0, 401);
    assert_eq!(app.get("/openapi.json").await.0, 200);
    let response = sent(app.request("GET", "/docs")).await;
    assert_eq!(response.status(), 200);
    let policy = response.headers()["content-security-policy"]
        .to_str()
        .unwrap()
        .to_owned();
    let page = response.text().await.unwrap();
    assert!(
        policy.starts_with("default-src 'none'; style-src 'sha256-") && !policy.contains("unsafe"),
        "{policy}"
    );
    for (path, _, operation) in operations() {
        let id = operation["operationId"].as_str().unwrap();
        assert!(
            page.contains(&format!("<section id=\"{id}\">")) && page.contains(&path),
            "{id}"
        );
    }
    for loaded in [
        "<script", " src=", "<link", "style=\"", "@import", "url(", "https://", "onclick",
    ] {
        let hits: Vec<&str> = page
            .match_indices(loaded)
            .map(|(at, _)| &page[at..(at + 60).min(page.len())])
            .collect();
        assert!(
            hits.iter()
                .all(|hit| hit.starts_with("https://") && !hit.contains("\"")),
            "{loaded}: {hits:?}"
        );
    }
}

#[tokio::test]
async fn a_browser_at_the_root_is_sent_to_the_reference() {
    let provider = MockProvider::start().await;
    let app = TestApp::start(&provider).await;
    let browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
    let response = sent(app.request("GET", "/").header("Accept", browser)).await;
    let headers = response.headers();
    assert_eq!(
        (
            response.status().as_u16(),
            &headers["location"],
            &headers["vary"]
        ),
        (303, &"/docs".parse().unwrap(), &"Accept".parse().unwrap())
    );
}

#[tokio::test]
async fn a_program_at_the_root_gets_404_with_a_hint() {
    let provider = MockProvider::start().await;
    let app = TestApp::start(&provider).await;
    let (status, problem) = app.get("/").await;
    assert_eq!(
        (status, &problem["type"]),
        (404, &json!("urn:conclave:problem:no-such-page"))
    );
    assert!(
        problem["detail"]
            .as_str()
            .unwrap()
            .contains("/openapi.json"),
        "{problem}"
    );
}

//! Plants secrets everywhere, makes models and providers repeat them, and checks that no output or
//! file has one.

use std::path::Path;

use conclave::domain::BearerToken;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::process::{Service, conclave};
use crate::support::{Call, Fault, MockProvider, Scenario, chat, client, run_of, sent};

const API_KEY: &str = "sk-planted-key-51c0ffee9d2b7a64";
const FIXED: &str = "planted-fixed-token-3be1f7";
const PASSWORD: &str = "planted-password-77ab12cd";
const DATABASE: &str = "planted-database-0451fe";

/// Collects all outputs and files, each with its place.
struct Seen(Vec<(String, Vec<u8>)>);

impl Seen {
    fn add(&mut self, place: impl Into<String>, bytes: impl Into<Vec<u8>>) {
        self.0.push((place.into(), bytes.into()));
    }

    async fn response(&mut self, place: &str, request: reqwest::RequestBuilder) -> u16 {
        let response = request.send().await.unwrap();
        let status = response.status().as_u16();
        self.add(
            format!("headers of {place}"),
            format!("{:?}", response.headers()),
        );
        self.add(place, response.text().await.unwrap());
        status
    }

    async fn command(
        &mut self,
        folder: &Path,
        arguments: &[&str],
        variables: &[(&str, &str)],
    ) -> String {
        let output = conclave(folder, arguments, variables)
            .output()
            .await
            .unwrap();
        self.add(
            format!("standard output of {arguments:?}"),
            output.stdout.clone(),
        );
        self.add(format!("standard error of {arguments:?}"), output.stderr);
        String::from_utf8(output.stdout).unwrap()
    }

    fn files(&mut self, folder: &Path) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                self.files(&path);
            } else {
                self.add(path.display().to_string(), std::fs::read(&path).unwrap());
            }
        }
    }

    /// Returns the places in which a secret occurs.
    fn leaks(&self, secrets: &[&str]) -> Vec<String> {
        let holds = |bytes: &[u8], secret: &str| {
            bytes
                .windows(secret.len())
                .any(|window| window == secret.as_bytes())
        };
        let leaks = self.0.iter().flat_map(|(place, bytes)| {
            secrets
                .iter()
                .filter(|secret| holds(bytes, secret))
                .map(move |secret| format!("{secret} in {place}"))
        });
        leaks.collect()
    }
}

fn with_password(url: &str) -> String {
    url.replacen("http://", &format!("http://ada:{PASSWORD}@"), 1)
}

fn basic() -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(format!("ada:{PASSWORD}"))
}

#[tokio::test]
async fn models_that_know_every_secret_leak_none() {
    let folder = TempDir::new().unwrap();
    let all = format!("{API_KEY} {FIXED} {PASSWORD}");
    let scenario = Scenario::agreeing();
    let provider = MockProvider::playing(scenario.clone()).await;
    let mut report = scenario.report("r1/solver");
    for pointer in ["/units/0/text", "/reasoning", "/answerSummary/0"] {
        let text = report.pointer_mut(pointer).unwrap();
        *text = json!(format!("{} {all}", text.as_str().unwrap()));
    }
    provider.reply_with("r1/solver", report);
    provider.reply_text("r1/critic", format!("no JSON, but {all}"));
    let mut synthesis = scenario.synthesis.clone();
    synthesis["replyMarkdown"] = json!(format!(
        "{} The key is {all}.",
        synthesis["replyMarkdown"].as_str().unwrap()
    ));
    provider.reply_with("synthesis", synthesis);
    let url = with_password(&provider.url());
    let variables = [
        ("ANTHROPIC_API_KEY", API_KEY),
        ("ANTHROPIC_BASE_URL", url.as_str()),
        ("CONCLAVE_TOKEN", FIXED),
        ("RUST_LOG", "trace"),
    ];
    let mut seen = Seen(vec![]);
    let create = ["token", "create", "--name", "planted", "--scope", "chat"];
    let made = conclave(folder.path(), &create, &variables)
        .output()
        .await
        .unwrap();
    seen.add("standard error of token create", made.stderr);
    let token = BearerToken::parse(String::from_utf8(made.stdout).unwrap().trim()).unwrap();
    let secret = token.reveal().rsplit('_').next().unwrap().to_owned();
    let service = Service::start(folder.path(), &variables).await;
    let client = client();
    let post = |path: &str, body: &Value| client.post(format!("{}{path}", service.url)).json(body);
    let get = |path: &str| {
        client
            .get(format!("{}{path}", service.url))
            .bearer_auth(token.reveal())
    };
    // The service knows its own tokens by their form only.
    let (own, message) = (token.reveal(), &scenario.message);
    let question = format!("{message} My key is {all}, and my token {own}.");
    for mode in ["ask", "audit"] {
        let request = post("/api/chat", &chat(mode, &question)).bearer_auth(token.reveal());
        assert_eq!(seen.response(mode, request).await, 200);
    }
    let events = post("/api/chat", &chat("audit", &question))
        .header("accept", "text/event-stream")
        .bearer_auth(FIXED);
    assert_eq!(seen.response("event stream", events).await, 200);
    assert_eq!(
        seen.response(
            "quote",
            post("/api/quote", &chat("ask", &question)).bearer_auth(FIXED)
        )
        .await,
        200
    );
    for wrong in [
        format!("{FIXED}x"),
        format!("{}0", token.reveal()),
        format!("{API_KEY} {FIXED}"),
    ] {
        assert_eq!(
            seen.response(
                "a wrong token",
                post("/api/chat", &chat("ask", "x")).bearer_auth(wrong)
            )
            .await,
            401
        );
    }
    let misplaced = client
        .get(format!("{}/api/runs?token={}", service.url, token.reveal()))
        .bearer_auth(token.reveal());
    assert_eq!(seen.response("a token in the query", misplaced).await, 400);
    for open in ["/health", "/ready", "/api/runs"] {
        assert_eq!(seen.response(open, get(open)).await, 200);
    }
    let runs: Value = get("/api/runs").send().await.unwrap().json().await.unwrap();
    for run in runs["runs"].as_array().unwrap() {
        let id = run["id"].as_str().unwrap();
        for view in ["", "/journal", "/events"] {
            seen.response(view, get(&format!("/api/runs/{id}{view}")))
                .await;
        }
        seen.command(folder.path(), &["show", id], &variables).await;
        seen.command(folder.path(), &["show", id, "--json"], &variables)
            .await;
    }
    for command in [
        &["config", "check"][..],
        &["doctor"],
        &["runs"],
        &["token", "list"],
        &["audit", &scenario.message],
    ] {
        seen.command(folder.path(), command, &variables).await;
    }
    seen.add("the service's log", service.stop().await);
    seen.files(folder.path());
    let secrets = [API_KEY, FIXED, PASSWORD, &basic(), &secret];
    assert_eq!(seen.leaks(&secrets), [""; 0]);
    let replies: Vec<_> = seen.0.iter().filter(|(place, _)| place == "ask").collect();
    let reply = String::from_utf8_lossy(&replies[0].1).into_owned();
    assert!(reply.contains("[secret]"), "the models did talk: {reply}");
}

#[tokio::test]
async fn providers_that_echo_their_requests_leak_no_secret() {
    let provider = MockProvider::start().await;
    // Returns every header of the request, either as an error with this status or as an invalid
    // body.
    let echo = |call: &Call, status: u16| {
        let headers = format!("{:?} {API_KEY} Bearer {API_KEY} {PASSWORD}", call.headers);
        let body = match status {
            200 => json!({ "content": headers, "model": headers }),
            _ => {
                json!({ "type": "error", "error": { "type": "authentication_error", "message": headers } })
            }
        };
        Fault::Body(status, body.to_string())
    };
    let url = with_password(&provider.url());
    let secrets = [API_KEY, FIXED, PASSWORD, DATABASE, &basic()];
    let mut seen = Seen(vec![]);
    for status in [200, 400, 401, 403, 500] {
        provider.canned("*", move |call| echo(call, status));
        let folder = TempDir::new().unwrap();
        let variables = [
            ("ANTHROPIC_API_KEY", API_KEY),
            ("ANTHROPIC_BASE_URL", url.as_str()),
            ("CONCLAVE_TOKEN", FIXED),
            ("RUST_LOG", "trace"),
        ];
        let service = Service::start(folder.path(), &variables).await;
        let ask = client()
            .post(format!("{}/api/chat", service.url))
            .bearer_auth(FIXED)
            .json(&chat("ask", "Why?"));
        assert_eq!(seen.response("a failed ask", ask).await, 502);
        let runs = client()
            .get(format!("{}/api/runs", service.url))
            .bearer_auth(FIXED);
        assert_eq!(seen.response("the failed run", runs).await, 200);
        seen.add("the service's log", service.stop().await);
        seen.command(folder.path(), &["doctor"], &variables).await;
        seen.files(folder.path());
    }
    assert_eq!(seen.leaks(&secrets), [""; 0]);
}

#[tokio::test]
async fn invalid_addresses_with_passwords_are_not_printed() {
    let folder = TempDir::new().unwrap();
    let database = format!("postgres://ada:{DATABASE}@127.0.0.1:1/conclave");
    let odd = format!("mysql://ada:{DATABASE}@127.0.0.1:1/conclave");
    let base = format!("ftp://ada:{PASSWORD}@127.0.0.1:1");
    let mut seen = Seen(vec![]);
    for url in [&database, &odd] {
        let variables = [
            ("ANTHROPIC_API_KEY", API_KEY),
            ("ANTHROPIC_BASE_URL", base.as_str()),
            ("DATABASE_URL", url.as_str()),
            ("CONCLAVE_TOKEN", FIXED),
            ("RUST_LOG", "trace"),
        ];
        for command in [
            &["config", "check"][..],
            &["runs"],
            &["serve"],
            &["doctor", "--offline"],
            &["token", "list"],
        ] {
            seen.command(folder.path(), command, &variables).await;
        }
    }
    assert_eq!(seen.leaks(&[API_KEY, FIXED, PASSWORD, DATABASE]), [""; 0]);
}

/// Writes every character as a JSON escape.
fn escaped(text: &str) -> String {
    text.chars()
        .map(|c| format!("\\u{:04x}", u32::from(c)))
        .collect()
}

#[tokio::test]
async fn a_key_in_json_escapes_is_in_no_journal_stream_or_database() {
    let folder = TempDir::new().unwrap();
    let scenario = Scenario::agreeing();
    let provider = MockProvider::playing(scenario.clone()).await;
    let first = format!("\\u0073{}", &API_KEY[1..]);
    let mut report = scenario.report("r1/solver");
    report["units"][0]["text"] = json!(format!(
        "{} KEY",
        report["units"][0]["text"].as_str().unwrap()
    ));
    report["reasoning"] = json!(format!("{} KEY", report["reasoning"].as_str().unwrap()));
    provider.reply_text("r1/solver", report.to_string().replace("KEY", &first));
    provider.reply_text("r1/critic", format!("no JSON, but {}", escaped(API_KEY)));
    let mut synthesis = scenario.synthesis.clone();
    synthesis["replyMarkdown"] = json!(format!(
        "{} The key is KEY.",
        synthesis["replyMarkdown"].as_str().unwrap()
    ));
    provider.reply_text(
        "synthesis",
        synthesis.to_string().replace("KEY", &escaped(API_KEY)),
    );
    let url = provider.url();
    let variables = [
        ("ANTHROPIC_API_KEY", API_KEY),
        ("ANTHROPIC_BASE_URL", url.as_str()),
    ];
    let mut seen = Seen(vec![]);
    let service = Service::start(folder.path(), &variables).await;
    let ask = client()
        .post(format!("{}/api/chat", service.url))
        .header("accept", "text/event-stream");
    let stream = sent(ask.json(&chat("audit", &scenario.message))).await;
    let run = run_of(&stream).to_string();
    seen.add("the stream", stream.text().await.unwrap());
    for path in [
        format!("/api/runs/{run}"),
        format!("/api/runs/{run}/journal"),
        format!("/api/runs/{run}/events"),
    ] {
        seen.response(&path, client().get(format!("{}{path}", service.url)))
            .await;
    }
    seen.add("the service's log", service.stop().await);
    seen.command(folder.path(), &["export"], &variables).await;
    seen.files(folder.path());
    let nested = escaped(API_KEY).replace('\\', "\\\\");
    let spellings = [
        API_KEY,
        &first,
        &escaped(API_KEY),
        &first.replace('\\', "\\\\"),
        &nested,
    ];
    assert_eq!(seen.leaks(&spellings), [""; 0]);
    assert!(
        seen.0
            .iter()
            .any(|(_, bytes)| String::from_utf8_lossy(bytes).contains("[secret]")),
        "the models did talk"
    );
}

#[tokio::test]
async fn a_key_in_an_id_or_an_address_is_stored_nowhere() {
    let folder = TempDir::new().unwrap();
    let provider = MockProvider::start().await;
    let url = provider.url();
    let variables = [
        ("ANTHROPIC_API_KEY", API_KEY),
        ("ANTHROPIC_BASE_URL", url.as_str()),
    ];
    let mut seen = Seen(vec![]);
    let service = Service::start(folder.path(), &variables).await;
    let mut body = chat("ask", "Why is the sky blue?");
    body["user"] = json!({ "id": format!("u-{API_KEY}"), "name": format!("n-{API_KEY}") });
    body["context"] = json!({ "channelId": API_KEY, "guildId": API_KEY, "messageId": API_KEY });
    body["attachments"] =
        json!([{ "filename": "a.png", "url": format!("https://cdn.example/a.png?key={API_KEY}") }]);
    let ask = client()
        .post(format!("{}/api/chat", service.url))
        .header("idempotency-key", API_KEY)
        .json(&body);
    assert_eq!(seen.response("ask", ask).await, 200);
    body.as_object_mut()
        .unwrap()
        .retain(|name, _| name != "attachments" && name != "mode");
    body["message"] = json!("roll 1d6");
    let act = client()
        .post(format!("{}/api/act", service.url))
        .json(&body);
    assert_eq!(seen.response("act", act).await, 200);
    let unknown = client()
        .post(format!("{}/api/chat", service.url))
        .header("x-request-id", API_KEY)
        .json(&json!({ API_KEY: 1 }));
    assert_eq!(seen.response("an unknown field", unknown).await, 400);
    let twice = client()
        .post(format!("{}/api/chat", service.url))
        .header("content-type", "application/json")
        .body(format!(r#"{{"{API_KEY}": 1, "{API_KEY}": 2}}"#));
    assert_eq!(seen.response("a name twice", twice).await, 400);
    seen.add("the service's log", service.stop().await);
    seen.files(folder.path());
    assert_eq!(seen.leaks(&[API_KEY]), [""; 0]);
}

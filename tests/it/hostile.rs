//! Tests slow clients, clients that disconnect, pages of other origins, and texts that imitate
//! lines of the log.

use std::time::Duration;

use conclave::journal::{Ending, Transcript};
use regex::Regex;
use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::support::process::{Home, Service, conclave};
use crate::support::{
    Fault, MockProvider, QUESTION, Setup, TestApp, chat, client, sent, status_of,
};

/// Sends raw bytes and reads until the service closes the connection.
async fn raw(url: &str, bytes: &[u8]) -> String {
    let mut stream = connect(url).await;
    stream.write_all(bytes).await.unwrap();
    let mut answer = vec![];
    let closed =
        tokio::time::timeout(Duration::from_secs(20), stream.read_to_end(&mut answer)).await;
    assert!(closed.is_ok(), "the service keeps the connection open");
    String::from_utf8_lossy(&answer).into_owned()
}

async fn connect(url: &str) -> TcpStream {
    TcpStream::connect(url.trim_start_matches("http://"))
        .await
        .unwrap()
}

fn head(length: usize) -> String {
    format!(
        "POST /api/chat HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n"
    )
}

/// Returns the peak memory of a process, in KiB.
fn peak_memory(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[tokio::test]
async fn replies_of_eight_megabytes_are_not_stored_and_use_bounded_memory() {
    let provider = MockProvider::start().await;
    provider.on("r1/*", Fault::Overlong(8 * 1024 * 1024 - 4096));
    let home = Home::sqlite();
    let service = home.serve(&provider, &[]).await;
    let before = peak_memory(service.child.id().unwrap());
    let run = service.accept("ask", QUESTION, 1).await.unwrap();
    let entries = home
        .entries_once(run, |entries| {
            Transcript::of_entries(entries).finished.is_some()
        })
        .await;
    let ending = &Transcript::of_entries(&entries).finished.unwrap().ending;
    assert!(
        matches!(ending, Ending::Failed { .. }),
        "no agent has a usable reply: {ending:?}"
    );
    let after = peak_memory(service.child.id().unwrap());
    let bytes: usize = entries.iter().map(|entry| entry.body.len()).sum();
    println!("journal: {bytes} bytes; memory: {before} KiB before the run, {after} KiB at most");
    assert!(bytes < 100_000, "{bytes}");
    // Three replies arrive at once. Each is in memory twice: as received and as parsed.
    assert!(
        after - before < 150 * 1024,
        "{before} KiB before, {after} KiB after"
    );
    service.kill().await;
}

async fn nothing_is_left(app: &TestApp, provider: &MockProvider) {
    assert_eq!(
        app.get("/api/runs").await,
        (200, json!({ "runs": [], "nextCursor": null }))
    );
    assert_eq!(provider.calls().len(), 0);
}

#[tokio::test]
async fn a_client_that_is_too_slow_or_disconnects_starts_no_run() {
    let provider = MockProvider::start().await;
    let setup = Setup::default()
        .set("/policy/limits/headerSeconds", json!(1))
        .set("/policy/limits/bodySeconds", json!(1));
    let app = TestApp::with(&provider, setup).await;
    let half_a_head = raw(&app.url, b"POST /api/chat HTTP/1.1\r\nhost: loc").await;
    assert!(!half_a_head.contains("200"), "{half_a_head}");
    let half_a_body = raw(
        &app.url,
        format!("{}\r\n{{\"source\":", head(500)).as_bytes(),
    )
    .await;
    assert!(
        half_a_body.starts_with("HTTP/1.1 408")
            && half_a_body.contains("urn:conclave:problem:too-slow"),
        "{half_a_body}"
    );
    assert_eq!(raw(&app.url, b"").await, "", "an idle connection is closed");
    let whole = chat("ask", QUESTION).to_string();
    let mut gone = connect(&app.url).await;
    gone.write_all(format!("{}\r\n{}", head(whole.len()), &whole[..whole.len() - 1]).as_bytes())
        .await
        .unwrap();
    drop(gone);
    nothing_is_left(&app, &provider).await;
}

#[tokio::test]
async fn the_request_timeout_does_not_limit_the_wait_for_an_answer() {
    let provider = MockProvider::start().await;
    provider.on("r1/*", Fault::Latency(Duration::from_secs(2)));
    let setup = Setup::default()
        .set("/policy/limits/headerSeconds", json!(1))
        .set("/policy/limits/bodySeconds", json!(1));
    let app = TestApp::with(&provider, setup).await;
    assert_eq!(app.ask("ask", QUESTION).await.outcome, "answered");
    let request = app
        .post(&chat("ask", QUESTION))
        .header("accept", "text/event-stream");
    let stream = sent(request).await;
    assert!(stream.text().await.unwrap().contains("event: reply"));
}

#[tokio::test]
async fn further_clients_wait_until_a_connection_is_free() {
    let provider = MockProvider::start().await;
    let setup = Setup::default().set("/policy/limits/connections", json!(2));
    let app = TestApp::with(&provider, setup).await;
    let (first, second) = (connect(&app.url).await, connect(&app.url).await);
    let third = app.get("/health");
    tokio::pin!(third);
    let early = tokio::time::timeout(Duration::from_millis(300), &mut third).await;
    assert!(early.is_err(), "two idle connections are all there may be");
    drop(first);
    assert_eq!(third.await.0, 200);
    drop(second);
}

#[tokio::test]
async fn every_answer_carries_the_security_headers() {
    let provider = MockProvider::start().await;
    let setup = Setup::default()
        .env("CONCLAVE_TOKEN", "correct horse battery")
        .env("CORS_ORIGINS", "https://a.example");
    let app = TestApp::with(&provider, setup).await;
    let post = |path: &str| {
        app.client
            .post(format!("{}{path}", app.url))
            .bearer_auth("correct horse battery")
    };
    let get = |path: &str| app.client.get(format!("{}{path}", app.url));
    let preflight = app
        .client
        .request(Method::OPTIONS, format!("{}/api/chat", app.url));
    let answers = [
        (200, get("/health")),
        (401, get("/api/runs")),
        (404, get("/nowhere")),
        (405, post("/health")),
        (415, post("/api/chat").body("x")),
        (
            400,
            post("/api/chat")
                .header("content-type", "application/json")
                .body("{"),
        ),
        (
            413,
            post("/api/chat")
                .header("content-type", "application/json")
                .body("x".repeat(300_000)),
        ),
        (
            200,
            preflight
                .header("origin", "https://a.example")
                .header("access-control-request-method", "POST"),
        ),
        (
            200,
            post("/api/chat")
                .header("accept", "text/event-stream")
                .json(&chat("ask", QUESTION)),
        ),
    ];
    for (status, request) in answers {
        let answer = request.send().await.unwrap();
        let header = |name: &str| {
            answer
                .headers()
                .get(name)
                .map(|value| value.to_str().unwrap().to_owned())
        };
        assert_eq!(answer.status(), status);
        assert_eq!(
            header("x-content-type-options").as_deref(),
            Some("nosniff"),
            "{status}"
        );
        assert_eq!(
            header("content-security-policy").as_deref(),
            Some("default-src 'none'; frame-ancestors 'none'")
        );
        assert_eq!(header("referrer-policy").as_deref(), Some("no-referrer"));
        assert!(header("x-request-id").is_some(), "{status}");
        assert!(
            header("cache-control").is_some_and(|value| value == "no-store" || value == "no-cache"),
            "{status}"
        );
        assert_eq!(header("server"), None);
    }
}

#[tokio::test]
async fn pages_of_other_origins_are_refused_unless_configured() {
    let provider = MockProvider::start().await;
    let closed = TestApp::start(&provider).await;
    let setup = Setup::default().env("CORS_ORIGINS", "https://a.example");
    let named = TestApp::with(&provider, setup).await;
    let allowed = async |app: &TestApp, origin: &str| {
        let preflight = app
            .client
            .request(Method::OPTIONS, format!("{}/api/chat", app.url));
        let headers = [
            ("origin", origin),
            ("access-control-request-method", "POST"),
            (
                "access-control-request-headers",
                "authorization,content-type",
            ),
        ];
        let preflight = headers
            .into_iter()
            .fold(preflight, |request, (name, value)| {
                request.header(name, value)
            });
        let simple = app.request("GET", "/health").header("origin", origin);
        let mut seen = vec![];
        for request in [preflight, simple] {
            let answer = request.send().await.unwrap();
            assert!(
                !answer
                    .headers()
                    .contains_key("access-control-allow-credentials")
            );
            seen.push(
                answer
                    .headers()
                    .get("access-control-allow-origin")
                    .map(|value| value.to_str().unwrap().to_owned()),
            );
        }
        seen
    };
    assert_eq!(allowed(&closed, "https://a.example").await, [None, None]);
    assert_eq!(allowed(&named, "https://b.example").await, [None, None]);
    assert_eq!(
        allowed(&named, "https://a.example").await,
        vec![Some("https://a.example".to_owned()); 2]
    );
}

const FORGED: &str = "x\r\n2026-01-01T00:00:00.000000Z  INFO forged line\u{1b}[31m\u{9b}2J\u{85}\u{2028}\u{202e}\u{7}";

/// Sends hostile text to every input of the real binary and returns its log.
async fn log_under_attack(format: &str) -> String {
    let folder = TempDir::new().unwrap();
    let provider = MockProvider::start().await;
    let refusal = json!({ "type": "error", "error": { "type": FORGED, "message": FORGED } });
    let reply = json!({
        "id": FORGED, "type": "message", "role": "assistant", "model": FORGED, "stop_reason": "end_turn",
        "content": [{ "type": "text", "text": FORGED }], "usage": { "input_tokens": 1, "output_tokens": 1 },
    });
    provider.on("*", Fault::Body(200, reply.to_string()));
    provider
        .on("*", Fault::Body(400, refusal.to_string()))
        .times(3);
    let url = provider.url();
    let variables = [
        ("ANTHROPIC_API_KEY", "k"),
        ("ANTHROPIC_BASE_URL", url.as_str()),
        ("RUST_LOG", "trace"),
        ("LOG_FORMAT", format),
    ];
    let service = Service::start(folder.path(), &variables).await;
    let client = client();
    let post = |body: &Value| client.post(format!("{}/api/chat", service.url)).json(body);
    for _ in 0..3 {
        let answer = post(&chat("ask", FORGED)).send().await.unwrap();
        assert_eq!(answer.status(), 502);
    }
    let fields = [
        "/user/id",
        "/user/name",
        "/context/messageId",
        "/context/guildId",
        "/message",
        "/source",
        "/mode",
    ];
    for pointer in fields {
        let mut body = chat("ask", QUESTION);
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        body.pointer_mut(parent).unwrap()[key] = json!(FORGED);
        post(&body)
            .header("prefer", "respond-async")
            .send()
            .await
            .unwrap();
    }
    let mut body = chat("ask", QUESTION);
    body[FORGED] = json!(FORGED);
    assert_eq!(status_of(post(&body)).await, 400);
    body.as_object_mut().unwrap().remove(FORGED);
    let shown: String = FORGED.chars().filter(|c| !c.is_control()).collect();
    body["attachments"] = json!([{ "filename": format!("{shown}.png"), "url": format!("https://{shown}/a.png") },
        { "filename": format!("{FORGED}.png"), "url": "data:image/png;base64,AAAA" }]);
    post(&body).send().await.unwrap();
    let escaped: String = url::form_urlencoded::byte_serialize(FORGED.as_bytes()).collect();
    for path in [
        format!("/{escaped}"),
        format!("/api/runs/{escaped}"),
        format!("/api/runs?user={escaped}&mode={escaped}"),
    ] {
        client
            .get(format!("{}{path}", service.url))
            .send()
            .await
            .unwrap();
    }
    for name in [
        "X-Request-Id",
        "Idempotency-Key",
        "Authorization",
        "Last-Event-ID",
        "Origin",
        "User-Agent",
    ] {
        for value in [
            "\u{9b}2J\u{2028}forged line".to_owned(),
            "a\u{1b}[31m".to_owned(),
            "a\r\nforged line: 1".to_owned(),
        ] {
            let request = format!(
                "GET /api/runs HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{name}: {value}\r\n\r\n"
            );
            raw(&service.url, request.as_bytes()).await;
        }
    }
    raw(&service.url, b"GET /\x1b[31m HTTP/1.1\r\n\r\n").await;
    raw(
        &service.url,
        b"\x1b[31mforged line\n2026-01-01T00:00:00.000000Z  INFO forged line\n\r\n",
    )
    .await;
    service.stop().await
}

fn without_ends(log: &str) -> String {
    log.replace('\n', "")
}

#[tokio::test]
async fn no_text_from_outside_forges_a_line_of_the_text_log() {
    let log = log_under_attack("text").await;
    let ours = Regex::new(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z +(TRACE|DEBUG|INFO|WARN|ERROR) ")
        .unwrap();
    let strangers: Vec<&str> = log.lines().filter(|line| !ours.is_match(line)).collect();
    assert_eq!(strangers, [""; 0]);
    let forged = log
        .lines()
        .filter(|line| line.starts_with("2026-01-01T00:00:00.000000Z"));
    assert_eq!(forged.collect::<Vec<_>>(), [""; 0]);
    let speaking = without_ends(&log)
        .chars()
        .filter(|c| c.is_control() || "\u{2028}\u{202e}".contains(*c))
        .count();
    assert_eq!(speaking, 0);
    assert!(
        log.contains("the run failed") && log.contains("shutting down"),
        "it says what it should"
    );
}

#[tokio::test]
async fn no_text_from_outside_breaks_a_line_of_the_json_log() {
    let log = log_under_attack("json").await;
    for line in log.lines() {
        let event: Value =
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert!(
            event["timestamp"].is_string()
                && event["level"].is_string()
                && event["fields"].is_object(),
            "{line}"
        );
    }
    let speaking = without_ends(&log)
        .chars()
        .filter(|c| c.is_control() || "\u{2028}\u{202e}".contains(*c))
        .count();
    assert_eq!(speaking, 0);
    assert!(log.contains("the run failed"));
}

#[tokio::test]
async fn no_command_prints_a_control_character_of_a_user_or_a_provider() {
    let hostile = "abc\u{202e} \u{2066} \u{9b}2J \u{7f} \u{1b}]0;title\u{7} \u{1b}[31mred";
    let provider = MockProvider::start().await;
    let refusal = json!({ "type": "error", "error": { "type": "invalid_request_error", "message": hostile } });
    provider.on("*", Fault::Body(400, refusal.to_string()));
    let folder = TempDir::new().unwrap();
    let url = provider.url();
    let variables = [
        ("ANTHROPIC_API_KEY", "sk-ant-0123456789"),
        ("ANTHROPIC_BASE_URL", url.as_str()),
    ];
    let printed = async |arguments: &[&str]| {
        let output = conclave(folder.path(), arguments, &variables)
            .output()
            .await
            .unwrap();
        String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
    };
    let remark = format!("/ooc {hostile}");
    for arguments in [
        &["act", &remark][..],
        &["act", "--json", &remark],
        &["ask", hostile],
        &["doctor"],
        &["runs"],
        &["runs", "--json"],
        &["runs", "--actions", "--json"],
    ] {
        let text = printed(arguments).await;
        assert!(!text.trim().is_empty(), "{arguments:?}");
        let obeyed =
            |c: &char| (c.is_control() && *c != '\n') || ('\u{202a}'..='\u{2069}').contains(c);
        assert_eq!(text.chars().find(obeyed), None, "{arguments:?}: {text:?}");
    }
}

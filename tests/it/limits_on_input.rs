//! Tests the bounds against hostile clients and providers: sizes of answers, rates, duplicate keys,
//! host names, revoked tokens, and absurd bills.

use std::time::Duration;

use conclave::clock::Clock;
use conclave::domain::{BearerToken, Scope};
use conclave::journal::{SqliteStore, TokenRow, TokenStore as _};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::act::said;
use crate::support::{
    Fault, MockProvider, QUESTION, Setup, TestApp, chat, run_of, sent, status_of,
};

async fn post(app: &TestApp, path: &str, body: String) -> (u16, String) {
    let request = app
        .client
        .post(format!("{}{path}", app.url))
        .header("content-type", "application/json")
        .body(body);
    let response = request.send().await.unwrap();
    (response.status().as_u16(), response.text().await.unwrap())
}

#[tokio::test]
async fn a_body_of_many_mistakes_is_answered_with_a_short_list() {
    let provider = MockProvider::start().await;
    let app = TestApp::start(&provider).await;
    let mut unknown = chat("ask", QUESTION);
    for n in 0..3000 {
        unknown[format!("{n}\u{1}{}", "\u{1}".repeat(10))] = json!(0);
    }
    let mut shaped = chat("ask", QUESTION);
    shaped["attachments"] = json!(vec![json!({ "filename": "", "url": "" }); 6000]);
    let mut missing = chat("ask", QUESTION);
    missing["attachments"] = json!(vec![json!({}); 80_000]);
    for (body, status) in [(missing, 400), (unknown, 400), (shaped, 422)] {
        let (got, text) = post(&app, "/api/chat", body.to_string()).await;
        let problem: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(got, status, "{text}");
        assert!(text.len() < 64 * 1024, "{} bytes", text.len());
        assert!(problem["errors"].as_array().unwrap().len() <= 51);
    }
    let (_, text) = post(
        &app,
        "/api/chat",
        format!(r#"{{"attachments": [{}]}}"#, vec!["{}"; 80_000].join(",")),
    )
    .await;
    let problem: Value = serde_json::from_str(&text).unwrap();
    let last = &problem["errors"][50]["detail"];
    assert_eq!(last, "and 159955 further problems that are not listed");
}

#[tokio::test]
async fn the_prefix_of_a_new_request_is_no_part_of_its_length() {
    let provider = MockProvider::start().await;
    let app = TestApp::start(&provider).await;
    for (chars, is_too_long) in [(32_000, false), (32_001, true)] {
        let message = format!("new: {}", "a".repeat(chars));
        let (_, text) = post(&app, "/api/chat", chat("deep", &message).to_string()).await;
        assert_eq!(text.contains("at most 32000"), is_too_long, "{text}");
    }
}

#[tokio::test]
async fn a_key_that_occurs_twice_in_a_body_is_refused_and_named() {
    let provider = MockProvider::start().await;
    let app = TestApp::start(&provider).await;
    let twice = |body: Value| {
        body.to_string()
            .replacen('{', r#"{"message": "first", "#, 1)
    };
    for (path, body) in [
        ("/api/chat", chat("ask", QUESTION)),
        ("/api/quote", chat("ask", QUESTION)),
        ("/api/act", said("u", "roll 1d6")),
    ] {
        let (status, text) = post(&app, path, twice(body)).await;
        assert_eq!(status, 400, "{path}: {text}");
        assert!(
            text.contains(r#"the key \"message\" stands twice"#),
            "{path}: {text}"
        );
    }
    assert_eq!(provider.calls().len(), 0);
}

#[tokio::test]
async fn a_host_that_cannot_be_read_or_continues_after_an_address_is_refused() {
    let provider = MockProvider::start().await;
    let app = TestApp::start(&provider).await;
    let status = async |target: &str, host: &[u8]| {
        let mut stream = TcpStream::connect(app.url.trim_start_matches("http://"))
            .await
            .unwrap();
        let request = [
            b"GET ",
            target.as_bytes(),
            b" HTTP/1.1\r\nconnection: close\r\nhost: ",
            host,
            b"\r\n\r\n",
        ]
        .concat();
        stream.write_all(&request).await.unwrap();
        let mut answer = vec![];
        stream.read_to_end(&mut answer).await.unwrap();
        String::from_utf8_lossy(&answer)
            .split(' ')
            .nth(1)
            .unwrap_or("")
            .to_owned()
    };
    for host in [
        &b"localhost"[..],
        b"LOCALHOST:8080",
        b"127.0.0.1:80",
        b"[::1]:80",
    ] {
        assert_eq!(status("/api/runs", host).await, "200");
    }
    for host in [
        &b"[::1].evil"[..],
        b"[::1]evil.example",
        b"[::1",
        b"[127.0.0.1]",
        b"127.0.0.1.evil.example",
        b"localhost.evil.example:8080",
        b"localhost:8080.evil.example",
        b"localhost:8080@evil.example",
        b"localhost\r\nhost: localhost",
        b"\xe9vil.example",
        b"localhost\xff",
        b"localhost:x",
    ] {
        assert_eq!(
            status("/api/runs", host).await,
            "403",
            "{}",
            String::from_utf8_lossy(host)
        );
    }
    let other = status("http://evil.example/api/runs", b"localhost").await;
    assert_eq!(other, "403");
}

#[tokio::test]
async fn made_up_users_do_not_pass_the_rate_of_a_token_or_address() {
    let provider = MockProvider::start().await;
    for (limit, of) in [
        ("/policy/limits/tokenPerMinute", "token"),
        ("/policy/limits/addressPerMinute", "address"),
    ] {
        let setup = Setup::default()
            .set(limit, json!(3))
            .env("CONCLAVE_TOKEN", "correct horse battery");
        let app = TestApp::with(&provider, setup).await;
        let mut statuses = vec![];
        for n in 0..5 {
            let act = app
                .request("POST", "/api/act")
                .bearer_auth("correct horse battery");
            let response = sent(act.json(&said(&format!("made up {n}"), "roll 1d6"))).await;
            statuses.push(response.status().as_u16());
            if response.status() == 429 {
                assert!(response.headers().contains_key("retry-after"));
                assert!(response.text().await.unwrap().contains(of));
            }
        }
        assert_eq!(statuses, [200, 200, 200, 429, 429], "{of}");
        let list = app
            .request("GET", "/api/runs")
            .bearer_auth("correct horse battery");
        assert_eq!(status_of(list).await, 200, "reading is not counted");
    }
}

#[tokio::test]
async fn a_stream_ends_soon_after_its_token_was_revoked() {
    let provider = MockProvider::start().await;
    provider.on("r1/*", Fault::Latency(Duration::from_secs(14)));
    let deadlines = json!({ "connect": 2, "call": 18, "ask": 20, "audit": 20, "deep": 20 });
    let setup = Setup::default().set("/policy/deadlines", deadlines);
    let app = TestApp::with(&provider, setup).await;
    let store = SqliteStore::open(&app.folder.path().join("conclave.db"), "keys")
        .await
        .unwrap();
    let token = BearerToken::new([7; 6], Clock::System.new_secret());
    let now = Clock::System.now();
    let row = TokenRow {
        id: token.id().to_owned(),
        name: "t".into(),
        scopes: vec![Scope::Chat],
        hash: token.hash(),
        created_at: now,
        expires_at: None,
        revoked_at: None,
    };
    store.add_token(&row).await.unwrap();
    let ask = app
        .post(&chat("ask", QUESTION))
        .bearer_auth(token.reveal())
        .header("accept", "text/event-stream");
    let mut stream = ask.send().await.unwrap();
    assert_eq!(stream.status(), 200);
    let run = run_of(&stream).to_string();
    assert!(stream.chunk().await.unwrap().is_some());
    assert!(store.revoke_token(token.id(), now).await.unwrap());
    let rest = tokio::time::timeout(Duration::from_secs(10), stream.text())
        .await
        .expect("the stream ends")
        .unwrap();
    assert!(!rest.contains("event: reply"), "{rest}");
    let (_, last) = rest.trim_end().rsplit_once("\n\n").unwrap();
    let is_last = last.contains("event: error") && last.contains("no-token");
    assert!(is_last && last.contains(&run), "{rest}");
}

#[tokio::test]
async fn an_absurd_usage_is_booked_at_the_highest_possible_cost() {
    let provider = MockProvider::start().await;
    provider.on("r1/critic", Fault::Usage(Some(1_000_000_000_000_000_000)));
    let app = TestApp::start(&provider).await;
    let got = app.ask("ask", QUESTION).await;
    let budget = &got.body["meta"]["budget"];
    assert_eq!(budget["modeCapExceeded"], true, "it is told of");
    let spent = budget["estimatedUsd"].as_f64().unwrap();
    assert!((0.05..5.0).contains(&spent), "{spent} USD");
}

#[tokio::test]
async fn a_long_action_is_stored_once_with_a_short_line_in_the_list() {
    let provider = MockProvider::start().await;
    let app = TestApp::start(&provider).await;
    let message = format!("roll 1d6 {}", "x".repeat(31_000));
    let (status, _) = post(&app, "/api/act", said("u", &message).to_string()).await;
    assert_eq!(status, 200);
    let (_, list) = app.get("/api/runs?kind=action").await;
    assert_eq!(
        list["runs"][0]["message"].as_str().unwrap().chars().count(),
        1000
    );
    let run = list["runs"][0]["id"].as_str().unwrap().parse().unwrap();
    let stored: usize = app
        .entries(run)
        .await
        .iter()
        .map(|entry| entry.body.len())
        .sum();
    assert!(
        (31_000..40_000).contains(&stored),
        "{stored} bytes in the journal"
    );
}

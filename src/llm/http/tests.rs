//! Tests of both providers over real HTTP, against a server on loopback.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::{Value, json};
use url::Url;

use super::{Collect, HttpClient};
use crate::domain::{Provider, ProviderKind, StructuredOutput};
use crate::llm::{
    BreakerSettings, ChatModel, ChatReply, ChatRequest, Error, ErrorKind, Fault, Registry, Schema,
};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

const KEY: &str = "sk-test-0123456789abcdef";

fn provider(base: &str) -> Provider {
    Provider {
        name: "upstream".into(),
        kind: ProviderKind::Openai,
        base_url: base.parse().ok(),
        key_variable: None,
        api_key: None,
        max_concurrent: 2,
        structured_output: StructuredOutput::Auto,
        stream: false,
        headers: vec![],
        proxy: None,
        secrets: vec![],
        threads: None,
    }
}

fn model(base: &str, kind: ProviderKind, api_key: Option<&str>) -> Arc<dyn ChatModel> {
    let provider = Provider {
        kind,
        api_key: api_key.map(Into::into),
        ..provider(base)
    };
    let registry = Registry::new([&provider], CONNECT_TIMEOUT, BreakerSettings::default());
    registry.unwrap().model("upstream").unwrap()
}

fn client(provider: &Provider) -> HttpClient {
    let key = (hyper::header::AUTHORIZATION, "Bearer ");
    let fixed = hyper::HeaderMap::new();
    HttpClient::new(provider, CONNECT_TIMEOUT, key, fixed, Url::clone).unwrap()
}

fn request() -> ChatRequest {
    ChatRequest {
        model: "claude-sonnet-5-5".into(),
        max_tokens: 64,
        timeout: Duration::from_secs(5),
        ..ChatRequest::sample()
    }
}

/// Reads a request: its head in lower case, and its body.
fn read_request(stream: &mut TcpStream) -> (String, Value) {
    let (mut request, mut buffer) = (vec![], [0; 8192]);
    loop {
        let read = stream.read(&mut buffer).unwrap();
        request.extend_from_slice(buffer.get(..read).unwrap());
        let text = String::from_utf8_lossy(&request);
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_default();
        if let Ok(body) = serde_json::from_str(body) {
            return (head.to_lowercase(), body);
        }
        assert!(read > 0, "a whole request: {text}");
    }
}

/// Returns the base URL of a server that answers one call, and the request that it gets. `head` has
/// the status and more headers.
fn answering(head: &str, body: &str) -> (String, JoinHandle<(String, Value)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let length = body.len();
    let answer = format!("HTTP/1.1 {head}\r\ncontent-length: {length}\r\n\r\n{body}");
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let request = read_request(&mut stream);
        // The client may close the connection before the end of a long answer.
        let _ = stream.write_all(answer.as_bytes());
        request
    });
    (base, server)
}

/// Returns the result of a call to an Anthropic-like server with this answer.
async fn answered(head: &str, body: &str) -> Result<ChatReply, Error> {
    let (base, _) = answering(head, body);
    model(&base, ProviderKind::Anthropic, Some(KEY))
        .chat(&request())
        .await
}

const OK: &str = "200 OK\r\ncontent-type: application/json";

#[tokio::test]
async fn openai_answers_with_and_without_a_key() {
    for key in [Some(KEY), None, Some(" ")] {
        let cassette = include_str!("../../../tests/cassettes/openai_structured.json");
        let (base, server) = answering(OK, cassette);
        let reply = model(&base, ProviderKind::Openai, key)
            .chat(&request())
            .await
            .unwrap();
        assert_eq!(reply.text, r#"{"answer":"42","confidence":0.7}"#);
        let (head, _) = server.join().unwrap();
        assert!(
            head.starts_with("post /v1/chat/completions http/1.1\r\n"),
            "{head}"
        );
        let sent = head
            .lines()
            .find_map(|line| line.strip_prefix("authorization: "));
        let expected = (key == Some(KEY)).then(|| format!("bearer {KEY}"));
        assert_eq!(sent, expected.as_deref());
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let error = answered("307 Elsewhere\r\nlocation: /elsewhere", "")
        .await
        .unwrap_err();
    assert!(
        matches!(error.kind, ErrorKind::Status { status: 307, .. }),
        "{error:?}"
    );
}

#[tokio::test]
async fn no_whole_answer_in_time_is_a_timeout() {
    for bytes in [&b""[..], b"HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n{"] {
        let base = raw(bytes, Then::KeepOpen);
        let after = Duration::from_millis(150);
        let request = ChatRequest {
            timeout: after,
            ..request()
        };
        let called = model(&base, ProviderKind::Openai, None)
            .chat(&request)
            .await;
        let expected = Error::new("upstream", ErrorKind::Timeout(after), "");
        assert_eq!(called, Err(expected));
    }
}

/// Returns the base URL of a server that answers one call with these bytes. Then it closes the
/// connection or keeps it open.
fn raw(bytes: &'static [u8], then: Then) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.read(&mut [0; 8192]);
        stream.write_all(bytes).unwrap();
        if then == Then::KeepOpen {
            // Blocks until the client closes the connection.
            let _ = stream.read(&mut [0; 1]);
        }
    });
    format!("http://{address}")
}

#[derive(PartialEq)]
enum Then {
    HangUp,
    KeepOpen,
}

#[tokio::test]
async fn a_cut_body_is_a_broken_connection() {
    for bytes in [
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 500\r\n\r\n{\"id\":"
            .as_slice(),
        b"".as_slice(),
        b"HTTP/1.1 200".as_slice(),
    ] {
        let base = raw(bytes, Then::HangUp);
        let error = model(&base, ProviderKind::Anthropic, Some(KEY))
            .chat(&request())
            .await
            .unwrap_err();
        assert_eq!(error.kind, ErrorKind::Broken, "{error:?}");
        assert!(error.may_be_billed());
    }
}

/// True if these are the first bytes of a TLS handshake.
fn is_client_hello(bytes: &[u8]) -> bool {
    bytes.starts_with(&[22, 3])
}

/// Posts an empty object.
async fn post(http: &HttpClient) -> Result<ChatReply, Error> {
    http.post::<Never>(&ChatRequest::sample(), &json!({})).await
}

#[tokio::test]
async fn an_https_address_is_spoken_to_in_tls_with_and_without_a_proxy() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = std::thread::spawn(move || {
        let mut buffer = [0; 4096];
        let (mut direct, _) = listener.accept().unwrap();
        let read = direct.read(&mut buffer).unwrap();
        assert!(is_client_hello(buffer.get(..read).unwrap()));
        drop(direct);

        let (mut tunnel, _) = listener.accept().unwrap();
        let read = tunnel.read(&mut buffer).unwrap();
        let head = String::from_utf8_lossy(buffer.get(..read).unwrap()).to_lowercase();
        assert!(
            head.starts_with("connect model.invalid:443 http/1.1"),
            "{head}"
        );
        assert!(
            head.contains("proxy-authorization: basic bwu6c2vjcmv0"),
            "{head}"
        );
        tunnel.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
        let read = tunnel.read(&mut buffer).unwrap();
        assert!(is_client_hello(buffer.get(..read).unwrap()));
    });
    let direct = format!("https://{address}");
    let error = post(&client(&provider(&direct))).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Connect, "{error:?}");

    let target = "https://model.invalid";
    let proxy = Some(format!("http://me:secret@{address}").into());
    let http = client(&Provider {
        proxy,
        ..provider(target)
    });
    let error = post(&http).await.unwrap_err();
    assert!(
        error.kind == ErrorKind::Connect && !format!("{error:?}").contains("secret"),
        "{error:?}"
    );
    tokio::task::spawn_blocking(|| server.join())
        .await
        .unwrap()
        .unwrap();
}

#[tokio::test]
async fn a_password_of_the_address_goes_into_a_header() {
    let ok = include_str!("../../../tests/cassettes/openai_structured.json");
    let (base, server) = answering(OK, ok);
    let base = base.replacen("http://", "http://me:sec%20ret@", 1);
    model(&base, ProviderKind::Openai, None)
        .chat(&request())
        .await
        .unwrap();
    let (head, _) = server.join().unwrap();
    assert!(
        head.contains("\r\nauthorization: basic bwu6c2vjihjlda=="),
        "{head}"
    );
}

#[tokio::test]
async fn a_closed_port_is_unreachable() {
    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let base = format!("http://127.0.0.1:{port}");
    let error = model(&base, ProviderKind::Openai, None)
        .chat(&request())
        .await
        .unwrap_err();
    assert!(
        error.kind == ErrorKind::Connect && !error.may_be_billed(),
        "{error:?}"
    );
}

#[tokio::test]
async fn a_200_that_is_not_the_api_is_unreadable_and_not_quoted() {
    for body in [
        "<html>private words</html>",
        r#"{"hello": "private words"}"#,
        "",
    ] {
        let error = answered(OK, body).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Unreadable, "{error:?}");
        assert!(!error.to_string().contains("private"), "{error}");
    }
    let huge = " ".repeat(9 * 1024 * 1024);
    let error = answered(OK, &huge).await.unwrap_err();
    assert!(matches!(error.kind, ErrorKind::TooLong { .. }), "{error:?}");
    let error = answered("400 Bad Request", &huge).await.unwrap_err();
    assert!(
        matches!(error.kind, ErrorKind::Status { status: 400, .. }),
        "{error:?}"
    );
}

/// A stream that never ends.
#[derive(Default)]
struct Never;

impl Collect for Never {
    type Reply = Value;

    fn convert(_: Value) -> Result<ChatReply, Fault> {
        Ok(ChatReply::sample(""))
    }

    fn take(&mut self, _: &str) -> Result<bool, Fault> {
        Ok(false)
    }

    fn finish(self) -> Option<Value> {
        None
    }
}

#[tokio::test]
async fn a_stream_that_falls_silent_is_given_up_long_before_the_call_is() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base_url: url::Url = format!("http://{}", listener.local_addr().unwrap())
        .parse()
        .unwrap();
    let silent = async {
        let (mut socket, _) = listener.accept().await.unwrap();
        let mut asked = [0; 4096];
        let _ = socket.read(&mut asked).await.unwrap();
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\nevent: ping\ndata: {\"type\":\"ping\"}\n\n";
        socket.write_all(head.as_bytes()).await.unwrap();
        // Keeps the connection open without sending anything.
        let _ = socket.read(&mut asked).await;
    };
    let http = HttpClient {
        stall: Duration::from_millis(100),
        ..client(&provider(base_url.as_str()))
    };
    let (answer, ()) = tokio::join!(post(&http), silent);
    let error = answer.err().unwrap();
    assert!(
        error.may_be_billed()
            && error
                .to_string()
                .contains("the stream fell silent for 0.1 s"),
        "{error}"
    );
}

/// Returns the base URL of a server that takes neither `max_tokens` nor a schema, and the bodies that
/// it gets in four requests.
fn demanding() -> (String, JoinHandle<Vec<Value>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let reply = include_str!("../../../tests/cassettes/openai_structured.json");
    let answer = |body: &Value| {
        let refused = |why: &str| ("400 No", json!({ "error": { "message": why } }).to_string());
        if body.get("max_tokens").is_some() {
            refused("Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.")
        } else if body.get("response_format").is_some() {
            refused("This response_format type is unavailable now")
        } else {
            (OK, reply.to_owned())
        }
    };
    let server = std::thread::spawn(move || {
        let taken = (0..4).map(|_| {
            let (mut stream, _) = listener.accept().unwrap();
            let (_, body) = read_request(&mut stream);
            let (head, text) = answer(&body);
            let length = text.len();
            let head = format!("HTTP/1.1 {head}\r\ncontent-length: {length}\r\n");
            let whole = format!("{head}connection: close\r\n\r\n{text}");
            stream.write_all(whole.as_bytes()).unwrap();
            body
        });
        taken.collect()
    });
    (base, server)
}

#[tokio::test]
async fn what_a_server_does_not_support_is_left_out_and_not_sent_again() {
    let (base, server) = demanding();
    let model = model(&base, ProviderKind::Openai, Some(KEY));
    let schema = json!({ "type": "object", "properties": { "answer": { "type": "string" } } });
    let request = ChatRequest {
        schema: Some(Schema {
            name: "solution".into(),
            value: conclave_lenient_json::Schema::new(schema).into(),
        }),
        ..request()
    };
    for _ in 0..2 {
        let reply = model.chat(&request).await.unwrap();
        assert_eq!(reply.text, r#"{"answer":"42","confidence":0.7}"#);
    }
    let bodies = server.join().unwrap();
    let has = |parameter: &str| -> Vec<bool> {
        let has = bodies.iter().map(|body| body.get(parameter).is_some());
        has.collect()
    };
    assert_eq!(has("max_tokens"), [true, false, false, false]);
    assert_eq!(has("max_completion_tokens"), [false, true, true, true]);
    assert_eq!(has("response_format"), [true, true, false, false]);
    let said = bodies[3]["messages"][0]["content"].as_str().unwrap();
    assert!(said.contains("exactly one JSON object"), "{said}");
}

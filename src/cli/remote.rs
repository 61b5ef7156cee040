//! Asks a running service and shows the same progress, read from its event stream.

use std::io::ErrorKind;
use std::time::Duration;

use futures_util::StreamExt as _;
use reqwest::{Client, RequestBuilder, Response};
use serde_json::Value;
use url::Url;

use super::exit::{Done, Exit, fail, failing};
use super::local::check_files;
use super::output::{after_reply, print_reply, show_command};
use super::printable::without_controls;
use super::progress::Progress;
use super::stop::{second_stop_signal, stop_signal};
use crate::app::ChatInput;
use crate::config::Env;
use crate::domain::RunId;
use crate::llm::StreamReader;

/// Reads the address of a running service.
///
/// # Errors
/// A text without a scheme and a host, or with another scheme than HTTP.
pub(super) fn server_address(given: &str) -> Result<String, String> {
    let url = Url::parse(given).ok();
    let is_http = |url: &Url| matches!(url.scheme(), "http" | "https") && url.has_host();
    let found = url.filter(is_http).map(|_| given.to_owned());
    found
        .ok_or_else(|| "an address such as http://127.0.0.1:8080 or https://example.org".to_owned())
}

/// Returns the HTTP client for a running service.
///
/// # Errors
/// If the client cannot be built.
#[allow(
    clippy::disallowed_methods,
    reason = "the command line as a client of the service"
)]
pub(super) fn client() -> Result<Client, reqwest::Error> {
    // Fails only if a provider is already installed, which is sufficient.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = Client::builder()
        .no_proxy()
        .connect_timeout(Duration::from_secs(10));
    match builder.build() {
        Ok(client) => Ok(client),
        // Without root certificates on the machine, plain HTTP to the user's own service still
        // works.
        Err(_) => Client::builder().no_proxy().tls_certs_only([]).build(),
    }
}

/// Asks a question and prints the reply, as JSON without the command that answers a question of the
/// committee. A signal that ends the program cancels the run.
pub(super) async fn ask(
    env: &Env,
    server: &str,
    question: &ChatInput,
    answer: Option<&str>,
    mut progress: Progress,
) -> Done {
    let mut run = None;
    let done = tokio::select! {
        done = asked((env, server), question, answer, &mut progress, &mut run) => Some(done),
        _ = stop_signal() => None,
    };
    progress.finish();
    match (done, run) {
        (Some(done), _) => done,
        (None, Some(run)) => Err(interrupted(env, server, run).await),
        (None, None) => {
            let why = "interrupted before the server named a run; if it accepted the question, the run goes on";
            Err(fail(Exit::Interrupted, why))
        }
    }
}

/// Cancels a run on the server, unless a further signal ends the program.
async fn interrupted(env: &Env, server: &str, run: RunId) -> Exit {
    let goes_on = || format!("run {run} may go on: {server}/api/runs/{run}");
    tokio::select! {
        cancelled = cancel(env, server, run) => match cancelled {
            Ok(true) => fail(Exit::Interrupted, format!("run {run} was cancelled")),
            Ok(false) => {
                let why = format!("run {run} ended before it could be cancelled");
                fail(Exit::Interrupted, format!("{why}: {server}/api/runs/{run}"))
            }
            Err(_) => fail(Exit::Interrupted, goes_on()),
        },
        _ = second_stop_signal() => fail(Exit::Interrupted, goes_on()),
    }
}

/// Cancels a run. Returns false if it has ended.
async fn cancel(env: &Env, server: &str, run: RunId) -> Result<bool, Exit> {
    let path = format!("/api/runs/{run}");
    let response = send(env, server, &path, Client::delete).await?;
    if response.status().as_u16() == 409 {
        return Ok(false);
    }
    read(response).await.map(|_| true)
}

/// Asks a question, and sets `run` as soon as the server names it.
async fn asked(
    (env, server): (&Env, &str),
    question: &ChatInput,
    answer: Option<&str>,
    progress: &mut Progress,
    run: &mut Option<RunId>,
) -> Done {
    let unreachable = |error: &str| fail(Exit::Server, format!("{server}: {error}"));
    let request = |client: &Client, url: String| {
        let request = client.post(url).header("accept", "text/event-stream");
        request.json(question)
    };
    let response = send(env, server, "/api/chat", request).await?;
    if !response.status().is_success() {
        let status = response.status().as_u16();
        let problem: Value = response.json().await.unwrap_or_default();
        progress.finish();
        return Err(refused(status, &problem));
    }
    let id = response.headers().get("x-request-id");
    *run = id.and_then(|id| id.to_str().ok()?.parse().ok());
    let run = *run;
    let hint = run.map(|id| show_command(id, Some(&server.to_owned())));
    let hint = hint.map(|show| format!("; the run goes on: {show}"));
    let hint = hint.unwrap_or_default();
    let mut pieces = response.bytes_stream();
    let mut reader = StreamReader::default();
    while let Some(piece) = pieces.next().await {
        let read = piece.map_err(|error| why(&error));
        let read = read.and_then(|piece| reader.read(&piece).map_err(|error| error.to_string()));
        let events = read.map_err(|error| {
            progress.finish();
            unreachable(&format!("the stream broke ({error}){hint}"))
        })?;
        for event in events {
            let data: Value = serde_json::from_str(&event.data).unwrap_or_default();
            progress.event(&event.name, &data);
            if event.name == "reply" {
                progress.finish();
                replied(run, server, answer, &data);
                return Ok(());
            }
            if event.name == "error" {
                progress.finish();
                let status = data.get("status").and_then(Value::as_u64);
                let status = status.and_then(|status| u16::try_from(status).ok());
                let status = status.unwrap_or(500);
                if status == 401 {
                    return Err(unreachable(&format!(
                        "the token was revoked or has expired{hint}"
                    )));
                }
                return Err(refused(status, &data));
            }
        }
    }
    progress.finish();
    Err(unreachable(&format!(
        "the stream ended without a reply{hint}"
    )))
}

fn replied(run: Option<RunId>, server: &str, answer: Option<&str>, data: &Value) {
    let text = data["reply"].as_str().unwrap_or_default();
    print_reply(data, text, answer.is_none());
    if let (Some(run), Some(answer)) = (run, answer) {
        let asks = !text.starts_with("## ");
        after_reply(run, Some(&server.to_owned()), asks.then_some(answer));
    }
}

/// Posts a body and returns the body of the response.
///
/// # Errors
/// The exit code, after the error was printed.
pub(super) async fn post(env: &Env, server: &str, path: &str, body: &Value) -> Result<Value, Exit> {
    let request = |client: &Client, url: String| client.post(url).json(body);
    read(send(env, server, path, request).await?).await
}

/// Gets a path and returns the body of the response.
///
/// # Errors
/// As [`post`].
pub(super) async fn get(env: &Env, server: &str, path: &str) -> Result<Value, Exit> {
    read(send(env, server, path, Client::get).await?).await
}

/// As [`get`], with `None` if the server does not know what is asked for.
///
/// # Errors
/// As [`post`].
pub(super) async fn find(env: &Env, server: &str, path: &str) -> Result<Option<Value>, Exit> {
    let response = send(env, server, path, Client::get).await?;
    if response.status().as_u16() == 404 {
        return Ok(None);
    }
    read(response).await.map(Some)
}

/// Says why a request got no answer.
pub(super) fn why(error: &reqwest::Error) -> String {
    if error.is_builder() {
        return "this is not an http or https address, such as http://127.0.0.1:8080".to_owned();
    }
    if error.is_timeout() {
        return "it does not answer in time".to_owned();
    }
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    match cause
        .downcast_ref()
        .map(|error: &std::io::Error| error.kind())
    {
        Some(ErrorKind::ConnectionRefused) => "no service listens there".to_owned(),
        // It does not read a body that is too large.
        Some(kind @ (ErrorKind::BrokenPipe | ErrorKind::ConnectionReset)) => format!(
            "it closed the connection ({kind}): a request with attachments may be larger than its limit, \
             policy.limits.bodyBytes"
        ),
        _ => cause.to_string(),
    }
}

/// Returns the body of a response.
async fn read(response: Response) -> Result<Value, Exit> {
    let status = response.status();
    let answer: Value = response.json().await.unwrap_or_default();
    outcome(status.as_u16(), answer)
}

/// Returns the body of a response if it is no problem.
///
/// # Errors
/// As [`post`].
pub(super) fn outcome(status: u16, answer: Value) -> Result<Value, Exit> {
    match status {
        200..=299 => Ok(answer),
        _ => Err(refused(status, &answer)),
    }
}

/// Sends the request that `request` builds for a path, with the token of the environment.
async fn send(
    env: &Env,
    server: &str,
    path: &str,
    request: impl FnOnce(&Client, String) -> RequestBuilder,
) -> Result<Response, Exit> {
    let client = client().map_err(failing(Exit::Unexpected))?;
    let url = format!("{}{path}", server.trim_end_matches('/'));
    let mut request = request(&client, url);
    match env.get("CONCLAVE_TOKEN") {
        Some(token) => request = request.bearer_auth(token),
        // A line that cannot be read could hold it.
        None => check_files(env)?,
    }
    let response = request.send().await;
    response.map_err(|error| fail(Exit::Server, format!("{server}: {}", why(&error))))
}

fn refused(status: u16, problem: &Value) -> Exit {
    let title = problem["title"].as_str().unwrap_or("the server refused");
    let detail = problem["detail"].as_str().unwrap_or_default();
    for error in problem["errors"].as_array().into_iter().flatten() {
        let part = |key: &str| error[key].as_str().unwrap_or_default();
        let line = format!("conclave: {} {}", part("pointer"), part("detail"));
        tell!("{}", without_controls(&line));
    }
    let kind = problem["type"].as_str().unwrap_or_default();
    let is = |slug: &str| kind.strip_prefix("urn:conclave:problem:") == Some(slug);
    let exit = match status {
        422 if is("over-budget") => Exit::Budget,
        409 if is("conflict") && detail.contains("cancelled") => Exit::Interrupted,
        502 => Exit::Provider,
        503 | 429 => Exit::Server,
        504 => Exit::Deadline,
        400..=499 => Exit::Refused,
        _ => Exit::Unexpected,
    };
    let hint = match status {
        401 => "; put it into CONCLAVE_TOKEN",
        403 if is("lacks-scope") => {
            "; make one that has it: conclave token create --name NAME --scope SCOPE"
        }
        _ => "",
    };
    fail(exit, format!("{title} ({status}): {detail}{hint}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_http_are_taken() {
        for (given, is_taken) in [
            ("http://127.0.0.1:8080", true),
            ("https://conclave.example.org/", true),
            ("127.0.0.1:8080", false),
            ("ftp://example.org", false),
            ("http://", false),
            ("not an address", false),
        ] {
            assert_eq!(server_address(given).is_ok(), is_taken, "{given}");
        }
    }
}

//! The service under test: the real router on a real socket, a journal in a temporary folder, and
//! the shipped config with the mock provider. Every reply is checked against the invariants of SPEC
//! 14.

use std::sync::Arc;
use std::time::Duration;

use conclave::app::{self, App};
use conclave::clock::Clock;
use conclave::committee::audit_view;
use conclave::committee::invariants::{self, InvariantInput};
use conclave::compute::ComputePool;
use conclave::config::{self, Config, Env};
use conclave::domain::{Agent, Reply, RunId};
use conclave::http;
use conclave::journal::{self, Ending, Entry, Event, Store, Transcript};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::{MockProvider, client, postgres, run_of};

/// A planted key. No reply, journal, error or log may show it.
pub const PLANTED_KEY: &str = "sk-planted-8c1f2e9a7b6d";

/// The changes of a test to the shipped config and the environment.
#[derive(Default)]
pub struct Setup {
    pub variables: Vec<(String, String)>,
    /// JSON pointers into the config with their new values.
    pub config: Vec<(String, Value)>,
}

impl Setup {
    /// Moves every role to an OpenAI-compatible provider.
    pub fn on_openai(self, provider: &MockProvider) -> Self {
        let openai = json!({ "enabled": true, "kind": "openai", "baseUrl": provider.url() });
        let role =
            json!({ "provider": "openai", "model": "OPENAI_MODEL_OF_TEST", "maxTokens": 1000 });
        let agents = Agent::ALL.iter().map(Agent::into_str).chain(["master"]);
        let roles = agents.map(|name| (name.to_owned(), role.clone()));
        self.set("/providers/openai", openai)
            .set("/models/roles", Value::from_iter(roles))
            .env("OPENAI_API_KEY", "sk-other")
            .env("OPENAI_MODEL_OF_TEST", "gpt-4.1")
    }

    pub fn set(mut self, pointer: impl Into<String>, value: Value) -> Self {
        self.config.push((pointer.into(), value));
        self
    }

    pub fn env(mut self, name: &str, value: impl Into<String>) -> Self {
        self.variables.push((name.into(), value.into()));
        self
    }
}

pub struct TestApp {
    pub app: Arc<App>,
    pub url: String,
    pub client: reqwest::Client,
    pub folder: Arc<TempDir>,
    server: JoinHandle<()>,
}

/// A reply as the client received it, already checked against the invariants.
#[derive(Debug)]
pub struct Got {
    pub run: RunId,
    pub outcome: String,
    pub body: Value,
    pub entries: Vec<Entry>,
}

impl Got {
    pub fn text(&self) -> &str {
        self.body["reply"].as_str().unwrap()
    }

    pub fn c_final(&self) -> f64 {
        self.body["meta"]["c_final"].as_f64().unwrap()
    }

    pub fn events(&self) -> impl Iterator<Item = &Event> {
        self.entries.iter().map(|entry| &entry.event)
    }
}

/// Returns the journal's database for a folder: a file in it, or the PostgreSQL database for its
/// name.
pub async fn database_of(folder: &TempDir) -> String {
    if postgres::is_chosen() {
        return postgres::database(&folder.path().display().to_string()).await;
    }
    format!("sqlite://{}", folder.path().join("conclave.db").display())
}

/// Returns the shipped config with a test's changes.
pub fn config(provider_url: &str, database: &str, setup: &Setup) -> Config {
    let mut file: Value = serde_json::from_str(super::SHIPPED).unwrap();
    // Short pauses: the tests only need that there are some.
    file["policy"]["retry"] = json!({ "attempts": 3, "baseMs": 5, "maxMs": 40 });
    file["policy"]["deadlines"] =
        json!({ "connect": 2, "call": 5, "ask": 20, "audit": 20, "deep": 20 });
    // Tests of faults cause many failures in a row. Tests of the breaker lower this value.
    file["policy"]["breaker"] = json!({ "failures": 1000, "openSeconds": 15 });
    for (pointer, value) in &setup.config {
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        file.pointer_mut(parent).unwrap()[key] = value.clone();
    }
    let own = [
        ("ANTHROPIC_API_KEY", PLANTED_KEY),
        ("ANTHROPIC_BASE_URL", provider_url),
        ("DATABASE_URL", database),
    ];
    let own = own.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let variables = own.into_iter().chain(setup.variables.iter().cloned());
    config::from_text(&file.to_string(), &Env::of(variables)).unwrap()
}

impl TestApp {
    pub async fn start(provider: &MockProvider) -> Self {
        Self::with(provider, Setup::default()).await
    }

    pub async fn with(provider: &MockProvider, setup: Setup) -> Self {
        Self::on(provider, setup, Arc::new(TempDir::new().unwrap())).await
    }

    /// Starts on a folder that may hold the journal of an earlier service.
    pub async fn on(provider: &MockProvider, setup: Setup, folder: Arc<TempDir>) -> Self {
        let config = config(&provider.url(), &database_of(&folder).await, &setup);
        Self::serve(App::start(config, Clock::System).await.unwrap(), folder).await
    }

    /// Starts on a store that the test has opened in the folder.
    pub async fn with_store(
        provider: &MockProvider,
        setup: Setup,
        folder: Arc<TempDir>,
        store: impl Store + 'static,
        owner: &str,
    ) -> Self {
        let config = config(&provider.url(), &database_of(&folder).await, &setup);
        let models = app::models(&config).await.unwrap();
        let (store, owner) = (Arc::new(store), owner.to_owned());
        let compute = ComputePool::default();
        let app = App::assemble(config, Clock::System, store, owner, models, compute);
        Self::serve(app.unwrap(), folder).await
    }

    async fn serve(app: Arc<App>, folder: Arc<TempDir>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let serving = http::serve(Arc::clone(&app), listener, std::future::pending());
        #[allow(
            clippy::disallowed_methods,
            reason = "the handle is kept: it ends with the test"
        )]
        let server = tokio::spawn(serving);
        Self {
            app,
            url,
            client: client(),
            folder,
            server,
        }
    }

    pub fn request(&self, method: &str, path: &str) -> reqwest::RequestBuilder {
        let url = format!("{}{path}", self.url);
        self.client.request(method.parse().unwrap(), url)
    }

    pub fn post(&self, body: &Value) -> reqwest::RequestBuilder {
        self.request("POST", "/api/chat").json(body)
    }

    /// Asks, waits, and checks the reply against the invariants.
    pub async fn ask(&self, mode: &str, message: &str) -> Got {
        self.reply(self.post(&chat(mode, message))).await
    }

    /// Submits a chat and does not wait for its reply.
    pub async fn accept(&self, body: &Value) -> RunId {
        let request = self.post(body).header("prefer", "respond-async");
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 202);
        run_of(&response)
    }

    pub async fn reply(&self, request: reqwest::RequestBuilder) -> Got {
        let response = request.send().await.unwrap();
        let (status, run) = (response.status(), run_of(&response));
        let outcome = response.headers().get("x-conclave-outcome").cloned();
        let body: Value = response.json().await.unwrap();
        assert_eq!(status, 200, "{body:#}");
        let got = Got {
            run,
            outcome: outcome.unwrap().to_str().unwrap().to_owned(),
            entries: self.entries(run).await,
            body,
        };
        self.hold(&got);
        got
    }

    pub async fn get(&self, path: &str) -> (u16, Value) {
        let response = self.request("GET", path).send().await.unwrap();
        let status = response.status().as_u16();
        (status, response.json().await.unwrap_or_default())
    }

    pub async fn entries(&self, run: RunId) -> Vec<Entry> {
        self.app.entries(run).await.unwrap()
    }

    /// Checks the invariants of SPEC 14 on a reply, and the shape of the response.
    fn hold(&self, got: &Got) {
        let head = &got.entries.last().unwrap().hash;
        let threshold = self.app.config.policy.scoring.ask_threshold;
        let reply = hold(got.run, &got.entries, head, threshold);
        assert_eq!(got.text(), reply.text);
        let accepted = Transcript::of_entries(&got.entries).accepted.unwrap();
        let fields = 2 + usize::from(accepted.question.mode.has_audit());
        let keys: Vec<&String> = got.body.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["reply", "meta", "audit"][..fields]);
    }

    /// Waits until a run has ended.
    pub async fn ended(&self, run: RunId) -> Ending {
        let finished = tokio::time::timeout(Duration::from_secs(30), self.app.finished(run)).await;
        finished.unwrap().unwrap().unwrap().ending
    }
}

/// Checks the invariants of SPEC 14 on a run that ended with a reply.
///
/// # Panics
/// Panics if one does not hold.
pub fn hold<'a>(run: RunId, entries: &'a [Entry], head: &str, threshold: f64) -> &'a Reply {
    let finished = Transcript::of_entries(entries).finished;
    let Some(Ending::Replied { reply }) = finished.map(|f| &f.ending) else {
        panic!("a reply without an ending in the journal")
    };
    let mut events: Vec<Event> = entries.iter().map(|entry| entry.event.clone()).collect();
    events.retain(|event| !matches!(event, Event::Finished(_)));
    // A reply that replaced a draft because of a broken rule counts as a defect too.
    for event in &events {
        if let Event::Synthesized(draft) = event {
            assert_eq!(draft.broken_rules, [""; 0], "{:?}", draft.corrections);
        }
    }
    let transcript = Transcript::of(&events);
    let violations = invariants::check(&InvariantInput {
        reply,
        mode: transcript.accepted.unwrap().question.mode,
        run: &transcript,
        chain_fault: journal::verify(run, entries, head).err(),
        threshold,
        secrets: &[PLANTED_KEY],
    });
    assert_eq!(violations, vec![], "{}", reply.text);
    let audit = audit_view(run, &transcript).filter(|_| reply.audit.is_some());
    assert_eq!(audit, reply.audit, "the audit is a view of the journal");
    let leaks = entries.iter().any(|entry| entry.body.contains(PLANTED_KEY));
    assert!(!leaks, "the key is in the journal");
    reply
}

impl Drop for TestApp {
    fn drop(&mut self) {
        self.server.abort();
    }
}

/// The header of a PNG is enough, because the service does not decode the pixels.
pub const TINY_PNG: &str = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAAA=";

/// Returns the body of a chat.
pub fn chat(mode: &str, message: &str) -> Value {
    json!({
        "source": "http", "mode": mode, "message": message,
        "user": { "id": "u1", "name": "Ada" }, "context": { "channelId": "c1" },
    })
}

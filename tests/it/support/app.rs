//! The service under test: the real router on a real socket, a journal in a temporary folder, and
//! the shipped config with the mock provider. Every reply is checked against the invariants of SPEC
//! 14.

use std::sync::Arc;
use std::time::Duration;

use conclave::app::App;
use conclave::clock::Clock;
use conclave::committee::invariants::{self, InvariantInput};
use conclave::config::{self, Config, Env};
use conclave::domain::{Mode, RunId};
use conclave::http;
use conclave::journal::{self, Ending, Entry, Event, Store, Transcript};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;

use super::{LoopbackClient, MockProvider, client, postgres};

/// A planted key. No reply, journal, error or log may show it.
pub const PLANTED_KEY: &str = "sk-planted-8c1f2e9a7b6d";

/// The changes of a test to the shipped config and the environment.
#[derive(Default)]
pub struct Setup {
    pub variables: Vec<(&'static str, String)>,
    /// JSON pointers into the config with their new values.
    pub config: Vec<(&'static str, Value)>,
}

impl Setup {
    /// Moves every role to an OpenAI-compatible provider.
    pub fn on_openai(self, provider: &MockProvider) -> Self {
        let mut setup = self
            .set(
                "/providers/openai",
                json!({ "enabled": true, "kind": "openai", "baseUrl": provider.url() }),
            )
            .env("OPENAI_API_KEY", "sk-other")
            .env("OPENAI_MODEL_OF_TEST", "gpt-4.1");
        for role in [
            "master",
            "solver",
            "critic",
            "verifier",
            "editor",
            "implementer",
            "visual",
        ] {
            let pointer: &'static str = Box::leak(format!("/models/roles/{role}").into_boxed_str());
            setup = setup.set(
                pointer,
                json!({ "provider": "openai", "model": "OPENAI_MODEL_OF_TEST", "maxTokens": 1000 }),
            );
        }
        setup
    }

    pub fn set(mut self, pointer: &'static str, value: Value) -> Self {
        self.config.push((pointer, value));
        self
    }

    pub fn env(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.variables.push((name, value.into()));
        self
    }
}

pub struct TestApp {
    pub app: Arc<App>,
    pub url: String,
    pub client: LoopbackClient,
    pub folder: Arc<TempDir>,
    server: tokio::task::JoinHandle<()>,
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
        postgres::database(&folder.path().display().to_string()).await
    } else {
        format!("sqlite://{}", folder.path().join("conclave.db").display())
    }
}

/// Returns the shipped config with a test's changes.
pub fn config(provider_url: &str, database: &str, setup: &Setup) -> Config {
    let mut file: Value = serde_json::from_str(include_str!("../../../llm.config.json")).unwrap();
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
    let mut variables = vec![
        ("ANTHROPIC_API_KEY".to_owned(), PLANTED_KEY.to_owned()),
        ("ANTHROPIC_BASE_URL".to_owned(), provider_url.to_owned()),
        ("DATABASE_URL".to_owned(), database.to_owned()),
    ];
    variables.extend(
        setup
            .variables
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.clone())),
    );
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
        let app = App::start(config, Clock::System).await.unwrap();
        Self::serve(app, folder).await
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
        let app = App::start_on(config, Clock::System, Arc::new(store), owner.to_owned())
            .await
            .unwrap();
        Self::serve(app, folder).await
    }

    async fn serve(app: Arc<App>, folder: Arc<TempDir>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let serving = Arc::clone(&app);
        #[allow(
            clippy::disallowed_methods,
            reason = "the handle is kept, and the task ends with the test"
        )]
        let server = tokio::spawn(async move {
            http::serve(serving, listener, std::future::pending())
                .await
                .unwrap();
        });
        Self {
            app,
            url,
            client: client(),
            folder,
            server,
        }
    }

    pub fn post(&self, body: &Value) -> reqwest::RequestBuilder {
        self.client
            .post(format!("{}/api/chat", self.url))
            .json(body)
    }

    /// Asks, waits, and checks the reply against the invariants.
    pub async fn ask(&self, mode: &str, message: &str) -> Got {
        self.reply(self.post(&chat(mode, message))).await
    }

    pub async fn reply(&self, request: reqwest::RequestBuilder) -> Got {
        let response = request.send().await.unwrap();
        let status = response.status().as_u16();
        let header = |name: &str| {
            response
                .headers()
                .get(name)
                .map(|v| v.to_str().unwrap().to_owned())
        };
        let (run, outcome) = (
            header("x-request-id").unwrap(),
            header("x-conclave-outcome"),
        );
        let body: Value = response.json().await.unwrap();
        assert_eq!(status, 200, "{body:#}");
        let run: RunId = run.parse().unwrap();
        let got = Got {
            run,
            outcome: outcome.unwrap(),
            entries: self.entries(run).await,
            body,
        };
        self.hold(&got);
        got
    }

    pub async fn get(&self, path: &str) -> (u16, Value) {
        let response = self
            .client
            .get(format!("{}{path}", self.url))
            .send()
            .await
            .unwrap();
        (
            response.status().as_u16(),
            response.json().await.unwrap_or_default(),
        )
    }

    pub async fn entries(&self, run: RunId) -> Vec<Entry> {
        self.app.entries(run).await.unwrap()
    }

    /// Checks the invariants of SPEC 14 on a reply, and the shape of the response.
    fn hold(&self, got: &Got) {
        let Some(Ending::Replied { reply }) = Transcript::of_entries(&got.entries)
            .finished
            .map(|f| &f.ending)
        else {
            panic!("a reply without an ending in the journal")
        };
        let events: Vec<Event> = got
            .events()
            .filter(|event| !matches!(event, Event::Finished(_)))
            .cloned()
            .collect();
        let head = got.entries.last().map(|entry| entry.hash.clone()).unwrap();
        let mode: Mode = Transcript::of_entries(&got.entries)
            .accepted
            .unwrap()
            .question
            .mode;
        // A reply that replaced a draft because of a broken rule counts as a defect too.
        for event in &events {
            if let Event::Synthesized(synthesized) = event {
                assert_eq!(
                    synthesized.broken_rules, [""; 0],
                    "{:?}",
                    synthesized.corrections
                );
            }
        }
        let violations = invariants::check(&InvariantInput {
            reply,
            mode,
            run: &Transcript::of(&events),
            chain: journal::verify(got.run, &got.entries, &head),
            threshold: self.app.config.policy.ask_user_threshold,
            secrets: &[PLANTED_KEY],
        });
        assert_eq!(violations, vec![], "{}", got.text());
        assert_eq!(got.text(), reply.text);
        let keys: Vec<&String> = got.body.as_object().unwrap().keys().collect();
        let expected: &[&str] = if mode.has_audit() {
            &["reply", "meta", "audit"]
        } else {
            &["reply", "meta"]
        };
        assert_eq!(keys, expected);
        let journal: String = got
            .entries
            .iter()
            .map(|entry| entry.body.as_str())
            .collect();
        assert!(!journal.contains(PLANTED_KEY), "the key is in the journal");
    }

    /// Waits until a run has ended.
    pub async fn ended(&self, run: RunId) -> Ending {
        tokio::time::timeout(Duration::from_secs(30), self.app.finished(run))
            .await
            .unwrap()
            .unwrap()
            .unwrap()
            .ending
    }
}

impl Drop for TestApp {
    fn drop(&mut self) {
        self.server.abort();
    }
}

/// Returns the body of a chat.
pub fn chat(mode: &str, message: &str) -> Value {
    json!({
        "source": "http",
        "mode": mode,
        "user": { "id": "u1", "name": "Ada" },
        "context": { "channelId": "c1" },
        "message": message,
    })
}

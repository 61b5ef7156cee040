//! A model that plays a scenario in this process, without a socket or a delay.

use std::sync::Arc;

use async_trait::async_trait;
use conclave::app::{App, Submission};
use conclave::clock::Clock;
use conclave::domain::BilledTokens;
use conclave::domain::{Context, Mode, Question, RunId, Source, User};
use conclave::journal::SqliteStore;
use conclave::llm::{ChatModel, ChatReply, ChatRequest, Error, Part, Registry, Stop};
use serde_json::Value;
use tempfile::TempDir;

use super::app::config;
use super::{Scenario, Setup, StepKey};

/// Answers each step as the scenario says and bills it honestly. `twist` may change any reply.
pub struct ScriptedModel {
    pub scenario: Scenario,
    pub twist: Twist,
}

fn text_of(request: &ChatRequest) -> String {
    let parts = request.messages.iter().flat_map(|message| &message.parts);
    parts
        .filter_map(|part| {
            if let Part::Text(text) = part {
                Some(text.as_str())
            } else {
                None
            }
        })
        .collect()
}

pub type Twist =
    Arc<dyn Fn(&StepKey, &ChatRequest, ChatReply) -> Result<ChatReply, Error> + Send + Sync>;

pub fn honest() -> Twist {
    Arc::new(|_, _, reply| Ok(reply))
}

#[async_trait]
impl ChatModel for ScriptedModel {
    async fn chat(&self, request: &ChatRequest) -> Result<ChatReply, Error> {
        let key = StepKey::parse(&request.key);
        let step = key.step.trim_end_matches("/repair").to_owned();
        let value: Value = match step.as_str() {
            "plan" => self.scenario.plan(),
            "synthesis" => self.scenario.synthesis(),
            "question" => self.scenario.question(),
            "estimate" => self.scenario.estimate(),
            other => self.scenario.reply_to(other, &text_of(request)),
        };
        let usage = BilledTokens {
            input: 500,
            output: 200,
            ..BilledTokens::default()
        };
        let reply = ChatReply {
            text: value.to_string(),
            stop: Stop::End,
            usage: Some(usage),
            model: None,
            provider_request_id: None,
        };
        (self.twist)(&key, request, reply)
    }
}

/// An app with a scripted model, a temporary journal and a fixed clock.
pub struct Stage {
    pub app: Arc<App>,
    _folder: TempDir,
}

impl Stage {
    pub async fn set(scenario: Scenario, twist: Twist, setup: &Setup) -> Self {
        let folder = TempDir::new().unwrap();
        let config = config("http://127.0.0.1:9", "sqlite:stage.db", setup);
        let clock = Clock::fixed("2026-01-16T12:00:00Z".parse().unwrap());
        let store = SqliteStore::open(&folder.path().join("conclave.db"), "stage")
            .await
            .unwrap();
        let mut models = Registry::default();
        models.insert("anthropic", Arc::new(ScriptedModel { scenario, twist }), 16);
        let app = App::assemble(config, clock, Arc::new(store), models, "stage".into()).unwrap();
        Self {
            app,
            _folder: folder,
        }
    }

    pub async fn ask(&self, mode: Mode, message: &str) -> RunId {
        let user = User {
            id: "u1".into(),
            name: "Ada".into(),
        };
        let question = Question {
            source: Source::Http,
            mode,
            user,
            context: Context::default(),
            message: message.into(),
            attachments: vec![],
        };
        let submission = Submission {
            question,
            idempotency_key: None,
            correlation_id: None,
        };
        let run = self.app.submit(submission).await.unwrap().run;
        self.app.finished(run).await.unwrap().unwrap();
        run
    }
}

//! Who can be asked: providers by name, each behind its own concurrency limit.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};
use url::Url;

use super::anthropic::Anthropic;
use super::discreet::Discreet;
use super::openai::OpenAi;
use super::{ChatModel, ChatReply, ChatRequest, Error};

/// One provider as the config describes it.
#[derive(Debug, Clone)]
pub struct ProviderSpec {
    /// As roles refer to it, and as errors name it.
    pub name: String,
    pub kind: ProviderKind,
    /// With or without `/v1`.
    pub base_url: Url,
    pub api_key: Option<SecretString>,
    /// Calls at the same time; at least 1.
    pub max_concurrent: usize,
    pub connect_timeout: Duration,
    pub structured_output: StructuredOutput,
    pub seeding: Seeding,
}

/// Which API a provider speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProviderKind {
    /// The Messages API.
    Anthropic,
    /// Chat Completions, of OpenAI and of everybody compatible.
    #[serde(rename = "openai")]
    OpenAi,
}

/// How a provider is held to a schema.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StructuredOutput {
    /// The API's own schema output, or a forced tool for Claude models from before it.
    #[default]
    Auto,
    /// The API's own: `output_config.format`, `response_format: json_schema`.
    JsonSchema,
    /// A forced call of one tool whose input is the reply.
    Tool,
    /// JSON without a schema, which goes into the prompt. Anthropic has no such mode: as `None` there.
    JsonObject,
    /// Nothing but the schema in the prompt.
    None,
}

/// Whether a provider is sent the seed; hosted ones often refuse or ignore it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Seeding {
    #[default]
    Omit,
    /// To OpenAI-compatible servers; the Messages API has no seed.
    Send,
}

/// The providers that can be asked.
#[derive(Default)]
pub struct Registry {
    models: BTreeMap<String, Arc<dyn ChatModel>>,
}

impl Registry {
    /// Opens one HTTP client per provider.
    ///
    /// # Errors
    /// [`Error::Connect`] when a provider's client cannot be built.
    pub fn new(specs: impl IntoIterator<Item = ProviderSpec>) -> Result<Registry, Error> {
        let mut registry = Registry::default();
        for spec in specs {
            let model: Arc<dyn ChatModel> = match spec.kind {
                ProviderKind::Anthropic => Arc::new(Anthropic::new(&spec)?),
                ProviderKind::OpenAi => Arc::new(OpenAi::new(&spec)?),
            };
            registry.insert(spec.name, model, spec.max_concurrent);
        }
        Ok(registry)
    }

    /// Adds a model that is not behind HTTP, or replaces the provider of that name.
    pub fn insert(&mut self, name: impl Into<String>, model: Arc<dyn ChatModel>, max_concurrent: usize) {
        let name = name.into();
        let permits = Semaphore::new(max_concurrent.clamp(1, Semaphore::MAX_PERMITS));
        self.models.insert(name.clone(), Arc::new(Limited { provider: name, permits, model }));
    }

    /// The same models, and nothing that comes back from them holds one of the secrets.
    pub fn discreet(self, secrets: &[SecretString]) -> Registry {
        let secrets: Arc<[SecretString]> = secrets.into();
        let guard = |model| -> Arc<dyn ChatModel> { Arc::new(Discreet { model, secrets: Arc::clone(&secrets) }) };
        Registry { models: self.models.into_iter().map(|(name, model)| (name, guard(model))).collect() }
    }

    /// The provider of that name, limited.
    pub fn model(&self, provider: &str) -> Option<Arc<dyn ChatModel>> {
        self.models.get(provider).cloned()
    }

    /// The names of all providers, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.models.keys().map(String::as_str)
    }
}

/// A model that takes so many calls at a time, first come, first served.
struct Limited {
    provider: String,
    permits: Semaphore,
    model: Arc<dyn ChatModel>,
}

#[async_trait]
impl ChatModel for Limited {
    /// Waiting counts towards the request's timeout.
    async fn chat(&self, request: &ChatRequest) -> Result<ChatReply, Error> {
        // Fair all the same: a released permit belongs to the first in the queue, so none is free while some wait.
        if let Ok(_permit) = self.permits.try_acquire() {
            return self.model.chat(request).await;
        }
        let saturated = || Error::Saturated { provider: self.provider.clone() };
        let asked = Instant::now();
        let _permit = timeout(request.timeout, self.permits.acquire())
            .await
            .map_err(|_| saturated())?
            .map_err(|_closed| saturated())?;
        let left = request.timeout.saturating_sub(asked.elapsed());
        if left.is_zero() {
            return Err(saturated());
        }
        self.model.chat(&ChatRequest { timeout: left, ..request.clone() }).await
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::sleep;

    use super::*;
    use crate::llm::Stop;

    /// Answers after two seconds with the timeout that it was given.
    struct Slow;

    #[async_trait]
    impl ChatModel for Slow {
        async fn chat(&self, request: &ChatRequest) -> Result<ChatReply, Error> {
            sleep(Duration::from_secs(2)).await;
            let text = request.timeout.as_secs().to_string();
            Ok(ChatReply { text, stop: Stop::End, usage: None, model: None, provider_request_id: None })
        }
    }

    fn request(seconds: u64) -> ChatRequest {
        ChatRequest {
            key: "k".into(),
            model: "m".into(),
            system: String::new(),
            messages: vec![],
            schema: None,
            max_tokens: 1,
            temperature: None,
            seed: 0,
            timeout: Duration::from_secs(seconds),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_for_a_turn_counts_towards_the_timeout() {
        let mut registry = Registry::default();
        registry.insert("slow", Arc::new(Slow), 1);
        let model = registry.model("slow").unwrap();
        let (first, second, impatient) = (request(10), request(10), request(1));
        let (first, second, impatient) = tokio::join!(model.chat(&first), model.chat(&second), model.chat(&impatient));
        assert_eq!(first.unwrap().text, "10");
        assert_eq!(second.unwrap().text, "8");
        assert_eq!(impatient, Err(Error::Saturated { provider: "slow".into() }));
    }

    #[tokio::test(start_paused = true)]
    async fn an_abandoned_call_gives_its_turn_back() {
        let mut registry = Registry::default();
        registry.insert("slow", Arc::new(Slow), 1);
        let model = registry.model("slow").unwrap();
        let request = request(10);
        let abandoned = timeout(Duration::from_secs(1), model.chat(&request)).await;
        assert!(abandoned.is_err());
        assert_eq!(model.chat(&request).await.unwrap().text, "10");
    }

    #[test]
    fn an_unknown_provider_is_none() {
        let registry = Registry::new([]).unwrap();
        assert!(registry.model("nobody").is_none());
        assert_eq!(registry.names().count(), 0);
    }
}

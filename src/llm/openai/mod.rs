//! Chat Completions as defined by OpenAI, also for xAI, Ollama, llama.cpp, vLLM and OpenRouter.

mod request;
mod response;
mod stream;
mod unsupported;

use std::time::Duration;

use async_trait::async_trait;
use hyper::header::{AUTHORIZATION, HeaderMap};
use tokio::time::Instant;
use url::Url;

use super::http::HttpClient;
use super::{ChatModel, ChatReply, ChatRequest, Error};
use crate::domain::Provider;
use unsupported::{Parameter, RejectedParameters, Unsupported, unsupported_by};

/// Client for all models of one OpenAI-compatible server.
pub(super) struct OpenAi {
    http: HttpClient,
    dialect: request::Dialect,
    rejected: RejectedParameters,
}

impl OpenAi {
    /// Creates a client.
    ///
    /// # Errors
    /// As [`HttpClient::new`].
    pub fn new(provider: &Provider, connect_timeout: Duration) -> Result<OpenAi, Error> {
        let key = (AUTHORIZATION, "Bearer ");
        let fixed = HeaderMap::new();
        Ok(OpenAi {
            http: HttpClient::new(provider, connect_timeout, key, fixed, endpoint)?,
            dialect: request::Dialect::of(provider),
            rejected: RejectedParameters::default(),
        })
    }
}

#[async_trait]
impl ChatModel for OpenAi {
    /// A request that is rejected for a parameter that the server does not support is sent again
    /// without it, within the same time. No provider bills for such a rejection.
    async fn chat(&self, request: &ChatRequest) -> Result<ChatReply, Error> {
        let until = Instant::now() + request.timeout;
        let mut unsupported = self.rejected.of(request);
        let first = match self.attempt(request, &unsupported).await {
            Err(error) if error.is_about_the_body() => error,
            done => return done,
        };
        let (mut last, mut rejected) = (first.clone(), 0);
        while let Some(parameter) = self.unsupported(request, &unsupported, &last) {
            unsupported.insert(parameter);
            rejected += 1;
            let again = ChatRequest {
                // Another body needs another key.
                key: format!("{}+{rejected}", request.key),
                timeout: until.saturating_duration_since(Instant::now()),
                ..request.clone()
            };
            match self.attempt(&again, &unsupported).await {
                Err(error) if error.is_about_the_body() => last = error,
                Ok(reply) => {
                    let model = &request.model;
                    tracing::warn!(
                        model,
                        ?unsupported,
                        "the server does not support every parameter"
                    );
                    self.rejected.keep(request, unsupported);
                    return Ok(reply);
                }
                failed => return failed,
            }
        }
        Err(first)
    }
}

impl OpenAi {
    async fn attempt(
        &self,
        request: &ChatRequest,
        unsupported: &Unsupported,
    ) -> Result<ChatReply, Error> {
        let body = request::to_wire(request, self.dialect, unsupported);
        self.http.post::<stream::Streamed>(request, &body).await
    }

    /// Returns a parameter of the rejected request that the server does not support.
    fn unsupported(
        &self,
        request: &ChatRequest,
        unsupported: &Unsupported,
        rejection: &Error,
    ) -> Option<Parameter> {
        let body =
            serde_json::to_value(request::to_wire(request, self.dialect, unsupported)).ok()?;
        unsupported_by(unsupported, &body, rejection.said()?)
    }
}

/// Returns `{base}/chat/completions`. A base without a path gets `/v1`.
fn endpoint(base: &Url) -> Url {
    let path = match base.path().trim_end_matches('/') {
        "" => "/v1",
        path => path,
    };
    let mut url = base.clone();
    url.set_path(&format!("{path}/chat/completions"));
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_endpoint_does_not_depend_on_how_the_base_is_written() {
        for base in ["", "/", "/v1", "/v1/"] {
            let base = format!("https://a.example{base}").parse().unwrap();
            let expected = "https://a.example/v1/chat/completions";
            assert_eq!(endpoint(&base).as_str(), expected);
        }
        let other = "https://openrouter.ai/api/v1".parse().unwrap();
        let expected = "https://openrouter.ai/api/v1/chat/completions";
        assert_eq!(endpoint(&other).as_str(), expected);
    }
}

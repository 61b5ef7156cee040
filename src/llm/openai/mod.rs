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

use super::http::{Call, HttpClient};
use super::provider::ProviderSpec;
use super::{ChatModel, ChatReply, ChatRequest, Error};
use unsupported::{Learned, Unsupported};

/// Client for all models of one OpenAI-compatible server.
pub(super) struct OpenAi {
    http: HttpClient,
    url: Url,
    dialect: request::Dialect,
    learned: Learned,
}

impl OpenAi {
    /// Creates a client.
    ///
    /// # Errors
    /// As [`HttpClient::new`].
    pub fn new(spec: &ProviderSpec) -> Result<OpenAi, Error> {
        Ok(OpenAi {
            http: HttpClient::new(spec, (AUTHORIZATION, "Bearer "), HeaderMap::new())?,
            url: endpoint(&spec.base_url),
            dialect: request::Dialect::of(spec),
            learned: Learned::default(),
        })
    }
}

#[async_trait]
impl ChatModel for OpenAi {
    /// A request that is rejected for a parameter that the server does not support is sent again
    /// without it, within the same time. No provider bills for such a rejection.
    async fn chat(&self, request: &ChatRequest) -> Result<ChatReply, Error> {
        let until = Instant::now() + request.timeout;
        let known = self.learned.of(&request.model);
        let usual = (request.key.as_str(), request.timeout);
        let first = match self.attempt(request, usual, known).await {
            Err(error) if error.is_about_the_body() => error,
            done => return done,
        };
        let mut said = first.said().unwrap_or_default().to_owned();
        let (mut tried, mut rejected) = (known, 0);
        while let Some(next) = self.after(request, tried, &said) {
            tried = next;
            rejected += 1;
            // Another body needs another key.
            let key = format!("{}+{rejected}", request.key);
            let left = until.saturating_duration_since(Instant::now());
            match self.attempt(request, (&key, left), tried).await {
                Ok(reply) => {
                    let model = &request.model;
                    tracing::warn!(model, unsupported = ?tried, "the server does not support every parameter");
                    self.learned.keep(model, tried);
                    return Ok(reply);
                }
                Err(error) if error.is_about_the_body() => {
                    said = error.said().unwrap_or_default().to_owned();
                }
                Err(error) => return Err(error),
            }
        }
        Err(first)
    }
}

impl OpenAi {
    async fn attempt(
        &self,
        request: &ChatRequest,
        (key, timeout): (&str, Duration),
        not: Unsupported,
    ) -> Result<ChatReply, Error> {
        let body = request::to_wire(request, self.dialect, not);
        let call = Call {
            url: &self.url,
            key,
            body: &body,
            timeout,
            max_bytes: request.max_body_bytes(),
        };
        let answer = self.http.post::<_, stream::Streamed>(call).await?;
        let request_id = answer.header("x-request-id");
        response::from_wire(answer.body, request_id).map_err(|fault| match fault {
            response::Fault::Rejected(rejection) => {
                rejection.into_error(self.http.provider(), |text| self.http.clean(text))
            }
            response::Fault::NoChoice => self.http.unreadable("no choices in the reply"),
        })
    }

    fn after(&self, request: &ChatRequest, not: Unsupported, said: &str) -> Option<Unsupported> {
        let body = serde_json::to_value(request::to_wire(request, self.dialect, not)).ok()?;
        not.after(&body, said)
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

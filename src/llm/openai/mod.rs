//! Chat Completions as defined by OpenAI, also for xAI, Ollama, llama.cpp, vLLM and OpenRouter.

mod request;
mod response;
mod stream;

use async_trait::async_trait;
use hyper::header::{AUTHORIZATION, HeaderMap};
use url::Url;

use super::http::{Call, HttpClient};
use super::provider::ProviderSpec;
use super::{ChatModel, ChatReply, ChatRequest, Error};

/// Client for all models of one OpenAI-compatible server.
pub(super) struct OpenAi {
    http: HttpClient,
    url: Url,
    dialect: request::Dialect,
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
        })
    }
}

#[async_trait]
impl ChatModel for OpenAi {
    async fn chat(&self, request: &ChatRequest) -> Result<ChatReply, Error> {
        let body = request::to_wire(request, self.dialect);
        let call = Call {
            url: &self.url,
            key: &request.key,
            body: &body,
            timeout: request.timeout,
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

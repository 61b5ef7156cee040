//! Anthropic's Messages API.

mod request;
mod response;
mod stream;

use std::time::Duration;

use async_trait::async_trait;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use url::Url;

use super::http::HttpClient;
use super::{ChatModel, ChatReply, ChatRequest, Error};
use crate::domain::{Provider, StructuredOutput};

/// Client for all models of one Anthropic-compatible server.
pub(super) struct Anthropic {
    http: HttpClient,
    structured_output: StructuredOutput,
    stream: bool,
}

impl Anthropic {
    /// Creates a client.
    ///
    /// # Errors
    /// As [`HttpClient::new`].
    pub fn new(provider: &Provider, connect_timeout: Duration) -> Result<Anthropic, Error> {
        let name = HeaderName::from_static;
        let version = HeaderValue::from_static("2023-06-01");
        let fixed = HeaderMap::from_iter([(name("anthropic-version"), version)]);
        let key = (name("x-api-key"), "");
        Ok(Anthropic {
            http: HttpClient::new(provider, connect_timeout, key, fixed, endpoint)?,
            structured_output: provider.structured_output,
            stream: provider.stream,
        })
    }
}

#[async_trait]
impl ChatModel for Anthropic {
    async fn chat(&self, request: &ChatRequest) -> Result<ChatReply, Error> {
        let body = request::to_wire(request, self.structured_output, self.stream);
        self.http.post::<stream::Streamed>(request, &body).await
    }
}

/// Returns `{base}/v1/messages`, whether or not the base already ends in `/v1`.
fn endpoint(base: &Url) -> Url {
    let path = base.path().trim_end_matches('/');
    let path = if path.ends_with("/v1") {
        format!("{path}/messages")
    } else {
        format!("{path}/v1/messages")
    };
    let mut url = base.clone();
    url.set_path(&path);
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_endpoint_does_not_depend_on_how_the_base_is_written() {
        for base in ["", "/", "/v1", "/v1/"] {
            let base = format!("https://a.example{base}").parse().unwrap();
            assert_eq!(endpoint(&base).as_str(), "https://a.example/v1/messages");
        }
        let proxied = "http://127.0.0.1:9/proxy".parse().unwrap();
        let expected = "http://127.0.0.1:9/proxy/v1/messages";
        assert_eq!(endpoint(&proxied).as_str(), expected);
    }
}

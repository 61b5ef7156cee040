//! Wraps a model and makes its results safe to store: removes secrets, shortens names to one line,
//! and bounds the usage.

use std::borrow::Cow;
use std::sync::Arc;

use async_trait::async_trait;
use secrecy::SecretString;

use super::redact::without_secrets;
use super::{ChatModel, ChatReply, ChatRequest, Error, ErrorKind, usage};
use crate::text::excerpt;

/// Maximum length of a provider's names for models and requests.
const MAX_NAME_CHARS: usize = 200;
/// Maximum length of what a provider says of an error.
const MAX_DETAIL_CHARS: usize = 300;

pub(super) struct RedactingModel {
    pub provider: String,
    pub model: Arc<dyn ChatModel>,
    pub secrets: Arc<[SecretString]>,
}

impl RedactingModel {
    fn clean(&self, text: &mut String) {
        if let Cow::Owned(cleaned) = without_secrets(text, &self.secrets) {
            *text = cleaned;
        }
    }

    /// Returns a provider's name as one short line without secrets.
    fn name(&self, name: &str) -> String {
        let name = without_secrets(name, &self.secrets);
        let shown = name.chars().filter(|c| !c.is_control());
        shown.take(MAX_NAME_CHARS).collect()
    }

    fn error(&self, mut error: Error) -> Error {
        self.clean(&mut error.detail);
        error.detail = excerpt(&error.detail, MAX_DETAIL_CHARS);
        error
    }
}

#[async_trait]
impl ChatModel for RedactingModel {
    async fn chat(&self, request: &ChatRequest) -> Result<ChatReply, Error> {
        let reply = self.model.chat(request).await;
        let mut reply = reply.map_err(|error| self.error(error))?;
        let bytes = reply.text.len();
        if bytes > request.max_text_bytes() {
            let max_tokens = request.max_tokens;
            let kind = ErrorKind::TooLong { bytes, max_tokens };
            return Err(Error::new(&self.provider, kind, ""));
        }
        let usage = reply.usage.take();
        let usage = usage.and_then(|usage| usage::of_text(usage, &reply.text));
        self.clean(&mut reply.text);
        if let Some(usage) = usage {
            let (bounded, was_bounded) = usage::bounded(request, usage);
            if was_bounded {
                metrics::counter!("conclave_usage_bounded_total").increment(1);
                tracing::warn!(model = request.model, reported = ?usage, booked = ?bounded, "an impossible usage");
            }
            reply.usage = Some(bounded);
        }
        reply.model = reply.model.map(|name| self.name(&name));
        Ok(reply)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::llm::Registry;

    /// Returns a result that contains secrets.
    struct Talker(Result<ChatReply, Error>);

    #[async_trait]
    impl ChatModel for Talker {
        async fn chat(&self, _: &ChatRequest) -> Result<ChatReply, Error> {
            self.0.clone()
        }
    }

    async fn heard(said: Result<ChatReply, Error>) -> Result<ChatReply, Error> {
        let secrets = [
            SecretString::from("zz-private-0123456789"),
            SecretString::from("word"),
        ];
        let mut registry = Registry::default();
        registry.insert("p", Arc::new(Talker(said)), 1);
        let registry = registry.redacting(&secrets);
        let model = registry.model("p").unwrap();
        model.chat(&ChatRequest::sample()).await
    }

    #[tokio::test]
    async fn secrets_and_control_characters_do_not_come_back_from_a_model() {
        let reply = |text: &str, name: String| ChatReply {
            model: Some(name),
            ..ChatReply::sample(text)
        };
        let long = format!("m\u{1b}[31m\nzz-private-0123456789{}", "x".repeat(300));
        let said = reply(r#"{"a": "the word is zz-private-0123456789"}"#, long);
        let expected = reply(
            r#"{"a": "the word is [secret]"}"#,
            format!("m[31m[secret]{}", "x".repeat(187)),
        );
        assert_eq!(heard(Ok(said)).await, Ok(expected));
        let fault = |detail: &str| Error::new("p", ErrorKind::Unfit, detail);
        assert_eq!(
            heard(Err(fault("no zz-private-0123456789"))).await,
            Err(fault("no [secret]"))
        );
        // A secret at the end of what is kept is removed as a whole.
        let said = format!("{} zz-private-0123456789", "x".repeat(285));
        let kept = format!("{} [secret]", "x".repeat(285));
        assert_eq!(heard(Err(fault(&said))).await, Err(fault(&kept)));
        let error = heard(Err(fault(&"é".repeat(400)))).await.unwrap_err();
        assert_eq!(error.detail.chars().count(), MAX_DETAIL_CHARS);
    }
}

//! Adapter of the in-process model to [`ChatModel`].

use std::path::Path;

use async_trait::async_trait;
use conclave_lenient_json::strict;
use conclave_local_model as engine;
use serde_json::Value;

pub use engine::Error as LoadError;

use super::{Author, CallStop, ChatModel, ChatReply, ChatRequest, Error, ErrorKind, Message, Part};
use crate::domain::BilledTokens;

/// A GGUF model in this process. It is loaded once and shared by all roles.
pub struct Local {
    name: String,
    model: engine::LocalModel,
}

impl Local {
    /// Loads the weights. Blocks for about a second. The first time, it also writes a faster copy
    /// next to the file.
    ///
    /// # Errors
    /// [`LoadError`] if the processor lacks an instruction set of the kernels, or the file is
    /// missing or is not a model that the engine supports.
    pub fn load(
        provider: &str,
        path: &Path,
        threads: Option<usize>,
        parallel: usize,
    ) -> Result<Self, LoadError> {
        let options = engine::Options {
            threads,
            max_parallel: parallel,
            ..engine::Options::new(path.to_path_buf())
        };
        let model = engine::LocalModel::load(options)?;
        Ok(Self {
            name: provider.to_owned(),
            model,
        })
    }
}

#[async_trait]
impl ChatModel for Local {
    async fn chat(&self, request: &ChatRequest) -> Result<ChatReply, Error> {
        let system = engine::Message::new(engine::Role::System, request.system.to_string());
        let messages = request.messages.iter().map(message);
        let messages = std::iter::once(system).chain(messages).collect();
        let schema = request.schema.as_ref();
        let wanted = engine::Request {
            temperature: request.settings.temperature.unwrap_or(0.0),
            seed: request.seed,
            schema: schema.map(|schema| bounded(strict::inlined(schema.value.value()))),
            ..engine::Request::new(messages, request.max_tokens)
        };
        let completed = self.model.complete(wanted);
        let completed = tokio::time::timeout(request.timeout, completed).await;
        let timeout = |_| Error::new(&self.name, ErrorKind::Timeout(request.timeout), "");
        let completed = completed.map_err(timeout)?;
        let completion = completed.map_err(|error| self.error(&error))?;
        Ok(ChatReply {
            text: completion.text,
            stop: match completion.stop {
                engine::StopReason::End => CallStop::End,
                engine::StopReason::MaxTokens => CallStop::MaxTokens,
            },
            usage: Some(BilledTokens {
                input: completion.input_tokens.into(),
                output: completion.output_tokens.into(),
                ..BilledTokens::default()
            }),
            stated_cost: None,
            // The config names the file. The name inside the file would look like a replaced model.
            model: None,
        })
    }
}

impl Local {
    fn error(&self, error: &engine::Error) -> Error {
        let kind = match error {
            engine::Error::QueueFull { .. } => ErrorKind::Saturated,
            engine::Error::TooLong { .. } | engine::Error::Schema { .. } => ErrorKind::Unfit,
            engine::Error::ModelMissing { .. }
            | engine::Error::Cpu { .. }
            | engine::Error::Load { .. }
            | engine::Error::Closed
            | engine::Error::Decode { .. } => ErrorKind::Unreadable,
        };
        Error::new(&self.name, kind, error.to_string())
    }
}

/// Default limits of characters in a string and items in a list, where the schema has none. Small
/// models ramble.
const MAX_CHARS: u64 = 600;
const MAX_ITEMS: u64 = 8;

/// Returns the schema with a bound on every string and list.
fn bounded(mut schema: Value) -> Value {
    match &mut schema {
        Value::Object(map) => {
            let kinds = map.get("type").cloned().unwrap_or_default();
            let is = |kind: &str| {
                let in_list = kinds.as_array().is_some_and(|a| a.contains(&kind.into()));
                in_list || kinds == kind
            };
            let is_fixed = map.contains_key("enum") || map.contains_key("const");
            if is("string") && !is_fixed {
                map.entry("maxLength").or_insert(MAX_CHARS.into());
            }
            if is("array") {
                map.entry("maxItems").or_insert(MAX_ITEMS.into());
            }
            for value in map.values_mut() {
                *value = bounded(value.take());
            }
        }
        Value::Array(values) => {
            for value in values {
                *value = bounded(value.take());
            }
        }
        _ => {}
    }
    schema
}

/// Converts a message. A text model cannot read images, so its prompt names the omitted files.
fn message(message: &Message) -> engine::Message {
    let role = match message.author {
        Author::User => engine::Role::User,
        Author::Assistant => engine::Role::Assistant,
    };
    let texts = message.parts.iter().filter_map(|part| match part {
        Part::Text(text) => Some(&**text),
        Part::Image(_) => None,
    });
    let texts: Vec<&str> = texts.collect();
    engine::Message::new(role, texts.join("\n\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_string_and_list_gets_an_end() {
        let schema = json!({ "type": "object", "properties": {
            "a": { "type": "array", "items": { "type": "string" } },
            "b": { "type": "string", "enum": ["x"] },
            "c": { "type": ["string", "null"], "maxLength": 5 } } });
        let expected = json!({ "type": "object", "properties": {
            "a": { "type": "array", "items": { "type": "string", "maxLength": 600 }, "maxItems": 8 },
            "b": { "type": "string", "enum": ["x"] },
            "c": { "type": ["string", "null"], "maxLength": 5 } } });
        assert_eq!(bounded(schema), expected);
    }
}

//! Converts a [`ChatRequest`] to a request of the Messages API.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::domain::{Effort, StructuredOutput};
use crate::llm::schema_prompt::{ABOUT_TOOL, with_instruction};
use crate::llm::{ChatRequest, Message, Part};

/// The body of a call. It borrows the texts and the finished schema from the request.
#[derive(Debug, Default, Serialize)]
pub(super) struct Body<'a> {
    model: &'a str,
    max_tokens: u32,
    messages: Vec<Turn<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<[Tool<'a>; 1]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<OutputConfig<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    system: Option<[SystemBlock<'a>; 1]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream: Option<bool>,
}

#[derive(Debug, Serialize)]
struct Turn<'a> {
    role: &'static str,
    content: Vec<Block<'a>>,
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block<'a> {
    Text { text: &'a str },
    Image { source: Source<'a> },
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Source<'a> {
    Base64 { media_type: &'a str, data: &'a str },
}

#[derive(Debug, Serialize)]
struct Tool<'a> {
    name: &'a str,
    description: &'static str,
    input_schema: &'a RawValue,
}

#[derive(Debug, Serialize)]
struct OutputConfig<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<Format<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    effort: Option<Effort>,
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Format<'a> {
    JsonSchema { schema: &'a RawValue },
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum SystemBlock<'a> {
    Text {
        text: Cow<'a, str>,
        cache_control: Value,
    },
}

/// Builds the body of the call. Pure.
pub(super) fn to_wire(
    request: &ChatRequest,
    structured_output: StructuredOutput,
    stream: bool,
) -> Body<'_> {
    let settings = request.settings;
    let mut body = Body {
        model: &request.model,
        max_tokens: request.max_tokens,
        messages: request.messages.iter().map(turn).collect(),
        thinking: (settings.effort == Some(Effort::None)).then(|| json!({ "type": "disabled" })),
        temperature: settings.temperature,
        stream: stream.then_some(true),
        ..Body::default()
    };
    let mut output = OutputConfig {
        format: None,
        effort: settings.effort.filter(|effort| *effort != Effort::None),
    };
    let mut is_enforced = true;
    if let Some(schema) = &request.schema {
        let (name, text) = (schema.name.as_str(), schema.value.for_vendor());
        match (structured_output, settings.structured_output) {
            (StructuredOutput::Native, _) | (StructuredOutput::Auto, true) => {
                output.format = Some(Format::JsonSchema { schema: text });
            }
            (StructuredOutput::Tool, _) | (StructuredOutput::Auto, false) => {
                is_enforced = settings.forced_tool;
                body.tools = Some([Tool {
                    name,
                    description: ABOUT_TOOL,
                    input_schema: text,
                }]);
                body.tool_choice = Some(if is_enforced {
                    json!({ "type": "tool", "name": name })
                } else {
                    json!({ "type": "auto" })
                });
            }
            (StructuredOutput::JsonObject | StructuredOutput::None, _) => is_enforced = false,
        }
    }
    let schema = request.schema.as_ref().filter(|_| !is_enforced);
    let instructed = schema.map(|schema| with_instruction(&request.system, &schema.value));
    body.system = request.system.or(instructed).map(|text| {
        let cache_control = json!({ "type": "ephemeral" });
        [SystemBlock::Text {
            text,
            cache_control,
        }]
    });
    let is_output_set = output.format.is_some() || output.effort.is_some();
    body.output_config = is_output_set.then_some(output);
    body
}

fn turn(message: &Message) -> Turn<'_> {
    let content = message.parts.iter().filter_map(|part| match part {
        // The API refuses empty text blocks.
        Part::Text(text) if text.is_empty() => None,
        Part::Text(text) => Some(Block::Text { text }),
        Part::Image(image) => Some(Block::Image {
            source: Source::Base64 {
                media_type: &image.media_type,
                data: &image.base64,
            },
        }),
    });
    Turn {
        role: message.author.role(),
        content: content.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Settings;
    use crate::llm::{Author, Image, Schema};

    fn sent(request: &ChatRequest, option: StructuredOutput, stream: bool) -> Value {
        serde_json::to_value(to_wire(request, option, stream)).unwrap()
    }

    fn request(settings: Settings) -> ChatRequest {
        let image = Image {
            media_type: "image/png".into(),
            base64: "aGk=".into(),
        };
        let asked = json!({"type": "object", "properties": {"answer": {"type": "string", "maxLength": 9}}, "required": ["answer"]});
        ChatRequest {
            messages: vec![Message {
                author: Author::User,
                parts: vec![Part::Text("What is this?".into()), Part::Image(image)],
            }],
            schema: Some(Schema {
                name: "solution".into(),
                value: conclave_lenient_json::Schema::new(asked).into(),
            }),
            settings,
            ..ChatRequest::sample()
        }
    }

    fn schema() -> Value {
        json!({
            "type": "object",
            "properties": {"answer": {"type": "string", "description": "At most 9 characters."}},
            "required": ["answer"],
            "additionalProperties": false,
        })
    }

    #[test]
    fn a_new_model_gets_the_schema_as_its_output_format() {
        let request = request(Settings {
            temperature: Some(0.5),
            ..Settings::default()
        });
        let expected = json!({
            "model": "m",
            "max_tokens": 900,
            "system": [{"type": "text", "text": "You solve.", "cache_control": {"type": "ephemeral"}}],
            "messages": [{"role": "user", "content": [
                {"type": "text", "text": "What is this?"},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}},
            ]}],
            "temperature": 0.5,
            "output_config": {"format": {"type": "json_schema", "schema": schema()}},
        });
        assert_eq!(sent(&request, StructuredOutput::Auto, false), expected);
    }

    #[test]
    fn plain_text_asks_for_no_format() {
        let request = ChatRequest {
            schema: None,
            system: "".into(),
            ..ChatRequest::sample()
        };
        let expected = json!({
            "model": "m",
            "max_tokens": 900,
            "messages": [{"role": "user", "content": [{"type": "text", "text": "Six times seven?"}]}],
            "stream": true,
        });
        assert_eq!(sent(&request, StructuredOutput::Auto, true), expected);
    }

    #[test]
    fn the_settings_decide_how_schema_and_effort_are_sent() {
        let settings = Settings::default();
        let not_native = Settings {
            structured_output: false,
            ..settings
        };
        let not_forced = Settings {
            forced_tool: false,
            ..settings
        };
        let effort = |effort| Settings {
            effort: Some(effort),
            ..settings
        };
        let (auto, tool) = (StructuredOutput::Auto, StructuredOutput::Tool);
        let forced = json!({"type": "tool", "name": "solution"});
        let cases = [
            (not_native, auto, "/output_config", Value::Null),
            (not_native, auto, "/tools/0/name", json!("solution")),
            (not_native, auto, "/tools/0/input_schema", schema()),
            (not_native, auto, "/tool_choice", forced),
            (not_forced, tool, "/tool_choice", json!({"type": "auto"})),
            (
                effort(Effort::Low),
                auto,
                "/output_config/effort",
                json!("low"),
            ),
            (effort(Effort::Low), auto, "/thinking", Value::Null),
            (effort(Effort::None), tool, "/output_config", Value::Null),
            (
                effort(Effort::None),
                tool,
                "/thinking/type",
                json!("disabled"),
            ),
            (settings, tool, "/thinking", Value::Null),
        ];
        for (settings, option, at, expected) in cases {
            let body = sent(&request(settings), option, false);
            assert_eq!(body.pointer(at).unwrap_or(&Value::Null), &expected, "{at}");
        }
        for (settings, option) in [(not_forced, tool), (settings, StructuredOutput::None)] {
            let body = sent(&request(settings), option, false);
            let system = body["system"][0]["text"].as_str().unwrap();
            assert!(system.starts_with("You solve.\n\n"), "{system}");
            assert!(system.contains("\"answer\""), "{system}");
        }
    }
}

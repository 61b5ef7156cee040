//! Converts a [`ChatRequest`] to a request of the Messages API.

use super::wire::{
    Block, CacheControl, Format, Message, OutputConfig, Request, Source, SystemBlock, Thinking,
    Tool, ToolChoice,
};
use crate::domain::{Effort, StructuredOutput};
use crate::llm::schema_prompt::with_instruction;
use crate::llm::{Author, ChatRequest, Part};

/// Builds the body of the call. Pure.
pub(super) fn to_wire(
    request: &ChatRequest,
    structured_output: StructuredOutput,
    stream: bool,
) -> Request<'_> {
    let settings = request.settings;
    let mut system = request.system.clone();
    let (mut format, mut tools, mut tool_choice) = (None, vec![], None);
    if let Some(schema) = &request.schema {
        match structured_output {
            StructuredOutput::Auto if settings.structured_output => {
                format = Some(Format::JsonSchema {
                    schema: schema.value.for_vendor(),
                });
            }
            StructuredOutput::Native => {
                format = Some(Format::JsonSchema {
                    schema: schema.value.for_vendor(),
                });
            }
            StructuredOutput::Auto | StructuredOutput::Tool => {
                let description = "Gives the reply. Call it exactly once, with the whole reply.";
                tools.push(Tool {
                    name: &schema.name,
                    description,
                    input_schema: schema.value.for_vendor(),
                });
                tool_choice = Some(if settings.forced_tool {
                    ToolChoice::Tool { name: &schema.name }
                } else {
                    system = with_instruction(&system, &schema.value);
                    ToolChoice::Auto
                });
            }
            StructuredOutput::JsonObject | StructuredOutput::None => {
                system = with_instruction(&system, &schema.value);
            }
        }
    }
    let (effort, thinking) = match settings.effort {
        Some(Effort::None) => (None, Some(Thinking::Disabled)),
        effort => (effort, None),
    };
    Request {
        model: &request.model,
        max_tokens: request.max_tokens,
        system: system_blocks(system),
        messages: request.messages.iter().map(message).collect(),
        temperature: settings.temperature,
        output_config: (effort.is_some() || format.is_some())
            .then_some(OutputConfig { effort, format }),
        thinking,
        tools,
        tool_choice,
        stream: stream.then_some(true),
    }
}

fn system_blocks(text: String) -> Vec<SystemBlock> {
    if text.is_empty() {
        return vec![];
    }
    vec![SystemBlock {
        kind: "text",
        text,
        cache_control: CacheControl { kind: "ephemeral" },
    }]
}

fn message(message: &crate::llm::Message) -> Message<'_> {
    let role = match message.author {
        Author::User => "user",
        Author::Assistant => "assistant",
    };
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
    Message {
        role,
        content: content.collect(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::domain::Settings;
    use crate::llm::{Image, Message, Schema};

    fn request(model: &str) -> ChatRequest {
        ChatRequest {
            model: model.into(),
            messages: vec![Message {
                author: Author::User,
                parts: vec![
                    Part::Text("What is this?".into()),
                    Part::Image(Image {
                        media_type: "image/png".into(),
                        base64: "aGk=".into(),
                    }),
                ],
            }],
            schema: Some(Schema {
                name: "solution".into(),
                value: compiled(
                    json!({"type": "object", "properties": {"answer": {"type": "string", "maxLength": 9}}, "required": ["answer"]}),
                ),
            }),
            settings: Settings {
                temperature: Some(0.2),
                ..Settings::default()
            },
            ..ChatRequest::sample()
        }
    }

    fn compiled(schema: Value) -> std::sync::Arc<conclave_lenient_json::Schema> {
        conclave_lenient_json::Schema::new(schema).into()
    }

    fn sent(request: &ChatRequest, option: StructuredOutput) -> Value {
        serde_json::from_slice(&serde_json::to_vec(&to_wire(request, option, false)).unwrap())
            .unwrap()
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
        assert_eq!(
            sent(&request("claude-haiku-4-5"), StructuredOutput::Auto),
            json!({
                "model": "claude-haiku-4-5",
                "max_tokens": 900,
                "system": [{"type": "text", "text": "You solve.", "cache_control": {"type": "ephemeral"}}],
                "messages": [{"role": "user", "content": [
                    {"type": "text", "text": "What is this?"},
                    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}},
                ]}],
                "temperature": 0.2,
                "output_config": {"format": {"type": "json_schema", "schema": schema()}},
            })
        );
    }

    #[test]
    fn a_model_without_native_output_is_made_to_call_a_tool() {
        let settings = Settings {
            structured_output: false,
            ..Settings::default()
        };
        let body = sent(
            &ChatRequest {
                settings,
                ..request("gateway-model")
            },
            StructuredOutput::Auto,
        );
        assert_eq!(body["output_config"], Value::Null);
        assert_eq!(body["tools"][0]["name"], "solution");
        assert_eq!(body["tools"][0]["input_schema"], schema());
        assert_eq!(
            body["tool_choice"],
            json!({"type": "tool", "name": "solution"})
        );
    }

    #[test]
    fn a_model_that_refuses_a_forced_tool_is_offered_it() {
        let settings = Settings {
            forced_tool: false,
            ..Settings::default()
        };
        let body = sent(
            &ChatRequest {
                settings,
                ..request("claude-sonnet-5-5")
            },
            StructuredOutput::Tool,
        );
        assert_eq!(body["tool_choice"], json!({"type": "auto"}));
        assert!(
            body["system"][0]["text"]
                .as_str()
                .unwrap()
                .contains("\"answer\"")
        );
    }

    #[test]
    fn an_effort_is_sent_and_no_effort_switches_thinking_off() {
        let with = |effort| {
            let settings = Settings {
                effort,
                ..Settings::default()
            };
            sent(
                &ChatRequest {
                    settings,
                    schema: None,
                    ..request("claude-haiku-5-5")
                },
                StructuredOutput::Auto,
            )
        };
        let low = with(Some(Effort::Low));
        assert_eq!(
            (&low["output_config"], &low["thinking"]),
            (&json!({"effort": "low"}), &Value::Null)
        );
        let none = with(Some(Effort::None));
        assert_eq!(
            (&none["output_config"], &none["thinking"]),
            (&Value::Null, &json!({"type": "disabled"}))
        );
        let unset = with(None);
        assert_eq!(
            (&unset["output_config"], &unset["thinking"]),
            (&Value::Null, &Value::Null)
        );
    }

    #[test]
    fn plain_text_asks_for_no_format() {
        let mut request = request("claude-opus-4-7");
        (request.schema, request.system, request.settings) =
            (None, String::new(), Settings::default());
        request.messages = vec![Message {
            author: Author::User,
            parts: vec![Part::Text("Hi".into())],
        }];
        assert_eq!(
            sent(&request, StructuredOutput::Auto),
            json!({
                "model": "claude-opus-4-7",
                "max_tokens": 900,
                "messages": [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}],
            })
        );
    }

    #[test]
    fn without_structured_output_the_schema_is_in_the_prompt() {
        let body = sent(&request("claude-sonnet-4-5"), StructuredOutput::None);
        let system = body["system"][0]["text"].as_str().unwrap();
        assert!(
            system.starts_with("You solve.\n\n") && system.contains("\"answer\""),
            "{system}"
        );
    }
}

//! From a [`ChatRequest`] to the Messages API.

use std::sync::LazyLock;

use regex::Regex;

use super::wire::{Block, CacheControl, Format, Message, OutputConfig, Request, Source, SystemBlock, Tool, ToolChoice};
use crate::llm::registry::StructuredOutput;
use crate::llm::{Author, ChatRequest, Part, strict};

/// The first generation with structured output outside the beta (Opus, Sonnet and Haiku 4.5).
const FIRST_WITH_JSON_SCHEMA: (u32, u32) = (4, 5);
/// From here on a `temperature` is refused with 400.
const FIRST_WITHOUT_TEMPERATURE: (u32, u32) = (4, 7);

/// The body of the call; pure.
pub(super) fn to_wire(request: &ChatRequest, structured_output: StructuredOutput, stream: bool) -> Request<'_> {
    let mut system = request.system.clone();
    let (mut output_config, mut tools, mut tool_choice) = (None, vec![], None);
    if let Some(schema) = &request.schema {
        match resolve(structured_output, &request.model) {
            StructuredOutput::Tool => {
                let description = "Gives the reply. Call it exactly once, with the whole reply.";
                tools.push(Tool { name: &schema.name, description, input_schema: strict::for_vendor(&schema.value) });
                tool_choice = Some(ToolChoice::Tool { name: &schema.name });
            }
            StructuredOutput::JsonObject | StructuredOutput::None => {
                system = strict::with_instruction(&system, &schema.value);
            }
            StructuredOutput::Auto | StructuredOutput::JsonSchema => {
                output_config =
                    Some(OutputConfig { format: Format::JsonSchema { schema: strict::for_vendor(&schema.value) } });
            }
        }
    }
    Request {
        model: &request.model,
        max_tokens: request.max_tokens,
        system: system_blocks(system),
        messages: request.messages.iter().map(message).collect(),
        temperature: request.temperature.filter(|_| takes_temperature(&request.model)),
        output_config,
        tools,
        tool_choice,
        stream: stream.then_some(true),
    }
}

fn system_blocks(text: String) -> Vec<SystemBlock> {
    if text.is_empty() {
        return vec![];
    }
    vec![SystemBlock { kind: "text", text, cache_control: CacheControl { kind: "ephemeral" } }]
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
        Part::Image(image) => {
            Some(Block::Image { source: Source::Base64 { media_type: &image.media_type, data: &image.base64 } })
        }
    });
    Message { role, content: content.collect() }
}

fn resolve(structured_output: StructuredOutput, model: &str) -> StructuredOutput {
    match structured_output {
        StructuredOutput::Auto if generation(model).is_some_and(|g| g < FIRST_WITH_JSON_SCHEMA) => {
            StructuredOutput::Tool
        }
        StructuredOutput::Auto => StructuredOutput::JsonSchema,
        chosen => chosen,
    }
}

fn takes_temperature(model: &str) -> bool {
    generation(model).is_none_or(|generation| generation < FIRST_WITHOUT_TEMPERATURE)
}

/// `claude-sonnet-4-5-20250929` is (4, 5), `claude-3-7-sonnet-latest` is (3, 7); `None` for names that say nothing.
fn generation(model: &str) -> Option<(u32, u32)> {
    static PATTERN: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"claude-(?:[a-z]+-)?(\d{1,2})(?:[.-](\d{1,2}))?(?:[^\d]|$)").ok());
    if model.contains("claude-instant") {
        return Some((1, 0));
    }
    let found = PATTERN.as_ref()?.captures(model)?;
    let number = |group: usize| found.get(group).and_then(|number| number.as_str().parse().ok());
    Some((number(1)?, number(2).unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::{Value, json};

    use super::*;
    use crate::llm::{Image, Message, Schema};

    fn request(model: &str) -> ChatRequest {
        ChatRequest {
            key: "run/solver/1".into(),
            model: model.into(),
            system: "You solve.".into(),
            messages: vec![Message {
                author: Author::User,
                parts: vec![
                    Part::Text("What is this?".into()),
                    Part::Image(Image { media_type: "image/png".into(), base64: "aGk=".into() }),
                ],
            }],
            schema: Some(Schema {
                name: "solution".into(),
                value: json!({"type": "object", "properties": {"answer": {"type": "string", "maxLength": 9}}, "required": ["answer"]}),
            }),
            max_tokens: 900,
            temperature: Some(0.2),
            seed: 7,
            timeout: Duration::from_secs(60),
        }
    }

    fn sent(request: &ChatRequest, option: StructuredOutput) -> Value {
        serde_json::from_slice(&serde_json::to_vec(&to_wire(request, option, false)).unwrap()).unwrap()
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
            sent(&request("claude-sonnet-4-5-20250929"), StructuredOutput::Auto),
            json!({
                "model": "claude-sonnet-4-5-20250929",
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
    fn an_old_model_is_made_to_call_a_tool() {
        let body = sent(&request("claude-3-5-haiku-latest"), StructuredOutput::Auto);
        assert_eq!(body["output_config"], Value::Null);
        assert_eq!(body["tools"][0]["name"], "solution");
        assert_eq!(body["tools"][0]["input_schema"], schema());
        assert_eq!(body["tool_choice"], json!({"type": "tool", "name": "solution"}));
    }

    #[test]
    fn plain_text_asks_for_no_format() {
        let mut request = request("claude-opus-4-7");
        (request.schema, request.system) = (None, String::new());
        request.messages = vec![Message { author: Author::User, parts: vec![Part::Text("Hi".into())] }];
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
        assert!(system.starts_with("You solve.\n\n") && system.contains("\"answer\""), "{system}");
    }

    #[test]
    fn the_generation_is_read_from_the_model_id() {
        for (model, expected) in [
            ("claude-3-opus-20240229", Some((3, 0))),
            ("claude-3-5-sonnet-20241022", Some((3, 5))),
            ("claude-3-7-sonnet-latest", Some((3, 7))),
            ("claude-2.1", Some((2, 1))),
            ("claude-instant-1.2", Some((1, 0))),
            ("claude-sonnet-4-20250514", Some((4, 0))),
            ("claude-opus-4-0", Some((4, 0))),
            ("claude-opus-4-1-20250805", Some((4, 1))),
            ("claude-haiku-4-5", Some((4, 5))),
            ("anthropic/claude-opus-4.6", Some((4, 6))),
            ("claude-sonnet-5", Some((5, 0))),
            ("mock-model", None),
        ] {
            assert_eq!(generation(model), expected, "{model}");
        }
        assert_eq!(resolve(StructuredOutput::Auto, "claude-opus-4-1-20250805"), StructuredOutput::Tool);
        assert_eq!(resolve(StructuredOutput::Auto, "mock-model"), StructuredOutput::JsonSchema);
    }
}

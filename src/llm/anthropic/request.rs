//! Converts a [`ChatRequest`] to a request of the Messages API.

use serde_json::{Value, json};

use crate::domain::{Effort, StructuredOutput};
use crate::llm::schema_prompt::{ABOUT_TOOL, with_instruction};
use crate::llm::{ChatRequest, Message, Part};

/// Builds the body of the call. Pure.
pub(super) fn to_wire(
    request: &ChatRequest,
    structured_output: StructuredOutput,
    stream: bool,
) -> Value {
    let settings = request.settings;
    let mut system = request.system.clone();
    let messages = request.messages.iter().map(message);
    let mut body = vec![
        ("model", json!(request.model)),
        ("max_tokens", json!(request.max_tokens)),
        ("messages", messages.collect()),
    ];
    let mut output = vec![];
    if let Some(schema) = &request.schema {
        let (name, value) = (&schema.name, schema.value.for_vendor());
        let is_native = match structured_output {
            StructuredOutput::Native => true,
            StructuredOutput::Auto => settings.structured_output,
            StructuredOutput::Tool | StructuredOutput::JsonObject | StructuredOutput::None => false,
        };
        match structured_output {
            _ if is_native => {
                output.push(("format", json!({ "type": "json_schema", "schema": value })));
            }
            StructuredOutput::Auto | StructuredOutput::Native | StructuredOutput::Tool => {
                let tool =
                    json!({ "name": name, "description": ABOUT_TOOL, "input_schema": value });
                body.push(("tools", json!([tool])));
                let choice = if settings.forced_tool {
                    json!({ "type": "tool", "name": name })
                } else {
                    system = with_instruction(&system, &schema.value);
                    json!({ "type": "auto" })
                };
                body.push(("tool_choice", choice));
            }
            StructuredOutput::JsonObject | StructuredOutput::None => {
                system = with_instruction(&system, &schema.value);
            }
        }
    }
    match settings.effort {
        Some(Effort::None) => body.push(("thinking", json!({ "type": "disabled" }))),
        Some(effort) => output.push(("effort", json!(effort))),
        None => {}
    }
    if !output.is_empty() {
        body.push(("output_config", output.into_iter().collect()));
    }
    if !system.is_empty() {
        let cache = json!({ "type": "ephemeral" });
        let block = json!({ "type": "text", "text": system, "cache_control": cache });
        body.push(("system", json!([block])));
    }
    body.extend(settings.temperature.map(|it| ("temperature", json!(it))));
    body.extend(stream.then(|| ("stream", json!(true))));
    body.into_iter().collect()
}

fn message(message: &Message) -> Value {
    let content = message.parts.iter().filter_map(|part| match part {
        // The API refuses empty text blocks.
        Part::Text(text) if text.is_empty() => None,
        Part::Text(text) => Some(json!({ "type": "text", "text": text })),
        Part::Image(image) => {
            let (media_type, data) = (&image.media_type, &image.base64);
            let source = json!({ "type": "base64", "media_type": media_type, "data": data });
            Some(json!({ "type": "image", "source": source }))
        }
    });
    json!({ "role": message.author.role(), "content": content.collect::<Vec<_>>() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Settings;
    use crate::llm::{Author, Image, Schema};

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
        assert_eq!(to_wire(&request, StructuredOutput::Auto, false), expected);
    }

    #[test]
    fn plain_text_asks_for_no_format() {
        let request = ChatRequest {
            schema: None,
            system: String::new(),
            ..ChatRequest::sample()
        };
        let expected = json!({
            "model": "m",
            "max_tokens": 900,
            "messages": [{"role": "user", "content": [{"type": "text", "text": "Six times seven?"}]}],
            "stream": true,
        });
        assert_eq!(to_wire(&request, StructuredOutput::Auto, true), expected);
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
            let body = to_wire(&request(settings), option, false);
            assert_eq!(body.pointer(at).unwrap_or(&Value::Null), &expected, "{at}");
        }
        for (settings, option) in [(not_forced, tool), (settings, StructuredOutput::None)] {
            let body = to_wire(&request(settings), option, false);
            let system = body["system"][0]["text"].as_str().unwrap();
            assert!(system.starts_with("You solve.\n\n"), "{system}");
            assert!(system.contains("\"answer\""), "{system}");
        }
    }
}

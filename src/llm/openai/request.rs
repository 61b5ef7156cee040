//! Converts a [`ChatRequest`] to a request of Chat Completions.

use serde_json::{Value, json};

use crate::domain::StructuredOutput;
use crate::llm::provider::ProviderSpec;
use crate::llm::schema_prompt::{ABOUT_TOOL, with_instruction};
use crate::llm::{ChatRequest, Message, Part};

/// The variant of the API that a provider supports.
#[derive(Debug, Clone, Copy)]
pub(super) struct Dialect {
    pub server: Server,
    pub structured_output: StructuredOutput,
    pub stream: bool,
}

/// The kind of server, as far as its form of Chat Completions differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Server {
    /// OpenAI and xAI. The limit is `max_completion_tokens`, which includes reasoning. Reasoning
    /// models refuse the older name.
    Vendor,
    /// OpenRouter. The request restricts the hosts to which it may route.
    OpenRouter,
    /// Any other server. It gets the older names.
    Compatible,
}

impl Dialect {
    pub fn of(spec: &ProviderSpec) -> Dialect {
        let server = match (spec.name.as_str(), spec.base_url.host_str()) {
            ("openrouter", _) | (_, Some("openrouter.ai")) => Server::OpenRouter,
            ("openai" | "xai", _) | (_, Some("api.openai.com" | "api.x.ai")) => Server::Vendor,
            _ => Server::Compatible,
        };
        Dialect {
            server,
            structured_output: spec.structured_output,
            stream: spec.stream,
        }
    }
}

/// Builds the body of the call. Pure.
pub(super) fn to_wire(request: &ChatRequest, dialect: Dialect) -> Value {
    let settings = request.settings;
    let mut body = vec![("model", json!(request.model))];
    let mut system = request.system.clone();
    if let Some(schema) = &request.schema {
        let (name, value) = (&schema.name, schema.value.for_vendor());
        match dialect.structured_output {
            StructuredOutput::Native | StructuredOutput::Auto if settings.structured_output => {
                let format = json!({ "name": name, "strict": true, "schema": value });
                let format = json!({ "type": "json_schema", "json_schema": format });
                body.push(("response_format", format));
            }
            StructuredOutput::Tool if settings.forced_tool => {
                let function = json!({ "name": name, "description": ABOUT_TOOL, "strict": true, "parameters": value });
                let choice = json!({ "type": "function", "function": { "name": name } });
                body.extend([
                    (
                        "tools",
                        json!([{ "type": "function", "function": function }]),
                    ),
                    ("tool_choice", choice),
                ]);
            }
            StructuredOutput::JsonObject => {
                system = with_instruction(&system, &schema.value);
                body.push(("response_format", json!({ "type": "json_object" })));
            }
            // GPT models since 5.6 accept tools only while they do not think, and some accept none.
            StructuredOutput::Auto
            | StructuredOutput::Native
            | StructuredOutput::Tool
            | StructuredOutput::None => system = with_instruction(&system, &schema.value),
        }
    }
    let system = (!system.is_empty()).then(|| json!({ "role": "system", "content": system }));
    let messages = request.messages.iter().map(message);
    body.push(("messages", system.into_iter().chain(messages).collect()));
    let limit = match dialect.server {
        Server::Compatible | Server::OpenRouter => "max_tokens",
        Server::Vendor => "max_completion_tokens",
    };
    body.push((limit, json!(request.max_tokens)));
    body.extend(settings.temperature.map(|it| ("temperature", json!(it))));
    body.extend(settings.effort.map(|it| ("reasoning_effort", json!(it))));
    if dialect.server == Server::OpenRouter {
        // Only hosts that support every parameter. Others silently ignore the schema.
        body.push(("provider", json!({ "require_parameters": true })));
    }
    if dialect.stream {
        body.push(("stream", json!(true)));
        // Without this option a stream reports no usage, and the call would be settled at its
        // reservation.
        body.push(("stream_options", json!({ "include_usage": true })));
    }
    body.into_iter().collect()
}

fn message(message: &Message) -> Value {
    let text = |part: &Part| match part {
        Part::Text(text) => Some(text.clone()),
        Part::Image(_) => None,
    };
    // Plain text is sent as a string, because some compatible servers do not accept parts.
    let texts: Option<Vec<String>> = message.parts.iter().map(text).collect();
    let content = match texts {
        Some(texts) => json!(texts.join("\n\n")),
        None => message.parts.iter().map(part).collect(),
    };
    json!({ "role": message.author.role(), "content": content })
}

fn part(part: &Part) -> Value {
    match part {
        Part::Text(text) => json!({ "type": "text", "text": text }),
        Part::Image(image) => {
            let url = format!("data:{};base64,{}", image.media_type, image.base64);
            json!({ "type": "image_url", "image_url": { "url": url } })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Effort, Settings};
    use crate::llm::{Author, Image, Schema};

    const STRICT: Dialect = Dialect {
        structured_output: StructuredOutput::Auto,
        server: Server::Vendor,
        stream: false,
    };

    fn request(settings: Settings) -> ChatRequest {
        let said = |author, parts| Message { author, parts };
        let image = Image {
            media_type: "image/webp".into(),
            base64: "aGk=".into(),
        };
        let asked = json!({"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]});
        ChatRequest {
            messages: vec![
                said(Author::User, vec![Part::Text("What is this?".into())]),
                said(Author::Assistant, vec![Part::Text("A picture?".into())]),
                said(
                    Author::User,
                    vec![Part::Text("Yes:".into()), Part::Image(image)],
                ),
            ],
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
            "properties": {"answer": {"type": "string"}},
            "required": ["answer"],
            "additionalProperties": false,
        })
    }

    #[test]
    fn openai_gets_a_strict_schema() {
        let expected = json!({
            "model": "m",
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "solution", "strict": true, "schema": schema()},
            },
            "messages": [
                {"role": "system", "content": "You solve."},
                {"role": "user", "content": "What is this?"},
                {"role": "assistant", "content": "A picture?"},
                {"role": "user", "content": [
                    {"type": "text", "text": "Yes:"},
                    {"type": "image_url", "image_url": {"url": "data:image/webp;base64,aGk="}},
                ]},
            ],
            "max_completion_tokens": 900,
        });
        assert_eq!(to_wire(&request(Settings::default()), STRICT), expected);
    }

    #[test]
    fn settings_and_dialect_decide_what_is_sent() {
        let settings = Settings::default();
        let warm = Settings {
            temperature: Some(0.5),
            ..settings
        };
        let unthinking = Settings {
            effort: Some(Effort::None),
            ..settings
        };
        let not_forced = Settings {
            forced_tool: false,
            ..settings
        };
        let server = |server| Dialect { server, ..STRICT };
        let (compatible, router) = (server(Server::Compatible), server(Server::OpenRouter));
        let form = |structured_output| Dialect {
            structured_output,
            ..STRICT
        };
        let (tool, object) = (
            form(StructuredOutput::Tool),
            form(StructuredOutput::JsonObject),
        );
        let cases = [
            (warm, compatible, "/max_tokens", json!(900)),
            (warm, compatible, "/max_completion_tokens", Value::Null),
            (warm, compatible, "/temperature", json!(0.5)),
            (unthinking, STRICT, "/reasoning_effort", json!("none")),
            (unthinking, router, "/reasoning_effort", json!("none")),
            (
                unthinking,
                router,
                "/provider/require_parameters",
                json!(true),
            ),
            (unthinking, router, "/max_tokens", json!(900)),
            (settings, tool, "/tools/0/function/parameters", schema()),
            (
                settings,
                tool,
                "/tool_choice/function/name",
                json!("solution"),
            ),
            (not_forced, tool, "/tools", Value::Null),
            (
                settings,
                object,
                "/response_format",
                json!({"type": "json_object"}),
            ),
        ];
        for (settings, dialect, at, expected) in cases {
            let body = to_wire(&request(settings), dialect);
            assert_eq!(body.pointer(at).unwrap_or(&Value::Null), &expected, "{at}");
        }
        let none = form(StructuredOutput::None);
        for (settings, dialect) in [(not_forced, tool), (settings, object), (settings, none)] {
            let body = to_wire(&request(settings), dialect);
            let system = body["messages"][0]["content"].as_str().unwrap();
            assert!(
                system.starts_with("You solve.\n\n") && system.contains("JSON"),
                "{system}"
            );
        }
        let text = ChatRequest {
            schema: None,
            ..request(settings)
        };
        assert_eq!(to_wire(&text, STRICT).get("response_format"), None);
    }
}

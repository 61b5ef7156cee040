//! Converts a [`ChatRequest`] to a request of Chat Completions.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::value::RawValue;

use super::unsupported::Unsupported;
use crate::domain::{Effort, StructuredOutput};
use crate::llm::provider::ProviderSpec;
use crate::llm::schema_prompt::{ABOUT_TOOL, with_instruction};
use crate::llm::system_text::WireText;
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

/// The body of a call. It borrows the texts and the finished schema from the request.
#[derive(Debug, Serialize)]
pub(super) struct Body<'a> {
    model: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<ResponseFormat<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<[Tool<'a>; 1]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Tool<'a>>,
    messages: Vec<Turn<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<Effort>,
    #[serde(skip_serializing_if = "Option::is_none")]
    provider: Option<Routing>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ResponseFormat<'a> {
    JsonSchema { json_schema: NamedSchema<'a> },
    JsonObject,
}

#[derive(Debug, Serialize)]
struct NamedSchema<'a> {
    name: &'a str,
    strict: bool,
    schema: &'a RawValue,
}

/// A tool, or the choice of one.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Tool<'a> {
    Function { function: Function<'a> },
}

#[derive(Debug, Clone, Copy, Serialize)]
struct Function<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    strict: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters: Option<&'a RawValue>,
}

#[derive(Debug, Serialize)]
struct Turn<'a> {
    role: &'static str,
    content: Content<'a>,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Text(WireText<'a>),
    Parts(Vec<Piece<'a>>),
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Piece<'a> {
    Text { text: &'a str },
    ImageUrl { image_url: ImageUrl },
}

#[derive(Debug, Serialize)]
struct ImageUrl {
    url: String,
}

#[derive(Debug, Serialize)]
struct Routing {
    require_parameters: bool,
}

#[derive(Debug, Serialize)]
struct StreamOptions {
    include_usage: bool,
}

/// Where the body has the schema.
#[derive(Default)]
struct Structure<'a> {
    response_format: Option<ResponseFormat<'a>>,
    tools: Option<[Tool<'a>; 1]>,
    tool_choice: Option<Tool<'a>>,
    /// The system text, if it states the schema.
    system: Option<String>,
}

fn structure(request: &ChatRequest, dialect: Dialect) -> Structure<'_> {
    let settings = request.settings;
    let Some(schema) = &request.schema else {
        return Structure::default();
    };
    let (name, text) = (schema.name.as_str(), schema.value.for_vendor());
    match dialect.structured_output {
        StructuredOutput::Native | StructuredOutput::Auto if settings.structured_output => {
            let json_schema = NamedSchema {
                name,
                strict: true,
                schema: text,
            };
            Structure {
                response_format: Some(ResponseFormat::JsonSchema { json_schema }),
                ..Structure::default()
            }
        }
        StructuredOutput::Tool if settings.forced_tool => {
            let chosen = Function {
                name,
                description: None,
                strict: None,
                parameters: None,
            };
            let offered = Function {
                description: Some(ABOUT_TOOL),
                strict: Some(true),
                parameters: Some(text),
                ..chosen
            };
            Structure {
                tools: Some([Tool::Function { function: offered }]),
                tool_choice: Some(Tool::Function { function: chosen }),
                ..Structure::default()
            }
        }
        // GPT models since 5.6 accept tools only while they do not think, and some accept none.
        StructuredOutput::Auto
        | StructuredOutput::Native
        | StructuredOutput::Tool
        | StructuredOutput::JsonObject
        | StructuredOutput::None => Structure {
            response_format: (dialect.structured_output == StructuredOutput::JsonObject)
                .then_some(ResponseFormat::JsonObject),
            system: Some(with_instruction(&request.system, &schema.value)),
            ..Structure::default()
        },
    }
}

/// Builds the body of the call. Pure.
pub(super) fn to_wire(request: &ChatRequest, mut dialect: Dialect, not: Unsupported) -> Body<'_> {
    if not.schema {
        dialect.structured_output = StructuredOutput::None;
    }
    let settings = request.settings;
    let Structure {
        response_format,
        tools,
        tool_choice,
        system,
    } = structure(request, dialect);
    let system = WireText::of(&request.system, system).map(|text| Turn {
        role: "system",
        content: Content::Text(text),
    });
    let has_new_name = (dialect.server == Server::Vendor) != not.limit_name;
    let (max_tokens, max_completion_tokens) = match has_new_name {
        false => (Some(request.max_tokens), None),
        true => (None, Some(request.max_tokens)),
    };
    Body {
        model: &request.model,
        response_format,
        tools,
        tool_choice,
        messages: system
            .into_iter()
            .chain(request.messages.iter().map(turn))
            .collect(),
        max_tokens,
        max_completion_tokens,
        temperature: settings.temperature.filter(|_| !not.temperature),
        reasoning_effort: settings.effort.filter(|_| !not.effort),
        // Only hosts that support every parameter. Others silently ignore the schema.
        provider: (dialect.server == Server::OpenRouter).then_some(Routing {
            require_parameters: true,
        }),
        stream: dialect.stream.then_some(true),
        // Without this option a stream reports no usage, and the call would be settled at its
        // reservation.
        stream_options: (dialect.stream && !not.stream_usage).then_some(StreamOptions {
            include_usage: true,
        }),
    }
}

fn turn(message: &Message) -> Turn<'_> {
    let texts = message.parts.iter().map(|part| match part {
        Part::Text(text) => Some(text.as_str()),
        Part::Image(_) => None,
    });
    // Plain text is sent as a string, because some compatible servers do not accept parts.
    let texts: Option<Vec<&str>> = texts.collect();
    let content = match texts.as_deref() {
        Some([only]) => Content::Text(WireText::Text(Cow::Borrowed(only))),
        Some(texts) => Content::Text(WireText::Text(texts.join("\n\n").into())),
        None => Content::Parts(message.parts.iter().map(piece).collect()),
    };
    Turn {
        role: message.author.role(),
        content,
    }
}

fn piece(part: &Part) -> Piece<'_> {
    match part {
        Part::Text(text) => Piece::Text { text },
        Part::Image(image) => Piece::ImageUrl {
            image_url: ImageUrl {
                url: format!("data:{};base64,{}", image.media_type, image.base64),
            },
        },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::domain::Settings;
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

    fn sent(request: &ChatRequest, dialect: Dialect) -> Value {
        serde_json::to_value(to_wire(request, dialect, Unsupported::default())).unwrap()
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
        assert_eq!(sent(&request(Settings::default()), STRICT), expected);
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
            let body = sent(&request(settings), dialect);
            assert_eq!(body.pointer(at).unwrap_or(&Value::Null), &expected, "{at}");
        }
        let none = form(StructuredOutput::None);
        for (settings, dialect) in [(not_forced, tool), (settings, object), (settings, none)] {
            let body = sent(&request(settings), dialect);
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
        assert_eq!(sent(&text, STRICT).get("response_format"), None);
    }
}

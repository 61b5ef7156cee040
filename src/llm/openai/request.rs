//! Converts a [`ChatRequest`] to a request of Chat Completions.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use url::Url;

use super::unsupported::{Parameter, Unsupported};
use crate::domain::{Effort, Provider, StructuredOutput};
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
    pub fn of(provider: &Provider) -> Dialect {
        let host = provider.base_url.as_ref().and_then(Url::host_str);
        let server = match (provider.name.as_str(), host) {
            ("openrouter", _) | (_, Some("openrouter.ai")) => Server::OpenRouter,
            ("openai" | "xai", _) | (_, Some("api.openai.com" | "api.x.ai")) => Server::Vendor,
            _ => Server::Compatible,
        };
        Dialect {
            server,
            structured_output: provider.structured_output,
            stream: provider.stream,
        }
    }
}

/// The body of a call. It borrows the texts and the finished schema from the request.
#[derive(Debug, Default, Serialize)]
pub(super) struct Body<'a> {
    model: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<ResponseFormat<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<[Tool<'a>; 1]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Value>,
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
    provider: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<Value>,
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

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Tool<'a> {
    Function { function: Function<'a> },
}

#[derive(Debug, Serialize)]
struct Function<'a> {
    name: &'a str,
    description: &'static str,
    strict: bool,
    parameters: &'a RawValue,
}

#[derive(Debug, Serialize)]
struct Turn<'a> {
    role: &'static str,
    content: Content<'a>,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Text(Cow<'a, str>),
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

/// Builds the body of the call. Pure.
pub(super) fn to_wire<'a>(
    request: &'a ChatRequest,
    dialect: Dialect,
    unsupported: &Unsupported,
) -> Body<'a> {
    let settings = request.settings;
    let takes = |parameter| !unsupported.contains(&parameter);
    let limit = Some(request.max_tokens);
    let has_new_name = (dialect.server == Server::Vendor) == takes(Parameter::LimitName);
    let mut body = Body {
        model: &request.model,
        max_tokens: limit.filter(|_| !has_new_name),
        max_completion_tokens: limit.filter(|_| has_new_name),
        temperature: settings
            .temperature
            .filter(|_| takes(Parameter::Temperature)),
        reasoning_effort: settings.effort.filter(|_| takes(Parameter::Effort)),
        // Only hosts that support every parameter. Others silently ignore the schema.
        provider: (dialect.server == Server::OpenRouter)
            .then(|| json!({ "require_parameters": true })),
        stream: dialect.stream.then_some(true),
        // Without this option a stream reports no usage, and the call would be settled at its
        // reservation.
        stream_options: (dialect.stream && takes(Parameter::StreamUsage))
            .then(|| json!({ "include_usage": true })),
        ..Body::default()
    };
    let form = if takes(Parameter::Schema) {
        dialect.structured_output
    } else {
        StructuredOutput::None
    };
    let instructed = constrain(&mut body, request, form);
    let system = request.system.or(instructed).map(|text| Turn {
        role: "system",
        content: Content::Text(text),
    });
    body.messages.extend(system);
    body.messages.extend(request.messages.iter().map(turn));
    body
}

/// Asks for the schema of the request. Returns the system text if the schema stands there, because
/// the model or the form takes none otherwise.
fn constrain<'a>(
    body: &mut Body<'a>,
    request: &'a ChatRequest,
    form: StructuredOutput,
) -> Option<String> {
    let (schema, settings) = (request.schema.as_ref()?, request.settings);
    let (name, text) = (schema.name.as_str(), schema.value.for_vendor());
    match form {
        StructuredOutput::Native | StructuredOutput::Auto if settings.structured_output => {
            body.response_format = Some(ResponseFormat::JsonSchema {
                json_schema: NamedSchema {
                    name,
                    strict: true,
                    schema: text,
                },
            });
            None
        }
        StructuredOutput::Tool if settings.forced_tool => {
            let function = Function {
                name,
                description: ABOUT_TOOL,
                strict: true,
                parameters: text,
            };
            body.tools = Some([Tool::Function { function }]);
            body.tool_choice = Some(json!({ "type": "function", "function": { "name": name } }));
            None
        }
        // GPT models since 5.6 accept tools only while they do not think, and some accept none.
        StructuredOutput::Auto
        | StructuredOutput::Native
        | StructuredOutput::Tool
        | StructuredOutput::JsonObject
        | StructuredOutput::None => {
            body.response_format =
                (form == StructuredOutput::JsonObject).then_some(ResponseFormat::JsonObject);
            Some(with_instruction(&request.system, &schema.value))
        }
    }
}

fn turn(message: &Message) -> Turn<'_> {
    let texts = message.parts.iter().map(|part| match part {
        Part::Text(text) => Some(&**text),
        Part::Image(_) => None,
    });
    // Plain text is sent as a string, because some compatible servers do not accept parts.
    let texts: Option<Vec<&str>> = texts.collect();
    let content = match texts.as_deref() {
        Some([only]) => Content::Text(Cow::Borrowed(only)),
        Some(texts) => Content::Text(texts.join("\n\n").into()),
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
        serde_json::to_value(to_wire(request, dialect, &Unsupported::default())).unwrap()
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

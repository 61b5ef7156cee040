//! Converts a [`ChatRequest`] to a request of Chat Completions.

use super::wire::{
    Content, Function, FunctionName, ImageUrl, JsonSchema, Message, Part, Request, ResponseFormat,
    Routing, StreamOptions, Tool, ToolChoice,
};
use crate::domain::StructuredOutput;
use crate::llm::provider::ProviderSpec;
use crate::llm::schema_prompt::with_instruction;
use crate::llm::{self, Author, ChatRequest};

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

/// How the schema of the reply is asked for.
struct Form<'a> {
    system: String,
    response_format: Option<ResponseFormat<'a>>,
    tools: Vec<Tool<'a>>,
    tool_choice: Option<ToolChoice<'a>>,
}

fn form(request: &ChatRequest, dialect: Dialect) -> Form<'_> {
    let mut form = Form {
        system: request.system.clone(),
        response_format: None,
        tools: vec![],
        tool_choice: None,
    };
    let Some(schema) = &request.schema else {
        return form;
    };
    let (name, settings) = (schema.name.as_str(), request.settings);
    match dialect.structured_output {
        StructuredOutput::Native | StructuredOutput::Auto if settings.structured_output => {
            let json_schema = JsonSchema {
                name,
                strict: true,
                schema: schema.value.for_vendor(),
            };
            form.response_format = Some(ResponseFormat::JsonSchema { json_schema });
        }
        StructuredOutput::Tool if settings.forced_tool => {
            form.tools.push(Tool::Function {
                function: Function {
                    name,
                    description: "Gives the reply. Call it exactly once, with the whole reply.",
                    strict: true,
                    parameters: schema.value.for_vendor(),
                },
            });
            let function = FunctionName { name };
            form.tool_choice = Some(ToolChoice::Function { function });
        }
        StructuredOutput::JsonObject => {
            form.system = with_instruction(&form.system, &schema.value);
            form.response_format = Some(ResponseFormat::JsonObject);
        }
        // GPT models since 5.6 accept tools only while they do not think, and some accept none.
        StructuredOutput::Auto
        | StructuredOutput::Native
        | StructuredOutput::Tool
        | StructuredOutput::None => {
            form.system = with_instruction(&form.system, &schema.value);
        }
    }
    form
}

/// Builds the body of the call. Pure.
pub(super) fn to_wire(request: &ChatRequest, dialect: Dialect) -> Request<'_> {
    let settings = request.settings;
    let form = form(request, dialect);
    let (max_tokens, max_completion_tokens) = match dialect.server {
        Server::Compatible | Server::OpenRouter => (Some(request.max_tokens), None),
        Server::Vendor => (None, Some(request.max_tokens)),
    };
    let system = (!form.system.is_empty()).then_some(Message {
        role: "system",
        content: Content::Text(form.system),
    });
    Request {
        model: &request.model,
        messages: system
            .into_iter()
            .chain(request.messages.iter().map(message))
            .collect(),
        max_tokens,
        max_completion_tokens,
        temperature: settings.temperature,
        reasoning_effort: settings.effort,
        provider: (dialect.server == Server::OpenRouter).then_some(Routing {
            require_parameters: true,
        }),
        response_format: form.response_format,
        tools: form.tools,
        tool_choice: form.tool_choice,
        stream: dialect.stream.then_some(true),
        stream_options: dialect.stream.then_some(StreamOptions {
            include_usage: true,
        }),
    }
}

fn message(message: &llm::Message) -> Message<'_> {
    let role = match message.author {
        Author::User => "user",
        Author::Assistant => "assistant",
    };
    let texts: Option<Vec<&str>> = message
        .parts
        .iter()
        .map(|part| match part {
            llm::Part::Text(text) => Some(text.as_str()),
            llm::Part::Image(_) => None,
        })
        .collect();
    let content = match texts {
        Some(texts) => Content::Text(texts.join("\n\n")),
        None => Content::Parts(message.parts.iter().map(part).collect()),
    };
    Message { role, content }
}

fn part(part: &llm::Part) -> Part<'_> {
    match part {
        llm::Part::Text(text) => Part::Text { text },
        llm::Part::Image(image) => {
            let url = format!("data:{};base64,{}", image.media_type, image.base64);
            Part::ImageUrl {
                image_url: ImageUrl { url },
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::domain::{Effort, Settings};

    const STRICT: Dialect = Dialect {
        structured_output: StructuredOutput::Auto,
        server: Server::Vendor,
        stream: false,
    };

    fn request() -> ChatRequest {
        ChatRequest {
            model: "gpt-6-luna".into(),
            messages: vec![
                llm::Message {
                    author: Author::User,
                    parts: vec![llm::Part::Text("What is this?".into())],
                },
                llm::Message {
                    author: Author::Assistant,
                    parts: vec![llm::Part::Text("A picture?".into())],
                },
                llm::Message {
                    author: Author::User,
                    parts: vec![
                        llm::Part::Text("Yes:".into()),
                        llm::Part::Image(llm::Image {
                            media_type: "image/webp".into(),
                            base64: "aGk=".into(),
                        }),
                    ],
                },
            ],
            schema: Some(llm::Schema {
                name: "solution".into(),
                value: conclave_lenient_json::Schema::new(json!({"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]})).into(),
            }),
            ..ChatRequest::sample()
        }
    }

    fn sent(request: &ChatRequest, dialect: Dialect) -> Value {
        serde_json::from_slice(&serde_json::to_vec(&to_wire(request, dialect)).unwrap()).unwrap()
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
        assert_eq!(
            sent(&request(), STRICT),
            json!({
                "model": "gpt-6-luna",
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
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "solution", "strict": true, "schema": schema()},
                },
            })
        );
    }

    #[test]
    fn other_servers_get_the_older_names() {
        let dialect = Dialect {
            server: Server::Compatible,
            ..STRICT
        };
        let settings = Settings {
            temperature: Some(0.7),
            ..Settings::default()
        };
        let request = ChatRequest {
            schema: None,
            settings,
            ..request()
        };
        let body = sent(&request, dialect);
        assert_eq!(
            (
                &body["max_tokens"],
                &body["max_completion_tokens"],
                &body["temperature"]
            ),
            (&json!(900), &Value::Null, &json!(0.7))
        );
        assert_eq!(body.get("response_format"), None);
    }

    #[test]
    fn a_server_with_tools_only_is_made_to_call_one() {
        let body = sent(
            &request(),
            Dialect {
                structured_output: StructuredOutput::Tool,
                ..STRICT
            },
        );
        assert_eq!(body["tools"][0]["function"]["parameters"], schema());
        assert_eq!(
            body["tool_choice"],
            json!({"type": "function", "function": {"name": "solution"}})
        );
    }

    #[test]
    fn the_effort_is_sent_to_each_server() {
        let settings = Settings {
            effort: Some(Effort::None),
            ..Settings::default()
        };
        let request = ChatRequest {
            settings,
            schema: None,
            ..request()
        };
        let body = |server| sent(&request, Dialect { server, ..STRICT });
        assert_eq!(body(Server::Vendor)["reasoning_effort"], "none");
        let routed = body(Server::OpenRouter);
        assert_eq!(
            (
                &routed["reasoning_effort"],
                &routed["provider"],
                &routed["max_tokens"]
            ),
            (
                &json!("none"),
                &json!({"require_parameters": true}),
                &json!(900)
            )
        );
    }

    #[test]
    fn a_tool_that_must_not_be_forced_gives_way_to_the_prompt() {
        let settings = Settings {
            forced_tool: false,
            ..Settings::default()
        };
        let request = ChatRequest {
            settings,
            ..request()
        };
        let body = sent(
            &request,
            Dialect {
                structured_output: StructuredOutput::Tool,
                ..STRICT
            },
        );
        assert_eq!(body.get("tools"), None);
        assert!(
            body["messages"][0]["content"]
                .as_str()
                .unwrap()
                .contains("JSON")
        );
    }

    #[test]
    fn json_mode_and_no_mode_carry_the_schema_in_the_prompt() {
        let object = sent(
            &request(),
            Dialect {
                structured_output: StructuredOutput::JsonObject,
                ..STRICT
            },
        );
        assert_eq!(object["response_format"], json!({"type": "json_object"}));
        let none = sent(
            &request(),
            Dialect {
                structured_output: StructuredOutput::None,
                ..STRICT
            },
        );
        assert_eq!(none.get("response_format"), None);
        for body in [object, none] {
            let system = body["messages"][0]["content"].as_str().unwrap();
            assert!(
                system.starts_with("You solve.\n\n") && system.contains("JSON"),
                "{system}"
            );
        }
    }
}

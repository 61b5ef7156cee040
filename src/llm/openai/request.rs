//! From a [`ChatRequest`] to Chat Completions.

use super::wire::{
    Content, Function, FunctionName, ImageUrl, JsonSchema, Message, Part, Request, ResponseFormat, StreamOptions, Tool,
    ToolChoice,
};
use crate::llm::registry::{ProviderSpec, Seeding, StructuredOutput};
use crate::llm::{self, Author, ChatRequest, strict};

/// How one server differs from the next.
#[derive(Debug, Clone, Copy)]
pub(super) struct Dialect {
    pub structured_output: StructuredOutput,
    pub seeding: Seeding,
    pub limit: Limit,
    pub stream: bool,
}

/// The name of the field that bounds the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Limit {
    /// What everybody but the inventor still speaks.
    MaxTokens,
    /// OpenAI's reasoning models refuse the older name.
    MaxCompletionTokens,
}

impl Dialect {
    pub fn of(spec: &ProviderSpec) -> Dialect {
        let limit = match spec.base_url.host_str() {
            Some("api.openai.com") => Limit::MaxCompletionTokens,
            _ => Limit::MaxTokens,
        };
        Dialect { structured_output: spec.structured_output, seeding: spec.seeding, limit, stream: spec.stream }
    }
}

/// The body of the call; pure.
pub(super) fn to_wire(request: &ChatRequest, dialect: Dialect) -> Request<'_> {
    let mut system = request.system.clone();
    let (mut response_format, mut tools, mut tool_choice) = (None, vec![], None);
    if let Some(schema) = &request.schema {
        let name = schema.name.as_str();
        match dialect.structured_output {
            StructuredOutput::Auto | StructuredOutput::JsonSchema => {
                let json_schema = JsonSchema { name, strict: true, schema: strict::for_vendor(&schema.value) };
                response_format = Some(ResponseFormat::JsonSchema { json_schema });
            }
            StructuredOutput::Tool => {
                let description = "Gives the reply. Call it exactly once, with the whole reply.";
                let parameters = strict::for_vendor(&schema.value);
                tools.push(Tool::Function { function: Function { name, description, strict: true, parameters } });
                tool_choice = Some(ToolChoice::Function { function: FunctionName { name } });
            }
            StructuredOutput::JsonObject => {
                system = strict::with_instruction(&system, &schema.value);
                response_format = Some(ResponseFormat::JsonObject);
            }
            StructuredOutput::None => system = strict::with_instruction(&system, &schema.value),
        }
    }
    let (max_tokens, max_completion_tokens) = match dialect.limit {
        Limit::MaxTokens => (Some(request.max_tokens), None),
        Limit::MaxCompletionTokens => (None, Some(request.max_tokens)),
    };
    let system = (!system.is_empty()).then_some(Message { role: "system", content: Content::Text(system) });
    Request {
        model: &request.model,
        messages: system.into_iter().chain(request.messages.iter().map(message)).collect(),
        max_tokens,
        max_completion_tokens,
        temperature: request.temperature,
        seed: match dialect.seeding {
            Seeding::Send => Some(request.seed),
            Seeding::Omit => None,
        },
        response_format,
        tools,
        tool_choice,
        stream: dialect.stream.then_some(true),
        stream_options: dialect.stream.then_some(StreamOptions { include_usage: true }),
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
            Part::ImageUrl { image_url: ImageUrl { url } }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::{Value, json};

    use super::*;

    const STRICT: Dialect = Dialect {
        structured_output: StructuredOutput::Auto,
        seeding: Seeding::Omit,
        limit: Limit::MaxCompletionTokens,
        stream: false,
    };

    fn request() -> ChatRequest {
        ChatRequest {
            key: "run/solver/1".into(),
            model: "gpt-5-mini".into(),
            system: "You solve.".into(),
            messages: vec![
                llm::Message { author: Author::User, parts: vec![llm::Part::Text("What is this?".into())] },
                llm::Message { author: Author::Assistant, parts: vec![llm::Part::Text("A picture?".into())] },
                llm::Message {
                    author: Author::User,
                    parts: vec![
                        llm::Part::Text("Yes:".into()),
                        llm::Part::Image(llm::Image { media_type: "image/webp".into(), base64: "aGk=".into() }),
                    ],
                },
            ],
            schema: Some(llm::Schema {
                name: "solution".into(),
                value: json!({"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]}),
            }),
            max_tokens: 900,
            temperature: None,
            seed: 7,
            timeout: Duration::from_secs(60),
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
                "model": "gpt-5-mini",
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
    fn other_servers_get_the_older_names_and_a_seed_when_asked_for() {
        let dialect = Dialect { limit: Limit::MaxTokens, seeding: Seeding::Send, ..STRICT };
        let request = ChatRequest { schema: None, temperature: Some(0.7), ..request() };
        let body = sent(&request, dialect);
        assert_eq!(
            (&body["max_tokens"], &body["max_completion_tokens"], &body["seed"], &body["temperature"]),
            (&json!(900), &Value::Null, &json!(7), &json!(0.7))
        );
        assert_eq!(body.get("response_format"), None);
    }

    #[test]
    fn a_server_with_tools_only_is_made_to_call_one() {
        let body = sent(&request(), Dialect { structured_output: StructuredOutput::Tool, ..STRICT });
        assert_eq!(body["tools"][0]["function"]["parameters"], schema());
        assert_eq!(body["tool_choice"], json!({"type": "function", "function": {"name": "solution"}}));
    }

    #[test]
    fn json_mode_and_no_mode_carry_the_schema_in_the_prompt() {
        let object = sent(&request(), Dialect { structured_output: StructuredOutput::JsonObject, ..STRICT });
        assert_eq!(object["response_format"], json!({"type": "json_object"}));
        let none = sent(&request(), Dialect { structured_output: StructuredOutput::None, ..STRICT });
        assert_eq!(none.get("response_format"), None);
        for body in [object, none] {
            let system = body["messages"][0]["content"].as_str().unwrap();
            assert!(system.starts_with("You solve.\n\n") && system.contains("JSON"), "{system}");
        }
    }
}

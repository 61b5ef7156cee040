//! Converts answers of the Messages API to [`ChatReply`].

use serde::Deserialize;
use serde_json::{Value, json};

use crate::domain::BilledTokens;
use crate::llm::error_body;
use crate::llm::wire_json::or_default;
use crate::llm::{CallStop, ChatReply, ErrorKind, Fault, usage};

/// An answer of the API, with only the fields that are used.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Response {
    #[serde(default, deserialize_with = "or_default")]
    pub model: Option<String>,
    pub content: Option<Vec<Content>>,
    #[serde(default, deserialize_with = "or_default")]
    pub stop_reason: Option<String>,
    #[serde(default)]
    pub usage: Value,
    /// The error of a stream, or of a gateway that reports it with status 200.
    #[serde(default)]
    pub error: Value,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Content {
    Text {
        #[serde(default)]
        text: String,
    },
    ToolUse {
        #[serde(default)]
        input: Value,
    },
    /// Thinking, and block types that are not known yet.
    #[serde(other)]
    Other,
}

/// Converts an answer. Pure.
///
/// # Errors
/// A status 200 without a reply: the provider's error, if it says one.
pub(super) fn from_wire(response: Response) -> Result<ChatReply, Fault> {
    let Some(content) = response.content else {
        let status = status_of(&response.error);
        let wrapped = json!({ "error": response.error });
        let fault = error_body::from_body(status, &wrapped);
        return Err(
            fault.unwrap_or_else(|| (ErrorKind::Unreadable, "no content in the reply".into()))
        );
    };
    let (mut text, mut input) = (String::new(), None);
    for block in content {
        match block {
            Content::Text { text: more } => text.push_str(&more),
            // The input of a stream that was cut off is not valid JSON. It is kept as text.
            Content::ToolUse {
                input: Value::String(cut),
            } => input = input.or(Some(cut)),
            Content::ToolUse { input: value } => input = input.or_else(|| Some(value.to_string())),
            Content::Other => {}
        }
    }
    let text = input.unwrap_or(text);
    let is_blank = text.trim().is_empty();
    Ok(ChatReply {
        text,
        stop: match response.stop_reason.as_deref() {
            Some("end_turn" | "stop_sequence" | "tool_use") => CallStop::End,
            // With a larger limit the context would be as full.
            Some("model_context_window_exceeded") if is_blank => CallStop::Other,
            Some("max_tokens" | "model_context_window_exceeded") => CallStop::MaxTokens,
            Some("refusal") => CallStop::Refusal,
            _ => CallStop::Other,
        },
        usage: read_usage(&response.usage),
        stated_cost: None,
        model: response.model,
    })
}

/// Returns the HTTP status that the API gives an error of this type, or the code of a gateway.
fn status_of(error: &Value) -> u16 {
    let code = error.get("code").and_then(Value::as_u64);
    match error.get("type").and_then(Value::as_str) {
        Some("invalid_request_error") => 400,
        Some("authentication_error") => 401,
        Some("billing_error") => 402,
        Some("permission_error") => 403,
        Some("not_found_error") => 404,
        Some("request_too_large") => 413,
        Some("rate_limit_error") => 429,
        Some("api_error") => 500,
        Some("timeout_error") => 504,
        Some("overloaded_error") => 529,
        _ => error_body::status_of(code),
    }
}

/// Parses usage. `input_tokens` excludes cache reads and writes, as in [`BilledTokens`].
fn read_usage(value: &Value) -> Option<BilledTokens> {
    Some(BilledTokens {
        input: usage::required(value, "input_tokens")?,
        cache_read: usage::optional(value, "cache_read_input_tokens")?,
        cache_write: usage::optional(value, "cache_creation_input_tokens")?,
        output: usage::required(value, "output_tokens")?,
        thinking: usage::detail(value, "output_tokens_details", "thinking_tokens")?,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::llm::Error;

    fn read(cassette: &str) -> ChatReply {
        let path = format!("tests/cassettes/anthropic_{cassette}.json");
        let text = std::fs::read_to_string(path).unwrap();
        from_wire(serde_json::from_str(&text).unwrap()).unwrap()
    }

    #[test]
    fn a_structured_reply_is_its_text() {
        let expected = ChatReply {
            text: r#"{"answer":"42","confidence":0.7}"#.into(),
            stop: CallStop::End,
            usage: Some(BilledTokens {
                input: 412,
                cache_read: 1536,
                cache_write: 0,
                output: 57,
                thinking: 21,
            }),
            stated_cost: None,
            model: Some("claude-sonnet-5-5".into()),
        };
        assert_eq!(read("structured"), expected);
    }

    #[test]
    fn tools_thinking_refusals_and_cuts_are_told_apart() {
        let whole = r#"{"answer":"42","confidence":0.7}"#;
        let cut = r#"{"answer":"The first of the"#;
        for (cassette, text, stop) in [
            ("tool_use", whole, CallStop::End),
            ("thought_away", "", CallStop::MaxTokens),
            ("refusal", "", CallStop::Refusal),
            ("max_tokens", cut, CallStop::MaxTokens),
        ] {
            let reply = read(cassette);
            assert_eq!(
                (reply.text.as_str(), reply.stop),
                (text, stop),
                "{cassette}"
            );
        }
        let usage = |cassette| read(cassette).usage.unwrap();
        assert_eq!(usage("tool_use").cache_write, 2051);
        let thought = usage("thought_away");
        assert_eq!((thought.output, thought.thinking), (1000, 1000));
    }

    #[test]
    fn an_error_inside_a_200_has_the_status_of_its_type() {
        for (error, expected, billed) in [
            (
                json!({"type": "overloaded_error", "message": "m"}),
                529,
                false,
            ),
            (
                json!({"type": "rate_limit_error", "message": "m"}),
                429,
                false,
            ),
            (json!({"type": "timeout_error", "message": "m"}), 504, true),
            (json!({"code": 502, "message": "m"}), 502, false),
            (json!({"code": 200, "message": "m"}), 502, false),
        ] {
            let body = json!({"type": "error", "error": error});
            let fault = from_wire(serde_json::from_value(body).unwrap());
            let (kind, detail) = fault.unwrap_err();
            let error = Error::new("p", kind, detail);
            let is_status =
                matches!(error.kind, ErrorKind::Status { status, .. } if status == expected);
            assert!(is_status && error.may_be_billed() == billed, "{error:?}");
            assert!(error.said().is_some_and(|said| said.ends_with('m')));
        }
        let empty = from_wire(serde_json::from_str("{}").unwrap());
        assert_eq!(empty.unwrap_err().0, ErrorKind::Unreadable);
    }

    #[test]
    fn usage_that_makes_no_sense_is_unknown_not_zero() {
        for usage in [
            json!(null),
            json!({}),
            json!({"input_tokens": -1, "output_tokens": 2}),
            json!({"input_tokens": 1.5, "output_tokens": 2}),
            json!({"input_tokens": "7", "output_tokens": 2}),
            json!({"input_tokens": 7}),
            json!({"input_tokens": 7, "output_tokens": 2, "cache_read_input_tokens": -3}),
        ] {
            assert_eq!(read_usage(&usage), None, "{usage}");
        }
        for (output, billed) in [(json!(1e30), 1_000_000_000), (json!(2), 2)] {
            let bare = json!({"input_tokens": 7, "output_tokens": output, "cache_read_input_tokens": null});
            let expected = BilledTokens {
                input: 7,
                output: billed,
                ..BilledTokens::default()
            };
            assert_eq!(read_usage(&bare), Some(expected));
        }
    }
}

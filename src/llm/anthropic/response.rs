//! Converts answers of the Messages API to [`ChatReply`].

use serde_json::Value;

use super::wire::{Content, Response};
use crate::domain::BilledTokens;
use crate::llm::{CallStop, ChatReply, usage};

/// Converts an answer. Pure. `request_id` is the `request-id` header.
pub(super) fn from_wire(response: Response, request_id: Option<String>) -> ChatReply {
    let input = response.content.iter().find_map(|block| match block {
        // The input of a stream that was cut off is not valid JSON. It is kept as text.
        Content::ToolUse {
            input: Value::String(text),
        } => Some(text.clone()),
        Content::ToolUse { input } => Some(input.to_string()),
        Content::Text { .. } | Content::Other => None,
    });
    let text = || {
        response.content.iter().filter_map(|block| match block {
            Content::Text { text } => Some(text.as_str()),
            Content::ToolUse { .. } | Content::Other => None,
        })
    };
    ChatReply {
        text: input.unwrap_or_else(|| text().collect()),
        stop: match response.stop_reason.as_deref() {
            Some("end_turn" | "stop_sequence" | "tool_use") => CallStop::End,
            Some("max_tokens" | "model_context_window_exceeded") => CallStop::MaxTokens,
            Some("refusal") => CallStop::Refusal,
            _ => CallStop::Other,
        },
        usage: read_usage(&response.usage),
        model: response.model,
        provider_request_id: request_id.or(response.id),
    }
}

/// Parses usage. `input_tokens` excludes cache reads and writes, as in [`BilledTokens`].
fn read_usage(value: &Value) -> Option<BilledTokens> {
    Some(BilledTokens {
        input: usage::required(value, "input_tokens")?,
        cache_read: usage::optional(value, "cache_read_input_tokens")?,
        cache_write: usage::optional(value, "cache_creation_input_tokens")?,
        output: usage::required(value, "output_tokens")?,
        thinking: match value.get("output_tokens_details") {
            None | Some(Value::Null) => 0,
            Some(details) => usage::optional(details, "thinking_tokens")?,
        },
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(cassette: &str) -> ChatReply {
        from_wire(
            serde_json::from_str(cassette).unwrap(),
            Some("req_1".into()),
        )
    }

    #[test]
    fn a_structured_reply_is_its_text() {
        assert_eq!(
            read(include_str!(
                "../../../tests/cassettes/anthropic_structured.json"
            )),
            ChatReply {
                text: r#"{"answer":"42","confidence":0.7}"#.into(),
                stop: CallStop::End,
                usage: Some(BilledTokens {
                    input: 412,
                    cache_read: 1536,
                    cache_write: 0,
                    output: 57,
                    thinking: 21
                }),
                model: Some("claude-sonnet-5-5".into()),
                provider_request_id: Some("req_1".into()),
            }
        );
    }

    #[test]
    fn the_input_of_a_forced_tool_is_the_text() {
        let reply = read(include_str!(
            "../../../tests/cassettes/anthropic_tool_use.json"
        ));
        assert_eq!(
            (reply.text.as_str(), reply.stop),
            (r#"{"answer":"42","confidence":0.7}"#, CallStop::End)
        );
        assert_eq!(
            reply.usage,
            Some(BilledTokens {
                input: 391,
                cache_write: 2051,
                output: 64,
                ..BilledTokens::default()
            })
        );
    }

    #[test]
    fn an_answer_that_was_all_thinking_is_empty_and_cut() {
        let reply = read(include_str!(
            "../../../tests/cassettes/anthropic_thought_away.json"
        ));
        assert_eq!((reply.text.as_str(), reply.stop), ("", CallStop::MaxTokens));
        assert_eq!(
            reply.usage.map(|usage| (usage.output, usage.thinking)),
            Some((1000, 1000))
        );
    }

    #[test]
    fn refusals_and_cuts_are_told_apart() {
        let reply = read(include_str!(
            "../../../tests/cassettes/anthropic_refusal.json"
        ));
        assert_eq!((reply.text.as_str(), reply.stop), ("", CallStop::Refusal));
        let reply = read(include_str!(
            "../../../tests/cassettes/anthropic_max_tokens.json"
        ));
        assert_eq!(
            (reply.text.as_str(), reply.stop),
            (r#"{"answer":"The first of the"#, CallStop::MaxTokens)
        );
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
        let bill = json!({"input_tokens": 7, "output_tokens": 1e30});
        assert_eq!(
            read_usage(&bill),
            Some(BilledTokens {
                input: 7,
                output: 1_000_000_000,
                ..BilledTokens::default()
            })
        );
        let bare = json!({"input_tokens": 7, "output_tokens": 2, "cache_read_input_tokens": null});
        assert_eq!(
            read_usage(&bare),
            Some(BilledTokens {
                input: 7,
                output: 2,
                ..BilledTokens::default()
            })
        );
    }
}

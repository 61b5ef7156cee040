//! Converts answers of Chat Completions to [`ChatReply`].

use serde_json::{Value, json};

use super::wire::{Reply, Response};
use crate::domain::BilledTokens;
use crate::llm::error_body::{self, Rejection};
use crate::llm::{CallStop, ChatReply, usage};

/// A status 200 without a reply.
#[derive(Debug, PartialEq)]
pub(super) enum Fault {
    /// An error of the upstream provider, sent with status 200.
    Rejected(Rejection),
    NoChoice,
}

/// Converts an answer. Pure. `request_id` is the `x-request-id` header.
pub(super) fn from_wire(
    response: Response,
    request_id: Option<String>,
) -> Result<ChatReply, Fault> {
    let Some(choice) = response.choices.into_iter().next() else {
        let code = response
            .error
            .get("code")
            .and_then(Value::as_u64)
            .and_then(|code| u16::try_from(code).ok());
        let wrapped = json!({ "error": response.error });
        return Err(error_body::from_body(code.unwrap_or(502), &wrapped)
            .map_or(Fault::NoChoice, Fault::Rejected));
    };
    let refused = choice
        .message
        .refusal
        .as_deref()
        .is_some_and(|refusal| !refusal.is_empty());
    let stop = match choice.finish_reason.as_deref() {
        _ if refused => CallStop::Refusal,
        Some("stop" | "tool_calls" | "function_call") => CallStop::End,
        Some("length") => CallStop::MaxTokens,
        Some("content_filter") => CallStop::Refusal,
        _ => CallStop::Other,
    };
    Ok(ChatReply {
        text: text(choice.message),
        stop,
        usage: read_usage(&response.usage),
        model: response.model,
        provider_request_id: request_id.or(response.id),
    })
}

fn text(message: Reply) -> String {
    let arguments =
        message
            .tool_calls
            .into_iter()
            .flatten()
            .next()
            .map(|call| match call.function.arguments {
                Value::String(text) => text,
                value => value.to_string(),
            });
    arguments
        .or_else(|| content(message.content))
        .or(message.refusal)
        .unwrap_or_default()
}

fn content(content: Value) -> Option<String> {
    let text = match content {
        Value::String(text) => text,
        Value::Array(parts) => parts
            .iter()
            .filter_map(|part| part.get("text")?.as_str())
            .collect(),
        _ => return None,
    };
    Some(text).filter(|text| !text.is_empty())
}

/// Parses usage. `prompt_tokens` includes cache reads and writes. Reasoning is part of
/// `completion_tokens` with OpenAI, but is added to it with xAI. So the output is the total without
/// the prompt, if that is more.
fn read_usage(value: &Value) -> Option<BilledTokens> {
    let prompt = usage::required(value, "prompt_tokens")?;
    let completion = usage::required(value, "completion_tokens")?;
    let total = usage::optional(value, "total_tokens")?;
    let detail = |of: &str, name: &str| match value.get(of) {
        None | Some(Value::Null) => Some(0),
        Some(details) => usage::optional(details, name),
    };
    let cache_read = detail("prompt_tokens_details", "cached_tokens")?;
    let cache_write = detail("prompt_tokens_details", "cache_write_tokens")?;
    let output = completion.max(total.saturating_sub(prompt));
    Some(BilledTokens {
        input: prompt.checked_sub(cache_read)?.checked_sub(cache_write)?,
        cache_read,
        cache_write,
        output,
        thinking: detail("completion_tokens_details", "reasoning_tokens")?.min(output),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(cassette: &str) -> Result<ChatReply, Fault> {
        from_wire(serde_json::from_str(cassette).unwrap(), None)
    }

    #[test]
    fn a_structured_reply_is_its_content() {
        assert_eq!(
            read(include_str!(
                "../../../tests/cassettes/openai_structured.json"
            )),
            Ok(ChatReply {
                text: r#"{"answer":"42","confidence":0.7}"#.into(),
                stop: CallStop::End,
                usage: Some(BilledTokens {
                    input: 70,
                    cache_read: 1024,
                    cache_write: 128,
                    output: 341,
                    thinking: 320
                }),
                model: Some("gpt-6-luna-2026-08-27".into()),
                provider_request_id: Some("chatcmpl-CBx3mQp1uVb0r6dXn4fWk2Zt9aEyL".into()),
            })
        );
    }

    #[test]
    fn refusals_cuts_and_filters_are_told_apart() {
        let reply = read(include_str!("../../../tests/cassettes/openai_refusal.json")).unwrap();
        assert_eq!(
            (reply.text.as_str(), reply.stop),
            ("I'm sorry, I can't assist with that.", CallStop::Refusal)
        );
        let reply = read(include_str!("../../../tests/cassettes/openai_length.json")).unwrap();
        assert_eq!(
            (reply.text.as_str(), reply.stop),
            (r#"{"answer":"The fir"#, CallStop::MaxTokens)
        );
        let reply = read(include_str!(
            "../../../tests/cassettes/openai_content_filter.json"
        ))
        .unwrap();
        assert_eq!((reply.text.as_str(), reply.stop), ("", CallStop::Refusal));
    }

    #[test]
    fn an_answer_that_was_all_thinking_is_empty_and_cut() {
        let reply = read(include_str!(
            "../../../tests/cassettes/openai_thought_away.json"
        ))
        .unwrap();
        assert_eq!((reply.text.as_str(), reply.stop), ("", CallStop::MaxTokens));
        let usage = BilledTokens {
            cache_write: 1240,
            output: 1000,
            thinking: 1000,
            ..BilledTokens::default()
        };
        assert_eq!(reply.usage, Some(usage));
    }

    #[test]
    fn the_arguments_of_a_forced_tool_are_the_text() {
        let reply = read(include_str!(
            "../../../tests/cassettes/openai_tool_calls.json"
        ))
        .unwrap();
        assert_eq!(
            (reply.text.as_str(), reply.stop),
            (r#"{"answer":"42","confidence":0.7}"#, CallStop::End)
        );
        assert_eq!(reply.usage, None, "a local server that reports none");
    }

    #[test]
    fn content_in_parts_is_joined() {
        let parts = json!([{"type": "thinking", "thinking": []}, {"type": "text", "text": "4"}, {"type": "text", "text": "2"}]);
        assert_eq!(content(parts), Some("42".into()));
        assert_eq!(content(json!("")), None);
    }

    #[test]
    fn reasoning_that_is_not_in_the_completion_is_counted_all_the_same() {
        let reply = read(include_str!("../../../tests/cassettes/xai_reasoning.json")).unwrap();
        assert_eq!(
            reply.usage,
            Some(BilledTokens {
                input: 30,
                cache_read: 2,
                cache_write: 0,
                output: 320,
                thinking: 311
            })
        );
    }

    #[test]
    fn an_error_inside_a_200_is_a_status() {
        let fault = read(include_str!(
            "../../../tests/cassettes/openrouter_error.json"
        ))
        .unwrap_err();
        let Fault::Rejected(rejection) = fault else {
            panic!("{fault:?}")
        };
        let error = rejection.into_error("openrouter", str::to_owned);
        assert!(
            matches!(error, crate::llm::Error::Status { status: 429, .. }),
            "{error:?}"
        );
        assert_eq!(read("{}"), Err(Fault::NoChoice));
    }

    #[test]
    fn more_cached_than_prompted_is_unknown_usage() {
        let usage = json!({"prompt_tokens": 3, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 4}});
        assert_eq!(read_usage(&usage), None);
    }
}

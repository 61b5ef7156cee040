//! Converts answers of Chat Completions to [`ChatReply`].

use serde::Deserialize;
use serde_json::{Value, json};

use crate::domain::{BilledTokens, Usd};
use crate::llm::error_body;
use crate::llm::wire_json::or_default;
use crate::llm::{CallStop, ChatReply, ErrorKind, Fault, usage};

/// An answer of the API, whole or a chunk of a stream, with only the fields that are used.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Response {
    #[serde(default, deserialize_with = "or_default")]
    pub model: Option<String>,
    pub choices: Option<Vec<Choice>>,
    #[serde(default)]
    pub usage: Value,
    /// OpenRouter reports errors of the upstream provider with status 200.
    #[serde(default)]
    pub error: Value,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Choice {
    #[serde(default, deserialize_with = "or_default")]
    pub index: u64,
    pub message: Option<Reply>,
    /// In a stream. Some servers send both.
    pub delta: Option<Reply>,
    #[serde(default, deserialize_with = "or_default")]
    pub finish_reason: Option<String>,
    /// OpenRouter reports an error of the upstream provider here too, with the finish reason "error".
    #[serde(default)]
    pub error: Value,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Reply {
    /// Text, or a list of parts from some compatible servers.
    #[serde(default)]
    pub content: Value,
    pub refusal: Option<String>,
    pub tool_calls: Option<Vec<ToolCall>>,
    /// Thinking, as servers name it: it is not used, but it may be billed.
    #[serde(default)]
    pub reasoning: Value,
    #[serde(default)]
    pub reasoning_content: Value,
}

impl Reply {
    /// True without text, a refusal, a tool call and thinking.
    pub(super) fn is_empty(&self) -> bool {
        let is_blank = |field: &Value| match field {
            Value::String(text) => text.is_empty(),
            Value::Array(parts) => parts.is_empty(),
            field => field.is_null(),
        };
        let mut fields = [&self.content, &self.reasoning, &self.reasoning_content].into_iter();
        fields.all(is_blank)
            && self.refusal.iter().all(String::is_empty)
            && self.tool_calls.iter().flatten().next().is_none()
    }
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct ToolCall {
    #[serde(default, deserialize_with = "or_default")]
    pub index: usize,
    #[serde(default)]
    pub function: Called,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Called {
    /// JSON as text, or an object from some compatible servers.
    #[serde(default)]
    pub arguments: Value,
}

/// Converts an answer. Pure.
///
/// # Errors
/// A status 200 without a reply: the error of the upstream provider, if it says one.
pub(super) fn from_wire(response: Response) -> Result<ChatReply, Fault> {
    let failed = |error: Value| {
        let code = error.get("code").and_then(Value::as_u64);
        let wrapped = json!({ "error": error });
        let fault = error_body::from_body(error_body::status_of(code), &wrapped);
        Err(fault.unwrap_or_else(|| (ErrorKind::Unreadable, "no choices in the reply".into())))
    };
    let first = response.choices.into_iter().flatten().next();
    let Some(Choice {
        message: Some(message),
        finish_reason,
        error,
        ..
    }) = first
    else {
        return failed(response.error);
    };
    if finish_reason.as_deref() == Some("error") && message.is_empty() {
        let error = [error, response.error].into_iter().find(|it| !it.is_null());
        let error = error.unwrap_or_else(|| json!("the finish reason is \"error\""));
        // OpenRouter bills no error without output (looked up 2026-11-30).
        let output = read_usage(&response.usage).map_or(0, |usage| usage.output);
        return failed(error).map_err(|(kind, detail)| match output {
            0 => (kind, detail),
            _ => (ErrorKind::Broken, detail),
        });
    }
    let refusal = message.refusal.as_deref();
    let refused = refusal.is_some_and(|refusal| !refusal.is_empty());
    let stop = match finish_reason.as_deref() {
        _ if refused => CallStop::Refusal,
        Some("stop" | "tool_calls" | "function_call") => CallStop::End,
        Some("length") => CallStop::MaxTokens,
        Some("content_filter") => CallStop::Refusal,
        _ => CallStop::Other,
    };
    Ok(ChatReply {
        text: text(message),
        stop,
        usage: read_usage(&response.usage),
        stated_cost: stated_cost(&response.usage),
        model: response.model,
    })
}

fn text(message: Reply) -> String {
    let call = message.tool_calls.into_iter().flatten().next();
    let arguments = call.map(|call| match call.function.arguments {
        Value::String(text) => text,
        value => value.to_string(),
    });
    arguments
        .or_else(|| content(message.content))
        .or(message.refusal)
        .unwrap_or_default()
}

/// Returns the text of a content: a text, or a list of parts.
pub(super) fn text_of(content: Value) -> String {
    match content {
        Value::String(text) => text,
        Value::Array(parts) => parts
            .iter()
            .filter_map(|part| part.get("text")?.as_str())
            .collect(),
        _ => String::new(),
    }
}

fn content(content: Value) -> Option<String> {
    let text = text_of(content);
    // Servers that do not tell thinking apart leave it in the text.
    let text = conclave_lenient_json::without_thinking(&text).to_owned();
    Some(text).filter(|text| !text.is_empty())
}

/// Returns the cost that OpenRouter states in dollars, and xAI in units of 1e-10 dollars (looked up
/// 2026-11-29).
fn stated_cost(usage: &Value) -> Option<Usd> {
    let dollars = |name: &str, unit: f64| Some(usage.get(name)?.as_f64()? * unit);
    let cost = dollars("cost", 1.0).or_else(|| dollars("cost_in_usd_ticks", 1e-10))?;
    // With a key of one's own, OpenRouter's cost is its fee.
    let own = usage
        .get("cost_details")
        .filter(|_| usage["is_byok"] == true);
    let own = own.and_then(|details| details.get("upstream_inference_cost")?.as_f64());
    Some(Usd::from_dollars(cost + own.unwrap_or_default()))
}

/// Parses usage. `prompt_tokens` includes cache reads and writes. Reasoning is part of
/// `completion_tokens` with OpenAI, but is added to it with xAI. So the output is the total without
/// the prompt, if that is more.
fn read_usage(value: &Value) -> Option<BilledTokens> {
    let prompt = usage::required(value, "prompt_tokens")?;
    let completion = usage::required(value, "completion_tokens")?;
    let total = usage::optional(value, "total_tokens")?;
    let cache_read = usage::detail(value, "prompt_tokens_details", "cached_tokens")?;
    let cache_write = usage::detail(value, "prompt_tokens_details", "cache_write_tokens")?;
    let thinking = usage::detail(value, "completion_tokens_details", "reasoning_tokens")?;
    let output = completion.max(total.saturating_sub(prompt));
    // Without a total, more reasoning than completion shows that it is added.
    let output = if thinking > output {
        completion.saturating_add(thinking)
    } else {
        output
    };
    Some(BilledTokens {
        input: prompt.checked_sub(cache_read)?.checked_sub(cache_write)?,
        cache_read,
        cache_write,
        output,
        thinking,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(status: u16) -> ErrorKind {
        ErrorKind::Status {
            status,
            retry_after: None,
        }
    }

    fn read(cassette: &str) -> Result<ChatReply, Fault> {
        let path = format!("tests/cassettes/{cassette}.json");
        let text = std::fs::read_to_string(path).unwrap();
        from_wire(serde_json::from_str(&text).unwrap())
    }

    #[test]
    fn a_structured_reply_is_its_content() {
        let expected = ChatReply {
            text: r#"{"answer":"42","confidence":0.7}"#.into(),
            stop: CallStop::End,
            usage: Some(BilledTokens {
                input: 70,
                cache_read: 1024,
                cache_write: 128,
                output: 341,
                thinking: 320,
            }),
            stated_cost: None,
            model: Some("gpt-6-luna-2026-08-27".into()),
        };
        assert_eq!(read("openai_structured"), Ok(expected));
    }

    #[test]
    fn tools_thinking_refusals_cuts_and_filters_are_told_apart() {
        let whole = r#"{"answer":"42","confidence":0.7}"#;
        let refusal = "I'm sorry, I can't assist with that.";
        for (cassette, text, stop) in [
            ("refusal", refusal, CallStop::Refusal),
            ("length", r#"{"answer":"The fir"#, CallStop::MaxTokens),
            ("content_filter", "", CallStop::Refusal),
            ("thought_away", "", CallStop::MaxTokens),
            ("tool_calls", whole, CallStop::End),
        ] {
            let reply = read(&format!("openai_{cassette}")).unwrap();
            assert_eq!(
                (reply.text.as_str(), reply.stop),
                (text, stop),
                "{cassette}"
            );
        }
    }

    #[test]
    fn usage_is_read_as_each_vendor_reports_it() {
        let usage = |cassette| read(cassette).unwrap().usage;
        let thought_away = BilledTokens {
            cache_write: 1240,
            output: 1000,
            thinking: 1000,
            ..BilledTokens::default()
        };
        assert_eq!(usage("openai_thought_away"), Some(thought_away));
        // Its reasoning is not a part of the completion.
        let xai = BilledTokens {
            input: 30,
            cache_read: 2,
            output: 320,
            thinking: 311,
            ..BilledTokens::default()
        };
        assert_eq!(usage("xai_reasoning"), Some(xai));
        assert_eq!(usage("openai_tool_calls"), None, "a local server");
        let more_cached_than_prompted = json!({"prompt_tokens": 3, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 4}});
        assert_eq!(read_usage(&more_cached_than_prompted), None);
        let added = json!({"prompt_tokens": 3, "completion_tokens": 100, "completion_tokens_details": {"reasoning_tokens": 900}});
        assert_eq!(read_usage(&added).map(|it| it.output), Some(1000));
    }

    #[test]
    fn the_cost_that_a_vendor_states_is_read() {
        for (usage, expected) in [
            (json!({"cost": 0.25, "is_byok": false}), Some(0.25)),
            (json!({"cost_in_usd_ticks": 37_756_000}), Some(0.003_775_6)),
            (
                json!({"cost": 0.25, "is_byok": true, "cost_details": {"upstream_inference_cost": 2.0}}),
                Some(2.25),
            ),
            (
                json!({"cost": 0.25, "cost_details": {"upstream_inference_cost": 0.25}}),
                Some(0.25),
            ),
            (json!({"cost": {"total_cost": 0.25}}), None),
            (json!({"cost": "0.25"}), None),
            (json!({"cost": -1.0}), Some(0.0)),
            (Value::Null, None),
        ] {
            assert_eq!(
                stated_cost(&usage),
                expected.map(Usd::from_dollars),
                "{usage}"
            );
        }
    }

    #[test]
    fn a_field_that_is_not_needed_loses_no_reply() {
        let body = json!({"id": 12345, "model": ["m"], "created": "now", "choices": [
            {"index": "0", "message": {"content": "42", "refusal": null}, "finish_reason": 7}]});
        let reply = from_wire(serde_json::from_value(body).unwrap()).unwrap();
        assert_eq!((reply.text.as_str(), reply.stop), ("42", CallStop::Other));
        assert_eq!(reply.model, None);
        let body =
            json!({"choices": null, "error": {"code": 429, "message": "Rate limit exceeded"}});
        let fault = from_wire(serde_json::from_value(body).unwrap()).unwrap_err();
        assert_eq!(fault, (status(429), "Rate limit exceeded".into()));
    }

    #[test]
    fn thinking_inside_the_content_is_no_part_of_the_text() {
        for (text, expected) in [
            ("<think>\nSo {\"a\": 1}?</think>\n42", Some("\n42")),
            ("<think>\nOkay, the user asks", None),
            ("no <think> at the start", Some("no <think> at the start")),
        ] {
            assert_eq!(content(json!(text)).as_deref(), expected);
        }
    }

    #[test]
    fn content_in_parts_is_joined() {
        let parts = json!([{"type": "thinking", "thinking": []}, {"type": "text", "text": "4"}, {"type": "text", "text": "2"}]);
        assert_eq!(content(parts), Some("42".into()));
        assert_eq!(content(json!("")), None);
    }

    #[test]
    fn an_error_inside_a_200_is_a_status() {
        assert_eq!(read("openrouter_error").unwrap_err().0, status(429));
        let mut inside = json!({"choices": [{"message": {"content": ""}, "finish_reason": "error",
            "error": {"code": 502, "message": "Provider disconnected"}}]});
        for (output, kind) in [(0, status(502)), (4, ErrorKind::Broken)] {
            let mut billed = inside.clone();
            billed["usage"] = json!({"prompt_tokens": 9, "completion_tokens": output});
            let fault = from_wire(serde_json::from_value(billed).unwrap()).unwrap_err();
            assert_eq!(fault, (kind, "Provider disconnected".into()));
        }
        inside["choices"][0]["message"]["content"] = json!("{");
        assert!(from_wire(serde_json::from_value(inside.clone()).unwrap()).is_ok());
        inside["choices"][0]["message"]["content"] = json!("");
        let mut thought = inside.clone();
        thought["choices"][0]["message"]["reasoning"] = json!("So");
        assert!(from_wire(serde_json::from_value(thought).unwrap()).is_ok());
        let inside = from_wire(serde_json::from_value(inside).unwrap()).unwrap_err();
        assert_eq!(inside, (status(502), "Provider disconnected".into()));
        let empty = from_wire(serde_json::from_str("{}").unwrap());
        assert_eq!(empty.unwrap_err().0, ErrorKind::Unreadable);
    }
}

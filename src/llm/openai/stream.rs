//! Assembles an answer of Chat Completions from the chunks of a stream.

use serde_json::Value;

use super::response::{Called, Choice, Reply, Response, ToolCall, from_wire, text_of};
use crate::llm::http::Collect;
use crate::llm::{ChatReply, ErrorKind, Fault, usage, wire_json};

/// The data of the event after the last chunk.
const DONE: &str = "[DONE]";

/// The first choice so far.
#[derive(Debug, Default)]
pub(super) struct Streamed {
    model: Option<String>,
    content: String,
    refusal: String,
    /// The arguments of the first tool call. A reply has only one.
    arguments: Option<String>,
    finish_reason: Option<String>,
    usage: Value,
    /// True if a part of the answer came after the last usage, which does not count it.
    has_uncounted: bool,
    /// The error with which the stream began.
    error: Value,
    /// True if a part of an answer came.
    has_begun: bool,
}

impl Collect for Streamed {
    type Reply = Response;

    fn convert(reply: Response) -> Result<ChatReply, Fault> {
        from_wire(reply)
    }

    fn take(&mut self, data: &str) -> Result<bool, Fault> {
        if data.trim() == DONE {
            return Ok(true);
        }
        let chunk: Response = wire_json::event(data)?;
        if !chunk.error.is_null() && !self.has_begun {
            self.error = chunk.error;
            return Ok(true);
        }
        if !chunk.error.is_null() {
            let message = chunk.error.get("message").unwrap_or(&chunk.error);
            let message = message
                .as_str()
                .map_or_else(|| message.to_string(), str::to_owned);
            return Err((ErrorKind::Aborted, message));
        }
        self.model = self.model.take().or(chunk.model);
        let is_counted = !chunk.usage.is_null();
        usage::merge(&mut self.usage, chunk.usage);
        let pieces = chunk.choices.into_iter().flatten();
        for piece in pieces.filter(|piece| piece.index == 0) {
            let delta = piece.delta.unwrap_or_default();
            self.has_begun |= !delta.is_empty();
            self.has_uncounted |= !delta.is_empty();
            self.content += &text_of(delta.content);
            self.refusal += delta.refusal.as_deref().unwrap_or_default();
            let calls = delta.tool_calls.into_iter().flatten();
            for call in calls.filter(|call| call.index == 0) {
                let more = call.function.arguments.as_str().unwrap_or_default();
                self.arguments.get_or_insert_default().push_str(more);
            }
            self.finish_reason = piece.finish_reason.or(self.finish_reason.take());
        }
        self.has_uncounted &= !is_counted;
        Ok(false)
    }

    /// Returns the answer. Some servers send no last event, so a finish reason is enough.
    fn finish(self) -> Option<Response> {
        if !self.error.is_null() {
            return Some(Response {
                error: self.error,
                ..Response::default()
            });
        }
        let finish_reason = Some(self.finish_reason?);
        let called = |text| Called {
            arguments: Value::String(text),
        };
        let call = self.arguments.map(called);
        let one = |function| vec![ToolCall { index: 0, function }];
        let message = Reply {
            content: Value::String(self.content),
            refusal: Some(self.refusal).filter(|text| !text.is_empty()),
            tool_calls: call.map(one),
            ..Reply::default()
        };
        Some(Response {
            model: self.model,
            choices: Some(vec![Choice {
                message: Some(message),
                finish_reason,
                ..Choice::default()
            }]),
            usage: if self.has_uncounted {
                Value::Null
            } else {
                self.usage
            },
            error: Value::Null,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::llm::http;

    fn collected(stream: &str) -> Result<Option<Response>, Fault> {
        http::collected::<Streamed>(stream)
    }

    const TEXT: &str = include_str!("../../../tests/cassettes/openai_stream.sse");

    #[test]
    fn a_streamed_reply_is_the_one_that_would_have_come_whole() {
        let whole = include_str!("../../../tests/cassettes/openai_structured.json");
        let tool = include_str!("../../../tests/cassettes/openai_stream_tool.sse");
        let whole_tool = include_str!("../../../tests/cassettes/openai_tool_calls.json");
        for (stream, whole) in [(TEXT, whole), (tool, whole_tool)] {
            let streamed = from_wire(collected(stream).unwrap().unwrap());
            let whole = from_wire(serde_json::from_str(whole).unwrap());
            assert_eq!(streamed, whole);
        }
    }

    #[test]
    fn a_usage_counts_if_nothing_comes_after_it_and_only_grows() {
        let usage = |stream: &str| {
            let reply = from_wire(collected(stream).unwrap().unwrap());
            reply.unwrap().usage
        };
        let last = usage(TEXT);
        let chunk = r#"data: {"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1}}"#;
        let less = TEXT.replace("data: [DONE]", &format!("{chunk}\n\ndata: [DONE]"));
        assert!(last.is_some());
        assert_eq!(usage(&less), last);
        let lines = TEXT.split("\n\n");
        let without: Vec<&str> = lines.filter(|it| !it.contains("\"usage\":{")).collect();
        assert_eq!(usage(&format!("{chunk}\n\n{}", without.join("\n\n"))), None);
    }

    #[test]
    fn null_where_a_list_or_an_object_is_usual_loses_no_reply() {
        let nulls = TEXT.replace("\"choices\":[]", "\"choices\":null");
        let parts = r#"{"delta":{"content":[{"type":"thinking","thinking":[]}]}}"#;
        let first = format!(
            r#"data: {{"id":7,"choices":[{{"delta":null,"message":{{"content":"So far"}}}},{parts}]}}"#
        );
        let nulls = format!("{first}\n\n{nulls}");
        let usual = from_wire(collected(TEXT).unwrap().unwrap());
        assert!(nulls.contains("null,\"usage\""), "{nulls}");
        assert_eq!(from_wire(collected(&nulls).unwrap().unwrap()), usual);
    }

    #[test]
    fn a_stream_without_its_last_line_is_whole_and_one_without_an_end_is_not() {
        let up_to = |end| collected(TEXT.split(end).next().unwrap());
        assert!(up_to("data: [DONE]").unwrap().is_some());
        assert!(up_to("\"finish_reason\":\"stop\"").unwrap().is_none());
        // Before any output it is a refusal, and behind some it may be billed.
        let gone = "data: {\"error\":{\"message\":\"the upstream is gone\",\"code\":429}}\n\n";
        let refusal = from_wire(collected(gone).unwrap().unwrap()).unwrap_err();
        let kind = ErrorKind::Status {
            status: 429,
            retry_after: None,
        };
        assert_eq!(refusal, (kind, "the upstream is gone".into()));
        let begun = TEXT.split("\"finish_reason\":\"stop\"").next().unwrap();
        let begun = begun.rsplit_once("data:").unwrap().0;
        let ended = (ErrorKind::Aborted, "the upstream is gone".to_owned());
        assert_eq!(collected(&format!("{begun}{gone}")).unwrap_err(), ended);
        let of_delta =
            |delta| format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{delta}}}]}}\n\n");
        for delta in [r#"{"reasoning_content":"So"}"#, r#"{"reasoning":"So"}"#] {
            let thought = of_delta(delta);
            assert_eq!(collected(&format!("{thought}{gone}")).unwrap_err(), ended);
        }
        let opened = of_delta(r#"{"role":"assistant","content":"","reasoning":null}"#);
        assert!(collected(&format!("{opened}{gone}")).unwrap().is_some());
        assert!(collected("data: nonsense\n\n").is_err());
    }
}

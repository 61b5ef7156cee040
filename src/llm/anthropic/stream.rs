//! Assembles an answer of the Messages API from the events of a stream.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::response::{Content, Response, from_wire};
use crate::llm::http::Collect;
use crate::llm::{ChatReply, ErrorKind, Fault, usage, wire_json};

/// The events and fields that are used.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Event {
    MessageStart {
        message: Response,
    },
    ContentBlockStart {
        index: u64,
        content_block: Content,
    },
    ContentBlockDelta {
        index: u64,
        delta: Piece,
    },
    MessageDelta {
        delta: Ended,
        #[serde(default)]
        usage: Value,
    },
    MessageStop,
    Error {
        error: Value,
    },
    /// `ping`, `content_block_stop`, and events that are not known yet.
    #[serde(other)]
    Other,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Piece {
    TextDelta {
        text: String,
    },
    InputJsonDelta {
        partial_json: String,
    },
    /// Thinking, signatures, citations.
    #[serde(other)]
    Other,
}

#[derive(Debug, Deserialize)]
struct Ended {
    stop_reason: Option<String>,
}

/// The answer so far.
#[derive(Debug, Default)]
pub(super) struct Streamed {
    started: Option<Response>,
    /// They grow by the pieces of the stream. The input of a tool call is JSON text until its end.
    blocks: BTreeMap<u64, Content>,
    stopped: bool,
}

impl Collect for Streamed {
    type Reply = Response;

    fn convert(reply: Response) -> Result<ChatReply, Fault> {
        from_wire(reply)
    }

    fn take(&mut self, data: &str) -> Result<bool, Fault> {
        match wire_json::event(data)? {
            Event::MessageStart { mut message } => {
                // Its output is not yet written: the count comes with a later event.
                if let Some(counts) = message.usage.as_object_mut() {
                    counts.remove("output_tokens");
                }
                self.started = Some(message);
            }
            Event::ContentBlockStart {
                index,
                content_block,
            } => {
                let block = match content_block {
                    Content::ToolUse { .. } => Content::ToolUse { input: "".into() },
                    other => other,
                };
                self.blocks.insert(index, block);
            }
            Event::ContentBlockDelta { index, delta } => match (self.blocks.get_mut(&index), delta)
            {
                (Some(Content::Text { text }), Piece::TextDelta { text: more })
                | (
                    Some(Content::ToolUse {
                        input: Value::String(text),
                    }),
                    Piece::InputJsonDelta { partial_json: more },
                ) => text.push_str(&more),
                _ => {}
            },
            Event::MessageDelta { delta, usage } => {
                let Some(started) = &mut self.started else {
                    return Ok(false);
                };
                started.stop_reason = delta.stop_reason.or(started.stop_reason.take());
                usage::merge(&mut started.usage, usage);
            }
            Event::MessageStop => {
                self.stopped = true;
                return Ok(true);
            }
            Event::Error { error } if self.started.is_none() => {
                self.started = Some(Response {
                    error,
                    ..Response::default()
                });
                return Ok(true);
            }
            Event::Error { error } => return Err((ErrorKind::Aborted, said(&error))),
            Event::Other => {}
        }
        Ok(false)
    }

    fn finish(self) -> Option<Response> {
        let started = self.started?;
        if !started.error.is_null() {
            return Some(started);
        }
        let content = self.blocks.into_values().map(|block| match block {
            // Input that was cut off is kept as text, so that its complete parts can be extracted.
            Content::ToolUse {
                input: Value::String(text),
            } => {
                let input = serde_json::from_str(if text.is_empty() { "{}" } else { &text });
                Content::ToolUse {
                    input: input.unwrap_or(Value::String(text)),
                }
            }
            other => other,
        });
        self.stopped.then(|| Response {
            content: Some(content.collect()),
            ..started
        })
    }
}

fn said(error: &Value) -> String {
    let part = |name: &str| error.get(name).and_then(Value::as_str).unwrap_or("unknown");
    format!("{}: {}", part("type"), part("message"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::BilledTokens;
    use crate::llm::http;

    fn collected(stream: &str) -> Result<Option<Response>, Fault> {
        http::collected::<Streamed>(stream)
    }

    const TOOL: &str = include_str!("../../../tests/cassettes/anthropic_stream_tool.sse");

    #[test]
    fn a_streamed_reply_is_the_one_that_would_have_come_whole() {
        let text = include_str!("../../../tests/cassettes/anthropic_stream_text.sse");
        let whole = include_str!("../../../tests/cassettes/anthropic_structured.json");
        let tool = include_str!("../../../tests/cassettes/anthropic_tool_use.json");
        for (stream, whole) in [(text, whole), (TOOL, tool)] {
            let streamed = from_wire(collected(stream).unwrap().unwrap());
            let whole = from_wire(serde_json::from_str(whole).unwrap());
            assert_eq!(streamed.unwrap(), whole.unwrap());
        }
    }

    #[test]
    fn a_count_is_final_only_at_the_end_and_takes_nothing_back() {
        let usage = |last: &str| {
            let (begin, rest) = TOOL.split_once("event: message_delta\n").unwrap();
            let (_, end) = rest.split_once("\n\n").unwrap();
            let delta = r#""delta":{"stop_reason":"tool_use"}"#;
            let event =
                format!("event: message_delta\ndata: {{\"type\":\"message_delta\",{delta}{last}}}");
            let stream = format!("{begin}{event}\n\n{end}");
            from_wire(collected(&stream).unwrap().unwrap())
                .unwrap()
                .usage
        };
        for none in ["", r#","usage":null"#, r#","usage":{"input_tokens":391}"#] {
            assert_eq!(usage(none), None, "{none}");
        }
        let counts =
            r#","usage":{"input_tokens":0,"cache_creation_input_tokens":0,"output_tokens":64}"#;
        let expected = BilledTokens {
            input: 391,
            cache_write: 2051,
            output: 64,
            ..BilledTokens::default()
        };
        assert_eq!(usage(counts), Some(expected));
    }

    #[test]
    fn what_was_cut_keeps_its_beginning_and_what_broke_is_no_reply() {
        let cut = TOOL.replace(r#"\"confidence\":0.7}"#, "");
        let cut = cut.replace(r#"reason":"tool_use""#, r#"reason":"max_tokens""#);
        let reply = from_wire(collected(&cut).unwrap().unwrap()).unwrap();
        assert_eq!(
            (reply.text.as_str(), reply.stop),
            ("{\"answer\":\"42\",", crate::llm::CallStop::MaxTokens)
        );
        let usage = BilledTokens {
            input: 391,
            cache_write: 2051,
            output: 64,
            ..BilledTokens::default()
        };
        assert_eq!(reply.usage, Some(usage));
        let half = TOOL.split("event: message_delta").next().unwrap();
        assert!(collected(half).unwrap().is_none());
        let error =
            r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
        let broken = |before: &str| format!("{before}event: error\ndata: {error}\n\n");
        let expected = (
            ErrorKind::Aborted,
            "overloaded_error: Overloaded".to_owned(),
        );
        assert_eq!(collected(&broken(half)).unwrap_err(), expected);
        let refused = collected(&broken("")).unwrap().unwrap();
        let (kind, detail) = from_wire(refused).unwrap_err();
        let error = crate::llm::Error::new("p", kind, detail).to_string();
        assert_eq!(error, "p answered 529: overloaded_error: Overloaded");
        assert!(collected("data: {\n\n").is_err());
    }
}

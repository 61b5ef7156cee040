//! Learns which parameters of a request a server does not support, from how it rejects them. What
//! known models support is in the model data; this is for other models, and for gateways before
//! known ones.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use serde_json::Value;

/// What servers say of a parameter that they do not support, as they said it on 2026-11-26: OpenAI,
/// vLLM, LiteLLM, DeepSeek, Mistral. A parameter with a wrong value is another matter.
const NOT_SUPPORTED: [&str; 8] = [
    "unsupported",
    "not support",
    "unrecognized",
    "unknown",
    "unexpected",
    "not permitted",
    "unavailable",
    "instead",
];

/// How a request differs from the usual one, so that a server accepts it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Unsupported {
    /// The limit of the output has its other name.
    pub limit_name: bool,
    pub temperature: bool,
    pub effort: bool,
    /// The schema stands in the prompt, and nothing enforces it.
    pub schema: bool,
    /// A stream reports no usage.
    pub stream_usage: bool,
}

impl Unsupported {
    /// Returns what to change after a server rejected a body because it does not support one of its
    /// parameters; `None` if its explanation says something else.
    pub fn after(self, body: &Value, explanation: &str) -> Option<Self> {
        let explanation = explanation.to_lowercase();
        if !NOT_SUPPORTED
            .iter()
            .any(|words| explanation.contains(words))
        {
            return None;
        }
        let sent = |name: &str| body.get(name).is_some();
        let named = |name: &str| sent(name) && explanation.contains(name);
        let schema = sent("response_format") && explanation.contains("json_schema");
        let schema = schema || named("response_format") || named("tool_choice");
        // Each is changed once.
        if !self.limit_name && (named("max_tokens") || named("max_completion_tokens")) {
            Some(Self {
                limit_name: true,
                ..self
            })
        } else if !self.temperature && named("temperature") {
            Some(Self {
                temperature: true,
                ..self
            })
        } else if !self.effort && named("reasoning_effort") {
            Some(Self {
                effort: true,
                ..self
            })
        } else if !self.stream_usage && named("stream_options") {
            Some(Self {
                stream_usage: true,
                ..self
            })
        } else if !self.schema && schema {
            Some(Self {
                schema: true,
                ..self
            })
        } else {
            None
        }
    }

    fn and(self, other: Self) -> Self {
        Self {
            limit_name: self.limit_name || other.limit_name,
            temperature: self.temperature || other.temperature,
            effort: self.effort || other.effort,
            schema: self.schema || other.schema,
            stream_usage: self.stream_usage || other.stream_usage,
        }
    }
}

/// What a server does not support for each model, as far as this process has learned it.
#[derive(Debug, Default)]
pub(super) struct Learned(Mutex<HashMap<String, Unsupported>>);

impl Learned {
    pub fn of(&self, model: &str) -> Unsupported {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(model).copied().unwrap_or_default()
    }

    pub fn keep(&self, model: &str, found: Unsupported) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let earlier = known.get(model).copied().unwrap_or_default();
        known.insert(model.to_owned(), earlier.and(found));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_rejection_calls_unsupported_is_changed_once() {
        let body = json!({
            "max_tokens": 900, "temperature": 0.2, "response_format": {}, "stream_options": {},
        });
        let after = |explanation: &str| Unsupported::default().after(&body, explanation);
        let usual = Unsupported::default();
        for (explanation, expected) in [
            (
                "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.",
                Unsupported {
                    limit_name: true,
                    ..usual
                },
            ),
            (
                "'temperature' does not support 0.2 with this model.",
                Unsupported {
                    temperature: true,
                    ..usual
                },
            ),
            (
                "This response_format type is unavailable now",
                Unsupported {
                    schema: true,
                    ..usual
                },
            ),
            (
                "stream_options: Extra inputs are not permitted",
                Unsupported {
                    stream_usage: true,
                    ..usual
                },
            ),
        ] {
            assert_eq!(after(explanation), Some(expected), "{explanation}");
            assert_eq!(expected.after(&body, explanation), None, "{explanation}");
        }
        for other in [
            "Invalid max_tokens value, the valid range is [1, 8192]",
            "max_tokens is too large: 20000",
            "Invalid schema for response_format 'solution': an object needs properties",
            "Invalid prompt: see the guide on reasoning",
            "reasoning_effort is not supported",
            "the prompt is too long",
        ] {
            assert_eq!(after(other), None, "{other}");
        }
    }

    #[test]
    fn what_two_calls_learn_is_kept_together() {
        let (learned, usual) = (Learned::default(), Unsupported::default());
        learned.keep(
            "m",
            Unsupported {
                temperature: true,
                ..usual
            },
        );
        learned.keep(
            "m",
            Unsupported {
                schema: true,
                ..usual
            },
        );
        let both = Unsupported {
            temperature: true,
            schema: true,
            ..usual
        };
        assert_eq!((learned.of("m"), learned.of("n")), (both, usual));
    }
}

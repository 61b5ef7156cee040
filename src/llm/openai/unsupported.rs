//! Learns which parameters of a request a server does not take, from how it rejects them. What known
//! models take is in the model data; this is for other models, and for gateways before known ones.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use serde_json::Value;

/// How a request differs from the usual one, so that a server takes it.
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
    /// Returns what to change after a server rejected a body for one of its parameters; `None` if
    /// its explanation names none.
    pub fn after(self, body: &Value, explanation: &str) -> Option<Self> {
        let named = |parameters: &[&str], words: &[&str]| {
            parameters.iter().any(|key| body.get(key).is_some())
                && words.iter().any(|word| explanation.contains(word))
        };
        let limit = ["max_tokens", "max_completion_tokens"];
        let structure = ["response_format", "tools"];
        let about_structure = ["response_format", "json_schema", "tools", "tool_choice"];
        // Each is changed once.
        if !self.schema && named(&structure, &about_structure) {
            Some(Self {
                schema: true,
                ..self
            })
        } else if !self.temperature && named(&["temperature"], &["temperature"]) {
            Some(Self {
                temperature: true,
                ..self
            })
        } else if !self.effort && named(&["reasoning_effort"], &["reasoning", "effort"]) {
            Some(Self {
                effort: true,
                ..self
            })
        } else if !self.stream_usage && named(&["stream_options"], &["stream_options"]) {
            Some(Self {
                stream_usage: true,
                ..self
            })
        } else if !self.limit_name && named(&limit, &limit) {
            Some(Self {
                limit_name: true,
                ..self
            })
        } else {
            None
        }
    }
}

/// What the models of a server have rejected so far in this process.
#[derive(Debug, Default)]
pub(super) struct Learned(Mutex<HashMap<String, Unsupported>>);

impl Learned {
    pub fn of(&self, model: &str) -> Unsupported {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(model).copied().unwrap_or_default()
    }

    pub fn keep(&self, model: &str, found: Unsupported) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(model.to_owned(), found);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_rejection_names_is_changed_once() {
        let body = json!({
            "max_tokens": 900, "temperature": 0.2, "response_format": {}, "stream_options": {},
        });
        let after = |explanation: &str| Unsupported::default().after(&body, explanation);
        let usual = Unsupported::default();
        let limit = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.";
        for (explanation, expected) in [
            (
                limit,
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
        assert_eq!(after("the prompt is too long"), None);
        assert_eq!(
            after("reasoning_effort is not supported"),
            None,
            "none was sent"
        );
    }
}

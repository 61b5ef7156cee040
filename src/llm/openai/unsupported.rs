//! Learns which parameters of a request a server does not support, from how it rejects them. What
//! known models support is in the model data; this is for other models, and for gateways before
//! known ones.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use serde_json::Value;

use crate::llm::ChatRequest;

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

/// What servers call a schema that they reject, as they said it on 2026-11-29: OpenAI, Groq, vLLM,
/// llama.cpp. They enforce different subsets of JSON Schema, so the reason does not matter.
const SCHEMA: [&str; 5] = [
    "response_format",
    "json_schema",
    "json schema",
    "grammar",
    "structured output",
];

/// A part of the usual request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Parameter {
    /// The usual name of the limit of the output. Without it, the limit has its other name.
    LimitName,
    Temperature,
    Effort,
    /// The usage in a stream. Without it, a stream reports none.
    StreamUsage,
    /// Without it the schema stands in the prompt, and nothing enforces it.
    Schema,
}

/// What a server does not support of the usual request.
pub(super) type Unsupported = BTreeSet<Parameter>;

/// Returns what to leave out too after a server rejected a body because it does not support one of
/// its parameters; `None` if its explanation says something else, or what is left out already.
pub(super) fn unsupported_by(
    known: &Unsupported,
    body: &Value,
    explanation: &str,
) -> Option<Parameter> {
    let explanation = explanation.to_lowercase();
    let says = |words: &[&str]| words.iter().any(|words| explanation.contains(words));
    let is_unsupported = says(&NOT_SUPPORTED);
    let sent = |name: &str| body.get(name).is_some();
    let named = |name: &str| is_unsupported && sent(name) && explanation.contains(name);
    let schema = sent("response_format") && says(&SCHEMA);
    let found = [
        (
            Parameter::LimitName,
            named("max_tokens") || named("max_completion_tokens"),
        ),
        (Parameter::Temperature, named("temperature")),
        (Parameter::Effort, named("reasoning_effort")),
        (Parameter::StreamUsage, named("stream_options")),
        (Parameter::Schema, schema || named("tool_choice")),
    ];
    let mut found = found.into_iter();
    let (parameter, _) = found.find(|(it, is_named)| *is_named && !known.contains(it))?;
    Some(parameter)
}

/// What a server does not support for each model, as far as this process has learned it. It may take
/// one schema and not another, so a schema is known by its name.
#[derive(Debug, Default)]
pub(super) struct RejectedParameters(Mutex<BTreeSet<(String, Option<String>, Parameter)>>);

impl RejectedParameters {
    pub fn of(&self, request: &ChatRequest) -> Unsupported {
        let schema = request.schema.as_ref().map(|schema| &schema.name);
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = known.iter().filter(|(model, name, _)| {
            *model == request.model && (name.is_none() || name.as_ref() == schema)
        });
        known.map(|(_, _, parameter)| *parameter).collect()
    }

    pub fn keep(&self, request: &ChatRequest, found: Unsupported) {
        let schema = request.schema.as_ref().map(|schema| &schema.name);
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.extend(found.into_iter().map(|parameter| {
            let name = schema.filter(|_| parameter == Parameter::Schema);
            (request.model.clone(), name.cloned(), parameter)
        }));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_rejection_calls_unsupported_is_left_out_once() {
        let body = json!({
            "max_tokens": 900, "temperature": 0.2, "response_format": {}, "stream_options": {},
        });
        let after = |known, explanation: &str| unsupported_by(&known, &body, explanation);
        for (explanation, expected) in [
            (
                "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.",
                Parameter::LimitName,
            ),
            (
                "'temperature' does not support 0.2 with this model.",
                Parameter::Temperature,
            ),
            (
                "This response_format type is unavailable now",
                Parameter::Schema,
            ),
            (
                "Invalid schema for response_format 'solution': an object needs properties",
                Parameter::Schema,
            ),
            ("Failed to parse grammar", Parameter::Schema),
            ("JSON schema conversion failed", Parameter::Schema),
            (
                "stream_options: Extra inputs are not permitted",
                Parameter::StreamUsage,
            ),
        ] {
            let found = after(Unsupported::new(), explanation);
            assert_eq!(found, Some(expected), "{explanation}");
            assert_eq!(after([expected].into(), explanation), None, "{explanation}");
        }
        for other in [
            "Invalid max_tokens value, the valid range is [1, 8192]",
            "max_tokens is too large: 20000",
            "Invalid prompt: see the guide on reasoning",
            "reasoning_effort is not supported",
            "the prompt is too long",
        ] {
            assert_eq!(after(Unsupported::new(), other), None, "{other}");
        }
    }

    #[test]
    fn what_two_calls_learn_is_kept_together_and_a_schema_by_its_name() {
        let asks = |model: &str, schema: &str| ChatRequest {
            model: model.to_owned(),
            schema: Some(crate::llm::Schema {
                name: schema.to_owned(),
                value: conclave_lenient_json::Schema::new(json!({})).into(),
            }),
            ..ChatRequest::sample()
        };
        let (plan, learned) = (asks("m", "plan"), RejectedParameters::default());
        learned.keep(&plan, [Parameter::Temperature].into());
        learned.keep(&plan, [Parameter::Schema].into());
        let both = [Parameter::Temperature, Parameter::Schema].into();
        assert_eq!(learned.of(&plan), both);
        let others = (
            learned.of(&asks("m", "report")),
            learned.of(&asks("n", "plan")),
        );
        assert_eq!(
            others,
            ([Parameter::Temperature].into(), Unsupported::new())
        );
    }
}

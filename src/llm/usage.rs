//! Token counts as providers report them. A missing, negative or invalid count makes the whole
//! usage unknown. A count that is too large to be true is clamped to a maximum, because a bill must
//! not disappear. Before settlement, each count is bounded by what its request can have used.

use serde_json::Value;

use super::{ChatRequest, Part};
use crate::domain::BilledTokens;

/// More tokens than any call can have.
const MAX: u64 = 1_000_000_000;

/// Tokens that a provider may add to a request: templates, tools, hidden thinking.
const SLACK: u64 = 100_000;

/// Maximum tokens of one image.
const IMAGE: u64 = 20_000;

impl ChatRequest {
    /// Returns the most input tokens and output tokens that this request can have used: two input
    /// tokens per byte, and twice the requested output tokens. An allowance is added to each, for
    /// the provider's own tokens. A figure above that is an error of the provider, and these
    /// still exceed any reservation.
    pub fn most_tokens(&self) -> (u64, u64) {
        let part = |part: &Part| match part {
            Part::Text(text) => 2 * text.len() as u64,
            Part::Image(_) => IMAGE,
        };
        let schema = self.schema.as_ref();
        let schema = schema.map_or(0, |schema| 2 * schema.value.bytes() as u64);
        let parts = self.messages.iter().flat_map(|message| &message.parts);
        let parts: u64 = parts.map(part).sum();
        let input = SLACK + 2 * self.system.len() as u64 + schema + parts;
        (input, SLACK + 2 * u64::from(self.max_tokens))
    }
}

/// Bounds each count by [`ChatRequest::most_tokens`]. The second value is true if one was bounded.
pub(super) fn bounded(request: &ChatRequest, usage: BilledTokens) -> (BilledTokens, bool) {
    let (input, output) = request.most_tokens();
    let bounded = BilledTokens {
        input: usage.input.min(input),
        cache_read: usage.cache_read.min(input),
        cache_write: usage.cache_write.min(input),
        output: usage.output.min(output),
        thinking: usage.thinking.min(output),
    };
    (bounded, bounded != usage)
}

/// Returns the usage if it can be that of a text: none of it was read or written without tokens.
pub(super) fn of_text(usage: BilledTokens, text: &str) -> Option<BilledTokens> {
    let has_input = usage.input + usage.cache_read + usage.cache_write > 0;
    (has_input && (usage.output > 0 || text.is_empty())).then_some(usage)
}

/// Adds the counts of a later event of a stream. Counts are cumulative: one that is missing, null or
/// smaller takes nothing back. One that is invalid is kept, so that the usage is unknown.
pub(super) fn merge(counts: &mut Value, later: Value) {
    match (counts, later) {
        (Value::Object(counts), Value::Object(later)) => {
            for (name, count) in later {
                merge(counts.entry(name).or_insert(Value::Null), count);
            }
        }
        (counts, later) => {
            let count = later.as_u64();
            if !later.is_null() && (count.is_none() || count >= counts.as_u64()) {
                *counts = later;
            }
        }
    }
}

/// Returns a count that the provider always reports.
pub(super) fn required(usage: &Value, name: &str) -> Option<u64> {
    let count = usage.get(name)?;
    // A number may be too large for a 64-bit integer.
    let is_huge = count.as_f64().is_some_and(|count| count >= MAX as f64);
    if is_huge { Some(MAX) } else { count.as_u64() }
}

/// Returns a count of the details `of`, like [`optional`].
pub(super) fn detail(usage: &Value, of: &str, name: &str) -> Option<u64> {
    let details = usage.get(of).filter(|details| !details.is_null());
    details.map_or(Some(0), |details| optional(details, name))
}

/// Returns a count that is 0 if absent or null, and `None` if it is invalid.
pub(super) fn optional(usage: &Value, name: &str) -> Option<u64> {
    match usage.get(name) {
        None | Some(Value::Null) => Some(0),
        Some(_) => required(usage, name),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_usage_beyond_its_request_is_bounded_and_an_honest_one_stays() {
        let request = ChatRequest {
            system: "s".repeat(1000).into(),
            messages: vec![],
            max_tokens: 1000,
            ..ChatRequest::sample()
        };
        let honest = BilledTokens {
            input: 2000,
            output: 3000,
            thinking: 2500,
            ..BilledTokens::default()
        };
        assert_eq!(bounded(&request, honest), (honest, false));
        let absurd = BilledTokens {
            input: MAX,
            cache_write: MAX,
            output: MAX,
            ..BilledTokens::default()
        };
        let most = BilledTokens {
            input: 102_000,
            cache_write: 102_000,
            output: 102_000,
            ..BilledTokens::default()
        };
        assert_eq!(bounded(&request, absurd), (most, true));
    }

    #[test]
    fn counts_of_a_stream_only_grow() {
        let mut counts = json!({ "input_tokens": 9, "cache": { "read": 7 }, "tier": null });
        merge(
            &mut counts,
            json!({ "input_tokens": 0, "output_tokens": 5, "cache": { "read": null }, "tier": "a" }),
        );
        merge(&mut counts, Value::Null);
        let mut broken = counts.clone();
        merge(&mut broken, json!({ "output_tokens": -1 }));
        assert_eq!(broken["output_tokens"], -1);
        let expected =
            json!({ "input_tokens": 9, "output_tokens": 5, "cache": { "read": 7 }, "tier": "a" });
        assert_eq!(counts, expected);
    }

    #[test]
    fn no_text_is_read_or_written_without_tokens() {
        let usage = |input, cache_read, output| BilledTokens {
            input,
            cache_read,
            output,
            ..BilledTokens::default()
        };
        for (usage, text, can_be) in [
            (usage(9, 0, 1), "4", true),
            (usage(0, 9, 1), "4", true),
            (usage(9, 0, 0), "", true),
            (usage(9, 0, 0), "4", false),
            (usage(0, 0, 1), "4", false),
        ] {
            assert_eq!(of_text(usage, text).is_some(), can_be, "{usage:?}");
        }
    }

    #[test]
    fn too_large_a_count_is_a_bill_and_a_broken_one_is_unknown() {
        let read = |count: Value| required(&json!({ "n": count }), "n");
        let counts = [
            json!(0),
            json!(7),
            json!(5_000_000_000_u64),
            json!(u64::MAX),
            json!(1e30),
        ];
        let expected = [0, 7, MAX, MAX, MAX];
        assert_eq!(counts.map(read), expected.map(Some));
        let broken = json!([-1, -1e30, 1.5, "9", null, []]);
        for count in broken.as_array().unwrap() {
            assert_eq!(read(count.clone()), None, "{count}");
        }
        assert_eq!(optional(&json!({}), "n"), Some(0));
        assert_eq!(optional(&json!({ "n": -1 }), "n"), None);
    }
}

//! Prices of language models and the settings that their APIs accept. The figures come from data
//! files.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Usd;

/// How a model is made to write JSON.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StructuredOutput {
    /// The provider's own schema constraint, in the form that the model is known to take.
    #[default]
    Auto,
    /// Always the provider's schema constraint.
    Native,
    /// Anthropic: a forced tool call.
    Tool,
    /// Chat Completions: `json_object` mode, the schema in the prompt only.
    JsonObject,
    /// Only the prompt asks for JSON.
    None,
}

/// How much a model may think before it answers. Thinking counts towards output limit and bill.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
#[derive(strum::Display, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case", const_into_str)]
pub enum Effort {
    /// No thinking at all.
    None,
    Low,
    Medium,
    High,
}

impl Effort {
    /// Returns the share of an output limit that is reserved for thinking, in percent. OpenRouter
    /// converts an effort into a token budget with 20, 50 and 80; low has a margin here.
    const fn share(self) -> u32 {
        match self {
            Effort::None => 0,
            Effort::Low => 33,
            Effort::Medium => 50,
            Effort::High => 80,
        }
    }

    /// Returns the tokens that an output limit leaves for the answer after thinking.
    pub fn visible_in(self, limit: u32) -> u32 {
        let visible = u64::from(limit) * u64::from(100 - self.share()) / 100;
        u32::try_from(visible).unwrap_or(u32::MAX)
    }

    /// Returns the output limit in tokens that leaves room for `visible` tokens after thinking.
    pub fn limit_for(self, visible: u32) -> u32 {
        let limit = u64::from(visible) * 100 / u64::from(100 - self.share());
        u32::try_from(limit).unwrap_or(u32::MAX)
    }
}

/// Why a model stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallStop {
    End,
    /// Cut at `max_tokens`.
    MaxTokens,
    /// The model or the provider's filter declined.
    Refusal,
    Other,
}

/// Whether another attempt is useful, and the minimum delay before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Retryable {
    No,
    AfterMs(u64),
}

/// When a model's API takes a setting.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Takes {
    #[default]
    Always,
    /// Only in a call in which the model does not think.
    WithoutThinking,
    Never,
}

impl Takes {
    fn when(self, thinks: bool) -> bool {
        match self {
            Takes::Always => true,
            Takes::WithoutThinking => !thinks,
            Takes::Never => false,
        }
    }
}

/// The settings that a model's API accepts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Traits {
    /// The accepted efforts, ascending. Empty if there is no such setting. `None` if the model is
    /// unknown; then the configured effort is sent.
    pub effort: Option<Vec<Effort>>,
    pub temperature: Takes,
    /// When the model can be forced to call one tool.
    pub forced_tool: Takes,
    /// True if the provider can enforce a JSON schema on the output.
    pub structured_output: bool,
    /// Its largest output limit in tokens; `None` if unknown.
    pub max_output: Option<u32>,
}

impl Traits {
    /// Returns the traits of a model that no data file describes: every setting is sent as
    /// configured.
    pub fn unknown() -> Self {
        Self {
            structured_output: true,
            ..Self::default()
        }
    }

    /// Returns the effort to send: the lowest accepted one that is not below `wanted`, else the
    /// highest. Without `wanted` it is the lowest. `None` means that the setting is not sent.
    pub fn effort(&self, wanted: Option<Effort>) -> Option<Effort> {
        let Some(accepted) = &self.effort else {
            return wanted;
        };
        let wanted = wanted.unwrap_or(Effort::None);
        accepted
            .iter()
            .find(|effort| **effort >= wanted)
            .or(accepted.last())
            .copied()
    }

    /// Returns the settings of a call with this effort.
    pub fn settings(&self, effort: Option<Effort>, temperature: Option<f32>) -> Settings {
        let thinks = effort.is_some_and(|effort| effort != Effort::None);
        Settings {
            effort,
            temperature: temperature.filter(|_| self.temperature.when(thinks)),
            forced_tool: self.forced_tool.when(thinks),
            structured_output: self.structured_output,
        }
    }
}

/// Settings of a call that depend on the model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// `None` if the setting is not sent.
    pub effort: Option<Effort>,
    pub temperature: Option<f32>,
    /// True if the call may force one tool.
    pub forced_tool: bool,
    pub structured_output: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Traits::unknown().settings(None, None)
    }
}

/// A model's price in US dollars per million tokens. Thinking is billed as output.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Price {
    pub rate: Rate,
    /// Other rates for the whole request, above a number of input tokens.
    pub long: Option<LongContext>,
}

/// US dollars per million tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rate {
    pub input: f64,
    pub output: f64,
    pub cache_read: f64,
    pub cache_write: f64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LongContext {
    /// The rates apply to requests with more input tokens than this.
    pub above: u64,
    pub rate: Rate,
}

impl Rate {
    /// Default price of a cache write, as a multiple of the input price. Anthropic (5 minutes) and
    /// OpenAI (since GPT-5.6) charge this.
    const CACHE_WRITE: f64 = 1.25;

    /// Missing cache prices get an upper bound: a read costs as much as input, a write 1.25 times
    /// that.
    pub fn new(input: f64, output: f64, cache_read: Option<f64>, cache_write: Option<f64>) -> Self {
        Self {
            input,
            output,
            cache_read: cache_read.unwrap_or(input),
            cache_write: cache_write.unwrap_or(Self::CACHE_WRITE * input),
        }
    }

    /// Returns the higher price of each kind.
    pub fn at_least(self, other: Self) -> Self {
        Self {
            input: self.input.max(other.input),
            output: self.output.max(other.output),
            cache_read: self.cache_read.max(other.cache_read),
            cache_write: self.cache_write.max(other.cache_write),
        }
    }

    pub const FREE: Rate = Rate {
        input: 0.0,
        output: 0.0,
        cache_read: 0.0,
        cache_write: 0.0,
    };
}

impl Price {
    pub const FREE: Price = Price {
        rate: Rate::FREE,
        long: None,
    };

    fn at(self, input_tokens: u64) -> Rate {
        self.long
            .filter(|long| input_tokens > long.above)
            .map_or(self.rate, |long| long.rate)
    }

    /// Returns the highest possible cost of a call. Of its input, `cacheable` tokens may be written
    /// to a cache, and `plain` tokens not.
    pub fn worst(self, cacheable: u64, plain: u64, output: u64) -> Usd {
        let at = |rate: Rate| {
            Usd::for_tokens(cacheable, rate.input.max(rate.cache_write))
                + Usd::for_tokens(plain, rate.input)
                + Usd::for_tokens(output, rate.output)
        };
        at(self.rate).max(at(self.at(cacheable.saturating_add(plain))))
    }

    /// Returns the cost of the billed tokens.
    pub fn cost(self, usage: &BilledTokens) -> Usd {
        let rate = self.at(usage.all_input());
        Usd::for_tokens(usage.input, rate.input)
            + Usd::for_tokens(usage.cache_read, rate.cache_read)
            + Usd::for_tokens(usage.cache_write, rate.cache_write)
            + Usd::for_tokens(usage.output, rate.output)
    }
}

/// Billed tokens. The kinds of input do not overlap: `input` excludes cache reads and cache writes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BilledTokens {
    pub input: u64,
    pub cache_read: u64,
    pub cache_write: u64,
    /// Includes thinking.
    pub output: u64,
    /// The thinking part of the output, if the provider reports it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub thinking: u64,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl BilledTokens {
    pub fn all_input(&self) -> u64 {
        self.input
            .saturating_add(self.cache_read)
            .saturating_add(self.cache_write)
    }
}

/// Returns the id without a date (`-20250929`, `-2026-03-05`) or `-latest` at its end.
pub fn undated(id: &str) -> &str {
    let digits = |text: &str, count: usize| {
        text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit())
    };
    let Some((family, tail)) = id.rsplit_once('-') else {
        return id;
    };
    if tail == "latest" || digits(tail, 8) {
        return family;
    }
    let date = family.rsplit_once('-').and_then(|(rest, month)| {
        let (family, year) = rest.rsplit_once('-')?;
        (digits(tail, 2) && digits(month, 2) && digits(year, 4)).then_some(family)
    });
    date.unwrap_or(id)
}

/// True if a provider used the requested model. Ignores dates, vendor prefixes and routing variants
/// in both ids. Also true if the provider names no model.
pub fn is_same_model(asked: &str, served: &str) -> bool {
    fn plain(id: &str) -> String {
        let id = id.trim().rsplit('/').next().unwrap_or(id);
        let id = id.to_lowercase().replace('.', "-");
        let mut variants = ROUTING_VARIANTS.iter();
        let variant = variants.find_map(|variant| id.strip_suffix(variant));
        undated(variant.unwrap_or(&id)).to_owned()
    }
    served == asked || served.trim().is_empty() || plain(asked) == plain(served)
}

/// Suffixes with which OpenRouter selects a routing. Any other text after a colon names another
/// model.
const ROUTING_VARIANTS: [&str; 5] = [":free", ":nitro", ":floor", ":online", ":exacto"];

#[cfg(test)]
mod tests {
    use super::*;

    fn accepting(effort: &[Effort]) -> Traits {
        Traits {
            effort: Some(effort.to_vec()),
            ..Traits::unknown()
        }
    }

    #[test]
    fn the_effort_sent_is_the_nearest_that_the_model_accepts() {
        use Effort::{High, Low, Medium, None as No};
        let cases = [
            (accepting(&[Low, Medium, High]), Some(No), Some(Low)),
            (accepting(&[Low, Medium, High]), None, Some(Low)),
            (accepting(&[No, Low]), Some(High), Some(Low)),
            (accepting(&[No, Low, High]), Some(Medium), Some(High)),
            (accepting(&[]), Some(High), None),
            (Traits::unknown(), Some(Medium), Some(Medium)),
            (Traits::unknown(), None, None),
        ];
        for (traits, wanted, expected) in cases {
            assert_eq!(traits.effort(wanted), expected, "{traits:?} {wanted:?}");
        }
    }

    #[test]
    fn what_a_thinking_model_refuses_is_left_out_while_it_thinks() {
        let traits = Traits {
            temperature: Takes::WithoutThinking,
            forced_tool: Takes::Never,
            ..Traits::unknown()
        };
        for (effort, temperature) in [(Effort::Low, None), (Effort::None, Some(0.2))] {
            let settings = traits.settings(Some(effort), Some(0.2));
            assert_eq!(
                (settings.temperature, settings.forced_tool),
                (temperature, false)
            );
        }
    }

    #[test]
    fn a_limit_leaves_room_for_the_answer_behind_the_thinking() {
        for effort in [Effort::None, Effort::Low, Effort::Medium, Effort::High] {
            let limit = effort.limit_for(700);
            assert!(
                limit - limit * effort.share() / 100 >= 700,
                "{effort}: {limit}"
            );
        }
        assert_eq!(Effort::None.limit_for(700), 700);
    }

    #[test]
    fn a_long_request_is_priced_as_a_whole_at_its_own_rates() {
        let long = LongContext {
            above: 100,
            rate: Rate::new(5.0, 50.0, None, None),
        };
        let price = Price {
            rate: Rate::new(1.0, 10.0, Some(0.1), None),
            long: Some(long),
        };
        let tokens = |input, cache_read| BilledTokens {
            input,
            cache_read,
            output: 10,
            ..BilledTokens::default()
        };
        for (cost, nanos) in [
            (price.cost(&tokens(100, 0)), 100_000 + 100_000),
            (price.cost(&tokens(100, 1)), 500_000 + 5_000 + 500_000),
            (price.worst(1, 100, 10), 6250 + 500_000 + 500_000),
        ] {
            assert_eq!(cost.nanos(), nanos);
        }
    }

    #[test]
    fn the_worst_case_holds_whatever_part_of_the_input_is_cached() {
        let price = Price {
            rate: Rate::new(2.0, 10.0, Some(0.2), None),
            long: None,
        };
        let worst = price.worst(1000, 0, 50);
        for (input, cache_read, cache_write) in
            [(1000, 0, 0), (0, 0, 1000), (0, 1000, 0), (400, 300, 300)]
        {
            let usage = BilledTokens {
                input,
                cache_read,
                cache_write,
                output: 50,
                thinking: 50,
            };
            assert!(price.cost(&usage) <= worst, "{usage:?}");
        }
    }

    #[test]
    fn a_dated_id_is_the_same_model() {
        for (id, expected) in [
            ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5"),
            ("gpt-5.4-2026-03-05", "gpt-5.4"),
            ("claude-3-7-sonnet-latest", "claude-3-7-sonnet"),
            ("gpt-6.1-sol", "gpt-6.1-sol"),
            ("o3-2026", "o3-2026"),
            ("model", "model"),
        ] {
            assert_eq!(undated(id), expected);
        }
    }

    #[test]
    fn another_model_in_the_place_of_the_one_asked_for_is_told() {
        for (asked, served, same) in [
            ("gpt-6-luna", "gpt-6-luna-2026-09-01", true),
            (
                "anthropic/claude-haiku-5.5",
                "claude-haiku-5-5-20260801",
                true,
            ),
            ("qwen3.5:9b", "qwen3.5:9b", true),
            ("gemma4:e4b", "gemma4:e2b", false),
            ("openai/gpt-6-luna:nitro", "gpt-6-luna", true),
            ("gpt-6-luna", "", true),
            ("claude-opus-5-5", "claude-haiku-5-5", false),
            ("gpt-6.1-sol", "gpt-6-luna", false),
            ("grok-4.6", "grok-4.3", false),
        ] {
            assert_eq!(is_same_model(asked, served), same, "{asked} {served}");
        }
    }
}

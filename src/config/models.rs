//! What is known of each model: prices, what its API accepts, and when it retires. The figures are
//! in `models.json`, each line with the day of its check. `modelData` in the config extends and
//! overrides them.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use jiff::civil::Date;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::domain::{Effort, LongContext, Price, Rate, Takes, Traits, undated};

const SHIPPED: &str = include_str!("models.json");

/// A model that retires within this number of days causes a warning.
pub const RETIREMENT_WARNING_DAYS: i32 = 60;

/// What is known of a model. In the config every field that is given overrides the shipped one.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ModelData {
    /// US dollars per million tokens.
    #[schemars(range(min = 0.0))]
    pub input: Option<f64>,
    /// US dollars per million tokens, thinking included.
    #[schemars(range(min = 0.0))]
    pub output: Option<f64>,
    /// US dollars per million input tokens that the provider had cached; default: as input.
    #[schemars(range(min = 0.0))]
    pub cache_read: Option<f64>,
    /// US dollars per million input tokens that the provider wrote into its cache; default: 1.25
    /// times input.
    #[schemars(range(min = 0.0))]
    pub cache_write: Option<f64>,
    /// Other prices for the whole request, where it has more input tokens than `above`.
    pub long_context: Option<LongContextData>,
    /// The efforts that the model accepts, of none, low, medium and high; an empty list: it has no
    /// such setting.
    #[schemars(with = "Option<Vec<Effort>>")]
    pub effort: Option<Vec<Option<Effort>>>,
    /// When the API takes a temperature: always, without_thinking or never.
    pub temperature: Option<Takes>,
    /// When the API takes a forced call of one tool.
    pub forced_tool: Option<Takes>,
    /// Whether the provider can hold the output to a JSON schema.
    pub structured_output: Option<bool>,
    /// Tokens of input and output together.
    pub context: Option<u32>,
    /// The largest output limit in tokens.
    pub max_output: Option<u32>,
    /// The day on which the model stops answering.
    #[schemars(with = "Option<String>", regex(pattern = r"^\d{4}-\d\d-\d\d$"))]
    pub retires: Option<Date>,
    /// The day on which these figures were compared with the vendor's.
    #[schemars(with = "Option<String>", regex(pattern = r"^\d{4}-\d\d-\d\d$"))]
    pub checked: Option<Date>,
}

/// Prices of a long request, in US dollars per million tokens.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LongContextData {
    pub above: u64,
    #[schemars(range(min = 0.0))]
    pub input: f64,
    #[schemars(range(min = 0.0))]
    pub output: f64,
    #[schemars(range(min = 0.0))]
    pub cache_read: Option<f64>,
    #[schemars(range(min = 0.0))]
    pub cache_write: Option<f64>,
}

impl ModelData {
    /// Returns these figures, with those of `base` where this has none.
    fn over(&self, base: &ModelData) -> ModelData {
        ModelData {
            input: self.input.or(base.input),
            output: self.output.or(base.output),
            cache_read: self.cache_read.or(base.cache_read),
            cache_write: self.cache_write.or(base.cache_write),
            long_context: self
                .long_context
                .clone()
                .or_else(|| base.long_context.clone()),
            effort: self.effort.clone().or_else(|| base.effort.clone()),
            temperature: self.temperature.or(base.temperature),
            forced_tool: self.forced_tool.or(base.forced_tool),
            structured_output: self.structured_output.or(base.structured_output),
            context: self.context.or(base.context),
            max_output: self.max_output.or(base.max_output),
            retires: self.retires.or(base.retires),
            checked: self.checked.or(base.checked),
        }
    }

    /// Returns `None` if input or output has no price.
    pub fn price(&self) -> Option<Price> {
        let rate = Rate::new(self.input?, self.output?, self.cache_read, self.cache_write);
        let long = self.long(rate);
        Some(Price { rate, long })
    }

    /// Returns the price of a long request beside this rate for a short one: it costs no less.
    pub(super) fn long(&self, rate: Rate) -> Option<LongContext> {
        let long = self.long_context.as_ref()?;
        let own = Rate::new(long.input, long.output, long.cache_read, long.cache_write);
        Some(LongContext {
            above: long.above,
            rate: own.at_least(rate),
        })
    }

    pub fn traits(&self) -> Traits {
        // An invalid entry was removed from the file and reported.
        let effort = self.effort.as_ref().map(|effort| {
            let mut effort: Vec<Effort> = effort.iter().copied().flatten().collect();
            effort.sort_unstable();
            effort
        });
        Traits {
            effort,
            temperature: self.temperature.unwrap_or_default(),
            forced_tool: self.forced_tool.unwrap_or_default(),
            structured_output: self.structured_output.unwrap_or(true),
            max_output: self.max_output,
        }
    }
}

/// Returns the shipped data, by model id.
pub fn shipped() -> &'static BTreeMap<String, ModelData> {
    // A test checks that the file can be parsed. Otherwise no model would be known, and none would
    // have a price.
    static MODELS: LazyLock<BTreeMap<String, ModelData>> =
        LazyLock::new(|| serde_json::from_str(SHIPPED).unwrap_or_default());
    &MODELS
}

/// Returns what is known of a model id, or of the same id without a date or `latest` at its end.
pub(super) fn known(id: &str, overrides: &BTreeMap<String, ModelData>) -> Option<ModelData> {
    [id, undated(id)]
        .into_iter()
        .find_map(|id| match (overrides.get(id), shipped().get(id)) {
            (Some(own), Some(base)) => Some(own.over(base)),
            (Some(own), None) => Some(own.clone()),
            (None, base) => base.cloned(),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shipped_line_is_whole() {
        let read: BTreeMap<String, ModelData> = serde_json::from_str(SHIPPED).unwrap();
        assert!(read.len() > 30, "{}", read.len());
        for (id, data) in read {
            let is_known = data.price().is_some() && data.checked.is_some();
            let takes = (data.effort, data.temperature, data.forced_tool);
            assert!(
                is_known && matches!(takes, (Some(_), Some(_), Some(_))),
                "{id}"
            );
        }
    }

    #[test]
    fn the_config_overrides_field_by_field() {
        let own = ModelData {
            input: Some(7.0),
            ..ModelData::default()
        };
        let overrides = BTreeMap::from([("claude-haiku-5-5".to_owned(), own)]);
        let known = known("claude-haiku-5-5", &overrides).unwrap();
        assert_eq!((known.input, known.output), (Some(7.0), Some(0.5)));
        let long = known.price().unwrap().long.unwrap().rate;
        assert_eq!((long.input, long.output), (7.0, 2.5), "none costs less");
        assert_eq!((long.cache_read, long.cache_write), (0.05, 0.625));
        assert_eq!(known.effort.map(|efforts| efforts.len()), Some(4));
    }
}

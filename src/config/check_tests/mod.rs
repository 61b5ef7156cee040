//! Every mistake is one problem, and no mistake hides another.

mod action_policy;
mod environment;
mod mistakes;
mod shipped;

use serde_json::{Value, json};

use super::*;

const SHIPPED: &str = include_str!("../../../llm.config.json");
const LOCAL: &str = include_str!("../../../llm.config.local.json");

fn env(variables: &[(&str, &str)]) -> Env {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    Env::of(variables.iter().map(owned))
}

/// Checks the shipped config, with some values changed and a key set.
fn loaded(changes: &[(&str, Value)], variables: &[(&str, &str)]) -> Result<Config, Problems> {
    let mut value: Value = serde_json::from_str(SHIPPED).unwrap();
    for (pointer, new) in changes {
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        value.pointer_mut(parent).unwrap()[key] = new.clone();
    }
    let variables = [&[("ANTHROPIC_API_KEY", "k")], variables].concat();
    from_text(&value.to_string(), &env(&variables))
}

fn places(result: Result<Config, Problems>) -> Vec<String> {
    let problems = result.err().into_iter().flat_map(|problems| problems.0);
    problems.map(|problem| problem.place).collect()
}

/// Returns the places of the problems of [`loaded`].
fn places_with(changes: &[(&str, Value)], variables: &[(&str, &str)]) -> Vec<String> {
    places(loaded(changes, variables))
}

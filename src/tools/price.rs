//! Quotes a plan before it is asked for.

use serde_json::Value;
use tokio::time::Instant;

use super::{explain, planner_input, propose};
use crate::committee::{Deps, Failure, Length, Quote, single_call_price};
use crate::domain::{EvidenceFocus, Usd};

/// The usual length of all outputs of a plan's steps, in characters.
const USUAL_OUTPUT_CHARS: usize = 2_000;

/// Quotes a plan with the explanation of one execution of all its steps. `cap` is that of each of
/// the two. The calls are 0 if it has no room for the plan.
///
/// # Errors
/// [`Failure`] if a prompt cannot be rendered.
pub fn quote(
    deps: &Deps,
    request: &str,
    focus: &EvidenceFocus,
    evidence: &Value,
    cap: Usd,
) -> Result<Quote, Failure> {
    // No call is made, so its time does not matter.
    let now = Instant::now();
    let asked = planner_input::input(request, focus, evidence);
    let plan = |length| single_call_price(deps, &propose::single_call(&asked, now), length);
    let explanation = |chars: usize, length| {
        let asked = explain::input(request, &[], evidence) + &"x".repeat(chars);
        single_call_price(deps, &explain::single_call(&asked, now), length)
    };
    let least = plan(Length::Least)?;
    let (mut expected, mut worst, mut calls) = (least, least, 0);
    if least <= cap {
        let longest = explanation(explain::MAX_OUTPUT_CHARS, Length::Full)?;
        let usual = explanation(USUAL_OUTPUT_CHARS, Length::Usual)?;
        expected = plan(Length::Usual)?.min(cap) + usual.min(cap);
        // A malformed plan is repaired, which may take what is left, and a rejected explanation is
        // restated once.
        worst = cap + (longest + longest).min(cap);
        calls = 2;
    }
    Ok(Quote {
        cap,
        expected,
        worst,
        calls,
    })
}

//! Quotes a plan before it is asked for.

use serde_json::Value;
use tokio::time::Instant;

use super::{explain, propose};
use crate::committee::{Deps, Failure, Length, Quote, consultation_price};
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
    (focus, evidence): (&EvidenceFocus, &Value),
    cap: Usd,
) -> Result<Quote, Failure> {
    let asked = propose::input(request, focus, evidence);
    let plan = |length| consultation_price(deps, propose::consultation(&asked, now()), length);
    let explanation = |chars: usize, length| {
        let outputs = "x".repeat(chars);
        let asked = explain::input(request, &[], evidence) + &outputs;
        consultation_price(deps, explain::consultation(&asked, now()), length)
    };
    let least = plan(Length::Least)?;
    if least > cap {
        return Ok(Quote {
            cap,
            expected: least,
            worst: least,
            calls: 0,
        });
    }
    let explained = explanation(USUAL_OUTPUT_CHARS, Length::Usual)?.min(cap);
    let longest = explanation(explain::MAX_OUTPUT_CHARS, Length::Full)?;
    // A rejected explanation is restated once.
    let restated = (longest + longest).min(cap);
    Ok(Quote {
        cap,
        expected: plan(Length::Usual)?.min(cap) + explained,
        worst: plan(Length::Full)?.min(cap) + restated,
        calls: 2,
    })
}

/// No call is made, so its time does not matter.
fn now() -> Instant {
    Instant::now()
}

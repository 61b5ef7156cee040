//! `POST /api/quote`: the price of a question before it is asked.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use schemars::JsonSchema;
use serde::Serialize;

use super::chat::SHAPE;
use crate::app::App;
use crate::committee::Quote;
use crate::http::body::read;
use crate::http::error::Problem;
use crate::http::problem_kind::Kind;

/// The price of a question, or of a plan with one execution.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Quote", deny_unknown_fields)]
pub(in crate::http) struct QuoteBody {
    /// The most that a run of this mode may cost. A plan may cost it, and so may each execution.
    #[schemars(range(min = 0))]
    cap_usd: f64,
    /// The expected calls at usual lengths. Of a question: a plan, the core agents in one round, a
    /// cross-check and a synthesis. Of a plan of tool calls: the plan and the explanation.
    #[schemars(range(min = 0))]
    expected_usd: f64,
    /// All calls that may be made, at full length; never above the caps of the runs. Retries after a
    /// failure of a provider come on top, inside the caps.
    #[schemars(range(min = 0))]
    worst_usd: f64,
    /// The number of expected calls.
    calls: usize,
}

/// Quotes the price of a chat body. No call is made and nothing is stored.
pub(in crate::http) async fn post(
    State(app): State<Arc<App>>,
    request: Request,
) -> Result<Json<QuoteBody>, Problem> {
    let (_, input) = read(&app, request, &SHAPE).await?;
    priced(app.quote(&app.chat_request(input)?))
}

/// Returns the answer with a price; a problem if the cap has no room.
pub(super) fn priced(quote: Quote) -> Result<Json<QuoteBody>, Problem> {
    if let Some(why) = quote.refusal() {
        return Err(Problem::new(Kind::OverBudget, why));
    }
    Ok(Json(QuoteBody {
        cap_usd: quote.cap.dollars(),
        expected_usd: quote.expected.dollars(),
        worst_usd: quote.worst.dollars(),
        calls: quote.calls,
    }))
}

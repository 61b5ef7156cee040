//! `POST /api/runs/{id}/feedback`: records what a reader thinks of a reply.

use std::sync::{Arc, LazyLock};

use axum::Json;
use axum::extract::{Request, State};
use jsonschema::Validator;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::runs::{Id, parse};
use crate::app::{App, FeedbackRefused, FieldProblem, Rejected};
use crate::http::body::{read, shape};
use crate::http::error::Problem;

/// What a reader thinks of a reply.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Feedback")]
pub(in crate::http) struct FeedbackBody {
    /// Whether the reply was right and useful.
    positive: bool,
    /// Why.
    #[schemars(length(max = 2000))]
    comment: Option<String>,
}

/// Feedback as it was noted.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "NotedFeedback", deny_unknown_fields)]
pub(in crate::http) struct NotedBody {
    #[schemars(schema_with = "super::shapes::run_id")]
    run_id: String,
    /// From 1: each is kept, the last one counts.
    number: u32,
    positive: bool,
    comment: Option<String>,
    /// The learned answer that this made or changed; null if none.
    learned: Option<LearnedBody>,
}

/// A learned answer after feedback.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "LearnedAnswer", deny_unknown_fields)]
pub(in crate::http) struct LearnedBody {
    /// The run that gave the answer.
    #[schemars(schema_with = "super::shapes::run_id")]
    run_id: String,
    /// How far it is trusted now.
    #[schemars(range(min = 0, max = 1))]
    confidence: f64,
}

static SHAPE: LazyLock<Option<Validator>> = LazyLock::new(shape::<FeedbackBody>);

pub(in crate::http) async fn post(
    State(app): State<Arc<App>>,
    id: Id,
    request: Request,
) -> Result<Json<NotedBody>, Problem> {
    let run = parse(id)?;
    let (_, said) = read::<FeedbackBody>(&app, request, &SHAPE).await?;
    let comment = said.comment.as_deref();
    match app.feedback(run, said.positive, comment).await {
        Ok(noted) => Ok(Json(NotedBody {
            run_id: run.to_string(),
            number: noted.feedback.number,
            positive: noted.feedback.positive,
            comment: noted.feedback.comment,
            learned: noted.learned.map(|(run, learned)| LearnedBody {
                run_id: run.to_string(),
                confidence: learned.confidence,
            }),
        })),
        Err(FeedbackRefused::Unknown) => Err(Problem::no_such_run()),
        Err(
            refused @ (FeedbackRefused::NoReply(_)
            | FeedbackRefused::NoChat(_)
            | FeedbackRefused::TooOften),
        ) => Err(Problem::conflict(refused.to_string()).of(run)),
        Err(refused @ FeedbackRefused::TooLong(_)) => {
            let problem = FieldProblem::new("/comment", refused.to_string());
            Err(Rejected::Invalid(vec![problem]).into())
        }
        Err(FeedbackRefused::Journal(error)) => Err(error.into()),
    }
}

//! How runs end: from the result of their work, or because they cannot be executed.

use tokio::time::Instant;

use crate::committee::Failure;
use crate::domain::Usd;
use crate::journal::{self, Cause, Ending, Stop};

/// Returns the ending of a run from the result of its work.
pub(super) fn ending(worked: Result<Ending, Failure>, overbilled: bool) -> Result<Ending, Stop> {
    Ok(match worked {
        Ok(ending) => ending,
        // The budget is used up because of the provider, not because of the question.
        Err(Failure::Failed {
            cause: Cause::Budget,
            ..
        }) if overbilled => {
            let detail =
                "the provider billed more than the most that was reserved for a call".to_owned();
            Ending::Failed {
                cause: Cause::Provider,
                detail,
            }
        }
        Err(Failure::Failed { cause, detail }) => Ending::Failed { cause, detail },
        Err(Failure::Stopped(Stop::Cancelled)) => Ending::Cancelled,
        Err(Failure::Stopped(Stop::Store(journal::Error::Unwritable(detail)))) => internal(detail),
        Err(Failure::Stopped(stop)) => return Err(stop),
    })
}

pub(super) fn internal(detail: String) -> Ending {
    Ending::Failed {
        cause: Cause::Internal,
        detail,
    }
}

pub(super) fn log_ending(ending: &Ending, spent: Usd, started: Instant) {
    let took_ms = started.elapsed().as_millis();
    match ending {
        Ending::Replied { reply } => {
            let outcome = reply.outcome.into_str();
            tracing::info!(outcome, c_final = reply.meta.c_final, %spent, took_ms, "the run has its reply");
        }
        Ending::Failed { cause, detail } => {
            tracing::warn!(cause = cause.into_str(), detail, %spent, took_ms, "the run failed");
        }
        Ending::Cancelled => tracing::info!(%spent, took_ms, "the run was cancelled"),
        Ending::Acted { .. } => {}
    }
}

//! A request's body, whole, within its bounds of size and time.

use std::time::Duration;

use axum::body::{Body, Bytes};

use super::error::Problem;
use crate::config::Limits;

/// Reads all of a body.
///
/// # Errors
/// 413 when it is too large, 408 when it does not arrive in time or its connection breaks.
pub(super) async fn whole(body: Body, limits: &Limits) -> Result<Bytes, Problem> {
    let most = limits.body_bytes;
    let read = axum::body::to_bytes(body, most);
    match tokio::time::timeout(Duration::from_secs(limits.body_seconds), read).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(error)) if is_too_long(&error) => Err(Problem::too_large(most)),
        Ok(Err(_)) | Err(_) => Err(Problem::too_slow()),
    }
}

fn is_too_long(error: &axum::Error) -> bool {
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        if error.is::<http_body_util::LengthLimitError>() {
            return true;
        }
        cause = error.source();
    }
    false
}

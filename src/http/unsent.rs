//! Limits the bytes of the responses that wait for their clients. If clients do not read, other
//! clients get a 503, and the process does not run out of memory.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::http::HeaderMap;
use axum::http::header::{CONTENT_ENCODING, CONTENT_LENGTH, LOCATION};
use axum::response::{IntoResponse as _, Response};
use futures_util::stream::{self, Stream, StreamExt as _};
use hyper::body::Body as _;
use tokio::sync::Semaphore;

use super::error::Problem;
use super::problem_kind::Kind;
use super::request_id;

/// The total bytes of all responses that wait for their clients.
pub(super) const MAX_UNSENT_BYTES: usize = 64 * 1024 * 1024;

/// Shorter answers are not counted.
const MIN_COUNTED: u64 = 4 * 1024;

/// The size of the chunks that are passed to the connection.
const CHUNK: usize = 16 * 1024;

/// The budget of bytes for responses that wait.
#[derive(Clone)]
pub(super) struct Unsent {
    /// One permit per KiB.
    budget: Arc<Semaphore>,
    permits: u32,
}

impl Unsent {
    pub fn new(bytes: usize) -> Self {
        let permits = u32::try_from(bytes / 1024).unwrap_or(u32::MAX);
        Self {
            budget: Arc::new(Semaphore::new(permits as usize)),
            permits,
        }
    }

    /// Counts a response until its client has read it, or answers with 503 if too many bytes wait.
    /// Event streams have no length and are not counted: they store one event at a time.
    pub fn count(&self, response: Response) -> Response {
        let bytes = response.body().size_hint().exact();
        let Some(bytes) = bytes.filter(|bytes| *bytes >= MIN_COUNTED) else {
            return response;
        };
        // A response larger than the whole budget takes all of it, so it needs that no other
        // response waits.
        let permits = u32::try_from(bytes.div_ceil(1024)).unwrap_or(u32::MAX);
        let budget = Arc::clone(&self.budget);
        let permit = budget.try_acquire_many_owned(permits.min(self.permits));
        let (mut parts, body) = response.into_parts();
        let Ok(permit) = permit else {
            return refused(parts.headers);
        };
        // The stream does not know its length.
        parts.headers.insert(CONTENT_LENGTH, bytes.into());
        let chunks = body.into_data_stream().flat_map(move |data| {
            let _until_sent = &permit;
            chunks(data)
        });
        Response::from_parts(parts, Body::from_stream(chunks))
    }
}

/// Returns data in chunks with memory of their own, so that the connection stores no more of it than
/// it is about to send.
fn chunks(data: Result<Bytes, axum::Error>) -> impl Stream<Item = Result<Bytes, axum::Error>> {
    let mut rest = Some(data);
    stream::iter(std::iter::from_fn(move || {
        let mut data = match rest.take()? {
            Ok(data) => data,
            failed => return Some(failed),
        };
        let chunk = Bytes::copy_from_slice(&data.split_to(data.len().min(CHUNK)));
        rest = (!data.is_empty()).then_some(Ok(data));
        Some(Ok(chunk))
    }))
}

/// Returns the 503 in place of a response with these headers. Those about its body are replaced.
fn refused(mut headers: HeaderMap) -> Response {
    let detail = "too many answers wait for clients that do not read them; this one is kept if it is a run's";
    let build = || Problem::new(Kind::Busy, detail).into_response();
    let id = headers.get(request_id::HEADER);
    let id = id.and_then(|id| id.to_str().ok()).map(str::to_owned);
    let mut refused = match id {
        Some(id) => request_id::with(id, build),
        None => build(),
    };
    for name in [CONTENT_LENGTH, CONTENT_ENCODING, LOCATION] {
        headers.remove(name);
    }
    for (name, value) in refused.headers() {
        headers.insert(name, value.clone());
    }
    *refused.headers_mut() = headers;
    refused
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;
    use serde_json::Value;

    use super::*;

    fn answer(bytes: usize) -> Response {
        Response::new(Body::from(vec![7_u8; bytes]))
    }

    #[tokio::test]
    async fn unread_answers_use_up_the_budget_and_read_ones_give_it_back() {
        let unsent = Unsent::new(256 * 1024);
        let waiting = unsent.count(answer(200 * 1024));
        let mut second = answer(100 * 1024);
        let id = HeaderValue::from_static("req-7");
        second.headers_mut().insert(request_id::HEADER, id);
        let kept = HeaderValue::from_static("no-store");
        second.headers_mut().insert("cache-control", kept);
        let second = unsent.count(second);
        assert_eq!(second.status(), 503);
        assert_eq!(second.headers()["cache-control"], "no-store");
        let body = axum::body::to_bytes(second.into_body(), usize::MAX).await;
        let body: Value = serde_json::from_slice(&body.unwrap()).unwrap();
        assert_eq!(body["requestId"], "req-7");
        let short = unsent.count(answer(1024));
        assert_eq!(short.status(), 200, "a short one is not counted");
        let read = axum::body::to_bytes(waiting.into_body(), usize::MAX).await;
        assert_eq!(read.unwrap(), vec![7_u8; 200 * 1024]);
        // One that is longer than the budget gets all of it.
        let large = unsent.count(answer(1024 * 1024));
        assert_eq!(large.status(), 200);
        drop(large);
        assert_eq!(unsent.count(answer(100 * 1024)).status(), 200);
    }
}

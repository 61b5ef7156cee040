//! Limits the bytes of the responses that wait for their clients. If clients do not read, other
//! clients get a 503, and the process does not run out of memory.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::body::{Body, Bytes};
use axum::http::HeaderMap;
use axum::http::header::{CONTENT_ENCODING, CONTENT_LENGTH, LOCATION};
use axum::response::{IntoResponse as _, Response};
use hyper::body::{Body as _, Frame, SizeHint};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

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
        let (parts, body) = response.into_parts();
        let Ok(permit) = permit else {
            return refused(parts.headers);
        };
        let counted = Counted {
            rest: Bytes::new(),
            body,
            _permit: permit,
        };
        Response::from_parts(parts, Body::new(counted))
    }
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

/// A body in chunks with memory of their own, so that the connection stores no more of it than it
/// is about to send.
struct Counted {
    rest: Bytes,
    body: Body,
    _permit: OwnedSemaphorePermit,
}

impl hyper::body::Body for Counted {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.rest.is_empty() {
            match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => self.rest = data,
                    Err(other) => return Poll::Ready(Some(Ok(other))),
                },
                end => return Poll::Ready(end),
            }
        }
        let length = self.rest.len().min(CHUNK);
        let chunk = Bytes::copy_from_slice(&self.rest.split_to(length));
        if self.rest.is_empty() {
            self.rest = Bytes::new();
        }
        Poll::Ready(Some(Ok(Frame::data(chunk))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let rest = self.rest.len() as u64;
        let inner = self.body.size_hint();
        let mut hint = SizeHint::new();
        hint.set_lower(inner.lower().saturating_add(rest));
        if let Some(upper) = inner.upper() {
            hint.set_upper(upper.saturating_add(rest));
        }
        hint
    }
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

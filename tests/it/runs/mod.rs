//! Tests `/api/runs`, health, streams, limits, and errors.

mod finished;
mod in_flight;
mod quotes;
mod repetitions;
mod requests;

use eventsource_stream::Eventsource as _;
use futures_util::StreamExt as _;
use serde_json::Value;

async fn events(response: reqwest::Response) -> Vec<(String, i64, Value)> {
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let events: Vec<_> = response
        .bytes_stream()
        .eventsource()
        .map(Result::unwrap)
        .collect()
        .await;
    events
        .into_iter()
        .map(|e| {
            (
                e.event,
                e.id.parse().unwrap(),
                serde_json::from_str(&e.data).unwrap(),
            )
        })
        .collect()
}

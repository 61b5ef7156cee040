//! The metrics recorder of the process, in Prometheus text format.

use std::sync::OnceLock;

use metrics::{Unit, describe_counter, describe_gauge, describe_histogram};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};

/// Upper bounds of the time buckets in seconds: from a page served from memory to the longest
/// deadline.
const SECONDS: [f64; 14] = [
    0.001, 0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0,
];

/// Upper bounds of the buckets of c_final; 0.7 is the shipped threshold of the gate.
const CONFIDENCE: [f64; 10] = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0];

/// Every metric with its description. A test compares them with the documented metrics and with
/// those that the source records.
const METRICS: &str = include_str!("metrics.txt");

/// Returns the metrics of the process. They count from its start; earlier events are in the
/// journal.
pub(super) fn metrics() -> Option<&'static PrometheusHandle> {
    static HANDLE: OnceLock<Option<PrometheusHandle>> = OnceLock::new();
    HANDLE
        .get_or_init(|| {
            let builder = PrometheusBuilder::new()
                .set_buckets_for_metric(Matcher::Full("conclave_c_final".into()), &CONFIDENCE)
                .and_then(|builder| {
                    builder.set_buckets_for_metric(Matcher::Suffix("_seconds".into()), &SECONDS)
                });
            let recorder = builder.ok()?.build_recorder();
            let handle = recorder.handle();
            if metrics::set_global_recorder(recorder).is_err() {
                tracing::warn!("a metrics recorder is already installed: /metrics stays empty");
                return None;
            }
            describe();
            Some(handle)
        })
        .as_ref()
}

fn describe() {
    for (name, text) in METRICS.lines().filter_map(|line| line.split_once(": ")) {
        if name.ends_with("_total") {
            describe_counter!(name, text);
        } else if name.ends_with("_seconds") {
            describe_histogram!(name, Unit::Seconds, text);
        } else if name == "conclave_c_final" {
            describe_histogram!(name, text);
        } else {
            describe_gauge!(name, text);
        }
    }
}

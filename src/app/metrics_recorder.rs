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
                tracing::warn!("another recorder of metrics was there first: /metrics stays empty");
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

/// Every metric with its description. A test compares them with the documented metrics and with
/// those that the source records.
const METRICS: &str = "\
conclave_runs_accepted_total: Runs taken on, by mode and source
conclave_runs_total: Runs that ended, by mode and outcome
conclave_calls_total: Model calls that were settled, by provider, model, role and result
conclave_retries_total: Model calls that repeat an earlier attempt
conclave_tokens_total: Billed tokens by kind
conclave_cost_nanodollars_total: What calls are taken to have cost, in 1e-9 US dollars
conclave_obtained_total: How plans, reports and syntheses came out of models' texts
conclave_cross_checks_total: Runs that came to the cross-check, by the calls that gave a result
conclave_cross_check_verdicts_total: Verdicts of cross-checks on key claims
conclave_statuses_total: Scored outputs by agent and status
conclave_broken_rules_total: Rules that a master's reply would have broken: another stood in
conclave_gate_total: Decisions of the gate
conclave_tool_steps_total: Steps of tool plans that ended, by tool and outcome
conclave_left_out_total: Agents and claims that caps left out of the first fit of a plan
conclave_budget_refusals_total: Calls that were not made because the cap had no room
conclave_cap_exceeded_total: Calls for which a provider billed more than was reserved
conclave_usage_bounded_total: Reported usages and costs beyond what their requests can have had
conclave_refused_total: Requests that were not taken on, by reason
conclave_decisions_total: Decisions of a strategy, by path
conclave_speculations_total: First rounds that began before the plan, by whether their reports are used or wasted
conclave_learned_total: Changes of learned answers by feedback
conclave_feedback_total: What readers said of replies
conclave_act_requests_total: Actions by outcome, and by how they were understood
conclave_act_parse_failures_total: Proposals of models that could not be read
conclave_act_accepted_total: Commands that were executed
conclave_act_offered_total: Commands that wait for a person's word
conclave_act_rejected_total: Commands that a gate has stopped
conclave_act_shadow_total: Commands that shadow mode kept from execution
conclave_http_requests_total: Answers by method, route and status
conclave_runs_in_flight: Runs that this process works on or has taken on
conclave_runs_in_flight_limit: How many runs this process takes on at a time
conclave_draining: 1 while the process shuts down
conclave_circuit_open: 1 while a model is spared after failures, 0.5 while it is tried again, else 0
conclave_circuit_openings: How often a model's circuit has opened since the process began
conclave_provider_limit: Calls that a model is given at once; adapts to its refusals and latency
conclave_provider_calls: Calls to a model that are under way
conclave_provider_waiting: Calls that wait for a model's limit, or for its provider's
conclave_build_info: 1, with the version as a label
conclave_run_seconds: Time from the claim of a run to its end
conclave_stage_seconds: Time that a stage took
conclave_call_seconds: Latency of model calls
conclave_act_seconds: Time from an action's arrival to its answer
conclave_http_request_seconds: Time to an answer's head, by method and route
conclave_c_final: What the gate compared
";

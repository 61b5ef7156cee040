//! Tests SIGKILL on the real binary: no accepted run is lost, and no settled call is made again. On
//! SQLite one service restarts; on PostgreSQL the other replica takes over.

mod toll;

use std::time::Duration;

use conclave::domain::RunId;
use conclave::journal::{CallResult, Entry, Event, Transcript};

use crate::support::process::{Home, Service};
use crate::support::{Fault, MockProvider, QUESTION, Scenario, chat, client, sent, until};
pub use toll::{Toll, toll};

/// Number of kills, one per round of the test.
const KILLS: usize = if cfg!(feature = "long-chaos") { 200 } else { 8 };

/// Seconds without a renewal after which a replica's runs are taken over: the shipped value, or
/// less.
const LEASE_SECONDS: u64 = if cfg!(feature = "long-chaos") { 30 } else { 2 };

/// Waits until the solver and the critic are settled and only the verifier is in flight.
async fn until_the_verifier_is_alone(home: &Home, run: RunId) {
    let is_settled = |entry: &&Entry| matches!(entry.event, Event::CallSettled(_));
    home.entries_once(run, |entries| {
        entries.iter().filter(is_settled).count() == 3
    })
    .await;
}

/// Checks that the verifier's call, in flight at the kill, was made again under a new key, and no
/// other call was.
async fn hold_the_call_in_flight(home: &Home, provider: &MockProvider, run: RunId) {
    assert_eq!(toll(home, &[run], provider).await, Toll::none(1));
    assert_eq!(
        provider.count_step("r1/solver"),
        1,
        "what was settled is not bought again"
    );
    assert_eq!(
        provider.count_step("r1/verifier"),
        2,
        "what was in flight is asked again, under a key of its own"
    );
    let doubt = home.entries(run).await.into_iter().any(|e| {
        matches!(&e.event, Event::CallSettled(s) if s.call == "r1/verifier" && matches!(s.result, CallResult::InDoubt))
    });
    assert!(doubt, "the call in flight was settled at its reservation");
}

#[tokio::test]
async fn a_killed_service_completes_its_run_after_the_restart() {
    let provider = MockProvider::start().await;
    provider
        .on("r1/verifier", Fault::Latency(Duration::from_secs(60)))
        .times(1);
    let home = Home::sqlite();
    let service = home.serve(&provider, &[]).await;
    let run = service.accept("ask", QUESTION, 1).await.unwrap();
    until_the_verifier_is_alone(&home, run).await;
    service.kill().await;
    let service = home.serve(&provider, &[]).await;
    hold_the_call_in_flight(&home, &provider, run).await;
    service.kill().await;
}

#[tokio::test]
async fn a_kill_in_the_cross_check_repeats_no_report() {
    let provider = MockProvider::start().await;
    provider
        .on("cross-check", Fault::Latency(Duration::from_secs(60)))
        .times(1);
    let home = Home::sqlite();
    let service = home.serve(&provider, &[]).await;
    let run = service.accept("ask", QUESTION, 1).await.unwrap();
    until(async || provider.count_step("cross-check") > 0).await;
    service.kill().await;
    let service = home.serve(&provider, &[]).await;
    assert_eq!(toll(&home, &[run], &provider).await, Toll::none(1));
    assert_eq!(
        (
            provider.count_step("r1/*"),
            provider.count_step("cross-check")
        ),
        (3, 2)
    );
    let checked = home.entries(run).await.into_iter().any(
        |e| matches!(&e.event, Event::CrossChecked(checked) if checked.passes.len() == 1 && checked.notes.is_empty()),
    );
    assert!(
        checked,
        "the call in doubt is made again, and its answer counts"
    );
    service.kill().await;
}

#[tokio::test]
async fn a_kill_while_the_solver_is_checked_alone_repeats_no_report() {
    let provider = MockProvider::start().await;
    let alone = "cross-check/solver";
    provider
        .on(alone, Fault::Latency(Duration::from_secs(60)))
        .times(1);
    let home = Home::sqlite();
    let strategy = [("DECISION_STRATEGY", "escalate")];
    let service = home.serve(&provider, &strategy).await;
    let run = service.accept("ask", QUESTION, 1).await.unwrap();
    until(async || provider.count_step(alone) > 0).await;
    service.kill().await;
    let service = home.serve(&provider, &strategy).await;
    assert_eq!(toll(&home, &[run], &provider).await, Toll::none(1));
    assert_eq!(
        (provider.count_step("r1/*"), provider.count_step(alone)),
        (1, 2)
    );
    service.kill().await;
}

/// The second call of the cross-check was in flight at the kill. Only this call is made again.
#[tokio::test]
async fn a_kill_in_the_second_cross_check_does_not_repeat_the_first() {
    let provider = MockProvider::playing(Scenario::converging()).await;
    provider
        .on(
            "cross-check/reversed",
            Fault::Latency(Duration::from_secs(60)),
        )
        .times(1);
    let home = Home::sqlite();
    let service = home.serve(&provider, &[]).await;
    let run = service
        .accept("deep", &Scenario::converging().message, 1)
        .await
        .unwrap();
    let is_settled = |e: &conclave::journal::Entry| matches!(&e.event, Event::CallSettled(s) if s.call == "cross-check");
    until(async || provider.count_step("cross-check/reversed") > 0).await;
    home.entries_once(run, |entries| entries.iter().any(is_settled))
        .await;
    service.kill().await;
    let service = home.serve(&provider, &[]).await;
    assert_eq!(toll(&home, &[run], &provider).await, Toll::none(1));
    let calls = |step: &str| provider.count_step(step);
    assert_eq!(
        (
            calls("r1/*"),
            calls("cross-check"),
            calls("cross-check/reversed")
        ),
        (3, 1, 2)
    );
    let whole = home.entries(run).await.into_iter().any(
        |e| matches!(&e.event, Event::CrossChecked(checked) if checked.passes.len() == 2 && checked.notes.is_empty()),
    );
    assert!(whole, "both calls count");
    service.kill().await;
}

#[tokio::test]
async fn a_killed_replica_has_its_run_completed_by_the_other() {
    let provider = MockProvider::start().await;
    provider
        .on("r1/verifier", Fault::Latency(Duration::from_secs(60)))
        .times(1);
    let home = Home::postgres(LEASE_SECONDS).await;
    let shipped = [("NORMAL_MAX_USD", "0.1")];
    let first = home.serve(&provider, &shipped).await;
    let run = first.accept("ask", QUESTION, 1).await.unwrap();
    until_the_verifier_is_alone(&home, run).await;
    let second = home.serve(&provider, &shipped).await;
    first.kill().await;
    hold_the_call_in_flight(&home, &provider, run).await;
    second.kill().await;
}

/// Returns a provider whose agents disagree, with the message. In audit and deep they keep or
/// concede in a second round.
async fn quarrelling() -> (MockProvider, String) {
    let scenario = Scenario::converging();
    let message = scenario.message.clone();
    let provider = MockProvider::playing(scenario).await;
    provider.on("*", Fault::Latency(Duration::from_millis(25)));
    (provider, message)
}

/// Waits until the provider has got this number of calls, or all runs have ended.
async fn until_calls(home: &Home, provider: &MockProvider, runs: &[RunId], calls: usize) {
    let store = home.store().await;
    let has_ended = async |run: RunId| {
        let row = store.run(run).await.unwrap();
        row.is_none_or(|row| row.state.is_terminal())
    };
    let wanted = provider.calls().len() + calls;
    until(async || {
        let mut open = 0;
        for run in runs {
            open += usize::from(!has_ended(*run).await);
        }
        open == 0 || provider.calls().len() >= wanted
    })
    .await;
}

/// Asks one question in each mode, then kills the service. The second question goes to the other
/// replica if there is one. The moment of the kill depends on `number`, not on a random source.
async fn ask_and_kill(
    home: &Home,
    provider: &MockProvider,
    (service, other): (Service, Option<&Service>),
    (message, number): (&str, usize),
    accepted: &mut Vec<RunId>,
) {
    let first = accepted.len();
    for (i, mode) in ["deep", "ask", "audit"].into_iter().enumerate() {
        let at = other.filter(|_| i == 1).unwrap_or(&service);
        accepted.extend(at.accept(mode, message, number * 3 + i).await);
    }
    until_calls(home, provider, &accepted[first..], number * 7 % 20).await;
    service.kill().await;
}

#[tokio::test]
async fn kills_at_random_moments_lose_nothing() {
    let (provider, message) = quarrelling().await;
    let home = Home::sqlite();
    let mut accepted = vec![];
    for number in 0..KILLS {
        let service = home.serve(&provider, &[]).await;
        let (services, question) = ((service, None), (message.as_str(), number));
        ask_and_kill(&home, &provider, services, question, &mut accepted).await;
    }
    let service = home.serve(&provider, &[]).await;
    assert_eq!(accepted.len(), 3 * KILLS);
    let toll = toll::toll(&home, &accepted, &provider).await;
    toll.print("one service on SQLite", KILLS);
    print_endings(&home, &toll).await;
    service.kill().await;
    assert_eq!(toll, Toll::none(accepted.len()));
    assert!(
        provider.count_step("cross-check*") > 0 && provider.count_step("r2/resolve/*") > 0,
        "kills hit every stage"
    );
}

#[tokio::test]
async fn two_replicas_that_are_killed_in_turn_lose_nothing() {
    let (provider, message) = quarrelling().await;
    let home = Home::postgres(2).await;
    let mut accepted = vec![];
    let mut survivor = home.serve(&provider, &[]).await;
    for number in 0..KILLS {
        let newcomer = home.serve(&provider, &[]).await;
        let (services, question) = ((survivor, Some(&newcomer)), (message.as_str(), number));
        ask_and_kill(&home, &provider, services, question, &mut accepted).await;
        survivor = newcomer;
    }
    assert_eq!(accepted.len(), 3 * KILLS);
    let toll = toll::toll(&home, &accepted, &provider).await;
    toll.print("two replicas on PostgreSQL", KILLS);
    print_endings(&home, &toll).await;
    survivor.kill().await;
    assert_eq!(toll, Toll::none(accepted.len()));
    // Both replicas worked: at least one run was claimed by more than one process.
    let mut most = 0;
    for run in &accepted {
        let claims = home
            .entries(*run)
            .await
            .into_iter()
            .filter(|e| matches!(e.event, Event::Claimed(_)))
            .count();
        most = most.max(claims);
    }
    assert!(most > 1, "no run was taken over");
}

/// A built-in config: its name, the variables of its key and its address, and the agents' model if
/// it is not the default.
type Shipped = (
    &'static str,
    &'static str,
    &'static str,
    Option<&'static str>,
);

/// Returns messages of 200 to 30,000 characters, in prose and in a script with three bytes per
/// letter.
fn messages() -> Vec<String> {
    let padded = |length: usize, filler: &str| -> String {
        let question = Scenario::converging().message + " ";
        question
            .chars()
            .chain(filler.chars().cycle())
            .take(length)
            .collect()
    };
    let prose = "The pump was replaced in March, and the pressure has been falling slowly since the last inspection. ";
    let mut messages: Vec<String> = [200, 2000, 4000, 8000, 16_000, 24_000, 30_000]
        .map(|n| padded(n, prose))
        .into();
    messages.extend([2000, 4000, 8000].map(|n| padded(n, "पानी किस तापमान पर उबलता है और क्यों? ")));
    messages
}

/// Asks every message in ask and in deep, at a service with a built-in config and its models and
/// caps. With `slow`, kills and restarts the service once all other agents are done in round 1.
/// Returns the numbers of the runs without a reply.
async fn without_reply(
    (config, key, address, agents): Shipped,
    slow: Option<&[&str]>,
) -> Vec<usize> {
    let provider = MockProvider::playing(Scenario::converging()).await;
    for agent in slow.unwrap_or_default() {
        provider.on(
            &format!("r1/{agent}"),
            Fault::Latency(Duration::from_secs(60)),
        );
    }
    let home = Home::sqlite();
    let url = provider.url();
    let caps = [("NORMAL_MAX_USD", "0.1"), ("DEEP_MAX_USD", "0.5")];
    let mut shipped = vec![
        caps[0],
        caps[1],
        ("CONCLAVE_CONFIG", config),
        (key, "k"),
        (address, url.as_str()),
    ];
    let variables = [
        "SOLVER_MODEL",
        "CRITIC_MODEL",
        "VERIFIER_MODEL",
        "EDITOR_MODEL",
        "IMPLEMENTER_MODEL",
    ];
    shipped.extend(
        agents
            .into_iter()
            .flat_map(|model| variables.map(|variable| (variable, model))),
    );
    let mut service = home.serve(&provider, &shipped).await;
    let mut runs = vec![];
    for (number, message) in messages().iter().enumerate() {
        for mode in ["ask", "deep"] {
            runs.push(
                service
                    .accept(mode, message, 2 * number + usize::from(mode == "deep"))
                    .await
                    .unwrap(),
            );
        }
    }
    if let Some(slow) = slow {
        for run in &runs {
            until_only_these_are_open(&home, *run, slow).await;
        }
        service.kill().await;
        provider.state().script = Default::default();
        service = home.serve(&provider, &shipped).await;
    }
    let toll = toll::toll(&home, &runs, &provider).await;
    service.kill().await;
    print_endings(&home, &toll).await;
    let number = |run: &RunId| runs.iter().position(|known| known == run).unwrap();
    let without: Vec<usize> = toll
        .without_reply
        .iter()
        .map(|(run, _)| number(run))
        .collect();
    println!(
        "| {config} {agents:?} | killed with {slow:?} under way | {} runs | without a reply: {without:?} |",
        runs.len()
    );
    assert_eq!(
        Toll {
            without_reply: vec![],
            ..toll
        },
        Toll::none(runs.len())
    );
    without
}

/// Prints how the runs without a reply ended.
async fn print_endings(home: &Home, toll: &Toll) {
    for (run, state) in &toll.without_reply {
        let last = home.entries(*run).await.pop();
        println!("{run} is {state:?}: {:?}", last.map(|entry| entry.event));
    }
}

/// Waits until the other agents are done in round 1 and these are in flight, or until the run was
/// refused.
async fn until_only_these_are_open(home: &Home, run: RunId, agents: &[&str]) {
    let under_way = |call: &str| agents.iter().any(|agent| call == format!("r1/{agent}"));
    let are_alone = |entries: &[Entry]| {
        let mut panel = None;
        let (mut sent, mut settled) = (0, 0);
        for entry in entries {
            match &entry.event {
                Event::Trimmed(trimmed) => panel = Some(&trimmed.agents),
                Event::CallSent(call) => sent += usize::from(call.call.starts_with("r1/")),
                Event::CallSettled(call) => settled += usize::from(call.call.starts_with("r1/")),
                _ => {}
            }
        }
        let done = |panel: &Vec<_>| {
            let others = panel
                .iter()
                .filter(|agent| !under_way(&format!("r1/{agent}")));
            sent == panel.len() && settled == others.count()
        };
        Transcript::of_entries(entries).finished.is_some() || panel.is_some_and(done)
    };
    home.entries_once(run, are_alone).await;
}

/// Kills the service once per run, at a different moment each time, under the shipped caps. No
/// answer is lost for lack of money.
#[tokio::test]
async fn a_kill_at_any_moment_under_the_shipped_caps_costs_no_answer() {
    let provider = MockProvider::playing(Scenario::converging()).await;
    provider.on("*", Fault::Latency(Duration::from_millis(25)));
    let home = Home::sqlite();
    let url = provider.url();
    let caps = [("NORMAL_MAX_USD", "0.1"), ("DEEP_MAX_USD", "0.5")];
    let shipped = [
        caps[0],
        caps[1],
        ("ANTHROPIC_BASE_URL", &url),
        ("CONCLAVE_CONFIG", "anthropic"),
    ];
    // Without a kill, each of these is answered in every mode. Longer ones are refused in ask
    // before any call.
    let messages: Vec<String> = messages()
        .into_iter()
        .filter(|message| message.len() <= 24_000)
        .collect();
    let (mut accepted, mut disturbed) = (vec![], 0);
    for number in 0..KILLS {
        let service = home.serve(&provider, &shipped).await;
        let message = &messages[number % messages.len()];
        let mut runs = vec![];
        for (i, mode) in ["deep", "ask", "audit"].into_iter().enumerate() {
            runs.push(service.accept(mode, message, number * 3 + i).await.unwrap());
        }
        until_calls(&home, &provider, &runs, number * 5 % 12).await;
        service.kill().await;
        let service = home.serve(&provider, &shipped).await;
        assert_eq!(
            toll(&home, &runs, &provider).await,
            Toll::none(runs.len()),
            "{} characters",
            message.chars().count()
        );
        for run in &runs {
            disturbed += usize::from(
                home.entries(*run)
                    .await
                    .iter()
                    .any(|e| e.key == "claimed/2"),
            );
        }
        service.kill().await;
        accepted.extend(runs);
    }
    toll(&home, &accepted, &provider).await.print(
        "one service on SQLite, shipped caps and long messages",
        KILLS,
    );
    assert!(
        disturbed > KILLS,
        "too few were killed under way: {disturbed}"
    );
}

/// Every run that is answered without a kill is also answered after a kill in round 1.
async fn kills_in_round_1_cost_no_answer(config: Shipped) {
    let undisturbed = without_reply(config, None).await;
    let mut lost = vec![];
    for slow in [
        &["solver", "critic", "verifier"][..],
        &["critic", "verifier"],
        &["solver"],
    ] {
        let killed = without_reply(config, Some(slow)).await;
        lost.extend(
            killed
                .into_iter()
                .filter(|run| !undisturbed.contains(run))
                .map(|run| (slow, run)),
        );
    }
    assert_eq!(lost, []);
    assert!(
        undisturbed.len() <= 5,
        "too many are refused: {undisturbed:?}"
    );
}

#[tokio::test]
async fn a_kill_in_round_1_under_the_shipped_caps_costs_no_answer() {
    kills_in_round_1_cost_no_answer(("anthropic", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", None))
        .await;
}

#[tokio::test]
async fn a_kill_in_round_1_with_expensive_agents_costs_no_answer() {
    let agents = Some("claude-haiku-4-5");
    kills_in_round_1_cost_no_answer((
        "anthropic",
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_BASE_URL",
        agents,
    ))
    .await;
    kills_in_round_1_cost_no_answer(("xai", "XAI_API_KEY", "XAI_BASE_URL", None)).await;
}

#[tokio::test]
async fn a_draining_service_still_answers_and_finishes_its_runs() {
    let provider = MockProvider::start().await;
    provider.on("r1/*", Fault::Latency(Duration::from_millis(1500)));
    let home = Home::sqlite();
    let mut service = home.serve(&provider, &[]).await;
    let run = service.accept("ask", QUESTION, 1).await.unwrap();
    service.terminate().await;
    let ready = || client().get(format!("{}/ready", service.url)).send();
    until(async || ready().await.is_ok_and(|response| response.status() == 503)).await;
    let health = sent(client().get(format!("{}/health", service.url))).await;
    assert_eq!(health.status(), 200);
    let request = client()
        .post(format!("{}/api/chat", service.url))
        .json(&chat("ask", "More?"));
    let refused = sent(request).await;
    assert_eq!(refused.status(), 503);
    assert!(refused.headers().contains_key("retry-after"));
    let status = tokio::time::timeout(Duration::from_secs(20), service.child.wait())
        .await
        .unwrap()
        .unwrap();
    assert!(status.success());
    let last = home.entries(run).await.pop().unwrap();
    assert!(matches!(last.event, Event::Finished(_)));
}

//! Tests CPU-heavy work of a run. It delays no other request, and its run can be ended meanwhile. A
//! run that crashes its processes, or never gets further, is given up.

use std::os::unix::process::ExitStatusExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use conclave::clock::Clock;
use conclave::compute::ComputePool;
use conclave::domain::{RunId, Usd};
use conclave::journal::{
    AcceptThen, AckTiming, Call, CallResult, CallSent, CallStop, Cause, Claim, Ending, Entry,
    Event, PostgresStore, Process, RunContext, RunState, SqliteStore, StartOutcome, Stop, Store,
    Uncalled, Wake,
};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::crash::{Toll, toll};
use crate::store::new_run;
use crate::support::process::{Home, Service};
use crate::support::{MockProvider, QUESTION, client, postgres, sent, status_of};

/// A message for which the solver's prompt renders without end.
const ENDLESS: &str = "ENDLESS: what is the boiling point of water at sea level in Celsius?";

/// A message for which the solver's prompt takes all memory, in less than a second.
const BOUNDLESS: &str = "BOUNDLESS: what is the boiling point of water at sea level in Celsius?";

/// Writes a solver prompt that renders without end, or takes all memory, if the message says so.
/// Returns its folder.
fn prompts_that_never_end(home: &Home) -> String {
    let folder = home.folder.path().join("prompts");
    std::fs::create_dir_all(&folder).unwrap();
    let endless = "{% if 'ENDLESS' in question %}{% for a in range(100000) %}{% for b in range(100000) %}\
                   {% endfor %}{% endfor %}{% endif %}\
                   {% if 'BOUNDLESS' in question %}{% set ns = namespace(text='xxxxxxxx') %}\
                   {% for _ in range(40) %}{% set ns.text = ns.text ~ ns.text %}{% endfor %}{% endif %}";
    let solver = include_str!("../../prompts/solver.md");
    let solver = solver.replace("=== user ===\n", &format!("=== user ===\n{endless}"));
    std::fs::write(folder.join("solver.md"), solver).unwrap();
    folder.display().to_string()
}

fn set_deadlines(home: &Home, seconds: u64) {
    let path = home.folder.path().join("config.json");
    let mut config: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    config["policy"]["deadlines"] =
        json!({ "connect": 1, "call": 2, "ask": seconds, "audit": seconds, "deep": seconds });
    std::fs::write(&path, config.to_string()).unwrap();
}

/// Waits until the journal of a run is as described, and returns it.
async fn until(home: &Home, run: RunId, what: impl Fn(&[Event]) -> bool) -> Vec<Event> {
    let events = |entries: &[Entry]| -> Vec<Event> {
        entries.iter().map(|entry| entry.event.clone()).collect()
    };
    events(
        &home
            .entries_once(run, |entries| what(&events(entries)))
            .await,
    )
}

fn in_round_1(events: &[Event]) -> bool {
    events
        .iter()
        .any(|event| matches!(event, Event::RoundStarted(_)))
}

fn ended(events: &[Event]) -> bool {
    matches!(events.last(), Some(Event::Finished(_)))
}

async fn answer_of(service: &Service, home: &Home, number: usize) -> RunId {
    let run = service.accept("ask", QUESTION, number).await.unwrap();
    until(home, run, ended).await;
    run
}

#[tokio::test]
async fn a_run_that_computes_without_end_delays_no_other_and_can_end() {
    let provider = MockProvider::start().await;
    let home = Home::sqlite();
    set_deadlines(&home, 8);
    let prompts = prompts_that_never_end(&home);
    let mut service = home
        .serve(&provider, &[("CONCLAVE_PROMPTS_DIR", &prompts)])
        .await;
    let endless = service.accept("ask", ENDLESS, 1).await.unwrap();
    until(&home, endless, in_round_1).await;
    let health = sent(client().get(format!("{}/health", service.url))).await;
    assert_eq!(health.status(), 200);
    let other = answer_of(&service, &home, 2).await;
    let url = format!("{}/api/runs/{endless}", service.url);
    assert_eq!(status_of(client().delete(&url)).await, 202);
    let events = until(&home, endless, ended).await;
    assert!(matches!(events.last(), Some(Event::Finished(f)) if f.ending == Ending::Cancelled));
    // The second run is not cancelled: its deadline ends it. SIGTERM then ends the process.
    let second = service.accept("ask", ENDLESS, 3).await.unwrap();
    until(&home, second, in_round_1).await;
    service.terminate().await;
    let status = tokio::time::timeout(Duration::from_secs(60), service.child.wait())
        .await
        .unwrap()
        .unwrap();
    assert!(status.success());
    let events = until(&home, second, ended).await;
    assert!(
        matches!(events.last(), Some(Event::Finished(f)) if matches!(&f.ending, Ending::Failed { cause, .. } if cause.into_str() == "deadline"))
    );
    let store = home.store().await;
    assert_eq!(
        store.run(other).await.unwrap().unwrap().state,
        RunState::Answered
    );
    let of_the_endless = provider
        .calls()
        .into_iter()
        .filter(|call| call.full_key.contains(&endless.to_string()));
    let steps: Vec<String> = of_the_endless.map(|call| call.full_key).collect();
    assert_eq!(steps, [""; 0], "nothing was bought after the end");
}

/// Lets a run take all memory of three processes in a row. Other runs are still answered.
async fn three_processes_abort_in_a_piece(home: Home) {
    let provider = MockProvider::start().await;
    let prompts = prompts_that_never_end(&home);
    let variables = [("CONCLAVE_PROMPTS_DIR", prompts.as_str())];
    let limited = [&variables[..], &[("LIMIT", "-c 0; ulimit -v 1500000")]].concat();
    let mut runs = vec![];
    for number in 0..3 {
        let mut service = home.serve(&provider, &limited).await;
        if number == 0 {
            runs.extend(service.accept("ask", BOUNDLESS, 0).await);
        }
        let died = tokio::time::timeout(Duration::from_secs(60), service.child.wait());
        let status = died.await.unwrap().unwrap();
        assert_eq!(status.signal(), Some(6), "SIGABRT, not the test, ends it");
    }
    let service = home.serve(&provider, &variables).await;
    let events = until(&home, runs[0], ended).await;
    let Some(Event::Finished(finished)) = events.last() else {
        unreachable!()
    };
    let given_up = Ending::Failed {
        cause: Cause::Internal,
        detail: "the run was given up: it crashed 3 processes".into(),
    };
    assert_eq!(finished.ending, given_up);
    let other = answer_of(&service, &home, 1).await;
    assert_eq!(toll(&home, &[other], &provider).await, Toll::none(1));
}

#[tokio::test]
async fn a_run_that_aborts_three_processes_at_once_is_given_up() {
    three_processes_abort_in_a_piece(Home::sqlite()).await;
}

#[tokio::test]
async fn a_run_that_aborts_three_replicas_at_once_is_given_up() {
    three_processes_abort_in_a_piece(Home::postgres(3).await).await;
}

#[tokio::test]
async fn a_run_without_progress_is_given_up() {
    let (home, provider) = (Home::sqlite(), MockProvider::start().await);
    let store = home.store().await;
    let mut run = new_run(1, None, QUESTION);
    run.at = Clock::System.now();
    let (id, at) = (run.id, run.at);
    store.accept(run).await.unwrap();
    for begun in 0..51 {
        let owner = format!("process {begun}");
        // A lease has ended when a later time than its end is stored.
        let at = at + Duration::from_millis(2 * begun);
        let claimed = store.claim(Claim::Run(id), &owner, Duration::ZERO, at);
        assert!(claimed.await.unwrap().is_some(), "{begun}");
    }
    drop(store);
    let service = home.serve(&provider, &[]).await;
    let events = until(&home, id, ended).await;
    let Some(Event::Finished(finished)) = events.last() else {
        unreachable!()
    };
    let ended = format!("{:?}", finished.ending);
    assert!(ended.contains("begun 52 times in a row"), "{ended}");
    assert_eq!(provider.calls().len(), 0);
    answer_of(&service, &home, 2).await;
}

fn intent(call: &str) -> CallSent {
    CallSent {
        call: call.into(),
        role: conclave::domain::Role::Master,
        provider: "p".into(),
        model: "m".into(),
        reserved: None,
        max_tokens: 10,
        effort: None,
        prompt_hash: "h".into(),
    }
}

fn free() -> Call {
    let result = CallResult::Answered {
        text: "t".into(),
        stop: CallStop::End,
    };
    Call {
        result,
        usage: None,
        served: None,
        cost: Some(Usd::ZERO),
    }
}

fn hints() -> Event {
    Event::Hinted(conclave::journal::Hinted {
        task_types: vec![],
        signals: vec![],
        unseen: vec![],
        images: 0,
    })
}

fn process(store: &Arc<dyn Store>, clock: Clock) -> Process {
    Process {
        store: Arc::clone(store),
        clock,
        wake: Wake::default(),
        compute: ComputePool::default(),
    }
}

async fn nothing_happens_after_the_end(store: Arc<dyn Store>) {
    let clock = Clock::System;
    let mut run = new_run(1, None, "one");
    run.at = clock.now();
    let id = run.id;
    store.accept(run).await.unwrap();
    let lease = store
        .claim(Claim::Run(id), "me", Duration::from_secs(60), clock.now())
        .await
        .unwrap()
        .unwrap();
    let context = RunContext::open(process(&store, clock), lease);
    let context = Arc::new(context.await.unwrap());
    let (begun, has_begun) = tokio::sync::oneshot::channel();
    let (release, released) = mpsc::channel::<()>();
    let bought = Arc::new(AtomicU32::new(0));
    #[allow(clippy::disallowed_methods, reason = "it is awaited below")]
    let stage = tokio::spawn({
        let (context, bought) = (Arc::clone(&context), Arc::clone(&bought));
        async move {
            let piece = move || {
                begun.send(()).unwrap();
                released.recv().unwrap();
            };
            context.compute(piece).await.unwrap();
            let effect = async {
                bought.fetch_add(1, Ordering::SeqCst);
                free()
            };
            let called = context.call(intent("late"), effect).await;
            let recorded = context.record(hints());
            let computed = context
                .compute(|| bought.fetch_add(1, Ordering::SeqCst))
                .await;
            (
                matches!(called, Err(Uncalled::Stopped(Stop::Lost))),
                matches!(recorded, Err(Stop::Lost)),
                computed.is_err(),
            )
        }
    });
    has_begun.await.unwrap();
    context.finish(Ending::Cancelled).await.unwrap();
    let before = store.entries(id, 0).await.unwrap();
    release.send(()).unwrap();
    assert_eq!(stage.await.unwrap(), (true, true, true));
    assert_eq!(bought.load(Ordering::SeqCst), 0);
    assert_eq!(store.entries(id, 0).await.unwrap(), before);
    assert_eq!(before.last().unwrap().key, "finished");
    let row = store.run(id).await.unwrap().unwrap();
    assert_eq!(
        conclave::journal::verify(id, &before, &row.head_hash),
        Ok(())
    );
}

#[tokio::test]
async fn a_decision_is_stored_with_the_next_intent_and_at_the_end() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("c.db");
    let store: Arc<dyn Store> = Arc::new(SqliteStore::open(&path, "me").await.unwrap());
    let clock = Clock::System;
    let mut run = new_run(1, None, "one");
    run.at = clock.now();
    let (id, accepted) = (run.id, run.accepted.clone());
    let hold = AcceptThen::Claim {
        owner: "me".into(),
        lease: Duration::from_secs(60),
        ack: AckTiming::Immediate,
    };
    let StartOutcome::Leased(lease) = store.begin(run, hold).await.unwrap() else {
        panic!("the run is accepted and claimed");
    };
    let context = RunContext::begin(process(&store, clock), lease, accepted);
    let keys = async || -> Vec<String> {
        let entries = store.entries(id, 0).await.unwrap();
        entries.into_iter().map(|entry| entry.key).collect()
    };
    context.record(hints()).unwrap();
    assert_eq!(keys().await, ["accepted", "claimed/1"]);
    let mut stored = vec![];
    let effect = async {
        stored = keys().await;
        free()
    };
    context.call(intent("plan"), effect).await.unwrap();
    assert_eq!(stored, ["accepted", "claimed/1", "hints", "sent:plan"]);
    assert_eq!(keys().await, stored);
    context.finish(Ending::Cancelled).await.unwrap();
    assert_eq!(keys().await.split_off(4), ["settled:plan", "finished"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_computation_that_outlives_its_run_writes_and_sends_nothing() {
    let folder = TempDir::new().unwrap();
    let sqlite = SqliteStore::open(&folder.path().join("c.db"), "me")
        .await
        .unwrap();
    nothing_happens_after_the_end(Arc::new(sqlite)).await;
    let replicated = PostgresStore::open(&postgres::fresh().await, "me")
        .await
        .unwrap();
    nothing_happens_after_the_end(Arc::new(replicated)).await;
}

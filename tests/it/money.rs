//! Tests money with a hostile provider, under random schedules of failures, cancellations and
//! deaths of the process. No run spends more than its cap if no call is billed above its
//! reservation. After such an overbilling the run reserves as much more for each further call.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use conclave::app::{App, ChatInput, Rejected, RequestIds};
use conclave::clock::Clock;
use conclave::compute::ComputePool;
use conclave::domain::BilledTokens;
use conclave::domain::{Context, Mode, RunId, Source, Usd, User};
use conclave::journal::{self, AckTiming, Cause, Ending, Entry, Event, SqliteStore, Transcript};
use conclave::llm::{
    BreakerSettings, CallStop, ChatModel, ChatReply, ChatRequest, Error, ErrorKind, Part, Registry,
};
use proptest::prelude::*;
use serde_json::json;
use tempfile::TempDir;

use crate::support::app::config;
use crate::support::mix::mixed;
use crate::support::{Scenario, Setup, app, step_of, until};

const CASES: u32 = if cfg!(feature = "long-chaos") {
    400
} else {
    24
};

/// The time within which every run of a case must end.
const PATIENCE: Duration = Duration::from_secs(30);

/// A model in this process that plays a scenario and bills honestly.
pub struct ScriptedModel(pub Scenario);

#[async_trait]
impl ChatModel for ScriptedModel {
    async fn chat(&self, request: &ChatRequest) -> Result<ChatReply, Error> {
        let parts = request.messages.iter().flat_map(|message| &message.parts);
        let texts = parts.filter_map(|part| match part {
            Part::Text(text) => Some(&**text),
            Part::Image(_) => None,
        });
        let (_, key) = request.key.split_once('/').unwrap();
        let reply = self.0.reply(&step_of(key), &texts.collect::<String>());
        let usage = BilledTokens {
            input: 500,
            output: 200,
            ..BilledTokens::default()
        };
        Ok(ChatReply {
            text: reply.unwrap().to_string(),
            stop: CallStop::End,
            usage: Some(usage),
            stated_cost: None,
            model: None,
        })
    }
}

/// Assembles a service on a journal in the folder, whose only model is this one.
pub async fn service(
    folder: &TempDir,
    owner: &str,
    setup: &Setup,
    model: impl ChatModel + 'static,
) -> Arc<App> {
    let path = folder.path().join("conclave.db");
    let config = config(
        "http://127.0.0.1:9",
        &format!("sqlite://{}", path.display()),
        setup,
    );
    let store = SqliteStore::open(&path, owner).await.unwrap();
    let breaker = BreakerSettings {
        failures: 4,
        ..BreakerSettings::default()
    };
    let mut models = Registry::new([], Duration::ZERO, breaker).unwrap();
    models.insert("anthropic", Arc::new(model), 8);
    let (store, owner) = (Arc::new(store), owner.to_owned());
    App::assemble(
        config,
        Clock::System,
        store,
        owner,
        models,
        ComputePool::default(),
    )
    .unwrap()
}

/// Answers as scripted and applies to each call a fault drawn from its number.
struct Hostile {
    script: ScriptedModel,
    seed: u64,
    calls: Arc<AtomicU64>,
    /// True if it may bill more than the request allows.
    greedy: bool,
}

#[async_trait]
impl ChatModel for Hostile {
    async fn chat(&self, request: &ChatRequest) -> Result<ChatReply, Error> {
        let number = self.calls.fetch_add(1, Ordering::Relaxed);
        let drawn = mixed(self.seed, &number.to_string());
        // Changes the order in which concurrent calls end.
        for _ in 0..(drawn >> 40) % 12 {
            tokio::task::yield_now().await;
        }
        let reply = self.script.chat(request).await?;
        let error = |kind, detail| Err(Error::new("hostile", kind, detail));
        let billed = |input, output| {
            Some(BilledTokens {
                input,
                output,
                ..BilledTokens::default()
            })
        };
        let most = u64::from(request.max_tokens);
        let status = |status, retry_after| {
            let kind = ErrorKind::Status {
                status,
                retry_after,
            };
            error(kind, "as the test asked")
        };
        if self.greedy && drawn.is_multiple_of(11) {
            let mut stated_cost = None;
            let usage = match (drawn >> 8) % 5 {
                0 => billed(500, most * 40),
                4 => {
                    stated_cost = Some(Usd::from_dollars(0.25));
                    billed(900, most)
                }
                1 => billed(999_999_999, 999_999_999),
                2 => billed(u64::MAX, u64::MAX),
                _ => Some(BilledTokens {
                    cache_write: 5_000_000,
                    ..BilledTokens::default()
                }),
            };
            return Ok(ChatReply {
                usage,
                stated_cost,
                ..reply
            });
        }
        match (drawn >> 8) % 40 {
            0 => error(ErrorKind::Timeout(request.timeout), ""),
            1 => {
                tokio::time::sleep(request.timeout).await;
                error(ErrorKind::Timeout(request.timeout), "")
            }
            2 => error(ErrorKind::Broken, "cut"),
            3 => error(ErrorKind::Connect, "refused"),
            4 => error(ErrorKind::Unreadable, "a page"),
            5 => status(529, None),
            6 => status(429, Some(Duration::from_millis(20))),
            7 => status(429, Some(Duration::from_secs(3600))),
            8 => status(408, None),
            9 => status(400, None),
            10 => Ok(ChatReply {
                text: "prose and no JSON".into(),
                ..reply
            }),
            11 => Ok(ChatReply {
                text: String::new(),
                ..reply
            }),
            12 => Ok(ChatReply {
                stop: CallStop::Refusal,
                ..reply
            }),
            13 => {
                let half = reply.text.chars().take(reply.text.len() / 2).collect();
                Ok(ChatReply {
                    text: half,
                    stop: CallStop::MaxTokens,
                    ..reply
                })
            }
            14 | 15 => Ok(ChatReply {
                usage: None,
                ..reply
            }),
            16 => Ok(ChatReply {
                usage: Some(BilledTokens::default()),
                ..reply
            }),
            17 => Ok(ChatReply {
                usage: billed(900, most),
                ..reply
            }),
            // The whole output limit went into thinking and is billed.
            18 => {
                let usage = BilledTokens {
                    input: 900,
                    output: most,
                    thinking: most,
                    ..BilledTokens::default()
                };
                Ok(ChatReply {
                    text: String::new(),
                    stop: CallStop::MaxTokens,
                    usage: Some(usage),
                    ..reply
                })
            }
            // The whole prefix was written into a cache, which costs more than input.
            19 => {
                let usage = BilledTokens {
                    cache_write: 900,
                    output: most,
                    ..BilledTokens::default()
                };
                Ok(ChatReply {
                    usage: Some(usage),
                    ..reply
                })
            }
            _ => Ok(reply),
        }
    }
}

/// Two processes of one service, one after the other, on one journal.
struct House {
    folder: TempDir,
    setup: Setup,
    seed: u64,
    greedy: bool,
    /// The number of calls to the provider so far.
    calls: Arc<AtomicU64>,
}

impl House {
    async fn open(&self, owner: &str, generation: u64) -> Arc<App> {
        let hostile = Hostile {
            script: ScriptedModel(Scenario::converging()),
            seed: self.seed ^ generation,
            calls: Arc::clone(&self.calls),
            greedy: self.greedy,
        };
        service(&self.folder, owner, &self.setup, hostile).await
    }

    /// Leaves the lock file of a killed process, without its lock.
    fn bury(&self, owner: &str) {
        std::fs::write(
            self.folder.path().join("conclave.db.owners").join(owner),
            "",
        )
        .unwrap();
    }
}

/// Submits a chat of user `number`, with an idempotency key of its own.
pub async fn submit(app: &App, number: u64, mode: Mode, message: &str) -> Result<RunId, Rejected> {
    let input = ChatInput {
        source: Source::Http,
        mode,
        user: User {
            id: format!("u{number}"),
            name: "Ada".into(),
        },
        context: Context::default(),
        message: message.into(),
        attachments: vec![],
        salience: Default::default(),
    };
    let ids = RequestIds {
        idempotency_key: Some(format!("k{number}")),
        correlation_id: None,
    };
    app.submit(app.chat_request(input)?, ids, AckTiming::WithReply)
        .await
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
}

/// Checks one run's journal against every rule of its money and its reply.
fn hold(run: RunId, entries: &[Entry], row: &journal::RunRow, threshold: f64) {
    assert_eq!(journal::verify(run, entries, &row.head_hash), Ok(()));
    let Some(finished) = Transcript::of_entries(entries).finished else {
        panic!("run {run} has no end")
    };
    let mut reserved: BTreeMap<&str, Usd> = BTreeMap::new();
    let mut known: BTreeMap<&str, Usd> = BTreeMap::new();
    let (mut settled, mut overbilled) = (Usd::ZERO, false);
    for entry in entries {
        match &entry.event {
            Event::CallSent(sent) => {
                let amount = sent.reserved.as_ref().map_or(Usd::ZERO, |r| r.amount);
                assert_eq!(
                    known.insert(&sent.call, amount),
                    None,
                    "{} was sent twice",
                    sent.call
                );
                reserved.insert(&sent.call, amount);
                let committed = settled + reserved.values().copied().sum();
                assert!(
                    amount == Usd::ZERO || committed <= row.cap,
                    "{} was bought beyond the cap",
                    sent.call
                );
            }
            Event::CallSettled(end) => {
                let amount = reserved
                    .remove(end.call.as_str())
                    .expect("a call is sent before it is settled");
                settled += end.cost;
                overbilled |= end.cost > amount;
            }
            _ => {}
        }
        let committed = settled + reserved.values().copied().sum();
        assert!(
            overbilled || committed <= row.cap,
            "{committed} of {} at {}",
            row.cap,
            entry.key
        );
    }
    assert!(reserved.is_empty(), "every call is settled: {reserved:?}");
    assert_eq!((row.spent, finished.spent), (settled, settled));
    let cause = |cause| matches!(&finished.ending, Ending::Failed { cause: c, .. } if *c == cause);
    assert!(!cause(Cause::Internal), "{:?}", finished.ending);
    if let Ending::Replied { reply } = &finished.ending {
        assert_eq!(reply.meta.budget.exceeded, overbilled);
        app::hold(run, entries, &row.head_hash, threshold);
    }
}

#[derive(Debug, Clone)]
struct Schedule {
    seed: u64,
    greedy: bool,
    /// The solver is asked first.
    escalates: bool,
    cap_cents: u64,
    modes: Vec<u8>,
    /// The number of calls after which a run is cancelled, by the run's number.
    cancels: BTreeMap<u8, u64>,
    /// The number of calls after which the process dies.
    dies_after: Option<u64>,
}

fn schedules() -> impl Strategy<Value = Schedule> {
    let modes = prop::collection::vec(0u8..3, 1..5);
    let cancels = prop::collection::btree_map(0u8..5, 0u64..20, 0..2);
    let dies_after = prop::option::of(1u64..40);
    (
        any::<u64>(),
        prop::bool::weighted(0.3),
        any::<bool>(),
        2u64..40,
        modes,
        cancels,
        dies_after,
    )
        .prop_map(
            |(seed, greedy, escalates, cap_cents, modes, cancels, dies_after)| Schedule {
                seed,
                greedy,
                escalates,
                cap_cents,
                modes,
                cancels,
                dies_after,
            },
        )
}

fn setup(cap_cents: u64, escalates: bool) -> Setup {
    let role = |model: &str, fallback: &str| {
        json!({ "provider": "anthropic", "model": model, "maxTokens": 1200,
                "fallback": { "provider": "anthropic", "model": fallback, "maxTokens": 900 } })
    };
    let cap = (cap_cents as f64 / 100.0).to_string();
    let strategy = if escalates {
        "escalate"
    } else {
        "committee_first"
    };
    Setup::default()
        .env("DECISION_STRATEGY", strategy)
        .env("NORMAL_MAX_USD", cap.clone())
        .env("DEEP_MAX_USD", cap)
        .set(
            "/policy/retry",
            json!({ "attempts": 3, "baseMs": 1, "maxMs": 10 }),
        )
        .set(
            "/policy/deadlines",
            json!({ "connect": 1, "call": 1, "ask": 4, "audit": 4, "deep": 4 }),
        )
        .set("/models/roles/master", role("MASTER_MODEL", "SOLVER_MODEL"))
        .set("/models/roles/solver", role("SOLVER_MODEL", "MASTER_MODEL"))
}

async fn begin(app: &Arc<App>, schedule: &Schedule) -> Vec<RunId> {
    let message = Scenario::converging().message;
    let mut runs = vec![];
    for (number, mode) in (0u64..).zip(&schedule.modes) {
        let mode = [Mode::Ask, Mode::Audit, Mode::Deep][usize::from(*mode)];
        // Each question is submitted twice at once and makes one run.
        let (once, again) = tokio::join!(
            submit(app, number, mode, &message),
            submit(app, number, mode, &message)
        );
        let (once, again) = (once.unwrap(), again.unwrap());
        assert_eq!(once, again);
        runs.push(once);
    }
    runs
}

/// Waits until the provider has got this number of calls, or all runs have ended.
async fn until_calls(house: &House, app: &Arc<App>, runs: &[RunId], calls: u64) {
    let is_open = async |run: RunId| {
        let row = app.run(run).await.unwrap().unwrap();
        !row.state.is_terminal()
    };
    until(async || {
        let mut open = 0;
        for run in runs {
            open += usize::from(is_open(*run).await);
        }
        open == 0 || house.calls.load(Ordering::Relaxed) >= calls
    })
    .await;
}

fn play(schedule: &Schedule) {
    let house = House {
        folder: TempDir::new().unwrap(),
        setup: setup(schedule.cap_cents, schedule.escalates),
        seed: schedule.seed,
        greedy: schedule.greedy,
        calls: Arc::default(),
    };
    let mut first = Some(runtime());
    let runs = first.as_ref().unwrap().block_on(async {
        let app = house.open("first", 0).await;
        let runs = begin(&app, schedule).await;
        for (number, calls) in &schedule.cancels {
            if let Some(run) = runs.get(usize::from(*number)) {
                until_calls(&house, &app, &runs, *calls).await;
                app.cancel(*run).await.unwrap();
            }
        }
        if let Some(calls) = schedule.dies_after {
            until_calls(&house, &app, &runs, calls).await;
        }
        runs
    });
    if schedule.dies_after.is_some() {
        // Drops every task at its current point.
        drop(first.take());
        house.bury("first");
    }
    let second = first.unwrap_or_else(runtime);
    second.block_on(async {
        let app = house.open("second", 1).await;
        app.keep_recovering();
        for run in runs {
            tokio::time::timeout(PATIENCE, app.finished(run))
                .await
                .expect("every run ends")
                .unwrap();
            let row = app.run(run).await.unwrap().unwrap();
            let entries = app.entries(run).await.unwrap();
            hold(run, &entries, &row, app.config.policy.scoring.ask_threshold);
        }
        app.drain(PATIENCE).await;
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: CASES, max_shrink_iters: 20, ..ProptestConfig::default() })]

    #[test]
    fn no_schedule_of_a_hostile_provider_passes_the_cap(schedule in schedules()) {
        play(&schedule);
    }
}

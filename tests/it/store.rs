//! One story of the journal's store, told to every database that there is.

use std::sync::Arc;
use std::time::Duration;

use conclave::domain::{Context, Mode, Question, RunId, Source, Usd, User};
use conclave::journal::{
    Acceptance, Accepted, Asker, CallResult, CallSent, CallSettled, CallStop, CancelOutcome, Cause, Claim, Ending,
    Error, Event, Finished, Held, NewRun, RunFilter, RunState, SqliteStore, Store, verify,
};
use jiff::{SignedDuration, Timestamp};
use tempfile::TempDir;
use uuid::Uuid;

const LEASE: Duration = Duration::from_secs(30);

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_768_000_000 + second).unwrap()
}

fn id(n: u128) -> RunId {
    RunId::from_uuid(Uuid::from_u128((0x0190_0000_0000_7000_8000_0000_0000_0000) + n))
}

fn new_run(n: u128, key: Option<&str>, body: &str) -> NewRun {
    let question = Question {
        source: Source::Http,
        mode: Mode::Ask,
        user: User { id: "ada".into(), name: "Ada".into() },
        context: Context { channel_id: Some("c1".into()), ..Context::default() },
        message: body.into(),
        attachments: vec![],
    };
    let accepted = Accepted {
        question,
        continues: None,
        correlation_id: None,
        cap: Usd::from_dollars(0.1),
        seed: 1,
        config_hash: "c".into(),
        prompts_hash: "p".into(),
        version: "0".into(),
    };
    let second = i64::try_from(n).unwrap();
    NewRun { id: id(n), at: at(second), accepted, idempotency_key: key.map(str::to_owned), body_hash: body.into() }
}

fn sent(call: &str) -> Event {
    Event::CallSent(CallSent {
        call: call.into(),
        role: conclave::domain::Role::Master,
        provider: "p".into(),
        model: "m".into(),
        reserved: None,
        max_tokens: 10,
        prompt_hash: "h".into(),
    })
}

fn settled(call: &str) -> Event {
    Event::CallSettled(CallSettled {
        call: call.into(),
        result: CallResult::Answered { text: "t".into(), stop: CallStop::End },
        cost: Usd::from_nanos(700),
        latency_ms: 1,
        usage: None,
    })
}

fn failed() -> Event {
    let ending = Ending::Failed { cause: Cause::Provider, detail: "gone".into() };
    Event::Finished(Box::new(Finished { ending, spent: Usd::ZERO }))
}

async fn story(store: Arc<dyn Store>) {
    store.ready().await.unwrap();

    // Taking runs on: the same key and body join, another body is told apart.
    assert_eq!(store.accept(new_run(1, Some("k"), "one")).await.unwrap(), Acceptance::New);
    assert_eq!(store.accept(new_run(2, Some("k"), "one")).await.unwrap(), Acceptance::Joined(id(1)));
    assert_eq!(store.accept(new_run(3, Some("k"), "two")).await.unwrap(), Acceptance::KeyReused(id(1)));
    assert_eq!(store.accept(new_run(4, None, "four")).await.unwrap(), Acceptance::New);
    assert_eq!(store.in_flight().await.unwrap(), 2);
    assert_eq!(store.by_key("k").await.unwrap(), Some((id(1), "one".into())));

    // One of many claims gets the run, and the oldest comes first.
    let claims = (0..8).map(|n| {
        let store = Arc::clone(&store);
        async move { store.claim(Claim::Run(id(1)), &format!("o{n}"), LEASE, at(10)).await.unwrap() }
    });
    let leases: Vec<_> = futures_util::future::join_all(claims).await.into_iter().flatten().collect();
    assert_eq!(leases.len(), 1);
    let first = leases.into_iter().next().unwrap();
    assert_eq!(store.claim(Claim::Oldest, "b", LEASE, at(10)).await.unwrap().unwrap().run, id(4));
    assert_eq!(store.claim(Claim::Oldest, "b", LEASE, at(10)).await.unwrap(), None);

    // Entries are numbered without gaps, chained, and an event happens once.
    store.append(&first, at(11), &[sent("plan")]).await.unwrap();
    store.append(&first, at(12), &[settled("plan"), settled("plan")]).await.unwrap();
    store.append(&first, at(12), &[settled("plan")]).await.unwrap();
    let entries = store.entries(id(1), 0).await.unwrap();
    let keys: Vec<&str> = entries.iter().map(|e| e.key.as_str()).collect();
    assert_eq!(keys, ["accepted", "claimed/1", "sent:plan", "settled:plan"]);
    assert_eq!(store.entries(id(1), 2).await.unwrap(), entries[2..]);
    let row = store.run(id(1)).await.unwrap().unwrap();
    assert_eq!(verify(id(1), &entries, &row.head_hash), Ok(()));
    assert!(verify(id(1), &entries[..3], &row.head_hash).is_err(), "a cut tail is found");
    assert_eq!((row.state, row.spent), (RunState::Running, Usd::from_nanos(700)));

    // Renewing keeps the lease; once it has run out, another takes over and the first can write no more.
    assert_eq!(store.renew(&first, LEASE, at(20)).await.unwrap(), Held::Yes);
    assert_eq!(store.claim(Claim::Run(id(1)), "c", LEASE, at(49)).await.unwrap(), None);
    let second = store.claim(Claim::Run(id(1)), "c", LEASE, at(51)).await.unwrap().unwrap();
    assert_eq!(second.epoch, first.epoch + 1);
    assert!(matches!(store.append(&first, at(52), &[sent("late")]).await, Err(Error::LeaseLost)));
    assert_eq!(store.renew(&first, LEASE, at(52)).await.unwrap(), Held::Lost);

    // A cancellation stops new intents and lets ends be written.
    store.append(&second, at(53), &[sent("r1/solver")]).await.unwrap();
    assert_eq!(store.cancel(id(1)).await.unwrap(), CancelOutcome::Requested);
    assert_eq!(store.renew(&second, LEASE, at(54)).await.unwrap(), Held::CancelRequested);
    assert!(matches!(store.append(&second, at(54), &[sent("r1/critic")]).await, Err(Error::CancelRequested)));
    store.append(&second, at(55), &[settled("r1/solver"), failed()]).await.unwrap();
    assert_eq!(store.cancel(id(1)).await.unwrap(), CancelOutcome::AlreadyFinished(RunState::Failed));
    assert_eq!(store.cancel(id(99)).await.unwrap(), CancelOutcome::Unknown);
    assert!(matches!(store.append(&second, at(56), &[sent("more")]).await, Err(Error::LeaseLost)));
    let row = store.run(id(1)).await.unwrap().unwrap();
    assert_eq!(row.cause.as_deref(), Some("provider: gone"));
    assert_eq!(row.finished_at, Some(at(55)));

    // Lists are newest first, by filters and from a cursor.
    store.accept(new_run(5, None, "five")).await.unwrap();
    let list = |filter: RunFilter| {
        let store = Arc::clone(&store);
        async move {
            let rows = store.runs(&RunFilter { limit: 10, ..filter }).await.unwrap();
            rows.into_iter().map(|row| row.id).collect::<Vec<_>>()
        }
    };
    assert_eq!(list(RunFilter::default()).await, [id(5), id(4), id(1)]);
    assert_eq!(list(RunFilter { state: Some(RunState::Failed), ..RunFilter::default() }).await, [id(1)]);
    assert_eq!(list(RunFilter { before: Some(id(4)), ..RunFilter::default() }).await, [id(1)]);
    assert_eq!(list(RunFilter { since: Some(at(4)), ..RunFilter::default() }).await, [id(5), id(4)]);
    assert_eq!(list(RunFilter { user_id: Some("nobody".into()), ..RunFilter::default() }).await, []);
    assert_eq!(list(RunFilter { mode: Some(Mode::Deep), ..RunFilter::default() }).await, []);

    // The asker's last run counts, and only once it has a reply.
    let asker = Asker { source: Source::Http, user_id: "ada".into(), guild_id: None, channel_id: Some("c1".into()) };
    let since = at(0).saturating_sub(SignedDuration::from_mins(30)).unwrap();
    assert_eq!(store.last_reply(&asker, since).await.unwrap(), None, "the newest run is not finished");
}

#[tokio::test]
async fn sqlite_keeps_the_story() {
    let folder = TempDir::new().unwrap();
    let store = SqliteStore::open(&folder.path().join("conclave.db"), "one").await.unwrap();
    story(Arc::new(store)).await;
}

#[tokio::test]
async fn a_second_process_on_the_file_shares_the_runs_and_takes_over_from_the_dead() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("conclave.db");
    let first = SqliteStore::open(&path, "one").await.unwrap();
    let second = SqliteStore::open(&path, "two").await.unwrap();
    first.accept(new_run(1, None, "one")).await.unwrap();
    let held = first.claim(Claim::Oldest, "one", LEASE, at(10)).await.unwrap();
    assert!(held.is_some());
    second.release_dead().await.unwrap();
    assert_eq!(second.claim(Claim::Oldest, "two", LEASE, at(11)).await.unwrap(), None, "the first is alive");
    // A process that died leaves its file behind, without the lock.
    drop(first);
    std::fs::write(path.with_extension("db.owners").join("one"), "").unwrap();
    second.release_dead().await.unwrap();
    let taken = second.claim(Claim::Oldest, "two", LEASE, at(11)).await.unwrap();
    assert_eq!(taken.map(|lease| lease.run), Some(id(1)));
}

#[tokio::test]
async fn a_row_that_cannot_be_is_named() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("conclave.db");
    let store = SqliteStore::open(&path, "one").await.unwrap();
    store.accept(new_run(1, None, "one")).await.unwrap();
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(&path);
    let pool = sqlx::SqlitePool::connect_with(options).await.unwrap();
    sqlx::query("UPDATE runs SET state = 'asleep'").execute(&pool).await.unwrap();
    let error = store.run(id(1)).await.unwrap_err();
    assert!(matches!(error, Error::Corrupt { table: "runs", column: "state", .. }), "{error}");
}

#[tokio::test]
async fn a_folder_that_cannot_be_written_is_a_clear_error() {
    let folder = TempDir::new().unwrap();
    let blocker = folder.path().join("file");
    std::fs::write(&blocker, "").unwrap();
    let error = SqliteStore::open(&blocker.join("conclave.db"), "one").await.err().unwrap();
    assert!(matches!(error, Error::Unavailable(_)), "{error}");
}

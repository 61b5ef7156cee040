//! One story of the journal's store, told to every database that there is.

use std::sync::Arc;
use std::time::Duration;

use conclave::domain::{Context, Mode, Question, RunId, Scope, Source, Usd, User};
use conclave::journal::{
    Acceptance, Accepted, Annotated, Archive, Asker, CallResult, CallSent, CallSettled, CallStop, CancelOutcome, Cause,
    Claim, Ending, Error, Event, Feedback, Finished, Held, NewRun, PostgresStore, Restored, RunFilter, RunState,
    SpendingLimit, SpendingScope, SqliteStore, Store, TokenRow, verify,
};
use jiff::{SignedDuration, Timestamp};
use tempfile::TempDir;
use uuid::Uuid;

use crate::support::postgres;

const LEASE: Duration = Duration::from_secs(30);

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_768_000_000 + second).unwrap()
}

fn id(n: u128) -> RunId {
    RunId::from_uuid(Uuid::from_u128((0x0190_0000_0000_7000_8000_0000_0000_0000) + n))
}

pub fn new_run(n: u128, key: Option<&str>, body: &str) -> NewRun {
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
        action: None,
        continues: None,
        correlation_id: None,
        cap: Usd::from_dollars(0.1),
        seed: 1,
        config_hash: "c".into(),
        prompts_hash: "p".into(),
        version: "0".into(),
    };
    let second = i64::try_from(n).unwrap();
    let idempotency_key = key.map(str::to_owned);
    NewRun { id: id(n), at: at(second), accepted, idempotency_key, body_hash: body.into(), limits: vec![] }
}

fn sent(call: &str) -> Event {
    Event::CallSent(CallSent {
        call: call.into(),
        role: conclave::domain::Role::Master,
        provider: "p".into(),
        model: "m".into(),
        reserved: None,
        max_tokens: 10,
        effort: None,
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
        served: None,
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

    // Renewing keeps the lease; once it has run out, another takes over and the first can write no more. A lease of no
    // length has run out by every clock.
    assert_eq!(store.renew(&first, LEASE, at(20)).await.unwrap(), Held::Yes);
    assert_eq!(store.claim(Claim::Run(id(1)), "c", LEASE, at(49)).await.unwrap(), None);
    assert_eq!(store.renew(&first, Duration::ZERO, at(50)).await.unwrap(), Held::Yes);
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

    // A character that a database cannot hold changes nothing in the journal.
    let odd = NewRun { at: at(5), ..new_run(6, Some("odd"), "a\0b") };
    assert_eq!(store.accept(odd.clone()).await.unwrap(), Acceptance::New);
    assert!(matches!(&store.entries(id(6), 0).await.unwrap()[0].event, Event::Accepted(a) if **a == odd.accepted));
    assert!(store.run(id(6)).await.unwrap().unwrap().message.starts_with('a'));
    let lease = store.claim(Claim::Run(id(6)), "c", LEASE, at(56)).await.unwrap().unwrap();
    let ending = Ending::Failed { cause: Cause::Provider, detail: "said \0".into() };
    let finished = Event::Finished(Box::new(Finished { ending, spent: Usd::ZERO }));
    store.append(&lease, at(57), std::slice::from_ref(&finished)).await.unwrap();
    assert_eq!(store.entries(id(6), 2).await.unwrap()[0].event, finished);
}

/// What happens at once, through two doors to one database.
async fn crowd(one: Arc<dyn Store>, two: Arc<dyn Store>) {
    let door = |n: u128| Arc::clone(if n.is_multiple_of(2) { &one } else { &two });
    async fn all<T>(them: impl Iterator<Item = impl Future<Output = Result<T, Error>>>) -> Vec<T> {
        futures_util::future::join_all(them).await.into_iter().map(Result::unwrap).collect()
    }

    // A hundred with one key make one run, also under a limit that has room for one only.
    let limit = SpendingLimit { scope: SpendingScope::Everyone, since: at(0), most: Usd::from_dollars(0.15) };
    let accepted = all((1..=100).map(|n| {
        let run = NewRun { limits: vec![limit.clone()], ..new_run(n, Some("k"), "one") };
        async move { door(n).accept(run).await }
    }))
    .await;
    assert_eq!(accepted.iter().filter(|a| **a == Acceptance::New).count(), 1);
    let rows = one.runs(&RunFilter { limit: 10, ..RunFilter::default() }).await.unwrap();
    assert_eq!(rows.len(), 1);
    let run = rows[0].id;
    assert_eq!(accepted.iter().filter(|a| **a == Acceptance::Joined(run)).count(), 99);

    // However many come at once, and whichever limits they name first, no limit is passed.
    let ada =
        SpendingLimit { scope: SpendingScope::User("ada".into()), most: Usd::from_dollars(0.75), ..limit.clone() };
    let everyone = SpendingLimit { most: Usd::from_dollars(1.0), ..limit };
    let accepted = all((101..=140).map(|n| {
        let mut limits = vec![ada.clone(), everyone.clone()];
        if n % 3 == 0 {
            limits.reverse();
        }
        let run = NewRun { limits, ..new_run(n, None, "limited") };
        async move { door(n).accept(run).await }
    }))
    .await;
    assert_eq!(accepted.iter().filter(|a| **a == Acceptance::New).count(), 6, "0.1 of 0.75 was gone already");
    assert_eq!(one.exposure(&ada).await.unwrap(), Usd::from_dollars(0.7));

    // Every run is claimed once.
    let claims = all((0..20).map(|n| async move { door(n).claim(Claim::Oldest, "o", LEASE, at(200)).await })).await;
    let mut claimed: Vec<RunId> = claims.iter().flatten().map(|lease| lease.run).collect();
    claimed.sort_unstable();
    claimed.dedup();
    assert_eq!((claimed.len(), claims.iter().flatten().count()), (7, 7));

    // Entries that are written at once, some of them twice, stand in one chain without gaps.
    let lease = claims.into_iter().flatten().next().unwrap();
    all((0..40).map(|n| {
        let lease = &lease;
        async move { door(n).append(lease, at(201), &[sent(&format!("step{}", n / 2))]).await }
    }))
    .await;
    let entries = two.entries(lease.run, 0).await.unwrap();
    assert_eq!(entries.iter().map(|e| e.seq).collect::<Vec<_>>(), (1..=22).collect::<Vec<_>>());
    let row = one.run(lease.run).await.unwrap().unwrap();
    assert_eq!(verify(lease.run, &entries, &row.head_hash), Ok(()));
}

/// Spending, tokens, and finished runs on their way out and in.
async fn keeping(store: Arc<dyn Store>, other: Arc<dyn Store>) {
    let limit =
        |scope: SpendingScope, dollars: f64| SpendingLimit { scope, since: at(0), most: Usd::from_dollars(dollars) };
    let limited = |n: u128, limit: SpendingLimit| NewRun { limits: vec![limit], ..new_run(n, None, "limited") };
    let ada = || SpendingScope::User("ada".into());

    // A run in flight counts with its cap, a finished one with what it spent.
    assert_eq!(store.accept(limited(1, limit(ada(), 0.15))).await.unwrap(), Acceptance::New);
    let over = store.accept(limited(2, limit(ada(), 0.15))).await.unwrap();
    assert_eq!(over, Acceptance::OverLimit { scope: ada(), left: Usd::from_dollars(0.05) });
    assert_eq!(store.run(id(2)).await.unwrap(), None);
    assert_eq!(store.exposure(&limit(SpendingScope::Everyone, 1.0)).await.unwrap(), Usd::from_dollars(0.1));
    assert_eq!(store.exposure(&limit(SpendingScope::Guild("g".into()), 1.0)).await.unwrap(), Usd::ZERO);
    let lease = store.claim(Claim::Oldest, "o", LEASE, at(2)).await.unwrap().unwrap();
    assert_eq!(store.archive(id(1)).await.unwrap(), None, "it is not finished");
    let feedback = Event::Feedback(Feedback { number: 1, positive: true, comment: Some("nul \0".into()) });
    assert_eq!(store.annotate(id(1), at(3), &feedback).await.unwrap(), Annotated::Unfinished);
    assert_eq!(store.annotate(id(98), at(3), &feedback).await.unwrap(), Annotated::Unknown);
    store.append(&lease, at(3), &[sent("plan"), settled("plan"), failed()]).await.unwrap();
    assert_eq!(store.exposure(&limit(ada(), 1.0)).await.unwrap(), Usd::from_nanos(700));
    assert_eq!(store.accept(limited(2, limit(ada(), 0.15))).await.unwrap(), Acceptance::New);
    let later = SpendingLimit { since: at(3), ..limit(ada(), 1.0) };
    assert_eq!(store.exposure(&later).await.unwrap(), Usd::ZERO, "a new day begins with nothing spent");

    // Tokens are found by id, and stay in the list when they are revoked.
    let token = TokenRow {
        id: "t1".into(),
        name: "bot".into(),
        scopes: vec![Scope::Chat, Scope::Act],
        hash: "h".into(),
        created_at: at(1),
        expires_at: Some(at(9)),
        revoked_at: None,
    };
    store.add_token(&token).await.unwrap();
    assert_eq!(store.token("t1").await.unwrap().as_ref(), Some(&token));
    assert_eq!(store.token("t2").await.unwrap(), None);
    assert!(store.revoke_token("t1", at(5)).await.unwrap());
    assert!(!store.revoke_token("t1", at(6)).await.unwrap() && !store.revoke_token("t2", at(6)).await.unwrap());
    assert_eq!(store.tokens().await.unwrap(), [TokenRow { revoked_at: Some(at(5)), ..token }]);

    // What is said after the end goes on with the chain, once under one key.
    assert_eq!(store.annotate(id(1), at(4), &feedback).await.unwrap(), Annotated::Written);
    assert_eq!(store.annotate(id(1), at(5), &feedback).await.unwrap(), Annotated::Taken);
    let (entries, row) = (store.entries(id(1), 0).await.unwrap(), store.run(id(1)).await.unwrap().unwrap());
    assert_eq!((entries.last().unwrap().key.as_str(), row.finished_at), ("feedback/1", Some(at(3))));
    assert_eq!(verify(id(1), &entries, &row.head_hash), Ok(()));

    // A finished run travels whole: row, chain and idempotency key are as they were.
    let archive = store.archive(id(1)).await.unwrap().unwrap();
    let line = serde_json::to_string(&archive).unwrap();
    let archive: Archive = serde_json::from_str(&line).unwrap();
    assert_eq!(other.restore(&archive).await.unwrap(), Restored::New);
    assert_eq!(other.restore(&archive).await.unwrap(), Restored::Known);
    let (here, there) = (store.run(id(1)).await.unwrap(), other.run(id(1)).await.unwrap());
    assert_eq!(here, there);
    assert_eq!(store.entries(id(1), 0).await.unwrap(), other.entries(id(1), 0).await.unwrap());
    assert_eq!(other.archive(id(1)).await.unwrap().as_ref(), Some(&archive));

    // One that was altered, cut or never finished is refused, and nothing of it stays.
    let unsound = |change: fn(&mut Archive)| {
        let mut altered = Archive { run: id(1), ..archive.clone() };
        change(&mut altered);
        let store = Arc::clone(&other);
        async move {
            let result = store.restore(&altered).await;
            assert!(matches!(result, Err(Error::Unsound { .. })), "{result:?}");
        }
    };
    unsound(|a| a.run = id(7)).await;
    unsound(|a| a.entries[1].body.push(' ')).await;
    unsound(|a| a.entries.truncate(3)).await;
    unsound(|a| a.entries.clear()).await;
    unsound(|a| a.version = 9).await;
    assert_eq!(other.run(id(7)).await.unwrap(), None);

    // Retention removes finished runs, oldest first, and never one in flight.
    assert_eq!(store.prunable(at(3)).await.unwrap(), 0);
    assert_eq!(store.prunable(at(4)).await.unwrap(), 1);
    assert_eq!(store.prune(at(4), 10).await.unwrap(), 1);
    assert_eq!(store.prune(at(4), 10).await.unwrap(), 0);
    assert_eq!((store.run(id(1)).await.unwrap(), store.entries(id(1), 0).await.unwrap()), (None, vec![]));
    assert!(store.run(id(2)).await.unwrap().is_some());
}

#[tokio::test]
async fn a_backup_of_sqlite_is_a_whole_database() {
    let folder = TempDir::new().unwrap();
    let store = SqliteStore::open(&folder.path().join("conclave.db"), "one").await.unwrap();
    store.accept(new_run(1, Some("k"), "one")).await.unwrap();
    let copy = folder.path().join("copy.db");
    store.backup(&copy).await.unwrap();
    store.accept(new_run(2, None, "two")).await.unwrap();
    assert!(store.backup(&copy).await.is_err(), "an old backup is not overwritten");
    let copied = SqliteStore::open(&copy, "two").await.unwrap();
    assert_eq!(copied.entries(id(1), 0).await.unwrap(), store.entries(id(1), 0).await.unwrap());
    assert_eq!(copied.run(id(2)).await.unwrap(), None, "it came after the backup");
}

async fn sqlite(folder: &TempDir, file: &str, owner: &str) -> Arc<SqliteStore> {
    Arc::new(SqliteStore::open(&folder.path().join(file), owner).await.unwrap())
}

async fn postgresql(url: &str, owner: &str) -> Arc<PostgresStore> {
    Arc::new(PostgresStore::open(url, owner).await.unwrap())
}

#[tokio::test]
async fn sqlite_keeps_the_story() {
    let folder = TempDir::new().unwrap();
    story(sqlite(&folder, "a.db", "one").await).await;
}

#[tokio::test]
async fn postgresql_keeps_the_story() {
    story(postgresql(&postgres::fresh().await, "one").await).await;
}

#[tokio::test]
async fn sqlite_keeps_spending_tokens_and_archives() {
    let folder = TempDir::new().unwrap();
    keeping(sqlite(&folder, "a.db", "one").await, sqlite(&folder, "b.db", "two").await).await;
}

#[tokio::test]
async fn postgresql_keeps_spending_tokens_and_archives() {
    let (here, there) = (postgres::fresh().await, postgres::fresh().await);
    keeping(postgresql(&here, "one").await, postgresql(&there, "two").await).await;
}

#[tokio::test]
async fn an_archive_goes_from_sqlite_to_postgresql() {
    let folder = TempDir::new().unwrap();
    keeping(sqlite(&folder, "a.db", "one").await, postgresql(&postgres::fresh().await, "two").await).await;
}

#[tokio::test]
async fn sqlite_stands_a_crowd() {
    let folder = TempDir::new().unwrap();
    crowd(sqlite(&folder, "a.db", "one").await, sqlite(&folder, "a.db", "two").await).await;
}

#[tokio::test]
async fn postgresql_stands_a_crowd() {
    let url = postgres::fresh().await;
    let (one, two) = tokio::join!(postgresql(&url, "one"), postgresql(&url, "two"));
    crowd(one, two).await;
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

#[tokio::test]
async fn processes_that_make_a_database_at_once_do_not_hinder_each_other() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("conclave.db");
    let open = |n: u32| {
        let path = path.clone();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async { SqliteStore::open(&path, &format!("o{n}")).await.map(drop) })
        })
    };
    let opened: Vec<_> = (0..8).map(open).collect();
    for result in opened {
        result.join().unwrap().unwrap();
    }
}

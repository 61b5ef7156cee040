//! Tests the store of the journal, with the same checks for SQLite and PostgreSQL.

mod archives;
mod crowd;
mod learned;
mod sqlite_file;
mod story;

use std::sync::Arc;
use std::time::Duration;

use conclave::domain::{Context, Mode, Question, RunId, Source, Usd, User};
use conclave::journal::{
    Accepted, CallResult, CallSent, CallSettled, CallStop, Cause, Ending, Event, Finished, NewRun,
    PostgresStore, SqliteStore,
};
use jiff::Timestamp;
use tempfile::TempDir;
use uuid::Uuid;

const LEASE: Duration = Duration::from_secs(30);

pub fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_768_000_000 + second).unwrap()
}

pub fn id(n: u128) -> RunId {
    RunId::from_uuid(Uuid::from_u128(
        (0x0190_0000_0000_7000_8000_0000_0000_0000) + n,
    ))
}

pub fn new_run(n: u128, key: Option<&str>, body: &str) -> NewRun {
    let question = Question {
        source: Source::Http,
        mode: Mode::Ask,
        user: User {
            id: "ada".into(),
            name: "Ada".into(),
        },
        context: Context {
            channel_id: Some("c1".into()),
            ..Context::default()
        },
        message: body.into(),
        attachments: vec![],
        salience: Default::default(),
    };
    let accepted = Accepted {
        question,
        action: None,
        tools: None,
        narrates: None,
        ignores_learned: false,
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
    NewRun {
        id: id(n),
        at: at(second),
        accepted,
        idempotency_key,
        body_hash: body.into(),
        limits: vec![],
    }
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
        result: CallResult::Answered {
            // Long enough to be stored compressed.
            text: "text ".repeat(200),
            stop: CallStop::End,
        },
        cost: Usd::from_nanos(700),
        latency_ms: 1,
        usage: None,
        served: None,
    })
}

fn failed() -> Event {
    let ending = Ending::Failed {
        cause: Cause::Provider,
        detail: "gone".into(),
    };
    Event::Finished(Box::new(Finished {
        ending,
        spent: Usd::ZERO,
    }))
}

async fn sqlite(folder: &TempDir, file: &str, owner: &str) -> Arc<SqliteStore> {
    Arc::new(
        SqliteStore::open(&folder.path().join(file), owner)
            .await
            .unwrap(),
    )
}

async fn postgresql(url: &str, owner: &str) -> Arc<PostgresStore> {
    Arc::new(PostgresStore::open(url, owner).await.unwrap())
}

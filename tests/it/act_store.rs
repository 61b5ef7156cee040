//! Tests what the store keeps of actions, on SQLite and on PostgreSQL.

use std::sync::Arc;
use std::time::Duration;

use conclave::domain::{
    ActionGate, ActionMode, CommandName, Context, Question, RunKind, Source, Usd, User,
};
use conclave::journal::{
    AcceptThen, Acceptance, AckTiming, ActionOutcome, ActionSubmission, Claim, Effect, Ending,
    Event, Executed, Finished, GateChecked, NewRun, Owner, Parsed, PostgresStore, Requester,
    Restored, RunFilter, RunState, SpendingLimit, SpendingScope, SqliteStore, StartOutcome, Store,
    verify,
};
use jiff::SignedDuration;
use serde_json::json;
use tempfile::TempDir;

use crate::store::{at, id, new_run};
use crate::support::postgres;

/// Returns an action of a user in the guild `g`.
fn action(n: u128, user: &str, message: &str, key: Option<&str>) -> NewRun {
    let mut run = new_run(n, key, message);
    run.accepted.action = Some(ActionSubmission::default());
    run.accepted.cap = Usd::ZERO;
    run.accepted.question = Question {
        source: Source::Discord,
        user: User {
            id: user.into(),
            name: user.into(),
        },
        context: Context {
            guild_id: Some("g".into()),
            channel_id: Some("c".into()),
            message_id: None,
        },
        ..run.accepted.question
    };
    run
}

fn owner(user: &str) -> Owner {
    Owner {
        source: Source::Discord,
        user_id: user.into(),
        guild_id: Some("g".into()),
    }
}

/// Returns the events of a complete action that changes something.
fn events(command: CommandName, effect: Option<Effect>) -> Vec<Event> {
    let parsed = Parsed {
        command,
        arguments: json!({}),
        mode: ActionMode::Deterministic,
        confidence: 1.0,
        reason: None,
    };
    let executed = Executed {
        command,
        result: json!({ "text": "done" }),
        effect,
    };
    let ending = Ending::Acted {
        outcome: ActionOutcome::Executed,
        response: json!({ "executed": true }),
    };
    vec![
        Event::Parsed(parsed),
        Event::Executed(Box::new(executed)),
        Event::Finished(Box::new(Finished {
            ending,
            spent: Usd::ZERO,
        })),
    ]
}

fn finish(command: CommandName, effect: Option<Effect>) -> AcceptThen {
    AcceptThen::Finish {
        events: events(command, effect),
        if_stamp: None,
        narrator: None,
    }
}

async fn remember(store: &Arc<dyn Store>, n: u128, user: &str, content: &str) {
    let effect = Effect::Memory {
        content: content.into(),
    };
    act(store, (n, content), user, CommandName::MemoryAdd, effect).await;
}

async fn act(
    store: &Arc<dyn Store>,
    (n, message): (u128, &str),
    user: &str,
    command: CommandName,
    effect: Effect,
) {
    let then = finish(command, Some(effect));
    let action = action(n, user, message, None);
    assert_eq!(
        store.begin(action, then).await.unwrap(),
        StartOutcome::Finished
    );
}

async fn found(store: &Arc<dyn Store>, user: &str, words: &[&str]) -> Vec<String> {
    let terms: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    let rows = store.memories(&owner(user), &[terms], 10).await.unwrap();
    rows.into_iter().map(|row| row.content).collect()
}

async fn story(store: Arc<dyn Store>, other: Arc<dyn Store>) {
    // An action that ends at once is stored with its whole chain and is not listed as a chat.
    let then = || finish(CommandName::Roll, None);
    assert_eq!(
        store
            .begin(action(1, "ada", "roll 1d6", Some("k")), then())
            .await
            .unwrap(),
        StartOutcome::Finished
    );
    let again = store
        .begin(action(2, "ada", "roll 1d6", Some("k")), then())
        .await
        .unwrap();
    assert_eq!(again, StartOutcome::Refused(Acceptance::Joined(id(1))));
    let misuse = store
        .begin(action(2, "ada", "roll 1d8", Some("k")), then())
        .await
        .unwrap();
    assert_eq!(misuse, StartOutcome::Refused(Acceptance::KeyReused(id(1))));
    let row = store.run(id(1)).await.unwrap().unwrap();
    assert_eq!(
        (row.kind, row.state, row.spent),
        (RunKind::Action, RunState::Answered, Usd::ZERO)
    );
    let entries = store.entries(id(1), 0).await.unwrap();
    let keys: Vec<&str> = entries.iter().map(|e| e.key.as_str()).collect();
    assert_eq!(keys, ["accepted", "parsed", "executed", "finished"]);
    assert_eq!(verify(id(1), &entries, &row.head_hash), Ok(()));
    assert_eq!(
        store
            .claim(Claim::Oldest, "o", Duration::from_secs(30), at(9))
            .await
            .unwrap(),
        None
    );
    store.accept(new_run(3, None, "a question")).await.unwrap();
    let list = |kind: Option<RunKind>| {
        let store = Arc::clone(&store);
        async move {
            let rows = store
                .runs(&RunFilter {
                    kind,
                    limit: 10,
                    ..RunFilter::default()
                })
                .await
                .unwrap();
            rows.into_iter().map(|row| row.id).collect::<Vec<_>>()
        }
    };
    assert_eq!(list(Some(RunKind::Action)).await, [id(1)]);
    assert_eq!(list(Some(RunKind::Chat)).await, [id(3)]);
    assert_eq!(list(None).await, [id(3), id(1)]);

    // A later message cannot answer an action.
    let asker = Requester {
        source: Source::Discord,
        user_id: "ada".into(),
        guild_id: Some("g".into()),
        channel_id: Some("c".into()),
    };
    let since = at(0).saturating_sub(SignedDuration::from_mins(5)).unwrap();
    assert_eq!(store.last_reply(&asker, since).await.unwrap(), None);

    // An action with a lease belongs to this process until the lease expires.
    let hold = |lease| AcceptThen::Claim {
        owner: "o".into(),
        lease,
        ack: AckTiming::Immediate,
    };
    let StartOutcome::Leased(lease) = store
        .begin(action(4, "ada", "hm", None), hold(Duration::from_secs(30)))
        .await
        .unwrap()
    else {
        panic!("it is not held")
    };
    assert_eq!((lease.run, lease.epoch), (id(4), 1));
    assert_eq!(
        store
            .claim(Claim::Run(id(4)), "p", Duration::from_secs(30), at(9))
            .await
            .unwrap(),
        None
    );
    let gate = GateChecked {
        gate: ActionGate::Schema,
        passed: false,
        why: "nul \0".into(),
    };
    store
        .append(&lease, at(5), &[&Event::GateChecked(gate)])
        .await
        .unwrap();
    let rest = events(CommandName::Roll, None);
    store
        .append(&lease, at(5), &rest.iter().skip(2).collect::<Vec<_>>())
        .await
        .unwrap();
    let keys: Vec<String> = store
        .entries(id(4), 0)
        .await
        .unwrap()
        .into_iter()
        .map(|entry| entry.key)
        .collect();
    assert_eq!(keys, ["accepted", "claimed/1", "gate/schema", "finished"]);

    // A sheet belongs to one user. Of several sheets with one name only the newest is kept.
    let sheet = |n: u128, user: &'static str, name: &'static str, level: i64| {
        let store = Arc::clone(&store);
        async move {
            let effect = Effect::Sheet {
                name: name.into(),
                sheet: json!({ "name": name, "level": level }),
            };
            let then = finish(CommandName::SheetCreate, Some(effect));
            assert_eq!(
                store
                    .begin(action(n, user, "sheet", None), then)
                    .await
                    .unwrap(),
                StartOutcome::Finished
            );
        }
    };
    sheet(10, "ada", "Aria", 1).await;
    sheet(11, "ada", "Bo", 1).await;
    sheet(12, "ada", "ARIA", 2).await;
    sheet(13, "ben", "Aria", 9).await;
    // The latest command counts, even if the clock was set back.
    sheet(9, "ada", "Bo", 7).await;
    let sheets = store.sheets(&owner("ada")).await.unwrap();
    let shown: Vec<_> = sheets
        .iter()
        .map(|row| (row.name.as_str(), row.sheet["level"].clone()))
        .collect();
    assert_eq!(shown, [("ARIA", json!(2)), ("Bo", json!(7))]);
    let elsewhere = Owner {
        guild_id: None,
        ..owner("ada")
    };
    assert_eq!(store.sheets(&elsewhere).await.unwrap(), []);

    // A search finds memories by any form of their words, lists the best match first, and returns
    // only those of their owner.
    remember(&store, 20, "ada", "The dragon sleeps in the northern cave").await;
    remember(&store, 21, "ada", "Dragons hate silver. Dragons!").await;
    remember(&store, 22, "ben", "Ben's dragon is a secret").await;
    remember(
        &store,
        23,
        "ada",
        "Zwölf Boxkämpfer jagen \"Viktor\" OR nothing; DROP TABLE memories --",
    )
    .await;
    assert_eq!(found(&store, "ada", &["dragon"]).await.len(), 2);
    assert_eq!(
        found(&store, "ada", &["dragon", "cave"]).await[0],
        "The dragon sleeps in the northern cave"
    );
    assert_eq!(
        found(&store, "ada", &["sleeping"]).await,
        ["The dragon sleeps in the northern cave"]
    );
    assert_eq!(found(&store, "ada", &["secret"]).await, [""; 0]);
    assert_eq!(found(&store, "ada", &["viktor"]).await.len(), 1);
    assert_eq!(found(&store, "ada", &[]).await, [""; 0]);
    let both = [vec!["dragon".to_owned()], vec!["cave".to_owned()]];
    let rows = store.memories(&owner("ada"), &both, 10).await.unwrap();
    assert_eq!(rows.len(), 1, "a memory that has both words");
    for hostile in [
        "\"",
        "*",
        "a OR b",
        "NEAR(",
        "content:x",
        "')",
        "& |",
        "!",
        "-dragon",
    ] {
        let _ = found(&store, "ada", &[hostile]).await;
    }
    assert_eq!(store.memory_count(&owner("ada")).await.unwrap(), 3);

    // A scene holds the messages of its channel, oldest first. Without a guild it belongs to one
    // user.
    let lines = store.recent_lines(&asker, 3).await.unwrap();
    let said: Vec<_> = lines
        .iter()
        .map(|line| line.chars().take(3).collect::<String>())
        .collect();
    assert_eq!(said, ["Dra", "Ben", "Zwö"]);
    let mut alone = action(30, "ada", "a secret", None);
    alone.accepted.question.context = Context {
        channel_id: Some("dm".into()),
        ..Context::default()
    };
    store.begin(alone, then()).await.unwrap();
    let dm = |user: &str| Requester {
        source: Source::Discord,
        user_id: user.into(),
        guild_id: None,
        channel_id: Some("dm".into()),
    };
    assert_eq!(store.recent_lines(&dm("ada"), 9).await.unwrap().len(), 1);
    assert_eq!(
        store.recent_lines(&dm("ben"), 9).await.unwrap(),
        Vec::<String>::new()
    );

    // An action is archived like any run, together with what it changed. An older sheet does not
    // replace a newer one.
    for n in [12, 10, 20] {
        let archive = store.archive(id(n)).await.unwrap().unwrap();
        assert_eq!(other.restore(&archive).await.unwrap(), Restored::New);
    }
    assert_eq!(
        other.run(id(12)).await.unwrap(),
        store.run(id(12)).await.unwrap()
    );
    let sheets = other.sheets(&owner("ada")).await.unwrap();
    assert_eq!(
        sheets
            .iter()
            .map(|row| row.sheet["level"].clone())
            .collect::<Vec<_>>(),
        [json!(2)]
    );
    assert_eq!(found(&other, "ada", &["cave"]).await.len(), 1);

    // What was deleted does not come back with its archive, whatever comes first.
    remember(&store, 50, "eve", "the word is swordfish").await;
    let memory = id(50);
    let deleted = Effect::MemoryDeleted { memory };
    act(
        &store,
        (51, "do it"),
        "eve",
        CommandName::MemoryDelete,
        deleted,
    )
    .await;
    let (name, sheet) = ("Zed".to_owned(), json!({ "name": "Zed" }));
    let created = Effect::Sheet { name, sheet };
    act(
        &store,
        (52, "do it"),
        "eve",
        CommandName::SheetCreate,
        created,
    )
    .await;
    let deleted = Effect::SheetDeleted { name: "zed".into() };
    act(
        &store,
        (53, "do it"),
        "eve",
        CommandName::SheetDelete,
        deleted,
    )
    .await;
    let mut archives = vec![];
    for n in [53, 52, 51, 50] {
        archives.push(store.archive(id(n)).await.unwrap().unwrap());
    }

    // Sheets and memories outlive the action that wrote them.
    assert!(store.prune(at(1000), 100).await.unwrap() > 5);
    for store in [&store, &other] {
        for archive in &archives {
            assert_eq!(store.restore(archive).await.unwrap(), Restored::New);
        }
        assert_eq!(found(store, "eve", &["swordfish"]).await, [""; 0]);
        assert_eq!(store.sheets(&owner("eve")).await.unwrap(), []);
    }
    assert_eq!(store.run(id(20)).await.unwrap(), None);
    assert_eq!(found(&store, "ada", &["cave"]).await.len(), 1);
    assert_eq!(store.sheets(&owner("ada")).await.unwrap().len(), 2);
    // English searches leave out words that may be names.
    remember(&store, 24, "cid", "Will owes me 5 gold").await;
    for words in [&["will"][..], &["will", "gold"]] {
        assert_eq!(found(&store, "cid", words).await, ["Will owes me 5 gold"]);
    }
    leased_command(&store).await;
    narrated(&store).await;
}

/// An action and its narration are accepted together, or neither is.
async fn narrated(store: &Arc<dyn Store>) {
    let tell = |n: u128, dollars: f64| {
        let mut narrator = new_run(n + 1, None, "tell it");
        narrator.accepted.narrates = Some(id(n));
        narrator.at = at(95);
        let limit = SpendingLimit {
            scope: SpendingScope::User("dan".into()),
            since: at(0),
            most: Usd::from_dollars(dollars),
        };
        let mut action = action(n, "dan", "/do climb", None);
        action.limits = vec![limit];
        let events = events(CommandName::Do, None);
        let then = AcceptThen::Finish {
            events,
            if_stamp: None,
            narrator: Some(Box::new(narrator)),
        };
        store.begin(action, then)
    };
    let refused = tell(95, 0.05).await.unwrap();
    let is_limit = matches!(refused, StartOutcome::Refused(Acceptance::OverLimit { .. }));
    assert!(is_limit, "{refused:?}");
    for left in [95, 96] {
        assert_eq!(store.run(id(left)).await.unwrap(), None);
    }
    assert_eq!(tell(97, 0.15).await.unwrap(), StartOutcome::Finished);
    let narrator = store.run(id(98)).await.unwrap().unwrap();
    assert_eq!(
        (narrator.parent, narrator.state),
        (Some(id(97)), RunState::Queued)
    );
}

/// A leased action's command is written only if the user's data are still as it read them.
async fn leased_command(store: &Arc<dyn Store>) {
    let claim = AcceptThen::Claim {
        owner: "o".into(),
        lease: Duration::from_secs(30),
        ack: AckTiming::Immediate,
    };
    let begun = store.begin(action(90, "eve", "hm", None), claim).await;
    let StartOutcome::Leased(lease) = begun.unwrap() else {
        panic!("it is not leased")
    };
    let read = store.stamp(&owner("eve")).await.unwrap();
    remember(store, 91, "eve", "torches").await;
    let effect = Effect::Memory {
        content: "rope".into(),
    };
    let command = &events(CommandName::MemoryAdd, Some(effect))[1];
    let late = store
        .append_if(Some(&read), &lease, at(1), &[command])
        .await;
    assert!(!late.unwrap());
    assert_eq!(store.memory_count(&owner("eve")).await.unwrap(), 1);
    let read = store.stamp(&owner("eve")).await.unwrap();
    let again = store
        .append_if(Some(&read), &lease, at(1), &[command])
        .await;
    assert!(again.unwrap());
    assert_eq!(store.memory_count(&owner("eve")).await.unwrap(), 2);
}

#[tokio::test]
async fn sqlite_stores_actions_and_their_data() {
    let folder = TempDir::new().unwrap();
    let one = SqliteStore::open(&folder.path().join("a.db"), "one")
        .await
        .unwrap();
    let two = SqliteStore::open(&folder.path().join("b.db"), "two")
        .await
        .unwrap();
    story(Arc::new(one), Arc::new(two)).await;
}

#[tokio::test]
async fn postgresql_stores_actions_and_their_data() {
    let one = PostgresStore::open(&postgres::fresh().await, "one")
        .await
        .unwrap();
    let two = PostgresStore::open(&postgres::fresh().await, "two")
        .await
        .unwrap();
    story(Arc::new(one), Arc::new(two)).await;
}

#[tokio::test]
async fn one_of_a_hundred_concurrent_confirmations_is_written() {
    let folder = TempDir::new().unwrap();
    let store: Arc<dyn Store> = Arc::new(
        SqliteStore::open(&folder.path().join("a.db"), "one")
            .await
            .unwrap(),
    );
    let begun = (1..=100).map(|n| {
        let store = Arc::clone(&store);
        async move {
            let mut run = action(n, "ada", "roll 1d6", Some("confirm:x"));
            run.body_hash = "same".into();
            store
                .begin(run, finish(CommandName::Roll, None))
                .await
                .unwrap()
        }
    });
    let begun = futures_util::future::join_all(begun).await;
    assert_eq!(
        begun
            .iter()
            .filter(|begun| **begun == StartOutcome::Finished)
            .count(),
        1
    );
}

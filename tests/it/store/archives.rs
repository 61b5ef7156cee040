//! Tests spending, tokens, and the export and import of finished runs.

use std::sync::Arc;

use conclave::domain::{Scope, Usd};
use conclave::journal::{
    Acceptance, Annotated, Archive, Claim, Error, Event, Feedback, NewRun, Note, Restored,
    SpendingLimit, SpendingScope, Store, TokenRow, verify,
};
use tempfile::TempDir;

use super::{LEASE, at, failed, id, new_run, postgresql, sent, settled, sqlite};
use crate::support::postgres;

/// Checks spending, tokens, and the export and import of finished runs.
async fn keeping(store: Arc<dyn Store>, other: Arc<dyn Store>) {
    let limit = |scope: SpendingScope, dollars: f64| SpendingLimit {
        scope,
        since: at(0),
        most: Usd::from_dollars(dollars),
    };
    let limited = |n: u128, limit: SpendingLimit| NewRun {
        limits: vec![limit],
        ..new_run(n, None, "limited")
    };
    let ada = || SpendingScope::User("ada".into());

    // A run in flight counts at its cap, a finished run at what it spent.
    assert_eq!(
        store.accept(limited(1, limit(ada(), 0.15))).await.unwrap(),
        Acceptance::New
    );
    let over = store.accept(limited(2, limit(ada(), 0.15))).await.unwrap();
    assert_eq!(
        over,
        Acceptance::OverLimit {
            scope: ada(),
            left: Usd::from_dollars(0.05)
        }
    );
    assert_eq!(store.run(id(2)).await.unwrap(), None);
    assert_eq!(
        store
            .exposure(&limit(SpendingScope::Everyone, 1.0))
            .await
            .unwrap(),
        Usd::from_dollars(0.1)
    );
    assert_eq!(
        store
            .exposure(&limit(SpendingScope::Guild("g".into()), 1.0))
            .await
            .unwrap(),
        Usd::ZERO
    );
    let lease = store
        .claim(Claim::Oldest, "o", LEASE, at(2))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        store.archive(id(1)).await.unwrap(),
        None,
        "it is not finished"
    );
    let feedback = |number| {
        Event::Feedback(Feedback {
            number,
            positive: true,
            comment: Some("nul \0".into()),
        })
    };
    let note = |run, head_seq, number| Note {
        run,
        head_seq,
        events: vec![feedback(number)],
    };
    assert_eq!(
        store
            .annotate(at(3), vec![note(id(1), 1, 1)])
            .await
            .unwrap(),
        Annotated::Unfinished
    );
    assert_eq!(
        store
            .annotate(at(3), vec![note(id(98), 1, 1)])
            .await
            .unwrap(),
        Annotated::Unknown
    );
    store
        .append(&lease, at(3), &[&sent("plan"), &settled("plan"), &failed()])
        .await
        .unwrap();
    assert_eq!(
        store.exposure(&limit(ada(), 1.0)).await.unwrap(),
        Usd::from_nanos(700)
    );
    assert_eq!(
        store.accept(limited(2, limit(ada(), 0.15))).await.unwrap(),
        Acceptance::New
    );
    let later = SpendingLimit {
        since: at(3),
        ..limit(ada(), 1.0)
    };
    assert_eq!(
        store.exposure(&later).await.unwrap(),
        Usd::ZERO,
        "a new day begins with nothing spent"
    );

    // Tokens are found by id and remain in the list after they are revoked.
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
    assert!(
        !store.revoke_token("t1", at(6)).await.unwrap()
            && !store.revoke_token("t2", at(6)).await.unwrap()
    );
    assert_eq!(
        store.tokens().await.unwrap(),
        [TokenRow {
            revoked_at: Some(at(5)),
            ..token
        }]
    );

    // Feedback after the end extends the chain, if the run is as it was read, and all notes of a call
    // are written or none.
    let head_seq = store.run(id(1)).await.unwrap().unwrap().head_seq;
    let notes = vec![note(id(1), head_seq, 1), note(id(98), 1, 1)];
    assert_eq!(
        store.annotate(at(4), notes).await.unwrap(),
        Annotated::Unknown
    );
    let first = vec![note(id(1), head_seq, 1)];
    assert_eq!(
        store.annotate(at(4), first).await.unwrap(),
        Annotated::Written
    );
    let late = vec![note(id(1), head_seq, 2)];
    assert_eq!(
        store.annotate(at(5), late).await.unwrap(),
        Annotated::Changed
    );
    let (entries, row) = (
        store.entries(id(1), 0).await.unwrap(),
        store.run(id(1)).await.unwrap().unwrap(),
    );
    assert_eq!(
        (entries.last().unwrap().key.as_str(), row.finished_at),
        ("feedback/1", Some(at(3)))
    );
    assert_eq!(verify(id(1), &entries, &row.head_hash), Ok(()));

    // An archive keeps the whole run: row, chain and idempotency key are unchanged.
    let archive = store.archive(id(1)).await.unwrap().unwrap();
    let line = serde_json::to_string(&archive).unwrap();
    let archive: Archive = serde_json::from_str(&line).unwrap();
    assert_eq!(other.restore(&archive).await.unwrap(), Restored::New);
    assert_eq!(other.restore(&archive).await.unwrap(), Restored::Known);
    let (here, there) = (
        store.run(id(1)).await.unwrap(),
        other.run(id(1)).await.unwrap(),
    );
    assert_eq!(here, there);
    assert_eq!(
        store.entries(id(1), 0).await.unwrap(),
        other.entries(id(1), 0).await.unwrap()
    );
    assert_eq!(other.archive(id(1)).await.unwrap().as_ref(), Some(&archive));

    // An archive that was altered, cut or never finished is refused, and nothing of it is stored.
    let unsound = |change: fn(&mut Archive)| {
        let mut altered = Archive {
            run: id(1),
            ..archive.clone()
        };
        change(&mut altered);
        let store = Arc::clone(&other);
        async move {
            let result = store.restore(&altered).await;
            assert!(
                matches!(result, Err(Error::InvalidArchive { .. })),
                "{result:?}"
            );
        }
    };
    unsound(|a| a.run = id(7)).await;
    unsound(|a| a.entries[1].body.push(' ')).await;
    unsound(|a| a.entries.truncate(3)).await;
    unsound(|a| a.entries.clear()).await;
    unsound(|a| a.version = 9).await;
    assert_eq!(other.run(id(7)).await.unwrap(), None);

    // Retention removes finished runs, oldest first, and never a run in flight.
    assert_eq!(store.prunable(at(3)).await.unwrap(), 0);
    assert_eq!(store.prunable(at(4)).await.unwrap(), 1);
    assert_eq!(store.prune(at(4), 10).await.unwrap(), 1);
    assert_eq!(store.prune(at(4), 10).await.unwrap(), 0);
    assert_eq!(
        (
            store.run(id(1)).await.unwrap(),
            store.entries(id(1), 0).await.unwrap()
        ),
        (None, vec![])
    );
    assert!(store.run(id(2)).await.unwrap().is_some());
}

#[tokio::test]
async fn sqlite_stores_spending_tokens_and_archives() {
    let folder = TempDir::new().unwrap();
    keeping(
        sqlite(&folder, "a.db", "one").await,
        sqlite(&folder, "b.db", "two").await,
    )
    .await;
}

#[tokio::test]
async fn postgresql_stores_spending_tokens_and_archives() {
    let (here, there) = (postgres::fresh().await, postgres::fresh().await);
    keeping(
        postgresql(&here, "one").await,
        postgresql(&there, "two").await,
    )
    .await;
}

#[tokio::test]
async fn an_archive_can_be_moved_from_sqlite_to_postgresql() {
    let folder = TempDir::new().unwrap();
    keeping(
        sqlite(&folder, "a.db", "one").await,
        postgresql(&postgres::fresh().await, "two").await,
    )
    .await;
}

//! Tests the life of a run in the store: accepted, claimed, written, cancelled, listed.

use std::sync::Arc;
use std::time::Duration;

use conclave::domain::{Mode, Source, Usd};
use conclave::journal::{
    Acceptance, CancelOutcome, Cause, Claim, Ending, Error, Event, Finished, LeaseState, NewRun,
    Requester, RunFilter, RunState, Store, verify,
};
use jiff::SignedDuration;
use tempfile::TempDir;

use super::{LEASE, at, failed, id, new_run, postgresql, sent, settled, sqlite};
use crate::support::postgres;

async fn story(store: Arc<dyn Store>) {
    store.ready().await.unwrap();

    // The same key and body join the run. Another body is reported as a reused key.
    assert_eq!(
        store.accept(new_run(1, Some("k"), "one")).await.unwrap(),
        Acceptance::New
    );
    assert_eq!(
        store.accept(new_run(2, Some("k"), "one")).await.unwrap(),
        Acceptance::Joined(id(1))
    );
    assert_eq!(
        store.accept(new_run(3, Some("k"), "two")).await.unwrap(),
        Acceptance::KeyReused(id(1))
    );
    assert_eq!(
        store.accept(new_run(4, None, "four")).await.unwrap(),
        Acceptance::New
    );
    assert_eq!(store.in_flight().await.unwrap(), 2);
    assert_eq!(
        store.by_key("k").await.unwrap(),
        Some((id(1), "one".into()))
    );

    // Of several concurrent claims one gets the run, and the oldest run comes first.
    let claims = (0..8).map(|n| {
        let store = Arc::clone(&store);
        async move {
            store
                .claim(Claim::Run(id(1)), &format!("o{n}"), LEASE, at(10))
                .await
                .unwrap()
        }
    });
    let leases: Vec<_> = futures_util::future::join_all(claims)
        .await
        .into_iter()
        .flatten()
        .collect();
    assert_eq!(leases.len(), 1);
    let first = leases.into_iter().next().unwrap();
    assert_eq!(
        store
            .claim(Claim::Oldest, "b", LEASE, at(10))
            .await
            .unwrap()
            .unwrap()
            .run,
        id(4)
    );
    assert_eq!(
        store
            .claim(Claim::Oldest, "b", LEASE, at(10))
            .await
            .unwrap(),
        None
    );

    // Entries are numbered without gaps and chained, and each event is stored once.
    store
        .append(&first, at(11), &[&sent("plan")])
        .await
        .unwrap();
    store
        .append(&first, at(12), &[&settled("plan"), &settled("plan")])
        .await
        .unwrap();
    store
        .append(&first, at(12), &[&settled("plan")])
        .await
        .unwrap();
    let entries = store.entries(id(1), 0).await.unwrap();
    let keys: Vec<&str> = entries.iter().map(|e| e.key.as_str()).collect();
    assert_eq!(keys, ["accepted", "claimed/1", "sent:plan", "settled:plan"]);
    assert_eq!(store.entries(id(1), 2).await.unwrap(), entries[2..]);
    let row = store.run(id(1)).await.unwrap().unwrap();
    assert_eq!(verify(id(1), &entries, &row.head_hash), Ok(()));
    assert!(
        verify(id(1), &entries[..3], &row.head_hash).is_err(),
        "a cut tail is found"
    );
    assert_eq!(
        (row.state, row.spent),
        (RunState::Running, Usd::from_nanos(700))
    );

    // Renewing extends the lease. After the lease expires, another process takes over, and the
    // first can no longer write. A lease of zero length has expired by any clock.
    assert_eq!(
        store.renew(&first, LEASE, at(20)).await.unwrap(),
        LeaseState::Yes
    );
    assert_eq!(
        store
            .claim(Claim::Run(id(1)), "c", LEASE, at(49))
            .await
            .unwrap(),
        None
    );
    assert_eq!(
        store.renew(&first, Duration::ZERO, at(50)).await.unwrap(),
        LeaseState::Yes
    );
    let second = store
        .claim(Claim::Run(id(1)), "c", LEASE, at(51))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(second.epoch, first.epoch + 1);
    assert!(matches!(
        store.append(&first, at(52), &[&sent("late")]).await,
        Err(Error::LeaseLost)
    ));
    assert_eq!(
        store.renew(&first, LEASE, at(52)).await.unwrap(),
        LeaseState::Lost
    );

    // After a cancellation no call may be sent, but ends may be written.
    store
        .append(&second, at(53), &[&sent("r1/solver")])
        .await
        .unwrap();
    assert_eq!(store.cancel(id(1)).await.unwrap(), CancelOutcome::Requested);
    assert_eq!(
        store.renew(&second, LEASE, at(54)).await.unwrap(),
        LeaseState::CancelRequested
    );
    assert!(matches!(
        store.append(&second, at(54), &[&sent("r1/critic")]).await,
        Err(Error::CancelRequested)
    ));
    store
        .append(&second, at(55), &[&settled("r1/solver"), &failed()])
        .await
        .unwrap();
    // Entries that were written together are read from any place.
    let all = store.entries(id(1), 0).await.unwrap();
    let row = store.run(id(1)).await.unwrap().unwrap();
    assert_eq!(verify(id(1), &all, &row.head_hash), Ok(()));
    for after in 0..=all.len() {
        let read = store.entries(id(1), after.try_into().unwrap()).await;
        assert_eq!(read.unwrap(), all[after..], "after {after}");
    }
    assert_eq!(
        store.cancel(id(1)).await.unwrap(),
        CancelOutcome::AlreadyFinished(RunState::Failed)
    );
    assert_eq!(store.cancel(id(99)).await.unwrap(), CancelOutcome::Unknown);
    assert!(matches!(
        store.append(&second, at(56), &[&sent("more")]).await,
        Err(Error::LeaseLost)
    ));
    let row = store.run(id(1)).await.unwrap().unwrap();
    assert_eq!(row.cause.as_deref(), Some("provider: gone"));
    assert_eq!(row.finished_at, Some(at(55)));

    // Lists are newest first, with filters and a cursor.
    store.accept(new_run(5, None, "five")).await.unwrap();
    let list = |filter: RunFilter| {
        let store = Arc::clone(&store);
        async move {
            let rows = store
                .runs(&RunFilter {
                    limit: 10,
                    ..filter
                })
                .await
                .unwrap();
            rows.into_iter().map(|row| row.id).collect::<Vec<_>>()
        }
    };
    assert_eq!(list(RunFilter::default()).await, [id(5), id(4), id(1)]);
    assert_eq!(
        list(RunFilter {
            state: Some(RunState::Failed),
            ..RunFilter::default()
        })
        .await,
        [id(1)]
    );
    assert_eq!(
        list(RunFilter {
            before: Some(id(4)),
            ..RunFilter::default()
        })
        .await,
        [id(1)]
    );
    assert_eq!(
        list(RunFilter {
            since: Some(at(4)),
            ..RunFilter::default()
        })
        .await,
        [id(5), id(4)]
    );
    assert_eq!(
        list(RunFilter {
            user_id: Some("nobody".into()),
            ..RunFilter::default()
        })
        .await,
        []
    );
    assert_eq!(
        list(RunFilter {
            mode: Some(Mode::Deep),
            ..RunFilter::default()
        })
        .await,
        []
    );

    // Only the requester's newest run counts, and only once it has a reply.
    let asker = Requester {
        source: Source::Http,
        user_id: "ada".into(),
        guild_id: None,
        channel_id: Some("c1".into()),
    };
    let since = at(0).saturating_sub(SignedDuration::from_mins(30)).unwrap();
    assert_eq!(
        store.last_reply(&asker, since).await.unwrap(),
        None,
        "the newest run is not finished"
    );

    // A character that a database cannot store changes nothing in the journal.
    let odd = NewRun {
        at: at(5),
        ..new_run(6, Some("odd"), "a\0b")
    };
    assert_eq!(store.accept(odd.clone()).await.unwrap(), Acceptance::New);
    assert!(
        matches!(&store.entries(id(6), 0).await.unwrap()[0].event, Event::Accepted(a) if **a == odd.accepted)
    );
    assert!(
        store
            .run(id(6))
            .await
            .unwrap()
            .unwrap()
            .message
            .starts_with('a')
    );
    let lease = store
        .claim(Claim::Run(id(6)), "c", LEASE, at(56))
        .await
        .unwrap()
        .unwrap();
    let ending = Ending::Failed {
        cause: Cause::Provider,
        detail: "said \0".into(),
    };
    let finished = Event::Finished(Box::new(Finished {
        ending,
        spent: Usd::ZERO,
    }));
    store.append(&lease, at(57), &[&finished]).await.unwrap();
    assert_eq!(store.entries(id(6), 2).await.unwrap()[0].event, finished);
}

#[tokio::test]
async fn sqlite_stores_the_life_of_a_run() {
    let folder = TempDir::new().unwrap();
    story(sqlite(&folder, "a.db", "one").await).await;
}

#[tokio::test]
async fn postgresql_stores_the_life_of_a_run() {
    story(postgresql(&postgres::fresh().await, "one").await).await;
}

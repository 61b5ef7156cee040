//! Tests concurrent operations through two stores on one database.

use std::sync::Arc;

use conclave::domain::{RunId, Usd};
use conclave::journal::{
    Acceptance, Claim, Error, NewRun, RunFilter, SpendingLimit, SpendingScope, Store, verify,
};
use tempfile::TempDir;

use super::{LEASE, at, new_run, postgresql, sent, sqlite};
use crate::support::postgres;

/// Runs concurrent operations through two stores on one database.
async fn crowd(one: Arc<dyn Store>, two: Arc<dyn Store>) {
    let door = |n: u128| Arc::clone(if n.is_multiple_of(2) { &one } else { &two });
    async fn all<T>(them: impl Iterator<Item = impl Future<Output = Result<T, Error>>>) -> Vec<T> {
        futures_util::future::join_all(them)
            .await
            .into_iter()
            .map(Result::unwrap)
            .collect()
    }

    // A hundred submissions with one key make one run, even under a limit with room for only one.
    let limit = SpendingLimit {
        scope: SpendingScope::Everyone,
        since: at(0),
        most: Usd::from_dollars(0.15),
    };
    let accepted = all((1..=100).map(|n| {
        let run = NewRun {
            limits: vec![limit.clone()],
            ..new_run(n, Some("k"), "one")
        };
        async move { door(n).accept(run).await }
    }))
    .await;
    assert_eq!(
        accepted.iter().filter(|a| **a == Acceptance::New).count(),
        1
    );
    let rows = one
        .runs(&RunFilter {
            limit: 10,
            ..RunFilter::default()
        })
        .await
        .unwrap();
    assert_eq!(rows.len(), 1);
    let run = rows[0].id;
    assert_eq!(
        accepted
            .iter()
            .filter(|a| **a == Acceptance::Joined(run))
            .count(),
        99
    );

    // Concurrent submissions never pass a limit, in whichever order they name their limits.
    let ada = SpendingLimit {
        scope: SpendingScope::User("ada".into()),
        most: Usd::from_dollars(0.75),
        ..limit.clone()
    };
    let everyone = SpendingLimit {
        most: Usd::from_dollars(1.0),
        ..limit
    };
    let accepted = all((101..=140).map(|n| {
        let mut limits = vec![ada.clone(), everyone.clone()];
        if n % 3 == 0 {
            limits.reverse();
        }
        let run = NewRun {
            limits,
            ..new_run(n, None, "limited")
        };
        async move { door(n).accept(run).await }
    }))
    .await;
    assert_eq!(
        accepted.iter().filter(|a| **a == Acceptance::New).count(),
        6,
        "0.1 of 0.75 was gone already"
    );
    assert_eq!(one.exposure(&ada).await.unwrap(), Usd::from_dollars(0.7));

    // Every run is claimed once.
    let claims = all(
        (0..20).map(|n| async move { door(n).claim(Claim::Oldest, "o", LEASE, at(200)).await })
    )
    .await;
    let mut claimed: Vec<RunId> = claims.iter().flatten().map(|lease| lease.run).collect();
    claimed.sort_unstable();
    claimed.dedup();
    assert_eq!((claimed.len(), claims.iter().flatten().count()), (7, 7));

    // Entries that are appended concurrently, some of them twice, form one chain without gaps.
    let lease = claims.into_iter().flatten().next().unwrap();
    all((0..40).map(|n| {
        let lease = &lease;
        async move {
            door(n)
                .append(lease, at(201), &[&sent(&format!("step{}", n / 2))])
                .await
        }
    }))
    .await;
    let entries = two.entries(lease.run, 0).await.unwrap();
    assert_eq!(
        entries.iter().map(|e| e.seq).collect::<Vec<_>>(),
        (1..=22).collect::<Vec<_>>()
    );
    let row = one.run(lease.run).await.unwrap().unwrap();
    assert_eq!(verify(lease.run, &entries, &row.head_hash), Ok(()));
}

#[tokio::test]
async fn sqlite_handles_concurrent_operations() {
    let folder = TempDir::new().unwrap();
    crowd(
        sqlite(&folder, "a.db", "one").await,
        sqlite(&folder, "a.db", "two").await,
    )
    .await;
}

#[tokio::test]
async fn postgresql_handles_concurrent_operations() {
    let url = postgres::fresh().await;
    let (one, two) = tokio::join!(postgresql(&url, "one"), postgresql(&url, "two"));
    crowd(one, two).await;
}

//! The locks of an acceptance: a run is accepted once per idempotency key, once per answer, and
//! within its spending limits, also under concurrent submissions.

use sha2::{Digest as _, Sha256};

use crate::journal::{NewRun, SpendingScope};

/// Returns the advisory locks of everything that decides about an acceptance: its key, the run that
/// it continues, the scopes of its limits, and for an action the data of its user.
pub(super) fn locks(run: &NewRun) -> Vec<i64> {
    let key = run.idempotency_key.iter().map(|key| format!("key {key}"));
    let parent = run
        .accepted
        .continues
        .iter()
        .map(|continues| format!("parent {}", continues.parent));
    let scopes = run.limits.iter().map(|limit| match &limit.scope {
        SpendingScope::User(id) => format!("user {id}"),
        SpendingScope::Guild(id) => format!("guild {id}"),
        SpendingScope::Everyone => "everyone".to_owned(),
    });
    let question = &run.accepted.question;
    let owner = run.accepted.action.iter().map(|_| {
        let source = question.source.into_str();
        format!("data of {source} {}", question.user.id)
    });
    let mut locks: Vec<i64> = key
        .chain(owner)
        .chain(parent)
        .chain(scopes)
        .map(|name| number(&name))
        .collect();
    locks.sort_unstable();
    locks.dedup();
    locks
}

/// Returns the lock number of a name. If two names collide, they only wait for each other
/// needlessly.
fn number(name: &str) -> i64 {
    let hash = Sha256::digest(format!("conclave {name}"));
    let bytes = hash.first_chunk::<8>().copied().unwrap_or_default();
    i64::from_be_bytes(bytes)
}

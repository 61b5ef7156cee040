//! The daily spending limits: which of them apply to a question, and when budget is available
//! again.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::config::Policy;
use crate::domain::{Question, Usd};
use crate::journal::{Error, RunReader, SpendingLimit, SpendingScope};

const DAY_SECONDS: i64 = 24 * 60 * 60;

/// How long a client should wait when runs in flight reserve the missing budget.
const REFRESH_INTERVAL: Duration = Duration::from_secs(10);

/// The refusal of a question whose cap exceeds what a limit has left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spent {
    pub scope: SpendingScope,
    pub limit: Usd,
    pub left: Usd,
    /// The cap of the refused run.
    pub needed: Usd,
    pub resets_at: Timestamp,
    pub retry_after: Duration,
}

impl std::fmt::Display for Spent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let whose = match self.scope {
            SpendingScope::User(_) => "this user's limit",
            SpendingScope::Guild(_) => "this guild's limit",
            SpendingScope::Everyone => "the service's limit",
        };
        let Self {
            limit,
            left,
            needed,
            resets_at,
            ..
        } = self;
        write!(
            f,
            "{whose} of {limit} a day has {left} left and this question needs {needed}; it resets at {resets_at}"
        )
    }
}

/// Returns the limits that apply to a question, counted from the start of the UTC day.
pub(super) fn limits(policy: &Policy, question: &Question, now: Timestamp) -> Vec<SpendingLimit> {
    let since = day_begin(now);
    let limits = &policy.limits;
    let guild = question.context.guild_id.clone().map(SpendingScope::Guild);
    let all = [
        (
            Some(SpendingScope::User(question.user.id.clone())),
            limits.user_daily_usd,
        ),
        (guild, limits.guild_daily_usd),
        (Some(SpendingScope::Everyone), limits.daily_usd),
    ];
    let limit = |(scope, most): (Option<SpendingScope>, Option<f64>)| {
        Some(SpendingLimit {
            scope: scope?,
            since,
            most: Usd::from_dollars(most?),
        })
    };
    all.into_iter().filter_map(limit).collect()
}

/// What a limit lacks for a question.
pub(super) struct Shortfall {
    pub scope: SpendingScope,
    pub left: Usd,
    /// The cap of the question.
    pub needed: Usd,
}

/// Returns the refusal of a question that did not fit into a limit.
///
/// A run releases what it has not spent when it ends, and no run lasts much longer than the longest
/// deadline. So the spending of runs accepted within that time bounds what may be released soon. If
/// even that is not enough, the client must wait for the next day.
pub(super) async fn spent(
    store: &dyn RunReader,
    policy: &Policy,
    limits: Vec<SpendingLimit>,
    shortfall: Shortfall,
    now: Timestamp,
) -> Result<Spent, Error> {
    let Shortfall {
        scope,
        left,
        needed,
    } = shortfall;
    let limit = limits.into_iter().find(|limit| limit.scope == scope);
    let limit = limit.unwrap_or(SpendingLimit {
        scope,
        since: now,
        most: left,
    });
    let resets_at = limit
        .since
        .saturating_add(SignedDuration::from_secs(DAY_SECONDS))
        .unwrap_or(Timestamp::MAX);
    let longest = policy
        .ask_deadline
        .max(policy.audit_deadline)
        .max(policy.deep_deadline);
    let recent =
        now.saturating_sub(SignedDuration::try_from(longest).unwrap_or(SignedDuration::MAX));
    let recent = SpendingLimit {
        since: recent.unwrap_or(limit.since).max(limit.since),
        ..limit.clone()
    };
    let may_come_back = if store.in_flight().await? == 0 {
        Usd::ZERO
    } else {
        store.exposure(&recent).await?
    };
    let until_reset = Duration::try_from(resets_at.duration_since(now)).unwrap_or(REFRESH_INTERVAL);
    // Rounded up, so that a client that retries at that second is in the new day.
    let until_reset = Duration::from_secs(until_reset.as_secs() + 1);
    let retry_after = if needed <= left + may_come_back {
        REFRESH_INTERVAL.min(until_reset)
    } else {
        until_reset
    };
    Ok(Spent {
        scope: limit.scope,
        limit: limit.most,
        left,
        needed,
        resets_at,
        retry_after,
    })
}

fn day_begin(now: Timestamp) -> Timestamp {
    let seconds = now.as_second();
    Timestamp::from_second(seconds - seconds.rem_euclid(DAY_SECONDS))
        .unwrap_or(Timestamp::UNIX_EPOCH)
}

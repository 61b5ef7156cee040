//! The hedge: a second, equal call beside one that takes unusually long, where everything else waits for it.
//!
//! It is bought like any other call: with its own key, intent, reservation and settlement. The first answer wins; the
//! other connection is dropped, and its call settled at its reservation, since it may be billed all the same.

use tokio::sync::watch;

use super::Deps;
use crate::config::RoleModel;

/// How a call that was dropped because its twin had answered is named in the journal.
pub const SUPERSEDED: &str = "overtaken";

/// Whether a call is worth a second one beside it.
#[derive(Debug, Clone, Copy)]
pub enum Hedge<'a> {
    Never,
    /// The whole run waits for it.
    Critical,
    /// As soon as it is the only one of its round that is still missing.
    WhenLast(&'a Missing),
}

/// How many agents of a round have not finished yet.
#[derive(Debug)]
pub struct Missing(watch::Sender<usize>);

impl Missing {
    pub fn new(agents: usize) -> Self {
        Self(watch::Sender::new(agents))
    }

    pub fn one_less(&self) {
        self.0
            .send_modify(|missing| *missing = missing.saturating_sub(1));
    }

    async fn only_one(&self) {
        // Fails when the sender is gone, which this is.
        let _ = self.0.subscribe().wait_for(|missing| *missing <= 1).await;
    }
}

/// Returns when the second call is due, counted from now: after the 95th percentile of the model's own latency. Never, if
/// the policy has no hedge or too little is known of the model.
pub async fn due(deps: &Deps, model: &RoleModel, hedge: Hedge<'_>) {
    let settings = &deps.policy.hedge;
    let learned = if settings.enabled {
        deps.models
            .p95(&model.provider, &model.model, settings.least_samples)
    } else {
        None
    };
    match (learned, hedge) {
        (None, _) | (_, Hedge::Never) => std::future::pending().await,
        (Some(p95), Hedge::Critical) => tokio::time::sleep(p95.max(settings.least)).await,
        (Some(p95), Hedge::WhenLast(missing)) => {
            tokio::time::sleep(p95.max(settings.least)).await;
            missing.only_one().await;
        }
    }
}

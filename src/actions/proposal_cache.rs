//! Cache of proposals: the same text in the same scene costs one model call. It keeps the model's
//! reply and never a result, because each user has their own sheets and memories.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::domain::{Question, RunId, Source};
use crate::journal::Proposed;

/// With this many entries, stale ones are evicted.
const MANY: usize = 1024;

/// A guild's channel, or the conversation of one user.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Scene {
    source: Source,
    guild: Option<String>,
    place: String,
}

impl Scene {
    pub fn of(question: &Question) -> Self {
        let context = &question.context;
        let place = match &context.guild_id {
            Some(_) => context.channel_id.clone().unwrap_or_default(),
            None => question.user.id.clone(),
        };
        Self {
            source: question.source,
            guild: context.guild_id.clone(),
            place,
        }
    }
}

/// What a text means.
#[derive(Debug, Clone, PartialEq)]
pub enum Interpretation {
    Proposed(Box<Proposed>),
    /// The model's reply is malformed; one sentence says why.
    Unreadable(String),
    /// There is no reply; a short cause.
    Nothing(String),
    /// The model's provider fails; the cause.
    Unavailable(String),
    TooSlow,
}

/// A cache entry.
#[derive(Debug)]
pub struct CachedProposal {
    at: Instant,
    /// The action that made the model call.
    run: RunId,
    meaning: Interpretation,
    /// False: only for requests that waited for it. A later message may repeat a call that cost
    /// nothing or was cancelled.
    lasting: bool,
}

impl CachedProposal {
    /// Returns an entry that is valid until it is stale.
    pub fn lasting(run: RunId, meaning: Interpretation) -> Self {
        Self {
            at: Instant::now(),
            run,
            meaning,
            lasting: true,
        }
    }

    /// Returns an entry for the requests that waited for it only.
    pub fn passing(run: RunId, meaning: Interpretation) -> Self {
        Self {
            lasting: false,
            ..Self::lasting(run, meaning)
        }
    }
}

/// The slot of a text. The request that holds the lock asks the model; the others wait.
pub type ProposalSlot = Arc<tokio::sync::Mutex<Option<CachedProposal>>>;

/// How a request reached the slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProposalKey {
    /// It waited for the lock.
    Waiting,
    Later,
}

/// The recent proposals.
pub struct ProposalCache {
    fresh: Duration,
    cells: Mutex<HashMap<(Scene, String), ProposalSlot>>,
}

impl ProposalCache {
    pub fn new(fresh: Duration) -> Self {
        Self {
            fresh,
            cells: Mutex::default(),
        }
    }

    /// Returns the slot of a text in a scene.
    pub fn cell(&self, scene: Scene, message: &str) -> ProposalSlot {
        let mut cells = self.cells.lock().unwrap_or_else(PoisonError::into_inner);
        if cells.len() >= MANY {
            // Entries that a request holds are not evicted.
            cells.retain(|_, cell| {
                let known = cell
                    .try_lock()
                    .is_ok_and(|kept| self.read(kept.as_ref(), ProposalKey::Later).is_some());
                known || Arc::strong_count(cell) > 1
            });
        }
        Arc::clone(cells.entry((scene, message.trim().to_owned())).or_default())
    }

    /// Returns the entry if the request waited for it, or if it is fresh and lasting.
    pub fn read(
        &self,
        kept: Option<&CachedProposal>,
        asker: ProposalKey,
    ) -> Option<Interpretation> {
        let CachedProposal {
            at,
            run,
            meaning,
            lasting,
        } = kept?;
        let fresh = asker == ProposalKey::Waiting || (*lasting && at.elapsed() < self.fresh);
        fresh.then(|| match meaning {
            Interpretation::Proposed(proposed) => Interpretation::Proposed(Box::new(Proposed {
                reused_from: Some(*run),
                ..Proposed::clone(proposed)
            })),
            other => other.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    fn scene(channel: &str) -> Scene {
        Scene {
            source: Source::Http,
            guild: Some("g".into()),
            place: channel.into(),
        }
    }

    #[tokio::test]
    async fn a_requested_slot_is_not_evicted_before_it_is_locked() {
        let plans = ProposalCache::new(Duration::from_secs(30));
        let early = plans.cell(scene("c"), "hm");
        // Enough other texts come that entries are evicted more than once.
        for n in 0..2 * MANY {
            plans.cell(scene("c"), &format!("text {n}"));
        }
        let late = plans.cell(scene("c"), "hm");
        assert!(Arc::ptr_eq(&early, &late), "two would ask the model");
        assert!(
            plans.cells.lock().unwrap().len() <= MANY,
            "nothing was thrown out"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_failure_without_cost_is_shared_with_waiting_callers_and_not_kept() {
        let plans = ProposalCache::new(Duration::from_secs(30));
        let run = RunId::from_uuid(Uuid::from_u128(1));
        let nothing = || Interpretation::Nothing("connect".into());
        let passing = CachedProposal::passing(run, nothing());
        assert_eq!(
            plans.read(Some(&passing), ProposalKey::Waiting),
            Some(nothing())
        );
        assert_eq!(plans.read(Some(&passing), ProposalKey::Later), None);
        let lasting = CachedProposal::lasting(run, Interpretation::TooSlow);
        tokio::time::advance(Duration::from_secs(29)).await;
        assert_eq!(
            plans.read(Some(&lasting), ProposalKey::Later),
            Some(Interpretation::TooSlow)
        );
        tokio::time::advance(Duration::from_secs(2)).await;
        assert_eq!(plans.read(Some(&lasting), ProposalKey::Later), None);
    }
}

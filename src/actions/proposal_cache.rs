//! What texts were taken to mean a moment ago, so that the same text in the same scene costs one model call. What is kept is
//! what the model said, never its execution: each user's own sheets and memories are looked at each time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::domain::{Question, RunId, Source};
use crate::journal::Proposed;

/// Beyond so many, those that are too old are thrown out.
const MANY: usize = 1024;

/// Where something is said: a guild's channel, or one user's own conversation.
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

/// What a text was found to mean.
#[derive(Debug, Clone, PartialEq)]
pub enum Interpretation {
    Proposed(Box<Proposed>),
    /// The model's answer cannot be read; one sentence says why.
    Unreadable(String),
    /// There is no answer; a short cause.
    Nothing(String),
    TooSlow,
}

/// What is known of a text.
#[derive(Debug)]
pub struct CachedProposal {
    at: Instant,
    /// The action whose model call gave it.
    run: RunId,
    meaning: Interpretation,
    /// Whether it is more than an answer to those who have waited for it: what cost nothing may be tried again at once.
    lasting: bool,
}

impl CachedProposal {
    /// Found out now, by a call of `run`.
    pub fn lasting(run: RunId, meaning: Interpretation) -> Self {
        Self {
            at: Instant::now(),
            run,
            meaning,
            lasting: true,
        }
    }

    /// Found out now, and told to nobody but those who have waited for it.
    pub fn passing(run: RunId, meaning: Interpretation) -> Self {
        Self {
            lasting: false,
            ..Self::lasting(run, meaning)
        }
    }
}

/// Whoever holds the cell finds out what its text means; the others wait for it, and read.
pub type ProposalSlot = Arc<tokio::sync::Mutex<Option<CachedProposal>>>;

/// Who wants to know what a text means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProposalKey {
    /// He has waited for another who was at it.
    Waiting,
    Later,
}

/// The proposals of the last seconds.
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

    /// The cell of a text in a scene.
    pub fn cell(&self, scene: Scene, message: &str) -> ProposalSlot {
        let mut cells = self.cells.lock().unwrap_or_else(PoisonError::into_inner);
        if cells.len() >= MANY {
            // One that somebody has asked for is his, also before he has locked it.
            cells.retain(|_, cell| {
                let known = cell
                    .try_lock()
                    .is_ok_and(|kept| self.read(kept.as_ref(), ProposalKey::Later).is_some());
                known || Arc::strong_count(cell) > 1
            });
        }
        Arc::clone(cells.entry((scene, message.trim().to_owned())).or_default())
    }

    /// What a cell has for somebody: for who has waited whatever was found out meanwhile, for others what is not too old.
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
    use crate::domain::{Context, Mode, User};
    use uuid::Uuid;

    fn scene(channel: &str) -> Scene {
        Scene::of(&Question {
            source: Source::Http,
            mode: Mode::Ask,
            user: User {
                id: "ada".into(),
                name: "Ada".into(),
            },
            context: Context {
                guild_id: Some("g".into()),
                channel_id: Some(channel.into()),
                message_id: None,
            },
            message: String::new(),
            attachments: vec![],
        })
    }

    #[tokio::test]
    async fn a_cell_that_somebody_has_asked_for_is_not_thrown_out_before_he_locks_it() {
        let plans = ProposalCache::new(Duration::from_secs(30));
        let early = plans.cell(scene("c"), "hm");
        // So many others come meanwhile that room is made, more than once.
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
    async fn what_cost_nothing_is_told_to_those_who_waited_and_to_nobody_else() {
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

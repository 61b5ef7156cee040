//! What texts were taken to mean a moment ago, so that the same text in the same scene costs one model call. What is kept is
//! the proposal, never its execution: each user's own sheets and memories are looked at each time.

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
        Self { source: question.source, guild: context.guild_id.clone(), place }
    }
}

/// What is known of a text.
#[derive(Debug, Default)]
pub enum Kept {
    #[default]
    Nothing,
    /// Somebody asks the model, or did and got nothing.
    Tried,
    /// What was proposed, in which run, and when.
    Known(Instant, RunId, Box<Proposed>),
}

/// Whoever holds the cell finds out what its text means; the others wait for it, and read.
pub type Cell = Arc<tokio::sync::Mutex<Kept>>;

/// The proposals of the last seconds.
pub struct Plans {
    fresh: Duration,
    cells: Mutex<HashMap<(Scene, String), Cell>>,
}

impl Plans {
    pub fn new(fresh: Duration) -> Self {
        Self { fresh, cells: Mutex::default() }
    }

    /// The cell of a text in a scene.
    pub fn cell(&self, scene: Scene, message: &str) -> Cell {
        let mut cells = self.cells.lock().unwrap_or_else(PoisonError::into_inner);
        if cells.len() >= MANY {
            cells.retain(|_, cell| match cell.try_lock() {
                Ok(kept) => self.read(&kept).is_some(),
                // Somebody is at it.
                Err(_) => true,
            });
        }
        Arc::clone(cells.entry((scene, message.trim().to_owned())).or_default())
    }

    /// What a cell has, if that is not too old.
    pub fn read(&self, kept: &Kept) -> Option<Proposed> {
        let Kept::Known(at, run, proposed) = kept else { return None };
        (at.elapsed() < self.fresh).then(|| Proposed { reused_from: Some(*run), ..Proposed::clone(proposed) })
    }
}

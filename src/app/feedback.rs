//! Records what readers think of replies.

use jiff::Timestamp;
use metrics::counter;

use super::App;
use crate::domain::{RunId, RunKind};
use crate::journal::{
    self, Annotated, Event, Feedback, Learned, Note, RunState, Store, Transcript,
};
use crate::llm;
use crate::strategies::learning::{self, Lesson};

/// The maximum length of a comment in characters.
pub const MAX_COMMENT_CHARS: usize = 2000;

/// How often a run may get feedback. Each one is an entry, and reads the run's whole journal.
const MAX_FEEDBACK: u32 = 100;

/// Why feedback was refused.
#[derive(Debug, thiserror::Error)]
pub enum FeedbackRefused {
    #[error("there is no such run")]
    Unknown,
    /// The run is in flight, or it failed or was cancelled.
    #[error("the run has no reply: it is {}", .0.into_str())]
    NoReply(RunState),
    /// Actions and tool plans have no reply.
    #[error("feedback is about replies, and the run is of the kind {}", .0.into_str())]
    NoChat(RunKind),
    #[error("the run has been given feedback {MAX_FEEDBACK} times, and takes no more")]
    TooOften,
    #[error("the comment has {0} characters; at most {MAX_COMMENT_CHARS} are allowed")]
    TooLong(usize),
    #[error(transparent)]
    Journal(#[from] journal::Error),
}

/// Feedback as it was noted, and the learned answer that it made or changed.
#[derive(Debug, Clone, PartialEq)]
pub struct Noted {
    pub feedback: Feedback,
    pub learned: Option<(RunId, Learned)>,
}

impl App {
    /// Records what a reader thinks of a reply.
    ///
    /// # Errors
    /// [`FeedbackRefused`]; then nothing was written.
    pub async fn feedback(
        &self,
        run: RunId,
        positive: bool,
        comment: Option<&str>,
    ) -> Result<Noted, FeedbackRefused> {
        let comment = comment.map(|text| llm::without_secrets(text, &self.committee.secrets));
        let noted = give_feedback(
            &*self.store,
            self.clock.now(),
            run,
            positive,
            comment.as_deref(),
        )
        .await?;
        let said = if positive { "positive" } else { "negative" };
        counter!("conclave_feedback_total", "said" => said).increment(1);
        if let Some((_, learned)) = &noted.learned {
            let change = learned.change.into_str();
            counter!("conclave_learned_total", "change" => change).increment(1);
        }
        Ok(noted)
    }
}

/// Writes feedback into the journal of a run that has a reply, and learns from it. All feedback is
/// kept; the last one counts.
///
/// # Errors
/// [`FeedbackRefused`]; then nothing was written.
pub async fn give_feedback(
    store: &dyn Store,
    now: Timestamp,
    run: RunId,
    positive: bool,
    comment: Option<&str>,
) -> Result<Noted, FeedbackRefused> {
    let comment = comment.map(str::trim).filter(|comment| !comment.is_empty());
    let chars = comment.map_or(0, |comment| comment.chars().count());
    if chars > MAX_COMMENT_CHARS {
        return Err(FeedbackRefused::TooLong(chars));
    }
    loop {
        let Some(row) = store.run(run).await? else {
            return Err(FeedbackRefused::Unknown);
        };
        let has_reply = matches!(
            row.state,
            RunState::Answered | RunState::Clarification | RunState::Heuristic
        );
        if row.kind != RunKind::Chat {
            return Err(FeedbackRefused::NoChat(row.kind));
        }
        if !has_reply {
            return Err(FeedbackRefused::NoReply(row.state));
        }
        let mut entries = store.entries(run, 0).await?;
        // Other feedback may be written between the two reads: the row does not cover it.
        entries.truncate(usize::try_from(row.head_seq).unwrap_or(0));
        let given = Transcript::of_entries(&entries).feedback.len();
        let number = u32::try_from(given).unwrap_or(u32::MAX).saturating_add(1);
        if number > MAX_FEEDBACK {
            return Err(FeedbackRefused::TooOften);
        }
        let feedback = Feedback {
            number,
            positive,
            comment: comment.map(str::to_owned),
        };
        // Both are written or neither, so that no lesson is lost in a crash.
        let lesson = learning::lesson(store, &row, &entries, positive).await?;
        let mut notes = vec![Note {
            run,
            head_seq: row.head_seq,
            events: vec![Event::Feedback(feedback.clone())],
        }];
        match (lesson.as_ref().map(Lesson::note), notes.first_mut()) {
            (Some(note), Some(first)) if note.run == run => first.events.extend(note.events),
            (note, _) => notes.extend(note),
        }
        match store.annotate(now, notes).await? {
            Annotated::Written => {
                let learned = lesson.map(|it| (it.run, it.learned));
                return Ok(Noted { feedback, learned });
            }
            // Other feedback was written in between: read again.
            Annotated::Changed => {}
            Annotated::Unfinished => return Err(FeedbackRefused::NoReply(row.state)),
            Annotated::Unknown => return Err(FeedbackRefused::Unknown),
        }
    }
}

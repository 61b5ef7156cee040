//! The runs that a run continues.

use super::{Accepted, Entry, Transcript};
use crate::domain::RunId;

/// The maximum length of a chain of continued runs, so that a damaged journal cannot cause an
/// endless loop.
const LONGEST: usize = 32;

/// Returns the journals of a run's ancestors, as `read` gives them, the nearest first. Stops after an
/// ancestor that no longer exists.
///
/// # Errors
/// Those of `read`.
pub async fn ancestors<E, F>(
    accepted: Option<&Accepted>,
    read: impl Fn(RunId) -> F,
) -> Result<Vec<(RunId, Vec<Entry>)>, E>
where
    F: Future<Output = Result<Vec<Entry>, E>>,
{
    let parent_of = |accepted: &Accepted| Some(accepted.continues.as_ref()?.parent);
    let mut found = vec![];
    let mut parent = accepted.and_then(parent_of);
    while let Some(id) = parent
        && found.len() < LONGEST
    {
        let entries = read(id).await?;
        let transcript = Transcript::of_entries(&entries);
        parent = transcript.accepted.and_then(parent_of);
        found.push((id, entries));
    }
    Ok(found)
}

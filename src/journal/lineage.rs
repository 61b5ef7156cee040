//! The runs that a run continues.

use super::{Accepted, Entry, Error, RunReader, Transcript};
use crate::domain::RunId;

/// The maximum length of a chain of continued runs, so that a damaged journal cannot cause an
/// endless loop.
const LONGEST: usize = 32;

/// Returns the journals of a run's ancestors, the nearest first. Stops after an ancestor that no
/// longer exists.
///
/// # Errors
/// [`Error`] if the database fails.
pub async fn ancestors(
    store: &dyn RunReader,
    accepted: &Accepted,
) -> Result<Vec<(RunId, Vec<Entry>)>, Error> {
    let parent_of = |accepted: &Accepted| Some(accepted.continues.as_ref()?.parent);
    let mut found = vec![];
    let mut parent = parent_of(accepted);
    while let Some(id) = parent
        && found.len() < LONGEST
    {
        let entries = store.entries(id, 0).await?;
        let transcript = Transcript::of_entries(&entries);
        parent = transcript.accepted.and_then(parent_of);
        found.push((id, entries));
    }
    Ok(found)
}

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
    let mut found = vec![];
    let mut parent = accepted
        .continues
        .as_ref()
        .map(|continues| continues.parent);
    while let Some(id) = parent
        && found.len() < LONGEST
    {
        let entries = store.entries(id, 0).await?;
        parent = Transcript::of_entries(&entries)
            .accepted
            .and_then(|a| a.continues.as_ref())
            .map(|continues| continues.parent);
        found.push((id, entries));
    }
    Ok(found)
}

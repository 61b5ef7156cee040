//! The runs that a run continues.

use super::{Accepted, Entry, Transcript};
use crate::domain::RunId;

/// The maximum length of a chain of continued runs, so that a damaged journal cannot cause an
/// endless loop.
const LONGEST: usize = 32;

/// Returns the journals of a run's ancestors, as `read` gives them, the nearest first. Stops after an
/// ancestor that asks something new, and after one that no longer exists, whose journal is empty.
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
    let mut found = vec![];
    let continues = accepted.and_then(|accepted| accepted.continues.as_ref());
    let mut parent = continues.map(|continues| continues.parent);
    while let Some(id) = parent
        && found.len() < LONGEST
    {
        let entries = read(id).await?;
        let continues = Transcript::of_entries(&entries).continues();
        parent = continues.map(|continues| continues.parent);
        found.push((id, entries));
    }
    Ok(found)
}

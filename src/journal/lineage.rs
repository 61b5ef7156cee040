//! The runs that a run goes on from.

use super::{Accepted, Entry, Error, Store, views};
use crate::domain::RunId;

/// Runs continue each other in a line; its length is bounded so that a damaged journal cannot make a circle.
const LONGEST: usize = 32;

/// The journals of a run's ancestors, the nearest first; up to one that is not there any more.
///
/// # Errors
/// When the database refuses.
pub async fn ancestors(
    store: &dyn Store,
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
        parent = views::accepted(&entries)
            .and_then(|a| a.continues.as_ref())
            .map(|continues| continues.parent);
        found.push((id, entries));
    }
    Ok(found)
}

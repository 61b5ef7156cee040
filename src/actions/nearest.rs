//! Finds the word that a misspelt one may mean.

/// The most bytes of a word that may be misspelt. A longer one differs from every known word, and
/// to compare it takes time by its length.
const MAX_MISSPELT: usize = 64;

/// Returns the known word that differs least from a misspelt one, if few letters differ.
pub fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    if word.len() > MAX_MISSPELT {
        return None;
    }
    let distance = |known: &&str| strsim::osa_distance(word, known);
    let nearest = known.min_by_key(distance)?;
    (3 * distance(&nearest) <= nearest.len()).then_some(nearest)
}

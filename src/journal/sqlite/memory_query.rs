//! The full-text query of an owner's memories and learned answers.

use std::fmt::Write as _;

use crate::journal::Owner;

pub(super) fn memory_query(owner: &Owner, words: &[Vec<String>]) -> Option<String> {
    // In quotes, a term is a word and never an operator of the query language.
    let quoted = |term: &String| format!("\"{}\"", term.replace('"', ""));
    let words = words.iter().filter(|terms| !terms.is_empty()).map(|terms| {
        let terms: Vec<String> = terms.iter().map(quoted).collect();
        format!("({})", terms.join(" OR "))
    });
    let words: Vec<String> = words.collect();
    let (owner, words) = (owner_word(owner), words.join(" AND "));
    (!words.is_empty()).then(|| format!("owner : \"{owner}\" AND - owner : ({words})"))
}

/// Encodes an owner as one word of the full-text index. The migration computes the same from a
/// memory's columns.
fn owner_word(owner: &Owner) -> String {
    let whole = format!(
        "{}\u{1f}{}\u{1f}{}",
        owner.source.into_str(),
        owner.guild_id.as_deref().unwrap_or(""),
        owner.user_id
    );
    whole.bytes().fold(String::new(), |mut word, byte| {
        let _ = write!(word, "{byte:02X}");
        word
    })
}

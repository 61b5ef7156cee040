//! Characters that change the direction of writing.

/// True for the overrides, embeddings and isolates of bidirectional text, which can make a text
/// look like another one. The marks U+200E, U+200F and U+061C are kept, because they only place
/// neutral characters.
pub fn changes_direction(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

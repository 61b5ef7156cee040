//! Characters that change or hide what a reader sees of a text.

use std::borrow::Cow;

/// True for the overrides, embeddings and isolates of bidirectional text, which can make a text
/// look like another one. The marks U+200E, U+200F and U+061C are kept, because they only place
/// neutral characters.
pub fn changes_direction(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// True for a character that a text shows nothing of: controls, and those that format it.
pub fn is_invisible(c: char) -> bool {
    let formats = matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}');
    c.is_control() || formats || changes_direction(c)
}

/// True if a reader sees nothing of a text.
pub fn is_blank(text: &str) -> bool {
    text.chars().all(|c| c.is_whitespace() || is_invisible(c))
}

/// Returns the text without control characters, except newline and tab, and without characters that
/// reverse the writing direction.
pub fn without_controls(text: &str) -> Cow<'_, str> {
    let harmful = |c: char| (c.is_control() && c != '\n' && c != '\t') || changes_direction(c);
    if text.contains(harmful) {
        Cow::Owned(text.replace(harmful, ""))
    } else {
        Cow::Borrowed(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_without_a_visible_character_is_blank() {
        for blank in ["", " \n", "\u{200b}", "\u{2060}\n\u{200b}\u{ad}"] {
            assert!(is_blank(blank), "{blank:?}");
        }
        for seen in ["42", "∞", "👍", "\u{200b}x"] {
            assert!(!is_blank(seen), "{seen}");
        }
    }
}

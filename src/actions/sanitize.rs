//! Text of users on its way back to where others read it.

/// The most characters of a user's text that are repeated.
const MAX_CHARS: usize = 300;

/// Returns the text without control characters and working mentions, cut to [`MAX_CHARS`].
pub fn sanitize(text: &str) -> String {
    let mut kept: String = text.chars().filter(is_shown).take(MAX_CHARS).collect();
    if text.chars().count() > MAX_CHARS {
        kept.push_str("...");
    }
    without_mentions(&kept)
}

/// Returns the text without control characters and working mentions, whatever its length.
pub fn sanitize_uncut(text: &str) -> String {
    without_mentions(&text.chars().filter(is_shown).collect::<String>())
}

fn is_shown(c: &char) -> bool {
    !c.is_control() || *c == '\n'
}

/// Breaks the mentions of Discord, so that they notify no user.
fn without_mentions(text: &str) -> String {
    text.replace('@', "@\u{200b}").replace("<#", "<\u{200b}#")
}

/// Returns the first characters of a text, for a log or a field with a bound.
pub fn cut(text: &str, most: usize) -> String {
    text.chars().take(most).collect()
}

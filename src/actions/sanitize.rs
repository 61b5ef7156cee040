//! Text of users on its way back to where others read it.

/// The most characters of a user's text that are repeated.
const MAX_CHARS: usize = 300;

/// Returns the text without control characters and working mentions, cut to [`MAX_CHARS`].
pub fn sanitize(text: &str) -> String {
    let mut sanitized: String = text
        .chars()
        .filter(|c| is_shown(*c))
        .take(MAX_CHARS)
        .collect();
    if text.chars().count() > MAX_CHARS {
        sanitized.push_str("...");
    }
    without_mentions(&sanitized)
}

/// Returns the text without control characters and working mentions, whatever its length.
pub fn sanitize_uncut(text: &str) -> String {
    let shown: String = text.chars().filter(|c| is_shown(*c)).collect();
    without_mentions(&shown)
}

fn is_shown(c: char) -> bool {
    !c.is_control() || c == '\n'
}

/// Breaks the mentions of Discord, so that they notify no user.
fn without_mentions(text: &str) -> String {
    text.replace('@', "@\u{200b}").replace("<#", "<\u{200b}#")
}

/// Returns the first characters of a text, for a log or a field with a bound.
pub fn cut(text: &str, most: usize) -> String {
    text.chars().take(most).collect()
}

//! What a user wrote, on its way back to where others read it.

/// So much of a user's text is repeated.
const MAX_CHARS: usize = 300;

/// A text cut to a bearable length, in which nobody is called by name: mentions of Discord lose what makes them work.
pub fn sanitize(text: &str) -> String {
    let mut echoed: String = text
        .chars()
        .filter(|c| !c.is_control() || *c == '\n')
        .take(MAX_CHARS)
        .collect();
    if text.chars().count() > MAX_CHARS {
        echoed.push_str("...");
    }
    echoed.replace('@', "@\u{200b}").replace("<#", "<\u{200b}#")
}

/// The first characters of a text, for a log or a field with a bound.
pub fn cut(text: &str, most: usize) -> String {
    text.chars().take(most).collect()
}

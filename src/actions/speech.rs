//! What a player quotes: speech of characters, names of several words.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::Regex;

use crate::text::pattern;

// Initial and final punctuation of Unicode, and the marks of other classes. Apostrophes are none.
static MARK: LazyLock<Regex> = LazyLock::new(|| pattern(r#"["„「」『』｢｣\p{Pi}\p{Pf}--[‘’‛]]"#));

pub fn is_quotation_mark(c: char) -> bool {
    MARK.is_match(c.encode_utf8(&mut [0; 4]))
}

/// Returns a text with a comma in place of each quotation on one line.
pub fn without_speech(text: &str) -> Cow<'_, str> {
    static SPEECH: LazyLock<Regex> = LazyLock::new(|| {
        pattern(r#"["„「」『』｢｣\p{Pi}\p{Pf}--[‘’‛]][^\n]*?["„「」『』｢｣\p{Pi}\p{Pf}--[‘’‛]]"#)
    });
    SPEECH.replace_all(text, ",")
}

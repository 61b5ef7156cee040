//! What a player quotes: speech of characters, names of several words.

use std::sync::LazyLock;

use regex::Regex;

use crate::text::pattern;

// Initial and final punctuation of Unicode, and the marks of other classes. Apostrophes are none.
static MARK: LazyLock<Regex> = LazyLock::new(|| pattern(r#"["„「」『』｢｣\p{Pi}\p{Pf}--[‘’‛]]"#));

pub fn is_quotation_mark(c: char) -> bool {
    MARK.is_match(c.encode_utf8(&mut [0; 4]))
}

/// Returns a text with a comma in place of what stands in quotation marks on one line.
pub fn without_speech(text: &str) -> String {
    let mut kept = String::new();
    for line in text.split_inclusive('\n') {
        let mut left = line;
        while let Some((before, behind)) = left.split_once(is_quotation_mark)
            && let Some((_, after)) = behind.split_once(is_quotation_mark)
        {
            kept.extend([before, ","]);
            left = after;
        }
        kept.push_str(left);
    }
    kept
}

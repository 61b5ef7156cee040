//! Text from outside on its way to a person: a terminal obeys escape sequences, so none of a model's reaches it.

use std::borrow::Cow;

use super::exit::{Exit, fail};

/// The text without control characters but newline and tab: also into a pipe, behind which a pager or a log may obey
/// them. `--json` escapes them instead.
pub(super) fn without_controls(text: &str) -> Cow<'_, str> {
    let harmful = |c: char| c.is_control() && c != '\n' && c != '\t';
    if text.contains(harmful) { Cow::Owned(text.replace(harmful, "")) } else { Cow::Borrowed(text) }
}

/// A word of a command line, quoted for a shell where it needs to be.
pub(super) fn quoted(word: &str) -> Cow<'_, str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@%+=,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        Cow::Borrowed(word)
    } else {
        Cow::Owned(format!("'{}'", word.replace('\'', r"'\''")))
    }
}

/// Prints a line on standard output. A reader that has gone away (`conclave show RUN | head`) ends the program quietly;
/// an output that cannot be written ends it with an error.
pub(super) fn say(line: std::fmt::Arguments<'_>) {
    use std::io::Write as _;
    if let Err(error) = writeln!(std::io::stdout().lock(), "{line}") {
        if error.kind() == std::io::ErrorKind::BrokenPipe {
            std::process::exit(Exit::Done as i32);
        }
        std::process::exit(fail(Exit::Unexpected, format!("standard output: {error}")) as i32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_lose_what_makes_them_work() {
        let text = "a\u{1b}[31mred\u{1b}]0;title\u{7} b\u{9b}2J c\rd\u{7f}\n\te\u{e4}";
        assert_eq!(without_controls(text), "a[31mred]0;title b2J cd\n\te\u{e4}");
    }

    #[test]
    fn words_are_quoted_where_a_shell_would_take_them_apart() {
        assert_eq!(quoted("http://127.0.0.1:8080"), "http://127.0.0.1:8080");
        assert_eq!(quoted("it's $HOME"), r"'it'\''s $HOME'");
        assert_eq!(quoted(""), "''");
    }
}

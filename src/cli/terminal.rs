//! Prints external text safely. A terminal obeys escape sequences, so those of a model must not
//! reach it.

use super::printable::{escaped_json, without_controls};
use std::borrow::Cow;

use super::exit::{Exit, fail};

/// Returns a word of a command line, quoted for a shell if necessary.
fn quoted(word: &str) -> Cow<'_, str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@%+=,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        Cow::Borrowed(word)
    } else {
        Cow::Owned(format!("'{}'", word.replace('\'', r"'\''")))
    }
}

/// Returns the options that have a value as they are written on a command line, each after a space.
pub(super) fn options(all: &[(&str, Option<&String>)]) -> String {
    let option = |(name, value): &(&str, Option<&String>)| {
        let value = quoted((*value)?);
        Some(format!(" --{name} {value}"))
    };
    all.iter().filter_map(option).collect()
}

/// Prints text on standard output, without control characters.
pub(super) fn say(text: std::fmt::Arguments<'_>) {
    write_line(&without_controls(&text.to_string()));
}

/// Prints JSON on standard output, with control characters as escapes.
pub(super) fn say_json(json: &str) {
    write_line(&escaped_json(json));
}

/// Prints a line with colours of the program. External text in it must have passed
/// [`without_controls`].
pub(super) fn say_styled(line: std::fmt::Arguments<'_>) {
    write_line(&line.to_string());
}

/// Writes a line to standard output. If the reader is gone (`conclave show RUN | head`), the
/// program ends quietly. Any other error of the output ends it with an error.
fn write_line(line: &str) {
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
    fn json_for_a_terminal_keeps_its_value_and_has_nothing_that_a_terminal_obeys() {
        let text = "a\u{1b}\u{7f}\u{9b}2J\u{202e}\u{2069}\u{e4}\u{1f600}";
        let json = serde_json::to_string(text).unwrap();
        let shown = escaped_json(&json);
        assert_eq!(
            shown,
            "\"a\\u001b\\u007f\\u009b2J\\u202e\\u2069\u{e4}\u{1f600}\""
        );
        assert_eq!(serde_json::from_str::<String>(&shown).unwrap(), text);
        assert!(matches!(escaped_json("{}"), Cow::Borrowed(_)));
    }

    #[test]
    fn words_are_quoted_where_a_shell_would_take_them_apart() {
        assert_eq!(quoted("http://127.0.0.1:8080"), "http://127.0.0.1:8080");
        assert_eq!(quoted("it's $HOME"), r"'it'\''s $HOME'");
        assert_eq!(quoted(""), "''");
    }
}

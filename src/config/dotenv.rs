//! Reads a `.env` file line by line. A line that cannot be read is a problem with its place.
//!
//! `dotenvy` parses each line by itself. In a whole file an open quote consumes the rest. It would
//! also replace `$NAME` in a password.

use std::io::ErrorKind;
use std::path::Path;

use super::Problem;

const UNREAD: &str = "cannot be read: a line is NAME=value, and a value with spaces, # or quotes is \
                      in single quotes that end on the same line";

/// What a file sets, in order. A line that cannot be read sets nothing.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Contents {
    pub variables: Vec<(String, String)>,
    pub problems: Vec<Problem>,
    /// The names in lines that cannot be read.
    pub unread: Vec<String>,
}

/// Reads a file. One that does not exist has neither variables nor problems.
pub(super) fn read(path: &Path) -> Contents {
    let shown = path.display().to_string();
    match std::fs::read(path) {
        Ok(bytes) => parse(&bytes, &shown),
        Err(error) if error.kind() == ErrorKind::NotFound && !path.is_symlink() => {
            Contents::default()
        }
        Err(error) => Contents {
            problems: vec![Problem::new(
                shown,
                format!("cannot be read: {}", error.kind()),
            )],
            ..Contents::default()
        },
    }
}

/// Parses the lines. Values are never shown: they may be secrets.
fn parse(bytes: &[u8], shown: &str) -> Contents {
    let (mut variables, mut problems, mut unread) = (vec![], vec![], vec![]);
    let mut problem = |line: usize, detail: &str| {
        problems.push(Problem::new(format!("{shown}:{line}"), detail));
    };
    let text = String::from_utf8_lossy(bytes);
    let rest = text.strip_prefix('\u{feff}');
    if rest.is_some() {
        let detail = "begins with a byte order mark: save the file as UTF-8 without one";
        problem(1, detail);
    }
    for (number, line) in (1..).zip(rest.unwrap_or(&text).lines()) {
        let Ok(read) = parse_line(line) else {
            problem(number, UNREAD);
            unread.extend(name_of(line));
            continue;
        };
        let Some((name, value)) = read else { continue };
        if line.contains(char::REPLACEMENT_CHARACTER) {
            problem(number, "is not UTF-8");
        } else if variables.iter().any(|(known, _)| *known == name) {
            problem(number, &format!("sets {name} a second time"));
        } else if value.contains(|c: char| c.is_control() && c != '\t') {
            problem(
                number,
                &format!("has a control character in the value of {name}"),
            );
        }
        variables.push((name, value));
    }
    Contents {
        variables,
        problems,
        unread,
    }
}

/// Parses the variable of a line. An empty line and a comment have none.
fn parse_line(line: &str) -> dotenvy::Result<Option<(String, String)>> {
    // Blanks at the end cannot be seen.
    dotenvy::from_read_iter(literal_dollars(line.trim_end()).as_bytes())
        .next()
        .transpose()
}

/// Escapes dollar signs, so that nothing is replaced in a value.
fn literal_dollars(text: &str) -> String {
    let (mut out, mut single, mut escaped) = (String::with_capacity(text.len()), false, false);
    for c in text.chars() {
        if c == '$' && !single && !escaped {
            out.push('\\');
        }
        out.push(c);
        single ^= c == '\'' && !escaped;
        escaped = c == '\\' && !single && !escaped;
    }
    out
}

/// Returns what is before the value of a line, as in `NAME=value` or `NAME: value`.
fn name_of(line: &str) -> Option<String> {
    let line = line.trim_start();
    let line = line.strip_prefix("export ").unwrap_or(line);
    Some(line.split_once(['=', ':'])?.0.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (Vec<String>, Vec<String>) {
        let contents = parse(text.as_bytes(), ".env");
        let variables = contents.variables.into_iter();
        let variables = variables.map(|(name, value)| format!("{name}={value}"));
        let problems = contents.problems.iter().map(ToString::to_string);
        (variables.collect(), problems.collect())
    }

    #[test]
    fn a_good_file_is_read_whole() {
        let comments =
            "# a comment\n \t\nA=1 \nexport B='two words'\t\nC=\"x # y\" # z\nD=\n E = 5\r\n";
        let dollars = "A=pa$$word$HOME\nB=\"x${A}y\"\nC='p$A'\nD=postgres://u:a\\$b@h/d\n";
        let cases: [(&str, &[&str]); 2] = [
            (comments, &["A=1", "B=two words", "C=x # y", "D=", "E=5"]),
            (
                dollars,
                &[
                    "A=pa$$word$HOME",
                    "B=x${A}y",
                    "C=p$A",
                    "D=postgres://u:a$b@h/d",
                ],
            ),
        ];
        for (text, expected) in cases {
            let (variables, problems) = read(text);
            assert_eq!(variables, expected);
            assert_eq!(problems, [""; 0]);
        }
    }

    #[test]
    fn a_broken_line_is_named_and_hides_no_other() {
        let text = "A=1\nno assignment here\nB=\"open\nC=3\nD=two words\nA=2\nE=x\ry\n";
        let (variables, problems) = read(text);
        let expected = ["A=1", "C=3", "A=2", "E=x\ry"];
        assert_eq!(variables, expected);
        let unread = [2, 3, 5].map(|line| format!(".env:{line}: {UNREAD}"));
        assert_eq!(problems[..3], unread);
        let expected = [
            ".env:6: sets A a second time",
            ".env:7: has a control character in the value of E",
        ];
        assert_eq!(problems[3..], expected);
    }

    #[test]
    fn a_line_that_cannot_be_read_has_a_name_and_no_value() {
        let text = "1X=2\nA=sk-ant abc\nB: sk-ant\nexport C=\"open\nno: assignment=1\n";
        let contents = parse(text.as_bytes(), ".env");
        assert_eq!(contents.variables, []);
        assert_eq!(contents.unread, ["1X", "A", "B", "C", "no"]);
    }

    #[test]
    fn a_byte_order_mark_is_named_and_hides_nothing() {
        let (variables, problems) = read("\u{feff}KEY=1\n");
        assert_eq!((variables, problems.len()), (vec!["KEY=1".to_owned()], 1));
        assert!(problems[0].starts_with(".env:1:"), "{problems:?}");
    }

    #[test]
    fn what_cannot_be_read_is_a_problem_and_what_is_not_there_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let absent = super::read(&folder.path().join(".env"));
        assert_eq!(absent, Contents::default());
        assert_eq!(super::read(folder.path()).problems.len(), 1);
        let file = folder.path().join("bytes");
        std::fs::write(&file, b"A=1\nB=\xff\n").unwrap();
        let Contents {
            variables,
            problems,
            ..
        } = super::read(&file);
        assert_eq!(problems[0].place, format!("{}:2", file.display()));
        assert_eq!(variables[0], ("A".to_owned(), "1".to_owned()));
    }
}

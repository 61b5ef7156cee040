//! Reads a `.env` file. Every line counts, and a line that cannot be read is a problem with its
//! place.
//!
//! `dotenvy` parses the values. It skips lines that it cannot read, lets an open quote consume the
//! rest of the file, and replaces `$NAME` in a password. This module finds or prevents these cases.

use std::io::ErrorKind;
use std::path::Path;

use super::Problem;

/// Reads the variables of a file in order, and its problems. A file that does not exist has
/// neither.
pub(super) fn read(path: &Path) -> (Vec<(String, String)>, Vec<Problem>) {
    let shown = path.display().to_string();
    let problem = |detail: String| {
        (
            vec![],
            vec![Problem {
                place: shown.clone(),
                detail,
            }],
        )
    };
    // Reading a pipe would block.
    if path.metadata().is_ok_and(|data| !data.is_file()) {
        return problem("cannot be read: it is no file".into());
    }
    match std::fs::read(path) {
        Ok(bytes) => match String::from_utf8(bytes) {
            Ok(text) => parse(&text, &shown),
            Err(error) => {
                let valid = error.utf8_error().valid_up_to();
                let line = error
                    .as_bytes()
                    .iter()
                    .take(valid)
                    .filter(|byte| **byte == b'\n')
                    .count()
                    + 1;
                // The other lines still count, so that their variables are not reported as missing.
                let (variables, mut problems) =
                    parse(&String::from_utf8_lossy(error.as_bytes()), &shown);
                let place = format!("{shown}:{line}");
                problems.retain(|problem| problem.place != place);
                problems.push(Problem {
                    place,
                    detail: "is not UTF-8".into(),
                });
                (variables, problems)
            }
        },
        // A dangling link is an error, because a file was meant to be there.
        Err(error) if error.kind() == ErrorKind::NotFound && path.is_symlink() => {
            problem("cannot be read: the link leads nowhere".into())
        }
        Err(error) if error.kind() == ErrorKind::NotFound => (vec![], vec![]),
        Err(error) => problem(format!("cannot be read: {}", error.kind())),
    }
}

/// Parses a text. Each line that cannot be read is a problem. Values are never shown: they may be
/// secrets.
fn parse(text: &str, shown: &str) -> (Vec<(String, String)>, Vec<Problem>) {
    let (mut variables, mut problems) = (vec![], vec![]);
    let mut problem = |line: usize, detail: &str| {
        problems.push(Problem {
            place: format!("{shown}:{line}"),
            detail: detail.to_owned(),
        });
    };
    let text = match text.strip_prefix('\u{feff}') {
        Some(rest) => {
            problem(
                1,
                "begins with a byte order mark: save the file as UTF-8 without one",
            );
            rest
        }
        None => text,
    };
    let lines: Vec<&str> = text.lines().collect();
    let mut at = 0;
    while let Some(line) = lines.get(at) {
        // A quoted value may span several lines. One that is never closed must not consume the
        // other lines.
        let ends = (at + 1..=lines.len()).take_while(|end| {
            *end == at + 1 || lines.get(end - 1).is_some_and(|line| !is_assignment(line))
        });
        let found = ends
            .filter_map(|end| Some((end, values(lines.get(at..end)?)?)))
            .next();
        match found {
            Some((end, read)) => {
                for (name, value) in read {
                    if variables.iter().any(|(known, _)| *known == name) {
                        problem(at + 1, &format!("sets {name} a second time"));
                    } else if value
                        .chars()
                        .any(|c| c.is_control() && !matches!(c, '\n' | '\t'))
                    {
                        problem(
                            at + 1,
                            &format!("has a control character in the value of {name}"),
                        );
                    }
                    variables.push((name, value));
                }
                at = end;
            }
            None => {
                problem(at + 1, why_unread(line));
                at += 1;
            }
        }
    }
    (variables, problems)
}

fn why_unread(line: &str) -> &'static str {
    if !is_assignment(line) {
        "is not of the form NAME=value"
    } else if has_open_quote(line) {
        "opens a quote that is never closed"
    } else {
        "has a value that cannot be read: put it in single quotes"
    }
}

/// Parses the variables of some lines. Returns `None` if they cannot be parsed as a whole.
fn values(lines: &[&str]) -> Option<Vec<(String, String)>> {
    let text = literal_dollars(&lines.join("\n"));
    let read: Vec<_> = dotenvy::from_read_iter(text.as_bytes())
        .collect::<Result<_, _>>()
        .ok()?;
    // Without a value there was nothing to read, or `dotenvy` skipped it.
    let blank = |line: &&str| line.trim().is_empty() || line.trim_start().starts_with('#');
    (!read.is_empty() || lines.iter().all(blank)).then_some(read)
}

/// Escapes dollar signs, so that nothing is replaced in a value.
fn literal_dollars(text: &str) -> String {
    let (mut out, mut single, mut escaped) = (String::with_capacity(text.len()), false, false);
    for c in text.chars() {
        if c == '$' && !single && !escaped {
            out.push('\\');
        }
        out.push(c);
        single = if c == '\'' && !escaped {
            !single
        } else {
            single
        };
        escaped = c == '\\' && !single && !escaped;
    }
    out
}

fn is_assignment(line: &str) -> bool {
    let line = line.trim_start();
    let line = line.strip_prefix("export ").unwrap_or(line);
    line.split_once('=').is_some_and(|(name, _)| {
        let name = name.trim();
        !name.is_empty()
            && name
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.'))
    })
}

fn has_open_quote(line: &str) -> bool {
    let value = line.split_once('=').map_or("", |(_, value)| value);
    ['"', '\'']
        .iter()
        .any(|quote| value.matches(*quote).count() % 2 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (Vec<String>, Vec<String>) {
        let (variables, problems) = parse(text, ".env");
        let variables = variables
            .into_iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        (
            variables,
            problems.iter().map(ToString::to_string).collect(),
        )
    }

    #[test]
    fn a_good_file_is_read_whole() {
        let text = "# a comment\n\nA=1\nexport B='two words'\nC=\"x # y\" # z\nD=\n E = 5\r\n";
        assert_eq!(
            read(text),
            (
                ["A=1", "B=two words", "C=x # y", "D=", "E=5"]
                    .map(str::to_owned)
                    .to_vec(),
                vec![]
            )
        );
    }

    #[test]
    fn a_dollar_sign_stands_for_itself() {
        let text = "A=pa$$word$HOME\nB=\"x${A}y\"\nC='p$A'\nD=postgres://u:a\\$b@h/d\n";
        let expected = [
            "A=pa$$word$HOME",
            "B=x${A}y",
            "C=p$A",
            "D=postgres://u:a$b@h/d",
        ];
        assert_eq!(read(text), (expected.map(str::to_owned).to_vec(), vec![]));
    }

    #[test]
    fn a_quoted_value_may_go_over_lines() {
        let (variables, problems) = read("A=\"one\ntwo\"\nB=2\n");
        assert_eq!(
            (variables, problems),
            (vec!["A=one\ntwo".to_owned(), "B=2".to_owned()], vec![])
        );
    }

    #[test]
    fn a_broken_line_is_named_and_hides_no_other() {
        let text = "A=1\nno assignment here\nB=\"open\nC=3\nD=two words\n";
        let (variables, problems) = read(text);
        assert_eq!(variables, ["A=1", "C=3"]);
        assert_eq!(
            problems,
            [
                ".env:2: is not of the form NAME=value",
                ".env:3: opens a quote that is never closed",
                ".env:5: has a value that cannot be read: put it in single quotes",
            ]
        );
    }

    #[test]
    fn a_byte_order_mark_is_named_and_hides_nothing() {
        let (variables, problems) = read("\u{feff}KEY=1\n");
        assert_eq!(variables, ["KEY=1"]);
        assert_eq!(problems.len(), 1);
        assert!(problems[0].starts_with(".env:1:"), "{problems:?}");
    }

    #[test]
    fn a_name_that_is_set_twice_and_a_control_character_are_named() {
        let (variables, problems) = read("A=1\nA=2\nB=x\ry\n");
        assert_eq!(variables.len(), 3);
        let expected = [
            ".env:2: sets A a second time",
            ".env:3: has a control character in the value of B",
        ];
        assert_eq!(problems, expected);
    }

    #[test]
    fn what_cannot_be_read_is_a_problem_and_what_is_not_there_is_none() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(super::read(&folder.path().join(".env")), (vec![], vec![]));
        assert_eq!(super::read(folder.path()).1.len(), 1);
        let file = folder.path().join("bytes");
        std::fs::write(&file, b"A=1\nB=\xff\n").unwrap();
        assert_eq!(
            super::read(&file).1[0].place,
            format!("{}:2", file.display())
        );
        assert_eq!(super::read(&file).0[0], ("A".to_owned(), "1".to_owned()));
    }
}

//! Reads a `.env` file. Every line counts, and a line that cannot be read is a problem with its
//! place.
//!
//! `dotenvy` parses the values. It skips lines that it cannot read, lets an open quote consume the
//! rest of the file, and replaces `$NAME` in a password. This module finds or prevents these cases.

use std::io::ErrorKind;
use std::path::Path;

use super::Problem;

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
    // Reading a pipe would block.
    let why = if path.metadata().is_ok_and(|data| !data.is_file()) {
        "it is no file".to_owned()
    } else {
        match std::fs::read(path) {
            Ok(bytes) => return parse_bytes(&bytes, &shown),
            // A dangling link is an error, because a file was meant to be there.
            Err(error) if error.kind() == ErrorKind::NotFound && path.is_symlink() => {
                "the link leads nowhere".to_owned()
            }
            Err(error) if error.kind() == ErrorKind::NotFound => return Contents::default(),
            Err(error) => error.kind().to_string(),
        }
    };
    let detail = format!("cannot be read: {why}");
    Contents {
        problems: vec![Problem::new(shown, detail)],
        ..Contents::default()
    }
}

fn parse_bytes(bytes: &[u8], shown: &str) -> Contents {
    let mut contents = parse(&String::from_utf8_lossy(bytes), shown);
    // The other lines still count, so that their variables are not reported as missing.
    if let Err(error) = std::str::from_utf8(bytes) {
        let valid = bytes.iter().take(error.valid_up_to());
        let line = valid.filter(|byte| **byte == b'\n').count() + 1;
        let place = format!("{shown}:{line}");
        contents.problems.retain(|problem| problem.place != place);
        contents.problems.push(Problem::new(place, "is not UTF-8"));
    }
    contents
}

/// Parses a text. Each line that cannot be read is a problem. Values are never shown: they may be
/// secrets.
fn parse(text: &str, shown: &str) -> Contents {
    let (mut variables, mut problems, mut unread) = (vec![], vec![], vec![]);
    let mut problem = |line: usize, detail: &str| {
        problems.push(Problem::new(format!("{shown}:{line}"), detail));
    };
    let rest = text.strip_prefix('\u{feff}');
    if rest.is_some() {
        let detail = "begins with a byte order mark: save the file as UTF-8 without one";
        problem(1, detail);
    }
    let lines: Vec<&str> = rest.unwrap_or(text).lines().collect();
    let mut at = 0;
    while let Some(line) = lines.get(at) {
        // A quoted value may span several lines. One that is never closed must not consume the
        // other lines.
        let ends = (at + 1..=lines.len()).take_while(|end| {
            *end == at + 1 || lines.get(end - 1).is_some_and(|line| !is_assignment(line))
        });
        let mut whole = ends.filter_map(|end| Some((end, values(lines.get(at..end)?)?)));
        let Some((end, read)) = whole.next() else {
            problem(at + 1, why_unread(line));
            unread.extend(name_of(line, &['=', ':']).map(str::to_owned));
            at += 1;
            continue;
        };
        for (name, value) in read {
            let is_control = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
            if variables.iter().any(|(known, _)| *known == name) {
                problem(at + 1, &format!("sets {name} a second time"));
            } else if value.chars().any(is_control) {
                let detail = format!("has a control character in the value of {name}");
                problem(at + 1, &detail);
            }
            variables.push((name, value));
        }
        at = end;
    }
    Contents {
        variables,
        problems,
        unread,
    }
}

fn why_unread(line: &str) -> &'static str {
    let begins_well = |c: char| c.is_ascii_alphabetic() || c == '_';
    let Some(name) = name_of(line, &['=']) else {
        return "is not of the form NAME=value";
    };
    if !name.starts_with(begins_well) {
        "has a name that cannot be read: a name begins with a letter or an underscore"
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
        single ^= c == '\'' && !escaped;
        escaped = c == '\\' && !single && !escaped;
    }
    out
}

fn is_assignment(line: &str) -> bool {
    name_of(line, &['=']).is_some()
}

/// Returns what stands before the first of these signs, if it has the characters of a name.
fn name_of<'a>(line: &'a str, signs: &[char]) -> Option<&'a str> {
    let line = line.trim_start();
    let line = line.strip_prefix("export ").unwrap_or(line);
    let (name, _) = line.split_once(signs)?;
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.');
    Some(name.trim()).filter(|name| !name.is_empty() && name.chars().all(is_of_name))
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
        let contents = parse(text, ".env");
        let variables = contents.variables.into_iter();
        let variables = variables.map(|(name, value)| format!("{name}={value}"));
        let problems = contents.problems.iter().map(ToString::to_string);
        (variables.collect(), problems.collect())
    }

    #[test]
    fn a_good_file_is_read_whole() {
        let comments = "# a comment\n\nA=1\nexport B='two words'\nC=\"x # y\" # z\nD=\n E = 5\r\n";
        let dollars = "A=pa$$word$HOME\nB=\"x${A}y\"\nC='p$A'\nD=postgres://u:a\\$b@h/d\n";
        let cases: [(&str, &[&str]); 3] = [
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
            ("A=\"one\ntwo\"\nB=2\n", &["A=one\ntwo", "B=2"]),
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
        let expected = [
            ".env:2: is not of the form NAME=value",
            ".env:3: opens a quote that is never closed",
            ".env:5: has a value that cannot be read: put it in single quotes",
            ".env:6: sets A a second time",
            ".env:7: has a control character in the value of E",
        ];
        assert_eq!(problems, expected);
    }

    #[test]
    fn a_line_that_cannot_be_read_has_a_name_and_no_value() {
        let text = "1X=2\nA=sk-ant abc\nB: sk-ant\nexport C=\"open\nno: assignment=1\n";
        let contents = parse(text, ".env");
        assert_eq!(contents.variables, []);
        assert_eq!(contents.unread, ["1X", "A", "B", "C", "no"]);
        let named = "has a name that cannot be read: a name begins with a letter or an underscore";
        assert_eq!(contents.problems[0].detail, named);
    }

    #[test]
    fn a_byte_order_mark_is_named_and_hides_nothing() {
        let (variables, problems) = read("\u{feff}KEY=1\n");
        assert_eq!(variables, ["KEY=1"]);
        assert_eq!(problems.len(), 1);
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

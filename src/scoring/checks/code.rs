//! Checks code blocks with the parser of their language. A block that parses raises reliability a
//! little; a block that does not parse is wrong. A snippet that is not a complete text of its
//! language is never judged broken: an ellipsis, a diff, a template, a session, or pseudo-code.

use std::sync::LazyLock;

use regex::Regex;
use saphyr_parser::Parser as Yaml;
use sqlparser::dialect::{
    Dialect, GenericDialect, MsSqlDialect, MySqlDialect, PostgreSqlDialect, SQLiteDialect,
};

use super::grammar::{Grammar, MAX_CODE, Parse, parse};
use crate::text::{Block, pattern};

/// The verdict on a code block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::scoring) enum Soundness {
    /// Its language's parser accepts it.
    Parsed,
    /// Its language's parser rejects it.
    Broken,
    /// No verdict: there is no parser, or the block is a fragment, program output or empty.
    Unknown,
    /// No verdict, and it used up the steps for a block.
    Costly,
}

/// The most tokens and bracket levels of SQL that is parsed. Each token can be a level of the tree,
/// which is built and dropped by recursion. The work can double with each bracket.
const MAX_SQL: (usize, usize) = (300, 6);
/// The most events of a YAML text.
const MAX_EVENTS: usize = 20_000;

/// Checks a block by its language. An unnamed language is guessed, and a guessed block can be
/// broken only as Python.
pub(in crate::scoring) fn soundness(block: &Block) -> Soundness {
    let code = block.code.trim_end();
    if code.trim().is_empty() || code.len() > MAX_CODE {
        return Soundness::Unknown;
    }
    let found = match block.language.as_str() {
        "" | "text" | "txt" | "plaintext" | "code" => guessed(code),
        "output" | "md" | "markdown" | "diff" | "patch" | "latex" | "tex" | "pseudo"
        | "pseudocode" | "html" | "xml" | "svg" | "log" | "csv" | "http" | "jsonc" | "json5"
        | "pycon" => Soundness::Unknown,
        "json" | "jsonl" | "ndjson" => json(code),
        "yaml" | "yml" => yaml(code),
        "toml" => or_broken(toml::from_str::<toml::Table>(code).is_ok()),
        "sql" | "mysql" | "postgresql" | "postgres" | "psql" | "sqlite" | "tsql" | "plsql" => {
            sql(code)
        }
        // The available shell grammars crash on hostile text or recurse without a bound.
        "bash" | "sh" | "shell" | "zsh" | "console" | "shell-session" | "shellsession"
        | "terminal" => Soundness::Unknown,
        "python" | "py" | "python3" | "ipython" => python(code),
        language => match grammar_of(language) {
            Some(grammar) => of(parse(grammar, code)),
            None => Soundness::Unknown,
        },
    };
    if found == Soundness::Broken && is_fragment(code) {
        Soundness::Unknown
    } else {
        found
    }
}

fn grammar_of(language: &str) -> Option<Grammar> {
    Some(match language {
        "c" | "h" => Grammar::C,
        "cpp" | "c++" | "cc" | "cxx" | "hpp" => Grammar::Cpp,
        "go" | "golang" => Grammar::Go,
        "java" => Grammar::Java,
        "rust" | "rs" => Grammar::Rust,
        "javascript" | "js" | "jsx" | "tsx" | "mjs" | "cjs" | "node" => Grammar::Tsx,
        "typescript" | "ts" | "mts" => Grammar::TypeScript,
        _ => return None,
    })
}

fn of(parsed: Parse) -> Soundness {
    match parsed {
        Parse::Whole => Soundness::Parsed,
        Parse::Faulty => Soundness::Broken,
        Parse::Open => Soundness::Unknown,
        Parse::Costly => Soundness::Costly,
    }
}

fn or_broken(parsed: bool) -> Soundness {
    if parsed {
        Soundness::Parsed
    } else {
        Soundness::Broken
    }
}

/// True if a snippet shows that it is not a complete text of its language.
fn is_fragment(code: &str) -> bool {
    static SIGN: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"(?im)\.\.\.|…|\{\{|\{%|<%|^(?:@@ |diff --git |--- |\+\+\+ )|<your[^>\n]*>|<[a-z]+(?:[ _-][a-z0-9]+)+>|<[A-Z_]{2,}>|\[your[^\]\n]*\]|^\s*(?://|#|--|/\*)\s*(?:pseudo-?code|rest of|other|existing|your code|same as|omitted|unchanged)|^(?:In|Out)\s?\[\d+\]:|^\s*>>>",
        )
    });
    let lines: Vec<&str> = code
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    let changed = |sign: char| lines.iter().filter(|line| line.starts_with(sign)).count();
    let diff =
        changed('+') > 0 && changed('-') > 0 && 2 * (changed('+') + changed('-')) >= lines.len();
    diff || SIGN.is_match(code)
}

fn json(code: &str) -> Soundness {
    let whole = |text: &str| serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
    let lines = || {
        code.lines()
            .filter(|line| !line.trim().is_empty())
            .all(whole)
    };
    if whole(code) || lines() {
        return Soundness::Parsed;
    }
    // Members without their braces, or comments: an excerpt of a file, or a relaxed kind of JSON.
    let part = code.trim_end().trim_end_matches(',');
    if whole(&format!("{{{part}}}"))
        || whole(&format!("[{part}]"))
        || code.contains("//")
        || code.contains("/*")
    {
        return Soundness::Unknown;
    }
    Soundness::Broken
}

/// Reads YAML as a stream of events. No tree is built, and references are not followed.
fn yaml(code: &str) -> Soundness {
    // A tab in the indentation may come from the display, and not from the text.
    if code.contains('\t') {
        return Soundness::Unknown;
    }
    let mut events = Yaml::new_from_str(code).take(MAX_EVENTS);
    or_broken(events.all(|event| event.is_ok()))
}

fn sql(code: &str) -> Soundness {
    static PROCEDURAL: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"(?im)\b(?:delimiter|declare|begin|procedure|function|trigger|language|execute|pragma|explain|vacuum|grant|go)\b|^\s*[.\\]\w",
        )
    });
    static STATEMENT: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"(?is)^\s*(?:--[^\n]*\n\s*)*(?:select|insert|update|delete|create (?:table|index|view)|with)\b",
        )
    });
    let depth = code.chars().scan(0usize, |depth, c| {
        match c {
            '(' | '[' => *depth += 1,
            ')' | ']' => *depth = depth.saturating_sub(1),
            _ => {}
        }
        Some(*depth)
    });
    let pieces = code.split(|c: char| !c.is_alphanumeric()).count();
    if pieces > MAX_SQL.0 || depth.max().unwrap_or(0) > MAX_SQL.1 || PROCEDURAL.is_match(code) {
        return Soundness::Unknown;
    }
    let dialects: [&dyn Dialect; 5] = [
        &GenericDialect {},
        &PostgreSqlDialect {},
        &MySqlDialect {},
        &SQLiteDialect {},
        &MsSqlDialect {},
    ];
    let parsed = dialects.iter().any(|dialect| {
        sqlparser::parser::Parser::parse_sql(*dialect, code)
            .is_ok_and(|statements| !statements.is_empty())
    });
    match (parsed, STATEMENT.is_match(code)) {
        (true, _) => Soundness::Parsed,
        (false, true) => Soundness::Broken,
        // A clause, or an unknown dialect.
        (false, false) => Soundness::Unknown,
    }
}

/// Checks Python without the commands of a notebook and without the common indentation.
fn python(code: &str) -> Soundness {
    static MAGIC: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?m)^[ \t]*[%!][A-Za-z][^\n]*$"));
    let code = MAGIC.replace_all(code, "");
    let indent = |line: &str| line.len() - line.trim_start_matches([' ', '\t']).len();
    let full = code.lines().filter(|line| !line.trim().is_empty());
    let margin = full.map(indent).min().unwrap_or(0);
    let mut moved = String::with_capacity(code.len());
    for line in code.lines() {
        moved.push_str(line.get(margin..).unwrap_or_default());
        moved.push('\n');
    }
    of(parse(Grammar::Python, &moved))
}

/// Checks a block without a language. It counts if it parses as the language that it looks like. It
/// can be broken only if it is surely Python.
fn guessed(code: &str) -> Soundness {
    static FIRM: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"(?m)^\s*(?:def \w+\([^\n]*\)[^\n]*:|class \w+[^\n]*:|from [\w.]+ import \w)\s*|^\s*elif .+:\s*$",
        )
    });
    static OTHERS: LazyLock<[(Regex, Grammar); 6]> = LazyLock::new(|| {
        [
            (r"(?m)^\s*#include\s*[<\x22]", Grammar::Cpp),
            (r"(?m)^\s*(?:pub(?:\([a-z]+\))? )?fn \w+|^\s*let (?:mut )?\w+(?:: [\w<>&]+)? = ", Grammar::Rust),
            (r"(?m)^\s*package \w+\s*$|^\s*func (?:\(\w+ \*?\w+\) )?\w+\(", Grammar::Go),
            (r"(?m)^\s*public (?:static |final |abstract )*(?:class|interface|void|int|String)\b", Grammar::Java),
            (r"(?m)^\s*(?:export |async )*function\*? ?\w*\(|^\s*(?:const|let|var) [\w{\[]|=> [{(]", Grammar::Tsx),
            (
                r"(?m)^\s*(?:for|while|if|with|try|import|print|return|async def)\b[^\n;{]*(?::\s*$|\)\s*$| \w+\s*$)",
                Grammar::Python,
            ),
        ]
        .map(|(source, grammar)| (pattern(source), grammar))
    });
    if FIRM.is_match(code) && !code.contains(['{', ';']) {
        return python(code);
    }
    if code.trim_start().starts_with(['{', '[']) && json(code) == Soundness::Parsed {
        return Soundness::Parsed;
    }
    let parses = |(sign, grammar): &(Regex, Grammar)| {
        sign.is_match(code)
            && match grammar {
                Grammar::Python => python(code) == Soundness::Parsed,
                grammar => parse(*grammar, code) == Parse::Whole,
            }
    };
    if OTHERS.iter().any(parses) {
        Soundness::Parsed
    } else {
        Soundness::Unknown
    }
}

#[cfg(all(test, feature = "grammars"))]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn found(language: &str, code: &str) -> Soundness {
        soundness(&Block {
            language: language.into(),
            code: code.into(),
        })
    }

    #[test]
    fn what_its_language_takes_is_parsed() {
        for (language, code) in [
            ("json", r#"{"a": [1, 2]}"#),
            ("json", "{\"a\": 1}\n{\"a\": 2}\n"),
            (
                "yaml",
                "services:\n  web:\n    image: nginx\n    ports: [\"80:80\"]\n",
            ),
            (
                "yaml",
                "a: 1\n---\nb: *later\n".replace("*later", "2").as_str(),
            ),
            ("toml", "[package]\nname = \"x\"\n"),
            (
                "sql",
                "SELECT name, count(*) FROM t WHERE id = $1 GROUP BY name;",
            ),
            (
                "sql",
                "INSERT INTO t (a, b) VALUES (1, 'x') ON CONFLICT DO NOTHING",
            ),
            (
                "python",
                "    total = 0\n    for n in items:\n        total += n\n    return total\n",
            ),
            ("python", "%pip install numpy\nimport numpy as np\n"),
            ("js", "items.map((x) => ({ ...x, done: true }))"),
            ("", "def f(x):\n    return x + 1\n"),
            ("", "fn main() { println!(\"hi\"); }"),
            ("text", "{\"a\": 1}"),
        ] {
            assert_eq!(
                found(language, code),
                Soundness::Parsed,
                "{language}: {code}"
            );
        }
    }

    #[test]
    fn what_its_language_refuses_is_broken() {
        for (language, code) in [
            ("json", r#"{"a": [1, 2}"#),
            ("json", "{'a': 1}"),
            ("yaml", "a: [1, 2\nb: 3\n"),
            ("yaml", "key: value\n other: - x\n"),
            ("toml", "name = x y\n"),
            ("sql", "SELECT name, FROM t WHERE"),
            ("python", "def f(x)\n    return x\n"),
            ("", "def f(x):\n    return (x + 1\n"),
            ("rust", "fn f( {}"),
        ] {
            assert_eq!(
                found(language, code),
                Soundness::Broken,
                "{language}: {code}"
            );
        }
    }

    #[test]
    fn fragments_and_unknown_languages_are_left_alone() {
        for (language, code) in [
            ("json", "{ \"a\": 1, ... }"),
            ("json", "\"scripts\": { \"test\": \"x\" },"),
            ("json", "{ \"a\": 1, // why\n}"),
            ("python", "def f(x):\n    ...rest as before...\n  more"),
            ("python", "def f(:\n    # existing code\n"),
            ("python", ">>> f(2)\n4\n"),
            ("yaml", "image: {{ .Values.image }}\n  x: {% if a %}\n"),
            ("sql", "WHERE id IN (1, 2"),
            (
                "sql",
                "CREATE FUNCTION f() RETURNS int AS $$ BEGIN RETURN 1; END $$ LANGUAGE plpgsql",
            ),
            ("bash", "docker run <image> <command> \"(\""),
            ("bash", "echo \"hi"),
            ("console", "$ ls -l\ntotal 0\n$ df -h | sort\nFilesystem  ("),
            ("rust", "-let x = 1;\n+let x = 2;\n }"),
            ("kotlin", "fun f() { println(1) }"),
            ("text", "a ( b"),
            ("output", "error: ( {"),
            ("", "Step 1 (do it"),
            ("diff", "- a(\n+ b"),
            ("json", ""),
        ] {
            assert_eq!(
                found(language, code),
                Soundness::Unknown,
                "{language}: {code}"
            );
        }
    }

    #[test]
    fn hostile_blocks_end_soon() {
        for language in [
            "json", "yaml", "toml", "sql", "bash", "python", "", "kotlin",
        ] {
            for piece in [
                "(",
                "[",
                "{",
                "SELECT (",
                "a: &a [*a, *a]\n",
                "- ",
                "? ",
                "not ",
                "CASE WHEN ",
                "a = [",
                "'",
                "|\n ",
            ] {
                found(language, &piece.repeat(MAX_CODE / piece.len()));
                found(language, &format!("SELECT {}", piece.repeat(6)));
            }
        }
        for piece in [
            "+1",
            " not",
            " - -",
            " and a",
            ".a",
            "::a",
            " union select 1",
            " join a",
            "->a",
            " is not",
            "||b",
        ] {
            found("sql", &format!("SELECT 1{}", piece.repeat(290)));
            found("sql", &format!("SELECT 1{}", piece.repeat(2_000)));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn any_block_gets_a_verdict(
            language in prop::sample::select(vec![
                "", "json", "yaml", "toml", "sql", "bash", "python", "go", "ts", "rust", "c", "cpp", "java", "x"
            ]),
            code in "(?s).{0,160}",
            like in "(SELECT|a|1|[(){}\\[\\]:,'\"&*|>-]|\\n| |\t){0,120}",
        ) {
            found(language, &code);
            prop_assert_eq!(found(language, &like), found(language, &like));
        }
    }
}

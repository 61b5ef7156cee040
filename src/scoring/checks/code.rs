//! Checks code blocks with the parser of their language. A block that parses raises reliability a
//! little; a block that does not parse is wrong. A snippet that is not a complete text of its
//! language is never judged broken: an ellipsis, a diff, a template, a session, or pseudo-code. Nor is
//! C or C++, because a macro may explain the error.

use std::sync::LazyLock;

use regex::Regex;
use saphyr_parser::Parser as Yaml;

use super::soundness::Soundness;
#[cfg(feature = "grammars")]
use super::syntax_tree::parse;
use crate::text::{Block, pattern};

/// The most bytes of a block that is parsed.
const MAX_CODE: usize = 8_000;
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
        // The available shell grammars crash on hostile text or recurse without a bound.
        "bash" | "sh" | "shell" | "zsh" | "console" | "shell-session" | "shellsession"
        | "terminal" => Soundness::Unknown,
        language => parse(language, code),
    };
    if found == Soundness::Broken && is_fragment(code) {
        Soundness::Unknown
    } else {
        found
    }
}

#[cfg(not(feature = "grammars"))]
fn parse(_language: &str, _code: &str) -> Soundness {
    Soundness::Unknown
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
            r"(?im)\.\.\.|…|^[ \t]*[%!][a-z]|\{\{|\{%|<%|^(?:@@ |diff --git |--- |\+\+\+ )|<your[^>\n]*>|<[a-z]+(?:[ _-][a-z0-9]+)+>|<[A-Z_]{2,}>|\[your[^\]\n]*\]|^\s*(?://|#|--|/\*)\s*(?:pseudo-?code|rest of|other|existing|your code|same as|omitted|unchanged)|^(?:In|Out)\s?\[\d+\]:|^\s*>>>",
        )
    });
    SIGN.is_match(code)
}

fn json(code: &str) -> Soundness {
    let whole = |text: &str| serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
    let mut lines = code.lines().filter(|line| !line.trim().is_empty());
    if whole(code) || lines.all(whole) {
        return Soundness::Parsed;
    }
    // Members without their braces, or comments: an excerpt of a file, or a relaxed kind of JSON.
    let part = code.trim_end().trim_end_matches(',');
    let is_part = whole(&format!("{{{part}}}")) || whole(&format!("[{part}]"));
    if is_part || code.contains("//") || code.contains("/*") {
        return Soundness::Unknown;
    }
    Soundness::Broken
}

/// Reads YAML as a stream of events. No tree is built, and references are not followed.
fn yaml(code: &str) -> Soundness {
    let mut events = Yaml::new_from_str(code).take(MAX_EVENTS);
    or_broken(events.all(|event| event.is_ok()))
}

/// Checks a block without a language. It counts if it parses as the language that it looks like. It
/// can be broken only if it is surely Python.
fn guessed(code: &str) -> Soundness {
    static PYTHON: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"(?m)^\s*(?:def \w+\([^\n]*\)[^\n]*:|class \w+[^\n]*:|from [\w.]+ import \w)\s*|^\s*elif .+:\s*$",
        )
    });
    static OTHERS: LazyLock<[(&str, Regex); 6]> = LazyLock::new(|| {
        [
            ("cpp", r"(?m)^\s*#include\s*[<\x22]"),
            ("rust", r"(?m)^\s*(?:pub(?:\([a-z]+\))? )?fn \w+|^\s*let (?:mut )?\w+(?:: [\w<>&]+)? = "),
            ("go", r"(?m)^\s*package \w+\s*$|^\s*func (?:\(\w+ \*?\w+\) )?\w+\("),
            ("java", r"(?m)^\s*public (?:static |final |abstract )*(?:class|interface|void|int|String)\b"),
            ("tsx", r"(?m)^\s*(?:export |async )*function\*? ?\w*\(|^\s*(?:const|let|var) [\w{\[]|=> [{(]"),
            (
                "python",
                r"(?m)^\s*(?:for|while|if|with|try|import|print|return|async def)\b[^\n;{]*(?::\s*$|\)\s*$| \w+\s*$)",
            ),
        ]
        .map(|(language, source)| (language, pattern(source)))
    });
    if PYTHON.is_match(code) && !code.contains(['{', ';']) {
        return parse("python", code);
    }
    let is_json = code.trim_start().starts_with(['{', '[']) && json(code) == Soundness::Parsed;
    let parses = |(language, sign): &(&str, Regex)| {
        sign.is_match(code) && parse(language, code) == Soundness::Parsed
    };
    if is_json || OTHERS.iter().any(parses) {
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

    fn all_are(expected: Soundness, blocks: &[(&str, &str)]) {
        for (language, code) in blocks {
            assert_eq!(found(language, code), expected, "{language}: {code}");
        }
    }

    #[test]
    fn what_its_language_takes_is_parsed() {
        let long =
            "def f(x):\n    total = [n * 2 for n in x if n > 3]\n    return total\n\n".repeat(90);
        all_are(
            Soundness::Parsed,
            &[
                ("json", r#"{"a": [1, 2]}"#),
                ("json", "{\"a\": 1}\n{\"a\": 2}\n"),
                (
                    "yaml",
                    "web:\n  image: nginx\n  ports: [\"80:80\"]\n---\nb: 2\n",
                ),
                ("toml", "[package]\nname = \"x\"\n"),
                (
                    "python",
                    "    total = 0\n    for n in items:\n        total += n\n",
                ),
                ("python", &long),
                ("js", "items.map((x) => ({ ...x, done: true }))"),
                ("jsx", "const App = () => <p className=\"a\">{name}</p>;"),
                ("js", "method: 'POST',\nheaders: { accept: '*/*' }"),
                ("ts", "interface Row { id: number; name?: string }"),
                ("c", "for (int i = 0; i < n; i++) sum += a[i];"),
                (
                    "cpp",
                    "template <typename T> T twice(T x) { return x + x; }",
                ),
                ("go", "if err := run(); err != nil {\n\treturn err\n}"),
                ("java", "public int size() { return items.size(); }"),
                (
                    "rust",
                    "let total: u32 = items.iter().map(|i| i.price).sum();",
                ),
                ("rust", "Some(x) if x > 3 => x,\n_ => 0,"),
                ("", "def f(x):\n    return x + 1\n"),
                ("", "fn main() { println!(\"hi\"); }"),
                ("text", "{\"a\": 1}"),
            ],
        );
    }

    #[test]
    fn what_its_language_refuses_is_broken() {
        all_are(
            Soundness::Broken,
            &[
                ("json", r#"{"a": [1, 2}"#),
                ("json", "{'a': 1}"),
                ("yaml", "a: [1, 2\nb: 3\n"),
                ("toml", "name = x y\n"),
                ("python", "def f(x)\n    return x\n"),
                ("", "def f(x):\n    return (x + 1\n"),
                ("go", "func f( { return }"),
                ("java", "public class A { void f() { int x = ; } }"),
                ("rust", "fn f( {}"),
                ("js", "function f( { return 1 }"),
                ("ts", "const x: = 3;"),
            ],
        );
    }

    #[test]
    fn fragments_and_unknown_languages_are_left_alone() {
        all_are(
            Soundness::Unknown,
            &[
                ("json", "{ \"a\": 1, ... }"),
                ("json", "\"scripts\": { \"test\": \"x\" },"),
                ("json", "{ \"a\": 1, // why\n}"),
                ("json", ""),
                ("python", "def f(:\n    # existing code\n"),
                ("python", ">>> f(2)\n4\n"),
                ("yaml", "image: {{ .Values.image }}\n  x: {% if a %}\n"),
                ("sql", "WHERE id IN (1, 2"),
                ("bash", "echo \"hi"),
                ("python", "%pip install numpy\nimport numpy as np\n"),
                ("c", "FOREACH(item, list) BEGIN use(item); END_FOREACH"),
                ("kotlin", "fun f() { println(1) }"),
                ("text", "a ( b"),
                ("diff", "- a(\n+ b"),
            ],
        );
    }

    #[test]
    fn hostile_blocks_end_soon_and_do_not_parse() {
        let languages = "json yaml toml python tsx";
        let pieces = [
            "(",
            "[",
            "{",
            "<",
            "a(",
            "\"",
            "`",
            "'",
            "if ",
            "*",
            "\\",
            ":",
            "=>",
            "é(",
            "a: &a [*a, *a]\n",
            "- ",
            "? ",
            "a = [",
            "|\n ",
        ];
        for language in languages.split(' ').chain([""]) {
            for piece in pieces {
                let found = found(language, &piece.repeat(MAX_CODE / piece.len()));
                // To YAML most signs are text, and quotes in pairs are strings.
                let may_parse = language == "yaml" || "\"`'".contains(piece);
                assert!(
                    may_parse || found != Soundness::Parsed,
                    "{language}: {piece}"
                );
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn no_excerpt_is_broken(
            language in "(|json|yaml|toml|sql|bash|python|go|ts|rust|c|cpp|java|x)",
            code in "(?s).{0,160}",
            like in "(SELECT|a|1|[(){}<>\\[\\]:;=,'\"`$&*|>.-]|\\n| |\t){0,120}",
        ) {
            for code in [code, like] {
                let excerpt = format!("{code}\n...");
                prop_assert_ne!(found(&language, &excerpt), Soundness::Broken);
            }
        }
    }
}

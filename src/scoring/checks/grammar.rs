//! The parsers of programming languages: tree-sitter, one grammar per language, with bounded work.
//!
//! The languages are those that people ask language models about most. JavaScript is parsed by
//! TypeScript's grammars, which include it. The bound is a number of steps and not a time, so that
//! the verdict on a text is the same on any machine.

use std::ops::ControlFlow;

use tree_sitter::{ParseOptions, Parser, Tree};

use crate::text::clip;

/// A language with a grammar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Grammar {
    C,
    Cpp,
    Go,
    Java,
    Python,
    Rust,
    /// TypeScript with and without XML-like elements, and JavaScript.
    Tsx,
    TypeScript,
}

/// The most bytes of a block that is parsed.
pub(super) const MAX_CODE: usize = 8_000;
/// The parser steps, in hundreds, for a text in all its surroundings: the base, and the amount per
/// byte of the text.
const STEPS: (usize, f64) = (30, 0.08);

/// A parser's verdict on a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Parse {
    Whole,
    /// Something in it is not of the language.
    Faulty,
    /// Not decided.
    Open,
    /// Not decided within the steps.
    Costly,
}

impl Grammar {
    fn language(self) -> tree_sitter::Language {
        match self {
            Grammar::C => tree_sitter_c::LANGUAGE,
            Grammar::Cpp => tree_sitter_cpp::LANGUAGE,
            Grammar::Go => tree_sitter_go::LANGUAGE,
            Grammar::Java => tree_sitter_java::LANGUAGE,
            Grammar::Python => tree_sitter_python::LANGUAGE,
            Grammar::Rust => tree_sitter_rust::LANGUAGE,
            Grammar::Tsx => tree_sitter_typescript::LANGUAGE_TSX,
            Grammar::TypeScript => tree_sitter_typescript::LANGUAGE_TYPESCRIPT,
        }
        .into()
    }

    /// Returns the text before and after a snippet that make it a whole file. The snippet may be a
    /// function's body, a class's members or a value.
    fn surroundings(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Grammar::Python => &[],
            Grammar::C => &[
                ("void f(void) {\n", "\n}\n"),
                ("struct s {\n", "\n};\n"),
                ("", ";\n"),
            ],
            Grammar::Cpp => &[
                ("void f() {\n", "\n}\n"),
                ("class C {\n", "\n};\n"),
                ("", ";\n"),
            ],
            Grammar::Go => &[("package p\n", "\n"), ("package p\nfunc f() {\n", "\n}\n")],
            Grammar::Java => &[
                ("class C {\n", "\n}\n"),
                ("class C { void f() {\n", "\n}}\n"),
            ],
            Grammar::Rust => &[
                ("fn f() {\n", "\n}\n"),
                ("impl C {\n", "\n}\n"),
                ("struct C {\n", "\n}\n"),
                ("fn f() { match x {\n", "\n}}\n"),
            ],
            Grammar::Tsx | Grammar::TypeScript => &[
                ("async function f() {\n", "\n}\n"),
                ("({\n", "\n})\n"),
                ("class C {\n", "\n}\n"),
                ("(\n", "\n)\n"),
            ],
        }
    }
}

/// Parses a snippet as a file of the language, or as a part of one.
pub(super) fn parse(grammar: Grammar, code: &str) -> Parse {
    if code.len() > MAX_CODE || clip(code, MAX_CODE).is_empty() {
        return Parse::Open;
    }
    let mut left = STEPS.0 + (STEPS.1 * code.len() as f64) as usize;
    let mut verdict = parse_as_is(grammar, code, &mut left);
    for (before, after) in grammar.surroundings() {
        if verdict == Parse::Whole || left == 0 {
            break;
        }
        match parse_as_is(grammar, &format!("{before}{code}{after}"), &mut left) {
            Parse::Whole => verdict = Parse::Whole,
            Parse::Open => verdict = Parse::Open,
            Parse::Faulty | Parse::Costly => {}
        }
    }
    if left == 0 && verdict != Parse::Whole {
        Parse::Costly
    } else {
        verdict
    }
}

fn parse_as_is(grammar: Grammar, code: &str, left: &mut usize) -> Parse {
    let Some(tree) = tree(grammar, code, left) else {
        return Parse::Open;
    };
    if !tree.root_node().has_error() {
        return Parse::Whole;
    }
    // Macros are expanded before C is parsed, so an error of code with a macro may not be one.
    if matches!(grammar, Grammar::C | Grammar::Cpp) && names_macros(code) {
        Parse::Open
    } else {
        Parse::Faulty
    }
}

/// Returns the syntax tree; `None` if it takes more steps than are left.
fn tree(grammar: Grammar, code: &str, left: &mut usize) -> Option<Tree> {
    let mut parser = Parser::new();
    parser.set_language(&grammar.language()).ok()?;
    let mut count = |_: &tree_sitter::ParseState| {
        *left = left.saturating_sub(1);
        if *left == 0 {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    let options = ParseOptions::new().progress_callback(&mut count);
    parser.parse_with_options(
        &mut |at, _| code.as_bytes().get(at..).unwrap_or_default(),
        None,
        Some(options),
    )
}

/// True if a name in the code is in capitals.
fn names_macros(code: &str) -> bool {
    let in_capitals = |name: &str| {
        name.len() >= 3
            && name.starts_with(|c: char| c.is_ascii_uppercase())
            && name.chars().all(|c| !c.is_ascii_lowercase())
    };
    code.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .any(in_capitals)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ALL: [Grammar; 8] = [
        Grammar::C,
        Grammar::Cpp,
        Grammar::Go,
        Grammar::Java,
        Grammar::Python,
        Grammar::Rust,
        Grammar::Tsx,
        Grammar::TypeScript,
    ];

    #[test]
    fn files_and_parts_of_files_parse() {
        for (grammar, code) in [
            (Grammar::C, "for (int i = 0; i < n; i++) sum += a[i];"),
            (
                Grammar::Cpp,
                "template <typename T> T twice(T x) { return x + x; }",
            ),
            (
                Grammar::Cpp,
                "std::sort(v.begin(), v.end(), [](auto a, auto b) { return a > b; });",
            ),
            (
                Grammar::Go,
                "if err := run(); err != nil {\n\treturn err\n}",
            ),
            (Grammar::Java, "public int size() { return items.size(); }"),
            (Grammar::Java, "List<String> names = new ArrayList<>();"),
            (
                Grammar::Python,
                "def f(x: int) -> int:\n    return x if x > 0 else -x\n",
            ),
            (
                Grammar::Rust,
                "let total: u32 = items.iter().map(|i| i.price).sum();",
            ),
            (Grammar::Rust, "Some(x) if x > 3 => x,\n_ => 0,"),
            (
                Grammar::Tsx,
                "const App = () => <p className=\"a\">{name}</p>;",
            ),
            (Grammar::Tsx, "method: 'POST',\nheaders: { accept: '*/*' }"),
            (
                Grammar::TypeScript,
                "interface Row { id: number; name?: string }",
            ),
        ] {
            assert_eq!(parse(grammar, code), Parse::Whole, "{code}");
        }
    }

    #[test]
    fn faulty_code_is_found() {
        for (grammar, code) in [
            (Grammar::C, "int main( { return 0; }"),
            (Grammar::Cpp, "class A { int x; "),
            (Grammar::Go, "func f( { return }"),
            (Grammar::Java, "public class A { void f() { int x = ; } }"),
            (Grammar::Python, "def f(x:\n    return x\n"),
            (Grammar::Python, "for i in range(3) print(i"),
            (Grammar::Rust, "fn f() { let x = ; }"),
            (Grammar::Tsx, "function f( { return 1 }"),
            (Grammar::TypeScript, "const x: = 3;"),
        ] {
            assert_eq!(parse(grammar, code), Parse::Faulty, "{code}");
        }
        let long = "def f(x):\n    total = [n * 2 for n in x if n > 3]\n    return {'a': total, 'b': len(total)}\n\n"
            .repeat(60);
        assert_eq!(parse(Grammar::Python, &long), Parse::Whole);
        assert_eq!(
            parse(
                Grammar::Python,
                &long.replacen("return {", "return {{ = ", 1)
            ),
            Parse::Faulty
        );
        // Undecidable without the macro's text.
        assert_eq!(
            parse(
                Grammar::C,
                "FOREACH(item, list) BEGIN use(item); END_FOREACH"
            ),
            Parse::Open
        );
    }

    #[test]
    fn what_costs_too_much_stays_open() {
        for grammar in ALL {
            assert_eq!(parse(grammar, &"x".repeat(MAX_CODE + 1)), Parse::Open);
            for hostile in [
                "(", "{", "[", "<", "a(", "\"", "`", "'", "if ", "<<A\n", "$(", "*", "\\", ":",
                "=>", "é(",
            ] {
                parse(grammar, &hostile.repeat(MAX_CODE / hostile.len()));
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn no_text_makes_a_parser_panic(text in "\\PC{0,200}", code in "[a-z(){}<>\\[\\]\"'`$;:=,.\\n ]{0,200}") {
            for grammar in ALL {
                parse(grammar, &text);
                prop_assert_eq!(parse(grammar, &code), parse(grammar, &code));
            }
        }
    }
}

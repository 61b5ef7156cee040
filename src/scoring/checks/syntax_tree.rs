//! The parsers of programming languages: tree-sitter, one grammar per language, with bounded work.
//! The bound is a number of steps and not a time, so that the verdict on a text is the same on any
//! machine.

use std::ops::ControlFlow;

use tree_sitter::{ParseOptions, Parser, Tree};

use super::grammar::{Grammar, MAX_CODE, Parse};
use crate::text::clip;

/// The parser steps, in hundreds, for a text in all its surroundings: the base, and the amount per
/// byte of the text.
const STEPS: (usize, f64) = (30, 0.08);

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

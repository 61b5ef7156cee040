//! The parsers of programming languages: tree-sitter, one grammar per language, with bounded work.
//! The bound is a number of steps and not a time, so that the verdict on a text is the same on any
//! machine. The feature `grammars` builds them: they are a fifth of the program.
//!
//! The languages are those that people ask language models about most. JavaScript is parsed by
//! TypeScript's grammars, which include it.

use std::ops::ControlFlow;

use tree_sitter::{Language, ParseOptions, Parser, Tree};

use super::soundness::Soundness;

/// The parser steps, in hundreds, for a text in all its surroundings: the base, and the amount per
/// byte of the text.
const STEPS: (usize, f64) = (30, 0.08);

/// The surroundings that make a snippet a whole file, with "@" for the snippet. It may be a
/// function's body, a class's members or a value.
type Surroundings = &'static [&'static str];

const OF_C: Surroundings = &["void f(void) {\n@\n}\n", "struct s {\n@\n};\n", "@;\n"];
const OF_CPP: Surroundings = &["void f() {\n@\n}\n", "class C {\n@\n};\n", "@;\n"];
const OF_GO: Surroundings = &["package p\n@\n", "package p\nfunc f() {\n@\n}\n"];
const OF_JAVA: Surroundings = &["class C {\n@\n}\n", "class C { void f() {\n@\n}}\n"];
const OF_RUST: Surroundings = &[
    "fn f() {\n@\n}\n",
    "impl C {\n@\n}\n",
    "struct C {\n@\n}\n",
    "fn f() { match x {\n@\n}}\n",
];
const OF_PYTHON: Surroundings = &["if True:\n@\n"];
const OF_TYPESCRIPT: Surroundings = &[
    "async function f() {\n@\n}\n",
    "({\n@\n})\n",
    "class C {\n@\n}\n",
    "(\n@\n)\n",
];

fn grammar_of(language: &str) -> Option<(Language, Surroundings)> {
    let (language, surroundings) = match language {
        "python" | "py" | "python3" | "ipython" => (tree_sitter_python::LANGUAGE, OF_PYTHON),
        "c" | "h" => (tree_sitter_c::LANGUAGE, OF_C),
        "cpp" | "c++" | "cc" | "cxx" | "hpp" => (tree_sitter_cpp::LANGUAGE, OF_CPP),
        "go" | "golang" => (tree_sitter_go::LANGUAGE, OF_GO),
        "java" => (tree_sitter_java::LANGUAGE, OF_JAVA),
        "rust" | "rs" => (tree_sitter_rust::LANGUAGE, OF_RUST),
        "javascript" | "js" | "jsx" | "tsx" | "mjs" | "cjs" | "node" => {
            (tree_sitter_typescript::LANGUAGE_TSX, OF_TYPESCRIPT)
        }
        "typescript" | "ts" | "mts" => (tree_sitter_typescript::LANGUAGE_TYPESCRIPT, OF_TYPESCRIPT),
        _ => return None,
    };
    Some((language.into(), surroundings))
}

/// Parses a snippet as a file of the language, or as a part of one.
pub(super) fn parse(language: &str, code: &str) -> Soundness {
    let Some((grammar, surroundings)) = grammar_of(language) else {
        return Soundness::Unknown;
    };
    let mut left = STEPS.0 + (STEPS.1 * code.len() as f64) as usize;
    // Macros are expanded before C is parsed, so an error may not be one.
    let mut verdict = match surroundings {
        OF_C | OF_CPP => Soundness::Unknown,
        _ => Soundness::Broken,
    };
    for template in std::iter::once(&"@").chain(surroundings) {
        let (before, after) = template.split_once('@').unwrap_or_default();
        match tree(&grammar, &format!("{before}{code}{after}"), &mut left) {
            Some(tree) if !tree.root_node().has_error() => return Soundness::Parsed,
            Some(_) => {}
            None => verdict = Soundness::Unknown,
        }
        if left == 0 {
            return Soundness::Costly;
        }
    }
    verdict
}

/// Returns the syntax tree; `None` if it takes more steps than are left.
fn tree(grammar: &Language, code: &str, left: &mut usize) -> Option<Tree> {
    let mut parser = Parser::new();
    parser.set_language(grammar).ok()?;
    let mut count = |_: &tree_sitter::ParseState| {
        *left = left.saturating_sub(1);
        if *left == 0 {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    let options = ParseOptions::new().progress_callback(&mut count);
    let mut read = |at: usize, _| code.as_bytes().get(at..).unwrap_or_default();
    parser.parse_with_options(&mut read, None, Some(options))
}

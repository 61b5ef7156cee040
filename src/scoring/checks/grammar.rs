//! The languages whose code is parsed. The parsers are those of [`super::syntax_tree`], which the
//! feature `grammars` builds: they are a fifth of the program. Without it such code has no verdict.
//!
//! The languages are those that people ask language models about most. JavaScript is parsed by
//! TypeScript's grammars, which include it.

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
/// A parser's verdict on a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(
    not(feature = "grammars"),
    expect(dead_code, reason = "only the parsers give these verdicts")
)]
pub(super) enum Parse {
    Whole,
    /// Something in it is not of the language.
    Faulty,
    /// Not decided.
    Open,
    /// Not decided within the steps.
    Costly,
}

/// Parses a snippet as a file of the language, or as a part of one.
pub(super) fn parse(grammar: Grammar, code: &str) -> Parse {
    #[cfg(feature = "grammars")]
    return super::syntax_tree::parse(grammar, code);
    #[cfg(not(feature = "grammars"))]
    {
        let _ = (grammar, code);
        Parse::Open
    }
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

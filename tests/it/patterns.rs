//! Fixed patterns compile, so that a mistake in one is found here and not by the first user.

use std::path::Path;

use regex::Regex;

use crate::language::rust_files;

/// Files with patterns that come from data or are put together. Their own tests run each of them.
const PUT_TOGETHER: [&str; 5] = [
    "app/continuation.rs",
    "scoring/answer/dates.rs",
    "scoring/checks/code.rs",
    "scoring/checks/screening.rs",
    "tools/screen.rs",
];

#[test]
fn every_fixed_pattern_compiles() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let call = Regex::new(r"[^\w.]pattern\(\s*([^)\s])").unwrap();
    let literal = Regex::new(r##"^(?s)(?:r"(.*?)"|r#"(.*?)"#)"##).unwrap();
    let mut compiled = 0;
    for path in rust_files(&source) {
        let text = std::fs::read_to_string(&path).unwrap();
        let file = path.strip_prefix(&source).unwrap();
        if file == Path::new("text/patterns.rs") {
            continue;
        }
        for found in call.captures_iter(&text) {
            let argument = text.get(found.get(1).unwrap().start()..).unwrap();
            match literal.captures(argument) {
                Some(literal) => {
                    let pattern = literal.get(1).or(literal.get(2)).unwrap().as_str();
                    assert!(Regex::new(pattern).is_ok(), "{file:?}: {pattern}");
                    compiled += 1;
                }
                None => assert!(
                    PUT_TOGETHER.iter().any(|known| file == Path::new(known)),
                    "{file:?}: a pattern that is not one literal"
                ),
            }
        }
    }
    assert!(compiled > 10, "{compiled} patterns");
}

//! The routines that read text of models and users, for the table `cost` of `make bench` (time per
//! byte) and for the fuzzer.
//!
//! This file is part of three programs: the bench (`benches/cost.rs`), the fuzzer, and the
//! integration tests.

use conclave::actions::parser;
use conclave::committee::routines::Routine;
use conclave::domain::Clarification;
use conclave::llm::StreamReader;
use conclave::{app, config, http};
use conclave_dice::Expression;

#[path = "committee.rs"]
mod committee;

/// A routine with the largest input that it gets in the service.
pub struct Measured {
    #[allow(dead_code, reason = "the bench and the fuzzer show it")]
    pub name: &'static str,
    pub run: fn(&str),
    pub max_bytes: usize,
}

/// 16 bytes for each of 4,000 tokens, more than the output limit of any role in the shipped
/// configs.
const REPLY_BYTES: usize = 64_000;

/// A message has at most 32,000 characters, and a dice notation 200.
const MESSAGE_BYTES: usize = 32_000;

/// The largest body of a chat.
const BODY_BYTES: usize = 256 * 1024;

const OTHERS: &[(Routine, usize)] = &[
    (
        ("message: action", |text| drop(parser::read(text))),
        MESSAGE_BYTES,
    ),
    (
        ("message: dice", |text| drop(Expression::parse(text))),
        MESSAGE_BYTES,
    ),
    (("message: answer to a question", answer), MESSAGE_BYTES),
    (
        ("message: correction", |text| {
            drop(app::read_correction(text));
        }),
        MESSAGE_BYTES,
    ),
    (("body: chat", body), BODY_BYTES),
    (("body: chat, message", message), MESSAGE_BYTES),
    (("reply: event stream", stream), BODY_BYTES),
];

/// Returns every routine.
pub fn routines() -> Vec<Measured> {
    let written = committee::ROUTINES.iter().map(|(name, run)| {
        let max_bytes = if name.starts_with("request") || *name == "score: request" {
            MESSAGE_BYTES
        } else {
            REPLY_BYTES
        };
        Measured {
            name,
            run: *run,
            max_bytes,
        }
    });
    let others = OTHERS.iter().map(|((name, run), max_bytes)| Measured {
        name,
        run: *run,
        max_bytes: *max_bytes,
    });
    written.chain(others).collect()
}

fn answer(text: &str) {
    let options = ["Docker", "Kubernetes", "bare metal"].map(str::to_owned);
    if let Some(asked) = Clarification::new("Where does it run", &options) {
        drop(app::read_answer(&asked, text));
    }
}

fn body(text: &str) {
    drop(http::question(text.as_bytes()));
    drop(http::question(
        format!("{{\"attachments\": [{text}").as_bytes(),
    ));
}

fn message(text: &str) {
    let quoted: String = text.chars().flat_map(char::escape_default).collect();
    let body = format!(
        "{{\"source\":\"cli\",\"mode\":\"ask\",\"user\":{{\"id\":\"u\",\"name\":\"u\"}},\"context\":{{}},\"message\":\"{quoted}\"}}"
    );
    if let Ok(mut input) = http::question(body.as_bytes()) {
        text.clone_into(&mut input.message);
        drop(app::ChatRequest::parse(
            input,
            &config::Limits::default(),
            &[],
        ));
    }
}

fn stream(text: &str) {
    let mut reader = StreamReader::default();
    for piece in text.as_bytes().chunks(64) {
        if reader.read(piece).is_err() {
            return;
        }
    }
}

/// Runs a routine on text repeated to `bytes` bytes. The first byte of `data` selects the routine;
/// the rest is the text.
#[allow(dead_code, reason = "for the fuzzer and its replay")]
pub fn run_repeated(data: &[u8], bytes: usize) {
    let Some((routine, unit)) = chosen(data) else {
        return;
    };
    (routine.run)(&unit.repeat(bytes.min(routine.max_bytes) / unit.len()));
}

/// Returns the routine that the first byte selects, and the rest as text.
#[allow(dead_code, reason = "for the fuzzer and its replay")]
pub fn chosen(data: &[u8]) -> Option<(Measured, &str)> {
    let (first, rest) = data.split_first()?;
    let unit = std::str::from_utf8(rest)
        .ok()
        .filter(|unit| !unit.is_empty())?;
    let mut routines = routines();
    let at = usize::from(*first) % routines.len();
    Some((routines.swap_remove(at), unit))
}

/// The pieces from which inputs are built: the syntax of the formats that the routines read.
#[allow(dead_code, reason = "the bench makes its inputs of them")]
pub const FRAGMENTS: &[&str] = &[
    "a",
    "a ",
    "A",
    "1",
    "1 ",
    "9.",
    "1,",
    "-",
    "- ",
    "-1",
    "+",
    "* ",
    "*",
    "**",
    "_",
    "__",
    "`",
    "```",
    "```\n",
    "~~~\n",
    "#",
    "# ",
    "# h\n",
    "## TL;DR\n",
    "## Confidence\n",
    "Confidence: 1\n",
    "> ",
    ">",
    "\n",
    "\n\n",
    " ",
    "    ",
    "\t",
    "\r\n",
    "|",
    "|-",
    "| a | b |\n",
    "1. ",
    "1. Run it\n",
    "1) ",
    "- Run it\n",
    "Step 1: a\n",
    "**Plan**\n",
    "Plan:\n- ",
    "[",
    "]",
    "[a](",
    "![",
    "(",
    ")",
    "((",
    "<",
    "<a ",
    "<!--",
    "-->",
    "<?",
    "<think>",
    "</think>",
    "&",
    "&amp;",
    "&#x",
    "\\",
    "\\\"",
    "{",
    "}",
    "{\"a\":",
    "\"a\",",
    "\"",
    "'",
    "\"\"",
    "[1,",
    ",",
    ":",
    ";",
    "//",
    "/*",
    "\\u00",
    "null,",
    "=",
    "1=",
    "1+",
    "1=1\n",
    "2*3=6 ",
    "(1+",
    "1/",
    "x^",
    "\\frac{",
    "$",
    "$$",
    "%",
    "10%",
    "1e9",
    "1e",
    "kg ",
    "5 km ",
    "2026-01-01",
    "12:30 ",
    ".",
    "!",
    "?",
    "ä",
    "ß",
    "İ",
    "字",
    "。",
    "न",
    "\u{301}",
    "\u{200b}",
    "\u{202e}",
    "😀",
    "\u{feff}",
    "and ",
    "not ",
    "DISCARD ",
    "critic:",
    "critic:a ",
    "solver:u1 ",
    "is ",
    "A1 is wrong: ",
    "B",
    "b) ",
    "/roll ",
    "!r ",
    "1d6",
    "+1d6",
    "data: ",
    "data: a\n",
    "event: x\n",
    "\n\ndata:",
    "total O=1 M=2 P=3\n",
    "the answer is 4. ",
    "Ignore all previous instructions. ",
    "fn a(){",
    "if(",
];

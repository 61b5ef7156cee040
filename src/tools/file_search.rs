//! `file_search`: lists lines that match a regular expression, by ripgrep's libraries.

use std::io::{self, Read};
use std::ops::ControlFlow::{Break, Continue};
use std::time::Instant;

use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::sinks::Lossy;
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};
use serde_json::{Value, json};

use super::call::{Call, Role, Run, Spec, parameter};
use super::file_glob::{ROOT, invalid, root_exists};
use super::output::{Output, ToolError, bounded, listing, one_line};
use super::walk::{Found, out_of_time, walk};

/// Upper bound of matching lines.
const MAX_MATCHES: usize = 1_000;
/// Upper bound of the size of a searched file, in bytes.
const MAX_SEARCHED_BYTES: usize = 8 << 20;
/// Upper bound of the shown part of a line, in bytes.
const MAX_LINE_BYTES: usize = 400;
/// Upper bound of a compiled expression, in bytes.
const MAX_EXPRESSION_BYTES: usize = 1 << 20;

pub const SPEC: Spec = Spec {
    parameters: &[parameter("pattern", Role::Text), ROOT],
    is_mutating: false,
    check: root_exists,
    run: Run::Files(run),
};

/// Path, line number and text.
type Match = (String, u64, String);

fn run(call: &Call) -> Result<Output, ToolError> {
    let matcher = matcher(call.argument("pattern"))?;
    let mut searcher = SearcherBuilder::new()
        .line_number(true)
        .binary_detection(BinaryDetection::quit(0))
        .heap_limit(Some(MAX_SEARCHED_BYTES))
        .build();
    let (mut matches, mut searched) = (vec![], 0_usize);
    let notes = walk(call.workspace(), call.argument("root"), &mut |found| {
        searched += 1;
        match search(&mut searcher, &matcher, found, &mut matches) {
            Err(error) if error.kind() == io::ErrorKind::TimedOut => Break(out_of_time()),
            _ if matches.len() > MAX_MATCHES => {
                matches.truncate(MAX_MATCHES);
                Break(format!("stopped after {MAX_MATCHES} matches"))
            }
            Ok(()) => Continue(None),
            Err(error) if error.kind() == io::ErrorKind::FileTooLarge => Continue(Some(format!(
                "files above {MAX_SEARCHED_BYTES} bytes are left out"
            ))),
            Err(_) => Continue(Some("some files could not be read".to_owned())),
        }
    })?;
    let line = |(path, line, text): &Match| format!("{}:{line}: {text}", one_line(path));
    let text = listing(matches.iter().map(line), "No matches.", &notes);
    let row = |(path, line, text): &Match| json!({ "path": path, "line": line, "text": text });
    let rows: Vec<Value> = matches.iter().map(row).collect();
    let value =
        json!({ "count": rows.len(), "searched": searched, "matches": rows, "notes": notes });
    Ok(Output::new(text, value))
}

fn matcher(pattern: &str) -> Result<RegexMatcher, ToolError> {
    let built = RegexMatcherBuilder::new()
        .line_terminator(Some(b'\n'))
        .size_limit(MAX_EXPRESSION_BYTES)
        .build(pattern);
    built.map_err(|error| invalid(pattern, &error.to_string()))
}

fn search(
    searcher: &mut Searcher,
    matcher: &RegexMatcher,
    found: &Found<'_>,
    matches: &mut Vec<Match>,
) -> io::Result<()> {
    let file = found.folder.open_file(found.name)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Ok(());
    }
    if metadata.len() > MAX_SEARCHED_BYTES as u64 {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    let reader = Timed {
        file: file.take(MAX_SEARCHED_BYTES as u64),
        deadline: found.deadline,
    };
    let sink = Lossy(|line, text| {
        let text = one_line(&text.trim_end().replace('\t', "    "));
        let text = bounded(text, MAX_LINE_BYTES).replace('\n', " ");
        matches.push((found.path.to_owned(), line, text));
        Ok(matches.len() <= MAX_MATCHES)
    });
    searcher.search_reader(matcher, reader, sink)
}

/// A reader that fails when time is up, so that a slow expression stops within one buffer.
struct Timed<R> {
    file: R,
    deadline: Instant,
}

impl<R: Read> Read for Timed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if Instant::now() >= self.deadline {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.file.read(buffer)
    }
}

//! `file_search`: lists lines that match a regular expression, by ripgrep's libraries.

use std::io::{self, Read};
use std::time::Instant;

use cap_std::fs::File;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::sinks::Lossy;
use grep_searcher::{BinaryDetection, SearcherBuilder};

use super::call::{Call, Role, Run, Spec, parameter};
use super::file_glob::{ROOT, invalid, root_exists};
use super::output::{Output, ToolError, bounded, listing};
use super::walk::{MAX_TIME, files, out_of_time};
use super::workspace::Workspace;

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

fn run(call: &Call) -> Result<Output, ToolError> {
    let matcher = matcher(call.argument("pattern"))?;
    let mut searcher = SearcherBuilder::new()
        .line_number(true)
        .binary_detection(BinaryDetection::quit(0))
        .heap_limit(Some(MAX_SEARCHED_BYTES))
        .build();
    let until = Instant::now() + MAX_TIME;
    let (paths, mut notes) = files(call.workspace(), call.argument("root"), until)?;
    let mut matches = vec![];
    for path in &paths {
        let ended = reader(call.workspace(), path, until).and_then(|reader| {
            let sink = Lossy(|line, text| {
                let text = text.trim_end().replace('\t', "    ");
                let text = bounded(text, MAX_LINE_BYTES).replace('\n', " ");
                matches.push(format!("{path}:{line}: {text}"));
                Ok(matches.len() <= MAX_MATCHES)
            });
            searcher.search_reader(&matcher, reader, sink)
        });
        let is_over = matches.len() > MAX_MATCHES || Instant::now() >= until;
        notes.insert(match ended.map_err(|error| error.kind()) {
            _ if matches.len() > MAX_MATCHES => format!("stopped after {MAX_MATCHES} matches"),
            _ if is_over => out_of_time(),
            Ok(()) => continue,
            Err(io::ErrorKind::FileTooLarge) => {
                format!("files above {MAX_SEARCHED_BYTES} bytes are left out")
            }
            Err(_) => "some files could not be read".to_owned(),
        });
        if is_over {
            break;
        }
    }
    matches.truncate(MAX_MATCHES);
    Ok(listing(matches, "No matches.", &notes))
}

fn matcher(pattern: &str) -> Result<RegexMatcher, ToolError> {
    let built = RegexMatcherBuilder::new()
        .line_terminator(Some(b'\n'))
        .size_limit(MAX_EXPRESSION_BYTES)
        .build(pattern);
    built.map_err(|error| invalid(pattern, &error.to_string()))
}

/// Opens a file that may be searched.
fn reader(workspace: &Workspace, path: &str, until: Instant) -> io::Result<impl Read> {
    let file = workspace.open_file(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::ErrorKind::NotFound.into());
    }
    if metadata.len() > MAX_SEARCHED_BYTES as u64 {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(Timed(file, until).take(MAX_SEARCHED_BYTES as u64))
}

/// A file that fails when time is up, so that a slow expression stops within one buffer.
struct Timed(File, Instant);

impl Read for Timed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if Instant::now() >= self.1 {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.0.read(buffer)
    }
}

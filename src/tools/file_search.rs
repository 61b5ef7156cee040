//! `file_search`: lists lines that match a regular expression, by ripgrep's libraries.

use std::io::{self, Read};
use std::ops::ControlFlow;
use std::time::Instant;

use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::sinks::Lossy;
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};
use serde::Serialize;
use serde_json::json;

use super::arguments::Arguments;
use super::file_glob::listing;
use super::output::{ToolError, ToolOutput, bounded};
use super::path::one_line;
use super::tool::Tool;
use super::walk::{Found, MAX_TIME, Walk};
use super::workspace::Workspace;

/// Upper bound of matching lines.
pub const MAX_MATCHES: usize = 1_000;
/// Upper bound of the size of a searched file, in bytes.
pub const MAX_SEARCHED_BYTES: u64 = 8 << 20;
/// Upper bound of the shown part of a line, in bytes.
pub const MAX_LINE_BYTES: usize = 400;
/// Upper bound of a compiled expression, in bytes.
const MAX_EXPRESSION_BYTES: usize = 1 << 20;

const TOOL: Tool = Tool::FileSearch;

#[derive(Debug, Serialize)]
struct SearchMatch {
    path: String,
    line: u64,
    text: String,
}

pub fn run(arguments: &Arguments, workspace: &Workspace) -> Result<ToolOutput, ToolError> {
    let matcher = matcher(arguments.required("pattern"))?;
    let mut searcher = SearcherBuilder::new()
        .line_number(true)
        .binary_detection(BinaryDetection::quit(0))
        .heap_limit(usize::try_from(MAX_SEARCHED_BYTES).ok())
        .build();
    let deadline = Instant::now()
        .checked_add(MAX_TIME)
        .unwrap_or_else(Instant::now);
    let (mut matches, mut notes, mut searched) = (Vec::new(), Vec::new(), 0_usize);
    let walk = Walk::run(workspace, arguments.required("root"), &mut |found| {
        let note = match search(&mut searcher, &matcher, found, deadline, &mut matches) {
            Ok(()) => None,
            Err(error) if error.kind() == io::ErrorKind::FileTooLarge => Some(format!(
                "files above {MAX_SEARCHED_BYTES} bytes are left out"
            )),
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                Some(format!("stopped after {} s", MAX_TIME.as_secs()))
            }
            Err(_) => Some("some files could not be read".to_owned()),
        };
        notes.extend(note);
        searched = searched.saturating_add(1);
        if matches.len() > MAX_MATCHES || Instant::now() >= deadline {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    });
    let mut walk = walk.map_err(ToolError::file(TOOL))?;
    if matches.len() > MAX_MATCHES {
        matches.truncate(MAX_MATCHES);
        notes.push(format!("stopped after {MAX_MATCHES} matches"));
    }
    for note in notes {
        walk.note(&note);
    }
    let text = listing(
        matches
            .iter()
            .map(|it| format!("{}:{}: {}", one_line(&it.path), it.line, it.text)),
        "No matches.",
        &walk.notes,
    );
    let value = json!({
        "count": matches.len(),
        "searched": searched,
        "matches": matches,
        "notes": walk.notes,
    });
    Ok(ToolOutput::new(text, value))
}

pub(super) fn matcher(pattern: &str) -> Result<RegexMatcher, ToolError> {
    RegexMatcherBuilder::new()
        .line_terminator(Some(b'\n'))
        .size_limit(MAX_EXPRESSION_BYTES)
        .build(pattern)
        .map_err(|error| ToolError::Pattern {
            tool: TOOL,
            pattern: pattern.to_owned(),
            reason: error.to_string(),
        })
}

fn search(
    searcher: &mut Searcher,
    matcher: &RegexMatcher,
    found: &Found<'_>,
    deadline: Instant,
    matches: &mut Vec<SearchMatch>,
) -> io::Result<()> {
    let file = found.folder.open_file(found.name)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Ok(());
    }
    if metadata.len() > MAX_SEARCHED_BYTES {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    let reader = Timed {
        file: file.take(MAX_SEARCHED_BYTES),
        deadline,
    };
    let sink = Lossy(|line, text| {
        let text = one_line(&text.trim_end().replace('\t', "    "));
        let text = bounded(text, MAX_LINE_BYTES).replace('\n', " ");
        matches.push(SearchMatch {
            path: found.path.to_owned(),
            line,
            text,
        });
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

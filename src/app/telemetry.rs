//! Logs to standard error with `tracing`, as text or JSON.
//!
//! Every control character of the output is escaped. So text from a client or a provider cannot
//! start a line of its own and cannot control a terminal. For the same reason there are no colours.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Write};

use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Registry};

use crate::config::Env;
use crate::domain::changes_direction;

/// Initializes the log of the process from `RUST_LOG` and `LOG_FORMAT`; `default_filter` is the
/// filter when `RUST_LOG` is unset.
pub fn init(env: &Env, default_filter: &str) {
    let filter = EnvFilter::try_new(env.get_or("RUST_LOG", default_filter))
        .unwrap_or_else(|_| EnvFilter::new(default_filter));
    let lines = Lines(io::stderr);
    let done = match env.get("LOG_FORMAT") {
        Some("json") => tracing_subscriber::registry()
            .with(objects(lines))
            .with(filter)
            .try_init()
            .is_ok(),
        _ => {
            let builder = tracing_subscriber::fmt()
                .with_env_filter(filter)
                .with_writer(lines);
            builder
                .with_target(false)
                .with_ansi(false)
                .try_init()
                .is_ok()
        }
    };
    if !done {
        tracing::debug!("logs were set up already");
    }
}

/// Writes one JSON object per line, with the fields of its spans (`requestId` among them) at the
/// top level.
fn objects<M>(lines: M) -> json_subscriber::fmt::Layer<Registry, M>
where
    M: for<'w> MakeWriter<'w> + 'static,
{
    json_subscriber::layer()
        .with_writer(lines)
        .with_target(false)
        .with_current_span(false)
        .with_span_list(false)
        .flatten_span_list_on_top_level(true)
}

/// A writer that escapes whole events. The formatter passes each event at once, with a newline at
/// its end.
struct Lines<M>(M);

struct Line<W>(W);

impl<'a, M: MakeWriter<'a>> MakeWriter<'a> for Lines<M> {
    type Writer = Line<M::Writer>;

    fn make_writer(&'a self) -> Self::Writer {
        Line(self.0.make_writer())
    }
}

impl<W: Write> Write for Line<W> {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let line = one_line(&String::from_utf8_lossy(event));
        // A log that cannot be written must not stop what is logged.
        let _ = self.0.write_all(line.as_bytes());
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let _ = self.0.flush();
        Ok(())
    }
}

/// Returns the event on one line.
fn one_line(event: &str) -> String {
    let text = event.strip_suffix('\n').unwrap_or(event);
    format!("{}\n", escaped(text, has_effect))
}

/// Returns a text with some of its characters escaped. The escapes are those of JSON, so a JSON text
/// keeps its meaning.
pub fn escaped(text: &str, is_escaped: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if is_escaped(c) {
            let _ = write!(shown, "\\u{:04x}", u32::from(c));
        } else {
            shown.push(c);
        }
    }
    Cow::Owned(shown)
}

/// True for characters that have an effect: controls, other line ends, and direction changes.
fn has_effect(c: char) -> bool {
    c.is_control()
        || changes_direction(c)
        || matches!(c, '\u{2028}' | '\u{2029}' | '\u{200e}' | '\u{200f}')
}

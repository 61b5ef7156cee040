//! Notes which run crashed the process, so that the next process knows it.
//!
//! A stack overflow or an aborted allocation ends the process before the journal can be written.
//! The handler of the fatal signal appends the id of the run whose piece ran on that thread to a
//! file. SIGKILL cannot be handled, so a kill from outside is never blamed on a run.

use std::cell::Cell;
use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::str::FromStr as _;
use std::sync::OnceLock;

use crash_handler::{CrashContext, CrashEventResult, CrashHandler, make_crash_event};
use uuid::Uuid;
use uuid::fmt::Hyphenated;

use crate::domain::RunId;

/// Size in bytes above which a file of crashes is emptied at the start. A line has 37 bytes.
const MAX_FILE_BYTES: u64 = 64 * 1024;

thread_local! {
    /// The run whose piece this thread runs, as a number; 0 outside of pieces. The signal handler
    /// reads it, so it needs neither a destructor nor lazy set-up.
    static RUNNING: Cell<u128> = const { Cell::new(0) };
}

/// The handler, for the rest of the process.
static HANDLER: OnceLock<CrashHandler> = OnceLock::new();

/// How often each run crashed a process, as the earlier processes noted it.
#[derive(Debug, Default)]
pub struct Crashes(HashMap<RunId, u32>);

impl Crashes {
    /// Reads the notes of earlier processes from a file, and appends the crashes of this process to
    /// it. Processes may share a file.
    ///
    /// # Errors
    /// If the file cannot be read or written, or the signals cannot be handled.
    pub fn open(path: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.create(true).append(true).read(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(path)?;
        let crashes = Self::read(&file)?;
        if file.metadata()?.len() > MAX_FILE_BYTES {
            file.set_len(0)?;
        }
        if HANDLER.get().is_none() {
            let handler = attach(file)?;
            let _ = HANDLER.set(handler);
        }
        Ok(crashes)
    }

    fn read(file: &File) -> io::Result<Self> {
        let mut crashes: HashMap<RunId, u32> = HashMap::new();
        for line in BufReader::new(file).split(b'\n') {
            // A line that was cut or damaged names no run.
            let line = line?;
            let id = std::str::from_utf8(&line).ok();
            if let Some(run) = id.and_then(|id| RunId::from_str(id).ok()) {
                *crashes.entry(run).or_default() += 1;
            }
        }
        Ok(Self(crashes))
    }

    /// Returns how many processes a run crashed.
    pub fn of(&self, run: RunId) -> u32 {
        self.0.get(&run).copied().unwrap_or_default()
    }
}

/// Calls `piece`. If it crashes the process, the crash is noted as that of `run`.
pub fn attributed<T>(run: RunId, piece: impl FnOnce() -> T) -> T {
    struct Restore(u128);
    impl Drop for Restore {
        fn drop(&mut self) {
            RUNNING.set(self.0);
        }
    }
    let _restore = Restore(RUNNING.replace(run.uuid().as_u128()));
    piece()
}

fn attach(file: File) -> io::Result<CrashHandler> {
    let on_crash = move |context: &CrashContext| {
        let run = RUNNING.get();
        if run != 0 && raised_here(context) {
            let _ = write_line(&file, run);
        }
        // The previous handlers report a stack overflow and end the process as without this one.
        CrashEventResult::Handled(false)
    };
    // SAFETY: The closure runs in a signal handler. It allocates nothing and takes no lock: it
    // reads a thread-local without a destructor, formats on the stack and calls write(2).
    let event = unsafe { make_crash_event(on_crash) };
    CrashHandler::attach(event).map_err(io::Error::other)
}

/// Writes the id and a line end in one call.
fn write_line(mut file: &File, run: u128) -> io::Result<()> {
    let mut line = [b'\n'; Hyphenated::LENGTH + 1];
    Uuid::from_u128(run).hyphenated().encode_lower(&mut line);
    file.write_all(&line)
}

/// Returns false for a signal that another process sent.
#[cfg(target_os = "linux")]
fn raised_here(context: &CrashContext) -> bool {
    /// `si_code` of a signal sent by kill(2), as in `bits/siginfo-consts.h`.
    const SI_USER: i32 = 0;
    context.siginfo.ssi_code != SI_USER
}

#[cfg(not(target_os = "linux"))]
fn raised_here(_: &CrashContext) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use tempfile::NamedTempFile;

    use super::*;

    fn run(number: u128) -> RunId {
        RunId::from_uuid(Uuid::from_u128(number))
    }

    #[test]
    fn crashes_are_counted_by_run_and_a_damaged_line_counts_for_none() {
        let notes = NamedTempFile::new().unwrap();
        for number in [7, 8, 7] {
            write_line(notes.as_file(), number).unwrap();
        }
        notes
            .as_file()
            .write_all(b"0000\xff\n\n00000000-0000-")
            .unwrap();
        let crashes = Crashes::read(&File::open(notes.path()).unwrap()).unwrap();
        let counts = [7, 8, 9].map(|number| crashes.of(run(number)));
        assert_eq!(counts, [2, 1, 0]);
    }

    #[test]
    fn only_a_thread_inside_a_piece_is_attributed_to_a_run() {
        let inside = attributed(run(3), || {
            let inner = attributed(run(4), || RUNNING.get());
            (inner, RUNNING.get())
        });
        assert_eq!((inside, RUNNING.get()), ((4, 3), 0));
    }
}

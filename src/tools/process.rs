//! Runs one program to its end, under limits. A shell sets the limits and is replaced by the program;
//! it never sees an argument as text of its own.
//!
//! The program leads a process group of its own. The group is killed when the program ends, when a
//! limit is passed and when the future is dropped, so grandchildren end too. A grandchild that
//! makes itself a new group escapes that; the limits on memory and processor time still hold for it.
//! Limits hold for each process by itself, not for their sum.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use super::output::{MAX_TEXT_BYTES, bounded};

/// The longest time of a program, less than [`super::EXECUTION_DEADLINE`].
pub const MAX_PROGRAM_TIME: Duration = Duration::from_secs(270);

/// How long output is awaited after the program ended.
const GRACE: Duration = Duration::from_secs(1);

/// What a program may use.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Time from start to end; also the processor time of each process.
    pub time: Duration,
    /// Bytes of standard output, and of standard error.
    pub output: usize,
    /// Address space of each process, in bytes.
    pub memory: u64,
    /// Size of each written file, in bytes.
    pub file: u64,
}

/// A program and its fixed arguments.
#[derive(Debug, Clone)]
pub struct Invocation<'a> {
    pub program: &'a Path,
    pub arguments: Vec<OsString>,
    pub folder: PathBuf,
    pub environment: &'a [(OsString, OsString)],
    pub limits: Limits,
}

/// A program that ended by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    pub success: bool,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
}

#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    #[error("cannot start '{program}': {source}")]
    Start { program: String, source: io::Error },
    #[error("'{program}' did not end within {} s and was stopped", limit.as_secs_f64())]
    TimedOut { program: String, limit: Duration },
    #[error("'{program}' wrote more than {limit} bytes and was stopped")]
    TooMuchOutput { program: String, limit: usize },
    #[error("'{program}' was ended by signal {signal}{}", first(stderr))]
    Signalled {
        program: String,
        signal: i32,
        stderr: String,
    },
    #[error("cannot run '{program}': {source}")]
    Io { program: String, source: io::Error },
}

fn first(stderr: &str) -> String {
    if stderr.is_empty() {
        String::new()
    } else {
        format!(": {stderr}")
    }
}

/// Kills the group when dropped.
struct Group(Option<Pid>);

impl Group {
    fn kill(&self) {
        if let Some(leader) = self.0 {
            let _ = kill_process_group(leader, Signal::KILL);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}

enum Ended {
    Normally(Finished),
    BySignal(i32, Vec<u8>),
    TooMuchOutput,
}

/// Runs a program. Dropping the future kills it.
///
/// # Errors
/// `ProcessError`; an exit code other than 0 is not an error here.
pub async fn run(invocation: &Invocation<'_>) -> Result<Finished, ProcessError> {
    let limits = invocation.limits;
    let program = invocation
        .program
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let mut child = match start(invocation) {
        Ok(child) => child,
        Err(source) => return Err(ProcessError::Start { program, source }),
    };
    let group = Group(
        child
            .id()
            .and_then(|id| Pid::from_raw(i32::try_from(id).ok()?)),
    );
    let ended = timeout(limits.time, wait(&mut child, &group, limits.output)).await;
    let result = match ended {
        Ok(Ok(Ended::Normally(finished))) => return Ok(finished),
        Ok(Ok(Ended::TooMuchOutput)) => ProcessError::TooMuchOutput {
            program,
            limit: limits.output,
        },
        Ok(Ok(Ended::BySignal(signal, stderr))) => {
            let stderr = String::from_utf8_lossy(&stderr).trim().to_owned();
            let stderr = bounded(stderr, MAX_TEXT_BYTES);
            ProcessError::Signalled {
                program,
                signal,
                stderr,
            }
        }
        Ok(Err(source)) => ProcessError::Io { program, source },
        Err(_) => ProcessError::TimedOut {
            program,
            limit: limits.time,
        },
    };
    group.kill();
    let _ = timeout(GRACE, child.wait()).await;
    Err(result)
}

/// Sets the limits, which the program inherits: seconds of processor time, 512-byte blocks of a
/// file, KiB of memory.
const LIMITED: &str = r#"ulimit -c 0 && ulimit -t "$1" && ulimit -f "$2" && ulimit -v "$3" || exit 127
shift 3
exec "$@""#;

fn start(invocation: &Invocation<'_>) -> io::Result<Child> {
    let limits = invocation.limits;
    // Else the shell would be started, and say so in words of its own.
    invocation.program.metadata()?;
    let seconds = limits.time.as_secs().saturating_add(1).to_string();
    let (blocks, kib) = (limits.file.div_ceil(512), limits.memory.div_ceil(1024));
    Command::new("/bin/sh")
        .args(["-c", LIMITED, "sh", &seconds])
        .args([blocks.to_string(), kib.to_string()])
        .arg(invocation.program)
        .args(&invocation.arguments)
        .current_dir(&invocation.folder)
        .env_clear()
        .envs(
            invocation
                .environment
                .iter()
                .map(|(name, value)| (name, value)),
        )
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
}

async fn wait(child: &mut Child, group: &Group, limit: usize) -> io::Result<Ended> {
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let output =
        async { tokio::try_join!(read(stdout, &mut out, limit), read(stderr, &mut err, limit)) };
    let status: ExitStatus;
    {
        tokio::pin!(output);
        let read = tokio::select! {
            read = &mut output => {
                if matches!(read, Err(Stop::TooMuch)) {
                    return Ok(Ended::TooMuchOutput);
                }
                status = child.wait().await?;
                read
            }
            ended = child.wait() => {
                status = ended?;
                // Grandchildren hold the pipes open.
                group.kill();
                timeout(GRACE, &mut output).await.unwrap_or(Ok(((), ())))
            }
        };
        match read {
            Ok(_) => {}
            Err(Stop::TooMuch) => return Ok(Ended::TooMuchOutput),
            Err(Stop::Io(error)) => return Err(error),
        }
    }
    Ok(match status.signal() {
        Some(signal) => Ended::BySignal(signal, err),
        None => Ended::Normally(Finished {
            success: status.success(),
            stdout: out,
            stderr: err,
        }),
    })
}

enum Stop {
    TooMuch,
    Io(io::Error),
}

async fn read(
    pipe: Option<impl AsyncRead + Unpin>,
    into: &mut Vec<u8>,
    limit: usize,
) -> Result<(), Stop> {
    let Some(pipe) = pipe else { return Ok(()) };
    let bound = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    pipe.take(bound).read_to_end(into).await.map_err(Stop::Io)?;
    if into.len() > limit {
        Err(Stop::TooMuch)
    } else {
        Ok(())
    }
}

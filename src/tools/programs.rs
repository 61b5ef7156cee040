//! The programs that tools start. Each runs to its end, under limits. A shell sets the limits and is
//! replaced by the program; it never sees an argument as text of its own.
//!
//! The program leads a process group of its own. The group is killed when the program ends, when a
//! limit is passed and when the future is dropped, so grandchildren end too. A grandchild that
//! makes itself a new group escapes that; the limits on memory and processor time still hold for it.
//! Limits hold for each process by itself, not for their sum.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use super::output::{MAX_TEXT_BYTES, ToolError, bounded};

/// How long output is awaited after the program ended.
const GRACE: Duration = Duration::from_secs(1);

/// Variables that a program gets besides the fixed ones, if they are set.
const PASSED_ON: [&str; 4] = ["PATH", "HOME", "CARGO_HOME", "RUSTUP_HOME"];

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

/// The time is less than [`super::EXECUTION_DEADLINE`].
const LIMITS: Limits = Limits {
    time: Duration::from_secs(270),
    output: 64 << 20,
    memory: 8 << 30,
    file: 2 << 30,
};

/// Programs as found once.
#[derive(Debug, Clone)]
pub struct Programs {
    pub found: BTreeMap<&'static str, PathBuf>,
    /// The whole environment of every program.
    pub environment: Vec<(OsString, OsString)>,
    pub limits: Limits,
}

/// A program that ended by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    pub success: bool,
    pub stdout: Vec<u8>,
    pub stderr: String,
}

struct Ended {
    status: ExitStatus,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

impl Programs {
    /// Looks programs up by a variable reader such as `std::env::var_os`.
    pub fn find(variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let path = variable("PATH").unwrap_or_default();
        let found = ["splice", "magellan", "cargo"].into_iter();
        let found = found.filter_map(|name| Some((name, executable(name, &path)?)));
        // Without the last one, magellan asks a service of the user that may have another index open.
        let fixed = [("LANG", "C"), ("MAGELLAN_LOCAL", "1")];
        let fixed = fixed.map(|(name, value)| (name.into(), value.into()));
        let passed_on = PASSED_ON.into_iter();
        let passed_on = passed_on.filter_map(|name| Some((name.into(), variable(name)?)));
        Self {
            found: found.collect(),
            environment: passed_on.chain(fixed).collect(),
            limits: LIMITS,
        }
    }

    /// Returns the programs with one more variable in their environment.
    pub fn with(&self, name: &str, value: PathBuf) -> Self {
        let mut programs = self.clone();
        programs.environment.push((name.into(), value.into()));
        programs
    }

    /// Returns where a program is.
    ///
    /// # Errors
    /// If it is not installed.
    pub fn installed(&self, name: &str) -> Result<&Path, ToolError> {
        let path = self.found.get(name).map(PathBuf::as_path);
        path.ok_or_else(|| format!("'{name}' is not installed").into())
    }

    /// Runs a program. Dropping the future kills it.
    ///
    /// # Errors
    /// If it is not installed, passes a limit or is ended by a signal; an exit code other than 0 is
    /// not an error here.
    pub async fn run(
        &self,
        name: &str,
        arguments: Vec<OsString>,
        folder: &Path,
    ) -> Result<Finished, ToolError> {
        let program = self.installed(name)?;
        let failed = |what: String| format!("'{name}' {what} and was stopped").into();
        let io = |action: &str, error: io::Error| format!("cannot {action} '{name}': {error}");
        let child = self.start(program, arguments, folder);
        let mut child = child.map_err(|error| io("start", error))?;
        let group = Group(child.id().and_then(|id| Pid::from_raw(id.cast_signed())));
        let ended = timeout(self.limits.time, self.wait(&mut child, &group)).await;
        group.kill();
        let ended = match ended {
            Ok(Ok(ended)) => ended,
            Ok(Err(error)) if error.kind() == io::ErrorKind::FileTooLarge => {
                let limit = self.limits.output;
                return Err(failed(format!("wrote more than {limit} bytes")));
            }
            Ok(Err(error)) => return Err(io("run", error).into()),
            Err(_) => {
                let seconds = self.limits.time.as_secs_f64();
                return Err(failed(format!("did not end within {seconds} s")));
            }
        };
        let stderr = String::from_utf8_lossy(&ended.stderr).trim().to_owned();
        let stderr = bounded(stderr, MAX_TEXT_BYTES);
        if let Some(signal) = ended.status.signal() {
            let said = if stderr.is_empty() { "" } else { ": " };
            return Err(format!("'{name}' was ended by signal {signal}{said}{stderr}").into());
        }
        Ok(Finished {
            success: ended.status.success(),
            stdout: ended.stdout,
            stderr,
        })
    }

    fn start(&self, program: &Path, arguments: Vec<OsString>, folder: &Path) -> io::Result<Child> {
        // Else the shell would be started, and say so in words of its own.
        program.metadata()?;
        let seconds = self.limits.time.as_secs() + 1;
        let (blocks, kib) = (self.limits.file / 512, self.limits.memory / 1024);
        Command::new("/bin/sh")
            .args(["-c", LIMITED, "sh"])
            .args([seconds, blocks, kib].map(|limit| limit.to_string()))
            .arg(program)
            .args(arguments)
            .current_dir(folder)
            .env_clear()
            .envs(self.environment.iter().cloned())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
    }

    /// Waits for the end of a program, and collects what it writes.
    async fn wait(&self, child: &mut Child, group: &Group) -> io::Result<Ended> {
        let limit = self.limits.output;
        let (out, err) = (child.stdout.take(), child.stderr.take());
        let (mut stdout, mut stderr) = (vec![], vec![]);
        let mut reading = Box::pin(async {
            tokio::try_join!(read(out, &mut stdout, limit), read(err, &mut stderr, limit))
        });
        let status = tokio::select! {
            output = &mut reading => {
                output?;
                child.wait().await?
            }
            status = child.wait() => {
                // Grandchildren hold the pipes open.
                group.kill();
                if let Ok(output) = timeout(GRACE, &mut reading).await {
                    output?;
                }
                status?
            }
        };
        drop(reading);
        Ok(Ended {
            status,
            stdout,
            stderr,
        })
    }
}

/// Sets the limits, which the program inherits: seconds of processor time, 512-byte blocks of a
/// file, KiB of memory.
const LIMITED: &str = r#"ulimit -c 0 && ulimit -t "$1" && ulimit -f "$2" && ulimit -v "$3" || exit 127
shift 3
exec "$@""#;

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

/// Reads a pipe to its end.
///
/// # Errors
/// `FileTooLarge` if more than the limit comes.
async fn read(
    pipe: Option<impl AsyncRead + Unpin>,
    into: &mut Vec<u8>,
    limit: usize,
) -> io::Result<()> {
    let Some(pipe) = pipe else { return Ok(()) };
    pipe.take(limit as u64 + 1).read_to_end(into).await?;
    if into.len() > limit {
        Err(io::ErrorKind::FileTooLarge.into())
    } else {
        Ok(())
    }
}

/// Only absolute folders count: a relative one would mean another program in each folder.
fn executable(name: &str, path: &OsStr) -> Option<PathBuf> {
    let is_executable = |file: &PathBuf| {
        let found = file.metadata();
        found.is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
    };
    let folders = std::env::split_paths(path).filter(|folder| folder.is_absolute());
    folders.map(|folder| folder.join(name)).find(is_executable)
}

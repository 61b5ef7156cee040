//! Starts the real binary.

use std::path::Path;
use std::process::Stdio;

use tokio::process::Command;

/// Returns the binary's command in a folder, with only the given environment.
pub fn conclave(folder: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Command {
    let program = Command::new(env!("CARGO_BIN_EXE_conclave"));
    set_up(program, folder, arguments, variables)
}

/// Returns the binary's command under a resource limit: the options of the shell's `ulimit`.
pub fn limited(
    limit: &str,
    folder: &Path,
    arguments: &[&str],
    variables: &[(&str, &str)],
) -> Command {
    let mut shell = Command::new("/bin/bash");
    let script = format!("ulimit {limit}; exec \"$0\" \"$@\"");
    shell.args(["-c", &script, env!("CARGO_BIN_EXE_conclave")]);
    set_up(shell, folder, arguments, variables)
}

fn set_up(
    mut command: Command,
    folder: &Path,
    arguments: &[&str],
    variables: &[(&str, &str)],
) -> Command {
    let config = concat!(env!("CARGO_MANIFEST_DIR"), "/llm.config.json");
    command
        .args(arguments)
        .current_dir(folder)
        .env_clear()
        .env("CONCLAVE_CONFIG", config)
        .env("USER", "ada");
    command
        .env("LLVM_PROFILE_FILE", "/dev/null")
        .envs(variables.iter().copied());
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}

//! The program. Everything is in the library.

use std::process::ExitCode;
use std::time::Duration;

/// How long the process waits at its end for work that does not stop where it waits. Such runs are taken over later.
const LAST_WAIT: Duration = Duration::from_secs(1);

fn main() -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("conclave: the runtime cannot start: {error}");
            return ExitCode::FAILURE;
        }
    };
    let exit = runtime.block_on(conclave::cli::run());
    // Without a limit, a CPU-heavy piece would hold the process until it is done.
    runtime.shutdown_timeout(LAST_WAIT);
    exit.into()
}

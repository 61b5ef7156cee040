//! The program. All of its code is in the library.

use std::process::ExitCode;
use std::time::Duration;

/// A run makes about ten thousand small allocations.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How long the process waits at its end for tasks that cannot be aborted, such as CPU-heavy
/// pieces. Their runs are resumed later.
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
    // Without a time limit, a CPU-heavy piece would delay the exit until it ends.
    runtime.shutdown_timeout(LAST_WAIT);
    exit.into()
}

//! The program. All of its code is in the library: what this crate called of it would be compiled
//! twice.

use std::process::ExitCode;

/// A run makes about ten thousand small allocations.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    conclave::cli::main()
}

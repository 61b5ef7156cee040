//! Waits for a signal that ends the program.

use tokio::signal::unix::{SignalKind, signal};

/// Waits for a signal that ends the program, and returns its name: SIGINT, SIGTERM, or SIGHUP of a
/// closed terminal, unless `nohup` had it ignored.
pub(super) async fn stop_signal() -> &'static str {
    tokio::select! {
        name = second_stop_signal() => name,
        () = received(SignalKind::hangup()), if !ignores_hangup() => "SIGHUP",
    }
}

/// Waits for a further signal, which ends the program at once. A closed terminal may send SIGHUP
/// twice, so that is none.
pub(super) async fn second_stop_signal() -> &'static str {
    tokio::select! {
        () = received(SignalKind::interrupt()) => "SIGINT",
        () = received(SignalKind::terminate()) => "SIGTERM",
    }
}

async fn received(kind: SignalKind) {
    match signal(kind) {
        Ok(mut signal) => _ = signal.recv().await,
        Err(_) => std::future::pending().await,
    }
}

/// True if the process was started with SIGHUP ignored, as far as the system says it.
fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    // The lowest bit is signal 1, SIGHUP.
    mask.is_some_and(|mask| mask & 1 == 1)
}

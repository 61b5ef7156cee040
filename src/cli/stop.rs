//! The signals that end the program.

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Waits for a signal that ends the program: SIGINT, SIGTERM, or SIGHUP of a closed terminal, unless
/// `nohup` had it ignored.
pub(super) async fn told_to_stop() {
    let mut kinds = vec![SignalKind::interrupt(), SignalKind::terminate()];
    if !ignores_hangup() {
        kinds.push(SignalKind::hangup());
    }
    let mut signals: Vec<Signal> = kinds.into_iter().flat_map(signal).collect();
    let each: Vec<_> = signals.iter_mut().map(|it| Box::pin(it.recv())).collect();
    if each.is_empty() {
        return std::future::pending().await;
    }
    futures_util::future::select_all(each).await;
}

/// True if the process was started with SIGHUP ignored, as far as the system says it.
fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    // The lowest bit is signal 1, SIGHUP.
    mask.is_some_and(|mask| mask & 1 == 1)
}

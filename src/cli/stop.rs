//! Waits for a signal that ends the program.

use tokio::signal::unix::{SignalKind, signal};

/// Waits for a signal that ends the program, and returns its name: SIGINT, SIGTERM, or SIGHUP of a
/// closed terminal, unless `nohup` had it ignored.
pub(super) async fn told_to_stop() -> &'static str {
    let mut kinds = vec![
        ("SIGINT", SignalKind::interrupt()),
        ("SIGTERM", SignalKind::terminate()),
    ];
    if !ignores_hangup() {
        kinds.push(("SIGHUP", SignalKind::hangup()));
    }
    let waits: Vec<_> = kinds
        .into_iter()
        .filter_map(|(name, kind)| Some((name, signal(kind).ok()?)))
        .map(|(name, mut signal)| {
            Box::pin(async move {
                signal.recv().await;
                name
            })
        })
        .collect();
    if waits.is_empty() {
        return std::future::pending().await;
    }
    futures_util::future::select_all(waits).await.0
}

/// True if the process was started with SIGHUP ignored, as far as the system says it.
fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    // The lowest bit is signal 1, SIGHUP.
    mask.is_some_and(|mask| mask & 1 == 1)
}

//! Waits for a signal that ends the program.

use tokio::signal::unix::{SignalKind, signal};

/// Waits for a signal that ends the program, and returns its name: SIGINT, SIGTERM, or SIGHUP of a
/// closed terminal, unless `nohup` had it ignored.
pub(super) async fn told_to_stop() -> &'static str {
    let hangup = (!ignores_hangup()).then(|| ("SIGHUP", SignalKind::hangup()));
    first_of(ending().into_iter().chain(hangup)).await
}

/// Waits for a further signal, which ends the program at once. A closed terminal may send SIGHUP
/// twice, so that is none.
pub(super) async fn told_again() -> &'static str {
    first_of(ending()).await
}

fn ending() -> [(&'static str, SignalKind); 2] {
    [
        ("SIGINT", SignalKind::interrupt()),
        ("SIGTERM", SignalKind::terminate()),
    ]
}

async fn first_of(kinds: impl IntoIterator<Item = (&'static str, SignalKind)>) -> &'static str {
    let kinds = kinds.into_iter();
    let signals = kinds.filter_map(|(name, kind)| Some((name, signal(kind).ok()?)));
    let waits: Vec<_> = signals
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

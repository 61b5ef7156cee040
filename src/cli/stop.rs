//! Waits for a signal that ends the program, and cancels what this process executes.

use std::time::Duration;

use futures_util::future::OptionFuture;
use tokio::signal::unix::{SignalKind, signal};

use super::exit::{Exit, fail};
use super::plan_text;
use crate::app::App;
use crate::domain::RunId;
use crate::journal::Ending;

/// How long an interrupted command waits for its run to be accepted, and then to end.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(5);

/// What becomes of a run whose end is not known.
pub(super) const GOES_ON: &str =
    "It stays open: the next \"conclave serve\" on this database goes on with it";

/// Does work in this process. A signal that ends the program cancels the runs of the work.
///
/// # Errors
/// The exit code of the work, or of the interruption.
pub(super) async fn interruptible<T>(
    app: &App,
    work: impl Future<Output = Result<T, Exit>>,
) -> Result<T, Exit> {
    let mut work = std::pin::pin!(work);
    tokio::select! {
        done = &mut work => return done,
        _ = stop_signal() => {}
    }
    // A run that is being accepted can be cancelled only afterwards.
    let accepted = async {
        while app.own_runs().is_empty() {
            tokio::time::sleep(POLL).await;
        }
    };
    tokio::select! {
        done = &mut work => return done,
        () = accepted => {}
        () = tokio::time::sleep(CANCEL_TIMEOUT) => {}
        _ = second_stop_signal() => {}
    }
    Err(interrupted(app).await)
}

/// Cancels the runs of this process, and returns the exit code.
async fn interrupted(app: &App) -> Exit {
    for run in app.own_runs() {
        match cancelled(app, run).await {
            Ok(Ending::Cancelled) => {
                tell!("conclave: run {run} was cancelled");
                if let Ok(execution) = app.execution(run).await {
                    tell!("conclave: {}", plan_text::interrupted(&execution));
                }
            }
            Ok(_) => {}
            Err(exit) => return exit,
        }
    }
    Exit::Interrupted
}

/// Cancels a run and waits for its end, unless a further signal ends the program. The ending is
/// another one if the run ended before the cancellation.
pub(super) async fn cancelled(app: &App, run: RunId) -> Result<Ending, Exit> {
    if let Err(error) = app.cancel(run).await {
        let why = format!("run {run} could not be cancelled: {error}. {GOES_ON}");
        return Err(fail(Exit::Interrupted, why));
    }
    let finished = tokio::select! {
        finished = app.finished(run) => finished,
        () = tokio::time::sleep(CANCEL_TIMEOUT) => Ok(None),
        _ = second_stop_signal() => Ok(None),
    };
    match finished {
        Ok(Some(finished)) => Ok(finished.ending),
        Err(error) => Err(fail(Exit::Unexpected, error)),
        Ok(None) => {
            let why = "was told to stop and has not ended yet";
            Err(fail(
                Exit::Interrupted,
                format!("run {run} {why} (conclave show {run})"),
            ))
        }
    }
}

/// Waits for a signal that ends the program, and returns its name: SIGINT, SIGTERM, or SIGHUP of a
/// closed terminal, unless `nohup` had it ignored. A signal counts from this call on.
pub(super) fn stop_signal() -> impl Future<Output = &'static str> {
    let stop = second_stop_signal();
    let hangup = (!ignores_hangup()).then(|| received(SignalKind::hangup()));
    async move {
        tokio::select! {
            name = stop => name,
            Some(()) = OptionFuture::from(hangup) => "SIGHUP",
        }
    }
}

/// Waits for a further signal, which ends the program at once. A closed terminal may send SIGHUP
/// twice, so that is none.
pub(super) fn second_stop_signal() -> impl Future<Output = &'static str> {
    let interrupt = received(SignalKind::interrupt());
    let terminate = received(SignalKind::terminate());
    async move {
        tokio::select! {
            () = interrupt => "SIGINT",
            () = terminate => "SIGTERM",
        }
    }
}

fn received(kind: SignalKind) -> impl Future<Output = ()> {
    let listener = signal(kind);
    async move {
        match listener {
            Ok(mut signal) => _ = signal.recv().await,
            Err(_) => std::future::pending().await,
        }
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

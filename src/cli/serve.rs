//! `conclave serve`.

use std::time::Duration;

use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use super::exit::{Exit, fail};
use crate::app::App;
use crate::clock::Clock;
use crate::config::{self, Env};
use crate::http;

/// How long open connections may take to read their last answer.
const LAST_WORDS: Duration = Duration::from_secs(5);

pub(super) async fn run(env: &Env) -> Exit {
    let config = match config::load(env) {
        Ok(config) => config,
        Err(problems) => return fail(Exit::Configuration, problems),
    };
    let patience = config.policy.deep_deadline;
    let bind = config.bind;
    let app = match App::start(config, Clock::System).await {
        Ok(app) => app,
        Err(error) => return fail(Exit::Unexpected, error),
    };
    match app.access.may_listen(bind).await {
        Ok(Ok(())) => {}
        Ok(Err(problems)) => return fail(Exit::Configuration, problems),
        Err(error) => return fail(Exit::Unexpected, error),
    }
    let listener = match TcpListener::bind(bind).await {
        Ok(listener) => listener,
        Err(error) => return fail(Exit::Unexpected, format!("cannot listen on {bind}: {error}")),
    };
    let bound = listener.local_addr().unwrap_or(bind);
    tracing::info!(version = env!("CARGO_PKG_VERSION"), "listening on http://{bound}");
    app.keep_recovering();
    let stopped = tokio_util::sync::CancellationToken::new();
    let serving = http::serve(app.clone(), listener, stopped.clone().cancelled_owned());
    tokio::pin!(serving);
    tokio::select! {
        result = &mut serving => {
            return match result {
                Ok(()) => Exit::Done,
                Err(error) => fail(Exit::Unexpected, error),
            };
        }
        name = terminated() => tracing::info!(signal = name, "shutting down: runs in flight are finished first"),
    }
    // New questions are refused from here on, with an answer that says so; those in flight end; then the listener closes.
    let drained = async {
        app.drain(patience).await;
        stopped.cancel();
    };
    let closed = async {
        stopped.cancelled().await;
        tokio::time::sleep(LAST_WORDS).await;
    };
    tokio::select! {
        ((), _) = async { tokio::join!(drained, &mut serving) } => tracing::info!("all runs have ended"),
        () = closed => tracing::info!("all runs have ended; connections that are still open are cut"),
        name = terminated() => tracing::warn!(signal = name, "stopping at once: unfinished runs are taken over later"),
    }
    Exit::Done
}

/// Waits for SIGTERM or SIGINT.
async fn terminated() -> &'static str {
    let term = signal(SignalKind::terminate());
    let interrupt = signal(SignalKind::interrupt());
    match (term, interrupt) {
        (Ok(mut term), Ok(mut interrupt)) => tokio::select! {
            _ = term.recv() => "SIGTERM",
            _ = interrupt.recv() => "SIGINT",
        },
        _ => std::future::pending().await,
    }
}

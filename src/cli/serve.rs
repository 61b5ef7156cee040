//! `conclave serve`: runs the HTTP service.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket};

use super::exit::{Done, Exit, fail, failing};
use super::local::{start, with_prompts};
use super::models_line;
use super::stop::{second_stop_signal, stop_signal};
use crate::app::App;
use crate::clock::Clock;
use crate::config::{self, Env};
use crate::http;

/// The number of connections that may wait to be accepted, so that a burst of clients is queued and
/// not reset. The kernel may allow fewer.
const BACKLOG: u32 = 4096;

/// How long open connections may take to read their last response.
const LAST_WORDS: Duration = Duration::from_secs(5);

pub(super) async fn run(env: &Env) -> Done {
    let config = with_prompts(env, config::load(env)).map_err(failing(Exit::Configuration))?;
    for warning in config.all_warnings(Clock::System.now()) {
        tracing::warn!("{warning}");
    }
    if let Some(notice) = &config.notice {
        tracing::info!("{notice}");
    }
    tracing::info!(
        config = config.source,
        "models: {}",
        models_line::line(&config)
    );
    let drain_time = config.policy.deep_deadline;
    let bind = config.bind;
    let app = start(config).await?;
    let problem = app.authenticator.listen_problem(bind).await;
    if let Some(problem) = problem.map_err(failing(Exit::Unexpected))? {
        return Err(failing(Exit::Configuration)(problem));
    }
    raise_open_files();
    let listener = listen(bind).map_err(|error| {
        fail(
            Exit::Unexpected,
            format!("cannot listen on {bind}: {error}"),
        )
    })?;
    let bound = listener.local_addr().unwrap_or(bind);
    let version = env!("CARGO_PKG_VERSION");
    tracing::info!(version, "listening on http://{bound}");
    app.keep_recovering();
    serve(&app, listener, drain_time).await
}

/// Serves until a signal stops the service and its runs have ended.
async fn serve(app: &Arc<App>, listener: TcpListener, drain_time: Duration) -> Done {
    let stopped = tokio_util::sync::CancellationToken::new();
    let serving = http::serve(Arc::clone(app), listener, stopped.clone().cancelled_owned());
    tokio::pin!(serving);
    tokio::select! {
        () = &mut serving => return Ok(()),
        name = stop_signal() => tracing::info!(signal = name, "shutting down: runs in flight are finished first"),
    }
    // From here on new questions are refused with an explanation. First the runs in flight end,
    // then the listener closes.
    let drained = async {
        app.drain(drain_time).await;
        stopped.cancel();
    };
    let closed = async {
        stopped.cancelled().await;
        tokio::time::sleep(LAST_WORDS).await;
    };
    tokio::select! {
        ((), ()) = async { tokio::join!(drained, &mut serving) } => tracing::info!("all runs have ended"),
        () = closed => tracing::info!("closing open connections"),
        name = second_stop_signal() => {
            tracing::warn!(signal = name, "stopping at once: unfinished runs are taken over later");
            // Its registration at the database stays, so the next process sees at once that this one
            // has ended.
            std::mem::forget(Arc::clone(app));
        }
    }
    Ok(())
}

fn listen(bind: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = if bind.is_ipv4() {
        TcpSocket::new_v4()?
    } else {
        TcpSocket::new_v6()?
    };
    socket.set_reuseaddr(true)?;
    socket.bind(bind)?;
    socket.listen(BACKLOG)
}

/// Raises the limit of open files to the hard limit, which needs no privilege. A run has one
/// connection to its client and some to the providers, so the usual limit of 1024 is soon reached.
fn raise_open_files() {
    match rlimit::increase_nofile_limit(u64::MAX) {
        Ok(limit) => tracing::debug!(limit, "open-file limit"),
        Err(error) => tracing::warn!(%error, "cannot raise the open-file limit"),
    }
}

//! Logs: tracing, human or JSON, on standard error.

use tracing_subscriber::EnvFilter;

use crate::config::Env;

/// Sets the process's log up from `RUST_LOG` and `LOG_FORMAT`; `default_filter` is the filter when `RUST_LOG` is unset.
pub fn init(env: &Env, default_filter: &str) {
    let filter =
        EnvFilter::try_new(env.get_or("RUST_LOG", default_filter)).unwrap_or_else(|_| EnvFilter::new(default_filter));
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_target(false);
    let done = match env.get("LOG_FORMAT") {
        Some("json") => builder.json().try_init(),
        _ => builder.try_init(),
    };
    if done.is_err() {
        tracing::debug!("logs were set up already");
    }
}

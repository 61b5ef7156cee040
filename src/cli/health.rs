//! `conclave health`: for container health checks, which have no curl.

use std::time::Duration;

use clap::Args;

use super::exit::{Exit, fail};
use super::remote::client;
use super::terminal::say;
use crate::config::Env;

#[derive(Debug, Args)]
pub(super) struct HealthArguments {
    /// The service's address; default: CONCLAVE_BIND on this machine.
    #[arg(long, value_name = "URL")]
    server: Option<String>,
}

pub(super) async fn run(env: &Env, arguments: HealthArguments) -> Exit {
    let port = env.get_or("CONCLAVE_BIND", "127.0.0.1:8080").rsplit(':').next().unwrap_or("8080").to_owned();
    let server = arguments.server.unwrap_or_else(|| format!("http://127.0.0.1:{port}"));
    let url = format!("{}/health", server.trim_end_matches('/'));
    let client = match client() {
        Ok(client) => client,
        Err(error) => return fail(Exit::Unexpected, error),
    };
    match client.get(&url).timeout(Duration::from_secs(5)).send().await {
        Ok(response) if response.status().is_success() => {
            say(format_args!("{}", response.text().await.unwrap_or_default()));
            Exit::Done
        }
        Ok(response) => fail(Exit::Server, format!("{url} answered {}", response.status())),
        Err(error) => fail(Exit::Server, format!("{url}: {error}")),
    }
}

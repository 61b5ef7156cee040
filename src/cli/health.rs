//! `conclave health`: for container health checks, which have no curl.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use clap::Args;
use serde_json::Value;

use super::exit::{Done, Exit, fail, failing};
use super::local::check_files;
use super::remote::{client, server_address, why};
use super::terminal::say;
use crate::config::Env;

#[derive(Debug, Args)]
pub(super) struct HealthArguments {
    /// The service's address; default: CONCLAVE_BIND on this machine.
    #[arg(long, value_name = "URL", value_parser = server_address)]
    server: Option<String>,
    /// Ask whether it accepts runs: the database answers, every role has a model, and it is not
    /// shutting down.
    #[arg(long)]
    ready: bool,
}

pub(super) async fn run(env: &Env, arguments: HealthArguments) -> Done {
    if arguments.server.is_none() && env.get("CONCLAVE_BIND").is_none() {
        // A line that cannot be read could hold the address.
        check_files(env)?;
    }
    let here = || address(env.get_or("CONCLAVE_BIND", "127.0.0.1:8080"));
    let server = arguments.server.unwrap_or_else(here);
    let path = if arguments.ready { "ready" } else { "health" };
    let url = format!("{}/{path}", server.trim_end_matches('/'));
    let client = client().map_err(failing(Exit::Unexpected))?;
    let request = client.get(&url).timeout(Duration::from_secs(5));
    let why = match request.send().await {
        Ok(response) if response.status().is_success() => {
            let text = response.text().await.unwrap_or_default();
            let answer: Value = serde_json::from_str(&text).unwrap_or_default();
            if answer.get("status").is_some() {
                say(format_args!("{text}"));
                return Ok(());
            }
            format!("{url}: another program than conclave answers there")
        }
        Ok(response) => format!("{url} answered {}", response.status()),
        Err(error) => format!("{url}: {}", why(&error)),
    };
    Err(fail(Exit::Server, why))
}

/// Returns the URL at which this machine reaches a service that listens on `bind`.
fn address(bind: &str) -> String {
    let Ok(mut address) = bind.parse::<SocketAddr>() else {
        return format!("http://{bind}");
    };
    if address.ip().is_unspecified() {
        address.set_ip(match address {
            SocketAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        });
    }
    format!("http://{address}")
}

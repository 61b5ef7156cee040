//! `conclave health`: for container health checks, which have no curl.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use clap::Args;

use super::exit::{Done, Exit, fail, failing};
use super::remote::client;
use super::terminal::say;
use crate::config::Env;

#[derive(Debug, Args)]
pub(super) struct HealthArguments {
    /// The service's address; default: CONCLAVE_BIND on this machine.
    #[arg(long, value_name = "URL")]
    server: Option<String>,
    /// Ask whether it accepts runs: the database answers, every role has a model, and it is not
    /// shutting down.
    #[arg(long)]
    ready: bool,
}

pub(super) async fn run(env: &Env, arguments: HealthArguments) -> Done {
    let server = arguments
        .server
        .unwrap_or_else(|| address(env.get_or("CONCLAVE_BIND", "127.0.0.1:8080")));
    let url = format!(
        "{}/{}",
        server.trim_end_matches('/'),
        if arguments.ready { "ready" } else { "health" }
    );
    let client = client().map_err(failing(Exit::Unexpected))?;
    match client
        .get(&url)
        .timeout(Duration::from_secs(5))
        .send()
        .await
    {
        Ok(response) if response.status().is_success() => {
            say(format_args!(
                "{}",
                response.text().await.unwrap_or_default()
            ));
            Ok(())
        }
        Ok(response) => Err(fail(
            Exit::Server,
            format!("{url} answered {}", response.status()),
        )),
        Err(error) => Err(fail(Exit::Server, format!("{url}: {error}"))),
    }
}

/// Returns the URL at which this machine reaches a service that listens on `bind`.
fn address(bind: &str) -> String {
    match bind.parse::<SocketAddr>() {
        Ok(mut address) => {
            match address.ip() {
                IpAddr::V4(ip) if ip.is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
                IpAddr::V6(ip) if ip.is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
                IpAddr::V4(_) | IpAddr::V6(_) => {}
            }
            format!("http://{address}")
        }
        Err(_) => format!("http://{bind}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_that_listens_everywhere_is_asked_on_loopback() {
        let binds = [
            "0.0.0.0:8080",
            "[::]:8080",
            "127.0.0.1:9000",
            "10.0.0.5:8080",
        ];
        let addresses = [
            "http://127.0.0.1:8080",
            "http://[::1]:8080",
            "http://127.0.0.1:9000",
            "http://10.0.0.5:8080",
        ];
        assert_eq!(binds.map(address), addresses);
    }
}

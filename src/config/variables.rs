//! Checks the settings of the environment: addresses, the token, hosts, logs.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::PathBuf;

use secrecy::SecretString;
use tracing_subscriber::EnvFilter;
use url::{Host, Url};

use super::checker::Check;
use super::source;

/// The minimum length in characters of a token that cannot be guessed.
pub const GOOD_TOKEN_CHARS: usize = 16;

impl Check<'_> {
    pub(super) fn bind(&mut self) -> (Option<SocketAddr>, Option<SecretString>) {
        let token = self.env.get("CONCLAVE_TOKEN");
        if token.is_some_and(|token| token.chars().count() < GOOD_TOKEN_CHARS) {
            let detail = format!(
                "it has fewer than {GOOD_TOKEN_CHARS} characters and may be guessed; a good one: openssl rand -hex 32"
            );
            self.warn("CONCLAVE_TOKEN", detail);
        }
        let token = token.map(SecretString::from);
        let text = self.env.get_or("CONCLAVE_BIND", "127.0.0.1:8080");
        // A name may resolve to addresses of both kinds. Most clients use 127.0.0.1, so IPv4 is
        // preferred.
        let addresses: Vec<SocketAddr> = text
            .to_socket_addrs()
            .map(Iterator::collect)
            .unwrap_or_default();
        let bind = addresses
            .iter()
            .find(|address| address.is_ipv4())
            .or(addresses.first())
            .copied();
        if bind.is_none() {
            self.add(
                "CONCLAVE_BIND",
                format!("{text:?} is not an address with a port, such as 127.0.0.1:8080"),
            );
        }
        (bind, token)
    }

    /// Returns the address of the database. It may contain a password, and is never shown.
    pub(super) fn database_url(&mut self) -> SecretString {
        let url = source::database_url(self.env);
        let url = url.as_str();
        match url.split_once(':') {
            Some(("sqlite", rest)) => {
                if rest
                    .trim_start_matches('/')
                    .split('?')
                    .next()
                    .unwrap_or("")
                    .is_empty()
                {
                    self.add("DATABASE_URL", "names no file: sqlite://data/conclave.db");
                }
            }
            Some(("postgres" | "postgresql", _)) => {
                let named = |url: Url| {
                    let has_host =
                        url.has_host() || url.query_pairs().any(|(name, _)| name == "host");
                    has_host && url.path().len() > 1
                };
                if !Url::parse(url).is_ok_and(named) {
                    let detail = "names no host and database: postgres://USER:PASSWORD@HOST/DATABASE, with the signs \
                                  /?#[]@:% of a password in percent encoding";
                    self.add("DATABASE_URL", detail);
                }
            }
            _ => {
                let detail = "begins with neither sqlite:// nor postgres://, such as sqlite://data/conclave.db or \
                              postgres://USER:PASSWORD@HOST/DATABASE";
                self.add("DATABASE_URL", detail);
            }
        }
        SecretString::from(url)
    }

    pub(super) fn prompts_dir(&mut self) -> Option<PathBuf> {
        let dir = PathBuf::from(self.env.get("CONCLAVE_PROMPTS_DIR")?);
        if !dir.is_dir() {
            self.add(
                "CONCLAVE_PROMPTS_DIR",
                format!("{} is not a directory", dir.display()),
            );
        }
        Some(dir)
    }

    pub(super) fn tools_workspace(&mut self) -> Option<PathBuf> {
        let dir = PathBuf::from(self.env.get("TOOLS_WORKSPACE")?);
        if !dir.is_dir() {
            self.add(
                "TOOLS_WORKSPACE",
                format!("{} is not a directory", dir.display()),
            );
        }
        Some(dir)
    }

    pub(super) fn program_variables(&self) -> BTreeMap<String, String> {
        let names = ["PATH", "HOME", "CARGO_HOME", "RUSTUP_HOME"];
        let set = names
            .into_iter()
            .filter_map(|name| Some((name.to_owned(), self.env.get(name)?.to_owned())));
        set.collect()
    }

    /// Returns the hosts of attachments. Unset means the default; an empty value means no host.
    pub(super) fn attachment_hosts(&mut self) -> BTreeSet<String> {
        let given = self
            .env
            .given("ATTACHMENT_HOSTS")
            .unwrap_or("cdn.discordapp.com,media.discordapp.net");
        let hosts: BTreeSet<String> = given
            .split([',', ' '])
            .map(|h| h.trim().to_lowercase())
            .filter(|h| !h.is_empty())
            .collect();
        for host in &hosts {
            if host.contains('*') {
                self.add(
                    "ATTACHMENT_HOSTS",
                    format!("{host:?} has a wildcard; each host must be named in full"),
                );
            } else if Host::parse(host).is_err() || host.contains(':') && !host.starts_with('[') {
                self.add(
                    "ATTACHMENT_HOSTS",
                    format!("{host:?} is not the name of a host, such as cdn.discordapp.com"),
                );
            }
        }
        hosts
    }

    /// Returns the allowed origins. Each is as a browser sends it: scheme, host and port, and
    /// nothing more.
    pub(super) fn cors_origins(&mut self) -> BTreeSet<String> {
        let given = self.env.get_or("CORS_ORIGINS", "").to_owned();
        let mut origins = BTreeSet::new();
        for origin in given.split([',', ' ']).filter(|origin| !origin.is_empty()) {
            let parsed = Url::parse(origin)
                .ok()
                .filter(|url| matches!(url.scheme(), "http" | "https"));
            match parsed.map(|url| url.origin().ascii_serialization()) {
                Some(plain) if plain == origin.to_lowercase() => {
                    origins.insert(plain);
                }
                _ => self.add(
                    "CORS_ORIGINS",
                    format!("{origin:?} is not an origin, such as https://app.example.org"),
                ),
            }
        }
        origins
    }

    pub(super) fn logs(&mut self) {
        if let Some(filter) = self.env.get("RUST_LOG")
            && let Err(error) = EnvFilter::try_new(filter)
        {
            self.add(
                "RUST_LOG",
                format!("{filter:?} is not a filter such as info or info,conclave=debug: {error}"),
            );
        }
        if let Some(format) = self
            .env
            .get("LOG_FORMAT")
            .filter(|format| !matches!(*format, "text" | "json"))
        {
            self.add("LOG_FORMAT", format!("{format:?} is neither text nor json"));
        }
    }
}

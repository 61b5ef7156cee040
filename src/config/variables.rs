//! Checks the settings of the environment: addresses, the token, hosts, logs.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::PathBuf;

use secrecy::SecretString;
use tracing_subscriber::EnvFilter;
use url::{Host, Url};

use super::checker::Check;
use super::database::Database;

/// The minimum length in characters of a token that cannot be guessed.
pub const GOOD_TOKEN_CHARS: usize = 16;

/// Why a secret cannot be sent.
pub(super) const NOT_FOR_HEADER: &str = "has characters that no HTTP header may carry";

/// True if a header of HTTP can carry a secret: printable ASCII.
pub(super) fn is_for_header(secret: &str) -> bool {
    secret.chars().all(|c| matches!(c, ' '..='~'))
}

impl Check<'_> {
    pub(super) fn bind(&mut self) -> (Option<SocketAddr>, Option<SecretString>) {
        let token = self.env.get("CONCLAVE_TOKEN");
        if token.is_some_and(|token| token.chars().count() < GOOD_TOKEN_CHARS) {
            let detail = format!(
                "it has fewer than {GOOD_TOKEN_CHARS} characters and may be guessed; a good one: openssl rand -hex 32"
            );
            self.warn("CONCLAVE_TOKEN", detail);
        }
        if token.is_some_and(|token| !is_for_header(token)) {
            self.add("CONCLAVE_TOKEN", NOT_FOR_HEADER);
        }
        let token = token.map(SecretString::from);
        let text = self.env.get_or("CONCLAVE_BIND", "127.0.0.1:8080");
        // A name may resolve to addresses of both kinds. Most clients use 127.0.0.1, so IPv4 is
        // preferred.
        let addresses = text.to_socket_addrs().into_iter().flatten();
        let bind = addresses.min_by_key(|address| !address.is_ipv4());
        if bind.is_none() {
            let detail = format!("{text:?} is not an address with a port, such as 127.0.0.1:8080");
            self.add("CONCLAVE_BIND", detail);
        }
        (bind, token)
    }

    pub(super) fn database(&mut self) -> Option<Database> {
        let read = Database::of(self.env);
        read.map_err(|why| self.add("DATABASE_URL", why)).ok()
    }

    /// Returns the folder that a variable names.
    pub(super) fn folder(&mut self, variable: &str) -> Option<PathBuf> {
        let dir = PathBuf::from(self.env.get(variable)?);
        if !dir.is_dir() {
            self.add(variable, format!("{} is not a directory", dir.display()));
        }
        Some(dir)
    }

    pub(super) fn program_variables(&self) -> BTreeMap<String, String> {
        let names = ["PATH", "HOME", "CARGO_HOME", "RUSTUP_HOME"].into_iter();
        let set = |name: &str| Some((name.to_owned(), self.env.get(name)?.to_owned()));
        names.filter_map(set).collect()
    }

    /// Returns the hosts of attachments. Unset means the default; an empty value means no host.
    pub(super) fn attachment_hosts(&mut self) -> BTreeSet<String> {
        let given = self.env.given("ATTACHMENT_HOSTS");
        let hosts = list(given.unwrap_or("cdn.discordapp.com,media.discordapp.net"));
        let hosts: BTreeSet<String> = hosts.map(str::to_lowercase).collect();
        for host in &hosts {
            let is_name = |host: &str| {
                let is_in_name = |c: char| c.is_alphanumeric() || "-._".contains(c);
                host.chars().all(is_in_name) && !host.starts_with('.') && !host.ends_with('.')
            };
            if Host::parse(host).is_err() || !(is_name(host) || host.starts_with('[')) {
                let detail = "is not the whole name of a host, such as cdn.discordapp.com";
                self.add("ATTACHMENT_HOSTS", format!("{host:?} {detail}"));
            }
        }
        hosts
    }

    /// Returns the allowed origins. Each is as a browser sends it: scheme, host and port, and
    /// nothing more.
    pub(super) fn cors_origins(&mut self) -> BTreeSet<String> {
        let mut origins = BTreeSet::new();
        for origin in list(self.env.get_or("CORS_ORIGINS", "")) {
            let is_web =
                |url: &Url| matches!(url.scheme(), "http" | "https") && !origin.contains('*');
            let parsed = Url::parse(origin).ok().filter(is_web);
            match parsed.map(|url| url.origin().ascii_serialization()) {
                Some(plain) if plain == origin.to_lowercase() => {
                    origins.insert(plain);
                }
                _ => {
                    let detail = "is not an origin, such as https://app.example.org";
                    self.add("CORS_ORIGINS", format!("{origin:?} {detail}"));
                }
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
        let format = self.env.get_or("LOG_FORMAT", "text");
        if !matches!(format, "text" | "json") {
            self.add("LOG_FORMAT", format!("{format:?} is neither text nor json"));
        }
    }
}

/// Returns the words of a list that is separated by commas or spaces.
fn list(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split([',', ' ']).map(str::trim);
    words.filter(|word| !word.is_empty())
}

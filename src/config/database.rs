//! Where the journal is: `DATABASE_URL`.

use std::path::PathBuf;

use secrecy::SecretString;
use url::Url;

use super::env::Env;
use super::source::data_folder;

/// The database of the journal.
#[derive(Debug, Clone)]
pub enum Database {
    /// A file of SQLite.
    Sqlite(PathBuf),
    /// The address of a PostgreSQL database, which may contain a password.
    Postgres(SecretString),
}

impl Database {
    /// Reads `DATABASE_URL`; unset means a file in the data folder.
    ///
    /// # Errors
    /// As [`Database::at`].
    pub fn of(env: &Env) -> Result<Self, String> {
        let Some(address) = env.get("DATABASE_URL") else {
            return Ok(Self::Sqlite(data_folder(env).join("conclave.db")));
        };
        Self::at(address)
    }

    /// Reads an address: `sqlite://PATH`, `postgres://...` or `postgresql://...`.
    ///
    /// # Errors
    /// What is wrong with it, without its password or the value of a parameter.
    pub fn at(address: &str) -> Result<Self, String> {
        match address.split_once(':') {
            _ if address.contains('\u{fffd}') => Err("is not UTF-8".into()),
            Some(("sqlite", ":memory:" | "//:memory:")) => Err(
                "is a database in memory, which would be lost: sqlite://data/conclave.db".into(),
            ),
            Some(("sqlite", rest)) => {
                let file = rest.strip_prefix("//").unwrap_or(rest);
                let (file, parameters) = file.split_once('?').unwrap_or((file, ""));
                // The only mode: the file is read and written, and made if it is missing.
                if !matches!(parameters, "" | "mode=rwc") {
                    return Err("has a parameter other than mode=rwc".into());
                }
                if file.trim_start_matches('/').is_empty() {
                    return Err("names no file: sqlite://data/conclave.db".into());
                }
                Ok(Self::Sqlite(PathBuf::from(file)))
            }
            Some(("postgres" | "postgresql", _)) => {
                let url = Url::parse(address).ok().filter(names_a_database);
                let url = url.ok_or(
                    "names no host and database: postgres://USER:PASSWORD@HOST/DATABASE, with the signs \
                     /?#[]@:% of a password in percent encoding",
                )?;
                check_parameters(&url)?;
                Ok(Self::Postgres(SecretString::from(address)))
            }
            _ => Err(
                "begins with neither sqlite:// nor postgres://, such as sqlite://data/conclave.db or \
                 postgres://USER:PASSWORD@HOST/DATABASE"
                    .into(),
            ),
        }
    }
}

/// The parameters that an address of PostgreSQL may have. The driver would ignore an unknown one and
/// log it with its value.
const PARAMETERS: [&str; 20] = [
    "application_name",
    "dbname",
    "host",
    "hostaddr",
    "options",
    "options[search_path]",
    "options[statement_timeout]",
    "password",
    "port",
    "ssl-ca",
    "ssl-cert",
    "ssl-key",
    "ssl-mode",
    "ssl-root-cert",
    "sslcert",
    "sslkey",
    "sslmode",
    "sslrootcert",
    "statement-cache-capacity",
    "user",
];

/// The values of `sslmode`.
const TLS_MODES: [&str; 6] = [
    "disable",
    "allow",
    "prefer",
    "require",
    "verify-ca",
    "verify-full",
];

/// Checks the names of the parameters, `sslmode`, and that the address names one host.
fn check_parameters(url: &Url) -> Result<(), String> {
    for (name, value) in url.query_pairs() {
        if !PARAMETERS.contains(&&*name) {
            let is_name = |c: &char| c.is_ascii_alphanumeric() || "-_[]".contains(*c);
            let plain: String = name.chars().filter(is_name).take(40).collect();
            return Err(format!("has a parameter that is not known: {plain}"));
        }
        if matches!(&*name, "sslmode" | "ssl-mode") && !TLS_MODES.contains(&&*value) {
            return Err(format!("has no known {name}: {}", TLS_MODES.join(", ")));
        }
    }
    if url.host_str().is_some_and(|host| host.contains(',')) {
        return Err("names more than one host".into());
    }
    Ok(())
}

fn names_a_database(url: &Url) -> bool {
    let has_host = url.has_host() || url.query_pairs().any(|(name, _)| name == "host");
    has_host && url.path().len() > 1
}

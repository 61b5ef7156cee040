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
    pub fn of(env: &Env) -> Result<Self, &'static str> {
        let usual = || Ok(Self::Sqlite(data_folder(env).join("conclave.db")));
        env.get("DATABASE_URL").map_or_else(usual, Self::at)
    }

    /// Reads an address: `sqlite://PATH`, `postgres://...` or `postgresql://...`.
    ///
    /// # Errors
    /// What is wrong with it, without any part of it.
    pub fn at(address: &str) -> Result<Self, &'static str> {
        match address.split_once(':') {
            _ if address.contains('\u{fffd}') => Err("is not UTF-8"),
            Some(("sqlite", ":memory:")) => {
                Err("is a database in memory, which would be lost: sqlite://data/conclave.db")
            }
            Some(("sqlite", rest)) => {
                let file = rest.strip_prefix("//").unwrap_or(rest).split('?').next();
                let file = file.filter(|file| !file.trim_start_matches('/').is_empty());
                let file = file.ok_or("names no file: sqlite://data/conclave.db")?;
                Ok(Self::Sqlite(PathBuf::from(file)))
            }
            Some(("postgres" | "postgresql", _)) => {
                let is_named = Url::parse(address).is_ok_and(|url| names_a_database(&url));
                is_named
                    .then(|| Self::Postgres(SecretString::from(address)))
                    .ok_or(
                        "names no host and database: postgres://USER:PASSWORD@HOST/DATABASE, with the signs \
                         /?#[]@:% of a password in percent encoding",
                    )
            }
            _ => Err(
                "begins with neither sqlite:// nor postgres://, such as sqlite://data/conclave.db or \
                 postgres://USER:PASSWORD@HOST/DATABASE",
            ),
        }
    }
}

fn names_a_database(url: &Url) -> bool {
    let has_host = url.has_host() || url.query_pairs().any(|(name, _)| name == "host");
    has_host && url.path().len() > 1
}

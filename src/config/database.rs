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
    /// As [`Database::at`], or which file of a certificate cannot be used.
    pub fn of(env: &Env) -> Result<Self, String> {
        let Some(address) = env.get("DATABASE_URL") else {
            return Ok(Self::Sqlite(data_folder(env).join("conclave.db")));
        };
        let database = Self::at(address)?;
        if let Self::Postgres(_) = &database
            && let Ok(url) = Url::parse(address)
        {
            check_files(&url, env)?;
        }
        Ok(database)
    }

    /// Reads an address: `sqlite://PATH`, `postgres://...` or `postgresql://...`.
    ///
    /// # Errors
    /// What is wrong with it, without its password or the value of a parameter.
    pub fn at(address: &str) -> Result<Self, String> {
        match address.split_once(':') {
            _ if address.contains('\u{fffd}') => Err("is not UTF-8".into()),
            Some(("sqlite", ":memory:")) => Err(
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

/// Checks the parameters of an address of PostgreSQL, and that it names one host.
fn check_parameters(url: &Url) -> Result<(), String> {
    let mut hosts: Vec<String> = url.host_str().map(str::to_owned).into_iter().collect();
    for (name, value) in url.query_pairs() {
        let is_good = match &*name {
            "sslmode" | "ssl-mode" => TLS_MODES.contains(&&*value),
            "port" => value.parse::<u16>().is_ok(),
            "statement-cache-capacity" => value.parse::<u32>().is_ok(),
            "hostaddr" => value.parse::<std::net::IpAddr>().is_ok(),
            "host" => {
                hosts.push(value.into_owned());
                true
            }
            known => PARAMETERS.contains(&known),
        };
        if is_good {
            continue;
        }
        let is_name = |c: &char| c.is_ascii_alphanumeric() || "-_[]".contains(*c);
        let plain: String = name.chars().filter(is_name).take(40).collect();
        return Err(match &*name {
            "sslmode" | "ssl-mode" => format!("has no known {plain}: {}", TLS_MODES.join(", ")),
            known if PARAMETERS.contains(&known) => format!("has an invalid value of {plain}"),
            _ => format!("has a parameter that is not known: {plain}"),
        });
    }
    if hosts.iter().any(|host| host.contains(',')) {
        return Err("names more than one host".into());
    }
    Ok(())
}

/// The files that an address may name: the spellings of the parameter, the variable that the driver
/// reads without it, and what the file has to contain.
const FILES: [(&[&str], &str, &str); 3] = [
    (
        &["sslrootcert", "ssl-root-cert", "ssl-ca"],
        "PGSSLROOTCERT",
        "CERTIFICATE-----",
    ),
    (&["sslcert", "ssl-cert"], "PGSSLCERT", "CERTIFICATE-----"),
    (&["sslkey", "ssl-key"], "PGSSLKEY", "PRIVATE KEY-----"),
];

/// Checks the certificates and the key of an address. The driver's errors do not name the file.
fn check_files(url: &Url, env: &Env) -> Result<(), String> {
    let given = |names: &[&'static str], variable: &'static str| {
        let last = url
            .query_pairs()
            .filter(|(name, _)| names.contains(&&**name))
            .last();
        let first = names.first().copied().unwrap_or(variable);
        let last = last.map(|(_, value)| (first, value.into_owned()));
        last.or_else(|| Some((variable, env.get(variable)?.to_owned())))
    };
    let mode = given(&["sslmode", "ssl-mode"], "PGSSLMODE");
    if mode.is_some_and(|(_, mode)| matches!(mode.as_str(), "disable" | "allow")) {
        return Ok(());
    }
    let [root, certificate, key] =
        FILES.map(|(names, variable, holds)| Some((given(names, variable)?, holds)));
    if certificate.is_some() != key.is_some() {
        return Err(
            "names only one of sslcert and sslkey: a client's certificate needs its key".into(),
        );
    }
    for ((name, file), holds) in [root, certificate, key].into_iter().flatten() {
        // The driver takes such a value itself as the contents.
        if file.trim_start().starts_with("-----BEGIN") {
            continue;
        }
        // A pipe can be read once, by the driver.
        if std::fs::metadata(&file).is_ok_and(|meta| !meta.is_file() && !meta.is_dir()) {
            continue;
        }
        let fault = match std::fs::read(&file) {
            Ok(bytes) if String::from_utf8_lossy(&bytes).contains(holds) => continue,
            Ok(_) if holds.starts_with("PRIVATE") => "has no private key in PEM form".to_owned(),
            Ok(_) => "has no certificate in PEM form".to_owned(),
            Err(error) => format!("cannot be read: {}", error.kind()),
        };
        return Err(format!(
            "names a file that cannot be used: {name} {file:?} {fault}"
        ));
    }
    Ok(())
}

fn names_a_database(url: &Url) -> bool {
    let has_host = url.has_host() || url.query_pairs().any(|(name, _)| name == "host");
    has_host && url.path().len() > 1
}

//! Parses `DATABASE_URL` for PostgreSQL. It may contain a password, so no error repeats its
//! content.

use sqlx::ConnectOptions as _;
use sqlx::postgres::PgConnectOptions;
use url::Url;

use crate::journal::Error;

/// The parameters that an address may have. The driver would ignore an unknown one and log it with
/// its value.
const PARAMETERS: [&str; 20] = [
    "application_name",
    "dbname",
    "host",
    "hostaddr",
    "options",
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
    "options[search_path]",
    "options[statement_timeout]",
];

pub(super) fn read(url: &str) -> Result<PgConnectOptions, Error> {
    let refused = |why: String| Error::Unavailable(format!("DATABASE_URL {why}"));
    let url = Url::parse(url)
        .map_err(|_| refused("is not an address: postgres://USER:PASSWORD@HOST/DATABASE".into()))?;
    for (name, _) in url.query_pairs() {
        if !PARAMETERS.contains(&&*name) {
            let plain: String = name
                .chars()
                .filter(|c| c.is_ascii_alphanumeric() || "-_[]".contains(*c))
                .collect();
            return Err(refused(format!(
                "has a parameter that is not known: {plain}"
            )));
        }
    }
    let options = PgConnectOptions::from_url(&url)
        .map_err(|_| refused("has a parameter with a value that cannot be".into()))?;
    let options = if options.get_application_name().is_none() {
        options.application_name("conclave")
    } else {
        options
    };
    Ok(options)
}

#[cfg(test)]
mod tests {
    use super::read;

    #[test]
    fn an_address_that_cannot_be_used_is_named_without_its_secrets() {
        let cases = [
            ("postgres://ada:planted@", "is not an address"),
            (
                "postgres://ada:planted@db/x?passwrod=planted",
                "not known: passwrod",
            ),
            (
                "postgres://ada:planted@db/x?sslmode=planted",
                "a value that cannot be",
            ),
        ];
        for (url, why) in cases {
            let error = read(url).err().map(|e| e.to_string()).unwrap_or_default();
            assert!(error.contains(why) && !error.contains("planted"), "{error}");
        }
        let options =
            read("postgresql://ada:p%40ss@db.example:6432/conclave?sslmode=verify-full").unwrap();
        assert_eq!(
            (options.get_host(), options.get_port()),
            ("db.example", 6432)
        );
        assert_eq!(
            (options.get_username(), options.get_database()),
            ("ada", Some("conclave"))
        );
    }
}

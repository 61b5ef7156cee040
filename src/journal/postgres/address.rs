//! Parses `DATABASE_URL` for PostgreSQL. It may contain a password, so no error repeats its
//! content.

use sqlx::ConnectOptions as _;
use sqlx::postgres::PgConnectOptions;
use url::Url;

use crate::journal::Error;

/// Returns the driver's options. The configuration has checked the parameters.
pub(super) fn read(url: &str) -> Result<PgConnectOptions, Error> {
    let refused = |why: String| Error::Unavailable(format!("DATABASE_URL {why}"));
    let url = Url::parse(url)
        .map_err(|_| refused("is not an address: postgres://USER:PASSWORD@HOST/DATABASE".into()))?;
    let options = PgConnectOptions::from_url(&url)
        .map_err(|_| refused("has a parameter with an invalid value".into()))?;
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
                "postgres://ada:planted@db/x?sslmode=planted",
                "an invalid value",
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

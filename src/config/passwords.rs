//! Finds the passwords in addresses, so that they can be removed from texts.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::percent_decode_str;
use secrecy::{ExposeSecret as _, SecretString};
use url::Url;

use super::Database;
use super::env::Env;

/// Returns the password in front of an address's host: as it is written, and decoded.
fn passwords(url: &Url) -> Vec<SecretString> {
    let Some(written) = url.password() else {
        return vec![];
    };
    let decoded = percent_decode_str(written).decode_utf8_lossy();
    let forms = (decoded != written).then_some(&*decoded);
    let forms = std::iter::once(written).chain(forms);
    forms.map(SecretString::from).collect()
}

/// Returns what must not be shown of the address of a server or a proxy: its password, and the header
/// of HTTP Basic authentication that is made of it.
pub(super) fn of_server(url: &Url) -> Vec<SecretString> {
    let decoded = |part: &str| percent_decode_str(part).collect::<Vec<u8>>();
    let header = url.password().map(|password| {
        let both = [decoded(url.username()), decoded(password)].join(&b':');
        SecretString::from(STANDARD.encode(both))
    });
    passwords(url).into_iter().chain(header).collect()
}

/// Returns the passwords of the database: those of its address, and that of `PGPASSWORD`, which the
/// driver reads.
pub(super) fn of_database(database: &Database, env: &Env) -> Vec<SecretString> {
    let Database::Postgres(address) = database else {
        return vec![];
    };
    let url = Url::parse(address.expose_secret()).ok();
    let mut found: Vec<SecretString> = url.iter().flat_map(passwords).collect();
    for (name, decoded) in url.iter().flat_map(Url::query_pairs) {
        if name == "password" {
            found.push(SecretString::from(&*decoded));
        }
    }
    let query = url.as_ref().and_then(Url::query).unwrap_or_default();
    let written = query
        .split('&')
        .filter_map(|it| it.strip_prefix("password="));
    found.extend(written.map(SecretString::from));
    found.extend(env.get("PGPASSWORD").map(SecretString::from));
    found
}

//! The only outbound door to models: one POST, one answer, every failure named.
//!
//! It knows HTTP and nothing of any provider's vocabulary. It makes one attempt, follows no redirect, uses no proxy of
//! the environment, and never lets an API key into an error.

use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use secrecy::{ExposeSecret, SecretString};
use serde::Serialize;
use serde::de::DeserializeOwned;
use url::Url;

use super::{Error, rejection};

/// A reply larger than this is not a chat reply.
const MAX_BODY_BYTES: usize = 8 * 1024 * 1024;

/// What every call to one provider has in common.
pub(super) struct Door {
    provider: String,
    client: reqwest::Client,
    headers: HeaderMap,
    key: Option<SecretString>,
}

/// How to build a [`Door`].
pub(super) struct Settings {
    pub provider: String,
    pub base_url: Url,
    pub connect_timeout: Duration,
    pub api_key: Option<SecretString>,
    /// The header that carries the key, and what stands before the key in it.
    pub key_header: (HeaderName, &'static str),
    pub other_headers: Vec<(HeaderName, HeaderValue)>,
}

/// One call through the door.
pub(super) struct Call<'a, B> {
    pub url: &'a Url,
    /// Sent as `Idempotency-Key`.
    pub key: &'a str,
    pub body: &'a B,
    pub timeout: Duration,
}

/// A 2xx answer whose body is JSON of the wanted shape.
pub(super) struct Answer<R> {
    pub headers: HeaderMap,
    pub body: R,
}

impl Door {
    /// # Errors
    /// [`Error::Connect`] when no HTTP client can be built (no root certificates for an `https` address, a key that
    /// cannot stand in a header).
    pub fn open(settings: Settings) -> Result<Door, Error> {
        let Settings { provider, base_url, connect_timeout, api_key, key_header, other_headers } = settings;
        // A variable that is set to nothing is no key.
        let api_key = api_key.filter(|key| !key.expose_secret().trim().is_empty());
        let fault = |detail: String| Error::Connect { provider: provider.clone(), detail };
        // Fails only when a provider is installed already, which is just as well.
        let _ = rustls::crypto::ring::default_provider().install_default();

        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.extend(other_headers);
        if let Some(key) = &api_key {
            let (name, prefix) = key_header;
            let mut value = HeaderValue::from_str(&format!("{prefix}{}", key.expose_secret().trim()))
                .map_err(|_| fault("the API key has characters that no HTTP header may carry".into()))?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }

        #[allow(clippy::disallowed_methods, reason = "this is the outbound door to models")]
        let mut builder = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .no_proxy()
            // A reply is bounded as it comes; nothing is unpacked, whatever other crates turn on.
            .no_gzip()
            .no_brotli()
            .no_deflate()
            .no_zstd()
            .connect_timeout(connect_timeout)
            .user_agent(concat!("conclave/", env!("CARGO_PKG_VERSION")));
        if base_url.scheme() == "http" {
            // Nothing to verify: a machine without root certificates can still talk to a server of its own.
            builder = builder.tls_certs_only([]);
        }
        let client = builder.build().map_err(|error| fault(format!("no HTTP client: {}", chain(&error))))?;
        Ok(Door { provider, client, headers, key: api_key })
    }

    /// The provider's name in errors.
    pub fn provider(&self) -> &str {
        &self.provider
    }

    /// Posts the body and reads the answer.
    ///
    /// # Errors
    /// Every network and HTTP variant of [`Error`]; [`Error::Unreadable`] when a 2xx body is not what `R` describes.
    pub async fn post_json<B: Serialize, R: DeserializeOwned>(&self, call: Call<'_, B>) -> Result<Answer<R>, Error> {
        let body = serde_json::to_vec(call.body).map_err(|error| Error::Unfit {
            provider: self.provider.clone(),
            detail: self.clean(&error.to_string()),
        })?;
        let mut request =
            self.client.post(call.url.clone()).headers(self.headers.clone()).timeout(call.timeout).body(body);
        if let Ok(key) = HeaderValue::from_str(call.key) {
            request = request.header("idempotency-key", key);
        }
        let mut response = request.send().await.map_err(|error| self.broken(error, call.timeout))?;
        let status = response.status();
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.transpose() {
            match chunk {
                Ok(chunk) if bytes.len() + chunk.len() > MAX_BODY_BYTES => {
                    return Err(self.unreadable(&format!("more than {MAX_BODY_BYTES} bytes")));
                }
                Ok(chunk) => bytes.extend_from_slice(&chunk),
                // What an error's body says is a courtesy; its status is enough.
                Err(_) if !status.is_success() => break,
                Err(error) => return Err(self.broken(error, call.timeout)),
            }
        }
        let headers = response.headers();
        if !status.is_success() {
            return Err(rejection::read(status.as_u16(), headers, &bytes).into_error(&self.provider, |t| self.clean(t)));
        }
        let body = serde_json::from_slice(&bytes).map_err(|error| {
            let kind = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("no content type");
            self.unreadable(&format!("{error} ({} bytes, {kind})", bytes.len()))
        })?;
        Ok(Answer { headers: headers.clone(), body })
    }

    /// A 2xx answer that is not the documented one.
    pub fn unreadable(&self, detail: &str) -> Error {
        Error::Unreadable { provider: self.provider.clone(), detail: self.clean(detail) }
    }

    /// The text on one short line, without anything that looks like a key.
    pub fn clean(&self, text: &str) -> String {
        rejection::clean(text, self.key.as_ref())
    }

    fn broken(&self, error: reqwest::Error, timeout: Duration) -> Error {
        let provider = self.provider.clone();
        // A connect timeout is both; nothing was sent, so it is the former.
        if error.is_connect() || error.is_builder() {
            return Error::Connect { provider, detail: self.clean(&chain(&error.without_url())) };
        }
        if error.is_timeout() {
            return Error::Timeout { provider, after: timeout };
        }
        Error::Broken { provider, detail: self.clean(&chain(&error.without_url())) }
    }
}

/// An error with its causes, which hyper keeps the interesting part in.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let next = error.to_string();
        if !text.contains(&next) {
            text.push_str(": ");
            text.push_str(&next);
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
#[path = "http_tests.rs"]
mod tests;

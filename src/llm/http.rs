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

use super::event_stream::StreamReader;
use super::{Error, rejection};

/// A stream wraps every few bytes into an event: so many times the size of the whole body.
const EVENT_OVERHEAD: usize = 32;

/// A stream that has begun and then sends nothing for so long has died: providers send signs of life far more often.
const STALL: Duration = Duration::from_secs(20);

/// What every call to one provider has in common.
pub(super) struct Door {
    provider: String,
    client: reqwest::Client,
    headers: HeaderMap,
    key: Option<SecretString>,
    /// How long a stream that has begun may be silent.
    stall: Duration,
}

/// How to build a [`Door`].
pub(super) struct Settings {
    pub provider: String,
    pub base_url: Url,
    pub connect_timeout: Duration,
    pub api_key: Option<SecretString>,
    /// The header that carries the key, and what stands before the key in it.
    pub key_header: (HeaderName, &'static str),
    /// Of the API itself.
    pub fixed_headers: Vec<(HeaderName, HeaderValue)>,
    /// Of the config, such as a gateway's own key.
    pub extra_headers: Vec<(String, SecretString)>,
    pub proxy: Option<SecretString>,
}

/// One call through the door.
pub(super) struct Call<'a, B> {
    pub url: &'a Url,
    /// Sent as `Idempotency-Key`.
    pub key: &'a str,
    pub body: &'a B,
    pub timeout: Duration,
    /// A larger reply is refused.
    pub max_bytes: usize,
}

/// A 2xx answer whose body is JSON of the wanted shape, or a stream of events that come to it.
pub(super) struct Answer<R> {
    pub headers: HeaderMap,
    pub body: R,
}

/// Puts a reply together from the events of a stream.
pub(super) trait Collect: Default {
    type Reply: DeserializeOwned;

    /// Takes one event; true after the last one.
    ///
    /// # Errors
    /// What the provider says went wrong in the middle of it, or why the event cannot be read.
    fn take(&mut self, name: &str, data: &str) -> Result<bool, String>;

    /// The reply; `None` if the stream ended before it was whole.
    fn finish(self) -> Option<Self::Reply>;
}

impl Door {
    /// # Errors
    /// [`Error::Connect`] when no HTTP client can be built (no root certificates for an `https` address, a key that
    /// cannot stand in a header).
    pub fn open(settings: Settings) -> Result<Door, Error> {
        let Settings { provider, base_url, connect_timeout, api_key, key_header, fixed_headers, extra_headers, proxy } =
            settings;
        // A variable that is set to nothing is no key.
        let api_key = api_key.filter(|key| !key.expose_secret().trim().is_empty());
        let fault = |detail: String| Error::Connect { provider: provider.clone(), detail };
        // Fails only when a provider is installed already, which is just as well.
        let _ = rustls::crypto::ring::default_provider().install_default();

        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.extend(fixed_headers);
        for (name, value) in &extra_headers {
            let (Ok(name), Ok(mut value)) = (name.parse::<HeaderName>(), HeaderValue::from_str(value.expose_secret()))
            else {
                return Err(fault(format!("the header {name:?} of the config cannot be sent")));
            };
            value.set_sensitive(true);
            headers.insert(name, value);
        }
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
        if let Some(proxy) = proxy {
            let proxy = reqwest::Proxy::all(proxy.expose_secret())
                .map_err(|_| fault("the proxy of the config has no address that can be used".into()))?;
            builder = builder.proxy(proxy);
        }
        let client = builder.build().map_err(|error| fault(format!("no HTTP client: {}", chain(&error))))?;
        Ok(Door { provider, client, headers, key: api_key, stall: STALL })
    }

    /// The provider's name in errors.
    pub fn provider(&self) -> &str {
        &self.provider
    }

    /// Posts the body and reads the answer, whole or streamed, as the provider sends it.
    ///
    /// # Errors
    /// Every network and HTTP variant of [`Error`]; [`Error::Unreadable`] when a 2xx body is not what `C` makes.
    pub async fn post<B: Serialize, C: Collect>(&self, call: Call<'_, B>) -> Result<Answer<C::Reply>, Error> {
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
        if status.is_success() && is_stream(response.headers()) {
            let headers = response.headers().clone();
            let body = self.collect::<C>(response, call.timeout, call.max_bytes).await?;
            return Ok(Answer { headers, body });
        }
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.transpose() {
            match chunk {
                Ok(chunk) if bytes.len() + chunk.len() > call.max_bytes => {
                    return Err(self.unreadable(&format!("more than {} bytes", call.max_bytes)));
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

    /// Reads a stream to its end. One that broke may be billed all the same.
    async fn collect<C: Collect>(
        &self,
        mut response: reqwest::Response,
        timeout: Duration,
        max_bytes: usize,
    ) -> Result<C::Reply, Error> {
        let broke = |detail: &str| Error::Broken { provider: self.provider.clone(), detail: self.clean(detail) };
        let (mut reader, mut reply, mut read, mut begun) = (StreamReader::default(), C::default(), 0, false);
        loop {
            // Before its first words a model may think as long as the call may take.
            let patience = if begun { self.stall.min(timeout) } else { timeout };
            let piece = match tokio::time::timeout(patience, response.chunk()).await {
                Err(_) => return Err(broke(&format!("the stream fell silent for {patience:?}"))),
                Ok(Err(error)) => return Err(self.broken(error, timeout)),
                Ok(Ok(None)) => break,
                Ok(Ok(Some(piece))) => piece,
            };
            read += piece.len();
            if read > max_bytes.saturating_mul(EVENT_OVERHEAD) {
                return Err(self.unreadable("the stream is longer than the output limit allows"));
            }
            for event in reader.read(&piece).map_err(|error| self.unreadable(&error.to_string()))? {
                begun = true;
                // What it says is the provider's: for the journal, and for no client.
                if reply.take(&event.name, &event.data).map_err(|detail| self.unreadable(&detail))? {
                    return reply.finish().ok_or_else(|| self.unreadable("the stream had no reply in it"));
                }
            }
        }
        reply.finish().ok_or_else(|| broke("the stream ended early"))
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

/// What a whole stream comes to.
#[cfg(test)]
pub(super) fn collected<C: Collect>(stream: &str) -> Result<Option<C::Reply>, String> {
    let mut reply = C::default();
    for event in StreamReader::default().read(stream.as_bytes()).map_err(|error| error.to_string())? {
        if reply.take(&event.name, &event.data)? {
            break;
        }
    }
    Ok(reply.finish())
}

fn is_stream(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("text/event-stream"))
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

//! The HTTP client for models: one POST, one answer, every failure named.
//!
//! It knows HTTP and nothing of any provider's vocabulary. It makes one attempt, follows no redirect, uses no proxy of
//! the environment, unpacks nothing, and never lets an API key into an error.

mod connect;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use base64::Engine as _;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{
    ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, USER_AGENT,
};
use hyper::{Request, Response, Uri};
use hyper_util::client::legacy::connect::capture_connection;
use secrecy::{ExposeSecret, SecretString};
use serde::Serialize;
use serde::de::DeserializeOwned;
use url::Url;

use super::sse::StreamReader;
use super::{Error, error_body};

/// A stream wraps every few bytes into an event: so many times the size of the whole body.
const EVENT_OVERHEAD: usize = 32;

/// A stream that has begun and then sends nothing for so long has died: providers send signs of life far more often.
const STALL: Duration = Duration::from_secs(20);

/// A provider sends at most a few interim responses (`100 Continue`, `103 Early Hints`) before its answer. One that
/// sends them without end would keep a processor busy until the deadline.
const MAX_INTERIM_RESPONSES: u32 = 100;

/// What every call to one provider has in common.
pub(super) struct HttpClient {
    provider: String,
    client: connect::PooledClient,
    headers: HeaderMap,
    key: Option<SecretString>,
    /// How long a stream that has begun may be silent.
    stall: Duration,
}

/// How to build an [`HttpClient`].
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

/// One call.
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

impl HttpClient {
    /// # Errors
    /// [`Error::Connect`] when no HTTP client can be built (no root certificates for an `https` address, a key that
    /// cannot stand in a header).
    pub fn new(settings: Settings) -> Result<HttpClient, Error> {
        let Settings {
            provider,
            base_url,
            connect_timeout,
            api_key,
            key_header,
            fixed_headers,
            extra_headers,
            proxy,
        } = settings;
        // A variable that is set to nothing is no key.
        let api_key = api_key.filter(|key| !key.expose_secret().trim().is_empty());
        let fault = |detail: String| Error::Connect {
            provider: provider.clone(),
            detail,
        };
        // Fails only when a provider is installed already, which is just as well.
        let _ = rustls::crypto::ring::default_provider().install_default();

        let mut headers = HeaderMap::new();
        headers.extend(basic_authorization(&base_url).map(|value| (AUTHORIZATION, value)));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("*/*"));
        headers.insert(
            USER_AGENT,
            HeaderValue::from_static(concat!("conclave/", env!("CARGO_PKG_VERSION"))),
        );
        headers.extend(fixed_headers);
        for (name, value) in &extra_headers {
            let (Ok(name), Ok(mut value)) = (
                name.parse::<HeaderName>(),
                HeaderValue::from_str(value.expose_secret()),
            ) else {
                return Err(fault(format!(
                    "the header {name:?} of the config cannot be sent"
                )));
            };
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        if let Some(key) = &api_key {
            let (name, prefix) = key_header;
            let mut value =
                HeaderValue::from_str(&format!("{prefix}{}", key.expose_secret().trim())).map_err(
                    |_| fault("the API key has characters that no HTTP header may carry".into()),
                )?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }

        let base: Uri = base_url
            .as_str()
            .parse()
            .map_err(|error| fault(format!("the address cannot be used: {error}")))?;
        let proxy = proxy.as_ref().map(ExposeSecret::expose_secret);
        let route = connect::route(&base, proxy, connect_timeout).map_err(fault)?;
        if let Some(value) = route.proxy_authorization {
            headers.insert(connect::FORWARD_AUTHORIZATION, value);
        }
        Ok(HttpClient {
            provider,
            client: route.client,
            headers,
            key: api_key,
            stall: STALL,
        })
    }

    /// The provider's name in errors.
    pub fn provider(&self) -> &str {
        &self.provider
    }

    /// Posts the body and reads the answer, whole or streamed, as the provider sends it.
    ///
    /// # Errors
    /// Every network and HTTP variant of [`Error`]; [`Error::Unreadable`] when a 2xx body is not what `C` makes.
    pub async fn post<B: Serialize, C: Collect>(
        &self,
        call: Call<'_, B>,
    ) -> Result<Answer<C::Reply>, Error> {
        let timeout = call.timeout;
        tokio::time::timeout(timeout, self.exchange::<B, C>(call))
            .await
            .unwrap_or_else(|_| {
                Err(Error::Timeout {
                    provider: self.provider.clone(),
                    after: timeout,
                })
            })
    }

    async fn exchange<B: Serialize, C: Collect>(
        &self,
        call: Call<'_, B>,
    ) -> Result<Answer<C::Reply>, Error> {
        let (head, mut body) = self.send(&call).await?.into_parts();
        if head.status.is_success() && is_stream(&head.headers) {
            let body = self
                .collect::<C>(body, call.timeout, call.max_bytes)
                .await?;
            return Ok(Answer {
                headers: head.headers,
                body,
            });
        }
        let mut bytes = Vec::new();
        while let Some(piece) = next(&mut body).await {
            match piece {
                Ok(chunk) if bytes.len() + chunk.len() > call.max_bytes => {
                    return Err(self.unreadable(&format!("more than {} bytes", call.max_bytes)));
                }
                Ok(chunk) => bytes.extend_from_slice(&chunk),
                // What an error's body says is a courtesy; its status is enough.
                Err(_) if !head.status.is_success() => break,
                Err(error) => return Err(self.broken(&error)),
            }
        }
        let headers = head.headers;
        if !head.status.is_success() {
            let refusal = error_body::read(head.status.as_u16(), &headers, &bytes);
            return Err(refusal.into_error(&self.provider, |text| self.clean(text)));
        }
        let body = serde_json::from_slice(&bytes).map_err(|error| {
            let kind = headers
                .get(CONTENT_TYPE)
                .and_then(|value| value.to_str().ok())
                .unwrap_or("no content type");
            self.unreadable(&format!("{error} ({} bytes, {kind})", bytes.len()))
        })?;
        Ok(Answer { headers, body })
    }

    /// Sends the request and waits for the head of the answer.
    async fn send<B: Serialize>(&self, call: &Call<'_, B>) -> Result<Response<Incoming>, Error> {
        let provider = || self.provider.clone();
        let unfit = |detail: String| Error::Unfit {
            provider: provider(),
            detail: self.clean(&detail),
        };
        let body = serde_json::to_vec(call.body).map_err(|error| unfit(error.to_string()))?;
        let mut request = Request::post(without_password(call.url).as_str())
            .body(Full::new(Bytes::from(body)))
            .map_err(|error| unfit(error.to_string()))?;
        request.headers_mut().extend(self.headers.clone());
        if let Ok(key) = HeaderValue::from_str(call.key) {
            request.headers_mut().insert("idempotency-key", key);
        }
        let flooded = refuse_floods(&mut request);
        tokio::select! {
            // The connection ends with the flood: its cause is the one to name.
            biased;
            () = flooded.notified() => Err(Error::Broken {
                provider: provider(),
                detail: format!("more than {MAX_INTERIM_RESPONSES} interim responses (1xx) before the answer"),
            }),
            response = self.client.request(request) => response.map_err(|error| {
                if error.is_connect() {
                    return Error::Connect { provider: provider(), detail: self.clean(&chain(&error)) };
                }
                self.broken(&error)
            }),
        }
    }

    /// Reads a stream to its end. One that broke may be billed all the same.
    async fn collect<C: Collect>(
        &self,
        mut body: Incoming,
        timeout: Duration,
        max_bytes: usize,
    ) -> Result<C::Reply, Error> {
        let broke = |detail: &str| Error::Broken {
            provider: self.provider.clone(),
            detail: self.clean(detail),
        };
        let (mut reader, mut reply, mut read, mut begun) =
            (StreamReader::default(), C::default(), 0, false);
        loop {
            // Before its first words a model may think as long as the call may take.
            let patience = if begun {
                self.stall.min(timeout)
            } else {
                timeout
            };
            let piece = match tokio::time::timeout(patience, next(&mut body)).await {
                Err(_) => return Err(broke(&format!("the stream fell silent for {patience:?}"))),
                Ok(Some(Err(error))) => return Err(self.broken(&error)),
                Ok(None) => break,
                Ok(Some(Ok(piece))) => piece,
            };
            read += piece.len();
            if read > max_bytes.saturating_mul(EVENT_OVERHEAD) {
                return Err(self.unreadable("the stream is longer than the output limit allows"));
            }
            for event in reader
                .read(&piece)
                .map_err(|error| self.unreadable(&error.to_string()))?
            {
                begun = true;
                // What it says is the provider's: for the journal, and for no client.
                if reply
                    .take(&event.name, &event.data)
                    .map_err(|detail| self.unreadable(&detail))?
                {
                    return reply
                        .finish()
                        .ok_or_else(|| self.unreadable("the stream had no reply in it"));
                }
            }
        }
        reply
            .finish()
            .ok_or_else(|| broke("the stream ended early"))
    }

    /// A 2xx answer that is not the documented one.
    pub fn unreadable(&self, detail: &str) -> Error {
        Error::Unreadable {
            provider: self.provider.clone(),
            detail: self.clean(detail),
        }
    }

    /// The text on one short line, without anything that looks like a key.
    pub fn clean(&self, text: &str) -> String {
        error_body::clean(text, self.key.as_ref())
    }

    fn broken(&self, error: &dyn std::error::Error) -> Error {
        Error::Broken {
            provider: self.provider.clone(),
            detail: self.clean(&chain(error)),
        }
    }
}

/// The address without user and password: they go into a header, and hyper logs addresses.
fn without_password(url: &Url) -> Url {
    let mut url = url.clone();
    // Fails for addresses without a host, which have neither.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url
}

/// User and password of an address as a header.
fn basic_authorization(url: &Url) -> Option<HeaderValue> {
    if url.username().is_empty() && url.password().is_none() {
        return None;
    }
    let decoded = |text: &str| {
        percent_encoding::percent_decode_str(text)
            .decode_utf8_lossy()
            .into_owned()
    };
    let pair = format!(
        "{}:{}",
        decoded(url.username()),
        decoded(url.password().unwrap_or_default())
    );
    let encoded = base64::engine::general_purpose::STANDARD.encode(pair);
    let mut value = HeaderValue::from_str(&format!("Basic {encoded}")).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// The next bytes of a body; `None` at its end. Trailers are skipped.
async fn next(body: &mut Incoming) -> Option<Result<Bytes, hyper::Error>> {
    loop {
        match body.frame().await?.map(hyper::body::Frame::into_data) {
            Ok(Ok(bytes)) => return Some(Ok(bytes)),
            Ok(Err(_)) => {}
            Err(error) => return Some(Err(error)),
        }
    }
}

/// Counts the interim responses to a request. Once there are too many, its connection reads no more, and the call is told.
fn refuse_floods<B>(request: &mut Request<B>) -> Arc<tokio::sync::Notify> {
    let flooded = Arc::new(tokio::sync::Notify::new());
    let (signal, seen) = (flooded.clone(), AtomicU32::new(0));
    let connection = capture_connection(request);
    hyper::ext::on_informational(request, move |_| {
        if seen.fetch_add(1, Ordering::Relaxed) == MAX_INTERIM_RESPONSES {
            connect::refuse_to_read(&connection);
            signal.notify_one();
        }
    });
    flooded
}

/// What a whole stream comes to.
#[cfg(test)]
pub(super) fn collected<C: Collect>(stream: &str) -> Result<Option<C::Reply>, String> {
    let mut reply = C::default();
    for event in StreamReader::default()
        .read(stream.as_bytes())
        .map_err(|error| error.to_string())?
    {
        if reply.take(&event.name, &event.data)? {
            break;
        }
    }
    Ok(reply.finish())
}

fn is_stream(headers: &HeaderMap) -> bool {
    let kind = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    kind.split(';')
        .next()
        .is_some_and(|kind| kind.trim().eq_ignore_ascii_case("text/event-stream"))
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
mod tests;

//! The HTTP client for models: one POST, one answer, a named error for every failure.
//!
//! Knows HTTP, but no provider's format. Makes one attempt, follows no redirects, ignores proxies
//! of the environment, decompresses nothing, and never includes an API key in an error.

use std::error::Error as _;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{
    ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, USER_AGENT,
};
use reqwest::redirect::Policy;
use reqwest::{Body, Client, Proxy, Response};
use secrecy::{ExposeSecret, SecretString};
use serde::Serialize;
use serde::de::DeserializeOwned;
use url::Url;

use super::sse::StreamReader;
use super::{ChatReply, ChatRequest, Error, ErrorKind, Fault, error_body, wire_json};
use crate::domain::Provider;

/// Maximum size of a stream as a multiple of the whole body's size, since a stream wraps every few
/// bytes into an event.
const EVENT_OVERHEAD: usize = 32;

/// A stream that has begun counts as dead after this time of silence. Providers send pings far more
/// often.
const STALL: Duration = Duration::from_secs(20);

/// The bytes of most requests, rounded up.
const BODY_BYTES: usize = 16 * 1024;

/// A client for all calls to one provider.
pub(super) struct HttpClient {
    provider: String,
    /// The address of all calls. reqwest sends its user and password in a header.
    url: Url,
    client: Client,
    headers: HeaderMap,
    key: Option<SecretString>,
    /// How long a stream that has begun may be silent.
    stall: Duration,
    has_proxy: bool,
}

/// The header that carries the key, and the prefix of its value.
pub(super) type KeyHeader = (HeaderName, &'static str);

/// Assembles a reply from the events of a stream.
pub(super) trait Collect: Default {
    type Reply: DeserializeOwned;

    /// Adds the data of one event. Returns true after the last one.
    ///
    /// # Errors
    /// Why the stream gives no reply; nothing more is to be read.
    fn take(&mut self, data: &str) -> Result<bool, Fault>;

    /// Returns the reply, or `None` if the stream ended too early.
    fn finish(self) -> Option<Self::Reply>;

    /// Converts a reply, whole or of a stream. Pure.
    ///
    /// # Errors
    /// A status 200 without a reply: the provider's error, if it says one.
    fn convert(reply: Self::Reply) -> Result<ChatReply, Fault>;
}

impl HttpClient {
    /// Creates a client.
    ///
    /// # Errors
    /// [`ErrorKind::Connect`] if no client can be built: there are no root certificates for an `https`
    /// address, or a key contains characters that no header allows.
    pub fn new(
        provider: &Provider,
        connect_timeout: Duration,
        key_header: KeyHeader,
        fixed_headers: HeaderMap,
        endpoint: fn(&Url) -> Url,
    ) -> Result<HttpClient, Error> {
        // An empty environment variable counts as no key.
        let key = provider.api_key.clone();
        let key = key.filter(|key| !key.expose_secret().trim().is_empty());
        let fault = |detail: String| Error::new(&provider.name, ErrorKind::Connect, detail);
        let base = provider.base_url.as_ref();
        let base = base.ok_or_else(|| fault("it has no address".to_owned()))?;
        let proxy = provider.proxy.as_ref().map(ExposeSecret::expose_secret);
        Ok(HttpClient {
            provider: provider.name.clone(),
            url: endpoint(base),
            client: client(base, proxy, connect_timeout).map_err(fault)?,
            headers: headers(provider, key.as_ref(), key_header, fixed_headers).map_err(fault)?,
            key,
            stall: STALL,
            has_proxy: proxy.is_some(),
        })
    }

    /// Posts the body of a request and reads the answer, whole or streamed.
    ///
    /// # Errors
    /// Every network and HTTP kind of [`Error`]; [`ErrorKind::Unreadable`] if a 2xx body has not the
    /// form that `C` expects. Its detail is one line, without anything that looks like a key.
    pub async fn post<C: Collect>(
        &self,
        request: &ChatRequest,
        body: &impl Serialize,
    ) -> Result<ChatReply, Error> {
        let exchange = self.exchange::<C>(request, body);
        let answer = match tokio::time::timeout(request.timeout, exchange).await {
            Ok(answer) => answer,
            Err(_) => Err((ErrorKind::Timeout(request.timeout), String::new())),
        };
        answer.map_err(|(kind, detail)| {
            let detail = error_body::clean(&detail, self.key.as_ref());
            Error::new(&self.provider, kind, detail)
        })
    }

    async fn exchange<C: Collect>(
        &self,
        request: &ChatRequest,
        body: &impl Serialize,
    ) -> Result<ChatReply, Fault> {
        let mut response = self.send(request, body).await?;
        let status = response.status();
        let headers = std::mem::take(response.headers_mut());
        if status.is_success() && is_stream(&headers) {
            return C::convert(self.collect::<C>(response, request).await?);
        }
        let bytes = whole(response, request).await;
        if !status.is_success() {
            // The body of an error is optional; its status is enough.
            let bytes = bytes.unwrap_or_default();
            return Err(error_body::read(status.as_u16(), &headers, &bytes));
        }
        let bytes = bytes?;
        let body = wire_json::read(&bytes).map_err(|error| {
            let kind = header(&headers, CONTENT_TYPE.as_str()).unwrap_or("no content type");
            let coding = header(&headers, CONTENT_ENCODING.as_str());
            let coding = coding.map_or_else(String::new, |it| format!(", compressed as {it}"));
            let detail = format!("{error} ({} bytes, {kind}{coding})", bytes.len());
            (ErrorKind::Unreadable, detail)
        })?;
        C::convert(body)
    }

    /// Sends the request and waits for the head of the answer.
    async fn send(&self, request: &ChatRequest, body: &impl Serialize) -> Result<Response, Fault> {
        let mut json = Vec::with_capacity(BODY_BYTES);
        serde_json::to_writer(&mut json, body)
            .map_err(|error| (ErrorKind::Unfit, error.to_string()))?;
        let mut post = self.client.post(self.url.clone());
        if let Ok(key) = HeaderValue::from_str(&request.key) {
            post = post.header("idempotency-key", key);
        }
        // A body that cannot be cloned is freed once it is sent. Of others, the client keeps a copy
        // for redirects until the answer comes.
        let body = Body::wrap(Full::new(Bytes::from(json)));
        let post = post.headers(self.headers.clone()).body(body);
        post.send().await.map_err(|error| {
            let kind = match () {
                () if error.is_builder() => ErrorKind::Unfit,
                () if error.is_connect() => ErrorKind::Connect,
                () => ErrorKind::Broken,
            };
            let through = match kind {
                ErrorKind::Connect if self.has_proxy => " (through the proxy of the config)",
                _ => "",
            };
            (kind, reason(error) + through)
        })
    }

    /// Reads a stream to its end. The provider may bill a stream that broke off.
    async fn collect<C: Collect>(
        &self,
        mut body: Response,
        request: &ChatRequest,
    ) -> Result<C::Reply, Fault> {
        let timeout = request.timeout;
        let (mut reader, mut reply, mut read, mut begun) =
            (StreamReader::default(), C::default(), 0, false);
        loop {
            // Before the first event, a model may think for as long as the call may take.
            let patience = if begun {
                self.stall.min(timeout)
            } else {
                timeout
            };
            let piece = match tokio::time::timeout(patience, body.chunk()).await {
                Err(_) => {
                    let seconds = patience.as_secs_f64();
                    return Err(broken(format!("the stream fell silent for {seconds:.1} s")));
                }
                Ok(Err(error)) => return Err(broken(reason(error))),
                Ok(Ok(None)) => break,
                Ok(Ok(Some(piece))) => piece,
            };
            read += piece.len();
            if read > request.max_body_bytes().saturating_mul(EVENT_OVERHEAD) {
                return Err(too_long(request, read));
            }
            for event in reader
                .read(&piece)
                .map_err(|error| (ErrorKind::Unreadable, error.to_string()))?
            {
                begun = true;
                if reply.take(&event.data)? {
                    let none = || "the stream had no reply in it".to_owned();
                    let reply = reply.finish();
                    return reply.ok_or_else(|| (ErrorKind::Unreadable, none()));
                }
            }
        }
        let reply = reply.finish();
        reply.ok_or_else(|| broken("the stream ended early".to_owned()))
    }
}

/// Reads the body of an answer to its end.
async fn whole(mut response: Response, request: &ChatRequest) -> Result<Vec<u8>, Fault> {
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|it| broken(reason(it)))? {
        bytes.extend_from_slice(&chunk);
        if bytes.len() > request.max_body_bytes() {
            return Err(too_long(request, bytes.len()));
        }
    }
    Ok(bytes)
}

fn too_long(request: &ChatRequest, bytes: usize) -> Fault {
    let max_tokens = request.max_tokens;
    (ErrorKind::TooLong { bytes, max_tokens }, String::new())
}

fn broken(detail: String) -> Fault {
    (ErrorKind::Broken, detail)
}

/// Returns an address without its user and password.
pub fn without_password(mut url: Url) -> Url {
    // Fails only for addresses without a host, which have no user or password.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url
}

/// Returns a client for calls to `base`, through `proxy` if given.
///
/// # Errors
/// A sentence: there are no root certificates for an `https` address, or the proxy address is
/// invalid.
#[allow(
    clippy::disallowed_methods,
    reason = "one of the two places that send requests to other hosts"
)]
fn client(base: &Url, proxy: Option<&str>, connect_timeout: Duration) -> Result<Client, String> {
    // Fails only if a crypto provider is already installed, which is fine.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = Client::builder()
        .no_proxy()
        .redirect(Policy::none())
        .connect_timeout(connect_timeout);
    let proxy = proxy.map(Url::parse).transpose();
    let unusable = "the proxy of the config has no address that can be used";
    let proxy = proxy.map_err(|_| unusable)?;
    // Without an https address no root certificates are needed, so that a machine without them can
    // still use a local server.
    let is_plain = |url: &Url| url.scheme() == "http";
    if is_plain(base) && proxy.as_ref().is_none_or(is_plain) {
        builder = builder.tls_certs_only([]);
    }
    if let Some(proxy) = proxy {
        builder = builder.proxy(Proxy::all(proxy).map_err(|_| unusable)?);
    }
    let client = builder.build();
    client.map_err(|error| format!("no HTTP client: {}", reason(error)))
}

/// Returns the reply of a complete stream.
#[cfg(test)]
pub(super) fn collected<C: Collect>(stream: &str) -> Result<Option<C::Reply>, Fault> {
    let mut reply = C::default();
    for event in StreamReader::default()
        .read(stream.as_bytes())
        .map_err(|error| (ErrorKind::Unreadable, error.to_string()))?
    {
        if reply.take(&event.data)? {
            break;
        }
    }
    Ok(reply.finish())
}

/// Returns the headers of every request. `fixed` are those that the API requires; those of the
/// config, such as a gateway's own key, override them.
fn headers(
    provider: &Provider,
    key: Option<&SecretString>,
    (name, prefix): KeyHeader,
    fixed: HeaderMap,
) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    // Without it, a server may compress as it likes.
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    headers.insert(
        USER_AGENT,
        HeaderValue::from_static(concat!("conclave/", env!("CARGO_PKG_VERSION"))),
    );
    headers.extend(fixed);
    for (name, value) in &provider.headers {
        let (Ok(name), Ok(mut value)) = (
            name.parse::<HeaderName>(),
            HeaderValue::from_str(value.expose_secret()),
        ) else {
            return Err(format!("the header {name:?} of the config cannot be sent"));
        };
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    if let Some(key) = key {
        let mut value = HeaderValue::from_str(&format!("{prefix}{}", key.expose_secret().trim()))
            .map_err(|_| "the API key has characters that no HTTP header may carry")?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Ok(headers)
}

/// Returns the text of a header.
fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

fn is_stream(headers: &HeaderMap) -> bool {
    let kind = header(headers, CONTENT_TYPE.as_str()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default();
    kind.trim().eq_ignore_ascii_case("text/event-stream")
}

/// Returns the causes of an error, or its own text if it has none. The address is left out, because
/// it may contain a secret.
fn reason(error: reqwest::Error) -> String {
    let error = error.without_url();
    let causes = std::iter::successors(error.source(), |&error| error.source());
    let mut texts: Vec<String> = vec![];
    for cause in causes.map(ToString::to_string) {
        if !texts.iter().any(|text| text.contains(&cause)) {
            texts.push(cause);
        }
    }
    if texts.is_empty() {
        return error.to_string();
    }
    texts.join(": ")
}

#[cfg(test)]
mod tests;

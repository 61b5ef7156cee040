//! Connections to providers: TCP, TLS and the configured proxy.
//!
//! Uses hyper's own client. Higher-level clients hide interim responses (`1xx`), which have to be
//! counted: see [`super::MAX_INTERIM_RESPONSES`].

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::future::BoxFuture;
use http_body_util::Full;
use hyper::Uri;
use hyper::body::Bytes;
use hyper::header::HeaderValue;
use hyper::http::Extensions;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::legacy::connect::{
    CaptureConnection, Connected, Connection, HttpConnector,
};
use hyper_util::client::proxy::matcher::Matcher;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::ClientConfig;
use rustls_platform_verifier::ConfigVerifierExt as _;
use tower::Service;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// A client with a pool of connections to one provider.
pub(super) type PooledClient = Client<Connector, Full<Bytes>>;

/// TCP keep-alive interval, so that a lost provider is noticed before the next call.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Idle connections are closed after this time.
const MAX_IDLE: Duration = Duration::from_secs(90);

/// Read buffer of a connection. The head of an answer must fit; a flood of interim responses is
/// read no further.
const MAX_READ_AHEAD: usize = 64 * 1024;

/// Prepares the connections to `base`, through `proxy` if given. Also returns the
/// `Proxy-Authorization` of requests that a proxy forwards, which are those to an `http` address.
///
/// # Errors
/// A sentence: there are no root certificates for an `https` address, or the proxy address is
/// invalid.
pub(super) fn route(
    base: &Uri,
    proxy: Option<&str>,
    timeout: Duration,
) -> Result<(PooledClient, Option<HeaderValue>), String> {
    let tls = tls_config(is_https(&base.to_string()) || proxy.is_some_and(is_https))?;
    let direct = https(&tls, tcp());
    // The matcher takes user and password from the address, as curl does.
    let intercept = proxy.map(|proxy| Matcher::builder().all(proxy).build().intercept(base));
    let unusable = "the proxy of the config has no address that can be used";
    let (means, proxy_authorization) = match intercept {
        None => (Means::Direct(direct), None),
        Some(None) => return Err(unusable.to_owned()),
        Some(Some(proxy)) if base.scheme_str() == Some("https") => {
            let mut tunnel = Tunnel::new(proxy.uri().clone(), direct);
            if let Some(authorization) = proxy.basic_auth() {
                tunnel = tunnel.with_auth(authorization.clone());
            }
            (Means::Tunnel(https(&tls, tunnel)), None)
        }
        Some(Some(proxy)) => {
            let means = Means::Forward(direct, proxy.uri().clone());
            (means, proxy.basic_auth().cloned())
        }
    };
    let client = Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(MAX_IDLE)
        .http1_max_buf_size(MAX_READ_AHEAD)
        .build(Connector { means, timeout });
    Ok((client, proxy_authorization))
}

fn is_https(uri: &str) -> bool {
    uri.get(..6)
        .is_some_and(|scheme| scheme.eq_ignore_ascii_case("https:"))
}

/// Returns the TLS configuration. Without an `https` address no root certificates are needed, so that
/// a machine without them can still use a local server. All providers share the certificates.
fn tls_config(needed: bool) -> Result<ClientConfig, String> {
    static WITH_CERTIFICATES: OnceLock<Result<ClientConfig, String>> = OnceLock::new();
    if !needed {
        return Ok(ClientConfig::builder()
            .with_root_certificates(rustls::RootCertStore::empty())
            .with_no_client_auth());
    }
    let made = || {
        let config = ClientConfig::with_platform_verifier();
        config.map_err(|error| format!("no HTTP client: {error}"))
    };
    WITH_CERTIFICATES.get_or_init(made).clone()
}

fn tcp() -> HttpConnector {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_keepalive(Some(KEEP_ALIVE));
    tcp
}

fn https<C>(tls: &ClientConfig, inner: C) -> HttpsConnector<C> {
    HttpsConnectorBuilder::new()
        .with_tls_config(tls.clone())
        .https_or_http()
        .enable_http1()
        .wrap_connector(inner)
}

/// Opens a connection within a time limit.
#[derive(Clone)]
pub(super) struct Connector {
    means: Means,
    timeout: Duration,
}

#[derive(Clone)]
enum Means {
    Direct(HttpsConnector<HttpConnector>),
    /// The proxy tunnels bytes to an `https` address (`CONNECT`).
    Tunnel(HttpsConnector<Tunnel<HttpsConnector<HttpConnector>>>),
    /// The proxy forwards requests to an `http` address. Requests name the whole address.
    Forward(HttpsConnector<HttpConnector>, Uri),
}

impl Service<Uri> for Connector {
    type Response = Stream;
    type Error = Failure;
    type Future = BoxFuture<'static, Result<Stream, Failure>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        // Each call clones a connector that is always ready.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, target: Uri) -> Self::Future {
        let Connector { means, timeout } = self.clone();
        Box::pin(async move {
            let stream = async {
                Ok::<_, Failure>(match means {
                    Means::Direct(mut to) => Stream::new(to.call(target).await?, false),
                    Means::Tunnel(mut to) => Stream::new(to.call(target).await?, false),
                    Means::Forward(mut to, proxy) => Stream::new(to.call(proxy).await?, true),
                })
            };
            tokio::time::timeout(timeout, stream)
                .await
                .map_err(|_| format!("no connection within {timeout:?}"))?
        })
    }
}

/// True if further reads from the connection are refused.
#[derive(Clone, Default)]
struct Refused(Arc<AtomicBool>);

/// Makes the next read of the connection fail. hyper reads as long as bytes arrive, so a flood
/// would keep a thread busy.
pub(super) fn refuse_to_read(connection: &CaptureConnection) {
    let mut extensions = Extensions::new();
    if let Some(connected) = connection.connection_metadata().as_ref() {
        connected.get_extras(&mut extensions);
    }
    if let Some(refused) = extensions.get::<Refused>() {
        refused.0.store(true, Ordering::Relaxed);
    }
}

trait Io: Read + Write + Connection + Send + Unpin {}

impl<T: Read + Write + Connection + Send + Unpin> Io for T {}

/// An open connection, direct or through a proxy.
pub(super) struct Stream {
    io: Box<dyn Io>,
    refused: Refused,
    /// True if requests have to name the whole address.
    forwarded: bool,
}

impl Stream {
    fn new(io: impl Io + 'static, forwarded: bool) -> Stream {
        Stream {
            io: Box::new(io),
            refused: Refused::default(),
            forwarded,
        }
    }
}

impl Connection for Stream {
    fn connected(&self) -> Connected {
        self.io
            .connected()
            .proxy(self.forwarded)
            .extra(self.refused.clone())
    }
}

impl Read for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        if self.refused.0.load(Ordering::Relaxed) {
            return Poll::Ready(Err(io::Error::other("the connection reads no more")));
        }
        Pin::new(&mut self.io).poll_read(cx, buffer)
    }
}

impl Write for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(cx, buffers)
    }
}

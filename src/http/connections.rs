//! Limits the number of connections and the time that a slow client may take. Until its request is
//! complete, a client takes up only its socket.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{ConnectInfo, Request};
use axum::{Router, extract};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio_io_timeout::TimeoutStream;
use tower::ServiceExt as _;

use super::router;
use super::unsent::{MAX_UNSENT_BYTES, Unsent};
use crate::app::App;

/// The size of the read buffer of a connection. The headers of a request must fit into it.
const MAX_BUFFERED: usize = 64 * 1024;

/// A client that reads nothing of its response for this time is disconnected.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

/// How long to wait after a failed accept, such as when there are no free file descriptors.
const GRACE_PERIOD: Duration = Duration::from_secs(1);

/// Serves until `stop` resolves. Connections that are open then may finish their request. An error
/// of a connection ends only that connection.
pub async fn serve(
    app: Arc<App>,
    listener: TcpListener,
    stop: impl Future<Output = ()> + Send + 'static,
) {
    let limits = &app.config.policy.limits;
    let room = Arc::new(Semaphore::new(
        limits.connections.min(Semaphore::MAX_PERMITS),
    ));
    let mut protocol = http1::Builder::new();
    protocol
        .timer(TokioTimer::new())
        // A client that has sent its request may close its sending side, and a run that it asked for
        // goes on without it.
        .half_close(true)
        .header_read_timeout(Duration::from_secs(limits.header_seconds))
        .max_buf_size(MAX_BUFFERED);
    let router = router(app);
    let unsent = Unsent::new(MAX_UNSENT_BYTES);
    let graceful = GracefulShutdown::new();
    let mut open = JoinSet::new();
    tokio::pin!(stop);
    loop {
        let (permit, stream, peer) = tokio::select! {
            biased;
            () = &mut stop => break,
            accepted = accept(&listener, &room) => accepted,
        };
        while open.try_join_next().is_some() {}
        let (protocol, router, watcher) = (protocol.clone(), router.clone(), graceful.watcher());
        let unsent = unsent.clone();
        open.spawn(async move {
            serve_connection(&protocol, (router, unsent), watcher, stream, peer).await;
            drop(permit);
        });
    }
    drop(listener);
    graceful.shutdown().await;
    while open.join_next().await.is_some() {}
}

/// Accepts the next client when fewer than the allowed connections are open. Until then clients
/// wait in the listener's queue.
async fn accept(
    listener: &TcpListener,
    room: &Arc<Semaphore>,
) -> (OwnedSemaphorePermit, TcpStream, SocketAddr) {
    loop {
        let Ok(permit) = Arc::clone(room).acquire_owned().await else {
            return std::future::pending().await;
        };
        match listener.accept().await {
            Ok((stream, peer)) => return (permit, stream, peer),
            Err(error) if is_the_clients(&error) => {}
            Err(error) => {
                tracing::error!(%error, "accepting a connection failed");
                tokio::time::sleep(GRACE_PERIOD).await;
            }
        }
    }
}

fn is_the_clients(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(
        error.kind(),
        ConnectionAborted | ConnectionRefused | ConnectionReset
    )
}

/// Serves one connection until it closes.
async fn serve_connection(
    protocol: &http1::Builder,
    (router, unsent): (Router, Unsent),
    watcher: Watcher,
    stream: TcpStream,
    peer: SocketAddr,
) {
    // Events are sent when they happen, not when a packet is full.
    let _ = stream.set_nodelay(true);
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(WRITE_TIMEOUT));
    let service = router.map_request(move |mut request: extract::Request<Incoming>| -> Request {
        request.extensions_mut().insert(ConnectInfo(peer));
        request.map(Body::new)
    });
    let service = service.map_response(move |response| unsent.count(response));
    let connection = protocol.serve_connection(
        TokioIo::new(Box::pin(stream)),
        TowerToHyperService::new(service),
    );
    if let Err(error) = watcher.watch(connection).await {
        tracing::trace!(%error, "a connection ended badly");
    }
}

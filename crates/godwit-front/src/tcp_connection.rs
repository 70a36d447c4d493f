//! One TCP connection of HTTP/1.1 or HTTP/2, from its first request to its end.
//!
//! How it ends in good order is told in [`super::tcp`].

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use godwit_base::RefillingBudget;
use godwit_body::{BoxError, IdleConnections, MinimumRate, Progress, ProgressLimits, ProgressWatch, Verdict};
use godwit_report::record::Protocol;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio::sync::watch;
use tokio::time::Instant;

use super::access::{GaveUp, Observer};
use super::client::tcp::Meter;
use super::client::{Client, Facts};
use super::goaway::GoawayWait;
use super::settings::Limits;
use super::tcp_stream::ClientStream;

/// For TLS to be agreed on, and for the last PING to be answered.
pub(super) const HANDSHAKE: Duration = Duration::from_secs(10);
const PING: Duration = Duration::from_secs(30);
/// At the end: how long a connection is kept for a request that may be on its way.
const LAST_REQUEST: Duration = Duration::from_millis(500);
/// The same where nobody waits for the end.
const AT_LEISURE: Duration = Duration::from_secs(5);
/// What an HTTP/2 stream keeps for a client that does not take it.
const STREAM_BUFFER: usize = 64 << 10;

/// To be asked when the server is to finish.
pub(super) fn time_for_last_request(passed_on: &AtomicBool) -> Duration {
    if passed_on.load(Ordering::Relaxed) { AT_LEISURE } else { LAST_REQUEST }
}

/// What is known of the client from here on.
pub(super) fn client(
    socket: &ClientStream,
    protocol: Protocol,
    tls_resumed: Option<bool>,
    observer: &Observer,
    limits: &Limits,
) -> io::Result<Arc<Client>> {
    let (remote, local) = (socket.stream()?.peer_addr()?, socket.stream()?.local_addr()?);
    let facts = Facts { remote, local, protocol, tls_resumed };
    let may_abandon =
        RefillingBudget::new(limits.abandoned_requests.into(), limits.abandoned_per_second.into());
    Ok(Client::tcp(facts, socket.meter()?, observer.metrics(), may_abandon))
}

/// More fields than any client sends; the service has a limit of its own below this.
const MOST_HEADERS: usize = 256;

/// Plain and encrypted connections alike are HTTP/1.1 from here on.
pub(super) fn http1_builder(limits: &Limits) -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(limits.idle_timeout)
        .max_headers(MOST_HEADERS)
        .max_buf_size(limits.header_size as usize);
    builder
}

pub(super) fn http2_builder(limits: &Limits) -> http2::Builder<TokioExecutor> {
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .enable_connect_protocol()
        .max_concurrent_streams(limits.requests_per_connection)
        .max_header_list_size(limits.header_size)
        .max_send_buf_size(STREAM_BUFFER)
        .keep_alive_interval(PING)
        .keep_alive_timeout(PING);
    builder
}

/// A connection that hyper serves.
pub(super) trait Serving: Future<Output = hyper::Result<()>> {
    /// Whether the client can be told that no further request is taken, so that none is lost.
    const HAS_GOAWAY: bool;

    fn graceful_shutdown(self: Pin<&mut Self>);
}

impl<I, S, B, E> Serving for http2::Connection<I, S, E>
where
    S: hyper::service::HttpService<Incoming, ResBody = B>,
    S::Error: Into<BoxError>,
    I: hyper::rt::Read + hyper::rt::Write + Unpin,
    B: hyper::body::Body<Data = Bytes> + 'static,
    B::Error: Into<BoxError>,
    E: hyper::rt::bounds::Http2ServerConnExec<S::Future, B>,
{
    const HAS_GOAWAY: bool = true;

    fn graceful_shutdown(self: Pin<&mut Self>) {
        http2::Connection::graceful_shutdown(self);
    }
}

impl<I, S, B> Serving for http1::UpgradeableConnection<I, S>
where
    S: hyper::service::HttpService<Incoming, ResBody = B>,
    S::Error: Into<BoxError>,
    I: hyper::rt::Read + hyper::rt::Write + Unpin + Send + 'static,
    B: hyper::body::Body<Data = Bytes> + 'static,
    B::Error: Into<BoxError>,
{
    const HAS_GOAWAY: bool = false;

    fn graceful_shutdown(self: Pin<&mut Self>) {
        http1::UpgradeableConnection::graceful_shutdown(self);
    }
}

/// Sees a connection to its end: drops clients that are slow or give up too much, closes idle ones, and ends in good
/// order.
pub(super) struct ConnectionGuard<'a> {
    pub(super) pace: Arc<Progress>,
    pub(super) meter: Arc<Meter>,
    /// Set when answers over HTTP/1.1 are to be the last of their connection.
    pub(super) leaving: Arc<AtomicBool>,
    pub(super) limits: &'a Limits,
    /// Where it counts while nothing is asked for.
    pub(super) idle: &'a IdleConnections,
    pub(super) stop: watch::Receiver<bool>,
    /// Another process serves by now, when the server is to finish.
    pub(super) passed_on: &'a AtomicBool,
}

impl ConnectionGuard<'_> {
    pub(super) async fn keep<C: Serving>(
        self,
        client: &Client,
        mut connection: Pin<&mut C>,
    ) -> Result<(), BoxError> {
        let ConnectionGuard { pace, meter, leaving, limits, idle, mut stop, passed_on } = self;
        pace.expect_head();
        // HTTP/2's frames between requests are not the beginning of a head.
        let Limits { header_timeout, idle_timeout, send_timeout, minimum_rate, .. } = *limits;
        let rate = MinimumRate::new(send_timeout, minimum_rate);
        let watch = ProgressWatch::new(&ProgressLimits::new(rate, header_timeout, idle_timeout));
        let mut watch = if C::HAS_GOAWAY { watch.without_heads() } else { watch };
        // Since when the client knows that it has been idle for too long.
        let mut idle_told: Option<Instant> = None;
        // It has been idle all the time if no request has ended meanwhile.
        let mut place = idle.place(client.remote().ip());
        // There is one GOAWAY and one PING in the life of a connection.
        let mut asked = false;
        let mut looks = tokio::time::interval(watch.interval());
        // Set when the server is to finish: when to look whether the connection is still needed.
        let mut leave_at: Option<Instant> = None;
        let (before, mut told) = (pace.bytes_read(), false);
        let mut goaway: Option<GoawayWait> = None;
        loop {
            let leaves = tokio::select! {
                // What has come is read before it is asked whether anything has.
                biased;
                outcome = connection.as_mut() => return outcome.map_err(Into::into),
                // The library has no word for it but the end.
                () = client.abandons_too_much() => {
                    pace.abort();
                    return Err(GaveUp::Abandoned.into());
                }
                _ = stop.wait_for(|stop| *stop), if leave_at.is_none() => true,
                () = place.told_to_go(), if leave_at.is_none() => {
                    place.gives_way(pace.is_at_rest().then(|| pace.responses_over()))
                }
                () = sleep_until(leave_at), if leave_at.is_some() => {
                    leave_at = Some(Instant::now() + LAST_REQUEST);
                    if goaway.as_mut().is_some_and(|goaway| goaway.is_unanswered(&pace, &meter)) {
                        return Err("the client has gone without a word".into());
                    }
                    // Who has said nothing has nothing on its way; who has knows of the GOAWAY soon.
                    let needed = if C::HAS_GOAWAY { pace.bytes_read() != before } else { pace.is_head_arriving() };
                    if needed || !pace.is_at_rest() {
                        continue;
                    }
                    if C::HAS_GOAWAY || told {
                        return Ok(());
                    }
                    // A connection on which there has been a request ends by this.
                    connection.as_mut().graceful_shutdown();
                    told = true;
                    false
                }
                now = looks.tick() => {
                    match watch.look(&pace, now.into_std()) {
                        Verdict::Fine => idle_told = None,
                        Verdict::Idle if C::HAS_GOAWAY => match idle_told {
                            None => {
                                connection.as_mut().graceful_shutdown();
                                asked = true;
                                idle_told = Some(now);
                            }
                            // A client that leaves the last PING unanswered would stay for ever.
                            Some(told) if now.saturating_duration_since(told) >= HANDSHAKE => return Ok(()),
                            Some(_) => {}
                        },
                        // HTTP/1.1 has a time limit of its own for the next head.
                        Verdict::Idle => {}
                        Verdict::HeadLate => return Err(GaveUp::HeadLate.into()),
                        Verdict::TooSlow => {
                            pace.abort();
                            return Err(GaveUp::TooSlow.into());
                        }
                    }
                    place.see(pace.is_idle().then(|| pace.responses_over()));
                    false
                }
            };
            if leaves {
                leaving.store(true, Ordering::Relaxed);
                let mut patience = time_for_last_request(passed_on);
                if C::HAS_GOAWAY {
                    connection.as_mut().graceful_shutdown();
                    goaway = (!asked).then(|| GoawayWait::new(&pace, &meter));
                    patience = LAST_REQUEST;
                }
                leave_at = Some(Instant::now() + patience);
            }
        }
    }
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

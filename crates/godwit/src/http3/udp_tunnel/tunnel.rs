//! One end of a tunnel: payloads in datagrams and capsules, which look the same from here.
//!
//! A task reads the exchange to its end. Both queues that it and the application fill have a cap, beyond which payloads get
//! lost, as they may.

use super::target::UdpTarget;
use crate::http3::body::Body;
use crate::http3::client::Client;
use crate::http3::datagram_flow::DatagramFlow;
use crate::http3::error::Error;
use crate::http3::{BoxError, Protocol};
use bytes::{Buf as _, Bytes};
use godwit_http3::DatagramError;
use godwit_http3::capsule::{Capsule, CapsuleReader};
use http::{HeaderName, HeaderValue, Method, Request, Response};
use std::fmt;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

/// The name in `:protocol`.
pub(super) const PROTOCOL: &str = "connect-udp";

/// Says that the exchange carries capsules (RFC 9297 section 3.4).
const CAPSULE_PROTOCOL: HeaderName = HeaderName::from_static("capsule-protocol");

/// Capsules that wait at most, in each direction.
const CAPSULES: usize = 64;

/// The largest payload of UDP, in bytes.
const MAX_PAYLOAD: usize = 65_527;

/// Payloads of so many bytes pass in any case: QUIC does not work on a path where they do not (RFC 9000 section 14).
const LEAST_PATH: usize = 1200;

/// The context of UDP payloads in front of each (RFC 9298 section 5).
const UDP_PAYLOADS: u8 = 0;

/// One end of a tunnel for UDP payloads. It ends when it is dropped.
#[derive(Debug)]
pub struct UdpTunnel {
    flow: DatagramFlow,
    /// Capsules that are to be sent, with their datagrams.
    outgoing: mpsc::Sender<Bytes>,
    /// Datagrams that came in capsules, until the exchange ends.
    incoming: Mutex<mpsc::Receiver<Bytes>>,
    reader: AbortHandle,
}

/// Why there is no tunnel.
#[derive(Debug)]
#[non_exhaustive]
pub enum TunnelError {
    /// The proxy answered otherwise.
    Refused(Box<Response<Body>>),
    /// The request failed or could not be sent, or the proxy takes no datagrams.
    Failed(Error),
}

impl fmt::Display for TunnelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TunnelError::Refused(response) => {
                write!(f, "the proxy refused the tunnel with status {}", response.status())
            }
            TunnelError::Failed(error) => write!(f, "no tunnel: {error}"),
        }
    }
}

impl std::error::Error for TunnelError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        if let TunnelError::Failed(error) = self { Some(error) } else { None }
    }
}

impl UdpTunnel {
    /// Asks a proxy for a tunnel to `target`, by the default template of its paths. `proxy` is the proxy's authority, as in
    /// a URI. The client must take datagrams ([`Config::enable_datagrams`](crate::http3::Config)).
    ///
    /// # Errors
    /// If the proxy refuses it, or the request fails.
    pub async fn connect(client: &Client, proxy: &str, target: &UdpTarget) -> Result<Self, TunnelError> {
        let uri = format!("https://{proxy}{}", target.to_path());
        let request = Request::get(uri).body(());
        let request = request.map_err(|error| TunnelError::Failed(Error::body(error.into())))?;
        Self::request(client, request).await
    }

    /// The same for a proxy with a template of its own: the request's URI says all, its method does not matter.
    ///
    /// # Errors
    /// If the proxy refuses it, or the request fails.
    pub async fn request(client: &Client, request: Request<()>) -> Result<Self, TunnelError> {
        let (outgoing, said) = mpsc::channel(CAPSULES);
        let (mut parts, ()) = request.into_parts();
        parts.method = Method::CONNECT;
        if let Some(protocol) = Protocol::new(PROTOCOL) {
            parts.extensions.insert(protocol);
        }
        parts.headers.insert(CAPSULE_PROTOCOL, HeaderValue::from_static("?1"));
        let response = client.send(Request::from_parts(parts, Body::said(said))).await;
        let response = response.map_err(TunnelError::Failed)?;
        if !response.status().is_success() {
            return Err(TunnelError::Refused(Box::new(response)));
        }
        let flow = response.extensions().get::<DatagramFlow>().cloned();
        let flow = flow.ok_or_else(|| TunnelError::Failed(Error::cancelled()))?;
        Ok(Self::begin(flow, outgoing, response.into_body()))
    }

    /// The proxy's end of the tunnel that a request asks for, and the response that grants it, whose body lasts as long as the
    /// tunnel; `None` if there can be no datagrams.
    pub(super) fn accept<B>(request: Request<B>) -> Option<(UdpTunnel, Response<Body>)>
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let flow = request.extensions().get::<DatagramFlow>().cloned()?;
        let (outgoing, said) = mpsc::channel(CAPSULES);
        let mut response = Response::new(Body::said(said));
        response.headers_mut().insert(CAPSULE_PROTOCOL, HeaderValue::from_static("?1"));
        Some((Self::begin(flow, outgoing, request.into_body()), response))
    }

    fn begin<B>(flow: DatagramFlow, outgoing: mpsc::Sender<Bytes>, body: B) -> Self
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let (arrived, incoming) = mpsc::channel(CAPSULES);
        let reader = tokio::spawn(read(body, arrived)).abort_handle();
        UdpTunnel { flow, outgoing, incoming: Mutex::new(incoming), reader }
    }

    /// The largest payload that passes as a datagram now, in bytes; `None` if the peer takes none.
    pub fn max_datagram_len(&self) -> Option<usize> {
        self.flow.max_len().and_then(|len| len.checked_sub(1))
    }

    /// Sends a payload. It may get lost. One of more than 1200 bytes that is too large for a datagram is not sent where the
    /// peer takes datagrams: the payload's ends are to learn what the path has room for.
    ///
    /// # Errors
    /// If the tunnel is over, too many payloads wait, or it is too large.
    pub fn send(&self, payload: &[u8]) -> Result<(), DatagramError> {
        if payload.len() > MAX_PAYLOAD {
            return Err(DatagramError::TooLarge { max: MAX_PAYLOAD });
        }
        let datagram = [&[UDP_PAYLOADS], payload].concat();
        match self.flow.send(&datagram) {
            Err(DatagramError::TooLarge { .. }) if payload.len() > LEAST_PATH => {
                Err(DatagramError::TooLarge {
                    max: self.max_datagram_len().unwrap_or(LEAST_PATH).max(LEAST_PATH),
                })
            }
            Err(DatagramError::TooLarge { .. } | DatagramError::Unsupported) => {
                let capsule = Capsule::Datagram(datagram.into()).to_bytes();
                self.outgoing.try_send(capsule).map_err(|error| match error {
                    mpsc::error::TrySendError::Full(_) => DatagramError::Full,
                    mpsc::error::TrySendError::Closed(_) => DatagramError::Closed,
                })
            }
            sent => sent,
        }
    }

    /// Waits for the next payload. Of those that nobody fetches some are dropped.
    ///
    /// Nothing is lost if this is dropped before it is ready.
    ///
    /// # Errors
    /// If the tunnel is over.
    pub async fn receive(&self) -> Result<Bytes, Error> {
        poll_fn(|cx| self.poll_receive(cx)).await
    }

    /// As [`UdpTunnel::receive`]; if there is none, the task is woken when there is one.
    ///
    /// # Errors
    /// If the tunnel is over.
    pub fn poll_receive(&self, cx: &mut Context<'_>) -> Poll<Result<Bytes, Error>> {
        loop {
            let capsules = self.incoming().poll_recv(cx);
            let mut datagram = match capsules {
                Poll::Ready(Some(datagram)) => datagram,
                Poll::Ready(None) => return Poll::Ready(Err(Error::cancelled())),
                Poll::Pending => ready!(self.flow.poll_receive(cx))?,
            };
            if take_context(&mut datagram) {
                return Poll::Ready(Ok(datagram));
            }
        }
    }

    /// The next payload, if it has come.
    ///
    /// # Errors
    /// If the tunnel is over.
    pub fn try_receive(&self) -> Result<Option<Bytes>, Error> {
        loop {
            let capsule = self.incoming().try_recv();
            let datagram = match capsule {
                Ok(datagram) => Some(datagram),
                Err(mpsc::error::TryRecvError::Disconnected) => return Err(Error::cancelled()),
                Err(mpsc::error::TryRecvError::Empty) => self.flow.try_receive()?,
            };
            let Some(mut datagram) = datagram else { return Ok(None) };
            if take_context(&mut datagram) {
                return Ok(Some(datagram));
            }
        }
    }

    fn incoming(&self) -> MutexGuard<'_, mpsc::Receiver<Bytes>> {
        // Nothing can panic while it is held.
        self.incoming.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for UdpTunnel {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

/// Takes the context off a datagram. False if it is no payload: other contexts are for extensions, of which none was agreed on.
fn take_context(datagram: &mut Bytes) -> bool {
    datagram.try_get_u8() == Ok(UDP_PAYLOADS) && datagram.len() <= MAX_PAYLOAD
}

/// Reads capsules to the end of the exchange, or of what can be understood of it.
async fn read<B>(body: B, arrived: mpsc::Sender<Bytes>)
where
    B: http_body::Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    let mut body = pin!(body);
    let mut capsules = CapsuleReader::new();
    while let Some(Ok(frame)) = poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
        let mut data = frame.into_data().unwrap_or_default();
        loop {
            match capsules.next(&mut data) {
                Ok(None) => break,
                // Where there is no room, it gets lost.
                Ok(Some(Capsule::Datagram(datagram))) => drop(arrived.try_send(datagram)),
                Ok(Some(_)) => {}
                Err(error) => return tracing::debug!(%error, "a tunnel for UDP ends"),
            }
        }
    }
}

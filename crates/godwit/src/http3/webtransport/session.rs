//! Sessions: how they come about, and what can be done in them.

use super::end::{CAPSULES, Ends, Watcher};
use super::error::{ConnectError, SessionError};
use super::inner::Inner;
use super::streams::{Guard, RecvStream, SendStream};
use crate::http3::body::Body;
use crate::http3::client::Client;
use crate::http3::datagram_flow::DatagramFlow;
use crate::http3::error::Error;
use crate::http3::{BoxError, Protocol};
use bytes::Bytes;
use godwit_http3::capsule::Capsule;
use godwit_http3::webtransport::PROTOCOL;
use godwit_http3::{DatagramError, SendError};
use godwit_wire::{Direction, StreamId};
use http::{HeaderName, HeaderValue, Method, Request, Response};
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::sync::mpsc;

/// What a client of draft 2 says, and its server answers.
const DRAFT02_OFFER: HeaderName = HeaderName::from_static("sec-webtransport-http3-draft02");
const DRAFT02_ANSWER: HeaderName = HeaderName::from_static("sec-webtransport-http3-draft");

/// A WebTransport session: streams in both directions and datagrams, beside others on one HTTP/3 connection.
///
/// Clones are handles of the same session. When the last of them and of its streams is gone, it is closed with code 0. When it
/// is over, however that came, its streams are given up in both directions: what was sent last must have arrived
/// before.
#[derive(Debug, Clone)]
pub struct Session(Arc<Inner>);

impl Session {
    /// Accepts the session that a request asks for. The response is to be sent as it is, perhaps with more fields: its
    /// body lasts as long as the session, which is lost if it is dropped.
    ///
    /// To be called in a tokio runtime.
    ///
    /// # Errors
    /// The request, if it asks for no session, or is over.
    #[expect(clippy::result_large_err, reason = "the request goes back as it came")]
    pub fn accept<B>(request: Request<B>) -> Result<(Session, Response<Body>), Request<B>>
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let asked =
            request.extensions().get::<Protocol>().is_some_and(|protocol| protocol.as_str() == PROTOCOL);
        let flow = request.extensions().get::<DatagramFlow>().filter(|_| asked).cloned();
        let Some((flow, (link, id))) = flow.and_then(|flow| flow.place().map(|place| (flow, place))) else {
            return Err(request);
        };
        if !link.look(|protocol, _| protocol.h3.has_session(id)) {
            return Err(request);
        }
        let (outgoing, said) = mpsc::channel(CAPSULES);
        let mut response = Response::new(Body::said(said));
        if request.headers().contains_key(DRAFT02_OFFER) {
            response.headers_mut().insert(DRAFT02_ANSWER, HeaderValue::from_static("draft02"));
        }
        let ends = Ends::new(link, id, outgoing);
        Ok((Self::begin(ends, flow, request.into_body()), response))
    }

    /// Asks a server for a session. The request's URI says where; its method does not matter. The client must permit
    /// sessions ([`Config::max_webtransport_sessions`](crate::http3::Config), [`Client::connect_with`]).
    ///
    /// # Errors
    /// If the server refuses it or has no WebTransport, or the request fails.
    pub async fn connect(client: &Client, request: Request<()>) -> Result<Session, ConnectError> {
        let (outgoing, said) = mpsc::channel(CAPSULES);
        let (mut parts, ()) = request.into_parts();
        parts.method = Method::CONNECT;
        if let Some(protocol) = Protocol::new(PROTOCOL) {
            parts.extensions.insert(protocol);
        }
        parts.headers.entry(DRAFT02_OFFER).or_insert(HeaderValue::from_static("1"));
        let response = client.send(Request::from_parts(parts, Body::said(said))).await;
        let response = response.map_err(ConnectError::Failed)?;
        if !response.status().is_success() {
            return Err(ConnectError::Refused(Box::new(response)));
        }
        let flow = response.extensions().get::<DatagramFlow>().cloned();
        let Some((flow, (link, id))) = flow.and_then(|flow| flow.place().map(|place| (flow, place))) else {
            return Err(ConnectError::Failed(Error::cancelled()));
        };
        Ok(Self::begin(Ends::new(link, id, outgoing), flow, response.into_body()))
    }

    fn begin<B>(ends: Arc<Ends>, datagrams: DatagramFlow, body: B) -> Self
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        tokio::spawn(Arc::clone(&ends).listen(body));
        Session(Arc::new(Inner { ends, datagrams }))
    }

    /// Waits for the next bidirectional stream that the peer opens.
    ///
    /// Nothing is lost if this is dropped before it is ready.
    ///
    /// # Errors
    /// If the session is over.
    pub async fn accept_bi(&self) -> Result<(SendStream, RecvStream), SessionError> {
        let guard = self.accept_stream(Direction::Bidirectional).await?;
        Ok(guard.both())
    }

    /// Waits for the next unidirectional stream that the peer opens.
    ///
    /// Nothing is lost if this is dropped before it is ready.
    ///
    /// # Errors
    /// If the session is over.
    pub async fn accept_uni(&self) -> Result<RecvStream, SessionError> {
        let guard = self.accept_stream(Direction::Unidirectional).await?;
        Ok(RecvStream::new(&guard))
    }

    /// Opens a bidirectional stream. Waits until the peer permits one.
    ///
    /// # Errors
    /// If the session is over.
    pub async fn open_bi(&self) -> Result<(SendStream, RecvStream), SessionError> {
        let guard = self.open_stream(Direction::Bidirectional).await?;
        Ok(guard.both())
    }

    /// Opens a unidirectional stream. Waits until the peer permits one.
    ///
    /// # Errors
    /// If the session is over.
    pub async fn open_uni(&self) -> Result<SendStream, SessionError> {
        let guard = self.open_stream(Direction::Unidirectional).await?;
        Ok(SendStream::new(&guard))
    }

    /// The largest datagram that can be sent now, in bytes: it follows the path's MTU.
    pub fn max_datagram_len(&self) -> Option<usize> {
        self.0.datagrams.max_len()
    }

    /// Sends a datagram, as [`DatagramFlow::send`] does.
    ///
    /// # Errors
    /// See [`DatagramError`].
    pub fn send_datagram(&self, payload: &[u8]) -> Result<(), DatagramError> {
        if self.0.ends.end().is_some() {
            return Err(DatagramError::Closed);
        }
        self.0.datagrams.send(payload)
    }

    /// Waits for the next datagram from the peer, as [`DatagramFlow::receive`] does.
    ///
    /// # Errors
    /// If the session is over.
    pub async fn receive_datagram(&self) -> Result<Bytes, SessionError> {
        let mut watcher = self.0.ends.watcher();
        poll_fn(|cx| {
            if let Some(end) = watcher.end(cx.waker()) {
                return Poll::Ready(Err(end));
            }
            match self.0.datagrams.poll_receive(cx) {
                Poll::Ready(Ok(datagram)) => Poll::Ready(Ok(datagram)),
                // Why it is over is about to be known.
                Poll::Ready(Err(_)) | Poll::Pending => Poll::Pending,
            }
        })
        .await
    }

    /// Closes the session with the application's code, and a reason for people of 1024 bytes at most: what is longer is cut.
    /// Its streams are given up. Without effect if it is over.
    pub fn close(&self, code: u32, reason: &str) {
        self.0.ends.close(Some(&Capsule::CloseSession { code, reason: reason.to_owned() }));
    }

    /// Waits until the session is over, and says why.
    pub async fn closed(&self) -> SessionError {
        let mut watcher = self.0.ends.watcher();
        poll_fn(|cx| match watcher.end(cx.waker()) {
            Some(end) => Poll::Ready(end),
            None => Poll::Pending,
        })
        .await
    }

    /// Asks the peer to begin nothing new and to close the session when it has done. All goes on meanwhile.
    pub fn drain(&self) {
        self.0.ends.drain();
    }

    /// Waits until the peer has asked for an end of the session, or it has come.
    pub async fn draining(&self) {
        let mut watcher = self.0.ends.watcher();
        poll_fn(|cx| if watcher.is_draining(cx.waker()) { Poll::Ready(()) } else { Poll::Pending }).await;
    }

    /// The stream of its request, which is its name on the connection.
    pub fn id(&self) -> StreamId {
        self.0.ends.id
    }

    /// The QUIC connection, for addresses, certificates and counters. Its streams must be left alone.
    pub fn connection(&self) -> crate::Connection {
        self.0.ends.link.connection()
    }

    /// Waits for a stream of the peer's.
    async fn accept_stream(&self, direction: Direction) -> Result<Arc<Guard>, SessionError> {
        let mut watcher = self.0.ends.watcher();
        poll_fn(|cx| self.poll_accept(cx, &mut watcher, direction)).await
    }

    /// Waits for a stream of this end's.
    async fn open_stream(&self, direction: Direction) -> Result<Arc<Guard>, SessionError> {
        let mut watcher = self.0.ends.watcher();
        poll_fn(|cx| self.poll_open(cx, &mut watcher, direction)).await
    }

    fn poll_accept(
        &self,
        cx: &Context<'_>,
        watcher: &mut Watcher<'_>,
        direction: Direction,
    ) -> Poll<Result<Arc<Guard>, SessionError>> {
        let Ends { link, id, .. } = &*self.0.ends;
        if let Some(end) = watcher.end(cx.waker()) {
            return Poll::Ready(Err(end));
        }
        let stream = link.look(|protocol, _| {
            let stream = protocol.h3.accept_session_stream(*id, direction);
            match stream {
                Some(stream) => protocol.session_streams.adopted.push((stream, halves(direction))),
                None if protocol.h3.has_session(*id) => {
                    protocol.tunnels.wait_for_stream(*id, direction, cx.waker());
                }
                // Why it is over is about to be known.
                None => {}
            }
            stream
        });
        match stream {
            Some(stream) => Poll::Ready(Ok(Guard::new(&self.0, stream, false))),
            None => Poll::Pending,
        }
    }

    fn poll_open(
        &self,
        cx: &Context<'_>,
        watcher: &mut Watcher<'_>,
        direction: Direction,
    ) -> Poll<Result<Arc<Guard>, SessionError>> {
        let Ends { link, id, .. } = &*self.0.ends;
        if let Some(end) = watcher.end(cx.waker()) {
            return Poll::Ready(Err(end));
        }
        let stream = link.with(|protocol, io| match protocol.h3.open_session_stream(io, *id, direction) {
            Ok(stream) => {
                protocol.session_streams.adopted.push((stream, halves(direction)));
                Some(stream)
            }
            Err(SendError::NoStreams) => {
                protocol.tunnels.wait_to_open(direction, cx.waker());
                None
            }
            Err(_) => None,
        });
        match stream {
            Some(stream) => Poll::Ready(Ok(Guard::new(&self.0, stream, true))),
            None => Poll::Pending,
        }
    }
}

/// Handles that a stream has.
fn halves(direction: Direction) -> u8 {
    if direction == Direction::Bidirectional { 2 } else { 1 }
}

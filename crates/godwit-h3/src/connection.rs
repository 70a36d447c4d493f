//! Connections, and what opens streams on them.

use crate::bidirectional::BidiStream;
use crate::error::{code, of_connection, of_opening};
use crate::receive::RecvStream;
use crate::send::SendStream;
use bytes::Buf;
use godwit::ConnectionPoller;
use h3::error::Code;
use h3::quic::{self, ConnectionErrorIncoming, StreamErrorIncoming};
use std::task::{Context, Poll};

/// A connection for `h3`, at either end.
///
/// Clone the [`godwit::Connection`] before if statistics, the peer's address or certificates are wanted later. Its
/// streams and datagrams belong to `h3` from then on.
#[derive(Debug)]
pub struct Connection {
    pub(crate) poller: ConnectionPoller,
}

impl Connection {
    /// Has `h3` use this connection, whose ALPN should be `h3`.
    pub fn new(connection: godwit::Connection) -> Self {
        Connection { poller: connection.poller() }
    }
}

impl From<godwit::Connection> for Connection {
    fn from(connection: godwit::Connection) -> Self {
        Connection::new(connection)
    }
}

impl<B: Buf> quic::Connection<B> for Connection {
    type RecvStream = RecvStream;
    type OpenStreams = OpenStreams;

    fn poll_accept_recv(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<RecvStream, ConnectionErrorIncoming>> {
        let side = self.poller.connection().side();
        self.poller.poll_accept_uni(cx).map_ok(|stream| RecvStream::new(stream, side)).map_err(of_connection)
    }

    fn poll_accept_bidi(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<BidiStream<B>, ConnectionErrorIncoming>> {
        let side = self.poller.connection().side();
        self.poller.poll_accept_bi(cx).map_ok(|halves| BidiStream::new(halves, side)).map_err(of_connection)
    }

    fn opener(&self) -> OpenStreams {
        OpenStreams { poller: self.poller.clone() }
    }
}

impl<B: Buf> quic::OpenStreams<B> for Connection {
    type BidiStream = BidiStream<B>;
    type SendStream = SendStream<B>;

    fn poll_open_bidi(&mut self, cx: &mut Context<'_>) -> Poll<Result<BidiStream<B>, StreamErrorIncoming>> {
        open_bidi(&mut self.poller, cx)
    }

    fn poll_open_send(&mut self, cx: &mut Context<'_>) -> Poll<Result<SendStream<B>, StreamErrorIncoming>> {
        open_send(&mut self.poller, cx)
    }

    fn close(&mut self, code: Code, reason: &[u8]) {
        close(&self.poller, code, reason);
    }
}

/// Opens streams on a [`Connection`]. Each clone waits for itself.
#[derive(Debug, Clone)]
pub struct OpenStreams {
    poller: ConnectionPoller,
}

impl<B: Buf> quic::OpenStreams<B> for OpenStreams {
    type BidiStream = BidiStream<B>;
    type SendStream = SendStream<B>;

    fn poll_open_bidi(&mut self, cx: &mut Context<'_>) -> Poll<Result<BidiStream<B>, StreamErrorIncoming>> {
        open_bidi(&mut self.poller, cx)
    }

    fn poll_open_send(&mut self, cx: &mut Context<'_>) -> Poll<Result<SendStream<B>, StreamErrorIncoming>> {
        open_send(&mut self.poller, cx)
    }

    fn close(&mut self, code: Code, reason: &[u8]) {
        close(&self.poller, code, reason);
    }
}

fn open_bidi<B: Buf>(
    poller: &mut ConnectionPoller,
    cx: &mut Context<'_>,
) -> Poll<Result<BidiStream<B>, StreamErrorIncoming>> {
    let side = poller.connection().side();
    poller.poll_open_bi(cx).map_ok(|halves| BidiStream::new(halves, side)).map_err(of_opening)
}

fn open_send<B: Buf>(
    poller: &mut ConnectionPoller,
    cx: &mut Context<'_>,
) -> Poll<Result<SendStream<B>, StreamErrorIncoming>> {
    poller.poll_open_uni(cx).map_ok(SendStream::new).map_err(of_opening)
}

fn close(poller: &ConnectionPoller, with: Code, reason: &[u8]) {
    poller.connection().close(code(with.value()), reason);
}

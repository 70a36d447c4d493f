//! A connection for those who have to poll.

use crate::access::Access;
use crate::connection::{Connection, try_accept, try_open};
use crate::datagrams::try_read_datagram;
use crate::error::ConnectionError;
use crate::handler::{Ticket, Topic};
use crate::recv_stream::RecvStream;
use crate::send_stream::SendStream;
use bytes::Bytes;
use godwit_wire::Direction;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

/// What [`Connection`] waits for, as functions that poll: for programs whose traits are such functions, so that nobody
/// has to keep futures in boxes.
///
/// As everywhere, the task that polled last is woken when there may be something. A poller does not have to look then:
/// whoever else waits on the same connection is served all the same, so that a task that has lost interest costs
/// nobody anything. Clones wait for themselves.
#[derive(Debug)]
pub struct ConnectionPoller {
    connection: Connection,
    open_bi: Option<Ticket>,
    open_uni: Option<Ticket>,
    accept_bi: Option<Ticket>,
    accept_uni: Option<Ticket>,
    datagram: Option<Ticket>,
}

impl Connection {
    /// The same connection, to be polled.
    pub fn poller(&self) -> ConnectionPoller {
        ConnectionPoller {
            connection: self.clone(),
            open_bi: None,
            open_uni: None,
            accept_bi: None,
            accept_uni: None,
            datagram: None,
        }
    }
}

impl ConnectionPoller {
    /// The connection that is polled.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// As [`Connection::open_bi`].
    ///
    /// # Errors
    /// If the connection is over.
    pub fn poll_open_bi(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(SendStream, RecvStream), ConnectionError>> {
        let direction = Direction::Bidirectional;
        let attempt = |access: &mut Access<'_, '_>| try_open(access, direction);
        let id = ready!(self.connection.shared.poll(&mut self.open_bi, Topic::Open(direction), cx, attempt));
        Poll::Ready(id.map(|id| self.connection.both_halves(id, false)))
    }

    /// As [`Connection::open_uni`].
    ///
    /// # Errors
    /// If the connection is over.
    pub fn poll_open_uni(&mut self, cx: &mut Context<'_>) -> Poll<Result<SendStream, ConnectionError>> {
        let direction = Direction::Unidirectional;
        let shared = &self.connection.shared;
        let attempt = |access: &mut Access<'_, '_>| try_open(access, direction);
        let id = ready!(shared.poll(&mut self.open_uni, Topic::Open(direction), cx, attempt));
        Poll::Ready(id.map(|id| SendStream::new(Arc::clone(shared), id)))
    }

    /// As [`Connection::accept_bi`].
    ///
    /// # Errors
    /// If the connection is over, and all streams that the peer had opened have been accepted.
    pub fn poll_accept_bi(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(SendStream, RecvStream), ConnectionError>> {
        let direction = Direction::Bidirectional;
        let attempt = |access: &mut Access<'_, '_>| try_accept(access, direction);
        let accepted =
            ready!(self.connection.shared.poll(&mut self.accept_bi, Topic::Accept(direction), cx, attempt));
        Poll::Ready(accepted.map(|(id, early)| self.connection.both_halves(id, early)))
    }

    /// As [`Connection::accept_uni`].
    ///
    /// # Errors
    /// If the connection is over, and all streams that the peer had opened have been accepted.
    pub fn poll_accept_uni(&mut self, cx: &mut Context<'_>) -> Poll<Result<RecvStream, ConnectionError>> {
        let direction = Direction::Unidirectional;
        let shared = &self.connection.shared;
        let attempt = |access: &mut Access<'_, '_>| try_accept(access, direction);
        let accepted = ready!(shared.poll(&mut self.accept_uni, Topic::Accept(direction), cx, attempt));
        Poll::Ready(accepted.map(|(id, early)| RecvStream::new(Arc::clone(shared), id, early)))
    }

    /// As [`Connection::read_datagram`].
    ///
    /// # Errors
    /// If the connection is over, and what had come before has been read.
    pub fn poll_read_datagram(&mut self, cx: &mut Context<'_>) -> Poll<Result<Bytes, ConnectionError>> {
        self.connection.shared.poll(&mut self.datagram, Topic::Datagram, cx, try_read_datagram)
    }
}

impl Clone for ConnectionPoller {
    fn clone(&self) -> Self {
        self.connection.poller()
    }
}

impl Drop for ConnectionPoller {
    fn drop(&mut self) {
        let tickets = [self.open_bi, self.open_uni, self.accept_bi, self.accept_uni, self.datagram];
        if tickets.iter().any(Option::is_some) {
            self.connection.shared.leave(tickets.into_iter().flatten());
        }
    }
}
